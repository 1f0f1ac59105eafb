"""Let in the requests that bring a token, as ``Authorization: Bearer``.

A port of this machine is open to all its users, also to those who may not read the file of the database.
"""

from __future__ import annotations

from secrets import compare_digest
from typing import TYPE_CHECKING, Any, Final

from timeline.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping
    from typing import TypeAlias

    _Message: TypeAlias = MutableMapping[str, Any]
    _Receive: TypeAlias = Callable[[], Awaitable[_Message]]
    _Send: TypeAlias = Callable[[_Message], Awaitable[None]]
    _App: TypeAlias = Callable[[_Message, _Receive, _Send], Awaitable[None]]

_LEAST: Final = 16
"""Characters of the shortest token that is taken: what is shorter can be guessed."""
_CURE: Final = b"This server answers requests with its token alone. Send it as Authorization: Bearer."


def checked_token(token: str) -> str:
    """Return a token.

    Raises:
        InvalidArgument: it is too short, or no header takes it.
    """
    if len(token) < _LEAST or not token.isascii() or not token.isprintable():
        raise InvalidArgument(
            "token", f"a token needs {_LEAST} printable ASCII characters or more, so that nobody guesses it"
        )
    return token


def is_same(given: str, known: str) -> bool:
    """Return whether two tokens are the same, in a time that says nothing about where they differ."""
    return compare_digest(given.encode(), known.encode())


def bearer_of(authorization: str) -> str:
    """Return the token of an ``Authorization`` header; an empty text where it has none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


class OnlyWithToken:
    """An HTTP application that answers no request without its token.

    Args:
        app: what is guarded.
        token: what a request has to bring.

    Raises:
        InvalidArgument: the token is too short, or no header takes it.
    """

    def __init__(self, app: _App, token: str) -> None:
        self._app = app
        self._token = checked_token(token)

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in {"http", "websocket"} or self._is_let_in(scope["headers"]):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": _CURE})

    def _is_let_in(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        given = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
        return len(given) == 1 and is_same(bearer_of(given[0]), self._token)
