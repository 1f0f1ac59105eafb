"""Open the connection that reads: an aiosqlite connection, beside a writer or alone.

A store that is only read may still be the first to open a database, which recovers what a killed process left, or the
last to close it, which may copy its write-ahead log: both in turns, as a writer does it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import aiosqlite

from timeline.databases import database_uri
from timeline.errors import StoreCorrupt, StoreError
from timeline.log.uncancelled import run_uncancelled

from ..failures import DRIVER_ERRORS, RESTORE, moved, store_error
from ..migrations import check_version, schema_version
from . import statements
from .connection import Connection, keep_from_forks
from .files import exists
from .foreign_logs import check_log
from .holding import log
from .identity import Change
from .turns import Turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Check: TypeAlias = Callable[[sqlite3.Connection, Path], object]
    """Raises for a store that is not to be read."""

T = TypeVar("T")


async def open_beside(file: Path, busy_timeout: float, name: str) -> aiosqlite.Connection:
    """Open the connection that reads beside a writer.

    Read-only: the writer closes last and tidies up, so that this one never writes to a file that was swapped.

    Args:
        file: the database.
        busy_timeout: seconds to wait for another process.
        name: the name of the store that the writer has open.

    Raises:
        StoreMoved: the file belongs to another store than the writer's.
        StoreError: the database cannot be opened.
    """
    return await _opened(database_uri(file, "mode=ro"), file, busy_timeout, ReadConnection, name)


async def open_alone(file: Path, busy_timeout: float) -> aiosqlite.Connection:
    """Open a connection that reads where this store has no writer.

    Raises:
        StoreLocked: the turn to open it did not come.
        StoreError: there is no store, or it cannot be read, or not without a migration.
    """
    turns: list[Turn | None] = []
    try:
        # Each to its end: a thread that goes on behind a cancelled opening would make a turn that nobody closes, or use
        # one that is closed.
        await run_uncancelled(asyncio.to_thread(lambda: turns.append(_turn(file, busy_timeout))))
        [turn] = turns
        address = await run_uncancelled(asyncio.to_thread(_address, file, turn, check_version))
        factory = ReadConnection if turn is None else partial(LoneReadConnection, turn)
        return await _opened(address, file, busy_timeout, factory, None)
    except BaseException:
        for turn in turns:
            if turn is not None:
                turn.close()
        raise


def connect_alone(file: Path, busy_timeout: float) -> Connection:
    """Open a connection that reads a store of any schema that is known, for use in this thread.

    Raises:
        StoreLocked: the turn to open it did not come.
        StoreError: there is no store, or it cannot be read.
    """
    turn = _turn(file, busy_timeout)
    try:
        address = _address(file, turn, schema_version)
        factory = ReadConnection if turn is None else partial(LoneReadConnection, turn)
        return sqlite3.connect(address, uri=True, isolation_level=None, timeout=busy_timeout, factory=factory)  # type: ignore[arg-type]
    except BaseException as error:
        if turn is not None:
            turn.close()
        if isinstance(error, DRIVER_ERRORS):
            raise store_error(error, file) from error
        raise


async def _opened(
    address: str, file: Path, busy_timeout: float, factory: Callable[..., ReadConnection], name: str | None
) -> aiosqlite.Connection:
    connect = partial(aiosqlite.connect, address, uri=True, isolation_level=None, timeout=busy_timeout, factory=factory)
    connection = _in_daemon(connect)
    keep_from_forks(connection)

    async def connected() -> None:
        await connection

    try:
        # To its end: nobody could close a connection that aiosqlite was still opening when it was cancelled, and it
        # would outlive the writer's, which removes the log.
        await run_uncancelled(connected())
        # Read at once, so that SQLite holds the file for this connection as long as it is open.
        await _check_name(connection, file, name)
    except BaseException as error:
        await run_uncancelled(connection.close())
        if isinstance(error, DRIVER_ERRORS):
            raise store_error(error, file) from error
        raise
    return connection


async def _check_name(connection: aiosqlite.Connection, file: Path, name: str | None) -> None:
    found = [stored for (stored,) in await connection.execute_fetchall(statements.STORE)]
    if len(found) != 1:
        raise StoreCorrupt(f"{file}: the store has lost its name. {RESTORE}.")
    if name not in {None, found[0]}:
        raise moved(file, Change.REPLACED)


def _in_daemon(build: Callable[[], T]) -> T:
    """Build an object in a daemon thread: the thread that the object makes for itself is then a daemon too.

    An aiosqlite connection that nobody closes would otherwise keep the interpreter from exiting.
    """
    built: Future[T] = Future()
    Thread(target=lambda: built.set_result(build()), daemon=True).start()
    return built.result()


class ReadConnection(Connection):
    """A connection that cannot write, and that reads damaged text as text, so that the checksum can report it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.text_factory: Any = partial(str, encoding="utf-8", errors="replace")
        try:
            for pragma in ("query_only = ON", "cache_size = -16000", "temp_store = MEMORY", "trusted_schema = OFF"):
                self.execute(f"PRAGMA {pragma}")
            self.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except BaseException:
            Connection.close(self)  # The error would hold it open, and its locks with it.
            raise


