"""Facts of a SQLite store: rows that queries catch up from the log, and the queries over them.

An append writes none: an agent waits for it, and nobody may ever ask. A query, a compaction or a removal brings the
rows up to the head first, a slice at a time, between which the writer serves its queue. A reader that may not write
reads the part that the rows have not reached from the log. Earlier releases wrote some of the rows with the append;
those are taken as they are.

Making facts of stored events asks the database for calls and redactions. The writer and the readers have different
connections, so `facts_of_page` is a generator of questions, which both answer.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import sha256
from heapq import heappop, heappush
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from timeline.blocks import ToolCall, ToolResult
from timeline.errors import ConversationNotFound, StoreCorrupt
from timeline.events import BlockAppended
from timeline.events.encoding import decode_payload
from timeline.facts.extracting import BY_USER, FORM, facts_of_result
from timeline.facts.record import merged, record_from
from timeline.queries import FactEntry

from ..digests import within
from ..facts import (
    KINDS,
    NAMED,
    NUMBERS,
    Coverage,
    CoveredBy,
    FactFilter,
    FactRow,
    block_path,
    call_path,
    fact_of,
    rows_named,
    rows_of_facts,
    stored_fact,
)
from ..failures import RESTORE
from ..search.scanning import redacted_version
from . import statements
from .aside import at_its_size
from .transactions import transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from timeline.blocks import Block
    from timeline.events import Covers
    from timeline.facts.tool_use import Call
    from timeline.queries import FactRecord, StoredFact

    from ..codec import Row

T = TypeVar("T")
Asking: TypeAlias = Generator[tuple[str, tuple[Any, ...]], "list[Row]", T]

SLICE: Final = 256 * 1024
"""Characters of stored events after which a slice ends: some 50 ms of the writer's time."""
MOST_EVENTS: Final = 2_000
_CALL: Final = ToolCall.model_fields["type"].default
_NO_ARGUMENTS: Final[dict[str, Any]] = {}
_SCANNED: Final = 500
_LAST: Final = 2**63 - 1
_CURE: Final = "`timeline repair` makes facts anew; `timeline verify --deep` lists all damage."


# --- the writer ---------------------------------------------------------------------------------------------------


def forget(connection: sqlite3.Connection, key: int, version: int) -> int:
    """Remove the facts that a redacted block made known, names, or had a part in as a call; return how many."""
    of_block = (key, version, version, key, version)
    connection.execute(statements.UNPROVE_FACTS, of_block)
    return connection.execute(statements.FORGET_FACTS, of_block).rowcount


def proof_of(connection: sqlite3.Connection, position: int, link: bytes) -> bytes:
    """Return what vouches for the facts of an event that is scavenged: nothing else says what they were.

    It leaves out the conversation of the rows, which is that of their event. Its first byte is that of no form of a
    packed payload, whose place it takes.
    """
    rows = connection.execute(statements.FACTS_AT, (position,)).fetchall()
    return b"\x00" + sha256(b"f" + link + json.dumps(rows).encode()).digest()[:16]


def catch_up(connection: sqlite3.Connection, until: int) -> int:
    """Add one slice of the events up to a position, in one transaction; return the position that was reached.

    Raises:
        sqlite3.Error: the database failed; nothing was added.
    """
    with transaction(connection):
        return _add_slice(connection, until)


def reach(connection: sqlite3.Connection, until: int) -> None:
    """Add all events up to a position, in the open transaction: before some are removed, their facts are kept."""
    progress = connection.execute(statements.FACTS_PROGRESS, (FORM,)).fetchone()
    reached = 0 if progress is None else progress[0]
    while reached < until:
        reached = _add_slice(connection, until)


