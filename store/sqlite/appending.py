"""Append on one SQLite connection: the functions that the writer thread runs, transaction included.

The function that begins a transaction also ends it, out of reach of any cancellation. Nothing here uses
threads or asyncio.

First the head of each log is read, to place appends in it; then the placed batches are written:
conversations, values, snapshots, the events, and the rows of digests. Many batches cost little more than one: their
events are inserted together, and each conversation's row is written once.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.errors import TimelineError, VersionConflict
from timeline.frozen import sha256_hex
from timeline.ports import Appended

from .. import append_rules
from ..digests import rows_of
from ..failures import CommitFailed
from ..sealing import seal
from . import digest_rows, facts, statements, waypoints
from .log_head import NOWHERE, SQLiteLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..codec import Batch

_LARGE: Final = 1_000_000
"""A payload of more characters is not held in memory while SQLite writes its own copy."""


class PlacedBatch(NamedTuple):
    """A batch, its log, and the versions of its events; batches of one log share the log object."""

    batch: Batch
    log: SQLiteLog
    first: int
    last: int


class _HandedOver:
    """A payload that is dropped once SQLite has its own copy, since a large one would be held twice meanwhile."""

    def __init__(self, payload: str) -> None:
        self._payload = payload

    def __conform__(self, protocol: object) -> str:
        del protocol  # sqlite3's own: it asks for something that it can bind
        payload, self._payload = self._payload, ""
        return payload


def _rows(batch: Batch, log: SQLiteLog, first: int) -> list[Any]:
    """Return the columns of a batch's rows, one row behind the other, each linked behind the one before.

    A list for all rows: a tuple for each would cost as much as binding it.
    """
    key = log.key
    columns: list[Any] = []
    sealed = seal(batch, first - 1, log.head)
    versions = range(first, first + len(batch.drafts))  # `chain.stored` is inlined below: a call a row costs time
    for version, draft, hashed, salt, c, link in zip(versions, batch.drafts, *sealed, strict=True):
        columns += (key, version, *draft, hashed, salt, c if salt is None else None, link)
    log.head = sealed.links[-1]
    return columns


def _rows_handed_over(batch: Batch, log: SQLiteLog, first: int) -> list[Any]:
    """Return the columns of a batch's rows, and take the large payloads out of the batch."""
    columns = _rows(batch, log, first)
    batch.drafts[:] = [draft._replace(payload="") if len(draft.payload) > _LARGE else draft for draft in batch.drafts]
    return [_HandedOver(value) if isinstance(value, str) and len(value) > _LARGE else value for value in columns]


def insert(
    connection: sqlite3.Connection,
    placed: Sequence[PlacedBatch],
    rows: Callable[[Batch, SQLiteLog, int], list[Any]] = _rows,
) -> list[Appended]:
    """Write batches in the open transaction; batches of one log come in the order of their versions.

    Args:
        connection: has the transaction.
        placed: the batches.
        rows: makes the rows of a batch, of its log and the version of its first event.

    Raises:
        sqlite3.IntegrityError: an id or a path is in use; the caller must roll back what was written before.
    """
    # New conversations first: they get their keys here, which every other row refers to.
    _open_new(connection, placed)
    parameters: list[Any] = []
    for batch, log, first, _ in placed:
        if batch.values:
            connection.executemany(statements.INSERT_VALUES, batch.values.items())
        if batch.snapshot is not None:
            version, window_start, body = batch.snapshot
            connection.execute(statements.REPLACE_SNAPSHOT, (log.key, version, body, sha256_hex(body)))
            connection.execute(statements.UPDATE_WINDOW_START, (window_start, log.key))
            waypoints.write(connection, log.key, batch.conversation, batch.snapshot)
        parameters += rows(batch, log, first)
    position = _insert_rows(connection, statements.INSERT_EVENTS, parameters)
    position -= sum([len(part.batch.drafts) for part in placed])
    _update_conversations(connection, placed)
    appended = []
    for batch, log, first, last in placed:
        position += last - first + 1
        appended.append(Appended(first, last, position))
        for opening in batch.openings:
            if opening.opens(first):
                connection.execute(statements.SET_OPENING, (opening.title, opening.parent, log.key))
        if gone := [version for number, version in batch.redacted if version < first + number]:
            facts.forget(connection, log.key, gone)
        for number, payload in batch.compactions:
            digest_rows.write(connection, log.key, rows_of(first + number, batch.drafts[number].at, payload))
    return appended


