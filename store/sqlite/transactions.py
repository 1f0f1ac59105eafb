"""A write transaction of a connection, and a pragma that holds for a while."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

_NAMED: Final = {("secure_delete", 2): "FAST"}
"""Values that SQLite reads by name only."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction; roll it back on any error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def set_pragma(connection: sqlite3.Connection, pragma: str, value: str) -> Iterator[None]:
    """Set a pragma for a while. Its earlier value is read first, since builds of SQLite differ in their defaults."""
    (before,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    connection.execute(f"PRAGMA {pragma} = {value}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA {pragma} = {_NAMED.get((pragma, before), before)}")
