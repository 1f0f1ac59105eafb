"""A store that is served while its file may be moved away, put back, or replaced, and is opened anew then."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from timeline.errors import StoreError, StoreMoved

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from timeline.ports import EventStore


class Reopening:
    """An open store, and the one that is opened in its place once its file is another one.

    An open store is of no use once its file has moved. `look` opens the file that is there by then: the same one that
    was put back, or another one, such as a backup that was restored. Enter it with ``async with``: at its end it closes
    what it opened.

    Args:
        store: the open store.
        again: opens a store on the same file; None where there is no file.

    Attributes:
        store: the store to ask.
    """

    def __init__(
        self, store: EventStore, again: Callable[[], AbstractAsyncContextManager[EventStore]] | None = None
    ) -> None:
        self.store = store
        self._again = again
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

    async def look(self) -> bool:
        """Open the file anew where the store says that it has moved; return whether the store can be asked.

        If it cannot, there is no file yet, or only a part of one: what asks the store says how it is.
        """
        async with self._looking:
            try:
                await self.store.head()
            except StoreMoved:
                return await self._open()
            except StoreError:
                return False
            return True

    async def _open(self) -> bool:
        if self._again is None:
            return False
        try:
            self.store = await self._opened.enter_async_context(self._again())
        except StoreError:
            return False
        return True
