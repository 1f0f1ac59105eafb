"""The tables that the migrations make together: which of them a database lacks or has otherwise; and added triggers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from .indexes import Steps

_TABLES: Final = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' AND name <> 'sqlite_sequence'"
MISSING: Final = "is missing"
_TRIGGERS: Final = "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' ORDER BY name"


class _Made(NamedTuple):
    """A table as migrations make it: its statement, and its columns with their types."""

    statement: str
    columns: list[tuple[str, str]]


@cache
def _made_by(steps: Steps) -> dict[str, _Made]:
    """Return each table as migrations make them in an empty database."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for apply in steps:
            apply(connection)
        found = connection.execute(_TABLES).fetchall()
        return {name: _Made(statement, _columns(connection, name)) for name, statement in found}


def names(steps: Steps) -> frozenset[str]:
    """Return the names of all tables that migrations make."""
    return frozenset(_made_by(steps))


def wrong(connection: sqlite3.Connection, steps: Steps) -> list[tuple[str, str]]:
    """Return the name of each table that a database lacks or has with other columns, and which of both it is."""
    stored = {name for name, _ in connection.execute(_TABLES)}
    missing = [(name, MISSING) for name in _made_by(steps) if name not in stored]
    there = {name: made.columns for name, made in _made_by(steps).items() if name in stored}
    changed = [(name, "has other columns") for name, made in there.items() if _columns(connection, name) != made]
    return missing + changed


def make(connection: sqlite3.Connection, steps: Steps, name: str) -> None:
    """Make a table that is missing anew, without rows."""
    connection.execute(_made_by(steps)[name].statement)


def triggers(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the triggers of a database. A store has none: each would change what is written."""
    return [name for (name,) in connection.execute(_TRIGGERS)]


def drop(trigger: str) -> str:
    """Return the statement that removes a trigger."""
    quoted = trigger.replace('"', '""')
    return f'DROP TRIGGER IF EXISTS main."{quoted}"'


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    found = connection.execute("SELECT name, type FROM pragma_table_info(?, 'main')", (table,))
    return [(name, type_) for name, type_ in found]
