"""Stores as earlier versions of the library left them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from timeline.events.encoding import checksum
from timeline.store.migrations.steps import CREATE
from timeline.store.packing import unpacked

if TYPE_CHECKING:
    from pathlib import Path


def unpack(connection: sqlite3.Connection) -> None:
    """Write every packed payload as plain text, as if it had never been packed."""
    connection.create_function("unpacked", 1, unpacked)
    connection.execute("UPDATE events SET payload = unpacked(packed), packed = NULL WHERE packed IS NOT NULL")


def _unchain(connection: sqlite3.Connection) -> None:
    for table in ("waypoints", "erased"):
        connection.execute(f"DROP TABLE {table}")
    connection.execute("DROP INDEX conversations_unchained")
    connection.execute("ALTER TABLE conversations DROP COLUMN head")
    for column in ("salt", "c", "link"):
        connection.execute(f"ALTER TABLE events DROP COLUMN {column}")
    # A scavenged event's turn holds its type, which no link covers any more.
    connection.execute("UPDATE events SET turn_id = NULL WHERE checksum = ''")


def _unpack(connection: sqlite3.Connection) -> None:
    _unchain(connection)
    unpack(connection)
    for table in ("events", "conversations"):
        connection.execute(f"ALTER TABLE {table} DROP COLUMN packed")


def before_chain(file: Path) -> None:
    """Make a store what the schema before the chain made of it."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        _unchain(connection)
        connection.execute("DELETE FROM migrations WHERE number >= 9")


def before_packing(file: Path) -> None:
    """Make a store what the schema before packed payloads made of it."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        _unpack(connection)
        connection.execute("DELETE FROM migrations WHERE number >= 8")


def before_facts(file: Path) -> None:
    """Make a store what the schema before the facts made of it."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        _unpack(connection)
        for table in ("facts", "facts_progress"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DELETE FROM migrations WHERE number >= 7")


def before_digest_rows(file: Path) -> None:
    """Make a store what the schema before the digests' rows made of it."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        _unpack(connection)
        for table in (
            "facts",
            "facts_progress",
            "digest_entries",
            "compactions",
            "search_progress",
            "identity",
            "bases",
            "settings",
        ):
            connection.execute(f"DROP TABLE {table}")
        for index in ("events_scavenged", "conversations_forks"):
            connection.execute(f"DROP INDEX {index}")
        connection.execute("ALTER TABLE conversations DROP COLUMN first_version")
        for index in ("events_rare", "events_rare_within"):
            connection.execute(f"DROP INDEX {index}")
            connection.execute(next(s for s in CREATE if f"CREATE INDEX {index} " in s))
        connection.execute("DELETE FROM migrations WHERE number >= 3")


def append_without_link(file: Path, conversation: str = "a") -> None:
    """Append an event as a process does that opened the file before it had a chain."""
    with closing(sqlite3.connect(file)) as connection, connection:
        key, version = connection.execute(
            "SELECT key, version + 1 FROM conversations WHERE id = ?", (conversation,)
        ).fetchone()
        event = (f"00000000-0000-7000-8000-{version:012}", "my.note", 1, "2026-01-01T00:00:00.000000Z", "{}")
        connection.execute(
            "INSERT INTO events (conversation, version, event_id, type, schema_version, at, payload, checksum)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (key, version, *event, checksum(conversation, version, *event)),
        )
        connection.execute(
            "UPDATE conversations SET version = ?, updated_at = ? WHERE key = ?", (version, event[3], key)
        )
