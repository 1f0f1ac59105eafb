"""The inspector of a database file that may be moved away, put back, or replaced while it is served."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING, Self

from timeline.errors import StoreError, StoreMoved

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from timeline.ports import EventStore


class Reopened:
    """An ASGI application over a store whose file is opened anew where it is another one.

    An open store is of no use once its file has moved. An answer says so, and the next request looks for the file that
    is there by then: the same one that was put back, or another one, such as a backup that was restored. Enter it with
    ``async with``: at its end it closes what it opened.

    Args:
        store: the open store.
        again: opens a store on the same file.
        app: makes the application over a store.
    """

    def __init__(
        self,
        store: EventStore,
        again: Callable[[], AbstractAsyncContextManager[EventStore]],
        app: Callable[[EventStore], ASGIApp],
    ) -> None:
        self._store, self._again, self._make = store, again, app
        self._app = app(store)
        self._in_doubt = False
        """Whether an answer said that the store cannot be read now."""
        self._looking = asyncio.Lock()
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the stores that were opened here."""
        await self._opened.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or a stream of events, from the file that is there now."""
        if self._in_doubt:
            async with self._looking:
                await self._look()

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == HTTPStatus.SERVICE_UNAVAILABLE:
                self._in_doubt = True
            await send(message)

        await self._app(scope, receive, noting)

    async def _look(self) -> None:
        """Open the file anew where the store says that it has moved and another one is there."""
        try:
            await self._store.head()
        except StoreMoved:
            try:
                self._store = await self._opened.enter_async_context(self._again())
            except StoreError:
                return  # there is none yet, or only a part of it: the answer says how it is
            self._app = self._make(self._store)
        except StoreError:
            return  # the answer says what is wrong with it
        self._in_doubt = False
