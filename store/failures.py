"""Translate SQLite's errors into `timeline.errors`: one line that names the file and the cure."""

from __future__ import annotations

import errno
import os
import sqlite3
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from timeline.errors import (
    ConversationNotFound,
    InvalidArgument,
    SearchUnavailable,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreMoved,
    StoreReadOnly,
)

from .column_numbers import LARGEST
from .private_files import make_private
from .sqlite.cut_off import length_before

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from .sqlite.identity import Change

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
_NOT_ALLOWED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
RESTORE: Final = "Put a backup in its place with `timeline restore FILE`"
"""The cure of what nothing makes anew."""

_LOCKED: Final = (StoreLocked, "another process is writing to it. Nothing was written; try again when it is done")
_READ_ONLY: Final = (
    StoreReadOnly,
    "it may not be written to. Make the file and its folder writable; nothing was written",
)
_FULL: Final = (StoreFull, "the disk or the database is full. What was stored is intact; free some space and try again")
_CORRUPT: Final = (
    StoreCorrupt,
    f"the database is damaged. {RESTORE}, or, where it still opens, export what reads with `timeline export --all`",
)
_LOST_TABLE: Final = f"a table of the store is missing. {RESTORE}"
_IO: Final = (
    StoreError,
    "the disk or its file system failed. What was acknowledged is stored; check the disk, try again",
)
_UNOPENABLE: Final = (StoreError, "it cannot be opened. Check that the file and its folder may be read")

_MORE_FILES: Final = "close files or raise the limit of open ones (`ulimit -n`)"

_BY_CODE: Final[dict[int, tuple[type[StoreError], str]]] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_IOERR_BLOCKED: _LOCKED,
    sqlite3.SQLITE_IOERR_LOCK: _LOCKED,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: _FULL,  # there is no room for the index of the write-ahead log
    sqlite3.SQLITE_CORRUPT: _CORRUPT,
    sqlite3.SQLITE_NOTADB: _CORRUPT,
    sqlite3.SQLITE_FORMAT: _CORRUPT,
    sqlite3.SQLITE_IOERR_CORRUPTFS: _CORRUPT,
    sqlite3.SQLITE_IOERR_SHORT_READ: _CORRUPT,
    sqlite3.SQLITE_IOERR: _IO,
    sqlite3.SQLITE_CANTOPEN: _UNOPENABLE,
    sqlite3.SQLITE_TOOBIG: (StoreError, "a text is longer than SQLite can hold. Nothing was written; split the block"),
}
"""By extended code, else by primary code (the low byte); see https://sqlite.org/rescode.html."""


class InDoubt(Exception):
    """The commit of an append failed, and nobody knows whether it is in the log.

    Attributes:
        known: what is known of the events, and what to do first.
    """

    def __init__(self, problem: str, known: str) -> None:
        self.known = known
        super().__init__(problem)


class CommitFailed(Exception):
    """A COMMIT failed after its pages may have reached the write-ahead log; its cause is the driver's error.

    SQLite has rolled the transaction back for every open connection. But where the last page of the transaction is in
    the log, and only its flush failed, say, whichever connection next recovers the log finds the transaction whole.
    """


class Unseen(Exception):
    """Work is done, and nobody can see whether in the file that the path names.

    Attributes:
        result: what the work returned.
        problem: why the file cannot be looked at.
    """

    def __init__(self, result: object, problem: StoreError) -> None:
        self.result = result
        self.problem = problem
        super().__init__(str(problem))


DRIVER_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""The driver's exceptions; the second one comes when it quotes damaged text in a message of its own."""
_NO_UTF8: Final = "it holds text that is no UTF-8"
_UNDECODED: Final = "Could not decode to UTF-8"
"""What the driver says, without a code, of a column of damaged text; it quotes all of that."""


def damage_said(error: Exception) -> str:
    """Return what an error says of damage, without the text of a column that the driver quotes."""
    return _NO_UTF8 if isinstance(error, UnicodeDecodeError) or _UNDECODED in str(error) else str(error)


def store_error(error: sqlite3.Error | UnicodeDecodeError, file: Path) -> StoreError:
    """Return the store error for an error of the driver on a file."""
    if (said := damage_said(error)) is _NO_UTF8:
        return StoreCorrupt(f"{file}: {_CORRUPT[1]} ({said}).")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return closed(file)
    if "no such module: fts5" in str(error):
        return SearchUnavailable(
            f"{file}: SQLite {sqlite3.sqlite_version} was built without FTS5, so there is no search. "
            "Use a Python whose SQLite has it; everything else works."
        )
    if "no such table" in str(error):
        return StoreCorrupt(f"{file}: {_LOST_TABLE} (SQLite says: {error}).")
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF == sqlite3.SQLITE_CORRUPT and (whole := length_before(file)) is not None:
        return StoreCorrupt(
            f"{file}: the end of the file is missing, it had {whole} bytes. {RESTORE}. Without one, make a copy that "
            f"is as long as the file was (`cp {file.name} COPY`, `truncate --size {whole} COPY`), and export what "
            f"reads in it: `timeline export --all --db COPY` (SQLite says: {error})."
        )
    kind, meaning = StoreError, "the database refused. Nothing was written"
    if code is not None:
        kind, meaning = _BY_CODE.get(code) or _BY_CODE.get(code & 0xFF) or (kind, meaning)
    return kind(f"{file}: {meaning} (SQLite says: {error}).")


def read_only(file: Path) -> StoreReadOnly:
    """Return the error for a file that cannot be opened for writing, under any of SQLite's codes for that."""
    return StoreReadOnly(f"{file}: {_READ_ONLY[1]}.")


