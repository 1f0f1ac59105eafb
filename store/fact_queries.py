"""The queries of facts over a database: how rows, and the events that the rows have not reached, become an answer.

Each database has its own part of `DatabaseFacts`, which reads a page of rows, and the events behind the last row.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from timeline.errors import ConversationNotFound, StoreCorrupt
from timeline.facts.record import merged, record_from
from timeline.log.collector import collector_at_rest
from timeline.log.off_loop import in_thread
from timeline.queries import FACT_KINDS, FactEntry

from .aside import at_its_size
from .column_numbers import LARGEST
from .fact_making import FactQuestion, MadeFacts, facts_of_page, moment_of, redacted
from .facts import NAMED, Coverage, CoveredBy, FactFilter, FactRow, block_path, fact_of, stored_fact
from .failures import RESTORE
from .running_records import CURE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence

    from timeline.events import Covers
    from timeline.queries import FactRecord, StoredFact

    from .codec import Row
    from .fact_making import Asking
    from .running_records import RunningRecords

T = TypeVar("T")

SCANNED: Final = 500
"""Events that are read at a time where the rows have not reached them."""
_ALL: Final = FactFilter.checked()


class LocatedFact(NamedTuple):
    """A row, with the time and the path of its event and the id of its conversation."""

    row: FactRow
    at: str
    path: str
    conversation: str


class FactGroup(NamedTuple):
    """All failed facts of one kind about one subject, or all others of it, as a database counts them.

    Attributes:
        kind: number of the kind.
        subject: what they are about.
        failed: 1 if they failed.
        times: how many there are.
        meant: how many were named by a call or a prompt.
        last: version of the newest one; so are the following fields, up to ``path``.
        kept: its own ``path``.
        tool: see ``last``.
        status: see ``last``.
        detail: see ``last``.
        at: time of its event.
        path: path of its event's block.
        first: version of the oldest one.
        first_meant: 1 if that one was named by a call or a prompt.
        versions: for a request, the versions of all of them.
    """

    kind: int
    subject: str
    failed: int
    times: int
    meant: int
    last: int
    kept: str | None
    tool: str
    status: int | None
    detail: str
    at: str
    path: str
    first: int
    first_meant: int
    versions: Sequence[int]


class AskedLog(NamedTuple):
    """A log that is asked about: its key (None: of all conversations), its id, and the last position that counts."""

    key: int | None
    id: str
    last: int


@dataclass(slots=True)
class _Scope:
    """What is asked for: a conversation (None: all), its logs, and what is hidden in each."""

    conversation: str | None
    parts: list[AskedLog]
    hidden: dict[int | None, set[int]] = field(default_factory=dict)


class DatabaseFacts(ABC):
    """The queries of facts over one database.

    Attributes:
        running: the records that compactions go on from.
    """

    __slots__ = ()
    running: RunningRecords

    @abstractmethod
    async def progress(self) -> tuple[int, int]:
        """Return the position that the rows have reached, and that of the newest event."""

    @abstractmethod
    async def asked(self, question: FactQuestion) -> Sequence[Row]:
        """Answer a question on which the facts of a page depend."""

    @abstractmethod
    async def lineage(self, conversation: str) -> list[Row]:
        """Return key, id, base and last version of a conversation and its ancestors, itself first."""

    @abstractmethod
    async def position_at(self, key: int, version: int) -> int:
        """Return the position of a conversation's newest event up to a version; 0 if it has none."""

    @abstractmethod
    async def time_at(self, key: int, position: int) -> str | None:
        """Return the time of the event at a position; None if the conversation has none there."""

    @abstractmethod
    async def page_of_rows(
        self, key: int | None, wanted: FactFilter, after: tuple[int, int], last: int, page: int
    ) -> list[LocatedFact]:
        """Return the rows behind a position and number, by both; those that meet a filter, or more."""

    @abstractmethod
    async def events_between(self, key: int | None, after: int, last: int, most: int) -> list[Row]:
        """Return the appended blocks behind a position, by it, scavenged ones too.

        Of each position, conversation's key, version, time, path, payload and checksum, which is empty if it was
        scavenged.
        """

    @abstractmethod
    async def rows_at(self, positions: Sequence[int]) -> list[FactRow]:
        """Return the rows of some events."""

    @abstractmethod
    async def id_of(self, key: int) -> str | None:
        """Return the id of a conversation; None if it was erased meanwhile."""

    @abstractmethod
    async def redacted_since(self, reached: int) -> Mapping[int, Collection[int]]:
        """Return, by the conversation's key, the redacted versions whose rows may still be there."""

    @abstractmethod
    async def covering(self, conversation: str) -> Sequence[Row]:
        """Return the compactions of a conversation and its ancestors, and what undid some.

        Of each its type, its version, and the JSON texts of ``covers``, ``carried`` and ``versions``.
        """

    @abstractmethod
    async def groups(
        self, parts: Sequence[AskedLog], hidden: Collection[int], covers: Covers | None
    ) -> list[FactGroup]:
        """Return the rows of some logs as groups, without those of hidden versions, by kind, subject and outcome."""

    async def facts(
        self, conversations: Sequence[str] | None, wanted: FactFilter, page: int
    ) -> AsyncIterator[StoredFact]:
        """Iterate over the facts of conversations (None: of all) that meet every condition, by position."""
        reached, last = await self.progress()
        if conversations is None:
            scopes = [_Scope(None, [AskedLog(None, "", last)])]
        else:
            scopes = [await self._scope(conversation) for conversation in conversations]
        coverages: dict[str, Coverage] = {}
        async for found, asked in _merged([self._found(scope, wanted, reached, page) for scope in scopes], scopes):
            view = asked or found.conversation
            if view not in coverages:
                if len(coverages) >= _KEPT:
                    coverages.clear()
                coverages[view] = await self._coverage(view)
            covered = found.row.version in coverages[view]
            if wanted.covered in {None, covered}:
                moment = moment_of(found.at)
                yield stored_fact(found.row, found.conversation, moment, found.path, covered=covered)

    async def record(self, conversation: str, covers: Covers | None, most: int) -> FactRecord:
        """Return the merged record of a conversation's facts; what the rows have not reached is read from the log."""
        reached, _ = await self.progress()
        scope = await self._scope(conversation)
        if any(reached < part.last for part in scope.parts):
            return await self._read_from_log(scope, reached, covers, most)
        key = scope.parts[0].key
        if covers is None or key is None or len(scope.parts) > 1:
            return await self._merged_anew(scope, covers, most)
        return await self._going_on(scope, key, covers, most)

    async def _read_from_log(self, scope: _Scope, reached: int, covers: Covers | None, most: int) -> FactRecord:
        """Return the record of a scope whose rows do not reach its end."""
        with collector_at_rest():  # the objects are freed once they are merged, see `timeline.log.collector`
            every = [found async for found in self._found(scope, FactFilter.checked(), reached, SCANNED)]
            asked = [found for found in every if covers is None or found.row.version in covers]
            facts = (fact_of(each.row, moment_of(each.at), each.path) for each in asked)
            return await in_thread(lambda: record_from(merged(facts), most))

    async def _merged_anew(self, scope: _Scope, covers: Covers | None, most: int) -> FactRecord:
        """Return the record that the database merges from all rows of a scope."""
        hidden = set().union(*scope.hidden.values()) if scope.hidden else set()
        groups = await self.groups(scope.parts, hidden, covers)
        # A log of a million tokens has thousands of rows: 20 ms, in which other conversations go on.
        return await in_thread(lambda: record_from(map(_entry, groups), most))

    async def _going_on(self, scope: _Scope, key: int, covers: Covers, most: int) -> FactRecord:
        """Return the record of a log's compaction, made from the record of the one before it and the facts since.

        It is not used for forks: a redaction in the shared past is an event of another log. Nor is it where the log has
        lost what was read, to a server that took over without it: other events are there, or another conversation has
        the key. That is looked at behind the reading, so that all that was read was there until then.
        """
        redactions = len(await self.asked(FactQuestion("redactions", LARGEST, key)))
        running = self.running.take(key, covers, redactions)
        if running is None:
            return await self._merged_anew(scope, covers, most)
        (position, _), at = running.after, running.at
        rows = None
        while rows is None or len(rows) == SCANNED:
            rows = await self.page_of_rows(key, _ALL, running.after, scope.parts[0].last, SCANNED)
            running.read([found[:3] for found in rows])
        if at and await self.time_at(key, position) != at:
            return await self._merged_anew(scope, covers, most)
        record = running.record(covers, most)
        self.running.keep(key, running)
        return record

    async def _scope(self, conversation: str) -> _Scope:
        """Return the logs that hold a conversation's versions, oldest first."""
        lineage = list(reversed(await self.lineage(conversation)))
        if not lineage:
            raise ConversationNotFound(conversation)
        parts = [AskedLog(key, id_, await self.position_at(key, last)) for key, id_, _, last in lineage]
        scope = _Scope(conversation, parts)
        if len(lineage) > 1:
            redactions = await self.asked(FactQuestion("redactions", lineage[-1][3], lineage[-1][0]))
            scope.hidden = _hidden(lineage, redactions)
        return scope

    async def _found(self, scope: _Scope, wanted: FactFilter, reached: int, page: int) -> AsyncIterator[LocatedFact]:
        """Iterate over what a scope holds: rows as far as they reach, then what is read from the log."""
        late = await self.redacted_since(reached)
        for part in scope.parts:
            hidden = scope.hidden.get(part.key, ())
            async for found in self._part(part, wanted, reached, page):
                row = found.row
                gone = late.get(row.conversation, ())
                if any(version in some for version in (row.version, row.call) for some in (hidden, gone)):
                    continue
                if not (isinstance(found.at, str) and isinstance(row.subject, str)):
                    raise StoreCorrupt(f"fact {row.number} at position {row.position} is damaged. {CURE}")
                if wanted.matches(row, found.at):
                    yield found

    async def _part(self, part: AskedLog, wanted: FactFilter, reached: int, page: int) -> AsyncIterator[LocatedFact]:
        after = (0, LARGEST)
        while wanted.kinds:
            rows = await self.page_of_rows(part.key, wanted, after, min(part.last, reached), page)
            for found in rows:
                yield found
            if len(rows) < page:
                break
            after = rows[-1].row[:2]
        if reached < part.last:
            async for found in self._scanned(part, reached):
                yield found

    async def _scanned(self, part: AskedLog, after: int) -> AsyncIterator[LocatedFact]:
        """Iterate over the facts of events that the rows have not reached, read from the log."""
        key, id_, last = part
        ids: dict[int, str | None] = {} if key is None else {key: id_}
        while after < last:
            rows = await self.events_between(key, after, last, SCANNED)
            there_still = [row for row in rows if row[6]]
            made = {m.position: m for m in await self._answer(facts_of_page(there_still), there_still)}
            there = defaultdict(list)
            for row in await self.rows_at([row[0] for row in rows]):
                there[row.position].append(row)
            for key_ in {row[1] for row in rows} - ids.keys():
                ids[key_] = await self.id_of(key_)
            for position, key_, _, at, path, _, checksum in rows:
                conversation = ids[key_]
                if conversation is None:
                    continue
                for found in _either(made.get(position), there[position], scavenged=not checksum):
                    yield LocatedFact(found, at, path, conversation)
            if len(rows) < SCANNED:
                return
            after = rows[-1][0]

    async def _answer(self, asking: Asking[T], about: Sequence[Row]) -> T:
        """Answer what is asked of the database about some rows, until it asks no more."""
        given: Sequence[Row] | None = None
        while True:
            question, answer = await at_its_size(partial(_next, asking, given), about)
            if question is None:
                return answer[0]
            given = await self.asked(question)

    async def _coverage(self, conversation: str) -> Coverage:
        """Return what the compactions in force cover in a conversation."""
        compactions: dict[int, CoveredBy] = {}
        reverted: set[int] = set()
        for type_, version, covers, carried, versions in await self.covering(conversation):
            try:
                if type_ == "compaction.reverted":
                    reverted.update(json.loads(versions or "[]"))
                else:
                    compactions[version] = _covered_by(version, covers, carried)
            except (ValueError, TypeError, AttributeError):
                raise StoreCorrupt(
                    f"event {version} of conversation {conversation!r} does not hold what it covers. {RESTORE};"
                    " `timeline verify --deep` lists all damage."
                ) from None
        return Coverage(c for version, c in compactions.items() if version not in reverted)


