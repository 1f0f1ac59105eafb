"""Who may ask: a random token a start, which the first request of a browser turns into a cookie.

The cookie is `HttpOnly` and `SameSite=Strict`, so that no script reads it and no other site sends it along; its name
has the port, since cookies of one machine are shared by all its ports.
"""

from __future__ import annotations

from secrets import token_urlsafe
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

from timeline.errors import needs
from timeline.integrations.bearer import bearer_of, checked_token, is_same

with needs("inspector"):
    from starlette.responses import RedirectResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class TokenDoor:
    """Lets requests with the token in: once in the address, then by the cookie; scripts as ``Authorization: Bearer``.

    Args:
        port: of the server.
        token: the token; a random one unless given.
        secure: whether the cookie is sent over TLS alone.

    Attributes:
        token: what scripts send, and what the printed address holds.

    Raises:
        InvalidArgument: the token is too short.
    """

    def __init__(self, port: int, token: str | None = None, *, secure: bool = False) -> None:
        self.token: str = token_urlsafe(32) if token is None else checked_token(token)
        self._cookie = f"timeline-inspector-{port}"
        self._session = token_urlsafe(32)
        self._once: set[str] = set()
        self._secure = secure

    def once(self) -> str:
        """Return a token that lets in one browser, for the address that we open ourselves."""
        made = token_urlsafe(32)
        self._once.add(made)
        return made

    async def __call__(self, request: Request) -> bool | Response:
        """Return whether a request may be answered; a redirect with the cookie where its address has the token."""
        given = request.query_params.get("token")
        if given is not None and request.method in {"GET", "HEAD"} and self._takes(given):
            return self._entered(request)
        if (cookie := request.cookies.get(self._cookie)) is not None and is_same(cookie, self._session):
            return True
        return is_same(bearer_of(request.headers.get("authorization", "")), self.token)

    def _takes(self, given: str) -> bool:
        if is_same(given, self.token):
            return True
        found = next((one for one in self._once if is_same(given, one)), None)
        self._once.discard(found or "")
        return found is not None

    def _entered(self, request: Request) -> Response:
        """Redirect to the same address without the token, relative to it: a proxy may have it under another prefix."""
        kept = [(k, v) for k, v in parse_qsl(request.url.query, keep_blank_values=True) if k != "token"]
        last = quote(request.scope["path"].rpartition("/")[2], safe="")
        response = RedirectResponse("./" + last + (f"?{urlencode(kept)}" if kept else ""), status_code=303)
        response.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", secure=self._secure)
        return response
