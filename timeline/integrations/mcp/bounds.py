"""Bounds of a request, before anything of it is read as JSON: how long it may be, and how slowly it may come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import BinaryIO, TypeAlias

    _Message: TypeAlias = MutableMapping[str, Any]
    _Receive: TypeAlias = Callable[[], Awaitable[_Message]]
    _Send: TypeAlias = Callable[[_Message], Awaitable[None]]
    _App: TypeAlias = Callable[[_Message, _Receive, _Send], Awaitable[None]]

MOST_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a request; the longest that the tools take has some 50,000."""
TOO_LONG: Final = f"it has more than {MOST_BYTES:,} bytes. Ask for less in one request."
_PART: Final = 64 * 1024
_CUT: Final = "\0cut"
"""The end of a line that was cut: no JSON has a NUL."""


class BoundedLines:
    """Standard input, line by line; of a line that is too long only its ends, marked as cut, which name its request."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw

    def readline(self) -> str:
        """Return the next line; empty at the end of the input."""
        line = self._raw.readline(MOST_BYTES + 1)
        if len(line) <= MOST_BYTES:
            return line.decode("utf-8", errors="replace")
        while (part := self._raw.readline(_PART)) and not part.endswith(b"\n"):
            pass
        return line[:_PART].decode("utf-8", errors="replace") + _CUT + "\n"


def is_cut(line: str) -> bool:
    """Return whether a line is one that was too long."""
    return line.rstrip("\n").endswith(_CUT)


class BoundedBodies:
    """An HTTP application whose requests have a bounded body, which comes within a deadline."""

    def __init__(self, app: _App, deadline: float) -> None:
        self._app = app
        self._deadline = deadline

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Read the body of a request, then pass it on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = b""
        with anyio.move_on_after(self._deadline) as reading:
            found = await _body(receive)
            if found is None:
                await _refuse(send, 413, f"The request cannot be read: {TOO_LONG}")
                return
            body = found
        if reading.cancelled_caught:
            await _refuse(send, 408, f"The request did not come within {self._deadline:g} seconds.")
            return
        given = False

        async def again() -> _Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, again, send)


async def _body(receive: _Receive) -> bytes | None:
    """Return the body of a request; None where it is too long."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size > MOST_BYTES:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _refuse(send: _Send, status: int, problem: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": problem.encode()})
