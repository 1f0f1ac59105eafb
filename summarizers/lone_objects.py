"""Read an answer that is one JSON object and nothing else, as errors of gateways and calls of tools come."""

from __future__ import annotations

import json
from typing import Any, Final

_MOST: Final = 10_000
"""Characters of the longest answer that is read: such objects are short."""


def lone_object(text: str) -> dict[str, Any]:
    """Return the object that an answer is; an empty one if it is something else, or long."""
    if not text.lstrip().startswith("{") or len(text) > _MOST:
        return {}
    try:
        value: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value
