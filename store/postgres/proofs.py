# ruff: noqa: S608 - the texts are put together from constants, never from input
"""The part of a PostgreSQL store that lets its log be proved, and what is derived be checked; see `ports.Proofs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.events.chain import given
from timeline.frozen import sha256_hex
from timeline.ports import ChainedEvent, Finding, Snapshot, WrittenEvent

from ..codec import decode_written, encode_snapshot
from ..failures import checked_id, checked_page
from ..waypoint_bodies import waypoint_columns
from . import mending
from .escaping import joined, key_of, unescaped
from .forgetting import Forgetting
from .keeping import hold_expected
from .overwriting import DROP_WAYPOINT
from .rows import event_row
from .statements import ADD_WAYPOINT, OWN, PAGE_AS_WRITTEN, REPLACE_SNAPSHOT, SCAVENGED_WHERE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from .connections import Connection

_CHAIN_HEAD: Final = f"SELECT head FROM conversations WHERE id_key = $1 AND {OWN}"
_CHAINED: Final = (
    "SELECT e.version, e.position, e.event_id::text,"
    f" CASE WHEN e.{SCAVENGED_WHERE} AND e.turn_id IS NOT NULL THEN e.turn_id ELSE e.type END, e.schema_version, e.at,"
    " e.path, e.path_rest, e.checksum, e.salt, e.c, e.link FROM events AS e"
    " WHERE e.conversation = $1 AND e.version > $2 AND e.version <= $3 ORDER BY e.version LIMIT $4"
)
_WAYPOINT_VERSIONS: Final = "SELECT version FROM waypoints WHERE conversation = $1 ORDER BY version"
_DROP_SNAPSHOT: Final = "DELETE FROM snapshots WHERE conversation = $1"
_SET_WINDOW: Final = "UPDATE conversations SET window_start = $1 WHERE key = $2"


class Proofs(Forgetting):
    """`timeline.ports.Proofs`."""

    async def chain_head(self, conversation: str) -> bytes:
        """Return the link of a conversation's newest event, as its row has it."""
        rows = await self.rows(_CHAIN_HEAD, key_of(conversation))
        if not rows:
            raise await self._missing(conversation)
        return bytes(rows[0][0] or b"")

    async def chained(self, conversation: str, *, after: int = 0, page: int = 2_000) -> AsyncIterator[ChainedEvent]:
        """Iterate over all events of a conversation as they are stored; see `Proofs.chained`."""
        for part in await self._lineage(conversation):
            version = max(part.base, after)
            while rows := await self.rows(_CHAINED, part.key, version, part.last, checked_page(page)):
                for row in rows:
                    number, position, id_, type_, schema, at, path, rest, checksum, salt, c, link = row
                    whole = None if path is None else joined(path, rest)
                    place = (number, position, id_, unescaped(type_), schema, at, whole)
                    yield ChainedEvent(part.conversation, *place, checksum, salt, given(salt, checksum, c), link)
                version = rows[-1][0]

    async def read_written(
        self, conversation: str, *, after: int = 0, until: int | None = None, page: int = 500
    ) -> AsyncIterator[WrittenEvent]:
        """Iterate over a conversation's events as they are written; see `Proofs.read_written`."""
        parts = await self._lineage(conversation)
        version = max(after, 0)
        async for owner, rows in self._pages(parts, after, until, checked_page(page), PAGE_AS_WRITTEN):
            for row in rows:
                if row[1] != version + 1:
                    await self._check_all_between(parts, version, row[1])
                version = row[1]
                yield decode_written(owner, event_row(row), self.where)
        last = parts[-1].last if until is None else min(until, parts[-1].last)
        await self._check_all_between(parts, version, max(version, last) + 1)

    async def examine(self) -> list[Finding]:
        """Compare all that is derived from the log with the log, at one moment; see `Proofs.examine`.

        It only reads, so that appends and readers of others go on; a standby can be examined, too.
        """
        async with self._moment() as connection:
            return await mending.examine(connection)

    async def mend(self) -> list[Finding]:
        """Make anew what is derived from the log and differs from it, a batch at a time; see `Proofs.mend`."""
        self._check_writable()
        return await mending.mend(self)

    async def waypoints(self, conversation: str) -> list[int]:
        """Return the versions of a conversation's own snapshots of the past, rising."""
        return [version for (version,) in await self.rows(_WAYPOINT_VERSIONS, await self._key(conversation))]

    async def replace_waypoints(
        self,
        conversation: str,
        snapshots: Sequence[Snapshot],
        *,
        dropped: Collection[int] = (),
        expected: int | None = None,
    ) -> None:
        """Keep snapshots of the past in the places of others; see `Proofs.replace_waypoints`."""
        drafts = [encode_snapshot(snapshot) for snapshot in snapshots]

        async def work(connection: Connection) -> None:
            log = await hold_expected(connection, checked_id(conversation), expected)
            await connection.executemany(DROP_WAYPOINT, [(log.key, version) for version in dropped])
            rows = [(log.key, *waypoint_columns(conversation, draft)) for draft in drafts]
            await connection.executemany(ADD_WAYPOINT, rows)

        await self.do(work)

    async def replace_snapshot(
        self, conversation: str, snapshot: Snapshot | None, *, expected: int | None = None
    ) -> None:
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

        await self.do(work)
