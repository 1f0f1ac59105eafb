"""A database that is open: in one process and on one event loop, until it is closed, which happens once."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from timeline.home import Home

from .failures import closed
from .late_writes import LateWrites

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class OpenDatabase(ABC):
    """The connections of one store, which its parts share.

    Attributes:
        where: names the store in errors.
        late_writes: see `FinishingStore`.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._home = Home(f"{where}: the store")
        self.late_writes: LateWrites = LateWrites()
        self._closing: asyncio.Task[None] | None = None
        self._refuses = False

    def check_open(self) -> None:
        """Check that the store is open, in the process and on the loop that opened it."""
        self._home.check()
        if self._refuses:
            raise closed(self.where)

    async def aclose(self, first: Callable[[], Awaitable[None]]) -> None:
        """Finish late writes, do what comes first, finish pending writes, then close.

        Nothing is read or begun behind the late writes. A cancelled call continues to close; a second call waits for
        the end.

        Raises:
            TimelineError: a late write failed. The store is closed all the same.
        """
        self._home.check()
        if self._closing is None:
            self._refuses = not self.late_writes  # they are still to be written
            self._closing = asyncio.create_task(self._closed_behind(first))
        await asyncio.shield(self._closing)

    async def _closed_behind(self, first: Callable[[], Awaitable[None]]) -> None:
        try:
            await self.late_writes.finish()
        finally:
            self._refuses = True
            await first()
            await self._close()

    @abstractmethod
    async def _close(self) -> None:
        """Finish pending writes, and close the connections."""
