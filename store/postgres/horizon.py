"""The horizon below which readers of all conversations see everything: no transaction below it is still running.

A store's own appends may be above it for a while, as long as an older transaction of the server writes. Reads of all
conversations wait for them, not for long, so that a caller reads what it has appended.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from .statements import HIDDEN_POSITION, HORIZON_LAG, IS_SETTLED

if TYPE_CHECKING:
    from .database import Database

_FIRST_LOOK, _LONGEST_LOOK = 0.001, 0.1
_PATIENCE: Final = 5.0
"""Seconds that a read of all conversations waits for the horizon to pass what this store has appended itself: some
other transaction of the server is still writing. It is not waited for a second time."""


class Horizon:
    """One store's view of the horizon."""

    def __init__(self, database: Database) -> None:
        self._rows = database.rows
        self._acknowledged = 0
        """The position of the newest event that this store itself appended."""
        self._waited_for = 0
        """The position up to which the horizon was waited for."""

    def note(self, position: int) -> None:
        """Note the position of an event that this store has appended."""
        self._acknowledged = max(self._acknowledged, position)

    async def settled(self) -> None:
        """Wait, not for long, until every reader of all conversations sees what this store has appended."""
        own = self._acknowledged
        if own > self._waited_for:
            await self.pass_by(own)
        self._waited_for = max(self._waited_for, own)

    async def hidden(self) -> int:
        """Return the position of the newest event if readers of all conversations do not see it yet, else 0."""
        rows = await self._rows(HIDDEN_POSITION)
        return int(rows[0][0]) if rows else 0

    async def pass_by(self, position: int) -> None:
        """Wait, not for long, until readers of all conversations see what is up to a position."""
        pause, waited = _FIRST_LOOK, 0.0
        while waited < _PATIENCE and not (await self._rows(IS_SETTLED, position))[0][0]:
            await asyncio.sleep(pause)
            waited, pause = waited + pause, min(2 * pause, _LONGEST_LOOK)

    async def lag(self) -> int:
        """Return the number of transactions behind the oldest one that runs, in any database of the server.

        Events above it are in no read of all conversations yet; a transaction that stays open holds all of these up.
        """
        ((lag,),) = await self._rows(HORIZON_LAG)
        return int(lag)
