"""The reads of a PostgreSQL store: single statements, each of them checked for what it was asked.

Every page is a statement of its own; no cursor and no transaction is held between two pages. The log only grows, so a
conversation's row, read first, decides which events belong to the read.
"""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.errors import ConversationErased, ConversationNotFound, HistoryUnavailable, StoreCorrupt
from timeline.ports import StoredWindow

from ..aside import decoded
from ..codec import decode_info, decode_snapshot, decode_value
from ..failures import checked_page
from ..waypoint_bodies import read_waypoint
from . import statements
from .database import Database
from .escaping import escaped, joined, key_of, prefix_bounds, unescaped
from .rows import event_row, info_row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence
    from uuid import UUID

    from timeline.errors import StoreError
    from timeline.events import Event
    from timeline.ports import ConversationInfo, Snapshot

    from ..codec import Row

_WINDOW_PAGE: Final = 2_000
_MOST: Final = 2**63 - 1
_CURE: Final = "`timeline verify --deep` lists all damage, `timeline repair` makes indexes anew"
_RESTORE: Final = "Restore the database with the tools of its server"
_FIRST_LOOK, _LONGEST_LOOK = 0.001, 0.1
_PATIENCE: Final = 5.0
"""Seconds that a read of all conversations waits for the horizon to pass what this store has appended itself: some
other transaction of the server is still writing. It is not waited for a second time."""
_CHECKSUM: Final = 8
"""Place of the checksum in a row behind the conversation of its event."""


class Part(NamedTuple):
    """The versions of a conversation that one log holds, its own or an ancestor's: ``base < version <= last``."""

    key: int
    conversation: str
    base: int
    last: int


