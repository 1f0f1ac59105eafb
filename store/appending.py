"""One append on one SQLite connection: the function that the writer thread runs, transaction and all.

The code that begins the transaction ends it, in one call, out of reach of any cancellation. Nothing here knows of
threads or of asyncio.
"""

from __future__ import annotations

import json
import sqlite3
from itertools import chain
from typing import TYPE_CHECKING, Final

from timeline.frozen import sha256_hex
from timeline.ports import Appended

from . import digest_tables, placing, statements
from .digests import rows_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from .codec import Batch, Draft, ForkPoint, Row

_NOWHERE: Final = 0


class SQLiteLog:
    """What a conversation's stored events say of themselves; see `placing.Log`. ``key`` is 0 if there is none."""

    def __init__(self, connection: sqlite3.Connection, conversation: str) -> None:
        self._connection = connection
        head = connection.execute(statements.HEAD, (conversation,)).fetchone()
        self.key: int
        self.version: int
        self.base: int
        self.parent_key: int | None
        self.key, self.version, self.base, self.parent_key = head or (_NOWHERE, 0, 0, None)

    def fork_off(self, fork: ForkPoint) -> None:
        """Put a conversation that is about to be opened behind what it shares with its parent.

        Raises:
            ConversationNotFound, HistoryUnavailable: as `placing.check_fork` says.
        """
        parent = SQLiteLog(self._connection, fork.parent)
        placing.check_fork(fork, parent.version)
        self.parent_key, self.version, self.base = parent.key, fork.version, fork.version

    def events(self, first: int, last: int) -> Sequence[tuple[str, str, int]]:
        """Return ``(event id, checksum, position)`` of a range of versions."""
        return self._connection.execute(statements.STORED_BETWEEN, (self.key, first, last)).fetchall()

    def versions_of(self, ids: Collection[str]) -> dict[str, int]:
        """Return the versions of those ids that the log holds."""
        return dict(self._connection.execute(statements.VERSIONS_OF_IDS, (json.dumps(list(ids)), self.key)))

    def taken(self, paths: Collection[str]) -> set[str]:
        """Return those of the paths that are in use, shared ones too."""
        return self.shared(paths) if self.key == _NOWHERE else self._in_use(paths, self.version, self.key)

    def shared(self, paths: Collection[str]) -> set[str]:
        """Return those of the paths that are in use in what a fork shares with its parent."""
        return self._in_use(paths, self.base, self.parent_key) if self.base else set()

    def _in_use(self, paths: Collection[str], last: int, key: int | None) -> set[str]:
        rows = self._connection.execute(statements.PATHS_IN_USE, (last, key, json.dumps(list(paths))))
        return {path for (path,) in rows}

    def last_position(self) -> int:
        """Return the position of the newest event; 0 if there is none."""
        newest = self.events(self.version, self.version)
        return newest[0][2] if newest else 0


def append(connection: sqlite3.Connection, batch: Batch) -> Appended:
    """Append a batch in one transaction, or raise and leave nothing behind.

    ``BEGIN IMMEDIATE``, because a transaction that reads first and then wants to write is refused at once, without
    waiting for the busy timeout.

    Raises:
        VersionConflict, DuplicateEvent, PathTaken: as `EventStore.append` says.
        sqlite3.Error: the database could not do it; nothing was written.
    """
    if not batch.drafts:
        log = SQLiteLog(connection, batch.conversation)
        return Appended(log.version + 1, log.version, log.last_position())
    connection.execute("BEGIN IMMEDIATE")
    try:
        appended = _append(connection, batch)
        connection.execute("COMMIT")
    finally:
        # A full disk rolls back by itself; then there is nothing left to do.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return appended


def _append(connection: sqlite3.Connection, batch: Batch) -> Appended:
    log = SQLiteLog(connection, batch.conversation)
    after = placing.starting_version(batch, log)
    if after < log.version:
        return placing.repetition(batch, log, after)
    if batch.fork is not None and log.key == _NOWHERE:
        log.fork_off(batch.fork)
    if log.shared(batch.paths) and (known := placing.collision(batch, log)):
        return known
    try:
        return _write(connection, batch, log)
    except sqlite3.IntegrityError:
        # The unique indexes look for known ids and paths, so that an append pays for no look-up of its own. What
        # they refused is looked up now, in a transaction without the rows that are in already.
        connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        appended = placing.collision(batch, SQLiteLog(connection, batch.conversation))
        if appended is None:
            raise
        return appended


def _write(connection: sqlite3.Connection, batch: Batch, log: SQLiteLog) -> Appended:
    first, last = log.version + 1, log.version + len(batch.drafts)
    key = _write_conversation(connection, batch, log, last)
    if batch.values:
        connection.executemany(statements.INSERT_VALUES, batch.values.items())
    if batch.snapshot is not None:
        version, window_start, body = batch.snapshot
        connection.execute(statements.REPLACE_SNAPSHOT, (key, version, body, sha256_hex(body)))
        connection.execute(statements.UPDATE_WINDOW_START, (window_start, key))
    rows = [
        (key, version, *draft, draft.checksum(batch.conversation, version))
        for version, draft in enumerate(batch.drafts, first)
    ]
    for some, statement in _in_statements(rows):
        connection.execute(statement, list(chain.from_iterable(some)))
    # Written last, so that the newest row of the connection is the newest event. RETURNING would cost a third.
    (position,) = connection.execute(statements.LAST_POSITION).fetchone()
    for number, payload in batch.compactions:
        digest_tables.write(connection, key, rows_of(first + number, batch.drafts[number].at, payload))
    return Appended(first, last, position)


def _in_statements(rows: list[Row]) -> Iterator[tuple[list[Row], str]]:
    start = 0
    for size, statement in statements.INSERT_EVENTS.items():
        while len(rows) - start >= size:
            yield rows[start : start + size], statement
            start += size


def _write_conversation(connection: sqlite3.Connection, batch: Batch, log: SQLiteLog, version: int) -> int:
    newest: Draft = batch.drafts[-1]
    if log.key != _NOWHERE:
        connection.execute(statements.UPDATE_CONVERSATION, (version, newest.at, log.key))
        return log.key
    created = batch.drafts[0].at
    row = (batch.conversation, version, batch.title, batch.parent, created, newest.at, log.parent_key, log.base)
    new_key = connection.execute(statements.INSERT_CONVERSATION, row).lastrowid
    assert new_key is not None  # noqa: S101 - an INSERT that did not raise has a row
    return new_key
