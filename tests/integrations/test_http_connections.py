"""The connections of the inspector's server and of MCP over HTTP, which anybody of the machine may open."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import pytest

from timeline.inspector.serving import Place, serve
from timeline.integrations import http_connections
from timeline.integrations.http_connections import MOST_CONNECTIONS
from timeline.integrations.mcp.server import serve_http
from timeline.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import SocketStream

SERVERS = ("inspector", "mcp")


@asynccontextmanager
async def served(server: str) -> AsyncIterator[int]:
    """Serve an empty store; yield the port."""
    started = anyio.Event()
    async with await open_store("memory://") as store, anyio.create_task_group() as tasks:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port: int = listening.getsockname()[1]
            if server == "mcp":
                tasks.start_soon(serve_http, store, listening)
            else:
                listening.close()
                tasks.start_soon(serve, store, Place(port=port), lambda *_: started.set())
                await started.wait()
            with anyio.fail_after(60):
                yield port
            tasks.cancel_scope.cancel()


async def everything(stream: SocketStream) -> bytes:
    """Return what a server sends until it closes the connection."""
    got = b""
    try:
        while True:
            got += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return got


@pytest.mark.parametrize("server", SERVERS)
async def test_connections_that_send_nothing_keep_nobody_out(server: str) -> None:
    """However many there are: whoever asks is answered, and the process keeps descriptors for the store."""
    async with served(server) as port:
        idle = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(MOST_CONNECTIONS + 50)]
        asking = await anyio.connect_tcp("127.0.0.1", port)
        await asking.send(f"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        assert (await everything(asking)).startswith((b"HTTP/1.1 403", b"HTTP/1.1 404"))
        for stream in idle[:51]:  # those that waited longest made room
            assert await everything(stream) == b""
        for stream in [asking, *idle]:
            await stream.aclose()


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    ("begun", "part"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\n", b"X"),
        (b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["nothing", "headers without an end", "a body of a refused request without an end"],
)
async def test_a_request_that_never_comes_to_its_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, server: str, begun: bytes, part: bytes
) -> None:
    """Byte after byte it would keep its connection for ever, and nobody knows yet who sends it."""
    monkeypatch.setattr(http_connections, "REQUEST_WITHIN", 0.3)
    async with served(server) as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(begun)

        async def go_on() -> None:
            with suppress(anyio.BrokenResourceError):
                while part:
                    await stream.send(part)
                    await anyio.sleep(0.05)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go_on)
            with anyio.fail_after(10):
                await everything(stream)
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("server", SERVERS)
async def test_a_connection_is_used_for_one_request_after_another(server: str) -> None:
    """Also where they are sent at once: no limit of time runs while one is answered."""
    async with served(server) as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        asked = f"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        await stream.send(f"{asked}\r\n{asked}\r\n{asked}Connection: close\r\n\r\n".encode())
        assert (await everything(stream)).count(b"HTTP/1.1 40") == 3
