"""Refuse requests that a browser was tricked into sending to a server of this machine, before anything routes them.

A page of another site can send requests here, and by DNS rebinding under a name of its own. The Host that it names is
then not a loopback name with our port, or the Origin is not that of the Host. A proxy of this machine passes on what
others ask, often under a loopback name: a server that nothing guards refuses that, too.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
    from typing import TypeAlias

    _Message: TypeAlias = MutableMapping[str, Any]
    _Receive: TypeAlias = Callable[[], Awaitable[_Message]]
    _Send: TypeAlias = Callable[[_Message], Awaitable[None]]
    _App: TypeAlias = Callable[[_Message, _Receive, _Send], Awaitable[None]]

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_PASSED_ON = frozenset({b"forwarded", b"via", b"x-real-ip", b"cf-connecting-ip"})
"""The headers by which proxies say for whom they ask, besides X-Forwarded-For and its like."""


def is_loopback(address: str) -> bool:
    """Return whether an address is one that only this machine reaches: a loopback address, or a socket in a file."""
    if address.startswith("/") or address == "localhost":
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def loopback_hosts(port: int) -> frozenset[str]:
    """Return the Host headers of a server on loopback; a browser leaves out the port of the scheme."""
    plain = _NAMES if port in {80, 443} else ()
    return frozenset([*(f"{name}:{port}" for name in _NAMES), *plain])


def foreign(headers: Collection[tuple[bytes, bytes]], hosts: Collection[str] | None) -> str | None:
    """Return why a request may not be answered; None where nothing speaks against it.

    Args:
        headers: of the request, as ASGI has them.
        hosts: the Host headers that are ours, in lower case; None allows any.
    """
    named = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
    origins = [value.decode("latin-1").lower() for name, value in headers if name == b"origin"]
    if len(named) != 1 or (hosts is not None and named[0] not in hosts):
        return "The Host header does not name this server. Open it by the address that it printed."
    if any(origin not in {f"http://{named[0]}", f"https://{named[0]}"} for origin in origins) or _is_embedded(headers):
        return "The request comes from a page of another origin. Only the server's own pages may ask."
    return None


def _is_embedded(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a page of another origin wants a part of itself, such as a picture: for that no Origin is sent.

    It could not read the answer, but start work, and see how long that takes. Who follows a link opens a page.
    """
    sent = dict(headers)
    opens = (sent.get(b"sec-fetch-mode"), sent.get(b"sec-fetch-dest")) == (b"navigate", b"document")
    return sent.get(b"sec-fetch-site") in {b"cross-site", b"same-site"} and not opens


def passed_on(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return why a server that nothing guards may not answer a request: a proxy asks, for whomever it serves."""
    by = (name for name, _ in headers if name in _PASSED_ON or name.startswith(b"x-forwarded-"))
    named = next((name.decode("latin-1") for name in by), None)
    return None if named is None else f"A proxy passed the request on ({named}), and others may ask it."


class OnlyLocal:
    """An HTTP application on loopback that answers no request of a foreign Host or Origin, and none of a proxy."""

    def __init__(self, app: _App, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Pass a request on, or refuse it."""
        problem = None
        if scope["type"] in {"http", "websocket"}:
            problem = foreign(scope["headers"], self._hosts) or passed_on(scope["headers"])
        if problem is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": problem.encode()})