def _add_slice(connection: sqlite3.Connection, until: int) -> int:
    progress = connection.execute(statements.FACTS_PROGRESS, (FORM,)).fetchone()
    if progress is None:
        connection.execute(statements.DROP_OTHER_FACTS)
        connection.execute(statements.FORGET_FACTS_PROGRESS)
    after: int = 0 if progress is None else progress[0]
    cursor = connection.execute(statements.EVENTS_OF_FACTS, (after, until, MOST_EVENTS))
    rows: list[Row] = []
    size = 0
    for row in cursor:
        rows.append(row)
        size += len(row[5])
        if size >= SLICE:
            break
    cursor.close()
    cut = size >= SLICE or len(rows) == MOST_EVENTS
    reached = rows[-1][0] if cut else max(after, until)
    known = {position for (position,) in connection.execute(statements.KNOWN_BETWEEN, (after, reached))}
    made = _answer(connection, facts_of_page([row for row in rows if row[6]], known))
    connection.executemany(statements.REPLACE_FACT, chain.from_iterable((*page.done, *page.named) for page in made))
    connection.execute(statements.SET_FACTS_PROGRESS, (FORM, reached))
    return reached


def _next(asking: Asking[T], given: list[Row] | None) -> tuple[tuple[str, tuple[Any, ...]] | None, list[T]]:
    """Return the next question; None with the answer where there is none."""
    try:
        return (next(asking) if given is None else asking.send(given)), []
    except StopIteration as answered:
        return None, [answered.value]


def _answer(connection: sqlite3.Connection, asking: Asking[T]) -> T:
    try:
        question = next(asking)
        while True:
            question = asking.send(connection.execute(*question).fetchall())
    except StopIteration as answered:
        return answered.value  # type: ignore[no-any-return]


# --- facts of stored events -----------------------------------------------------------------------------------------


class Made(NamedTuple):
    """The facts of one stored event: what its result says was done, and what its block names.

    ``resolved`` is False for a result whose call is not in the log, or no longer: its facts can only be rows.
    """

    position: int
    at: str
    path: str
    done: list[FactRow]
    named: list[FactRow]
    resolved: bool


class _Stored(NamedTuple):
    position: int
    key: int
    version: int
    at: str
    path: str
    block: Block


def facts_of_page(rows: Sequence[Row], known: Collection[int] = ()) -> Asking[list[Made]]:
    """Make the facts of appended blocks, in order; ask for the calls and the redactions that this takes.

    Args:
        rows: of `statements.EVENTS_OF_FACTS`; none of them scavenged.
        known: positions of results whose facts are there already.
    """
    stored = [
        _Stored(row[0], row[1], row[2], row[3], row[4], block) for row in rows if (block := _block(row[5])) is not None
    ]
    redacted: dict[int, set[int]] = {}
    for key in dict.fromkeys(event.key for event in stored):
        redacted[key] = _redacted((yield statements.REDACTIONS, (_LAST, key)))
    results = [e for e in stored if type(e.block) is ToolResult and e.position not in known]
    calls = yield from _calls_of([e for e in results if e.version not in redacted[e.key]])
    made = []
    for event in stored:
        position, key, version, at, path, block = event
        if version in redacted[key]:
            continue
        moment = _moment(at)
        done: list[FactRow] = []
        call = calls.get(position)
        if call is not None and isinstance(block, ToolResult) and call[0] not in redacted[key]:
            said = facts_of_result(call[1], call[0], block, version, moment)
            done = rows_of_facts(said, key, position, path, call[0])
        named = rows_named(block, key, position, version, moment)
        resolved = call is not None or not isinstance(block, ToolResult)
        made.append(Made(position, at, path, done, named, resolved))
    return made


def _calls_of(results: Sequence[_Stored]) -> Asking[dict[int, tuple[int, Call]]]:
    """Return the call that each result answers, by the result's position: by its path, else the newest of its id."""
    calls: dict[int, tuple[int, Call]] = {}
    by_key: defaultdict[int, list[_Stored]] = defaultdict(list)
    for result in results:
        by_key[result.key].append(result)
    for key, some in by_key.items():
        last = some[-1].version - 1
        paths = [path for result in some if (path := call_path(result.path)) is not None]
        at_path = {path: (v, text) for path, v, text in (yield statements.CALLS_AT, (last, key, json.dumps(paths)))}
        left = []
        for result in some:
            version, text = at_path.get(call_path(result.path) or "", (0, ""))
            call = _call(text) if 0 < version < result.version else None
            if call is not None:
                calls[result.position] = (version, call)
            elif not version or version > result.version or text:
                # Not where the call was scavenged: then another call of its id is not the one it answers.
                left.append(result)
        if left:
            ids = sorted({result.block.call_id or "" for result in left})
            found = yield statements.CALLS_OF_IDS, (last, key, json.dumps(ids))
            of_id: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
            for id_, version, text in found:
                of_id[id_].append((version, text))
            for result in left:
                earlier = [each for each in of_id[result.block.call_id or ""] if each[0] < result.version]
                version, text = max(earlier, default=(0, ""))
                if version and (call := _call(text)) is not None:
                    calls[result.position] = (version, call)
    return calls


