"""Carry the rows that were mended on a private copy into the store itself, batch by batch: appends go on in between.

The copy shows one moment. Later appends have rows of their own, which no batch touches. If the rows of older events
change (by a redaction, an undo, a scavenge, an erasure), the next batch notices that in its transaction: it writes
nothing, and a new copy is made. After a kill between two batches, the finished batches stay mended, and the rest is as
it was.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from timeline.facts.extracting import FORM as FACT_FORM

from . import bases, conversation_rows, mending, query_statements, sources, statements
from .search import catch_up
from .transactions import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from timeline.ports import Finding

Batch: TypeAlias = "Callable[[sqlite3.Connection], int | None]"
"""A short transaction; it returns how far it came, or None where the copy differs from what the store holds now."""

_TABLES: Final = {"digests": ("compactions", "digest_entries"), "facts": ("facts",)}
"""The tables of what is derived, by its name; what rows refer to comes first."""
_ROWS: Final = 1_000
"""Rows of a table that a batch compares: some ten milliseconds where all of them have to be written anew."""


@dataclass(frozen=True, slots=True)
class Mended:
    """A copy on which all was mended that can be.

    Attributes:
        copy: its connection.
        found: what was mended there, and what was not.
        marks: values that change when the rows of older events do.
        head: the position of its newest event.
        beyond: by table, the positions of rows at which there can be no event.
    """

    copy: sqlite3.Connection
    found: list[Finding]
    marks: tuple[Any, ...]
    head: int
    beyond: dict[str, list[int]]
    _using: Lock = field(default_factory=Lock)

    def run(self, batch: Batch, connection: sqlite3.Connection) -> int | None:
        """Run a batch, which may read the copy."""
        with self._using:
            return batch(connection)

    def close(self) -> None:
        """Close the copy once no batch runs; a batch may still run whose caller was cancelled."""
        with self._using:
            self.copy.close()


def mended(copy: sqlite3.Connection, where: str) -> Mended:
    """Mend a copy, and note what it takes to carry that into the store.

    Raises:
        sqlite3.Error: not even the log can be read.
    """
    ((head,),) = copy.execute(statements.HEAD_POSITION)
    beyond = {table: _beyond(copy, table, head) for tables in _TABLES.values() for table in tables}
    found = mending.mend(copy, where)
    return Mended(copy, found, _marks(copy), head, beyond)


def _beyond(copy: sqlite3.Connection, table: str, head: int) -> list[int]:
    with suppress(sqlite3.DatabaseError):  # the mending reports it
        rows = copy.execute(f"SELECT DISTINCT position FROM {table} WHERE position < 1 OR position > ?", (head,))  # noqa: S608
        return [position for (position,) in rows]
    return []


def _marks(connection: sqlite3.Connection) -> tuple[Any, ...]:
    return tuple(connection.execute(query_statements.REWRITTEN_SINCE).fetchone())


def batches(mended: Mended) -> Generator[Batch, int]:
    """Yield the batches for the writer, one after another; each is answered with what it returned."""
    wrong = {each.what for each in mended.found if each.derivable}
    if "file" in wrong:
        yield _pages
    yield from (batch for what, batch in _AT_ONCE.items() if what in wrong)
    if "conversations" in wrong:
        yield from _rows_of_conversations()
    for what, tables in _TABLES.items():
        if what in wrong:
            yield from _carried(mended, tables)
    if "facts" in wrong:
        yield partial(_facts_reach, mended=mended)
    if "search" in wrong:
        yield from _indexed_anew(mended.head)


def _rows_of_conversations() -> Generator[Batch, int]:
    reached = 0
    while reached >= 0:
        reached = yield partial(_conversations, after=reached)


def _indexed_anew(head: int) -> Generator[Batch, int]:
    yield _drop_index
    reached = 0
    while reached < head:
        reached = yield partial(catch_up, until=head)


def _pages(connection: sqlite3.Connection) -> int:
    mending.mend_file(connection)
    return 0


def _schema(connection: sqlite3.Connection) -> int:
    mending.mend_schema(connection)
    return 0


def _settings(connection: sqlite3.Connection) -> int:
    sources.mend_settings(connection)
    return 0


def _bases(connection: sqlite3.Connection) -> int:
    bases.mend(connection)
    return 0


def _conversations(connection: sqlite3.Connection, after: int) -> int:
    with transaction(connection):
        _, reached = conversation_rows.mend_some(connection, after)
    return reached


def _stray_waypoints(connection: sqlite3.Connection) -> int:
    """Drop the snapshots of the past that belong to no conversation: no fold would ever replace them."""
    connection.execute(statements.DROP_STRAY_WAYPOINTS)
    return 0


def _drop_index(connection: sqlite3.Connection) -> int:
    mending.drop_index(connection)
    return 0


_AT_ONCE: Final[dict[str, Batch]] = {
    "schema": _schema,
    "settings": _settings,
    "bases": _bases,
    "waypoints": _stray_waypoints,
}
"""The parts that are mended in one transaction each, in this order: the tables first."""


# --- rows ---------------------------------------------------------------------------------------------------------


def _carried(mended: Mended, tables: tuple[str, ...]) -> Generator[Batch, int]:
    yield partial(_drop_beyond, mended=mended, tables=tables)
    reached = 0
    while reached < mended.head:
        reached = yield partial(_carry, mended=mended, tables=tables, after=reached)


def _carry(connection: sqlite3.Connection, mended: Mended, tables: tuple[str, ...], after: int) -> int | None:
    """Give the rows of a span of positions the content that they have in the copy; return the last position of it."""
    ends = (_end(each, table, after, mended.head) for each in (connection, mended.copy) for table in tables)
    last = min(ends)
    with _deferring(connection):
        if _marks(connection) != mended.marks:
            return None
        rows = {table: _rows(mended.copy, table, after, last) for table in tables}
        wrong = [table for table in tables if _rows(connection, table, after, last) != rows[table]]
        for table in reversed(wrong):
            connection.execute(f"DELETE FROM {table} WHERE position > ? AND position <= ?", (after, last))  # noqa: S608
        for table in wrong:
            holes = ", ".join("?" * len(rows[table][0])) if rows[table] else ""
            connection.executemany(f"INSERT INTO {table} VALUES ({holes})", rows[table])  # noqa: S608
    return last


def _end(connection: sqlite3.Connection, table: str, after: int, head: int) -> int:
    found = connection.execute(
        f"SELECT position FROM {table} WHERE position > ? AND position <= ? ORDER BY position LIMIT 1 OFFSET ?",  # noqa: S608
        (after, head, _ROWS),
    ).fetchone()
    return head if found is None else int(found[0])


def _rows(connection: sqlite3.Connection, table: str, after: int, last: int) -> list[tuple[Any, ...]]:
    statement = f"SELECT * FROM {table} WHERE position > ? AND position <= ? ORDER BY 1, 2, 3"  # noqa: S608
    with _reading_damage(connection):
        return connection.execute(statement, (after, last)).fetchall()


def _drop_beyond(connection: sqlite3.Connection, mended: Mended, tables: tuple[str, ...]) -> int | None:
    """Remove rows that were at the place of no event, and still are."""
    with _deferring(connection):
        if _marks(connection) != mended.marks:
            return None
        for table in reversed(tables):
            connection.executemany(
                f"DELETE FROM {table} WHERE position = ?1 AND NOT EXISTS (SELECT 1 FROM events WHERE position = ?1)",  # noqa: S608
                [(position,) for position in mended.beyond[table]],
            )
    return 0


def _facts_reach(connection: sqlite3.Connection, mended: Mended) -> int | None:
    """Record how far the facts reach, where the record of it does not say at least that."""
    with transaction(connection):
        if _marks(connection) != mended.marks:
            return None
        stored = connection.execute("SELECT form, position FROM facts_progress").fetchall()
        ((head,),) = connection.execute(statements.HEAD_POSITION)
        if len(stored) != 1 or stored[0][0] != FACT_FORM or not mended.head <= stored[0][1] <= head:
            connection.execute(query_statements.FORGET_FACTS_PROGRESS)
            connection.execute(query_statements.SET_FACTS_PROGRESS, (FACT_FORM, mended.head))
    return 0


@contextmanager
def _deferring(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction in which rows may refer to rows that come later in it."""
    with transaction(connection):
        connection.execute("PRAGMA defer_foreign_keys = ON")
        yield


@contextmanager
def _reading_damage(connection: sqlite3.Connection) -> Iterator[None]:
    """Read text that is not UTF-8, too: it differs from any that is."""
    before, connection.text_factory = connection.text_factory, partial(str, encoding="utf-8", errors="replace")
    try:
        yield
    finally:
        connection.text_factory = before
