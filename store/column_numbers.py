"""The whole numbers that a column of a database takes."""

from __future__ import annotations

from typing import Final

LARGEST: Final = 2**63 - 1
"""The largest one: the highest version, position and number of rows that a database can be asked for."""


def within(number: int) -> int:
    """Clamp a number to a column's range: rows only lead to an event, and the event's own number decides."""
    return max(-LARGEST, min(number, LARGEST))
