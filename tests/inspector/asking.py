"""Ask an ASGI application without a server: every header of a request is the test's own."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PORT = 8000
HOST = f"127.0.0.1:{PORT}"


@dataclass(slots=True)
class Answer:
    """An answer: its status, its headers by lower-case name, and its body."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


async def ask(
    app: Any,
    path: str,
    query: Mapping[str, object] | None = None,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: Iterable[bytes] = (b"",),
    server: tuple[str, int | None] = ("127.0.0.1", PORT),
    root_path: str = "",
) -> Answer:
    """Ask an application; ``path`` is percent-encoded already, and begins with a slash."""
    given = {"host": HOST, **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(root_path + path),
        "raw_path": (quote(root_path) + path).encode("ascii"),
        "root_path": root_path,
        "query_string": urlencode(dict(query or {})).encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items() if value],
        "client": ("127.0.0.1", 50_000),
        "server": server,
        "state": {},
    }
    parts = list(body)
    answer = Answer()

    async def receive() -> dict[str, Any]:
        if not parts:
            return {"type": "http.disconnect"}
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode().lower(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    await app(scope, receive, send)
    return answer


async def endless_headers(port: int, most: int) -> int:
    """Send a server headers without an end; return how many bytes of them it took, up to ``most``."""
    lines, sent = (b"X-Endless: " + b"x" * 1_000 + b"\r\n") * 64, 0
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode())
        while sent < most:
            try:
                await stream.send(lines)
            except anyio.BrokenResourceError:
                break
            sent += len(lines)
    return sent


def segment(text: str) -> str:
    """Return a text as one segment of a path."""
    return quote(text, safe="")
