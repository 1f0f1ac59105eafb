"""Migration 1: the tables, from the DDL of `store.tables`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    """Create every table and index. SQLModel is imported only here: an existing store opens without it."""
    from ..tables import ddl  # noqa: PLC0415 - the import takes longer than opening a store

    for statement in ddl():
        connection.execute(statement)
