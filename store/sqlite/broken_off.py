"""Recognise a database in which a copy of its log broke off, unlike one that was overwritten: `content_with_log`.

A full disk, or the end of a process, may stop a copy of the write-ahead log into the database half way. By itself the
file makes no sense then; with its log, which has every page that was to be copied, it is whole. SQLite reads the two
together, and copies the log again with the next checkpoint.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from timeline.databases import application_id, database_uri

from . import statements

_OUT_OF_REACH: Final = {
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_PROTOCOL),
}
"""SQLite's error codes where it could not look at a file."""


def is_out_of_reach(error: sqlite3.Error) -> bool:
    """Return whether an error says that a file cannot be read now, and nothing about its content.

    A process that has too many files open, for example, cannot open one more to look into it.
    """
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in _OUT_OF_REACH and code != sqlite3.SQLITE_IOERR_SHORT_READ


class Content(NamedTuple):
    """The content of a database."""

    store: str | None
    """None without a name (which may still be in the write-ahead log of a store that was just migrated)."""
    last: int
    """The highest position in the file. It only rises, unless an older copy is written over the file."""


def content_with_log(file: str) -> Content | None:
    """Read a database together with its log; None if the two are no whole database of ours.

    Every page is read, by a new connection: one that is open would answer from its cache. A file whose first page is
    not ours is not opened, since beside an empty database SQLite deletes the log.

    Raises:
        sqlite3.Error: it cannot be read now.
    """
    try:
        if not application_id(Path(file)):
            return None
        with closing(sqlite3.connect(database_uri(Path(file), "mode=ro"), uri=True)) as connection:
            if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                return None
            return content_by(connection)
    except sqlite3.Error as error:
        if is_out_of_reach(error):
            raise
        return None


def content_by(connection: sqlite3.Connection) -> Content:
    """Read the content that a connection sees. Each value is on one page, which is read and written whole.

    Raises:
        sqlite3.Error: the content is inconsistent.
    """
    (known,) = connection.execute(statements.IS_NAMED).fetchone()
    (store,) = (connection.execute(statements.STORE).fetchone() if known else None) or (None,)
    (last,) = connection.execute(statements.LAST_GIVEN).fetchone()
    return Content(store, last)
