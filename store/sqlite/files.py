"""Database files: inspect a path, and open its two connections: a thread that writes, and aiosqlite that reads.

A file is inspected before it is opened for writing: a file that is not our store is never changed, not even by the side
files that SQLite makes beside a database in WAL mode.
"""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from threading import Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import aiosqlite

from timeline.databases import application_id, database_uri
from timeline.errors import NotAStore, StoreError

from ..failures import DRIVER_ERRORS, moved, read_only, store_error
from ..migrations import APPLICATION_ID, check_version, migrate, schema_version
from . import statements
from .holding import Held
from .identity import Change, Identity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .writer import Writer


T = TypeVar("T")


async def started(writer: Writer) -> Writer:
    """Wait until a writer has its connection; stop the writer if that fails."""
    try:
        await asyncio.wrap_future(writer.opened)
    except BaseException:
        writer.stop()
        raise
    return writer


async def connect_reader(address: str, file: Path, busy_timeout: float, name: str | None) -> aiosqlite.Connection:
    """Open the connection that reads.

    Args:
        address: the file's URI, of `files.reading_uri`.
        file: names the store in errors.
        busy_timeout: seconds to wait for another process.
        name: the name of the store that the writer has open; None without a writer.

    Raises:
        StoreMoved: the file belongs to another store than the writer's.
        StoreError: the database cannot be opened.
    """
    connection = _in_daemon(
        partial(
            aiosqlite.connect,
            address,
            uri=True,
            isolation_level=None,
            timeout=busy_timeout,
            factory=ReadConnection,
        )
    )
    try:
        await connection
        # Read at once, so that SQLite holds the file for this connection as long as it is open.
        await _check_name(connection, file, name)
    except BaseException as error:
        await connection.close()
        if isinstance(error, DRIVER_ERRORS):
            raise store_error(error, file) from error
        raise
    return connection


async def _check_name(connection: aiosqlite.Connection, file: Path, name: str | None) -> None:
    [(found,)] = await connection.execute_fetchall(statements.STORE)
    if name not in {None, found}:
        raise moved(file, Change.REPLACED)


def _in_daemon(build: Callable[[], T]) -> T:
    """Build an object in a daemon thread: the thread that the object makes for itself is then a daemon too.

    An aiosqlite connection that nobody closes would otherwise keep the interpreter from exiting.
    """
    built: Future[T] = Future()
    Thread(target=lambda: built.set_result(build()), daemon=True).start()
    return built.result()


Durability: TypeAlias = Literal["full", "normal"]
"""``full`` survives a power loss. ``normal`` survives a killed process; a power loss may take the newest appends."""

_SMALLEST_PAGE: Final = 512
_PAUSE: Final = 0.002
"""Seconds between two tries to put a new database in WAL mode."""
_OLDEST_SQLITE: Final = (3, 38, 0)
_WAL_RESET_FIXED: Final = (3, 51, 3)


def advice() -> list[str]:
    """Return warnings about the SQLite library in use; they do not matter while only one process writes to a file."""
    if sqlite3.sqlite_version_info >= _WAL_RESET_FIXED:
        return []
    version = sqlite3.sqlite_version
    race = f"SQLite {version} has a race by which several processes that write to one file at once can damage it"
    return [f"{race} (fixed in 3.51.3). Let one process write to a file, or upgrade SQLite."]


def exists(file: Path, *, readonly: bool) -> bool:
    """Return whether a path holds a store; False where one may be made there (no file, or an empty one).

    Raises:
        NotAStore: the file is not a store.
        StoreError: the path is a folder, or in a missing folder, or may not be read.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old. Use a Python with SQLite 3.38 or later.")
    if file.is_dir():
        raise StoreError(f"{file} is a folder. Name a file in it, for example {file / 'agent.db'}.")
    if not file.parent.is_dir():
        raise StoreError(f"{file}: the folder {file.parent} does not exist. Make it first.")
    found = file.exists() and file.stat().st_size > 0 and _holds_store(file)
    if readonly and not found:
        raise StoreError(f"{file}: there is no store to read. Check the path, or open it without readonly.")
    return found


def _holds_store(file: Path) -> bool:
    if _is_marked(file):
        return True
    try:
        _check_empty(file)
    except StoreError:
        if _is_marked(file):
            return True  # Between the two looks another process was making the store.
        raise
    return False


def _check_empty(file: Path) -> None:
    """Check that a file without our mark is an empty database."""
    # A file shorter than one page is no database, but SQLite would take it for an empty one.
    if file.stat().st_size < _SMALLEST_PAGE:
        raise _not_a_store(file, "it is no SQLite database")
    # Immutable: SQLite takes no lock and makes no side file.
    try:
        with closing(sqlite3.connect(database_uri(file, "mode=ro&immutable=1"), uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except DRIVER_ERRORS as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise _not_a_store(file, "it is no SQLite database") from None
        raise store_error(error, file) from error
    if application or tables:
        raise _not_a_store(file, "it is a SQLite database of something else")


def _is_marked(file: Path) -> bool:
    """Return whether a file's header holds our application id, be it a store that another process is just making."""
    try:
        return application_id(file) == APPLICATION_ID
    except sqlite3.DatabaseError:
        return False  # `_check_empty` reports what is wrong with it.


