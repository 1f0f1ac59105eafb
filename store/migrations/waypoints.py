"""Migration 11: snapshots of the past, so that it is folded from near. They come with new appends, or by a repair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

_TABLE: Final = """
    CREATE TABLE waypoints (
        conversation INTEGER NOT NULL,
        version INTEGER NOT NULL,
        body BLOB NOT NULL,
        checksum TEXT NOT NULL,
        PRIMARY KEY (conversation, version),
        FOREIGN KEY(conversation) REFERENCES conversations (key)
    ) STRICT
    """


def apply(connection: sqlite3.Connection) -> None:
    """Create the table. No row of the log is read."""
    connection.execute(_TABLE)
