"""The SQLite store: one thread writes, an aiosqlite connection reads; in WAL mode neither waits for the other.

Every read is one statement whose rows are all fetched before the first is returned: no lock or cursor is ever held
between two pages. The log only grows, so a conversation's row, read first, decides which events belong to the read.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import warnings
from collections import Counter
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar, get_args

from timeline.blocks import instant_text
from timeline.errors import (
    ConversationErased,
    ConversationNotFound,
    HistoryUnavailable,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreMoved,
    StoreReadOnly,
)
from timeline.events.chain import given
from timeline.facts.extracting import FORM
from timeline.ports import (
    Appended,
    ChainedEvent,
    ConversationInfo,
    Expected,
    Finding,
    Home,
    Rehearsal,
    Removal,
    Snapshot,
    StoredWindow,
    WrittenEvent,
)
from timeline.queries import FactReach

from ..aside import decoded
from ..codec import (
    NO_VALUES,
    decode_info,
    decode_snapshot,
    decode_value,
    decode_written,
    encode,
    encode_snapshot,
    is_long,
)
from ..erasures import check_forks_choice, erasure_report
from ..failures import (
    DRIVER_ERRORS,
    RESTORE,
    CommitFailed,
    append_uncertain,
    checked_page,
    closed,
    moved,
    reading_only,
    store_error,
)
from ..queries import QueryMixin
from ..settings import RETENTION
from ..waypoint_bodies import read_waypoint
from . import statements, waypoints
from .appending import append_nothing
from .carrying import Mended, batches
from .carrying import mended as mended_copy
from .connection import check_not_inherited, know_packed
from .erasing import erase
from .facts import SLICE as FACTS_SLICE
from .facts import SQLiteFacts
from .facts import catch_up as catch_up_facts
from .files import Durability, advice, connect_beside, connect_writer, exists, started
from .holding import log
from .identity import Place
from .mending import mend
from .reading import open_alone, open_beside
from .removing import rehearse, remove, remove_values, replace_snapshot, set_retention, shrink, take_lease
from .rewriting import rewrite
from .search import SLICE, SQLiteQuestions, catch_up, cut_slice, enter_slice
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from concurrent.futures import Future
    from os import PathLike
    from types import TracebackType
    from uuid import UUID

    import aiosqlite

    from timeline.events import Covers, Event, NewEvent
    from timeline.events.chain import Seal
    from timeline.events.other_payloads import Retention
    from timeline.ports import ErasureReport, ForksOnErase, Rewriting
    from timeline.queries import FactRecord, Found, StoredDigest, StoredFact

    from ..codec import Row
    from ..digests import DigestFilter
    from ..facts import FactFilter
    from ..search.scanning import SearchFilter
    from ..search.words import Query

T = TypeVar("T")

_LAST: Final = 2**63 - 1
_WINDOW_PAGE: Final = 2_000
_CURE: Final = f"`timeline verify --deep` lists all damage, `timeline repair` makes indexes anew. {RESTORE}."
_PATH: Final = 9
_CHECKSUM: Final = 8
"""Place of the checksum in a row behind the conversation of its event."""
_REMOVED: Final = 512
"""Characters that removing one event writes, by estimate."""
_BATCH: Final = 256 * 1024
"""Characters that a batch of a repair writes, by estimate."""
_COPIES: Final = 20
"""Copies that a repair makes at most, where others rewrite older events while it works."""


def _is_mistyped(row: Sequence[object]) -> bool:
    """Return whether a row of the chain holds bytes as a text, or a text as one of its three proofs."""
    return any(isinstance(each, bytes) for each in row[:-3]) or any(isinstance(each, str) for each in row[-3:])


class _Part(NamedTuple):
    """The versions of a conversation that one log holds, its own or an ancestor's: ``base < version <= last``."""

    key: int
    conversation: str
    base: int
    last: int


