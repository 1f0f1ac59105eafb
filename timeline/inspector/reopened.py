"""The inspector of a database file that may be moved away, put back, or replaced while it is served."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from timeline.integrations.reopening import Reopening
    from timeline.ports import EventStore


class Reopened:
    """An ASGI application over a store whose file is opened anew where it is another one.

    An answer says that the store cannot be read, and the next request looks for the file that is there by then.

    Args:
        reopening: the store.
        app: makes the application over a store.
    """

    def __init__(self, reopening: Reopening, app: Callable[[EventStore], ASGIApp]) -> None:
        self._reopening, self._make = reopening, app
        self._store = reopening.store
        self._app = app(self._store)
        self._in_doubt = False
        """Whether an answer said that the store cannot be read now."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or a stream of events, from the file that is there now."""
        if self._in_doubt:
            self._in_doubt = not await self._reopening.look()
        if self._store is not self._reopening.store:
            self._store = self._reopening.store
            self._app = self._make(self._store)

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == HTTPStatus.SERVICE_UNAVAILABLE:
                self._in_doubt = True
            await send(message)

        await self._app(scope, receive, noting)