_KEPT: Final = 256
"""Coverages of conversations that a query over all of them keeps at a time."""


def _next(asking: Asking[T], given: Sequence[Row] | None) -> tuple[FactQuestion | None, list[T]]:
    """Return the next question; None with the answer where there is none."""
    try:
        return (next(asking) if given is None else asking.send(given)), []
    except StopIteration as answered:
        return None, [answered.value]


def _covered_by(version: int, covers: str | None, carried: str | None) -> CoveredBy:
    """Read what a compaction covers and what it carries; the checksum of its event is not compared here."""
    covered = json.loads(covers or "{}")
    ranges = [(int(first), int(last)) for first, last in covered.get("ranges", ())]
    summaries, kept = map(int, covered.get("summaries", ())), map(int, json.loads(carried or "[]"))
    return CoveredBy(version, ranges, list(summaries), list(kept))


def _entry(group: FactGroup) -> FactEntry:
    """Return a group of facts as one entry: its newest row with its counts, and its first one."""
    if not 0 <= group.kind < len(FACT_KINDS):
        raise StoreCorrupt(f"a fact of version {group.last} is of the kind {group.kind}, which does not exist. {CURE}")
    return FactEntry(
        kind=FACT_KINDS[group.kind],
        subject=group.subject,
        failed=bool(group.failed),
        times=group.times,
        first=group.first,
        last=group.last,
        path=block_path(group.kept, group.path),
        at=moment_of(group.at),
        tool=group.tool,
        exit_status=group.status,
        detail=group.detail,
        repeats=group.meant - group.first_meant if group.kind in NAMED else 0,
        versions=tuple(sorted(group.versions)),
    )


