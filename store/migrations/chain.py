"""Migration 9: room for the chain; `store.sqlite.chaining` fills it for what earlier releases wrote.

The columns are added without a look at any row, and none is rewritten in this transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

_STATEMENTS: Final = (
    "ALTER TABLE events ADD COLUMN salt BLOB",
    "ALTER TABLE events ADD COLUMN c BLOB",
    "ALTER TABLE events ADD COLUMN link BLOB",
    "ALTER TABLE conversations ADD COLUMN head BLOB",
    'CREATE INDEX conversations_unchained ON conversations ("key") WHERE head IS NULL',
)


def apply(connection: sqlite3.Connection) -> None:
    """Add the columns, and the index of the conversations that are not chained."""
    for statement in _STATEMENTS:
        connection.execute(statement)
