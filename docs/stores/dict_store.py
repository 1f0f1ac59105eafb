"""The log of a store of your own, over a few dicts that stand for your database: `docs/stores.md` describes it.

It appends, repeats, reads, gives the record that a compaction puts behind its summary, and shares its database with
other stores. Forks, retention, erasure, queries and proofs are left out: `EventStore` names their methods, and further
parts of `StoreContract` test them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from timeline.blocks import ToolCall, ToolResult
from timeline.errors import ConversationNotFound, StoreClosed, StoreError
from timeline.events import appended_block
from timeline.events.chain import START
from timeline.facts.extracting import facts_named, facts_of_result
from timeline.facts.record import record_of
from timeline.frozen import sha256_hex
from timeline.ports import Appended, ChainedEvent, ConversationInfo, Expected, StoredWindow
from timeline.store import append_rules
from timeline.store.codec import NO_VALUES, Row, decode, decode_info, decode_snapshot, encode
from timeline.store.failures import checked_page
from timeline.store.sealing import seal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from timeline.events import Covers, Event, NewEvent
    from timeline.events.chain import Seal
    from timeline.facts.model import Fact
    from timeline.ports import Snapshot
    from timeline.queries import FactRecord
    from timeline.store.codec import Batch, SnapshotDraft

WHERE = "the store over a dict"
COMPACTION = "compaction.completed"


@dataclass
class Conversation:
    """One conversation: a row of one table, its rows of the table of events, and what indexes would find in them.

    `version`, `base`, `events`, `versions_of` and `taken` are what `append_rules` asks of a log's head.
    """

    id: str
    title: str
    parent: str | None
    created_at: str
    base: int = 0
    rows: list[Row] = field(default_factory=list)
    seals: list[tuple[bytes | None, bytes, bytes]] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    paths: dict[str, int] = field(default_factory=dict)
    snapshot: SnapshotDraft | None = None

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.rows)

    def events(self, first: int, last: int) -> Sequence[tuple[str, str, int]]:
        """Return id, checksum and position of some versions."""
        return [(row[2], row[7], row[0]) for row in self.rows[max(0, first - 1) : max(0, last)]]

    def versions_of(self, ids: Collection[str]) -> dict[str, int]:
        """Return the versions of those ids that the log holds."""
        return {id_: self.ids[id_] for id_ in ids if id_ in self.ids}

    def taken(self, paths: Collection[str]) -> set[str]:
        """Return the paths that are in use."""
        return {path for path in paths if path in self.paths}


@dataclass
class Database:
    """What your database would hold. Several stores may have it."""

    conversations: dict[str, Conversation] = field(default_factory=dict)
    events: list[tuple[str, Row]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)


class DictStore:
    """The log of `EventStore` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database: Database | None = database

    @property
    def _open(self) -> Database:
        if self._database is None:
            raise StoreClosed(f"{WHERE} is closed; open it again.")
        return self._database

    def _found(self, conversation: str) -> Conversation:
        if conversation not in self._open.conversations:
            raise ConversationNotFound(conversation)
        return self._open.conversations[conversation]

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
        """Append: encode, place, write. All between the first look and the last write is your transaction."""
        database = self._open
        batch = encode(conversation, events, expected, values, snapshot, seals)
        first = batch.drafts[0].at if batch.drafts else ""
        log = database.conversations.get(conversation) or Conversation(conversation, batch.title, batch.parent, first)
        if not batch.drafts:
            return Appended(log.version + 1, log.version, log.rows[-1][0] if log.rows else 0)
        if batch.fork is not None:
            raise StoreError(f"{WHERE} has no forks")
        after = append_rules.starting_version(batch, log)
        if after < log.version:
            return append_rules.repetition(batch, log, after)
        return append_rules.collision(batch, log) or self._write(database, log, batch)

    def _write(self, database: Database, log: Conversation, batch: Batch) -> Appended:
        first = log.version + 1
        sealed = seal(batch, log.version, log.seals[-1][2] if log.seals else START)
        placed = zip(batch.drafts, *sealed, strict=True)
        for version, (draft, checksum, salt, commitment, linked) in enumerate(placed, first):
            position = len(database.events) + 1
            id_, type_, schema_version, at, path, turn_id, tokens, payload = draft
            row = (position, version, id_, type_, schema_version, at, payload, checksum, path, turn_id, tokens)
            log.rows.append(row)
            log.seals.append((salt, commitment, linked))
            log.ids[id_] = version
            if path is not None:
                log.paths[path] = version
            database.events.append((log.id, row))
        log.snapshot = batch.snapshot or log.snapshot
        database.values.update(batch.values)
        database.conversations[log.id] = log
        return Appended(first, log.version, len(database.events))

    async def read(
        self,
        conversation: str,
        *,
        after: int = 0,
        until: int | None = None,
        types: Collection[str] | None = None,
        page: int = 500,
    ) -> AsyncIterator[Event]:
        """Iterate over a conversation, up to the version that it has when the reading begins."""
        log = self._found(conversation)
        last = log.version if until is None else min(until, log.version)
        rows = [row for row in log.rows[max(0, after) : max(0, last)] if types is None or row[3] in types]
        for row in self._paged(rows, page):
            yield decode(conversation, row, WHERE)

    def _paged(self, rows: Iterable[Row], page: int) -> Iterable[Row]:
        """Give the rows; between two pages others may append, or the store may be closed."""
        for number, row in enumerate(rows):
            if number % checked_page(page) == 0:
                _ = self._open
            yield row

    async def read_versions(self, conversation: str, versions: Collection[int]) -> list[Event]:
        """Return the events of these versions that exist."""
        log = self._open.conversations.get(conversation)
        rows = [] if log is None else [log.rows[v - 1] for v in sorted(set(versions)) if 1 <= v <= log.version]
        return [decode(conversation, row, WHERE) for row in rows]

    async def find(self, conversation: str, path: str) -> Event | None:
        """Return the event at a path."""
        log = self._open.conversations.get(conversation)
        version = None if log is None else log.paths.get(path)
        return None if log is None or version is None else decode(conversation, log.rows[version - 1], WHERE)

    async def paths_taken(self, conversation: str, stems: Collection[str]) -> set[str]:
        """Return the paths that begin with one of the stems."""
        log = self._open.conversations.get(conversation)
        return set() if log is None else {path for path in log.paths if path.startswith(tuple(stems))}

    async def known_ids(self, conversation: str, ids: Collection[UUID]) -> set[UUID]:
        """Return those of the ids that the log holds."""
        log = self._open.conversations.get(conversation)
        return set() if log is None else {id_ for id_ in ids if str(id_) in log.ids}

    async def load_window(self, conversation: str) -> StoredWindow:
        """Return the snapshot, the events that it carries, and all from the start of its window on."""
        log = self._found(conversation)
        draft, snapshot = log.snapshot, None
        if draft is not None:
            snapshot = decode_snapshot(log.id, draft.body, sha256_hex(draft.body), WHERE)
        start = 1 if snapshot is None else snapshot.window_start
        carried = set() if snapshot is None else {version for version in snapshot.blocks if version < start}
        rows = [row for row in log.rows if row[1] in carried or row[1] >= start]
        return StoredWindow(self._info(log), snapshot, [decode(log.id, row, WHERE) for row in rows])

    @staticmethod
    def _info(log: Conversation) -> ConversationInfo:
        compacted = [row[5] for row in log.rows if row[3] == COMPACTION]
        start = 1 if log.snapshot is None else log.snapshot.window_start
        place = (0, log.id, log.version, start, log.title, log.parent, log.created_at, log.rows[-1][5], 0, 1)
        return decode_info((*place, len(compacted), compacted[-1] if compacted else None), WHERE)

    async def info(self, conversation: str) -> ConversationInfo:
        """Return the facts about one conversation."""
        return self._info(self._found(conversation))

    async def conversations(self, *, page: int = 200) -> AsyncIterator[ConversationInfo]:
        """Iterate over all conversations, in the order in which they were opened."""
        for (log,) in self._paged([(log,) for log in self._open.conversations.values()], page):
            yield self._info(log)

    async def recent_conversations(
        self, *, before: tuple[datetime, str] | None = None, page: int = 1_000
    ) -> AsyncIterator[ConversationInfo]:
        """Iterate over conversations, the one that changed last first."""
        infos = [self._info(log) for log in self._open.conversations.values()]
        for info in sorted(infos, key=lambda info: (info.updated_at, info.id), reverse=True):
            if before is None or (info.updated_at, info.id) < before:
                checked_page(page)
                yield info

    async def conversation_count(self) -> int:
        """Return how many conversations there are."""
        return len(self._open.conversations)

    async def fact_record(self, conversation: str, *, covers: Covers | None = None, most: int = 200) -> FactRecord:
        """Return what was done and named, made anew from the whole log; a larger store keeps facts as rows."""
        calls: dict[str, tuple[int, ToolCall]] = {}
        facts: list[Fact] = []
        async for event in self.read(conversation, types=["block.appended"]):
            match appended_block(event.payload):
                case None:
                    continue
                case ToolCall() as block:
                    calls[block.path.removesuffix(".call")] = event.version, block
                case ToolResult() as block if block.path.removesuffix(".result") in calls:
                    version, call = calls[block.path.removesuffix(".result")]
                    facts += facts_of_result(call, version, block, event.version, event.at)
                case block:
                    pass
            facts += facts_named(block, event.version, event.at)
        return record_of([fact for fact in facts if covers is None or fact.version in covers], most)

    async def read_all(
        self, *, after: int = 0, types: Collection[str] | None = None, page: int = 500
    ) -> AsyncIterator[Event]:
        """Iterate over all events behind a position."""
        behind = itertools.islice(self._open.events, min(max(0, after), len(self._open.events)), None)
        for conversation, row in self._paged((pair for pair in behind if types is None or pair[1][3] in types), page):
            yield decode(conversation, row, WHERE)

    async def head(self) -> int:
        """Return the position of the last event."""
        return len(self._open.events)

    async def values(self, hashes: Collection[str]) -> dict[str, str]:
        """Return the values of these hashes."""
        return {key: self._open.values[key] for key in hashes if key in self._open.values}

    async def chain_head(self, conversation: str) -> bytes:
        """Return the link of the newest event."""
        return self._found(conversation).seals[-1][2]

    async def chained(self, conversation: str, *, after: int = 0, page: int = 2_000) -> AsyncIterator[ChainedEvent]:
        """Iterate over all events as the chain has them."""
        log = self._found(conversation)
        for row, (salt, commitment, linked) in self._paged(zip(log.rows[after:], log.seals[after:], strict=True), page):
            position, version, id_, type_, schema_version, at, _, checksum, path, _, _ = row
            yield ChainedEvent(
                log.id, version, position, id_, type_, schema_version, at, path, checksum, salt, commitment, linked
            )

    async def aclose(self) -> None:
        """Close the store; the database stays."""
        self._database = None
