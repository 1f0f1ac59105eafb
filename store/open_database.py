"""A database that is open: in one process and on one event loop, until it is closed, which happens once."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from timeline.home import Home

from .failures import closed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class OpenDatabase(ABC):
    """The connections of one store, which its parts share.

    Attributes:
        where: names the store in errors.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._home = Home(f"{where}: the store")
        self._closing: asyncio.Task[None] | None = None

    def check_open(self) -> None:
        """Check that the store is open, in the process and on the loop that opened it."""
        self._home.check()
        if self._closing is not None:
            raise closed(self.where)

    async def aclose(self, first: Callable[[], Awaitable[None]]) -> None:
        """Do what comes first, finish pending writes, then close.

        Nothing is read or begun from now on. A cancelled call continues to close; a second call waits for the end.
        """
        self._home.check()
        if self._closing is None:
            self._closing = asyncio.create_task(self._closed_behind(first))
        await asyncio.shield(self._closing)

    async def _closed_behind(self, first: Callable[[], Awaitable[None]]) -> None:
        await first()
        await self._close()

    @abstractmethod
    async def _close(self) -> None:
        """Finish pending writes, and close the connections."""