class SQLiteStore(QueryMixin):
    """An `EventStore` in one SQLite file. Open it with `SQLiteStore.open` or `timeline.open_store`.

    Attributes:
        file: the database.
        advice: warnings about this store and the SQLite library in use; mostly empty.
    """

    def __init__(  # noqa: PLR0917 - made by `open` alone
        self,
        file: Path,
        writer: Writer | None,
        reader: aiosqlite.Connection,
        place: Place,
        busy_timeout: float,
        advice: list[str],
    ) -> None:
        self.file = file
        self.advice = advice
        self._home = Home(f"{file}: the store")
        self._writer = writer
        self._reader = reader
        self._place = place
        self._busy_timeout = busy_timeout
        self._indexing = asyncio.Lock()
        self._indexer: Writer | None = None
        """Indexes much text at once, on a connection of its own, while a search waits for it."""
        self._moved: str | None = None
        """The error of a store whose file was swapped while it was open."""
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        path: str | PathLike[str],
        *,
        durability: Durability = "full",
        readonly: bool = False,
        busy_timeout: float = 5.0,
    ) -> Self:
        """Open a store; a missing or empty file becomes a new one.

        A file that may not be written to can still be read: its appends raise `StoreReadOnly`. SQLite needs two files
        beside a database that is read, ``-wal`` and ``-shm``; the last connection to close removes them. They stay, and
        do no harm, where that connection may not write, and where a writer that was killed, or is still open, left
        events in them: `readonly` does not move these into the database.

        Args:
            path: the database file.
            durability: ``full`` survives a power loss; ``normal`` survives a killed process and is faster.
            readonly: do not write, and do not create the file.
            busy_timeout: seconds to wait for another process that is writing.

        Raises:
            NotAStore: the file is not a store; it was not changed.
            StoreTooNew: a later version of this library wrote it.
            StoreCorrupt: the file is damaged.
            StoreReadOnly: the file does not exist, and may not be created.
            StoreMoved: the file was swapped while it was being opened.
            StoreLocked: the turn to open it did not come.
            ForkedProcess: the process that this one was forked from has it open.
            StoreError: the path is a folder, or in a missing folder, or cannot be read.
        """
        file = Path(path)
        if durability not in get_args(Durability):
            raise StoreError(f"{file}: durability is 'full' or 'normal', not {durability!r}.")
        check_not_inherited(file)
        known = advice()
        writer = None
        if not readonly:
            try:
                writer = await started(Writer(partial(connect_writer, file, durability, busy_timeout), str(file)))
            except StoreReadOnly as refusal:
                if not exists(file, readonly=False):
                    raise
                known.append(str(refusal))
        try:
            place = Place(file)
            if writer is None:
                reader = await open_alone(file, busy_timeout)
            else:
                reader = await open_beside(file, busy_timeout, writer.opened.result())
        except BaseException:
            if writer is not None:
                writer.stop()
            raise
        for advised in known:
            _advise_once(advised)
        return cls(file, writer, reader, place, busy_timeout, known)

    async def append(
        self,
        conversation: str,
        events: Sequence[NewEvent],
        *,
        expected: int | Expected = Expected.ANY,
        values: Mapping[str, str] = NO_VALUES,
        snapshot: Snapshot | None = None,
        seals: Sequence[Seal] = (),
    ) -> Appended:
        """Append events at the end of a conversation, all of them or none; see `EventStore.append`.

        Appends that wait together share a transaction; each is accepted or refused for itself. An append that is
        cancelled while it waits for the writer, or for its turn, writes nothing; cancelled later, it is written whole.
        """
        self._check_open()
        work = partial(encode, conversation, events, expected, values, snapshot, seals)
        if is_long(events):
            batch = await asyncio.to_thread(work)
            self._check_open()
        else:
            batch = work()
        if self._writer is None:
            raise reading_only(self.file)
        if not batch.drafts:
            return await self._written(self._writer.submit(partial(append_nothing, conversation=conversation)))
        try:
            return await self._writer.append(batch)
        except DRIVER_ERRORS as error:
            raise store_error(error, self.file) from error
        except CommitFailed as error:
            again: dict[str, Any] = {"conversation": conversation, "events": events, "expected": expected}
            again |= {"values": values, "snapshot": snapshot}
            raise append_uncertain(error, self.file, again) from error
        except StoreMoved as error:
            await self._leave(error)
            raise

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
                elif row[3] not in types:
                    raise self._misled(conversation, row[1])
                version = row[1]
                yield await decoded(owner, row, str(self.file))
        if types is None:
            last = parts[-1].last if until is None else min(until, parts[-1].last)
            await self._check_all_between(parts, version, max(version, last) + 1)

    async def _check_all_between(self, parts: Sequence[_Part], before: int, version: int) -> None:
        """Check that of all versions between two that were read one after the other every one was scavenged."""
        conversation, missing = parts[-1].conversation, version - before - 1
        if missing < 0:
            raise self._misled(conversation, version)
        if not missing:
            return
        for part in parts:
            bounds = (max(before, part.base) + 1, min(version - 1, part.last))
            ((scavenged,),) = await self._rows(statements.SCAVENGED_BETWEEN, part.key, *bounds)
            missing -= scavenged
        if missing:
            raise StoreCorrupt(
                f"{self.file}: of the versions {before + 1} to {version - 1} of conversation {conversation!r} {missing}"
                f" are missing. {_CURE}"
            )

    async def read_versions(self, conversation: str, versions: Collection[int]) -> list[Event]:
        """Return the events of these versions that exist, by version."""
        wanted = sorted(set(versions))
        found = await self._rows(statements.BY_VERSION, conversation, json.dumps(wanted))
        missing = set(wanted)
        for row in found:
            if row[2] not in missing:
                raise self._misled(conversation, row[2])
            missing.remove(row[2])
        if missing:
            await self._check_beyond(conversation, missing)
        rows = [row for row in found if row[_CHECKSUM]]  # a scavenged event has none
        rows.sort(key=lambda row: row[2])
        return [await decoded(owner, tuple(row), str(self.file)) for owner, *row in rows]

    async def _check_beyond(self, conversation: str, missing: Collection[int]) -> None:
        """Check that versions that were not found are none of the conversation's."""
        rows = await self._rows(statements.INFO, conversation)
        last = rows[0][2] if rows else 0
        if gone := [version for version in missing if 1 <= version <= last]:
            raise StoreCorrupt(f"{self.file}: event {min(gone)} of conversation {conversation!r} is missing. {_CURE}")

    def _misled(self, conversation: str, version: int) -> StoreCorrupt:
        return StoreCorrupt(
            f"{self.file}: an index of the database leads to event {version} of conversation {conversation!r}, which"
            f" was not asked for. {_CURE}"
        )

    async def find(self, conversation: str, path: str) -> Event | None:
        """Return the event that appended the block at a path, or None."""
        rows = await self._rows(statements.BY_PATH, conversation, json.dumps([path]))
        if rows and not rows[0][_CHECKSUM]:
            info = await self.info(conversation)
            raise HistoryUnavailable(conversation, rows[0][2], info.first_version, info.version, scavenged=True)
        if rows:
            if rows[0][_PATH] != path:
                raise self._misled(conversation, rows[0][2])
            return await decoded(rows[0][0], rows[0][1:], str(self.file))
        # No block has the path, which is an error for whoever asked: time to make sure that its index is sound.
        await self._check_unused(conversation, path)
        return None

    async def _check_unused(self, conversation: str, path: str) -> None:
        for part in await self._lineage(conversation) if await self._rows(statements.INFO, conversation) else ():
            for (version,) in await self._rows(statements.AT_PATH, part.key, part.base, part.last, path):
                raise StoreCorrupt(
                    f"{self.file}: event {version} of conversation {conversation!r} has the path {path!r}, and the"
                    f" index of paths does not lead to it. {_CURE}"
                )

    async def paths_taken(self, conversation: str, stems: Collection[str]) -> set[str]:
        """Return all paths in use that begin with one of the stems."""
        ranges = json.dumps([statements.prefix_bounds(stem) for stem in set(stems)])
        return {path for (path,) in await self._rows(statements.PATHS_BETWEEN, conversation, ranges)}

    async def known_ids(self, conversation: str, ids: Collection[UUID]) -> set[UUID]:
        """Return the given event ids that the conversation holds."""
        wanted = {str(id_): id_ for id_ in ids}
        rows = await self._rows(statements.IDS_KNOWN, json.dumps(list(wanted)), conversation)
        return {wanted[id_] for (id_,) in rows}

    async def load_window(self, conversation: str) -> StoredWindow:
        """Read the state that a running agent needs; see `EventStore.load_window`.

        Raises:
            StoreCorrupt: an event of the window is damaged or missing.
        """
        rows = await self._rows(statements.INFO_AND_SNAPSHOT, conversation)
        if not rows:
            raise await self._missing(conversation)
        *row, body, stored = rows[0]
        info = decode_info(tuple(row), str(self.file))
        snapshot = None if body is None else decode_snapshot(conversation, body, stored, str(self.file))
        start = 1 if snapshot is None else snapshot.window_start
        if info.window_start != start:
            raise StoreCorrupt(
                f"{self.file}: the window of conversation {conversation!r} begins at {info.window_start} in its row,"
                f" and at {start} in its snapshot. {_CURE}"
            )
        carried = [] if snapshot is None else sorted({v for v in snapshot.blocks if v < info.window_start})
        events = await self.read_versions(conversation, carried) if carried else []
        own = _Part(row[0], conversation, info.base, info.version)
        parts = [own] if info.window_start > info.base else await self._lineage(conversation)
        async for owner, page in self._pages(parts, info.window_start - 1, info.version, _WINDOW_PAGE, statements.PAGE):
            events += [await decoded(owner, row, str(self.file)) for row in page]
        if len(events) != len(carried) + max(0, info.version - info.window_start + 1):
            raise StoreCorrupt(
                f"{self.file}: events of the window of conversation {conversation!r} are missing. {RESTORE}."
            )
        return StoredWindow(info, snapshot, events)

    async def info(self, conversation: str) -> ConversationInfo:
        """Return the facts of one conversation."""
        rows = await self._rows(statements.INFO, conversation)
        if not rows:
            raise await self._missing(conversation)
        return decode_info(rows[0], str(self.file))

    async def conversations(self, *, page: int = 200) -> AsyncIterator[ConversationInfo]:
        """Iterate over all conversations, in the order in which they were opened."""
        after = 0
        while rows := await self._rows(statements.CONVERSATIONS, after, checked_page(page)):
            for row in rows:
                yield decode_info(row, str(self.file))
            after = rows[-1][0]

    async def read_all(
        self, *, after: int = 0, types: Collection[str] | None = None, page: int = 500
    ) -> AsyncIterator[Event]:
        """Iterate over the events of all conversations with ``position > after``, by position."""
        statement, listed = _choose(
            types, statements.PAGE_OF_ALL, statements.PAGE_OF_ALL_OF_TYPES, statements.PAGE_OF_ALL_OF_RARE_TYPES
        )
        while rows := await self._rows(statement, min(after, _LAST), *listed, checked_page(page)):
            for conversation, *row in rows:
                yield await decoded(conversation, tuple(row), str(self.file))
            after = rows[-1][1]

    async def head(self) -> int:
        """Return the position of the store's last event."""
        [(position,)] = await self._rows(statements.HEAD_POSITION)
        return int(position)

    async def values(self, hashes: Collection[str]) -> dict[str, str]:
        """Return the content-addressed values of these hashes that the store holds.

        Raises:
            StoreCorrupt: a text does not have its hash.
        """
        rows = await self._rows(statements.VALUES, json.dumps(list(set(hashes))))
        if unasked := {key for key, _ in rows}.difference(hashes):
            raise StoreCorrupt(f"{self.file}: an index of the database leads to the value {min(unasked)}. {_CURE}")
        return {key: decode_value(key, text, str(self.file)) for key, text in rows}

    async def _digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        if conversation is not None:
            await self._key(conversation)
        async for digest in self._questions.digests(conversation, wanted, page):
            yield digest

    async def _search(
        self, query: Query, conversation: str | None, wanted: SearchFilter, page: int
    ) -> AsyncIterator[Found]:
        """Update the index where it may be written, then query it; events that it still lacks are scanned."""
        key = None if conversation is None else await self._key(conversation)
        if self._writer is not None:
            await self._catch_up(self._writer)
        async for found in self._questions.search(query, key, wanted, page):
            yield found

    async def _facts(
        self, conversations: Sequence[str] | None, wanted: FactFilter, page: int
    ) -> AsyncIterator[StoredFact]:
        await self._catch_up_facts()
        async for fact in self._known.facts(conversations, wanted, page):
            yield fact

    async def _fact_record(self, conversation: str, covers: Covers | None, most: int) -> FactRecord:
        await self._catch_up_facts()
        return await self._known.record(conversation, covers, most)

    async def fact_reach(self) -> FactReach:
        """Return how far the index of facts reaches; see `Queries.fact_reach`."""
        return FactReach(*await self._known.progress(), FORM)

    async def _catch_up_facts(self) -> None:
        """Bring the facts up to date where they may be written; what they still lack is read from the log."""
        if self._writer is None:
            return
        reached, last = await self._known.progress()
        try:
            while reached < last:
                reached = await self._written(self._writer.submit(partial(catch_up_facts, until=last), FACTS_SLICE))
        except (StoreReadOnly, StoreLocked, StoreFull) as refusal:
            log.info("facts are read from the log: %s", refusal)

    async def _catch_up(self, writer: Writer) -> None:
        """Index what was appended since the last search: a slice by the writer, what is more beside it."""
        indexed, last = await self._questions.progress()
        try:
            if indexed < last:
                indexed = await self._written(writer.submit(partial(catch_up, until=last), SLICE))
            if indexed < last:
                async with self._indexing:
                    await self._index_beside(writer.opened.result(), last)
        except (StoreReadOnly, StoreLocked, StoreFull) as refusal:
            log.info("the search goes on without its index: %s", refusal)

    async def _index_beside(self, name: str, until: int) -> None:
        """Index the events up to a position on a connection of its own: the writer waits for one slice at a time."""
        indexed, _ = await self._questions.progress()
        if indexed >= until:
            return
        indexer = Writer(partial(connect_beside, self._place.file, self._busy_timeout, name), f"{self.file}: search")
        self._indexer = indexer
        try:
            await started(indexer)
            while indexed < until:
                cut = await self._written(indexer.submit(partial(cut_slice, until=until)))
                indexed = await self._written(indexer.submit(partial(enter_slice, cut=cut), SLICE))
        finally:
            indexer.stop()
            await asyncio.wrap_future(indexer.stopped)
            self._indexer = None

    async def chain_head(self, conversation: str) -> bytes:
        """Return the link of a conversation's newest event, as its row has it."""
        rows = await self._rows(statements.CHAIN_HEAD, conversation)
        if not rows:
            raise ConversationNotFound(conversation)
        return bytes(rows[0][0] or b"")

    async def chained(self, conversation: str, *, after: int = 0, page: int = 2_000) -> AsyncIterator[ChainedEvent]:
        """Iterate over all events of a conversation as they are stored; see `Proofs.chained`."""
        parts = await self._lineage(conversation)
        for part in parts:
            version = max(part.base, after)
            while rows := await self._rows(statements.CHAINED, part.key, version, part.last, checked_page(page)):
                for row in rows:
                    checksum, salt, c, link = row[-4:]
                    if _is_mistyped(row):
                        raise StoreCorrupt(
                            f"{self.file}: event {row[0]} of conversation {part.conversation!r} is damaged: a value of"
                            f" its row is of another type than its column. {_CURE}"
                        )
                    event = (*row[:-2], given(salt, checksum, c), link)
                    yield ChainedEvent(part.conversation, *event)
                version = rows[-1][0]

    async def read_written(
        self, conversation: str, *, after: int = 0, until: int | None = None, page: int = 500
    ) -> AsyncIterator[WrittenEvent]:
        """Iterate over a conversation's events as they are written; see `Proofs.read_written`."""
        parts = await self._lineage(conversation)
        where, version = str(self.file), max(after, 0)
        async for owner, rows in self._pages(parts, after, until, checked_page(page), statements.PAGE_AS_WRITTEN):
            for row in rows:
                if row[1] != version + 1:
                    await self._check_all_between(parts, version, row[1])
                version = row[1]
                yield decode_written(owner, row, where)
        last = parts[-1].last if until is None else min(until, parts[-1].last)
        await self._check_all_between(parts, version, max(version, last) + 1)

    async def examine(self) -> list[Finding]:
        """Compare all that is derived from the log with the log, on a private copy; see `Proofs.examine`."""
        return await self._on_copy(partial(mend, where=str(self.file)))

    async def mend(self) -> list[Finding]:
        """Make anew what is derived from the log and differs from it, a batch at a time; see `Proofs.mend`.

        What is to be made anew is found out on a private copy. A batch takes some tens of milliseconds of the writer,
        but for an index of SQLite's own that is damaged, which is made anew in one go.
        """
        await self._do(_nothing)
        for _ in range(_COPIES):
            mended = await self._mended_copy()
            try:
                if await self._carried(mended):
                    return mended.found
            finally:
                await asyncio.to_thread(mended.close)
        raise StoreLocked(f"{self.file}: it was changed again and again while it was repaired. Repair it again.")

    async def _mended_copy(self) -> Mended:
        making = await self._making_copy(partial(mended_copy, where=str(self.file)))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(_close_copy)
            raise

    async def _carried(self, mended: Mended) -> bool:
        """Run the batches that make the store what its copy is; return whether the copy is still of the store."""
        every = batches(mended)
        batch = next(every, None)
        while batch is not None:
            reached = await self._do(partial(mended.run, batch), _BATCH)
            if reached is None:
                return False
            try:
                batch = every.send(reached)
            except StopIteration:
                batch = None
        return True

    async def replace_snapshot(
        self, conversation: str, snapshot: Snapshot | None, *, expected: int | None = None
    ) -> None:
        """Put a snapshot of the log in the place of the stored one; see `Proofs.replace_snapshot`."""
        draft = None if snapshot is None else encode_snapshot(snapshot)
        await self._do(partial(replace_snapshot, conversation=conversation, draft=draft, expected=expected))

    async def load_waypoint(self, conversation: str, until: int, *, after: int = 0) -> Snapshot | None:
        """Read the newest snapshot of the past up to a version; see `EventStore.load_waypoint`."""
        rows = await self._rows(statements.NEAREST_WAYPOINT, conversation, after, until)
        if not rows:
            await self._key(conversation)
            return None
        owner, *row = rows[0]
        return read_waypoint(owner, tuple(row), str(self.file))

    async def waypoints(self, conversation: str) -> list[int]:
        """Return the versions of a conversation's own snapshots of the past, rising."""
        rows = await self._rows(statements.WAYPOINT_VERSIONS, await self._key(conversation))
        return [version for (version,) in rows]

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
        gone = tuple(dropped)
        job = partial(waypoints.replace, conversation=conversation, drafts=drafts, gone=gone, expected=expected)
        await self._do(job)

    async def retention(self) -> Retention:
        """Return the setting for conversations that have none of their own; see `Scavenging.retention`."""
        rows = await self._rows(statements.SETTING, RETENTION)
        return "window" if rows and rows[0][0] == "window" else "keep"

    async def set_retention(self, retention: Retention) -> None:
        """Set what holds for conversations that have no setting of their own."""
        await self._do(partial(set_retention, value=retention))

    async def remove(self, conversation: str, *, after: int = 0, most: int = 1_000) -> Removal:
        """Remove at most ``most`` events behind version ``after``, in one transaction; see `Scavenging.remove`."""
        await self._catch_up_facts()
        job = partial(remove, conversation=conversation, after=after, most=most, where=str(self.file))
        return await self._do(job, most * _REMOVED)

    async def remove_values(self) -> tuple[int, int]:
        """Remove the content-addressed texts that no event and no snapshot names; return their number and bytes."""
        return await self._do(remove_values)

    async def shrink(self) -> tuple[int, int] | None:
        """Rewrite the file without what was removed; see `Scavenging.shrink`."""
        return await self._do(partial(shrink, where=str(self.file)))

    async def rehearse(self, conversations: Collection[str]) -> Rehearsal:
        """Return what removing would do, found out on a private copy; see `Scavenging.rehearse`.

        The copy is a temporary database of SQLite's own: a file without a name, which goes with its connection.
        """
        return await self._on_copy(partial(rehearse, conversations=conversations, where=str(self.file)))

    async def _on_copy(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work on a private copy of the database, which goes with it."""

        def work_and_close(copy: sqlite3.Connection) -> T:
            with closing(copy):
                return work(copy)

        return await asyncio.shield(await self._making_copy(work_and_close))

    async def _making_copy(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Task[T]:
        """Begin work on a private copy of the database; the work closes it, unless it fails or keeps the copy."""
        await self._rows(statements.STORE)  # the store is open, and its file in its place
        # Cancelling the caller does not reach the copy: it must not be closed under a thread that works on it.
        done_there = asyncio.create_task(self._done_on_copy(work))
        done_there.add_done_callback(lambda done: done.cancelled() or done.exception())
        return done_there

    async def _done_on_copy(self, work: Callable[[sqlite3.Connection], T]) -> T:
        copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        know_packed(copy)
        try:
            try:
                await self._reader.backup(copy)
                return await asyncio.to_thread(work, copy)
            except BaseException:
                copy.close()
                raise
        except DRIVER_ERRORS as error:
            raise store_error(error, self.file) from error

    async def forks(self, conversation: str) -> dict[str, int]:
        """Return the conversation's own forks, each with the last version that both share."""
        return dict(await self._rows(statements.FORKS, await self._key(conversation)))

    async def rewrite(
        self, parts: Sequence[Rewriting], *, values: Mapping[str, str] = NO_VALUES, dropped: Collection[str] = ()
    ) -> dict[str, int]:
        """Overwrite payloads and snapshots, and append redactions, in one transaction; see `Forgetting.rewrite`."""
        encoded = [(part, encode(part.conversation, part.events, part.expected, NO_VALUES, None)) for part in parts]
        size = sum(batch.size for _, batch in encoded) + _REMOVED * sum(len(part.payloads) for part in parts)
        job = partial(rewrite, parts=encoded, values=values, dropped=dropped, where=str(self.file))
        return await self._do(job, size)

    async def erase(
        self,
        conversation: str,
        *,
        forks: ForksOnErase = "refuse",
        reason: str = "",
        at: datetime | None = None,
    ) -> ErasureReport:
        """Erase a conversation, then rewrite the file without it; see `Forgetting.erase`."""
        check_forks_choice(forks)
        moment = instant_text(at or datetime.now(UTC))
        job = partial(erase, conversation=conversation, forks=forks, reason=reason, at=moment)
        done = await self._do(job, _REMOVED)
        try:
            await self.shrink()
        except (StoreLocked, StoreFull) as refusal:
            return erasure_report(done, physical=False, why_not=str(refusal))
        return erasure_report(done, physical=True)

    async def take_lease(self, runner: str, now: datetime, until: datetime) -> datetime | None:
        """Take, renew or give back the lease of scavenging; see `Scavenging.take_lease`."""
        return await self._do(partial(take_lease, runner=runner, now=now, until=until))

    async def scavenged(self, conversation: str) -> dict[str, int]:
        """Return how many of a conversation's events were removed, by type."""
        counts: Counter[str] = Counter()
        for part in await self._lineage(conversation):
            counts.update(dict(await self._rows(statements.COUNT_SCAVENGED, part.key, part.last)))
        return dict(counts)

    async def load_base(self, conversation: str, until: int | None = None) -> StoredWindow | None:
        """Read the newest base up to a version, with its events; see `Scavenging.load_base`."""
        info = await self.info(conversation)
        last = info.version if until is None else min(until, info.version)
        rows = await self._rows(statements.NEWEST_BASE, conversation, last)
        if not rows:
            return None
        ((body, stored),) = rows
        snapshot = decode_snapshot(conversation, body, stored, str(self.file))
        carried = [version for version in snapshot.blocks if version < snapshot.window_start]
        events = await self.read_versions(conversation, carried)
        after = snapshot.window_start - 1
        events += [event async for event in self.read(conversation, after=after, until=snapshot.version)]
        return StoredWindow(info, snapshot, events)

    async def _do(self, work: Callable[[sqlite3.Connection], T], size: int = 0) -> T:
        self._check_open()
        if self._writer is None:
            raise reading_only(self.file)
        return await self._written(self._writer.submit(work, size))

    async def aclose(self) -> None:
        """Finish pending writes, then close. A cancelled call continues to close; a second call waits for the end."""
        self._home.check()
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._closing is None and not self._home.forked:
            if self._writer is not None:
                self._writer.stop()
            warnings.warn(f"{self.file}: the store was not closed. Use `async with`.", ResourceWarning, 2, self)

    async def _close(self) -> None:
        if self._indexer is not None:
            self._indexer.stop()
            await asyncio.wrap_future(self._indexer.stopped)
        if self._writer is not None:
            # The writer leaves a swapped file first, while the reader still has it open: see `Held`.
            with suppress(StoreError):
                await self._written(self._writer.submit(_nothing))
        # Close the reader first: the last connection to close removes the write-ahead log.
        try:
            await self._reader.close()
        finally:
            if self._writer is not None:
                self._writer.stop()
                await asyncio.wrap_future(self._writer.stopped)

    def _check_open(self) -> None:
        self._home.check()
        if self._closing is not None:
            raise closed(self.file)

    async def _leave(self, error: StoreMoved) -> None:
        """Let go of a swapped file, so that it does not block a store that is opened in its place."""
        if self._moved is None:
            self._moved = str(error)
            await self._reader.close()

    async def _lineage(self, conversation: str) -> list[_Part]:
        """Return the logs that hold a conversation's versions, in order: its ancestors' and its own."""
        rows = await self._rows(statements.LINEAGE, conversation)
        if not rows:
            raise await self._missing(conversation)
        if rows[-1][2]:
            raise StoreCorrupt(
                f"{self.file}: the log that conversation {conversation!r} was forked from is not the one that its row "
                f"leads to. {_CURE}"
            )
        return [_Part(*row) for row in reversed(rows)]

    async def _pages(
        self, parts: Sequence[_Part], after: int, until: int | None, page: int, statement: str, *listed: str
    ) -> AsyncIterator[tuple[str, list[Row]]]:
        """Read the rows of ``after < version <= until``, a page at a time, each page with its conversation."""
        for part in parts:
            version, last = max(after, part.base), part.last if until is None else min(until, part.last)
            while version < last:
                rows = await self._rows(statement, part.key, version, last, *listed, page)
                yield part.conversation, rows
                version = rows[-1][1] if len(rows) == page else last

    @property
    def _questions(self) -> SQLiteQuestions:
        # Made when needed: kept, it would be a reference cycle, and a store left open could not warn when dropped.
        return SQLiteQuestions(self._fetched, str(self.file))

    @property
    def _known(self) -> SQLiteFacts:
        return SQLiteFacts(self._fetched)

    async def _key(self, conversation: str) -> int:
        rows = await self._rows(statements.CONVERSATION_KEY, conversation)
        if not rows:
            raise await self._missing(conversation)
        return int(rows[0][0])

    async def _missing(self, conversation: str) -> StoreError:
        """Return the error for a conversation that is not there."""
        rows = await self._rows(statements.ERASED, conversation)
        return ConversationErased(conversation, *rows[0]) if rows else ConversationNotFound(conversation)

    async def _written(self, job: Future[T]) -> T:
        try:
            return await asyncio.wrap_future(job)
        except DRIVER_ERRORS as error:
            raise store_error(error, self.file) from error
        except StoreMoved as error:
            await self._leave(error)
            raise

    async def _rows(self, statement: str, *parameters: Any) -> list[Row]:
        return await self._fetched(statement, parameters)

    async def _fetched(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[Row]:
        self._check_open()
        if self._moved is None and (change := self._place.change()):
            await self._leave(moved(self.file, change))
        if self._moved is not None:
            raise StoreMoved(self._moved)
        try:
            return [tuple(row) for row in await self._reader.execute_fetchall(statement, parameters)]
        except DRIVER_ERRORS as error:
            raise store_error(error, self.file) from error
        except UnicodeEncodeError:
            return []  # No database holds text that UTF-8 cannot encode.


def _choose(types: Collection[str] | None, every: str, some: str, rare: str) -> tuple[str, tuple[str, ...]]:
    """Choose the statement for a set of types, with its parameter: rare types have indexes of their own."""
    if types is None:
        return every, ()
    return some if statements.FREQUENT_TYPES.intersection(types) else rare, (json.dumps(list(set(types))),)


def _close_copy(made: asyncio.Task[Mended]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()


def _nothing(_: sqlite3.Connection) -> None:
    """Ask the writer only whether the file is still there."""


@cache
def _advise_once(advised: str) -> None:
    log.warning("%s", advised)
