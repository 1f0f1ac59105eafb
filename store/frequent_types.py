"""The types of events that a log is made of for the most part, and the condition that selects all others.

Rare events have partial indexes of their own in both databases, and a removed event keeps its type if it is frequent.
SQLite uses such an index only where a query repeats its condition word for word, so the condition is written here.
"""

from __future__ import annotations

from typing import Final

_IN_ORDER: Final = ("block.appended", "context.rendered", "model.called")
FREQUENT_TYPES: Final = frozenset(_IN_ORDER)


def rare(column: str) -> str:
    """Write the condition that an event is rare, with the name that a statement has for the column of types."""
    return " AND ".join(f"{column} <> '{type_}'" for type_ in _IN_ORDER)


RARE_WHERE: Final = rare("type")
"""Condition of the partial indexes of rare events."""
RARE_WHERE_OF_E: Final = rare("e.type")
"""The same where a statement calls the events ``e``."""
