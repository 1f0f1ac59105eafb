"""The connections of the inspector's server and of MCP over HTTP, which anybody of the machine may open."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
import uvicorn

from timeline.inspector.serving import Place, serve
from timeline.integrations import http_connections
from timeline.integrations.http_bounds import BodyRefused, bounded
from timeline.integrations.http_connections import MOST_CONNECTIONS, BoundedConnections
from timeline.integrations.mcp.server import serve_http
from timeline.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from anyio.abc import SocketStream

SERVERS = ("inspector", "mcp")
LARGE: Final = 4_000_000
SMALL: Final = 65_536
"""Bytes of the buffers of a socket."""


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


@asynccontextmanager
async def answering_large() -> AsyncIterator[tuple[uvicorn.Server, socket.socket]]:
    """Serve an answer that is larger than all buffers; yield the server, and a client that has asked for it."""
    asked = anyio.Event()

    async def large(_: Any, __: Any, send: Any) -> None:
        asked.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(LARGE)})

    config = uvicorn.Config(large, http=BoundedConnections, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as client:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listening])
            client.connect(listening.getsockname())
            client.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            client.setblocking(False)
            with anyio.fail_after(60):
                await asked.wait()
                yield server, client
            server.should_exit = server.force_exit = True


async def test_a_client_that_takes_nothing_of_an_answer_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a byte now and then: the answer would stay in memory for as long as it likes."""
    monkeypatch.setattr(http_connections, "TAKEN_WITHIN", 0.3)
    async with answering_large() as (server, client):
        while server.server_state.connections:
            with suppress(BlockingIOError, ConnectionResetError):
                client.recv(1)
            await anyio.sleep(0.05)


async def test_a_client_on_a_slow_line_gets_all_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it takes many times as long as a client may be silent."""
    monkeypatch.setattr(http_connections, "TAKEN_WITHIN", 0.3)
    async with answering_large() as (_, client):
        got, since = 0, monotonic()
        while got < LARGE:
            with suppress(BlockingIOError):
                part = len(client.recv(LARGE // 40))
                assert part, f"cut off after {got:,} bytes"
                got += part
            await anyio.sleep(0.05)
    assert monotonic() - since > 0.6


async def test_a_body_that_breaks_off_is_no_request() -> None:
    """What came of it may be valid as it is: nobody asked for that."""
    messages: Iterator[dict[str, Any]] = iter(
        [{"type": "http.request", "body": b"{}", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> dict[str, Any]:
        return next(messages)

    with pytest.raises(BodyRefused, match="broke off") as refused:
        await bounded(receive, 30)()
    assert refused.value.status == 400
