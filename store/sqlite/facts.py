"""Facts of a SQLite store: rows that queries catch up from the log, and the queries over them.

An append writes no facts: an agent waits for it, and perhaps nobody ever asks for them. A query, a compaction or a
removal first brings the rows up to the head, a slice at a time; between slices the writer serves its queue. A reader
that may not write reads the rest from the log. Earlier releases wrote some of the rows with the append; these are used
as they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any, Final, TypeVar

from timeline.errors import StoreCorrupt
from timeline.facts.extracting import BY_USER, FORM
from timeline.log.collector import collector_at_rest
from timeline.log.off_loop import in_thread

from ..column_numbers import within
from ..fact_making import facts_of_page
from ..fact_queries import DatabaseFacts, FactGroup, LocatedFact
from ..facts import NUMBERS, FactFilter, FactRow, proof_of_rows
from ..running_records import CURE, RunningRecords
from . import query_statements, statements
from .slices import slice_of
from .transactions import transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from timeline.events import Covers

    from ..codec import Row
    from ..fact_making import Asking, FactQuestion
    from ..fact_queries import AskedLog

T = TypeVar("T")

SLICE: Final = 256 * 1024
"""Characters of stored events after which a slice ends: some 50 ms of the writer's time."""
MOST_EVENTS: Final = 2_000


# --- the writer ---------------------------------------------------------------------------------------------------


def forget(connection: sqlite3.Connection, key: int, versions: Collection[int]) -> int:
    """Remove the facts that redacted blocks made known, name, or had a part in as calls; return how many."""
    of_blocks = {"key": key, "versions": json.dumps([*versions])}
    connection.execute(query_statements.UNPROVE_FACTS, of_blocks)
    return connection.execute(query_statements.FORGET_FACTS, of_blocks).rowcount


def proof_of(connection: sqlite3.Connection, position: int, link: bytes) -> bytes:
    """Return what vouches for the facts of an event that is scavenged; see `proof_of_rows`."""
    return proof_of_rows(link, connection.execute(query_statements.FACTS_AT, (position,)).fetchall())


def catch_up(connection: sqlite3.Connection, until: int) -> int:
    """Add one slice of the events up to a position, in one transaction; return the position that was reached.

    Raises:
        sqlite3.Error: the database failed; nothing was added.
    """
    with transaction(connection):
        return _add_slice(connection, until)


def reach(connection: sqlite3.Connection, until: int) -> None:
    """Add all events up to a position, in the open transaction: before some are removed, their facts are kept."""
    progress = connection.execute(query_statements.FACTS_PROGRESS, (FORM,)).fetchone()
    reached = 0 if progress is None else progress[0]
    while reached < until:
        reached = _add_slice(connection, until)


def _add_slice(connection: sqlite3.Connection, until: int) -> int:
    progress = connection.execute(query_statements.FACTS_PROGRESS, (FORM,)).fetchone()
    if progress is None:
        connection.execute(query_statements.DROP_OTHER_FACTS)
        connection.execute(query_statements.FORGET_FACTS_PROGRESS)
    after: int = 0 if progress is None else progress[0]
    found = connection.execute(query_statements.EVENTS_OF_FACTS, (after, until, MOST_EVENTS))
    rows, cut = slice_of(found, text=5, size=SLICE, most=MOST_EVENTS)
    reached = rows[-1][0] if cut else max(after, until)
    known = {position for (position,) in connection.execute(query_statements.KNOWN_BETWEEN, (after, reached))}
    with collector_at_rest():  # the rows of a slice are gone when they are stored
        made = _answer(connection, facts_of_page([row for row in rows if row[6]], known))
        connection.executemany(
            query_statements.REPLACE_FACT, chain.from_iterable((*page.done, *page.named) for page in made)
        )
        del made
    connection.execute(query_statements.SET_FACTS_PROGRESS, (FORM, reached))
    return reached


def _answer(connection: sqlite3.Connection, asking: Asking[T]) -> T:
    try:
        question = next(asking)
        while True:
            question = asking.send(connection.execute(*_statement(question)).fetchall())
    except StopIteration as answered:
        return answered.value  # type: ignore[no-any-return]


