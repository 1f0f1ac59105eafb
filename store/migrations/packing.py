"""Migration 8: room for packed payloads, and for how far each conversation's are packed.

Both columns are added without a look at any row: what earlier releases wrote is read as it is, and packed behind the
next compaction of its conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

_STATEMENTS: Final = (
    "ALTER TABLE events ADD COLUMN packed BLOB",
    "ALTER TABLE conversations ADD COLUMN packed INTEGER NOT NULL DEFAULT 0",
)


def apply(connection: sqlite3.Connection) -> None:
    """Add the two columns."""
    for statement in _STATEMENTS:
        connection.execute(statement)
