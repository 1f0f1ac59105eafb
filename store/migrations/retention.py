"""Migration 6: what removing history needs: settings, the snapshots that the log is folded from, and where it begins.

A removed event keeps its row, so that version, id and path stay taken by the indexes that hold them anyway, and an
append asks nothing more than before. Its checksum is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

_STATEMENTS: Final = (
    "ALTER TABLE conversations ADD COLUMN first_version INTEGER NOT NULL DEFAULT 1",
    "CREATE INDEX conversations_forks ON conversations (parent_key, base) WHERE parent_key IS NOT NULL",
    "CREATE INDEX events_scavenged ON events (conversation, version) WHERE checksum = ''",
    """
    CREATE TABLE bases (
        conversation INTEGER NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        checksum TEXT NOT NULL,
        PRIMARY KEY (conversation, version),
        FOREIGN KEY(conversation) REFERENCES conversations ("key")
    ) WITHOUT ROWID, STRICT
    """,
    "CREATE TABLE settings ( name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name) ) STRICT",
)


def apply(connection: sqlite3.Connection) -> None:
    """Add the column, the two indexes (no row of an earlier store is in the second) and the two tables."""
    for statement in _STATEMENTS:
        connection.execute(statement)
