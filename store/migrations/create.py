"""Migration 1: the tables of the first release, word for word.

The text is frozen. `store.sqlite.schema` describes the result of all migrations; a test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

STATEMENTS: Final = (
    """
    CREATE TABLE conversations (
        "key" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        window_start INTEGER NOT NULL,
        title TEXT NOT NULL,
        parent TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        UNIQUE (id)
    ) STRICT
    """,
    """
    CREATE TABLE events (
        position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL,
        version INTEGER NOT NULL,
        event_id TEXT NOT NULL,
        type TEXT NOT NULL,
        schema_version INTEGER NOT NULL,
        at TEXT NOT NULL,
        path TEXT,
        turn_id TEXT,
        tokens INTEGER,
        payload TEXT NOT NULL,
        checksum TEXT NOT NULL,
        UNIQUE (conversation, version),
        UNIQUE (conversation, event_id),
        FOREIGN KEY(conversation) REFERENCES conversations ("key")
    ) STRICT
    """,
    "CREATE UNIQUE INDEX events_path ON events (conversation, path) WHERE path IS NOT NULL",
    """
    CREATE INDEX events_rare ON events (type, position)
    WHERE type NOT IN ('block.appended', 'context.rendered', 'model.called')
    """,
    """
    CREATE INDEX events_rare_within ON events (conversation, type, version)
    WHERE type NOT IN ('block.appended', 'context.rendered', 'model.called')
    """,
    """
    CREATE TABLE snapshots (
        conversation INTEGER NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        checksum TEXT NOT NULL,
        PRIMARY KEY (conversation),
        FOREIGN KEY(conversation) REFERENCES conversations ("key")
    ) STRICT
    """,
    "CREATE TABLE stored_values ( hash TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (hash) ) STRICT",
    "CREATE TABLE migrations ( number INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (number) ) STRICT",
)


def apply(connection: sqlite3.Connection) -> None:
    """Create every table and index of the first release."""
    for statement in STATEMENTS:
        connection.execute(statement)
