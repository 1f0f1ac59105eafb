"""The root of the error tree."""

from __future__ import annotations


class TimelineError(Exception):
    """Root of everything that this library raises on purpose."""
