# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Facts of a PostgreSQL store: rows that queries catch up from the log, and the queries over them.

An append writes none. A query brings the rows up to the horizon first (`store.postgres.catching_up`).

A redaction takes rows away in its append, without the lock. One that commits while a slice is made is above the
horizon of that slice: the next one takes away what the slice has added, and until then the queries leave it out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from timeline.facts.extracting import BY_USER, FORM
from timeline.log.off_loop import in_thread

from ..column_numbers import LARGEST, within
from ..fact_making import facts_of_page
from ..fact_queries import DatabaseFacts, FactGroup, LocatedFact
from ..facts import NUMBERS, FactFilter, FactRow
from ..frequent_types import RARE_WHERE, RARE_WHERE_OF_E
from ..running_records import RunningRecords
from ..search.scanning import redacted_version
from . import statements
from .catching_up import LAST_OF_ALL, DerivedRows, catch_up, progress_of
from .digests import like
from .escaping import HASH, escaped, joined, key_of, unescaped
from .rows import plain
from .statements import LINEAGE_OF_ID, LINEAGE_OF_KEY, OWN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from timeline.events import Covers

    from ..codec import Row
    from ..fact_making import Asking, FactQuestion
    from ..fact_queries import AskedLog
    from .connections import Connection

T = TypeVar("T")

SLICE: Final = 500
"""Events that are read in one transaction."""
_PATH: Final = f"CASE WHEN path_rest IS NULL THEN coalesce(path, '') ELSE left(path, -{HASH}) || path_rest END"
_PATH_OF_E: Final = _PATH.replace("path", "e.path")
_FACT: Final = (
    "f.position, f.number, f.conversation, f.kind, f.failed, f.status, f.version, f.call, f.subject, f.tool, f.detail,"
    " f.path, f.source"
)
_TEXTS: Final = "(f.subject || ' ' || f.tool || ' ' || f.detail)"
_EVENTS: Final = (
    f"SELECT position, conversation, version, at, {_PATH}, payload, checksum FROM events WHERE {OWN}"
    " AND position > $1 AND position <= $2 AND type = 'block.appended' AND schema_version = 1"
    " ORDER BY position LIMIT $3"
)
_EVENTS_WITHIN: Final = _EVENTS.replace(OWN, "conversation = $4").replace("ORDER BY position", "ORDER BY version")
_REDACTED_BETWEEN: Final = (
    f"SELECT conversation, version, payload FROM events WHERE {OWN} AND type = 'block.redacted' AND {RARE_WHERE}"
    " AND position > $1 AND position <= $2"
)
_KNOWN: Final = f"SELECT DISTINCT position FROM facts WHERE {OWN} AND position > $1 AND position <= $2 AND number >= 0"
_INSERT: Final = (
    "INSERT INTO facts (position, number, conversation, kind, failed, status, version, call, subject, tool, detail,"
    " path, source) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],"
    " $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::text[], $12::text[], $13::bigint[])"
    " ON CONFLICT (tenant, position, number) DO NOTHING"
)
_DROP_OTHER: Final = (
    f"DELETE FROM facts WHERE {OWN} AND source = 0 AND EXISTS (SELECT 1 FROM events AS e"
    " WHERE e.conversation = facts.conversation AND e.position = facts.position AND e.checksum <> '' AND NOT EXISTS"
    " (SELECT 1 FROM events AS c WHERE c.conversation = e.conversation AND c.version = facts.call"
    " AND c.checksum = ''))"
)
_REDACTIONS: Final = (
    f"{LINEAGE_OF_KEY}SELECT e.conversation, e.version, e.payload FROM lineage AS l CROSS JOIN LATERAL"
    " (SELECT e.conversation, e.version, e.payload FROM events AS e WHERE e.conversation = l.key"
    f" AND e.type = 'block.redacted' AND {RARE_WHERE_OF_E} OFFSET 0) AS e WHERE e.version <= l.last"
)
_CALLS_AT: Final = (
    f"{LINEAGE_OF_KEY}SELECT e.path, e.path_rest, e.version, e.payload FROM lineage AS l CROSS JOIN LATERAL"
    " (SELECT path, path_rest, version, payload FROM events WHERE conversation = l.key AND path = ANY($3::text[])"
    " OFFSET 0) AS e WHERE e.version <= l.last"
)
_CALLS: Final = (
    f"{LINEAGE_OF_KEY}SELECT e.version, e.payload FROM lineage AS l CROSS JOIN LATERAL"
    " (SELECT version, payload FROM events WHERE conversation = l.key AND type = 'block.appended'"
    ' AND strpos(payload, \'"type":"react.tool.call"\') > 0 OFFSET 0) AS e WHERE e.version <= l.last'
)
"""Reads all calls of a conversation: only for results that no path leads to a call."""
_POSITION_AT: Final = (
    "SELECT position FROM events WHERE conversation = $1 AND version <= $2 ORDER BY version DESC LIMIT 1"
)
TIME_AT: Final = f"SELECT at FROM events WHERE {OWN} AND conversation = $1 AND position = $2"
_ROWS_AT: Final = f"SELECT {_FACT} FROM facts AS f WHERE f.{OWN} AND f.position = ANY($1::bigint[])"
_ID_OF: Final = "SELECT id FROM conversations WHERE key = $1"
_COVERING: Final = (
    f"{LINEAGE_OF_ID}SELECT e.type, e.version, e.payload FROM lineage AS l CROSS JOIN LATERAL"
    " (SELECT e.type, e.version, e.payload FROM events AS e WHERE e.conversation = l.key"
    f" AND e.type IN ('compaction.completed', 'compaction.reverted') AND {RARE_WHERE_OF_E} OFFSET 0) AS e"
    " WHERE e.version <= l.last"
)
_MEANT: Final = "(f.tool <> '' OR f.detail = $7)"
_NEWEST: Final = "ORDER BY version DESC, position DESC, number"
GROUPS: Final = f"""
SELECT n.kind, n.subject, n.failed, n.times, n.meant, n.version, n.path, n.tool, n.status, n.detail, e.at,
    {_PATH_OF_E}, n.first, n.first_meant, n.versions
FROM (
    SELECT kind, subject, failed, count(*) AS times, count(*) FILTER (WHERE meant) AS meant,
    max(version) AS version, (array_agg(position {_NEWEST}))[1] AS position,
    (array_agg(conversation {_NEWEST}))[1] AS conversation, (array_agg(path {_NEWEST}))[1] AS path,
    (array_agg(tool {_NEWEST}))[1] AS tool, (array_agg(status {_NEWEST}))[1] AS status,
    (array_agg(detail {_NEWEST}))[1] AS detail, min(version) AS first,
    (array_agg(meant::int ORDER BY version, position, number))[1] AS first_meant,
    CASE kind WHEN $8::bigint THEN array_agg(version) END AS versions
    FROM (
        SELECT {_FACT}, {_MEANT} AS meant FROM unnest($1::bigint[], $2::bigint[]) AS p (key, last)
        JOIN facts AS f ON f.conversation = p.key AND f.position <= p.last
        WHERE NOT (f.version = ANY($3::bigint[])) AND (f.call IS NULL OR NOT (f.call = ANY($3::bigint[])))
        AND ($4::bigint[] IS NULL OR f.version = ANY($6::bigint[]) OR EXISTS (
            SELECT 1 FROM unnest($4::bigint[], $5::bigint[]) AS r (first, last)
            WHERE f.version BETWEEN r.first AND r.last))
    ) AS f GROUP BY kind, subject, failed
) AS n
CROSS JOIN LATERAL (
    SELECT at, path, path_rest FROM events
    WHERE {OWN} AND conversation = n.conversation AND position = n.position OFFSET 0
) AS e
"""
"""One pass and no join of groups: before the server has sampled a table it takes them for few, and compares each
with each."""


