"""What is searched of an event: the text of its block, its type, and whether it was redacted.

Works on stored payloads, not on blocks: the index of a database reads them by the million.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Text(NamedTuple):
    """The text of a block, and the block's type."""

    type: str
    text: str


def text_of(payload: str) -> Text | None:
    """Return what is searched of an event, or None where it appends no block or the payload is damaged.

    Of a call that is the tool's name and the values of the arguments: their keys are nobody's words.
    """
    block = _object(payload).get("block")
    if not isinstance(block, dict):
        return None
    type_, text = block.get("type"), block.get("text", "")
    parts = [text] if isinstance(text, str) else []
    if type_ == "react.tool.call":
        parts = [*_values(block.get("name")), *_values(block.get("arguments")), *parts]
    return Text(str(type_), "\n".join(parts))


def redacted_version(payload: str) -> int | None:
    """Return the version of the block that a `block.redacted` event erases."""
    version = _object(payload).get("version")
    return version if isinstance(version, int) else None


def _object(payload: str) -> dict[str, Any]:
    try:
        value = json.loads(payload)
    except ValueError:
        return {}  # Damaged: there is nothing to find in it, and reading the event says so.
    return value if isinstance(value, dict) else {}


def _values(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _values(inner)
        case list():
            for inner in value:
                yield from _values(inner)
        case bool() | None:
            return
        case int() | float():
            yield str(value)
