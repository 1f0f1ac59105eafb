"""The horizon below which readers of all conversations see everything: no transaction below it is still running.

A store's own appends may be above it for a while, as long as an older transaction of the server writes. Reads of all
conversations wait for them, not for long, so that a caller reads what it has appended.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from .statements import HIDDEN_POSITION, HOLDER, HORIZON_LAG, IS_AHEAD, IS_SETTLED

if TYPE_CHECKING:
    from .database import Database

log: Final = logging.getLogger("timeline.store")
_FIRST_LOOK, _LONGEST_LOOK = 0.001, 0.1
_PATIENCE: Final = 5.0
"""Seconds that a read of all conversations waits for the horizon to pass what this store has appended itself: some
other transaction of the server is still writing. It is not waited for a second time."""
_BETWEEN: Final = 60.0
"""Seconds between two warnings of such a transaction."""
_BETWEEN_LOOKS: Final = 1.0
"""Seconds between two looks for what a read of all conversations has not seen."""


class Holder(NamedTuple):
    """The oldest transaction that writes, in any database of the server.

    Attributes:
        what: its process and database, or its name if it is a prepared one.
        seconds: since it began; None for a role that may not see that, as `pg_read_all_stats` may.
    """

    what: str
    seconds: int | None

    def __str__(self) -> str:
        began = "" if self.seconds is None else f" that began {self.seconds:,} seconds ago"
        return (
            f"{self.what} writes in a transaction{began}, and readers of all conversations wait for its end. If it was"
            " forgotten, end it by pg_terminate_backend or ROLLBACK PREPARED"
        )


class Horizon:
    """One store's view of the horizon."""

    def __init__(self, database: Database) -> None:
        self._rows, self._where = database.rows, database.where
        self._acknowledged = 0
        """The position of the newest event that this store itself appended."""
        self._waited_for = 0
        """The position up to which the horizon was waited for."""
        self._warned: float | None = None
        """When it was last said who holds readers up."""
        self._said_ahead: float | None = None
        """When it was last said that a reader is ahead of the server."""
        self._looked = 0.0
        """When a read was last looked after."""
        self._held_since: float | None = None
        """Since when reads have ended before the newest event."""

    def note(self, position: int) -> None:
        """Note the position of an event that this store has appended."""
        self._acknowledged = max(self._acknowledged, position)

    async def settled(self) -> None:
        """Wait, not for long, until every reader of all conversations sees what this store has appended."""
        own = self._acknowledged
        if own > self._waited_for:
            await self.pass_by(own)
        self._waited_for = max(self._waited_for, own)

    async def ended(self, position: int) -> None:
        """Look after a read of all conversations that has come to its end behind a position.

        Where such reads leave out for some seconds what is stored, a warning names what they wait for: a reader
        that asks again and again learns it from nowhere else. Neither does one whose position is of another server,
        or of a later moment than the one that the server was restored to.
        """
        now = monotonic()
        if now - self._looked < _BETWEEN_LOOKS:
            return
        self._looked = now
        hidden = await self.hidden()
        if hidden < position:
            await self._check_reached(position)
        if hidden <= position:
            self._held_since = None
        elif self._held_since is None:
            self._held_since = now
        elif now - self._held_since >= _PATIENCE:
            await self._warn()

    async def _check_reached(self, position: int) -> None:
        """Warn, once a minute, of a reader that waits behind a position which neither store nor server has reached.

        A store that was restored may have it where the server's count is lower: the first open for writing goes on
        behind it.
        """
        if self._said_ahead is not None and monotonic() - self._said_ahead < _BETWEEN:
            return
        if any(ahead for (ahead,) in await self._rows(IS_AHEAD, position)):
            self._said_ahead = monotonic()
            log.warning(
                "%s: a reader of all conversations waits for events after position %s, which the server has not"
                " reached: it was restored to an earlier moment, or took over without the newest appends. The reader"
                " misses what comes until then; let it begin anew",
                self._where,
                position,
            )

    async def hidden(self) -> int:
        """Return the position of the newest event if readers of all conversations do not see it yet, else 0."""
        rows = await self._rows(HIDDEN_POSITION)
        return int(rows[0][0]) if rows else 0

    async def pass_by(self, position: int) -> None:
        """Wait, not for long, until readers of all conversations see what is up to a position.

        Where they do not see it by then, a warning names what they wait for.
        """
        pause, waited = _FIRST_LOOK, 0.0
        while not (await self._rows(IS_SETTLED, position))[0][0]:
            if waited >= _PATIENCE:
                await self._warn()
                return
            await asyncio.sleep(pause)
            waited, pause = waited + pause, min(2 * pause, _LONGEST_LOOK)

    async def _warn(self) -> None:
        if self._warned is not None and monotonic() - self._warned < _BETWEEN:
            return
        holder = await self.holder()
        if holder is not None:
            self._warned = monotonic()
            log.warning("%s: %s", self._where, holder)

    async def holder(self) -> Holder | None:
        """Return the oldest transaction that writes, which readers of all conversations wait for; None without one."""
        rows = await self._rows(HOLDER)
        return Holder(str(rows[0][0]), rows[0][1]) if rows else None

    async def lag(self) -> int:
        """Return the number of transactions behind the oldest one that runs, in any database of the server.

        Events above it are in no read of all conversations yet; a transaction that stays open holds all of these up.
        """
        ((lag,),) = await self._rows(HORIZON_LAG)
        return int(lag)
