"""Migration 10: the ids of erased conversations, which are never given again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    """Create the table: the id, when it was erased, and the reason that was given."""
    connection.execute(
        "CREATE TABLE erased ( id TEXT NOT NULL, at TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (id) ) STRICT"
    )
