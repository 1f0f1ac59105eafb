"""Appends on one SQLite connection: the functions that the writer thread runs, transaction and all.

The code that begins a transaction ends it, in one call, out of reach of any cancellation. Nothing here knows of
threads or of asyncio.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from timeline.errors import TimelineError, VersionConflict
from timeline.ports import Appended

from .. import append_rules
from .heads import NOWHERE, SQLiteLog
from .inserting import Placed, insert

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..codec import Batch


def append_nothing(connection: sqlite3.Connection, conversation: str) -> Appended:
    """Answer an append without events: say where the log ends."""
    log = SQLiteLog(connection, conversation)
    return Appended(log.version + 1, log.version, log.last_position())


def append(connection: sqlite3.Connection, batch: Batch) -> Appended:
    """Append a batch in a transaction of its own, or raise and leave nothing behind.

    ``BEGIN IMMEDIATE``, because a transaction that reads first and then wants to write is refused at once, without
    waiting for the busy timeout.

    Raises:
        TimelineError: the batch was refused, as `EventStore.append` says.
        sqlite3.Error: the database could not do it; nothing was written.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        appended = _append(connection, batch, _begin_again)
        connection.execute("COMMIT")
    finally:
        _roll_back(connection)
    return appended


def append_all(connection: sqlite3.Connection, batches: Sequence[Batch]) -> list[Appended | Exception]:
    """Append batches, in order, in one transaction; return for each where it went, or why it was refused.

    One that is refused takes nothing of the others with it. Where the database itself cannot write one of them (the
    disk is full, say), nobody can tell what is left of the transaction: it is rolled back, and each batch gets one of
    its own.

    Raises:
        sqlite3.Error: the transaction could not be begun, or not be committed; nothing was written.
    """
    if len(batches) < 2:
        return [_alone(connection, batch) for batch in batches]
    connection.execute("BEGIN IMMEDIATE")
    try:
        try:
            outcomes = _at_once(connection, batches) or [_one_of_many(connection, batch) for batch in batches]
        except Exception:  # noqa: BLE001 - whose it is shows when each has a transaction of its own
            _roll_back(connection)
            return [_alone(connection, batch) for batch in batches]
        connection.execute("COMMIT")
    finally:
        _roll_back(connection)
    return outcomes


def _alone(connection: sqlite3.Connection, batch: Batch) -> Appended | Exception:
    try:
        return append(connection, batch)
    except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for the batch
        return error


def _at_once(connection: sqlite3.Connection, batches: Sequence[Batch]) -> list[Appended | Exception] | None:
    """Write all batches as if they were one, which costs a fraction; None: one of them needs a closer look."""
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


def _at_the_ends(connection: sqlite3.Connection, batches: Sequence[Batch]) -> list[Placed] | None:
    """Place batches that follow the ends of their logs, and each other; None: there is one that does not."""
    logs: dict[str, SQLiteLog] = {}
    placed: list[Placed] = []
    for batch in batches:
        log = logs.get(batch.conversation)
        if log is None:
            log = logs[batch.conversation] = SQLiteLog(connection, batch.conversation)
        try:
            after = append_rules.starting_version(batch, log)
        except VersionConflict:
            return None
        opens_fork = batch.fork is not None and log.version == 0
        if after < log.version or opens_fork or (log.base and log.shared(batch.paths)):
            return None
        log.version += len(batch.drafts)
        placed.append(Placed(batch, log, after + 1, log.version))
    return placed


def _one_of_many(connection: sqlite3.Connection, batch: Batch) -> Appended | Exception:
    """Append one batch of several, or take it back alone."""
    connection.execute("SAVEPOINT batch")
    try:
        outcome: Appended | Exception = _append(connection, batch, _back_to_savepoint)
    except TimelineError as refusal:
        outcome = refusal
    connection.execute("RELEASE batch")
    return outcome


def _append(connection: sqlite3.Connection, batch: Batch, undo: Callable[[sqlite3.Connection], None]) -> Appended:
    log = SQLiteLog(connection, batch.conversation)
    after = append_rules.starting_version(batch, log)
    if after < log.version:
        return append_rules.repetition(batch, log, after)
    if batch.fork is not None and log.key == NOWHERE:
        log.fork_off(batch.fork)
    if log.base and log.shared(batch.paths) and (known := append_rules.collision(batch, log)):
        return known
    try:
        (appended,) = insert(connection, [Placed(batch, log, log.version + 1, log.version + len(batch.drafts))])
    except sqlite3.IntegrityError:
        # The unique indexes look for known ids and paths, so that an append pays for no look-up of its own. What
        # they refused is looked up now, without the rows that are in already.
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
    # A full disk rolls back by itself, and after a commit there is nothing left to do.
    if connection.in_transaction:
        connection.execute("ROLLBACK")