def _either(made: MadeFacts | None, there: list[FactRow], *, scavenged: bool) -> list[FactRow]:
    """Return the facts of an event that the index has not reached: made anew where its block and its call are there."""
    if scavenged:
        return there
    kept = [row for row in there if row.source]
    if made is None:  # damaged
        return there
    done = made.done if made.resolved else [row for row in there if row.number >= 0 and not row.source]
    return sorted([*made.named, *done, *kept])


def _hidden(lineage: Sequence[Row], redactions: Iterable[Row]) -> dict[int | None, set[int]]:
    """Return, for each log of a lineage, oldest first, the versions that its descendants in the lineage redact."""
    by_owner: defaultdict[int, list[Row]] = defaultdict(list)
    for row in redactions:
        by_owner[row[0]].append(row)
    hidden: dict[int | None, set[int]] = {}
    so_far: set[int] = set()
    for key, *_ in reversed(lineage):
        hidden[key] = set(so_far)
        so_far |= redacted(by_owner[key])
    return hidden


async def _merged(
    sources: Sequence[AsyncIterator[LocatedFact]], scopes: Sequence[_Scope]
) -> AsyncIterator[tuple[LocatedFact, str | None]]:
    """Merge several iterators by position; facts that conversations share come once, under their owner."""
    waiting: list[tuple[int, int, bool, int, LocatedFact]] = []

    async def push(number: int) -> None:
        found = await anext(sources[number], None)
        if found is not None:
            borrowed = found.conversation != scopes[number].conversation
            heappush(waiting, (found.row.position, found.row.number, borrowed, number, found))

    for number in range(len(sources)):
        await push(number)
    before = None
    while waiting:
        position, place, _, number, found = heappop(waiting)
        if (position, place) != before:
            yield found, scopes[number].conversation
        before = (position, place)
        await push(number)
