"""Make indexes and derived tables anew whose pages are broken, so that repairs get past them.

SQLite empties a b-tree page by page before it fills it anew. So neither REINDEX nor DELETE nor DROP gets past a broken
page, such as one that a disk filled with zeros. Here the schema is made to point to an empty root instead. The pages of
the old b-tree then belong to nothing, until `without_unused` rewrites the file without them.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Final

from .transactions import set_pragma

if TYPE_CHECKING:
    from collections.abc import Collection

MOST: Final = 20
"""Most problems of the file for which SQLite is asked."""
_TABLES: Final = (
    "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow')"
    " AND name NOT IN ('sqlite_schema', 'sqlite_sequence') ORDER BY name"
)
_INDEXES: Final = "SELECT name FROM main.sqlite_schema WHERE type = 'index' AND tbl_name = ? ORDER BY name"
_MAKE_ROOT: Final = {
    False: "CREATE TABLE main.timeline_empty_root (x)",
    True: "CREATE TABLE main.timeline_empty_root (x PRIMARY KEY) WITHOUT ROWID",
}
"""What makes an empty root: of a table; and of an index, or of a table that is an index itself."""
_LEAD_TO_ROOT: Final = (
    "UPDATE main.sqlite_schema SET rootpage = (SELECT rootpage FROM main.sqlite_schema"
    " WHERE name = 'timeline_empty_root') WHERE name = ?"
)
_FORGET_ROOT: Final = "DELETE FROM main.sqlite_schema WHERE name = 'timeline_empty_root'"
_UNUSED: Final = re.compile(r"Page \d+(?: is|:) never used")
_MAPPED: Final = re.compile(r".*(?:Bad ptr map entry|Failed to read ptrmap) key=[1-9].*")
"""What SQLite says of the map by which it moves pages, where the map does not say who refers to a page."""
_GIVEN_UP: Final = "database disk image is malformed"
"""The only message of a check that cannot finish, since SQLite uses the map, too, to read rows of many pages. The first
problems of such a check are known; the others show when the file is rewritten, which reads every row without the map.
"""
_ALL: Final = 1_000_000
_UNMENDED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT}
"""What SQLite says where the rows of a table cannot be read, or are not those that a key of it allows."""


def problems(connection: sqlite3.Connection, table: str | None = None, most: int = MOST) -> list[str]:
    """Return what SQLite finds wrong with the pages of the file, or of one table and its indexes."""
    what = most if table is None else f"'{table}'"
    try:
        messages = [str(message) for (message,) in connection.execute(f"PRAGMA main.integrity_check({what})")]
    except sqlite3.DatabaseError as damage:
        messages = [str(damage)]
    return [] if messages == ["ok"] else messages


def made_anew(connection: sqlite3.Connection, emptied: Collection[str]) -> list[str]:
    """Make the broken b-trees anew that can be; return the tables that they are of.

    Args:
        connection: the one that writes.
        emptied: tables that lose their rows where they are broken; of every other one the indexes alone are made anew.
    """
    tables = connection.execute(_TABLES).fetchall()
    broken = {table: lines for table, _ in tables if (lines := _lines(problems(connection, table)))}
    if any(_MAPPED.fullmatch(line) for lines in broken.values() for line in lines):
        return []  # a new root moves other pages, and would damage sound b-trees
    return [
        table
        for table, is_index in tables
        if table in broken and _is_replaced(connection, table, is_index=is_index, rows_too=table in emptied)
    ]


def without_unused(connection: sqlite3.Connection) -> None:
    """Rewrite the file without pages that belong to nobody, and with a map of its own, if nothing else is wrong."""
    lines = _lines(problems(connection, most=_ALL))
    is_cut_off = lines == [_GIVEN_UP]
    if is_cut_off:
        lines = _lines(problems(connection))
    if not lines or not all(_UNUSED.fullmatch(line) or _MAPPED.fullmatch(line) for line in lines):
        return
    try:
        with set_pragma(connection, "temp_store", "FILE"):
            connection.execute("VACUUM")
    except sqlite3.DatabaseError as error:
        if not is_cut_off or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise  # otherwise the check had not found everything: the file stays as it was


def _lines(messages: list[str]) -> list[str]:
    """Return the problems of messages one by one: some releases of SQLite tell them in one text."""
    return [line for message in messages for line in message.splitlines() if not line.startswith("***")]


def _is_replaced(connection: sqlite3.Connection, table: str, *, is_index: bool, rows_too: bool) -> bool:
    """Put new b-trees in the places of a table's; return whether it is sound then. If not, it is as it was."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if rows_too:
            _lead_to_empty(connection, table, is_index=is_index)
        for (index,) in connection.execute(_INDEXES, (table,)).fetchall():
            _lead_to_empty(connection, index, is_index=True)
        connection.execute(f'REINDEX main."{table}"')
        if problems(connection, table):
            return False
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in _UNMENDED:
            raise
        return False
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute("PRAGMA writable_schema = RESET")
    return True


def _lead_to_empty(connection: sqlite3.Connection, name: str, *, is_index: bool) -> None:
    connection.execute(_MAKE_ROOT[is_index])
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(_LEAD_TO_ROOT, (name,))
    connection.execute(_FORGET_ROOT)
    connection.execute("PRAGMA writable_schema = RESET")  # and read the schema again