def _moment(at: str) -> datetime:
    """Read the time of an event.

    Raises:
        StoreCorrupt: it is none.
    """
    try:
        return datetime.fromisoformat(at)
    except (ValueError, TypeError):
        cure = f"`timeline verify --deep` lists all damage. {RESTORE}."
        raise StoreCorrupt(f"the time {at!r} of an event is damaged. {cure}") from None


def _block(payload: str) -> Block | None:
    """Return the block of an event; None for a damaged one: reading it reports the damage."""
    try:
        decoded = decode_payload("block.appended", BlockAppended.schema_version, payload)
    except StoreCorrupt:
        return None
    return decoded.block if isinstance(decoded, BlockAppended) else None


class _StoredCall(NamedTuple):
    """What facts are made of: a tenth of the time that the whole block takes, which was validated when it came."""

    path: str
    name: str
    arguments: dict[str, Any] | str


def _call(payload: str) -> _StoredCall | None:
    """Return the call of an event; None for another block, and for a damaged one."""
    try:
        block = json.loads(payload)["block"]
        if block["type"] != _CALL:
            return None
        call = _StoredCall(block.get("path", ""), block["name"], block.get("arguments", _NO_ARGUMENTS))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    sound = isinstance(call.path, str) and isinstance(call.name, str) and isinstance(call.arguments, (dict, str))
    return call if sound else None


def _redacted(rows: Iterable[Row]) -> set[int]:
    """Return the versions that redactions erase; one of what is not there yet redacts nothing."""
    pairs = ((by, redacted_version(payload)) for _, by, payload in rows)
    return {version for by, version in pairs if version is not None and version < by}


# --- the readers --------------------------------------------------------------------------------------------------


class _Found(NamedTuple):
    """A row, with the time and the path of its event and the id of its conversation."""

    row: FactRow
    at: str
    path: str
    conversation: str