def _not_a_store(file: Path, problem: str) -> NotAStore:
    return NotAStore(f"{file} is not a timeline store: {problem}. It was not changed.")


def connect_writer(file: Path, durability: Durability, busy_timeout: float) -> Held:
    """Open the connection that writes, and migrate the schema. Runs in the writer's thread.

    Raises:
        StoreReadOnly: the file or its folder may not be written to.
        StoreError: as for `exists`, or the database cannot be opened.
    """
    exists(file, readonly=False)
    try:
        connection = sqlite3.connect(
            database_uri(file, "mode=rwc"), uri=True, isolation_level=None, timeout=busy_timeout
        )
        try:
            opened = file.stat()  # Right after opening: SQLite does not report which file it has open.
            _prepare_writer(connection, file, durability, busy_timeout)
            return Held(connection, Identity(file, opened, connection), file)
        except BaseException:
            connection.close()
            raise
    except DRIVER_ERRORS as error:
        # `exists` has read the file, or it does not exist yet: so it is writing that is not possible.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CANTOPEN:
            raise read_only(file) from error
        raise store_error(error, file) from error


def _prepare_writer(connection: sqlite3.Connection, file: Path, durability: Durability, busy_timeout: float) -> None:
    if schema_version(connection, file) == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # Only possible before the first table.
    migrate(connection, file)
    _write_ahead(connection, busy_timeout)
    for pragma in (
        f"synchronous = {durability.upper()}",
        "foreign_keys = ON",
        "cache_size = -16000",
        "temp_store = MEMORY",
        "journal_size_limit = 67108864",
        "trusted_schema = OFF",
        # The writer checkpoints by itself, after it has acknowledged (see `Writer`); this is the safety net.
        "wal_autocheckpoint = 10000",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _write_ahead(connection: sqlite3.Connection, busy_timeout: float) -> None:
    """Put a database in WAL mode; try again, since two processes that do so at once block each other.

    SQLite's own waiting does not cover this.
    """
    deadline = monotonic() + busy_timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(_PAUSE)
        else:
            return


class ReadConnection(sqlite3.Connection):
    """A connection that cannot write, and that reads damaged text as text, so that the checksum can report it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.text_factory = partial(str, encoding="utf-8", errors="replace")
        for pragma in ("query_only = ON", "cache_size = -16000", "temp_store = MEMORY", "trusted_schema = OFF"):
            self.execute(f"PRAGMA {pragma}")


def reading_uri(file: Path, *, writable: bool) -> str:
    """Choose how to read a file: as a writer could, read-only, or (where no side file can be made) immutable.

    A connection that may write removes the side files when it is the last one to close; a read-only one has to make
    them all the same, and leaves them (https://sqlite.org/walformat.html#the_wal_index). But a connection that may
    write would also copy the events of a write-ahead log into the database, which a store open for reading must not do.
    Beside a writer, which closes last and tidies up, it is read-only, so that it never writes to a file that was
    swapped.

    Args:
        file: the database.
        writable: whether there is a writer.

    Raises:
        StoreError: the file cannot be read, is damaged, or needs a migration or a recovery that may not be written.
    """
    if writable:
        return database_uri(file, "mode=ro")
    exists(file, readonly=True)
    real = file.resolve()  # SQLite's side files are beside the database, not beside a link to it.
    log = real.with_name(f"{real.name}-wal")
    unfinished = log.exists() and log.stat().st_size > 0
    address = database_uri(file, "mode=ro" if unfinished else "mode=rw")
    try:
        _probe(address, file)
    except sqlite3.OperationalError as error:
        # A database in WAL mode needs its side files, and here they can be neither found nor made.
        if unfinished:
            raise StoreError(
                f"{file}: its newest events are still in {log.name}, which cannot be read here. "
                "Copy both files to a folder that may be written to, and open the copy."
            ) from error
        try:
            _probe(database_uri(file, "mode=ro&immutable=1"), file)
        except DRIVER_ERRORS as damage:
            raise store_error(damage, file) from damage
        return database_uri(file, "mode=ro&immutable=1")
    except DRIVER_ERRORS as error:
        raise store_error(error, file) from error
    return address


def _probe(address: str, file: Path) -> None:
    with closing(sqlite3.connect(address, uri=True)) as connection:
        check_version(connection, file)
