"""Rounds: the line by which a structured summary says how many compactions it stands for (seed 001)."""

from __future__ import annotations


def incorporates(number: int) -> str:
    """Return the line that ends the summary of a compaction, from the second one on."""
    return f"This summary incorporates context from {number - 1} previous compaction rounds."