def _open_new(connection: sqlite3.Connection, placed: Sequence[PlacedBatch]) -> None:
    """Open the new conversations in the order in which they came: their keys keep it, and they are listed by it."""
    for batch, log, _, _ in placed:
        if log.key == NOWHERE:
            log.key = _open(connection, batch, log, (log.version, batch.drafts[-1].at))
        elif log.unchained:
            log.chain()


def _update_conversations(connection: sqlite3.Connection, placed: Sequence[PlacedBatch]) -> None:
    """Write the row of each conversation once, as it is after its newest event."""
    newest = {part.log: part for part in placed}
    rows = [(part.last, part.batch.drafts[-1].at, log.head, log.key) for log, part in newest.items()]
    connection.executemany(statements.UPDATE_CONVERSATION, rows)


def _open(connection: sqlite3.Connection, batch: Batch, log: SQLiteLog, end: tuple[int, str]) -> int:
    version, updated_at = end
    opened = (batch.conversation, version, batch.title, batch.parent, batch.drafts[0].at, updated_at)
    shared = (log.parent_key, log.base, log.first_version)
    key = connection.execute(statements.INSERT_CONVERSATION, (*opened, *shared)).lastrowid
    assert key is not None  # noqa: S101 - an INSERT that did not raise has a row
    return key


def append_nothing(connection: sqlite3.Connection, conversation: str) -> Appended:
    """Answer an append without events with the end of the log."""
    log = SQLiteLog(connection, conversation)
    return Appended(log.version + 1, log.version, log.last_position())


