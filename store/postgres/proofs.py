"""The part of a PostgreSQL store that checks what is derived from the log, and replaces it; see `ports.Proofs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.frozen import sha256_hex

from ..codec import encode_snapshot
from ..failures import checked_id
from ..waypoint_bodies import waypoint_columns
from . import mending
from .keeping import hold_expected
from .overwriting import DROP_WAYPOINT
from .statements import ADD_WAYPOINT, REPLACE_SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from timeline.ports import Finding, Snapshot

    from .connections import Connection
    from .database import Database

_DROP_SNAPSHOT: Final = "DELETE FROM snapshots WHERE conversation = $1"
_SET_WINDOW: Final = "UPDATE conversations SET window_start = $1 WHERE key = $2"


class Proofs:
    """`timeline.ports.Proofs`, but for its reads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def examine(self) -> list[Finding]:
        """Compare all that is derived from the log with the log, at one moment; see `Proofs.examine`.

        It only reads, so that appends and readers of others go on; a standby can be examined, too.
        """
        async with self._database.moment() as connection:
            return await mending.examine(connection)

    async def mend(self) -> list[Finding]:
        """Make anew what is derived from the log and differs from it, a batch at a time; see `Proofs.mend`."""
        self._database.check_writable()
        return await mending.mend(self._database)

    async def replace_waypoints(
        self,
        conversation: str,
        snapshots: Sequence[Snapshot],
        dropped: Collection[int],
        expected: int | None,
    ) -> None:
        """Keep snapshots of the past in the places of others; see `Proofs.replace_waypoints`."""
        drafts = [encode_snapshot(snapshot) for snapshot in snapshots]

        async def work(connection: Connection) -> None:
            log = await hold_expected(connection, checked_id(conversation), expected)
            await connection.executemany(DROP_WAYPOINT, [(log.key, version) for version in dropped])
            rows = [(log.key, *waypoint_columns(conversation, draft)) for draft in drafts]
            await connection.executemany(ADD_WAYPOINT, rows)

        await self._database.do(work)

    async def replace_snapshot(self, conversation: str, snapshot: Snapshot | None, expected: int | None) -> None:
        """Put a snapshot of the log in the place of the stored one; see `Proofs.replace_snapshot`."""
        draft = None if snapshot is None else encode_snapshot(snapshot)

        async def work(connection: Connection) -> None:
            log = await hold_expected(connection, checked_id(conversation), expected)
            if draft is None:
                await connection.execute(_DROP_SNAPSHOT, log.key)
            else:
                hashed = sha256_hex(draft.body)
                await connection.execute(REPLACE_SNAPSHOT, log.key, draft.version, draft.body, hashed)
            await connection.execute(_SET_WINDOW, 1 if draft is None else draft.window_start, log.key)

        await self._database.do(work)
