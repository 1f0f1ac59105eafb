"""Cache markers: which parts of a request carry one, in the Messages API's form.

A marker stands on the last part that a cache point's entry became; where that part takes none, on the one before it.
The caller's own markers, in the system prompt or the tools, count against the provider's limit, and ours give way, the
oldest first: what is cached further on is worth more. The system prompt's keeps the tools in front of it, too; without
a system prompt the last tool has it. It may ask for the long time; the API refuses that behind one for the short time.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from timeline.wire.providers import ANTHROPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import JsonValue

    from timeline.wire.media import Part
    from timeline.wire.neutral import NeutralContext

Marker: TypeAlias = "dict[str, JsonValue]"

MARKER: Final[Marker] = {"type": "ephemeral"}
LONG_MARKER: Final[Marker] = {"type": "ephemeral", "ttl": "1h"}
MOST_POINTS: Final = 3
"""Cache points in the messages; the fourth marker is the system prompt's (design, section 6)."""


class Marked(NamedTuple):
    """Where markers go: positions of content parts, rising; and the one that the fixed part gets, if any."""

    positions: list[int]
    fixed: Marker | None


class FixedPart(NamedTuple):
    """What stands in front of the messages, marked."""

    system: JsonValue
    tools: list[JsonValue]


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
    in_system = own_markers(context.system if isinstance(context.system, list) else [context.system])
    is_free = bool(context.cache_points) and not in_system and room > len(points)
    return Marked(points[max(0, len(points) - room) :], _for_fixed_part(context) if is_free else None)


def _for_fixed_part(context: NeutralContext) -> Marker:
    """Return the marker of a fixed part whose system prompt has none of the caller's."""
    is_long = context.fixed_part == "long" and all(map(_asks_long, own_markers(context.tools)))
    return LONG_MARKER if is_long else MARKER


def _asks_long(marker: Any) -> bool:
    return isinstance(marker, dict) and marker.get("ttl") == LONG_MARKER["ttl"]


def own_markers(parts: Iterable[Any]) -> list[Any]:
    """Return the caller's markers in a list of content parts or tools."""
    found = [part.get("cache_control") for part in parts if isinstance(part, dict)]
    return [marker for marker in found if marker is not None]


def placed_markers(context: NeutralContext, parts: Sequence[Part], place: Mapping[int, int]) -> FixedPart:
    """Mark the parts at the cache points, and return system prompt and tools, marked too where a marker is free.

    Args:
        context: the context whose cache points are meant; without any, nothing is marked.
        parts: the content parts of all messages so far, in order; those at the points are changed in place.
        place: by entry number, the position of the entry's last part.
    """
    own = own_markers([*(context.system if isinstance(context.system, list) else ()), *context.tools])
    chosen = marked(context, [_takes_marker(part) for part in parts], place, own=len(own))
    for position in chosen.positions:
        parts[position]["cache_control"] = dict(MARKER)
    system, tools = context.system, list(context.tools)
    if chosen.fixed is None:
        return FixedPart(system, tools)
    if _is_said(system):
        return FixedPart(_marked(system, chosen.fixed), tools)
    return FixedPart(system, tools if own_markers(tools) else _marked_tools(tools, chosen.fixed))


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


def _is_said(system: JsonValue) -> bool:
    return bool(system.strip() if isinstance(system, str) else system)


def _marked(system: JsonValue, marker: Marker) -> JsonValue:
    if isinstance(system, str):
        return [{"type": "text", "text": system, "cache_control": dict(marker)}]
    if not isinstance(system, list):
        return system
    for last in range(len(system) - 1, -1, -1):
        part = system[last]
        if isinstance(part, dict) and _takes_marker(part):
            with_marker: JsonValue = {**part, "cache_control": dict(marker)}
            return [*system[:last], with_marker, *system[last + 1 :]]
    return system


def _marked_tools(tools: Sequence[JsonValue], marker: Marker) -> list[JsonValue]:
    """Mark the last tool that takes a marker: one that is loaded later is in no prefix, and takes none."""
    for last in range(len(tools) - 1, -1, -1):
        tool = tools[last]
        if isinstance(tool, dict) and not tool.get("defer_loading"):
            return [*tools[:last], {**tool, "cache_control": dict(marker)}, *tools[last + 1 :]]
    return [*tools]