def append(connection: sqlite3.Connection, batch: Batch) -> Appended:
    """Append a batch in a transaction of its own, or raise and leave nothing behind.

    ``BEGIN IMMEDIATE``: SQLite refuses a transaction that reads first and writes later at once, without waiting for the
    busy timeout.

    Raises:
        TimelineError: the batch was refused, see `EventStore.append`.
        sqlite3.Error: the database failed; nothing was written.
        CommitFailed: the commit failed; the batch may be found after a crash.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if any(len(draft.payload) > _LARGE for draft in batch.drafts):
            appended = _append_large(connection, batch)
        else:
            appended = _append(connection, batch, _begin_again)
        _commit(connection)
    finally:
        _roll_back(connection)
    return appended


def append_all(connection: sqlite3.Connection, batches: Sequence[Batch]) -> list[Appended | Exception]:
    """Append batches, in order, in one transaction; return the place of each, or the error that refused it.

    A refused batch leaves the others alone. Where the database itself fails to write one of them (a full disk, say),
    the state of the transaction is unknown: it is rolled back, and each batch gets one of its own.

    Raises:
        sqlite3.Error: the transaction could not be begun or committed; nothing was written.
        CommitFailed: the commit failed; all of them may be found after a crash.
    """
    if len(batches) < 2:
        return [_alone(connection, batch) for batch in batches]
    connection.execute("BEGIN IMMEDIATE")
    try:
        try:
            outcomes = _at_once(connection, batches) or [_one_of_many(connection, batch) for batch in batches]
        except Exception:  # noqa: BLE001 - a transaction for each batch then shows which one failed
            _roll_back(connection)
            return [_alone(connection, batch) for batch in batches]
        _commit(connection)
    finally:
        _roll_back(connection)
    return outcomes


def append_within(connection: sqlite3.Connection, batch: Batch) -> Appended:
    """Append a batch in the transaction that is open, which the caller rolls back on any error.

    Raises:
        TimelineError: the batch was refused, see `EventStore.append`.
        sqlite3.Error: the database failed.
    """
    if not batch.drafts:
        return append_nothing(connection, batch.conversation)
    placed = _place(connection, batch)
    if isinstance(placed, Appended):
        return placed
    (appended,) = insert(connection, [placed])
    return appended


def _commit(connection: sqlite3.Connection) -> None:
    """Commit the open transaction.

    Raises:
        sqlite3.Error: nothing was committed: the transaction is still open, or a page found no room in the log.
        CommitFailed: SQLite rolled back by itself, and what it wrote of the transaction may be whole in the log.
    """
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        # A page that found no room is missing in the log; no later one was written, so the commit is not there.
        full = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
        if connection.in_transaction or full:
            raise
        raise CommitFailed from error


def _alone(connection: sqlite3.Connection, batch: Batch) -> Appended | Exception:
    try:
        return append(connection, batch)
    except TimelineError as refusal:
        return _without_frames(refusal)
    except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for the batch
        return error


def _without_frames(refusal: TimelineError) -> TimelineError:
    """Return a refusal without its frames: these hold the batches, whose waiting callers hold the refusal."""
    error: BaseException | None = refusal
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
    return refusal


def _at_once(connection: sqlite3.Connection, batches: Sequence[Batch]) -> list[Appended | Exception] | None:
    """Write all batches as one, at a fraction of the cost; None where one of them must be placed by itself."""
    placed = _at_the_ends(connection, batches)
    if placed is None:
        return None
    connection.execute("SAVEPOINT batch")
    try:
        outcomes: list[Appended | Exception] = [*insert(connection, placed)]
    except sqlite3.IntegrityError:
        connection.execute("ROLLBACK TO batch")
        return None
    return outcomes


def _at_the_ends(connection: sqlite3.Connection, batches: Sequence[Batch]) -> list[PlacedBatch] | None:
    """Place batches that continue the ends of their logs, or each other; None where one does not."""
    logs: dict[str, SQLiteLog] = {}
    placed: list[PlacedBatch] = []
    for batch in batches:
        log = logs.get(batch.conversation)
        if log is None:
            log = logs[batch.conversation] = SQLiteLog(connection, batch.conversation)
        try:
            after = append_rules.starting_version(batch, log)
        except VersionConflict:
            return None
        opens_fork = batch.fork is not None and log.version == 0
        to_check = batch.snapshot is not None and log.first_version > 1
        if after < log.version or opens_fork or to_check or (log.base and log.shared(batch.paths)):
            return None
        log.version += len(batch.drafts)
        placed.append(PlacedBatch(batch, log, after + 1, log.version))
    return placed


def _one_of_many(connection: sqlite3.Connection, batch: Batch) -> Appended | Exception:
    """Append one batch of several, or roll it back alone."""
    connection.execute("SAVEPOINT batch")
    try:
        outcome: Appended | Exception = _append(connection, batch, _back_to_savepoint)
    except TimelineError as refusal:
        outcome = _without_frames(refusal)
    connection.execute("RELEASE batch")
    return outcome


def _place(connection: sqlite3.Connection, batch: Batch) -> PlacedBatch | Appended:
    """Place a batch behind its log, or find its place if the log has it already."""
    log = SQLiteLog(connection, batch.conversation)
    after = append_rules.starting_version(batch, log)
    if after < log.version:
        return append_rules.repetition(batch, log, after)
    if batch.fork is not None and log.key == NOWHERE:
        log.fork_off(batch.fork)
    log.check_snapshot(batch)
    if log.base and log.shared(batch.paths) and (known := append_rules.collision(batch, log)):
        return known
    return PlacedBatch(batch, log, log.version + 1, log.version + len(batch.drafts))


def _append_large(connection: sqlite3.Connection, batch: Batch) -> Appended:
    """Append a batch with a large payload, in the transaction of this batch alone.

    Known ids and paths are looked up first: the payloads are gone after the insert, so it could not be tried again.
    """
    placed = _place(connection, batch)
    if isinstance(placed, Appended):
        return placed
    if known := append_rules.collision(batch, placed.log):
        return known
    (appended,) = insert(connection, [placed], _rows_handed_over)
    return appended


def _append(
    connection: sqlite3.Connection,
    batch: Batch,
    undo: Callable[[sqlite3.Connection], None],
) -> Appended:
    placed = _place(connection, batch)
    if isinstance(placed, Appended):
        return placed
    try:
        (appended,) = insert(connection, [placed])
    except sqlite3.IntegrityError:
        # Insert first: the unique indexes find known ids and paths, so that an append pays for no look-up of its own.
        # Only a refused one is looked up, after its rows are rolled back.
        undo(connection)
        known = append_rules.collision(batch, SQLiteLog(connection, batch.conversation))
        if known is None:
            raise
        return known
    return appended


def _begin_again(connection: sqlite3.Connection) -> None:
    connection.execute("ROLLBACK")
    connection.execute("BEGIN IMMEDIATE")


def _back_to_savepoint(connection: sqlite3.Connection) -> None:
    connection.execute("ROLLBACK TO batch")


def _roll_back(connection: sqlite3.Connection) -> None:
    # Only inside a transaction: a full disk rolls back by itself, and a commit leaves nothing to roll back.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _insert_rows(connection: sqlite3.Connection, by_rows: Mapping[int, str], parameters: Sequence[Any]) -> int:
    """Insert rows, and return the rowid of the last one; ``executemany`` would take half as long again.

    Args:
        connection: has the transaction.
        by_rows: the statements by the number of rows that they insert, largest first, down to 1.
        parameters: those of all rows, one behind the other: a tuple for each row would cost as much as binding it.
    """
    columns = by_rows[1].count("?")
    start, last = 0, 0
    for rows, statement in by_rows.items():
        size = rows * columns
        while len(parameters) - start >= size:
            last = connection.execute(statement, parameters[start : start + size]).lastrowid or 0
            start += size
    return last
