"""Keep a store's reads from going back in time where its connections reach several servers, some of them standbys.

A standby shows what it has replayed so far, and no two have come equally far. A follower that learned the end of the
log from one, and read the events before it from another that lacks some, would go on behind them and miss them for
good. So a read on a standby first waits until that one has replayed all that the store was shown.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

from timeline.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .connections import Connection

PATIENCE: Final = 10.0
"""Seconds that a read waits for a standby to replay what another server has shown."""
PLACE: Final = (
    "SELECT (coalesce(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END,"
    " '0/0') - '0/0')::bigint"
)
"""How far in the write-ahead log a server has come, in bytes."""
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.25


class Replayed:
    """How far the servers of a store had come when it was last shown something.

    A store whose connections reach one server that leads asks nothing: the server says by itself that it is no standby.

    Args:
        where: names the store in errors.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._shown = 0
        """The place up to which the store may have been shown the log; 0 while it met no standby."""

    @asynccontextmanager
    async def reading(self, connection: Connection) -> AsyncIterator[None]:
        """Read on a connection, from a moment that is not before what was read last; the driver's errors pass.

        Raises:
            StoreUnavailable: the server is a standby that has not come so far, for `PATIENCE` seconds.
        """
        is_standby = getattr(connection.get_settings(), "in_hot_standby", "off") == "on"
        if is_standby:
            await self._come_so_far(connection)
        yield
        if is_standby or self._shown:
            self._shown = max(self._shown, await connection.fetchval(PLACE))

    async def _come_so_far(self, connection: Connection) -> None:
        until, pause = monotonic() + PATIENCE, _FIRST_PAUSE
        while await connection.fetchval(PLACE) < self._shown:
            if monotonic() > until:
                raise StoreUnavailable(
                    f"{self._where}: a standby has not replayed for {PATIENCE:.0f} seconds what another server showed."
                    " Try again later; after a failover that lost it, open the store again."
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
