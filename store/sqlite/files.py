"""Database files: inspect a path, and open the connection that writes.

A file is inspected before it is opened for writing: a file that is not our store is never changed, not even by the side
files that SQLite makes beside a database in WAL mode.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, TypeVar

from timeline.databases import application_id, database_uri
from timeline.errors import NotAStore, StoreError

from ..failures import DRIVER_ERRORS, Unseen, hard_linked, moved, store_error, unopened, unwritable
from ..migrations import APPLICATION_ID, migrate, schema_version
from ..private_files import make_private
from . import statements
from .chaining import chain_slice, is_unchained
from .connection import Connection
from .foreign_logs import check_log
from .holding import BoundConnection, Guest
from .identity import Change, Identity
from .lock_files import LOCKS_FILES
from .transactions import set_pragma
from .turns import Turn

if TYPE_CHECKING:
    from pathlib import Path

    from ..durability import Durability
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


_SMALLEST_PAGE: Final = 512
_PAUSE: Final = 0.002
"""Seconds between two tries to put a new database in WAL mode."""
_NOT_FOR_WRITING: Final = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
_OLDEST_SQLITE: Final = (3, 38, 0)
WAL_RESET_FIXED: Final = (3, 51, 3)


def advice() -> list[str]:
    """Return warnings about the SQLite library in use where processes cannot take turns at a file; see `turns`."""
    if LOCKS_FILES or sqlite3.sqlite_version_info >= WAL_RESET_FIXED:
        return []
    version = sqlite3.sqlite_version
    race = f"SQLite {version} has a race by which several processes that write to one file at once can damage it"
    return [f"{race} (fixed in 3.51.3), and this platform has no flock. Let one process write, or upgrade SQLite."]


def exists(file: Path, *, readonly: bool) -> bool:
    """Return whether a path holds a store; False where one may be made there (no file, or an empty one).

    Raises:
        NotAStore: the file is not a store.
        StoreError: the path is a folder, or leads to a missing folder or nowhere, or may not be read, or the file has
            a second name.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old. Use a Python with SQLite 3.38 or later.")
    try:
        with suppress(FileNotFoundError):  # A store may be made there.
            file.stat()
    except OSError as error:
        raise StoreError(
            f"{file}: it cannot be looked at ({error.strerror}). Check the path and its folders."
        ) from error
    if file.is_dir():
        raise StoreError(f"{file} is a folder. Name a file in it, for example {file / 'agent.db'}.")
    if not (folder := file.resolve().parent).is_dir():
        raise StoreError(f"{file}: the folder {folder} does not exist. Make it first.")
    if file.exists() and file.stat().st_nlink > 1:
        raise hard_linked(file)
    found = file.exists() and file.stat().st_size > 0 and _holds_store(file)
    if readonly and not found:
        raise StoreError(
            f"{file}: there is no store to read. Check the path; in Python, open it without readonly to make one."
        )
    return found