class LoneReadConnection(ReadConnection):
    """A read connection without a writer in its store, opened and closed in turns."""

    def __init__(self, turn: Turn, *args: Any, **kwargs: Any) -> None:
        self._turn = turn
        with turn:
            super().__init__(*args, **kwargs)

    def close(self) -> None:
        """Close it in a turn; without one if that does not come: then another connection is still open."""
        try:
            with self._turn:
                super().close()
        except StoreError as late:
            log.warning("%s", late)
            super().close()
        self._turn.close()


def _turn(file: Path, patience: float) -> Turn | None:
    """Return the turns of a store that is only read.

    None where the lock files can be neither found nor made: there no connection can write either.

    Raises:
        StoreError: there is no store to read.
    """
    exists(file, readonly=True)
    try:
        return Turn(file, patience)
    except OSError:
        return None


def _address(file: Path, turn: Turn | None, check: Check) -> str:
    """Choose how to read a file that passes a check: as a writer could, read-only, or, without side files, immutable.

    A connection that may write removes the side files when it is the last one to close; a read-only one has to make
    them all the same, and leaves them (https://sqlite.org/walformat.html#the_wal_index). But a connection that may
    write would also copy the events of a write-ahead log into the database, which a store open for reading must not do.

    Raises:
        StoreError: the file cannot be read, is damaged, or needs a migration or a recovery that may not be written.
    """
    if turn is None:
        return _probed(file, check)
    with turn:
        return _probed(file, check)


def _probed(file: Path, check: Check) -> str:
    check_log(file)
    real = file.resolve()  # SQLite's side files are beside the database, not beside a link to it.
    written = real.with_name(f"{real.name}-wal")
    unfinished = written.exists() and written.stat().st_size > 0
    address = database_uri(file, "mode=ro" if unfinished else "mode=rw")
    try:
        _probe(address, file, check)
    except sqlite3.OperationalError as error:
        # A database in WAL mode needs its side files, and here they can be neither found nor made.
        if unfinished:
            raise StoreError(
                f"{file}: its newest events are still in {written.name}, which cannot be read here. "
                "Copy both files to a folder that may be written to, and open the copy."
            ) from error
        try:
            _probe(database_uri(file, "mode=ro&immutable=1"), file, check)
        except DRIVER_ERRORS as damage:
            raise store_error(damage, file) from damage
        return database_uri(file, "mode=ro&immutable=1")
    except DRIVER_ERRORS as error:
        raise store_error(error, file) from error
    return address


def _probe(address: str, file: Path, check: Check) -> None:
    with closing(sqlite3.connect(address, uri=True, factory=Connection)) as connection:
        check(connection, file)
