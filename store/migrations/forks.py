"""Migration 2: record the versions that a fork shares with its parent.

Earlier conversations keep their parent link and share nothing: their versions count from 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    """Add the key of the parent and the last shared version to every conversation."""
    connection.execute('ALTER TABLE conversations ADD COLUMN parent_key INTEGER REFERENCES conversations ("key")')
    connection.execute("ALTER TABLE conversations ADD COLUMN base INTEGER NOT NULL DEFAULT 0")
