"""What the room of a database file is used for: bytes by class, which add up to the file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Final

from timeline.errors import StoreError

from ..failures import DRIVER_ERRORS, store_error
from .copying import PATIENCE
from .reading import connect_alone

if TYPE_CHECKING:
    from pathlib import Path

CLASSES: Final = ("payload", "values", "digests", "facts", "search", "snapshots", "indexes", "other", "free", "log")
"""The classes, in the order in which they are shown. ``log`` is the write-ahead log, a file of its own."""
_TABLES: Final = {
    "events": "payload",
    "stored_values": "values",
    "compactions": "digests",
    "digest_entries": "digests",
    "facts": "facts",
    "facts_progress": "facts",
    "snapshots": "snapshots",
    "bases": "snapshots",
    "waypoints": "snapshots",
}
_PAGES: Final = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name"
_INDEXES: Final = "SELECT name FROM sqlite_schema WHERE type = 'index'"


def sizes(file: Path) -> dict[str, int]:
    """Return the bytes of each class, by SQLite's own count of pages.

    Raises:
        StoreError: the store cannot be read, or SQLite was built without ``dbstat``.
    """
    try:
        with closing(connect_alone(file, PATIENCE)) as connection:
            found = _pages(connection)
            (page,) = connection.execute("PRAGMA page_size").fetchone()
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
    except DRIVER_ERRORS as error:
        if "no such table: dbstat" in str(error):
            raise StoreError(
                f"{file}: SQLite {sqlite3.sqlite_version} was built without DBSTAT, so sizes by class "
                "are not known. Run the command under a Python whose SQLite has it."
            ) from error
        raise store_error(error, file) from error
    found["free"] = free * page
    found["other"] += pages * page - found.total()  # the map of pages that auto_vacuum keeps
    log = file.resolve().with_name(f"{file.resolve().name}-wal")
    found["log"] = log.stat().st_size if log.exists() else 0
    return {name: found[name] for name in CLASSES}


def _pages(connection: sqlite3.Connection) -> Counter[str]:
    indexes = {name for (name,) in connection.execute(_INDEXES)}
    found: Counter[str] = Counter()
    for name, size in connection.execute(_PAGES):
        found[_class_of(name, indexes)] += size
    return found


def _class_of(name: str, indexes: set[str]) -> str:
    if name.startswith("search_"):  # with the tables that FTS5 keeps for itself
        return "search"
    return "indexes" if name in indexes else _TABLES.get(name, "other")