# --- the readers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SQLiteFacts(DatabaseFacts):
    """The queries of facts on one SQLite file.

    Attributes:
        rows: runs a statement on the reading connection and returns all rows.
        running: the records that compactions go on from.
    """

    rows: Callable[[str, Sequence[Any] | Mapping[str, Any]], Awaitable[list[Row]]]
    running: RunningRecords = field(default_factory=RunningRecords)

    async def progress(self) -> tuple[int, int]:
        """Return the position that the index has reached, and that of the newest event."""
        rows = await self.rows(query_statements.FACTS_PROGRESS, (FORM,))
        ((last,),) = await self.rows(query_statements.LAST_OF_ALL, ())
        return (int(rows[0][0]) if rows else 0), last or 0

    async def asked(self, question: FactQuestion) -> list[Row]:
        """Answer what the facts of a page depend on."""
        return await self.rows(*_statement(question))

    async def lineage(self, conversation: str) -> list[Row]:
        """Return a conversation and its ancestors, itself first."""
        return await self.rows(statements.LINEAGE, (conversation,))

    async def position_at(self, key: int, version: int) -> int:
        """Return the position of a conversation's newest event up to a version; 0 if it has none."""
        rows = await self.rows(query_statements.POSITION_AT, (key, version))
        return int(rows[0][0]) if rows else 0

    async def time_at(self, key: int, position: int) -> str | None:
        """Return the time of the event at a position; None if the conversation has none there."""
        rows = await self.rows(query_statements.TIME_AT, (position, key))
        return rows[0][0] if rows else None

    async def page_of_rows(
        self, key: int | None, wanted: FactFilter, after: tuple[int, int], last: int, page: int
    ) -> list[LocatedFact]:
        """Return the rows behind a position and number, by both."""
        given, parameters = _asked(key, wanted)
        parameters |= {"after": after[0], "number": after[1], "last": last, "page": page}
        rows = sorted(await self.rows(query_statements.page_of_facts(given), parameters))
        return [LocatedFact(FactRow(*row[:13]), *row[13:]) for row in rows]

    async def events_between(self, key: int | None, after: int, last: int, most: int) -> list[Row]:
        """Return the appended blocks behind a position, by it, scavenged ones too."""
        if key is None:
            return await self.rows(query_statements.EVENTS_OF_FACTS, (after, last, most))
        bounds = {"key": key, "after": after, "last": last, "most": most}
        return await self.rows(query_statements.EVENTS_OF_FACTS_WITHIN, bounds)

    async def rows_at(self, positions: Sequence[int]) -> list[FactRow]:
        """Return the rows of some events."""
        return [FactRow(*row) for row in await self.rows(query_statements.DONE_AT, (json.dumps(positions),))]

    async def id_of(self, key: int) -> str | None:
        """Return the id of a conversation; None if it was erased meanwhile."""
        rows = await self.rows(statements.ID_OF, (key,))
        return str(rows[0][0]) if rows else None

    async def redacted_since(self, reached: int) -> Mapping[int, Collection[int]]:  # noqa: ARG002
        """Return nothing: a redaction's append takes the rows away, and one writer at a time adds any."""
        return {}

    async def covering(self, conversation: str) -> list[Row]:
        """Return the compactions of a conversation and its ancestors, and what undid some."""
        return await self.rows(query_statements.COVERING, (conversation,))

    async def groups(
        self, parts: Sequence[AskedLog], hidden: Collection[int], covers: Covers | None
    ) -> list[FactGroup]:
        """Return the rows of some logs as groups."""
        parameters = {
            "parts": json.dumps([(part.key, part.last) for part in parts]),
            "hidden": json.dumps(sorted(hidden)),
            "covers": None if covers is None else json.dumps(covers.ranges),
            "summaries": json.dumps([] if covers is None else covers.summaries),
            "by_user": BY_USER,
        }
        rows = await self.rows(query_statements.MERGED_FACTS, parameters | {"request": NUMBERS["request"]})
        firsts = await self.rows(query_statements.FIRST_FACTS, parameters)
        if len(rows) != len(firsts):
            raise StoreCorrupt(f"facts of events that are not there are in the index of facts. {CURE}")
        # A log of a million tokens has thousands of them: the event loop would stand still for 200 ms.
        return await in_thread(lambda: list(starmap(_group, zip(rows, firsts, strict=True))))


def _group(row: Row, first: Row) -> FactGroup:
    kind, subject, failed, times, meant, last, _, kept, tool, status, detail, versions, _, at, path = row
    oldest, oldest_meant = first[3:]
    asked = json.loads(versions or "[]")
    newest = (last, kept, tool, status, detail, at, path)
    return FactGroup(kind, subject, failed, times, int(meant), *newest, oldest, oldest_meant, asked)


def _statement(question: FactQuestion) -> tuple[str, tuple[Any, ...]]:
    about, last, key, listed = question
    match about:
        case "redactions":
            return query_statements.REDACTIONS, (last, key)
        case "calls_at":
            return query_statements.CALLS_AT, (last, key, json.dumps(listed))
        case "calls_of_ids":
            return query_statements.CALLS_OF_IDS, (last, key, json.dumps(listed))


def _asked(key: int | None, wanted: FactFilter) -> tuple[frozenset[str], dict[str, Any]]:
    """Return the names of the given conditions, which choose the statement, and its parameters."""
    status = None if wanted.exit_status is None else within(wanted.exit_status)
    texts = {
        "conversation": key,
        "tool": wanted.tool,
        "status": status,
        "subject": wanted.subject,
        "glob": wanted.glob and wanted.glob.coarse,
        "word": wanted.query and wanted.query.letters,
    }
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
