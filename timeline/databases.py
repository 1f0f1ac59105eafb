"""Read files that a user names without damage to SQLite databases among them: only SQLite itself opens those.

On POSIX, closing any descriptor of a file drops every lock that the process holds on it, including the locks that
SQLite holds for an open store
(https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_). Another process
can then delete the write-ahead log under that store, and its later appends are lost. So every file that a user names is
read by `read_file` and `read_text` here, which leave databases alone.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from os import PathLike

_SMALLEST_PAGE: Final = 512
MOST_TEXT: Final = 64 * 1024 * 1024
"""Bytes of a text that a user names, such as a policy or a system prompt: far more than any has."""
_HELD: Final = 3
"""How many times a file is in memory at least, while its text is read: its bytes, their text, and what that says."""
_NO_DATABASE: Final = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN}


class IsDatabase(OSError):
    """The file to be read as plain bytes is a SQLite database."""

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(errno.EINVAL, "it is a SQLite database", str(path))


class NotPlain(OSError):
    """What is to be read is a pipe or a device, which may never end, or is too large."""


def database_uri(file: Path, query: str) -> str:
    """Return the SQLite URI of a file, with every special character of the path escaped."""
    return f"{_without_host(file.absolute().as_uri())}?{query}"


def _without_host(uri: str) -> str:
    """Return the URI of a file as SQLite takes it: the server of a Windows share is a part of the path."""
    return uri if uri.startswith("file:///") else f"file:////{uri.removeprefix('file://')}"


def application_id(file: Path) -> int:
    """Return the application id in a database's header.

    Opened immutable: SQLite takes no lock, makes no side file, and closes the file only when no connection in this
    process holds a lock on it. With a writable schema SQLite does not compare the file's length with the header, so a
    database that another process is just making has its id from the first page on.

    Raises:
        sqlite3.DatabaseError: the file is no database, or cannot be read.
    """
    with closing(sqlite3.connect(database_uri(file, "mode=ro&immutable=1"), uri=True)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        (found,) = connection.execute("PRAGMA application_id").fetchone()
    return int(found)


def is_database(file: Path) -> bool:
    """Return whether a file is a SQLite database with its first page written; False where the file cannot be read.

    Raises:
        OSError: the file system does not say what is at the path.
    """
    if not file.is_file() or file.stat().st_size < _SMALLEST_PAGE:
        return False
    try:
        application_id(file)
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF not in _NO_DATABASE
    return True


def read_file(path: str | PathLike[str], size: int = -1) -> bytes:
    """Read a regular file, or its first bytes.

    Raises:
        IsDatabase: it is a SQLite database, and was not opened.
        NotPlain: it is no regular file, or has no place in this machine's memory.
        OSError: it cannot be read.
    """
    if (length := _checked_length(path)) == 0:
        return b""
    if size < 0 and length * _HELD > _memory():
        raise NotPlain(errno.EFBIG, f"it has {length:,} bytes, too many for this machine's memory", str(path))
    with Path(path).open("rb") as file:
        return file.read(size)


def read_text(path: str | PathLike[str]) -> str:
    """Read a file of UTF-8 text.

    Raises:
        IsDatabase: it is a SQLite database, and was not opened.
        UnicodeDecodeError: it holds something else.
        NotPlain: it is no regular file, or has more than `MOST_TEXT`.
        OSError: it cannot be read.
    """
    if (length := _checked_length(path)) == 0:
        return ""
    if length > MOST_TEXT:
        raise NotPlain(errno.EFBIG, f"it has more than {MOST_TEXT:,} bytes", str(path))
    return Path(path).read_text(encoding="utf-8")


def _checked_length(path: str | PathLike[str]) -> int:
    """Check that a file may be opened, and return its length.

    An empty file need not be opened to be read, and never is: this process may be making it a database right now.

    Raises:
        IsDatabase: it is a SQLite database.
        NotPlain: it is neither a file nor a folder.
        OSError: nothing is there, or the file system does not say what.
    """
    file = Path(path)
    if is_database(file):
        raise IsDatabase(path)
    found = file.stat()
    if os.path.samestat(found, os.stat(os.devnull)):  # noqa: PTH116 - a device that ends, and says "none"
        return 0
    if not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode)):
        raise NotPlain(errno.EINVAL, "it is not a regular file", str(path))
    return found.st_size if S_ISREG(found.st_mode) else -1  # to open a folder is an error of its own


def _memory() -> float:
    """Return the bytes of memory that this machine has; without end where the system does not say it."""
    if not hasattr(os, "sysconf"):
        return float("inf")
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
