"""Writing batches whose places are settled: conversations, values, snapshots, the events, and the rows of digests.

Many batches cost little more than one: their events go in together, and each conversation's row is written once.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from timeline.frozen import sha256_hex
from timeline.ports import Appended

from ..digests import rows_of
from . import digest_tables, statements
from .heads import NOWHERE

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from ..codec import Batch, Row
    from .heads import SQLiteLog


class Placed(NamedTuple):
    """A batch, the log that it goes to, and the versions of its events; batches of one log share the object."""

    batch: Batch
    log: SQLiteLog
    first: int
    last: int


def insert(connection: sqlite3.Connection, placed: Sequence[Placed]) -> list[Appended]:
    """Write batches in the open transaction; those of one log follow each other in the order of their versions.

    Raises:
        sqlite3.IntegrityError: an id or a path is in use; what was written before that is for the caller to undo.
    """
    _write_conversations(connection, placed)
    rows: list[Row] = []
    for batch, log, first, _ in placed:
        if batch.values:
            connection.executemany(statements.INSERT_VALUES, batch.values.items())
        if batch.snapshot is not None:
            version, window_start, body = batch.snapshot
            connection.execute(statements.REPLACE_SNAPSHOT, (log.key, version, body, sha256_hex(body)))
            connection.execute(statements.UPDATE_WINDOW_START, (window_start, log.key))
        rows += [
            (log.key, version, *draft, draft.checksum(batch.conversation, version))
            for version, draft in enumerate(batch.drafts, first)
        ]
    for some, statement in _in_statements(rows):
        connection.execute(statement, list(chain.from_iterable(some)))
    # Asked now, when the newest row of the connection is the newest event. RETURNING would cost a third.
    (position,) = connection.execute(statements.LAST_POSITION).fetchone()
    position -= len(rows)
    appended = []
    for batch, log, first, last in placed:
        position += last - first + 1
        appended.append(Appended(first, last, position))
        for number, payload in batch.compactions:
            digest_tables.write(connection, log.key, rows_of(first + number, batch.drafts[number].at, payload))
    return appended


def _in_statements(rows: list[Row]) -> Iterator[tuple[list[Row], str]]:
    start = 0
    for size, statement in statements.INSERT_EVENTS.items():
        while len(rows) - start >= size:
            yield rows[start : start + size], statement
            start += size


def _write_conversations(connection: sqlite3.Connection, placed: Sequence[Placed]) -> None:
    """Write the row of each conversation once, as it is after its newest event."""
    opening = {part.log: part.batch for part in reversed(placed)}
    rows = []
    for log, newest in {part.log: part for part in placed}.items():
        at = newest.batch.drafts[-1].at
        if log.key != NOWHERE:
            rows.append((newest.last, at, log.key))
        else:
            log.key = _open(connection, opening[log], log, (newest.last, at))
    connection.executemany(statements.UPDATE_CONVERSATION, rows)


def _open(connection: sqlite3.Connection, batch: Batch, log: SQLiteLog, end: tuple[int, str]) -> int:
    version, updated_at = end
    created_at = batch.drafts[0].at
    row = (batch.conversation, version, batch.title, batch.parent, created_at, updated_at, log.parent_key, log.base)
    key = connection.execute(statements.INSERT_CONVERSATION, row).lastrowid
    assert key is not None  # noqa: S101 - an INSERT that did not raise has a row
    return key