async def reach(connection: Connection) -> None:
    """Add all events, in the open transaction: before some are removed, their facts are kept.

    Those above the horizon are added without a note that they were: the next slice comes by them once more.
    """
    while await catch_up(connection, ROWS):
        pass
    after = await connection.fetchval(ROWS.reached, FORM)
    until = await connection.fetchval(LAST_OF_ALL)
    while rows := await _events(connection, after, until):
        await _add(connection, rows, after, rows[-1][0])
        after = rows[-1][0]


async def _events(connection: Connection, after: int, until: int) -> list[Row]:
    return [_event(tuple(row)) for row in await connection.fetch(_EVENTS, after, until, SLICE)]


async def _slice(connection: Connection, after: int, until: int) -> tuple[list[Row], int]:
    rows = await _events(connection, after, until)
    return rows, rows[-1][0] if len(rows) == SLICE else max(after, until)


async def _add(connection: Connection, rows: Sequence[Row], after: int, reached: int) -> None:
    """Add the facts of some events, and take away those that were redacted by one of these positions."""
    known = {position for (position,) in await connection.fetch(_KNOWN, after, reached)}
    made = await answer(connection, facts_of_page([row for row in rows if row[6]], known))
    new = [columns(fact) for page in made for fact in chain(page.done, page.named)]
    if new:
        await connection.execute(_INSERT, *map(list, zip(*new, strict=True)))
    for key, gone in _gone(await connection.fetch(_REDACTED_BETWEEN, after, reached)).items():
        await connection.execute(statements.FORGET_FACTS, key, [*gone])


