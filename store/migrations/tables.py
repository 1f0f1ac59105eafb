"""The tables that the migrations make together: which of them a database lacks or has otherwise; and added triggers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .indexes import Steps

_TABLES: Final = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name <> 'sqlite_sequence'"
_TRIGGERS: Final = "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' ORDER BY name"


@cache
def _made_by(steps: Steps) -> dict[str, list[tuple[str, str]]]:
    """Return the columns of each table, with their types, as migrations make them in an empty database."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for apply in steps:
            apply(connection)
        return {name: _columns(connection, name) for (name,) in connection.execute(_TABLES).fetchall()}


def wrong(connection: sqlite3.Connection, steps: Steps) -> list[tuple[str, str]]:
    """Return the name of each table that a database lacks or has with other columns, and which of both it is."""
    stored = {name for (name,) in connection.execute(_TABLES)}
    missing = [(name, "is missing") for name in _made_by(steps) if name not in stored]
    there = {name: made for name, made in _made_by(steps).items() if name in stored}
    changed = [(name, "has other columns") for name, made in there.items() if _columns(connection, name) != made]
    return missing + changed


def triggers(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the triggers of a database. A store has none: each would change what is written."""
    return [name for (name,) in connection.execute(_TRIGGERS)]


def drop(trigger: str) -> str:
    """Return the statement that removes a trigger."""
    quoted = trigger.replace('"', '""')
    return f'DROP TRIGGER main."{quoted}"'


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    found = connection.execute("SELECT name, type FROM pragma_table_info(?, 'main')", (table,))
    return [(name, type_) for name, type_ in found]
