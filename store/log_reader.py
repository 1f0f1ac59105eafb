"""The rules by which the log of any database is read, and how each answer is compared with what was asked.

Every page is a statement of its own; no cursor and no transaction is held between two pages. The log only grows, so a
conversation's row, read first, decides which events belong to the read. If an index leads to events that were not asked
for, or misses events that are there, that is reported as damage, and is never an answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from timeline.blocks import instant_text
from timeline.errors import ConversationErased, ConversationNotFound, HistoryUnavailable, StoreCorrupt
from timeline.events.chain import given
from timeline.ports import ChainedEvent, StoredWindow

from .aside import all_decoded, decoded
from .codec import decode_info, decode_snapshot, decode_value, decode_written
from .column_numbers import LARGEST
from .failures import checked_page, checked_types
from .log_rows import LogPart
from .waypoint_bodies import read_waypoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from timeline.errors import StoreError
    from timeline.events import Event
    from timeline.ports import ConversationInfo, Snapshot, WrittenEvent

    from .codec import Row
    from .log_rows import LogRows, Pages

_Place = TypeVar("_Place", int, tuple[str, str])
_ReadsPage: TypeAlias = "Callable[[_Place, int], Awaitable[list[Row]]]"
_ReadsRow: TypeAlias = "Callable[[str], Awaitable[Row | None]]"

_WINDOW_PAGE: Final = 2_000
_STEP: Final = 8
"""Where a page of events cannot be read, the next one is smaller by this factor."""
_TYPE, _CHECKSUM, _PATH = 4, 8, 9
"""Places in a row behind the conversation of its event."""
_ID, _UPDATED = 1, 7
"""Places in the row of a conversation."""
_AT_ONCE: Final = 200
"""Rows of conversations that are read between two turns of others: some 2 ms."""
_FRONT: Final = ("~", "")
"""A place before all others in the list of conversations by their changes: no time begins like this."""


class LogReader:
    """The reads of `EventStore`, over the rows of one database.

    Attributes:
        where: names the store in errors.
    """

    def __init__(self, rows: LogRows) -> None:
        self._rows = rows
        self.where: str = rows.where
        self._cure = f"`timeline verify --deep` lists all damage, `timeline repair` makes indexes anew. {rows.restore}."

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
        pages = self._rows.pages(checked_types(types))
        parts = await self._lineage(conversation)
        version = max(after, 0)
        async for owner, rows in self._pages(pages, parts, after, until, checked_page(page)):
            for row in rows:
                if types is None:
                    if row[1] != version + 1:
                        await self._check_all_between(parts, version, row[1])
                elif row[_TYPE - 1] not in types:
                    raise self._misled(conversation, row[1])
                version = row[1]
                yield await decoded(owner, row, self.where)
        if types is None:
            await self._check_to_the_end(parts, version, until)

    async def read_written(
        self, conversation: str, *, after: int = 0, until: int | None = None, page: int = 500
    ) -> AsyncIterator[WrittenEvent]:
        """Iterate over a conversation's events as they are written; see `Proofs.read_written`."""
        parts = await self._lineage(conversation)
        version = max(after, 0)
        async for owner, rows in self._pages(self._rows.page_as_written, parts, after, until, checked_page(page)):
            for row in rows:
                if row[1] != version + 1:
                    await self._check_all_between(parts, version, row[1])
                version = row[1]
                yield decode_written(owner, row, self.where)
        await self._check_to_the_end(parts, version, until)

    async def chained(self, conversation: str, *, after: int = 0, page: int = 2_000) -> AsyncIterator[ChainedEvent]:
        """Iterate over all events of a conversation as they are stored; see `Proofs.chained`."""
        for part in await self._lineage(conversation):
            first = max(part.base, after)
            async for rows in _up_to_damage(self._rows.chained, part, first, part.last, checked_page(page), place=0):
                for row in rows:
                    checksum, salt, c, link = row[-4:]
                    if _is_mistyped(row):
                        raise StoreCorrupt(
                            f"{self.where}: event {row[0]} of conversation {part.conversation!r} is damaged: a value"
                            f" of its row is of another type than its column. {self._cure}"
                        )
                    event = (*row[:-2], given(salt, checksum, c), link)
                    yield ChainedEvent(part.conversation, *event)

    async def chain_head(self, conversation: str) -> bytes:
        """Return the link of a conversation's newest event, as its row has it."""
        row = await self._rows.chain_head(conversation)
        if row is None:
            raise await self.missing(conversation)
        return bytes(row[0] or b"")

    async def read_versions(self, conversation: str, versions: Collection[int]) -> list[Event]:
        """Return the events of these versions that exist, by version."""
        wanted = sorted({version for version in versions if 0 < version <= LARGEST})
        found = await self._rows.at_versions(conversation, wanted)
        missing = set(wanted)
        for row in found:
            if row[2] not in missing:
                raise self._misled(conversation, row[2])
            missing.remove(row[2])
        if missing:
            await self._check_beyond(conversation, missing)
        rows = [row for row in found if row[_CHECKSUM]]  # a scavenged event has none
        rows.sort(key=lambda row: row[2])
        return [await decoded(owner, tuple(row), self.where) for owner, *row in rows]

    async def find(self, conversation: str, path: str) -> Event | None:
        """Return the event that appended the block at a path, or None."""
        rows = await self._rows.at_path(conversation, path)
        if not rows:
            # No block has the path, which the caller will report: first make sure that the index of paths is sound.
            await self._check_unused(conversation, path)
            return None
        owner, *row = rows[0]
        if not rows[0][_CHECKSUM]:
            info = await self.info(conversation)
            raise HistoryUnavailable(conversation, row[1], info.first_version, info.version, scavenged=True)
        if rows[0][_PATH] != path:
            raise self._misled(conversation, row[1])
        return await decoded(owner, tuple(row), self.where)

    async def paths_taken(self, conversation: str, stems: Collection[str]) -> set[str]:
        """Return all paths in use that begin with one of the stems."""
        begins = tuple(stems)
        return {path for path in await self._rows.paths_beginning(conversation, stems) if path.startswith(begins)}

    async def known_ids(self, conversation: str, ids: Collection[UUID]) -> set[UUID]:
        """Return the given event ids that the conversation holds."""
        wanted = {str(id_): id_ for id_ in ids}
        return {wanted[id_] for id_ in await self._rows.known_ids(conversation, list(wanted))}

    async def load_window(self, conversation: str) -> StoredWindow:
        """Read the state that a running agent needs; see `EventStore.load_window`.

        Raises:
            StoreCorrupt: an event of the window is damaged or missing.
        """
        reads = self._rows.whole.info_and_snapshot, self._rows.bare.info_and_snapshot
        found = await _or_bare(*reads, conversation)
        if found is None:
            raise await self.missing(conversation)
        *row, body, stored = found
        info = decode_info(tuple(row), self.where)
        snapshot = None if body is None else decode_snapshot(conversation, body, stored, self.where)
        start = 1 if snapshot is None else snapshot.window_start
        if info.window_start != start:
            raise StoreCorrupt(
                f"{self.where}: the window of conversation {conversation!r} begins at {info.window_start} in its row,"
                f" and at {start} in its snapshot. {self._cure}"
            )
        if snapshot is not None and snapshot.is_outdated:
            snapshot, start = None, 1
        carried = [] if snapshot is None else sorted({v for v in snapshot.blocks if v < start})
        events = await self.read_versions(conversation, carried) if carried else []
        own = LogPart(row[0], conversation, info.base, info.version)
        parts = [own] if start > info.base else await self._lineage(conversation)
        async for owner, page in self._pages(self._rows.pages(None), parts, start - 1, info.version, _WINDOW_PAGE):
            events += await all_decoded(owner, page, self.where)
        if len(events) != len(carried) + max(0, info.version - start + 1):
            again = await _or_bare(*reads, conversation)
            if again is None or again[-2] != body:
                return await self.load_window(conversation)  # the window moved on, and what it left was removed
            raise StoreCorrupt(
                f"{self.where}: events of the window of conversation {conversation!r} are missing."
                f" {self._rows.restore}."
            )
        return StoredWindow(info, snapshot, events)

    async def load_waypoint(self, conversation: str, until: int, *, after: int = 0) -> Snapshot | None:
        """Read the newest snapshot of the past up to a version; see `EventStore.load_waypoint`."""
        found = await self._rows.waypoint(conversation, min(after, LARGEST), min(until, LARGEST))
        if found is None:
            await self.key(conversation)
            return None
        owner, *row = found
        return read_waypoint(owner, tuple(row), self.where)

    async def waypoints(self, conversation: str) -> list[int]:
        """Return the versions of a conversation's own snapshots of the past, rising."""
        return await self._rows.waypoint_versions(await self.key(conversation))

    async def load_base(self, conversation: str, until: int | None = None) -> StoredWindow | None:
        """Read the newest base up to a version, with its events; see `Scavenging.load_base`."""
        info = await self.info(conversation)
        found = await self._rows.base(conversation, info.version if until is None else min(until, info.version))
        if found is None:
            return None
        body, stored = found
        snapshot = decode_snapshot(conversation, body, stored, self.where)
        carried = [version for version in snapshot.blocks if version < snapshot.window_start]
        events = await self.read_versions(conversation, carried)
        after = snapshot.window_start - 1
        events += [event async for event in self.read(conversation, after=after, until=snapshot.version)]
        return StoredWindow(info, snapshot, events)

    async def scavenged(self, conversation: str) -> dict[str, int]:
        """Return how many of a conversation's events were removed, by type."""
        counts: Counter[str] = Counter()
        for part in await self._lineage(conversation):
            counts.update(dict(await self._rows.scavenged_types(part)))
        return dict(counts)

    async def info(self, conversation: str) -> ConversationInfo:
        """Return the facts of one conversation; without its compactions where the events that say them do not read."""
        row = await _or_bare(self._rows.whole.info, self._rows.bare.info, conversation)
        if row is None:
            raise await self.missing(conversation)
        return decode_info(row, self.where)

    async def conversations(self, *, page: int = 1_000) -> AsyncIterator[ConversationInfo]:
        """Iterate over all conversations, in the order in which they were opened.

        Raises:
            StoreCorrupt: a row is damaged, or the events that say when a conversation was compacted; all others were
                yielded, and so was one of such events, without its compactions.
        """
        after, damaged = 0, list[StoreCorrupt]()
        reads = self._rows.whole.conversations, self._rows.bare.conversations
        while rows := await self._listed(*reads, after, checked_page(page), damaged):
            async for info in self._infos(rows, damaged):
                yield info
            after = rows[-1][0]
        if damaged:
            raise damaged[0]

    async def recent_conversations(
        self, *, before: tuple[datetime, str] | None = None, page: int = 1_000
    ) -> AsyncIterator[ConversationInfo]:
        """Iterate over conversations, the one that changed last first; see `EventStore.recent_conversations`.

        Raises:
            StoreCorrupt: a row is damaged, or the events that say when a conversation was compacted; all others were
                yielded, and so was one of such events, without its compactions.
        """
        place, damaged = _FRONT if before is None else (instant_text(before[0]), before[1]), list[StoreCorrupt]()
        reads = self._rows.whole.recent_conversations, self._rows.bare.recent_conversations
        while rows := await self._listed(*reads, place, checked_page(page), damaged):
            async for info in self._infos(rows, damaged):
                yield info
            place = rows[-1][_UPDATED], rows[-1][_ID]
        if damaged:
            raise damaged[0]

    async def conversation_count(self) -> int:
        """Return how many conversations the store holds."""
        return await self._rows.conversation_count()

    async def check_listed(self) -> None:
        """Check that each conversation of which there are events is listed.

        Raises:
            StoreCorrupt: one is not, or that cannot be found out.
        """
        if count := await self._rows.count_unlisted():
            raise StoreCorrupt(
                f"{self.where}: there are events of conversations whose rows are gone: {count} of them are not listed."
                f" {self._rows.restore}."
            )

    async def _listed(
        self,
        read: _ReadsPage[_Place],
        read_bare: _ReadsPage[_Place],
        place: _Place,
        most: int,
        damaged: list[StoreCorrupt],
    ) -> list[Row]:
        """Return a page of rows. A conversation is listed even if the events of its compactions are damaged."""
        try:
            return await read(place, most)
        except StoreCorrupt:
            rows = await read_bare(place, most)
        return [await self._with_compactions(row, damaged) for row in rows]

    async def _with_compactions(self, row: Row, damaged: list[StoreCorrupt]) -> Row:
        try:
            return await self._rows.whole.info(row[_ID]) or row  # it may be erased by now
        except StoreCorrupt as error:
            what = f"the events that say when conversation {row[_ID]!r} was compacted do not read"
            damaged.append(StoreCorrupt(f"{self.where}: {what}. {self._cure}"))
            damaged[-1].__cause__ = error
            return row

    async def _infos(self, rows: Iterable[Row], damaged: list[StoreCorrupt]) -> AsyncIterator[ConversationInfo]:
        """Iterate over the conversations of rows, with turns for other tasks; ``damaged`` collects the damaged rows."""
        for number, row in enumerate(rows, 1):
            try:
                info = decode_info(row, self.where)
            except StoreCorrupt as error:
                damaged.append(error)
            else:
                yield info
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def read_all(
        self, *, after: int = 0, types: Collection[str] | None = None, page: int = 500
    ) -> AsyncIterator[Event]:
        """Iterate over the events of all conversations with ``position > after``, by position."""
        read, after = self._rows.pages_of_all(checked_types(types)), max(min(after, LARGEST), -LARGEST)
        await self.settled()
        while rows := await read(after, checked_page(page)):
            for conversation, *row in rows:
                if types is not None and row[_TYPE - 1] not in types:
                    raise self._misled(conversation, row[1])
                yield await decoded(conversation, tuple(row), self.where)
            after = rows[-1][1]

    async def head(self) -> int:
        """Return the position of the store's last event; see `EventStore.head`."""
        await self.settled()
        return await self._rows.head()

    async def settled(self) -> None:
        """Wait, not for long, until a read of all conversations sees what this store has appended."""
        await self._rows.settled()

    async def values(self, hashes: Collection[str]) -> dict[str, str]:
        """Return the content-addressed values of these hashes that the store holds.

        Raises:
            StoreCorrupt: a text does not have its hash.
        """
        rows = await self._rows.values(list(set(hashes)))
        if unasked := {hash_ for hash_, _ in rows}.difference(hashes):
            raise StoreCorrupt(
                f"{self.where}: an index of the database leads to the value {min(unasked)}, which was not asked for."
                f" {self._cure}"
            )
        return {hash_: decode_value(hash_, text, self.where) for hash_, text in rows}

    async def key(self, conversation: str) -> int:
        """Return the key of a conversation's row.

        Raises:
            ConversationNotFound, ConversationErased: it is not there.
        """
        key = await self._rows.key(conversation)
        if key is None:
            raise await self.missing(conversation)
        return key

    async def missing(self, conversation: str) -> StoreError:
        """Return the error for a conversation that is not there."""
        erased = await self._rows.erased(conversation)
        return ConversationNotFound(conversation) if erased is None else ConversationErased(conversation, *erased)

    async def _lineage(self, conversation: str) -> list[LogPart]:
        """Return the logs that hold a conversation's versions, in order: its ancestors' and its own."""
        parts = await self._rows.lineage(conversation)
        if not parts:
            raise await self.missing(conversation)
        if parts[-1].base:
            raise StoreCorrupt(
                f"{self.where}: the log that conversation {conversation!r} was forked from is not the one that its row"
                f" leads to. {self._cure}"
            )
        return parts[::-1]

    async def _pages(
        self, read: Pages, parts: Sequence[LogPart], after: int, until: int | None, most: int
    ) -> AsyncIterator[tuple[str, list[Row]]]:
        """Read the rows of ``after < version <= until``, a page at a time, each page with its conversation."""
        for part in parts:
            last = part.last if until is None else min(until, part.last)
            async for rows in _up_to_damage(read, part, max(after, part.base), last, most):
                yield part.conversation, rows

    async def _check_to_the_end(self, parts: Sequence[LogPart], version: int, until: int | None) -> None:
        last = parts[-1].last if until is None else min(until, parts[-1].last)
        await self._check_all_between(parts, version, max(version, last) + 1)

    async def _check_all_between(self, parts: Sequence[LogPart], before: int, version: int) -> None:
        """Check that every version between two that were read one after the other was scavenged."""
        conversation, missing = parts[-1].conversation, version - before - 1
        if missing < 0:
            raise self._misled(conversation, version)
        if not missing:
            return
        for part in parts:
            first, last = max(before, part.base) + 1, min(version - 1, part.last)
            missing -= await self._rows.count_scavenged(part, first, last)
        if missing:
            await self.key(conversation)  # it may have been erased meanwhile
            raise StoreCorrupt(
                f"{self.where}: of the versions {before + 1} to {version - 1} of conversation {conversation!r}"
                f" {missing} are missing. {self._cure}"
            )

    async def _check_beyond(self, conversation: str, missing: Collection[int]) -> None:
        """Check that versions that were not found did not exist at the time of the read.

        Versions that were appended since are found now, and a conversation that was erased since has none.
        """
        row = await self._rows.whole.info(conversation)
        last = 0 if row is None else row[2]
        if not (held := [version for version in missing if version <= last]):
            return
        gone = set(held).difference(row[2] for row in await self._rows.at_versions(conversation, held))
        if gone and await self._rows.key(conversation) is not None:
            raise StoreCorrupt(
                f"{self.where}: event {min(gone)} of conversation {conversation!r} is missing. {self._cure}"
            )

    async def _check_unused(self, conversation: str, path: str) -> None:
        """Check that no event has a path that the index did not find, except one that was appended since."""
        for part in () if await self._rows.key(conversation) is None else await self._lineage(conversation):
            version = await self._rows.walked_to(part, path)
            if version is not None and not await self._rows.at_path(conversation, path):
                raise StoreCorrupt(
                    f"{self.where}: event {version} of conversation {conversation!r} has the path {path!r}, and the"
                    f" index of paths does not lead to it. {self._cure}"
                )

    def _misled(self, conversation: str, version: int) -> StoreCorrupt:
        return StoreCorrupt(
            f"{self.where}: an index of the database leads to event {version} of conversation {conversation!r}, which"
            f" was not asked for. {self._cure}"
        )


def _is_mistyped(row: Row) -> bool:
    """Return whether a row of the chain holds bytes as a text, or a text as one of its three proofs."""
    return any(isinstance(each, bytes) for each in row[:-3]) or any(isinstance(each, str) for each in row[-3:])


async def _or_bare(read: _ReadsRow, read_bare: _ReadsRow, conversation: str) -> Row | None:
    """Return a conversation's row; without its compactions where the events that say them do not read.

    An agent needs only its window, so damage in events that were compacted long ago must not stop it.
    """
    try:
        return await read(conversation)
    except StoreCorrupt:
        return await read_bare(conversation)


async def _up_to_damage(
    read: Pages, part: LogPart, after: int, last: int, most: int, *, place: int = 1
) -> AsyncIterator[list[Row]]:
    """Read the rows of ``after < version <= last``, a page at a time; ``place`` is that of the version in a row.

    A page of rows is read whole or not at all. Where it is not, smaller ones give what lies before the damage.
    """
    version = after
    while version < last:
        try:
            rows = await read(part, version, last, most)
        except StoreCorrupt:
            if most == 1:
                raise
            most = max(1, most // _STEP)
            continue
        yield rows
        version = rows[-1][place] if len(rows) == most else last