def _gone(redactions: Iterable[Any]) -> dict[int, set[int]]:
    """Return by conversation's key the versions that some redactions name: one of a later version names none."""
    gone: dict[int, set[int]] = {}
    for key, by, payload in redactions:
        version = redacted_version(payload)
        if version is not None and version < by:
            gone.setdefault(key, set()).add(version)
    return gone


ROWS: Final = DerivedRows("facts_progress", FORM, _DROP_OTHER, _slice, _add)
"""The rows of facts, as queries bring them up to the log."""


def columns(fact: FactRow) -> FactRow:
    """Return the columns of a fact as they are stored."""
    return FactRow._make(escaped(value) if isinstance(value, str) else _within(value) for value in fact)


def _within(value: Any) -> Any:
    return within(value) if isinstance(value, int) else value


def _event(row: Sequence[Any]) -> Row:
    position, key, version, at, path, payload, checksum = row
    return (position, key, version, at, unescaped(path), payload, checksum)


def _fact(row: Sequence[Any]) -> FactRow:
    subject, tool, detail = map(unescaped, row[8:11])
    return FactRow._make((*row[:8], subject, tool, detail, plain(row[11]), row[12]))


async def answer(connection: Connection, asking: Asking[T]) -> T:
    """Answer the questions of what makes facts, in the open transaction."""

    async def rows(statement: str, *parameters: Any) -> list[Row]:
        return [tuple(row) for row in await connection.fetch(statement, *parameters)]

    try:
        question = next(asking)
        while True:
            question = asking.send(await _asked(rows, question))
    except StopIteration as answered:
        return answered.value  # type: ignore[no-any-return]


async def _asked(rows: Callable[..., Awaitable[list[Row]]], question: FactQuestion) -> list[Row]:
    about, last, key, listed = question
    match about:
        case "redactions":
            return await rows(_REDACTIONS, key, last)
        case "calls_at":
            found = await rows(_CALLS_AT, key, last, [key_of(path) for path in listed])
            return [(joined(path, rest), version, payload) for path, rest, version, payload in found]
        case "calls_of_ids":
            calls = [(_call_id(payload), version, payload) for version, payload in await rows(_CALLS, key, last)]
            return [call for call in calls if call[0] in listed]


