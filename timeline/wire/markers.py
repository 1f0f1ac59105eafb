"""Cache markers: which parts of a request carry one, in the Messages API's form.

A marker stands on the last part that a cache point's entry became; where that part takes none, on the one before it.
The caller's own markers, in the system prompt or the tools, count against the provider's limit, and ours give way, the
oldest first: what is cached further on is worth more.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.wire.providers import ANTHROPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import JsonValue

    from timeline.wire.media import Part
    from timeline.wire.neutral import NeutralContext

MARKER: Final[dict[str, JsonValue]] = {"type": "ephemeral"}
MOST_POINTS: Final = 3
"""Cache points in the messages; the fourth marker is the system prompt's (design, section 6)."""


class Marked(NamedTuple):
    """Where markers go: positions of content parts, rising; and whether the system prompt gets one, too."""

    positions: list[int]
    system: bool


def marked(context: NeutralContext, takes: Sequence[bool], place: Mapping[int, int], *, own: int) -> Marked:
    """Choose what to mark.

    Args:
        context: the context whose cache points are meant; without any, nothing is marked.
        takes: for each content part of all messages, in order, whether it takes a marker.
        place: by entry number, the position of the entry's last part.
        own: markers that the caller placed, in system prompt and tools.
    """
    room = max(0, ANTHROPIC.max_markers - own)
    points = _points(context, takes, place)[-MOST_POINTS:]
    in_system = count(context.system if isinstance(context.system, list) else [context.system])
    is_free = bool(context.cache_points) and not in_system and room > len(points)
    return Marked(points[max(0, len(points) - room) :], is_free)


def count(parts: Iterable[Any]) -> int:
    """Count the caller's markers in a list of content parts or tools."""
    return sum(isinstance(part, dict) and part.get("cache_control") is not None for part in parts)


def placed_markers(context: NeutralContext, parts: Sequence[Part], place: Mapping[int, int]) -> JsonValue:
    """Mark the parts at the cache points, and return the system prompt, marked too where a marker is free.

    Args:
        context: the context whose cache points are meant; without any, nothing is marked.
        parts: the content parts of all messages so far, in order; those at the points are changed in place.
        place: by entry number, the position of the entry's last part.
    """
    own = count(context.system if isinstance(context.system, list) else ()) + count(context.tools)
    chosen = marked(context, [_takes_marker(part) for part in parts], place, own=own)
    for position in chosen.positions:
        parts[position]["cache_control"] = dict(MARKER)
    return _marked(context.system) if chosen.system else context.system


def _points(context: NeutralContext, takes: Sequence[bool], place: Mapping[int, int]) -> list[int]:
    """Return the positions to mark, rising and each one once."""
    if not context.cache_points:
        return []
    reached = list(accumulate((place.get(index, -1) for index in range(len(context.entries))), max))
    positions = set()
    for point in context.cache_points:
        position = reached[min(point.index, len(reached) - 1)] if reached and point.index >= 0 else -1
        while position >= 0 and not takes[position]:
            position -= 1
        positions.add(position)
    return sorted(positions - {-1})


def _takes_marker(part: Part) -> bool:
    return str(part.get("type")) not in ANTHROPIC.unmarkable and part.get("text") != ""


def _marked(system: JsonValue) -> JsonValue:
    if isinstance(system, str):
        return [{"type": "text", "text": system, "cache_control": dict(MARKER)}] if system.strip() else system
    if not isinstance(system, list):
        return system
    for last in range(len(system) - 1, -1, -1):
        part = system[last]
        if isinstance(part, dict) and _takes_marker(part):
            with_marker: JsonValue = {**part, "cache_control": dict(MARKER)}
            return [*system[:last], with_marker, *system[last + 1 :]]
    return system