@dataclass(slots=True)
class _Scope:
    """What is asked for: a conversation (None: all), its logs with the last position that counts, what is hidden."""

    conversation: str | None
    parts: list[tuple[int | None, str, int]]
    hidden: dict[int | None, set[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SQLiteFacts:
    """The queries of facts on one SQLite file.

    Attributes:
        rows: runs a statement on the reading connection and returns all rows.
    """

    rows: Callable[[str, Sequence[Any] | Mapping[str, Any]], Awaitable[list[Row]]]

    async def progress(self) -> tuple[int, int]:
        """Return the position that the index has reached, and that of the newest event."""
        rows = await self.rows(statements.FACTS_PROGRESS, (FORM,))
        ((last,),) = await self.rows(statements.LAST_OF_ALL, ())
        return (int(rows[0][0]) if rows else 0), last or 0

    async def facts(
        self, conversations: Sequence[str] | None, wanted: FactFilter, page: int
    ) -> AsyncIterator[StoredFact]:
        """Iterate over the facts of conversations (None: of all) that meet every condition, by position."""
        reached, last = await self.progress()
        if conversations is None:
            scopes = [_Scope(None, [(None, "", last)])]
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
                moment = _moment(found.at)
                yield stored_fact(found.row, found.conversation, moment, found.path, covered=covered)

    async def record(self, conversation: str, covers: Covers | None, most: int) -> FactRecord:
        """Return the merged record of a conversation's facts; what the index has not reached is read from the log."""
        reached, _ = await self.progress()
        scope = await self._scope(conversation)
        if any(reached < end for _, _, end in scope.parts):
            wanted = FactFilter.checked()
            every = [found async for found in self._found(scope, wanted, reached, _SCANNED)]
            asked = [found for found in every if covers is None or found.row.version in covers]
            return record_from(merged(fact_of(each.row, _moment(each.at), each.path) for each in asked), most)
        hidden = sorted(set().union(*scope.hidden.values())) if scope.hidden else []
        parameters = {
            "parts": json.dumps([(key, end) for key, _, end in scope.parts]),
            "hidden": json.dumps(hidden),
            "covers": None if covers is None else json.dumps(covers.ranges),
            "summaries": json.dumps([] if covers is None else covers.summaries),
            "by_user": BY_USER,
        }
        rows = await self.rows(statements.MERGED_FACTS, parameters | {"request": NUMBERS["request"]})
        firsts = await self.rows(statements.FIRST_FACTS, parameters)
        if len(rows) != len(firsts):
            raise StoreCorrupt(f"facts of conversation {conversation!r} are of events that are not there. {_CURE}")
        # A log of a million tokens has thousands of rows: 20 ms, in which other conversations go on.
        return await asyncio.to_thread(lambda: record_from(starmap(_entry, zip(rows, firsts, strict=True)), most))

    async def _scope(self, conversation: str) -> _Scope:
        """Return the logs that hold a conversation's versions, oldest first."""
        lineage = list(reversed(await self.rows(statements.LINEAGE, (conversation,))))
        if not lineage:
            raise ConversationNotFound(conversation)
        parts: list[tuple[int | None, str, int]] = []
        for key, id_, _, last in lineage:
            rows = await self.rows(statements.POSITION_AT, (key, last))
            parts.append((key, id_, rows[0][0] if rows else 0))
        scope = _Scope(conversation, parts)
        if len(lineage) > 1:
            scope.hidden = _hidden(lineage, await self.rows(statements.REDACTIONS, (lineage[-1][3], lineage[-1][0])))
        return scope

    async def _found(self, scope: _Scope, wanted: FactFilter, reached: int, page: int) -> AsyncIterator[_Found]:
        """Iterate over what a scope holds: rows as far as the index reaches, then what is read from the log."""
        for key, id_, last in scope.parts:
            hidden = scope.hidden.get(key, ())
            async for found in self._part(key, id_, last, wanted, reached, page):
                row = found.row
                if wanted.matches(row, found.at) and not (hidden and (row.version in hidden or row.call in hidden)):
                    yield found

    async def _part(  # noqa: PLR0917 - a log, and what is asked of it
        self, key: int | None, id_: str, last: int, wanted: FactFilter, reached: int, page: int
    ) -> AsyncIterator[_Found]:
        given, parameters = _asked(key, wanted)
        statement = statements.page_of_facts(given)
        parameters |= {"after": 0, "number": _LAST, "last": min(last, reached), "page": page}
        while True:
            rows = sorted(await self.rows(statement, parameters)) if wanted.kinds else []
            for row in rows:
                yield _Found(FactRow(*row[:13]), *row[13:])
            if len(rows) < page:
                break
            parameters["after"], parameters["number"] = rows[-1][:2]
        if reached < last:
            async for found in self._scanned(key, id_, reached, last):
                yield found

    async def _scanned(self, key: int | None, id_: str, after: int, last: int) -> AsyncIterator[_Found]:
        """Iterate over the facts of events that the index has not reached, read from the log."""
        ids = {} if key is None else {key: id_}
        while after < last:
            rows = await self.rows(*_events_between(key, after, last))
            there_still = [row for row in rows if row[6]]
            made = {m.position: m for m in await self._answer(facts_of_page(there_still), there_still)}
            there = defaultdict(list)
            for row in await self.rows(statements.DONE_AT, (json.dumps([row[0] for row in rows]),)):
                there[row[0]].append(FactRow(*row))
            for key_ in {row[1] for row in rows} - ids.keys():
                ((ids[key_],),) = await self.rows(statements.ID_OF, (key_,))
            for position, key_, _, at, path, _, checksum in rows:
                for found in _either(made.get(position), there[position], scavenged=not checksum):
                    yield _Found(found, at, path, ids[key_])
            if len(rows) < _SCANNED:
                return
            after = rows[-1][0]

    async def _answer(self, asking: Asking[T], about: Sequence[Row]) -> T:
        """Answer what is asked of the database about some rows, until it asks no more."""
        given: list[Row] | None = None
        while True:
            question, answer = await at_its_size(partial(_next, asking, given), about)
            if question is None:
                return answer[0]
            given = await self.rows(*question)

    async def _coverage(self, conversation: str) -> Coverage:
        """Return what the compactions in force cover in a conversation."""
        compactions: dict[int, CoveredBy] = {}
        reverted: set[int] = set()
        for type_, version, covers, carried, versions in await self.rows(statements.COVERING, (conversation,)):
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


def _covered_by(version: int, covers: str | None, carried: str | None) -> CoveredBy:
    """Read what a compaction covers and what it carries; the checksum of its event is not compared here."""
    covered = json.loads(covers or "{}")
    ranges = [(int(first), int(last)) for first, last in covered.get("ranges", ())]
    summaries, kept = map(int, covered.get("summaries", ())), map(int, json.loads(carried or "[]"))
    return CoveredBy(version, ranges, list(summaries), list(kept))


def _entry(row: Row, first: Row) -> FactEntry:
    """Return a group of facts as one entry: its newest row with its counts, and its first one."""
    kind, subject, failed, times, called, last, _, kept, tool, status, detail, versions, _, at, path = row
    named = kind in NAMED
    if not 0 <= kind < len(KINDS):
        raise StoreCorrupt(f"a fact of version {last} is of the kind {kind}, which does not exist. {_CURE}")
    return FactEntry(
        kind=KINDS[kind],
        subject=subject,
        failed=bool(failed),
        times=times,
        first=first[3],
        last=last,
        path=block_path(kept, path),
        at=_moment(at),
        tool=tool,
        status=status,
        detail=detail,
        repeats=int(called) - first[4] if named else 0,
        versions=tuple(sorted(json.loads(versions))) if versions else (),
    )


def _either(made: Made | None, there: list[FactRow], *, scavenged: bool) -> list[FactRow]:
    """Return the facts of an event that the index has not reached: made anew where its block and its call are there."""
    if scavenged:
        return there
    kept = [row for row in there if row.source]
    if made is None:  # damaged
        return there
    done = made.done if made.resolved else [row for row in there if row.number >= 0 and not row.source]
    return sorted([*made.named, *done, *kept])


def _events_between(key: int | None, after: int, last: int) -> tuple[str, tuple[int, ...]]:
    if key is None:
        return statements.EVENTS_OF_FACTS, (after, last, _SCANNED)
    return statements.EVENTS_OF_FACTS_WITHIN, (key, after, last, _SCANNED)


def _hidden(lineage: Sequence[Row], redactions: Iterable[Row]) -> dict[int | None, set[int]]:
    """Return for each log of a lineage, oldest first, the versions that its descendants in there redact."""
    by_owner: defaultdict[int, list[Row]] = defaultdict(list)
    for row in redactions:
        by_owner[row[0]].append(row)
    hidden: dict[int | None, set[int]] = {}
    so_far: set[int] = set()
    for key, *_ in reversed(lineage):
        hidden[key] = set(so_far)
        so_far |= _redacted(by_owner[key])
    return hidden


def _asked(key: int | None, wanted: FactFilter) -> tuple[frozenset[str], dict[str, Any]]:
    """Return the names of the given conditions, which choose the statement, and its parameters."""
    status = None if wanted.status is None else within(wanted.status)
    texts = {"conversation": key, "tool": wanted.tool, "status": status, "subject": wanted.subject}
    given = {name for name, value in {**texts, "failed": wanted.failed}.items() if value is not None}
    given |= {"time"} if wanted.bounded else set()
    given |= set() if wanted.every_kind else {"kinds"}
    parameters = {
        **texts,
        "key": key,
        "since": wanted.since,
        "until": wanted.until,
        "failed": wanted.failed,
        "kinds": json.dumps(sorted(wanted.kinds)),
    }
    return frozenset(given), parameters


async def _merged(
    sources: Sequence[AsyncIterator[_Found]], scopes: Sequence[_Scope]
) -> AsyncIterator[tuple[_Found, str | None]]:
    """Merge several iterators by position; what two conversations share comes once, under the one that owns it."""
    waiting: list[tuple[int, int, bool, int, _Found]] = []

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
