"""Bounds of the body of an HTTP request: how long it may be, and how slowly it may come."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import TypeAlias

    _Message: TypeAlias = MutableMapping[str, Any]
    _Receive: TypeAlias = Callable[[], Awaitable[_Message]]
    _Send: TypeAlias = Callable[[_Message], Awaitable[None]]
    _App: TypeAlias = Callable[[_Message, _Receive, _Send], Awaitable[None]]

MOST_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a request; the longest that is of any use has some 50,000."""
TOO_LONG: Final = f"it has more than {MOST_BYTES:,} bytes. Ask for less in one request."


class BodyRefused(Exception):
    """A body that is too long, comes too slowly, or breaks off.

    Attributes:
        status: of the answer.
        problem: what is wrong with it, as a sentence.
    """

    def __init__(self, status: int, problem: str) -> None:
        self.status = status
        self.problem = problem
        super().__init__(problem)


def bounded(receive: _Receive, deadline: float) -> _Receive:
    """Return what gives the body of a request in one message, and reads nothing of it before it is asked for.

    Raises, when it is asked:
        BodyRefused: the body has more than `MOST_BYTES`, does not come within the deadline, or breaks off.
    """
    return _followed(partial(_whole, receive, deadline), receive)


class BoundedBodies:
    """An HTTP application whose requests have a bounded body, which comes within a deadline and before anything else.

    Put what refuses a request by its headers around it: nothing of the body is read for those.
    """

    def __init__(self, app: _App, deadline: float) -> None:
        self._app = app
        self._deadline = deadline

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Read the body of a request, then pass it on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            message = await _whole(receive, self._deadline)
        except BodyRefused as refused:
            await _refuse(send, refused.status, refused.problem)
            return

        async def read() -> _Message:
            return message

        await self._app(scope, _followed(read, receive), send)


def _followed(first: _Receive, receive: _Receive) -> _Receive:
    """Return what gives the message of one source first, then those of another."""
    waiting = [first]

    async def following() -> _Message:
        return await (waiting.pop() if waiting else receive)()

    return following


async def _whole(receive: _Receive, deadline: float) -> _Message:
    """Return the body of a request as one message.

    Raises:
        BodyRefused: it is too long, too slow, or breaks off.
    """
    with anyio.move_on_after(deadline):
        if (body := await _body(receive)) is None:
            raise BodyRefused(413, f"The request cannot be read: {TOO_LONG}")
        return {"type": "http.request", "body": body, "more_body": False}
    raise BodyRefused(408, f"The request did not come within {deadline:g} seconds.")


async def _body(receive: _Receive) -> bytes | None:
    """Return the body of a request; None where it is too long.

    Raises:
        BodyRefused: it breaks off. What came of it may look like all of it.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyRefused(400, "The request broke off: not all of its body came.")
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
