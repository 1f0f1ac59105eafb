"""The columns that the server never samples for its statistics.

ANALYZE copies values of a column into the catalogue, which any role may ask about the tables that it reads, and leaves
them there when the rows go. These columns hold what was said, or a name that a person chose. No plan depends on them: a
look-up by one of them is by a unique index, or has an order that is fixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

UNSAMPLED: Final[dict[str, tuple[str, ...]]] = {
    "conversations": ("id_key", "id", "title", "parent"),
    "events": ("path", "path_rest", "turn_id", "payload"),
    "snapshots": ("body",),
    "bases": ("body",),
    "waypoints": ("body",),
    "stored_values": ("text",),
    "erased": ("id_key", "id", "reason"),
    "compactions": ("summary",),
    "digest_entries": ("subject_key", "subject", "tool_key", "tool", "path", "message"),
    "facts": ("subject", "tool", "detail", "path"),
    "search_index": ("found",),
}


def statements(tables: Iterable[str] = UNSAMPLED) -> list[str]:
    """Write the statements for tables that are there, with their partitions."""
    return [
        f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0"
        for table in tables
        for column in UNSAMPLED.get(table, ())
    ]
