"""The indexes that the migrations make together: which of them a database lacks, or has otherwise."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Steps: TypeAlias = "tuple[Callable[[sqlite3.Connection], None], ...]"

_OWN: Final = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
_OF_TABLES: Final = "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
_TABLES: Final = "SELECT name FROM main.sqlite_schema WHERE type = 'table'"


@cache
def _tables(steps: Steps) -> dict[str, str]:
    """Return the table of each index, by its name."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for apply in steps:
            apply(connection)
        return dict(connection.execute(_OF_TABLES).fetchall())


@cache
def made_by(steps: Steps) -> dict[str, str]:
    """Return the statement that makes each index, by its name, as migrations make them in an empty database."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for apply in steps:
            apply(connection)
        return dict(connection.execute(_OWN).fetchall())


def different(connection: sqlite3.Connection, steps: Steps) -> list[str]:
    """Return the names of the indexes that a database does not have, or has over other columns or rows.

    Those of a table that is missing wait for the table.
    """
    stored = dict(connection.execute(_OWN).fetchall())
    wrong = [name for name, made in made_by(steps).items() if _plain(stored.get(name, "")) != _plain(made)]
    if not wrong:
        return []
    there = {name for (name,) in connection.execute(_TABLES)}
    return [name for name in wrong if _tables(steps)[name] in there]


def make(connection: sqlite3.Connection, steps: Steps, name: str) -> None:
    """Make an index anew."""
    connection.execute(f'DROP INDEX IF EXISTS main."{name}"')
    connection.execute(made_by(steps)[name])


def _plain(statement: str) -> str:
    return "".join(statement.replace('"', "").lower().split())