def check_working_directory(file: Path) -> None:
    """Check that a relative path leads somewhere: the folder in which a long program began may be gone.

    Raises:
        StoreError: the working directory was removed.
    """
    try:
        file.absolute()
    except FileNotFoundError as error:
        cure = "Change to a folder that is there, or give the whole path."
        raise StoreError(f"{file}: the working directory was removed, so that this leads nowhere. {cure}") from error


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
        raise _not_a_store(file, "it is not a SQLite database")
    # Immutable: SQLite takes no lock and makes no side file.
    try:
        with closing(sqlite3.connect(database_uri(file, "mode=ro&immutable=1"), uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except DRIVER_ERRORS as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise _not_a_store(file, "it is not a SQLite database") from None
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
    return NotAStore(f"{file} is not a timeline store: {problem}. It was not changed; name another file.")


def connect_writer(file: Path, durability: Durability, busy_timeout: float) -> BoundConnection:
    """Open the connection that writes, and migrate the schema. Runs in the writer's thread.

    Raises:
        StoreReadOnly: the file or its folder may not be written to.
        StoreError: as for `exists`, or the database cannot be opened.
    """
    exists(file, readonly=False)
    try:
        turn = Turn(file, busy_timeout)
    except OSError as error:
        raise unwritable(error, file) from error
    try:
        with turn:
            check_log(file)
            _make_if_missing(file)
            held = _opened_writer(file, durability, busy_timeout, turn)
    except BaseException:
        turn.close()
        raise
    try:
        # What earlier releases wrote, each slice in a turn of its own, so that other processes go on meanwhile.
        while held.run(is_unchained):
            held.write(chain_slice)
    except BaseException as error:
        held.close()
        if isinstance(error, DRIVER_ERRORS):
            raise store_error(error, file) from error
        if isinstance(error, Unseen):
            raise error.problem from error
        raise
    return held


def connect_beside(file: Path, busy_timeout: float, name: str) -> BoundConnection:
    """Open a second connection that writes what is derived from the log, while a writer has the file open.

    It waits for no disk: what a power loss takes of it is made again.

    Args:
        file: the database.
        busy_timeout: seconds to wait for the turn.
        name: the name of the store that the writer has open.

    Raises:
        StoreMoved: another store is in the file's place.
        StoreError: the database cannot be opened.
    """
    try:
        turn = Turn(file, busy_timeout)
        with turn:
            connection = sqlite3.connect(
                database_uri(file, "mode=rw"), uri=True, isolation_level=None, timeout=busy_timeout, factory=Connection
            )
            try:
                _set(connection, "normal")
                return Guest(connection, _identity_of(file, connection, name), turn, file)
            except BaseException:
                connection.close()
                turn.close()
                raise
    except DRIVER_ERRORS as error:
        raise store_error(error, file) from error
    except OSError as error:
        raise unwritable(error, file) from error


def _identity_of(file: Path, connection: sqlite3.Connection, name: str) -> Identity:
    identity = Identity(file, file.stat(), connection)
    if identity.store != name:
        raise moved(file, Change.REPLACED)
    return identity


def _make_if_missing(file: Path) -> None:
    """Make a file that only its owner may read, where there is none; who may read one that is there is not ours to say.

    Raises:
        StoreReadOnly: it may not be made.
    """
    try:
        make_private(file.resolve())
    except FileExistsError:
        return
    except OSError as error:
        raise unwritable(error, file) from error


def _opened_writer(file: Path, durability: Durability, busy_timeout: float, turn: Turn) -> BoundConnection:
    try:
        connection = sqlite3.connect(
            database_uri(file, "mode=rwc"), uri=True, isolation_level=None, timeout=busy_timeout, factory=Connection
        )
        try:
            opened = file.stat()  # Right after opening: SQLite does not report which file it has open.
            _prepare_writer(connection, file, durability, busy_timeout)
            return BoundConnection(connection, Identity(file, opened, connection), turn, file)
        except BaseException:
            connection.close()
            raise
    except DRIVER_ERRORS as error:
        # `exists` has read the file, or it does not exist yet: so it is writing that is not possible.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_FOR_WRITING:
            raise unopened(file) from error
        raise store_error(error, file) from error


def _prepare_writer(connection: sqlite3.Connection, file: Path, durability: Durability, busy_timeout: float) -> None:
    if schema_version(connection, file) == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # Only possible before the first table.
    migrate(connection, file)
    _write_ahead(connection, busy_timeout)
    _set(connection, durability)
    _check_may_write(connection)


def _check_may_write(connection: sqlite3.Connection) -> None:
    """Write nothing: SQLite opens a file for reading where the system did not open it for writing, without a word."""
    with set_pragma(connection, "busy_timeout", "0"):
        try:
            connection.execute(statements.WRITE_NOTHING)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:  # another program writes, and so may this one
                raise


def _set(connection: sqlite3.Connection, durability: Durability) -> None:
    for pragma in (
        f"synchronous = {durability.upper()}",
        # On macOS, a plain fsync ends when the drive has the bytes in a cache, which it may write in any order.
        f"fullfsync = {'ON' if durability == 'full' else 'OFF'}",
        "checkpoint_fullfsync = ON",  # with "normal", too: what a power loss takes then damages nothing
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