def _call_id(payload: str) -> str | None:
    """Return the id of a call; None where the event is damaged: reading it reports the damage."""
    try:
        found = json.loads(payload)["block"]["call_id"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


@dataclass(frozen=True, slots=True)
class PostgresFacts(DatabaseFacts):
    """The queries of facts on PostgreSQL.

    Attributes:
        rows: runs a statement that reads, and returns all rows.
        running: the records that compactions go on from.
    """

    rows: Callable[..., Awaitable[list[Row]]]
    running: RunningRecords = field(default_factory=RunningRecords)

    async def progress(self) -> tuple[int, int]:
        """Return the position that the rows have reached, and that of the newest event."""
        return await progress_of(self.rows, ROWS)

    async def asked(self, question: FactQuestion) -> list[Row]:
        """Answer what the facts of a page depend on."""
        return await _asked(self.rows, question)

    async def lineage(self, conversation: str) -> list[Row]:
        """Return a conversation and its ancestors, itself first."""
        rows = await self.rows(statements.LINEAGE, key_of(conversation))
        return [(key, unescaped(id_), base, last) for key, id_, base, last, _ in rows]

    async def position_at(self, key: int, version: int) -> int:
        """Return the position of a conversation's newest event up to a version; 0 if it has none."""
        rows = await self.rows(_POSITION_AT, key, version)
        return int(rows[0][0]) if rows else 0

    async def time_at(self, key: int, position: int) -> str | None:
        """Return the time of the event at a position; None if the conversation has none there."""
        rows = await self.rows(TIME_AT, key, position)
        return rows[0][0] if rows else None

    async def page_of_rows(
        self, key: int | None, wanted: FactFilter, after: tuple[int, int], last: int, page: int
    ) -> list[LocatedFact]:
        """Return the rows behind a position and number, by both."""
        conditions, parameters = _conditions(key, wanted)
        statement = (
            f"SELECT f.*, e.at, {_PATH_OF_E}, c.id FROM (SELECT {_FACT} FROM facts AS f WHERE"
            " (f.position, f.number) > ($1::bigint, $2::bigint) AND f.position <= $3"
            f"{conditions} ORDER BY f.position, f.number LIMIT $4) AS f CROSS JOIN LATERAL (SELECT at, path, path_rest"
            f" FROM events WHERE {OWN} AND conversation = f.conversation AND position = f.position OFFSET 0) AS e"
            " JOIN conversations AS c ON c.key = f.conversation ORDER BY f.position, f.number"
        )
        rows = await self.rows(statement, *after, last, page, *parameters)
        return [LocatedFact(_fact(row), row[13], unescaped(row[14]), unescaped(row[15])) for row in rows]

    async def events_between(self, key: int | None, after: int, last: int, most: int) -> list[Row]:
        """Return the appended blocks behind a position, by it, scavenged ones too."""
        if key is None:
            return [_event(row) for row in await self.rows(_EVENTS, after, last, most)]
        return [_event(row) for row in await self.rows(_EVENTS_WITHIN, after, last, most, key)]

    async def rows_at(self, positions: Sequence[int]) -> list[FactRow]:
        """Return the rows of some events."""
        return [_fact(row) for row in await self.rows(_ROWS_AT, list(positions))]

    async def id_of(self, key: int) -> str | None:
        """Return the id of a conversation; None if it was erased meanwhile."""
        rows = await self.rows(_ID_OF, key)
        return unescaped(rows[0][0]) if rows else None

    async def redacted_since(self, reached: int) -> Mapping[int, Collection[int]]:
        """Return by conversation's key the versions whose rows may not have gone yet, though they were redacted."""
        return _gone(await self.rows(_REDACTED_BETWEEN, reached, LARGEST))

    async def covering(self, conversation: str) -> list[Row]:
        """Return the compactions of a conversation and its ancestors, and what undid some."""
        rows = await self.rows(_COVERING, key_of(conversation))
        return [(type_, version, *_covered(payload)) for type_, version, payload in rows]

    async def groups(
        self, parts: Sequence[AskedLog], hidden: Collection[int], covers: Covers | None
    ) -> list[FactGroup]:
        """Return the rows of some logs as groups, by kind, subject and outcome."""
        firsts = lasts = None
        if covers is not None:
            firsts, lasts = [first for first, _ in covers.ranges], [last for _, last in covers.ranges]
        rows = await self.rows(
            GROUPS,
            [part.key for part in parts],
            [part.last for part in parts],
            sorted(hidden),
            firsts,
            lasts,
            [] if covers is None else list(covers.summaries),
            BY_USER,
            NUMBERS["request"],
        )
        # A log of a million tokens has thousands of them: the event loop would stand still for 200 ms.
        return await in_thread(lambda: sorted(map(_group, rows), key=lambda group: group[:3]))


def _group(row: Row) -> FactGroup:
    kind, subject, failed, times, meant, last, kept, tool, status, detail, *rest = row
    at, path, first, first_meant, versions = rest
    own = (last, plain(kept), unescaped(tool), status, unescaped(detail), at, unescaped(path))
    return FactGroup(kind, unescaped(subject), failed, times, meant, *own, first, first_meant, versions or ())


def _covered(payload: str) -> tuple[str | None, ...]:
    """Return the JSON of what an event covers, of what it carries and of what it undoes; damaged ones have none."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return (None, None, None)
    return tuple(json.dumps(value[name]) if name in value else None for name in ("covers", "carried", "versions"))


def _conditions(key: int | None, wanted: FactFilter) -> tuple[str, list[Any]]:
    """Write the given conditions, with their parameters from the fifth on."""
    given: list[tuple[str, Any]] = [(f"f.{OWN}", None) if key is None else ("f.conversation = {}", key)]
    if not wanted.every_kind:
        given.append(("f.kind = ANY({}::bigint[])", sorted(wanted.kinds)))
    if wanted.failed is not None:
        given.append(("f.failed = {}", int(wanted.failed)))
    if wanted.tool is not None:
        given.append(("f.tool = {}", escaped(wanted.tool)))
    if wanted.exit_status is not None:
        given.append(("f.status = {}", within(wanted.exit_status)))
    given += _texts(wanted)
    if wanted.bounded:
        at = f"EXISTS (SELECT 1 FROM events AS t WHERE t.{OWN} AND t.position = f.position AND t.at"
        given += [(at + " >= {})", wanted.since), (at + " <= {})", wanted.until)]
    text, parameters = "", []
    for condition, value in given:
        if value is not None:
            parameters.append(value)
        text += " AND " + (condition if value is None else condition.format(f"${len(parameters) + 4}"))
    return text, parameters


def _texts(wanted: FactFilter) -> Iterator[tuple[str, str]]:
    """Yield the given conditions on texts; they find too much, never too little, and `FactFilter` decides."""
    if wanted.subject is not None:
        yield "strpos(f.subject, {}) > 0", escaped(wanted.subject)
    if wanted.glob is not None:
        yield "f.subject LIKE {}", like(wanted.glob.coarse)
    if wanted.query is not None and wanted.query.letters is not None:
        # Of what is not all ASCII the server may not know the lower case.
        yield f"(strpos(lower({_TEXTS}), {{}}) > 0 OR {_TEXTS} ~ '[^\\x01-\\x7f]')", wanted.query.letters
