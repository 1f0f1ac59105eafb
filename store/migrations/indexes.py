"""The indexes that the migrations make together: which of them a database lacks, or has otherwise."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache

_OWN = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"


@cache
def expected() -> dict[str, str]:
    """Return the statement that makes each index, by its name, as the migrations make them in an empty database."""
    from . import MIGRATIONS  # noqa: PLC0415 - it imports this module

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for _, apply in MIGRATIONS:
            apply(connection)
        return dict(connection.execute(_OWN).fetchall())


def different(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the indexes that a database does not have, or has over other columns or rows."""
    stored = dict(connection.execute(_OWN).fetchall())
    return [name for name, made in expected().items() if _plain(stored.get(name, "")) != _plain(made)]


def make(connection: sqlite3.Connection, name: str) -> None:
    """Make an index anew."""
    connection.execute(f'DROP INDEX IF EXISTS main."{name}"')
    connection.execute(expected()[name])


def _plain(statement: str) -> str:
    return "".join(statement.replace('"', "").lower().split())