def unwritable(error: OSError, file: Path) -> StoreError:
    """Return the error for a file that the system would not make or write beside a database, or in its place."""
    if error.errno in _NO_ROOM:
        return StoreFull(f"{file}: {_FULL[1]}.")
    if error.errno in _NOT_ALLOWED:
        return read_only(file)
    cure = _MORE_FILES if error.errno in {errno.EMFILE, errno.ENFILE} else "check the path and the disk"
    return StoreError(
        f"{file}: the system would not make, open or lock a file beside it ({error.strerror}). Nothing was written; "
        f"{cure}, and try again."
    )


def unopened(file: Path) -> StoreError:
    """Return the error for a database that the system would not open for writing: `StoreReadOnly` if it may not be.

    SQLite does not say why, so an empty file is made beside it, and removed.
    """
    real = file.resolve()
    try:
        make_private(probe := real.with_name(f".{real.name}.{uuid4().hex[:8]}.probe"))
        probe.unlink()
    except OSError as error:
        return unwritable(error, file)
    there = [path for ending in ("", "-wal", "-shm") if (path := real.with_name(real.name + ending)).exists()]
    if not all(map(partial(os.access, mode=os.W_OK, effective_ids=os.access in os.supports_effective_ids), there)):
        return read_only(file)
    return StoreError(
        f"{file}: the system would not open it or a file beside it, though both may be written to. Nothing was "
        f"written; check the disk, {_MORE_FILES}, and try again."
    )


def reading_only(file: Path) -> StoreReadOnly:
    """Return the error for an append to a store that is open for reading only, by choice or for lack of permission."""
    return StoreReadOnly(
        f"{file}: the store is open for reading only. Nothing was written. Make the file and its folder writable; in "
        "Python, open it without readonly."
    )


def unseen(file: Path, error: OSError) -> StoreError:
    """Return the error for a file of which the file system does not say whether it is still in its place."""
    return StoreError(
        f"{file}: the file system does not say whether it is still there ({error.strerror}). What was acknowledged is "
        "stored; check the folder and the disk, and try again."
    )


def moved(file: Path, change: Change) -> StoreMoved:
    """Return the error for a store whose file was swapped while it was open."""
    return StoreMoved(
        f"{file}: {change.value}. What was just appended may be in the old file only, and this store is of no use any "
        "more. Close every program that has it open; put the right file in its place with `timeline restore FILE` (a "
        "plain copy would meet the old log beside it); open the store again, and append again what was not "
        "acknowledged: what is there already is not written twice."
    )


def foreign_log(file: Path, log: str) -> StoreCorrupt:
    """Return the error for a database that lies beside the log of another one."""
    return StoreCorrupt(
        f"{file}: it was cut or replaced while {log} lay beside it, which belongs to another state of it; opened "
        "together, both would be lost. Nothing was changed. Put a backup in its place with `timeline restore FILE`; to "
        f"use the file as it is, move {log} away."
    )


def in_use(file: Path) -> StoreLocked:
    """Return the error for a file that is to be replaced while a program has it open."""
    return StoreLocked(
        f"{file}: a program has it open, and would go on writing to what is replaced. Nothing was changed. Close it "
        "(an agent, `timeline mcp`), and restore again."
    )


def turn_too_late(file: Path, seconds: float) -> StoreLocked:
    """Return the error for a store whose turn to write did not come while it waited."""
    return StoreLocked(f"{file}: {_LOCKED[1]} (its turn did not come within {seconds:g} s).")


def hard_linked(file: Path) -> StoreError:
    """Return the error for a database with several names: SQLite keeps a log beside each of them."""
    return StoreError(
        f"{file}: the file has more than one name (hard links). A process that opens it by the other name has another "
        "log, and both would damage it (https://sqlite.org/howtocorrupt.html). Nothing was read or written. Make a "
        "copy instead of the link, or a symbolic link."
    )


def not_locked(error: OSError, file: Path) -> StoreError:
    """Return the error for a file at which no turn can be taken: never on this file system, or not now."""
    if error.errno not in _NO_LOCKS:
        return unwritable(error, file)
    return StoreError(
        f"{file}: its file system cannot lock {file.name}-lock ({error.strerror}), and without that lock writers would "
        "damage one another's work. Nothing was written. Put the database on a local disk."
    )


def closed(where: object) -> StoreClosed:
    """Return the error for a store that was closed."""
    return StoreClosed(f"{where}: the store is closed. Open it again with open_store.")


def checked_id(conversation: str) -> str:
    """Check that a conversation's id is one that a store can hold, and return it.

    Raises:
        ConversationNotFound: it is not, so that no store has the conversation.
    """
    try:
        conversation.encode()
    except UnicodeEncodeError:
        raise ConversationNotFound(conversation) from None
    return conversation


def checked_types(types: Collection[str] | None) -> Collection[str] | None:
    """Validate the types of a read and return them; a single text is refused, since its letters are no types.

    Raises:
        InvalidArgument: it is a text.
    """
    if isinstance(types, str):
        raise InvalidArgument("types", f"must be a list, not {types!r}; put a single one into brackets")
    return types


def checked_page(page: int) -> int:
    """Validate the size of a page and return it, or the largest that a database can count to.

    Raises:
        InvalidArgument: it is not a whole number from 1 on.
    """
    if not isinstance(page, int) or isinstance(page, bool) or page < 1:
        raise InvalidArgument("page", f"must be the number of rows to read at once, from 1 on, not {page!r}")
    return min(page, LARGEST)