class Reading(Database):
    """The reads of `EventStore`."""

    _acknowledged: int = 0
    """The position of the newest event that this store itself appended."""
    _waited_for: int = 0
    """The position up to which the horizon was waited for."""

    async def read(
        self,
        conversation: str,
        *,
        after: int = 0,
        until: int | None = None,
        types: Collection[str] | None = None,
        page: int = 500,
    ) -> AsyncIterator[Event]:
        """Iterate over a conversation's events, up to the version that it has now; see `EventStore.read`."""
        statement, listed = _choose(types, statements.PAGE, statements.PAGE_OF_TYPES, statements.PAGE_OF_RARE_TYPES)
        parts = await self._lineage(conversation)
        version = max(after, 0)
        async for owner, rows in self._pages(parts, after, until, checked_page(page), statement, *listed):
            for row in rows:
                if types is None:
                    if row[1] != version + 1:
                        await self._check_all_between(parts, version, row[1])
                elif row[3] not in listed[0]:
                    raise self._misled(conversation, row[1])
                version = row[1]
                yield await decoded(owner, event_row(row), self.where)
        if types is None:
            last = parts[-1].last if until is None else min(until, parts[-1].last)
            await self._check_all_between(parts, version, max(version, last) + 1)

    async def read_versions(self, conversation: str, versions: Collection[int]) -> list[Event]:
        """Return the events of these versions that exist, by version."""
        wanted = sorted({version for version in versions if 0 < version <= _MOST})
        found = await self.rows(statements.BY_VERSION, key_of(conversation), wanted)
        missing = set(wanted)
        for row in found:
            if row[2] not in missing:
                raise self._misled(conversation, row[2])
            missing.remove(row[2])
        if missing:
            await self._check_beyond(conversation, missing)
        rows = [row for row in found if row[_CHECKSUM]]  # a scavenged event has none
        return [
            await decoded(unescaped(owner), event_row(tuple(row)), self.where)
            for owner, *row in sorted(rows, key=lambda row: row[2])
        ]

    async def find(self, conversation: str, path: str) -> Event | None:
        """Return the event that appended the block at a path, or None."""
        rows = await self.rows(statements.BY_PATH, key_of(conversation), key_of(path))
        if not rows:
            # No block has the path, which is an error for whoever asked: time to make sure that its index is sound.
            await self._check_unused(conversation, path)
            return None
        if not rows[0][_CHECKSUM]:
            info = await self.info(conversation)
            raise HistoryUnavailable(conversation, rows[0][2], info.first_version, info.version, scavenged=True)
        event = await decoded(unescaped(rows[0][0]), event_row(rows[0][1:]), self.where)
        if unescaped(rows[0][9]) != path:
            raise self._misled(conversation, event.version)
        return event

    async def paths_taken(self, conversation: str, stems: Collection[str]) -> set[str]:
        """Return all paths in use that begin with one of the stems."""
        bounds = [prefix_bounds(stem) for stem in set(stems)]
        firsts, beyond = [first for first, _ in bounds], [end for _, end in bounds]
        rows = await self.rows(statements.PATHS_BETWEEN, key_of(conversation), firsts, beyond)
        # The range of a long stem ends where keys do.
        begins = tuple(stems)
        return {path for path in {joined(key, rest) for key, rest in rows} if path.startswith(begins)}

    async def known_ids(self, conversation: str, ids: Collection[UUID]) -> set[UUID]:
        """Return the given event ids that the conversation holds."""
        wanted = {str(id_): id_ for id_ in ids}
        rows = await self.rows(statements.IDS_KNOWN, key_of(conversation), list(wanted))
        return {wanted[id_] for (id_,) in rows}

    async def load_window(self, conversation: str) -> StoredWindow:
        """Read the state that a running agent needs; see `EventStore.load_window`.

        Raises:
            StoreCorrupt: an event of the window is damaged or missing.
        """
        rows = await self.rows(statements.INFO_AND_SNAPSHOT, key_of(conversation))
        if not rows:
            raise await self._missing(conversation)
        *row, body, stored = rows[0]
        info = decode_info(info_row(tuple(row)), self.where)
        snapshot = None if body is None else decode_snapshot(conversation, body, stored, self.where)
        start = 1 if snapshot is None else snapshot.window_start
        if info.window_start != start:
            raise StoreCorrupt(
                f"{self.where}: the window of conversation {conversation!r} begins at {info.window_start} in its row,"
                f" and at {start} in its snapshot. {_CURE}."
            )
        carried = [] if snapshot is None else sorted({v for v in snapshot.blocks if v < info.window_start})
        events = await self.read_versions(conversation, carried) if carried else []
        own = Part(row[0], conversation, info.base, info.version)
        parts = [own] if info.window_start > info.base else await self._lineage(conversation)
        pages = self._pages(parts, info.window_start - 1, info.version, _WINDOW_PAGE, statements.PAGE)
        async for owner, page in pages:
            events += [await decoded(owner, event_row(row), self.where) for row in page]
        if len(events) != len(carried) + max(0, info.version - info.window_start + 1):
            raise StoreCorrupt(
                f"{self.where}: events of the window of conversation {conversation!r} are missing. {_RESTORE}."
            )
        return StoredWindow(info, snapshot, events)

    async def load_waypoint(self, conversation: str, until: int, *, after: int = 0) -> Snapshot | None:
        """Read the newest snapshot of the past up to a version; see `EventStore.load_waypoint`."""
        rows = await self.rows(statements.NEAREST_WAYPOINT, key_of(conversation), min(after, _MOST), min(until, _MOST))
        if not rows:
            await self._key(conversation)
            return None
        owner, *row = rows[0]
        return read_waypoint(unescaped(owner), tuple(row), self.where)

    async def load_base(self, conversation: str, until: int | None = None) -> StoredWindow | None:
        """Read the newest base up to a version, with its events; see `Scavenging.load_base`."""
        info = await self.info(conversation)
        last = info.version if until is None else min(until, info.version)
        rows = await self.rows(statements.NEWEST_BASE, key_of(conversation), last)
        if not rows:
            return None
        ((body, stored),) = rows
        snapshot = decode_snapshot(conversation, body, stored, self.where)
        carried = [version for version in snapshot.blocks if version < snapshot.window_start]
        events = await self.read_versions(conversation, carried)
        after = snapshot.window_start - 1
        events += [event async for event in self.read(conversation, after=after, until=snapshot.version)]
        return StoredWindow(info, snapshot, events)

    async def info(self, conversation: str) -> ConversationInfo:
        """Return the facts of one conversation."""
        rows = await self.rows(statements.INFO, key_of(conversation))
        if not rows:
            raise await self._missing(conversation)
        return decode_info(info_row(rows[0]), self.where)

    async def conversations(self, *, page: int = 200) -> AsyncIterator[ConversationInfo]:
        """Iterate over all conversations, in the order in which they were opened."""
        after = 0
        while rows := await self.rows(statements.CONVERSATIONS, after, checked_page(page)):
            for row in rows:
                yield decode_info(info_row(row), self.where)
            after = rows[-1][0]

    async def read_all(
        self, *, after: int = 0, types: Collection[str] | None = None, page: int = 500
    ) -> AsyncIterator[Event]:
        """Iterate over the events of all conversations with ``position > after``, by position.

        It ends below the transactions that are still running, so that nothing appears behind the reader's back.
        """
        statement, listed = _choose(
            types, statements.PAGE_OF_ALL, statements.PAGE_OF_ALL_OF_TYPES, statements.PAGE_OF_ALL_OF_RARE_TYPES
        )
        await self._settled()
        after = min(after, _MOST)
        while rows := await self.rows(statement, after, checked_page(page), *listed):
            for row in rows:
                if types is not None and row[4] not in listed[0]:
                    raise self._misled(unescaped(row[0]), row[2])
                yield await decoded(unescaped(row[0]), event_row(row[1:12]), self.where)
            after = rows[-1][1]

    async def head(self) -> int:
        """Return the position of the last event of all below every running transaction; 0 in an empty store."""
        await self._settled()
        rows = await self.rows(statements.HEAD_POSITION)
        return int(rows[0][0]) if rows else 0

    async def horizon_lag(self) -> int:
        """Return the number of transactions behind the oldest one that runs, in any database of the server.

        Events above it are not in `read_all` yet; a transaction that stays open holds all readers of it up.
        """
        ((lag,),) = await self.rows(statements.HORIZON_LAG)
        return int(lag)

    async def values(self, hashes: Collection[str]) -> dict[str, str]:
        """Return the content-addressed values of these hashes that the store holds.

        Raises:
            StoreCorrupt: a value does not match its hash.
        """
        wanted = list(set(hashes))
        rows = await self.rows(statements.VALUES, wanted) if wanted else []
        return {hash_: decode_value(hash_, text, self.where) for hash_, text in rows}

    async def _settled(self) -> None:
        """Wait, not for long, until every reader of all conversations sees what this store has appended."""
        own, pause, waited = self._acknowledged, _FIRST_LOOK, 0.0
        while own > self._waited_for and not (await self.rows(statements.IS_SETTLED, own))[0][0]:
            if waited >= _PATIENCE:
                break
            await asyncio.sleep(pause)
            waited, pause = waited + pause, min(2 * pause, _LONGEST_LOOK)
        self._waited_for = max(self._waited_for, own)

    async def _lineage(self, conversation: str) -> list[Part]:
        """Return the logs that hold a conversation's versions, in order: its ancestors' and its own."""
        rows = await self.rows(statements.LINEAGE, key_of(conversation))
        if not rows:
            raise await self._missing(conversation)
        if rows[-1][2] or not _leads_to_parents(rows):
            raise StoreCorrupt(
                f"{self.where}: the log that conversation {conversation!r} was forked from is not the one that its row"
                f" leads to. {_CURE}."
            )
        return [Part(key, unescaped(id_), base, last) for key, id_, base, last, _ in reversed(rows)]

    async def _pages(
        self, parts: Sequence[Part], after: int, until: int | None, page: int, statement: str, *listed: Any
    ) -> AsyncIterator[tuple[str, list[Row]]]:
        """Read the rows of ``after < version <= until``, a page at a time, each page with its conversation."""
        for part in parts:
            version, last = max(after, part.base), part.last if until is None else min(until, part.last)
            while version < last:
                rows = await self.rows(statement, part.key, version, last, page, *listed)
                yield part.conversation, rows
                version = rows[-1][1] if len(rows) == page else last

    async def _check_all_between(self, parts: Sequence[Part], before: int, version: int) -> None:
        """Check that of all versions between two that were read one after the other every one was scavenged."""
        conversation, missing = parts[-1].conversation, version - before - 1
        if missing < 0:
            raise self._misled(conversation, version)
        if not missing:
            return
        for part in parts:
            bounds = (max(before, part.base) + 1, min(version - 1, part.last))
            ((scavenged,),) = await self.rows(statements.SCAVENGED_BETWEEN, part.key, *bounds)
            missing -= scavenged
        if missing:
            raise StoreCorrupt(
                f"{self.where}: of the versions {before + 1} to {version - 1} of conversation {conversation!r}"
                f" {missing} are missing. {_CURE}. {_RESTORE}."
            )

    async def _check_beyond(self, conversation: str, missing: Collection[int]) -> None:
        """Check that versions that were not found are none of the conversation's."""
        rows = await self.rows(statements.INFO, key_of(conversation))
        last = rows[0][2] if rows else 0
        if gone := [version for version in missing if version <= last]:
            raise StoreCorrupt(
                f"{self.where}: event {min(gone)} of conversation {conversation!r} is missing. {_CURE}. {_RESTORE}."
            )

    async def _check_unused(self, conversation: str, path: str) -> None:
        for part in await self._lineage(conversation) if await self._exists(conversation) else ():
            for (version,) in await self.rows(statements.AT_PATH, part.key, part.base, part.last, key_of(path)):
                raise StoreCorrupt(
                    f"{self.where}: event {version} of conversation {conversation!r} has the path {path!r}, and the"
                    f" index of paths does not lead to it. {_CURE}."
                )

    def _misled(self, conversation: str, version: int) -> StoreCorrupt:
        return StoreCorrupt(
            f"{self.where}: an index of the database leads to event {version} of conversation {conversation!r}, which"
            f" was not asked for. {_CURE}."
        )

    async def _exists(self, conversation: str) -> bool:
        return bool(await self.rows(statements.CONVERSATION_KEY, key_of(conversation)))

    async def _key(self, conversation: str) -> int:
        rows = await self.rows(statements.CONVERSATION_KEY, key_of(conversation))
        if not rows:
            raise await self._missing(conversation)
        return int(rows[0][0])

    async def _missing(self, conversation: str) -> StoreError:
        """Return the error for a conversation that is not there."""
        rows = await self.rows(statements.ERASED, key_of(conversation))
        if not rows:
            return ConversationNotFound(conversation)
        at, reason = rows[0]
        return ConversationErased(conversation, at, unescaped(reason))


def _leads_to_parents(rows: Sequence[Row]) -> bool:
    """Return whether the rows of a lineage, a conversation first, are those of the parents that each names."""
    for (*_, link), (_, id_, *_rest) in pairwise(rows):
        try:
            named = json.loads(link or "{}")
        except ValueError:
            return False
        if not isinstance(named, dict) or named.get("conversation") != unescaped(id_):
            return False
    return True


def _choose(types: Collection[str] | None, every: str, some: str, rare: str) -> tuple[str, tuple[list[str], ...]]:
    """Choose the statement for a set of types, with its parameter: rare types have indexes of their own."""
    if types is None:
        return every, ()
    listed = [escaped(type_) for type_ in set(types)]
    return some if statements.FREQUENT_TYPES.intersection(types) else rare, (listed,)
