"""A server on loopback, and a reader of server-sent events as browsers read them, over plain sockets."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import uvicorn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[Site]:
    """Serve an ASGI application on loopback."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    site = Site(listening.getsockname()[1])
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started:  # noqa: ASYNC110 - it offers no event to wait for
            await asyncio.sleep(0.005)
        yield site
    finally:
        for connection in site.connections:
            await connection.close()
        server.should_exit = True
        await running


class Sent(NamedTuple):
    """A server-sent event: its id, its name and its data."""

    id: str
    name: str
    data: dict[str, Any]


@dataclass
class Reader:
    """Parse a stream as the HTML standard has it: what is cut before its blank line was never sent."""

    last_id: str = ""
    events: list[Sent] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    retry: int | None = None
    _rest: bytes = b""

    def feed(self, data: bytes) -> None:
        """Take bytes in."""
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        for block in blocks:
            self._block(block.decode("utf-8"))

    def cut(self) -> None:
        """Forget what has no end."""
        self._rest = b""

    def _block(self, block: str) -> None:
        name, lines = "message", []
        for line in block.split("\n"):
            word, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match word:
                case "":
                    self.comments.append(value)
                case "id":
                    self.last_id = value
                case "event":
                    name = value
                case "retry":
                    self.retry = int(value)
                case "data":
                    lines.append(value)
        if lines:
            self.events.append(Sent(self.last_id, name, json.loads("\n".join(lines))))


@dataclass
class Connection:
    """An open answer."""

    status: int
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def chunk(self) -> bytes:
        """Return the next bytes of a chunked body; none at its end."""
        size = int(await self.reader.readline() or b"0", 16)
        data = await self.reader.readexactly(size) if size else b""
        await self.reader.readline()
        return data

    async def body(self) -> Any:
        """Return the JSON of a whole body."""
        return json.loads(await self.reader.readexactly(int(self.headers["content-length"])))

    async def close(self) -> None:
        """Cut it off."""
        self.writer.transport.abort()
        await asyncio.sleep(0)


@dataclass
class Site:
    """What is served, and the connections to it."""

    port: int
    connections: list[Connection] = field(default_factory=list)

    async def get(
        self, path: str, *, method: str = "GET", last_event_id: str = "", limit: int = 2**16, host: str = ""
    ) -> Connection:
        """Ask for a path."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=limit)
        last = f"Last-Event-ID: {last_event_id}\r\n" if last_event_id else ""
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {host or f'localhost:{self.port}'}\r\n{last}\r\n".encode("latin-1")
        )
        status = int((await reader.readline()).split()[1])
        headers: dict[str, str] = {}
        while (line := (await reader.readline()).decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        self.connections.append(Connection(status, headers, reader, writer))
        return self.connections[-1]


async def read_until(connection: Connection, reader: Reader, events: int) -> None:
    """Read until so many events came, or the end."""
    async with asyncio.timeout(10):
        while len(reader.events) < events and (data := await connection.chunk()):
            reader.feed(data)
