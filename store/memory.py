"""The store in memory, for tests and for runs whose log is not kept.

It keeps encoded rows and reads them through the same codec as a database, so that a read proves the write;
and it places appends by the same rules.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from datetime import UTC, datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Self, TypeVar

from timeline.blocks import instant_text
from timeline.errors import (
    ConversationErased,
    ConversationNotFound,
    ForksRemain,
    HistoryUnavailable,
    UnderLegalHold,
    VersionConflict,
)
from timeline.events import appended_block
from timeline.events.encoding import checksum
from timeline.facts.extracting import FORM
from timeline.facts.record import merged, record_from
from timeline.home import Home
from timeline.ports import (
    KEPT_TYPES,
    Appended,
    ChainedEvent,
    ConversationInfo,
    Expected,
    Finding,
    Rehearsal,
    Removal,
    Snapshot,
    StoredWindow,
    WrittenEvent,
)
from timeline.queries import FactReach

from . import append_rules
from .codec import NO_VALUES, decode, decode_written, encode, encode_snapshot
from .erasures import Erasing, check_erasure, erasure_report
from .facts import Coverage, fact_of, stored_fact
from .failures import checked_page, checked_types, closed
from .late_writes import LateWrites
from .memory_log import WHERE, KnownFact, Linked, MemoryLog, reverted_in, snapshot_of
from .packing import packed_whole
from .queries import QueryMixin
from .removal import RemovalBounds, bounds, disowns, named_in
from .sealing import seal
from .search.scanning import Scan, redacted_version, text_of
from .search.snippets import found
from .settings import checked_retention

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
    from types import TracebackType
    from uuid import UUID

    from timeline.events import Covers, Event, NewEvent
    from timeline.events.chain import Seal
    from timeline.events.other_payloads import Retention
    from timeline.ports import ErasureReport, ForksOnErase, Rewriting
    from timeline.queries import FactRecord, Found, StoredDigest, StoredFact

    from .codec import Batch, Row
    from .digests import DigestFilter
    from .facts import FactFilter
    from .search.scanning import SearchFilter
    from .search.words import Query

T = TypeVar("T")

_GONE: Final = ("", (0, 0, "", "", 0, "", "", "", None, None, None))
"""What is left at the position of an event that was erased."""


class MemoryStore(QueryMixin):
    """An `EventStore` that ends with the process. Nothing in it awaits: a cancelled call was done, or never begun.

    It still belongs to one event loop at a time: two threads would corrupt it, and appends of a forked process would
    be lost with that process.
    """

    def __init__(self) -> None:
        self._home = Home("the store in memory")
        self.advice: list[str] = []
        self._logs: dict[str, MemoryLog] = {}
        self._order: list[MemoryLog] = []
        self._all: list[tuple[str, Row]] = []
        self._values: dict[str, str] = {}
        self._retention: Retention = "keep"
        self._lease: tuple[str, datetime] | None = None
        self._learned = 0
        """Position of the last event whose facts are known."""
        self._removed = 0
        """Bytes that were removed since the last `shrink`."""
        self._erased: dict[str, tuple[str, str]] = {}
        """The time and the reason of each erasure, by the conversation's id."""
        self._closed = False
        self.late_writes: LateWrites = LateWrites()
        """Writes that a close finishes first; see `FinishingStore`."""

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
        """Append events at the end of a conversation; see `EventStore.append`."""
        self._check_open()
        batch = encode(conversation, events, expected, values, snapshot, seals)
        self._check_not_erased(conversation)
        log = self._logs.get(conversation) or MemoryLog(conversation, batch.title, batch.parent, "", "")
        if not batch.drafts:
            return Appended(log.version + 1, log.version, log.rows[-1][0] if log.rows else 0)
        after = append_rules.starting_version(batch, log)
        if after < log.version:
            return append_rules.repetition(batch, log, after)
        if batch.fork is not None and conversation not in self._logs:
            self._check_not_erased(batch.fork.parent)
            log.parent, log.base = self._logs.get(batch.fork.parent), batch.fork.version
            append_rules.check_fork(batch.fork, 0 if log.parent is None else log.parent.version)
            log.first_version = max((row[1] for row in log.scavenged(log.base)), default=0) + 1
        if log.first_version > 1 and (batch.snapshot is not None or log.version == log.base):
            newest = max((row[1] for row in log.scavenged(log.version)), default=0)
            append_rules.check_snapshot(batch, log.first_version, log.version, newest)
        return append_rules.collision(batch, log) or self._write(batch, log)

    def _write(self, batch: Batch, log: MemoryLog) -> Appended:
        first = log.version + 1
        sealed = seal(batch, log.version, log.link_at(log.version))
        placed = zip(batch.drafts, *sealed, strict=True)
        for version, (draft, hashed, salt, c, new) in enumerate(placed, first):
            row = (len(self._all) + 1, version, *draft[:4], draft.payload, hashed, *draft[4:7])
            log.rows.append(row)
            log.links.append(Linked(salt, c, new))
            log.ids[draft.event_id] = version
            if draft.path is not None:
                log.paths[draft.path] = version
            if row[3] == "compaction.completed":
                log.compacted.append((version, row[5]))
            self._all.append((batch.conversation, row))
        log.created_at = log.created_at or batch.drafts[0].at
        log.updated_at = batch.drafts[-1].at
        for opening in batch.openings:
            if opening.opens(first) and not log.base:
                log.title, log.parent_link = opening.title, opening.parent
        if batch.snapshot is not None:
            log.snapshot, log.window_start = batch.snapshot, batch.snapshot.window_start
            log.waypoints[batch.snapshot.version] = packed_whole(batch.snapshot.body)
        self._values.update(batch.values)
        if batch.conversation not in self._logs:
            self._logs[batch.conversation] = log
            self._order.append(log)
        return Appended(first, log.version, len(self._all))

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
        checked_types(types)
        log = self._log(conversation)
        last = log.version if until is None else min(until, log.version)
        rows = (pair for pair in log.read(after, last) if types is None or pair[1][3] in types)
        for owner, row in self._paged(rows, page):
            yield decode(owner, row, WHERE)

    async def read_versions(self, conversation: str, versions: Collection[int]) -> list[Event]:
        """Return the events of these versions that exist, by version."""
        self._check_open()
        log = self._logs.get(conversation)
        found = [] if log is None else [pair for v in sorted(set(versions)) for pair in log.read(v - 1, v)]
        return [decode(owner, row, WHERE) for owner, row in found]

    async def find(self, conversation: str, path: str) -> Event | None:
        """Return the event that appended the block at a path, or None."""
        self._check_open()
        log = self._logs.get(conversation)
        found = None if log is None else log.at_path(path)
        if log is not None and found is not None and not found[1][7]:
            raise HistoryUnavailable(conversation, found[1][1], log.first_version, log.version, scavenged=True)
        return None if found is None else decode(*found, WHERE)

    async def paths_taken(self, conversation: str, stems: Collection[str]) -> set[str]:
        """Return all paths in use that begin with one of the stems."""
        self._check_open()
        log = self._logs.get(conversation)
        parts = () if log is None else log.lineage()
        in_use = (path for part, last in parts for path, version in part.paths.items() if version <= last)
        return {path for path in in_use if path.startswith(tuple(stems))}

    async def known_ids(self, conversation: str, ids: Collection[UUID]) -> set[UUID]:
        """Return the given event ids that the conversation holds."""
        self._check_open()
        log = self._logs.get(conversation)
        return set() if log is None else {id_ for id_ in ids if str(id_) in log.ids}

    async def load_window(self, conversation: str) -> StoredWindow:
        """Read the state that a running agent needs; see `EventStore.load_window`."""
        log = self._log(conversation)
        snapshot, start = snapshot_of(log, log.snapshot), log.window_start
        carried = () if snapshot is None else sorted({v for v in snapshot.blocks if v < start})
        rows = [pair for v in carried for pair in log.read(v - 1, v)] + list(log.read(start - 1, log.version))
        return StoredWindow(log.info(), snapshot, [decode(owner, row, WHERE) for owner, row in rows])

    async def info(self, conversation: str) -> ConversationInfo:
        """Return the facts of one conversation."""
        return self._log(conversation).info()

    async def conversations(self, *, page: int = 1_000) -> AsyncIterator[ConversationInfo]:
        """Iterate over all conversations, in the order in which they were opened."""
        for log in self._paged(iter(self._order), page):
            yield log.info()

    async def recent_conversations(
        self, *, before: tuple[datetime, str] | None = None, page: int = 1_000
    ) -> AsyncIterator[ConversationInfo]:
        """Iterate over conversations, the one that changed last first; see `EventStore.recent_conversations`."""
        place = None if before is None else (instant_text(before[0]), before[1])
        logs = sorted(self._order, key=_by_change, reverse=True)
        for log in self._paged((log for log in logs if place is None or _by_change(log) < place), page):
            yield log.info()

    async def conversation_count(self) -> int:
        """Return how many conversations the store holds."""
        self._check_open()
        return len(self._order)

    async def read_all(
        self, *, after: int = 0, types: Collection[str] | None = None, page: int = 500
    ) -> AsyncIterator[Event]:
        """Iterate over the events of all conversations with ``position > after``, by position."""
        checked_types(types)
        # A live iterator: events appended while it runs are read too, as from a database.
        rest = islice(self._all, min(max(0, after), len(self._all)), None)
        pairs = ((id_, row) for id_, row in rest if row[7] and (types is None or row[3] in types))
        for conversation, row in self._paged(pairs, page):
            yield decode(conversation, row, WHERE)

    async def head(self) -> int:
        """Return the position of the store's last event."""
        self._check_open()
        return len(self._all)

    async def values(self, hashes: Collection[str]) -> dict[str, str]:
        """Return the content-addressed values of these hashes that the store holds."""
        self._check_open()
        return {key: self._values[key] for key in hashes if key in self._values}

    async def _digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        logs = self._order if conversation is None else [self._log(conversation)]
        reverted_by = {log.id: reverted_in(log) for log in logs}
        rows = ((id_, row) for id_, row in self._all if row[3] == "compaction.completed" and id_ in reverted_by)
        for id_, row in self._paged(rows, page):
            digest = wanted.found(decode(id_, row, WHERE), reverted_by[id_].get(row[1]))
            if digest is not None:
                yield digest

    async def _facts(
        self, conversations: Sequence[str] | None, wanted: FactFilter, page: int
    ) -> AsyncIterator[StoredFact]:
        logs = self._order if conversations is None else [self._log(id_) for id_ in conversations]
        self._learn()
        shown: dict[tuple[int, int], tuple[bool, MemoryLog, MemoryLog, KnownFact]] = {}
        for log in logs:
            for owner, known in log.known():
                place = (known.row.position, known.row.number)
                # A fact that several conversations show is found under the one that holds it.
                if wanted.matches(known.row, known.at) and (place not in shown or owner is log):
                    shown[place] = (owner is log, log, owner, known)
        coverages: dict[str, Coverage] = {}
        for _, log, owner, known in self._paged((shown[place] for place in sorted(shown)), page):
            if log.id not in coverages:
                coverages[log.id] = log.coverage()
            covered = known.row.version in coverages[log.id]
            if wanted.covered in {None, covered}:
                yield stored_fact(known.row, owner.id, datetime.fromisoformat(known.at), known.path, covered=covered)

    async def _fact_record(self, conversation: str, covers: Covers | None, most: int) -> FactRecord:
        log = self._log(conversation)
        self._learn()
        asked = (known for _, known in log.known() if covers is None or known.row.version in covers)
        facts = (fact_of(known.row, datetime.fromisoformat(known.at), known.path) for known in asked)
        return record_from(merged(facts), most)

    async def fact_reach(self) -> FactReach:
        """Return how far facts are known; see `Queries.fact_reach`."""
        self._check_open()
        return FactReach(self._learned, len(self._all), FORM)

    def _learn(self) -> None:
        """Extract the facts of the events since the last query: a log without queries pays nothing for facts."""
        for id_, row in self._all[self._learned :]:
            if row[7]:
                event = decode(id_, row, WHERE)
                block = appended_block(event.payload)
                self._logs[id_].learn(event, "" if block is None else block.path)
        self._learned = len(self._all)

    async def _search(
        self, query: Query, conversation: str | None, wanted: SearchFilter, page: int
    ) -> AsyncIterator[Found]:
        self._check_open()
        if conversation is not None:
            self._log(conversation)
        scan = Scan(query, conversation, wanted)
        for id_, row in self._unredacted():
            if (read := text_of(row[6])) is not None:
                scan.add(row[0], id_, read, row[5])
        reverted_by: dict[str, dict[int, int]] = {}
        for hit in self._paged(iter(scan.best()), page):
            id_, row = self._all[hit.position - 1]
            if row[7]:  # it was neither scavenged nor erased since it was found
                if id_ not in reverted_by:
                    reverted_by[id_] = reverted_in(self._logs[id_])
                shown = found(decode(id_, row, WHERE), row[6], query, hit.rank, reverted_by[id_].get(row[1]))
                if shown is not None:
                    yield shown

    def _unredacted(self) -> Iterator[tuple[str, Row]]:
        redactions = ((id_, row) for id_, row in self._all if row[3] == "block.redacted")
        gone = {(id_, redacted_version(row[6])) for id_, row in redactions}
        return ((id_, row) for id_, row in self._all if row[7] and (id_, row[1]) not in gone)

    async def chain_head(self, conversation: str) -> bytes:
        """Return the link of a conversation's newest event."""
        log = self._log(conversation)
        return log.link_at(log.version)

    async def chained(self, conversation: str, *, after: int = 0, page: int = 2_000) -> AsyncIterator[ChainedEvent]:
        """Iterate over all events of a conversation as they are kept; see `Proofs.chained`."""
        log = self._log(conversation)
        own = (part.chained(log.version if part is log else last) for part, last in reversed(list(log.lineage())))
        for event in self._paged((event for event in chain.from_iterable(own) if event.version > after), page):
            yield event

    async def read_written(
        self, conversation: str, *, after: int = 0, until: int | None = None, page: int = 500
    ) -> AsyncIterator[WrittenEvent]:
        """Iterate over a conversation's events as they are kept; see `Proofs.read_written`."""
        log = self._log(conversation)
        last = log.version if until is None else min(until, log.version)
        for owner, row in self._paged(log.written(after, last), page):
            yield decode_written(owner, row, WHERE)

    async def check_listed(self) -> None:
        """Do nothing: the list is made from the logs themselves; see `Proofs.check_listed`."""
        self._check_open()

    async def examine(self) -> list[Finding]:
        """Return nothing: all that is derived is made from the log when it is asked for."""
        self._check_open()
        return []

    async def mend(self) -> list[Finding]:
        """Return nothing, as `examine` does."""
        return await self.examine()

    async def replace_snapshot(
        self, conversation: str, snapshot: Snapshot | None, *, expected: int | None = None
    ) -> None:
        """Put a snapshot in the place of the kept one; see `Proofs.replace_snapshot`."""
        log = self._log(conversation)
        if expected not in {None, log.version}:
            raise VersionConflict(conversation, expected, log.version)
        log.snapshot = None if snapshot is None else encode_snapshot(snapshot)
        log.window_start = 1 if snapshot is None else snapshot.window_start

    async def load_waypoint(self, conversation: str, until: int, *, after: int = 0) -> Snapshot | None:
        """Read the newest snapshot of the past up to a version; see `EventStore.load_waypoint`."""
        log = self._log(conversation)
        near = ((v, part) for part, last in log.lineage() for v in part.waypoints if after < v <= min(last, until))
        version, part = max(near, key=lambda found: found[0], default=(0, log))
        return part.waypoint(version) if version else None

    async def waypoints(self, conversation: str) -> list[int]:
        """Return the versions of a conversation's own snapshots of the past, rising."""
        return sorted(self._log(conversation).waypoints)

    async def replace_waypoints(
        self,
        conversation: str,
        snapshots: Sequence[Snapshot],
        *,
        dropped: Collection[int] = (),
        expected: int | None = None,
    ) -> None:
        """Keep snapshots of the past in the places of others; see `Proofs.replace_waypoints`."""
        log = self._log(conversation)
        if expected not in {None, log.version}:
            raise VersionConflict(conversation, expected, log.version)
        for version in dropped:
            log.waypoints.pop(version, None)
        log.waypoints |= {one.version: packed_whole(encode_snapshot(one).body) for one in snapshots}

    async def retention(self) -> Retention:
        """Return the setting for conversations that have none of their own; see `Scavenging.retention`."""
        self._check_open()
        return self._retention

    async def set_retention(self, retention: Retention) -> None:
        """Set what holds for conversations that have no setting of their own.

        Raises:
            InvalidArgument: there is no such retention.
        """
        self._check_open()
        checked_retention(retention)
        self._retention = retention

    async def remove(self, conversation: str, *, after: int = 0, most: int = 1_000) -> Removal:
        """Remove at most ``most`` events behind version ``after``; see `Scavenging.remove`."""
        log = self._log(conversation)
        within = self._bounds(log)
        rows = [
            row
            for row in log.own(max(after, within.first - 1), within.last)
            if row[7] and row[3] not in KEPT_TYPES and row[1] not in within.kept and not disowns(row[3], row[6])
        ]
        gone = rows[:most]
        if gone:
            self._learn()
            log.keep_base(within)
        for row in gone:
            self._all[row[0] - 1] = (conversation, log.blank(row[1]))
        size = sum(len(row[6].encode()) for row in gone)
        self._removed += size
        reached = gone[-1][1] if gone else max(after, within.last)
        return Removal(len(gone), size, reached, within.last, within.first, within.fork, len(rows) <= most)

    def _bounds(self, log: MemoryLog) -> RemovalBounds:
        forks = [(fork.base, fork.id) for fork in self._order if fork.parent is log]
        base, id_ = max(forks, default=(0, ""))
        undos = (row[1] for row in log.rows if row[3] == "compaction.reverted")
        snapshot = snapshot_of(log, log.snapshot)
        return bounds(snapshot, log.base, (id_, base) if forks else None, max(undos, default=0))

    async def remove_values(self) -> tuple[int, int]:
        """Remove the content-addressed texts that no event and no snapshot names; return their number and bytes."""
        self._check_open()
        named = self._named()
        gone = {hash_: text for hash_, text in self._values.items() if hash_ not in named}
        self._values = {hash_: text for hash_, text in self._values.items() if hash_ in named}
        size = sum(len(text.encode()) for text in gone.values())
        self._removed += size
        return len(gone), size

    def _named(self) -> set[str]:
        """Return every hash that an event or a snapshot names."""
        named = set(named_in(row[6] for _, row in self._all if row[3] != "block.appended"))
        for log in self._order:
            named.update(named_in(draft.body for draft in (log.snapshot, *log.bases.values()) if draft is not None))
        return named

    async def shrink(self) -> tuple[int, int] | None:
        """Return the bytes of payloads and texts before and after the removals since the last call."""
        self._check_open()
        size, removed = self._size(), self._removed
        self._removed = 0
        return (size + removed, size) if removed else None

    def _size(self) -> int:
        return sum(len(row[6].encode()) for _, row in self._all) + sum(len(v.encode()) for v in self._values.values())

    async def rehearse(self, conversations: Collection[str]) -> Rehearsal:
        """Return what removing would do, found out on a copy; see `Scavenging.rehearse`."""
        self._check_open()
        twin = deepcopy(self)
        removals = {id_: await twin.remove(id_, most=len(self._all) + 1) for id_ in conversations}
        values, value_size = await twin.remove_values() if conversations else (0, 0)
        before, after = await twin.shrink() or (self._size(), self._size())
        return Rehearsal(removals, values, value_size, before, after)

    async def forks(self, conversation: str) -> dict[str, int]:
        """Return the conversation's own forks, each with the last version that both share."""
        log = self._log(conversation)
        return {fork.id: fork.base for fork in self._order if fork.parent is log}

    async def rewrite(
        self, parts: Sequence[Rewriting], *, values: Mapping[str, str] = NO_VALUES, dropped: Collection[str] = ()
    ) -> dict[str, int]:
        """Overwrite payloads and snapshots, and append redactions; see `Forgetting.rewrite`."""
        self._check_open()
        done: Counter[str] = Counter()
        together = {part.conversation for part in parts}
        for part in parts:
            log = self._log(part.conversation)
            first = min([*part.blocks, *part.payloads], default=log.version + 1)
            late = [f for f, base in (await self.forks(log.id)).items() if base >= first and f not in together]
            if log.version != part.expected or late:
                raise VersionConflict(log.id, part.expected, log.version)
        self._learn()
        for part in parts:
            log = self._logs[part.conversation]
            for version, payload in part.payloads.items():
                row = log.overwrite(version, payload)
                self._all[row[0] - 1] = (log.id, row)
            done["facts"] += log.forget(part.blocks)
            done["snapshots"] += log.rewrite_snapshots(part.snapshot)
            if part.title is not None:
                log.title = part.title
                done["titles"] += 1
            await self.append(log.id, part.events, expected=part.expected)
        self._values.update(values)
        done["values"] = self._drop_values(dropped)
        return dict(done)

    def _drop_values(self, candidates: Collection[str]) -> int:
        """Remove those of some texts that nothing names any more; return how many were removed."""
        held = set(candidates) & self._values.keys()
        gone = held - self._named() if held else held
        for hash_ in gone:
            del self._values[hash_]
        return len(gone)

    async def erase(
        self,
        conversation: str,
        *,
        forks: ForksOnErase = "refuse",
        reason: str = "",
        at: datetime | None = None,
    ) -> ErasureReport:
        """Erase a conversation; see `Forgetting.erase`."""
        self._check_open()
        check_erasure(conversation, forks, reason)
        if conversation in self._erased:
            return erasure_report(Erasing([conversation], [], {}), physical=True)
        own = await self.forks(conversation)
        if own and forks == "refuse":
            raise ForksRemain(conversation, list(own))
        for id_ in [conversation] if forks == "copy" else self._family(conversation):
            if self._logs[id_].is_held():
                raise UnderLegalHold(id_)
        self._learn()
        if forks == "copy":
            for fork in own:
                self._cut_loose(self._logs[fork])
                for id_ in self._family(fork)[1:]:
                    self._logs[id_].chain_anew()
        erased = [conversation] if forks == "copy" else self._family(conversation)
        moment = instant_text(at or datetime.now(UTC))
        counts: Counter[str] = Counter()
        named = set(named_in(row[6] for id_, row in self._all if id_ in erased and row[3] != "block.appended"))
        for id_ in erased:
            log = self._logs.pop(id_)
            self._order.remove(log)
            self._erased[id_] = (moment, reason)
            gone = {"payloads": len(log.rows), "facts": len(log.facts), "conversations": 1}
            counts.update({**gone, "snapshots": len(log.bases) + (log.snapshot is not None)})
        self._all = [_GONE if id_ in erased else (id_, row) for id_, row in self._all]
        counts["values"] = self._drop_values(named)
        return erasure_report(Erasing(erased, list(own) if forks == "copy" else [], dict(counts)), physical=True)

    def _family(self, conversation: str) -> list[str]:
        """Return a conversation and all forks of it and of its forks."""
        found = [conversation]
        for id_ in found:
            found += [fork.id for fork in self._order if fork.parent is self._logs[id_]]
        return found

    def _cut_loose(self, log: MemoryLog) -> None:
        """Write the log of a fork anew behind all other events, with what it shares as its own."""
        shared = [(owner, last) for owner, last in log.lineage()][1:]
        whole = [row for owner, last in reversed([(log, log.version), *shared]) for row in owner.own(0, last)]
        facts = {owner.id: owner.facts for owner, _ in [(log, 0), *shared]}
        paths = {path: v for owner, last in shared for path, v in owner.paths.items() if v <= last}
        calls = {id_: list(versions) for id_, versions in log.calls.items()}
        for owner, last in shared:
            for id_, versions in owner.calls.items():
                calls.setdefault(id_, [])[:0] = [v for v in versions if v <= last]
            log.bases = {v: base for v, base in owner.bases.items() if v <= last} | log.bases
            log.redacted = {v: by for v, by in owner.redacted.items() if by <= last} | log.redacted
        moved: dict[int, int] = {}
        for row in log.rows:
            self._all[row[0] - 1] = _GONE
        log.parent, log.base, log.rows, log.links = None, 0, [], []
        for row in whole:
            position, version, event_id, type_, schema_version, at, payload, old, *columns = row
            moved[position] = len(self._all) + 1
            hashed = old and checksum(log.id, version, event_id, type_, schema_version, at, payload)
            head = (moved[position], version, event_id, type_, schema_version, at, payload, hashed)
            log.rows.append((*head, *columns))
            log.chain_copy(log.rows[-1])
            self._all.append((log.id, log.rows[-1]))
        known = (fact for some in facts.values() for fact in some if fact.row.position in moved)
        log.facts = sorted(
            (fact._replace(row=fact.row._replace(position=moved[fact.row.position])) for fact in known),
            key=lambda fact: (fact.row.position, fact.row.number),
        )
        log.created_at = log.rows[0][5]
        log.ids |= {row[2]: row[1] for row in log.rows}
        log.paths = paths | log.paths
        log.compacted = [(row[1], row[5]) for row in log.rows if row[3] == "compaction.completed"]
        log.calls = calls
        self._learned = len(self._all)

    async def take_lease(self, runner: str, now: datetime, until: datetime) -> datetime | None:
        """Take, renew or give back the lease of scavenging; see `Scavenging.take_lease`."""
        self._check_open()
        if self._lease is not None and self._lease[0] != runner and self._lease[1] > now:
            return self._lease[1]
        self._lease = (runner, until) if until > now else None
        return None

    async def scavenged(self, conversation: str) -> dict[str, int]:
        """Return how many of a conversation's events were removed, by type."""
        log = self._log(conversation)
        return dict(Counter(row[3] for row in log.scavenged(log.version)))

    async def load_base(self, conversation: str, until: int | None = None) -> StoredWindow | None:
        """Read the newest base up to a version, with its events; see `Scavenging.load_base`."""
        log = self._log(conversation)
        end = log.version if until is None else min(until, log.version)
        bases = {v: draft for part, last in log.lineage() for v, draft in part.bases.items() if v <= min(last, end)}
        snapshot = snapshot_of(log, bases[max(bases)]) if bases else None
        if snapshot is None:
            return None
        start = snapshot.window_start
        carried = [pair for v in snapshot.blocks if v < start for pair in log.read(v - 1, v)]
        rows = [*carried, *log.read(start - 1, snapshot.version)]
        return StoredWindow(log.info(), snapshot, [decode(owner, row, WHERE) for owner, row in rows])

    async def aclose(self) -> None:
        """Finish late writes, then close the store and discard its content; a second call does nothing.

        Raises:
            TimelineError: a late write failed. The store is closed all the same.
        """
        self._home.check_alone()
        try:
            await self.late_writes.finish()
        finally:
            self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _check_open(self) -> None:
        self._home.check_alone()
        if self._closed:
            raise closed(WHERE)

    def _log(self, conversation: str) -> MemoryLog:
        self._check_open()
        self._check_not_erased(conversation)
        if conversation not in self._logs:
            raise ConversationNotFound(conversation)
        return self._logs[conversation]

    def _check_not_erased(self, conversation: str) -> None:
        if conversation in self._erased:
            raise ConversationErased(conversation, *self._erased[conversation])

    def _paged(self, items: Iterator[T], page: int) -> Iterator[T]:
        """Yield items, checking before each page that the store is open, as a database would."""
        checked_page(page)
        self._check_open()
        for number, item in enumerate(items):
            if number % page == 0:
                self._check_open()
            yield item


def _by_change(log: MemoryLog) -> tuple[str, str]:
    return log.updated_at, log.id
