"""Migration 5: give each store a unique name, which reveals that another file was put in its place.

A copy of the file has the same name: it is the same store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

_STATEMENTS: Final = (
    "CREATE TABLE identity ( store TEXT NOT NULL, PRIMARY KEY (store) ) STRICT",
    "INSERT INTO identity (store) VALUES (lower(hex(randomblob(16))))",
)


def apply(connection: sqlite3.Connection) -> None:
    """Name the store."""
    for statement in _STATEMENTS:
        connection.execute(statement)
