"""Choose which parts of a request carry a cache marker, in the Messages API's form; Bedrock's has markers between.

A cache point's marker goes on the last part of its entry, or, where that part takes none, on the part before it. The
caller's own markers, in the system prompt or the tools, count against the provider's limit. Where that is exceeded, our
oldest markers are left out first, since a marker further on caches more. The system prompt's marker covers the tools in
front of it, too; without a system prompt it is on the last tool. A marker may ask for the long time; the API refuses
that behind a marker for the short time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from timeline.wire.providers import ANTHROPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pydantic import JsonValue

    from timeline.wire.media import Part
    from timeline.wire.neutral import NeutralContext

Marker: TypeAlias = "dict[str, JsonValue]"

MARKER: Final[Marker] = {"type": "ephemeral"}
LONG_MARKER: Final[Marker] = {"type": "ephemeral", "ttl": "1h"}
MOST_POINTS: Final = 3
"""Most cache points in the messages; the fourth marker is the system prompt's."""


class Marked(NamedTuple):
    """Where markers go: rising positions of content parts, the marker for these, and the marker for the fixed part."""

    positions: list[int]
    marker: Marker
    fixed: Marker | None


def marked(context: NeutralContext, takes: Callable[[int], bool], reached: Callable[[int], int]) -> Marked:
    """Choose the parts to mark.

    Args:
        context: the context with the cache points; without cache points, nothing is marked.
        takes: whether the content part at a position takes a marker.
        reached: the highest position of a part of the entries up to one; -1 where these have none.
    """
    in_tools, in_system = own_markers(context.tools), own_markers(_system_parts(context))
    room = max(0, ANTHROPIC.max_markers - len(in_tools) - len(in_system))
    points = _points(context, takes, reached)[-MOST_POINTS:]
    is_free = bool(context.cache_points) and not in_system and room > len(points)
    is_long = all(map(_asks_long, [*in_tools, *in_system]))
    fixed = LONG_MARKER if is_long and context.kept_long != "nothing" else MARKER
    marker = LONG_MARKER if is_long and context.kept_long == "everything" else MARKER
    return Marked(points[max(0, len(points) - room) :], marker, fixed if is_free else None)


def _asks_long(marker: Any) -> bool:
    return isinstance(marker, dict) and marker.get("ttl") == LONG_MARKER["ttl"]


def _system_parts(context: NeutralContext) -> list[JsonValue]:
    return context.system if isinstance(context.system, list) else [context.system]


def own_markers(parts: Iterable[Any]) -> list[Any]:
    """Return the caller's markers in a list of content parts or tools, in the API's form, Bedrock's or the AI SDK's."""
    found = [_own_marker(part) for part in parts if isinstance(part, dict)]
    return [marker for marker in found if marker is not None]


def _own_marker(part: Mapping[str, Any]) -> Any:
    if (marker := part.get("cache_control", part.get("cachePoint"))) is not None:
        return marker
    options = part.get("providerOptions")
    own = options.get("anthropic") if isinstance(options, dict) else None
    return own.get("cacheControl") if isinstance(own, dict) else None


def marked_fixed_part(context: NeutralContext, marker: Marker | None) -> tuple[JsonValue, list[JsonValue]]:
    """Return system prompt and tools, with a marker on one of them.

    Args:
        context: the context that has them.
        marker: None where none is free.
    """
    system, tools = context.system, list(context.tools)
    if marker is None:
        return system, tools
    if isinstance(system, str) and system.strip():
        return [{"type": "text", "text": system, "cache_control": dict(marker)}], tools
    if isinstance(system, list) and system:
        return _marked_last(system, marker, takes_marker), tools
    return system, tools if own_markers(tools) else _marked_last(tools, marker, _is_loaded)


def _points(context: NeutralContext, takes: Callable[[int], bool], reached: Callable[[int], int]) -> list[int]:
    """Return the positions to mark, each once, in rising order."""
    last = len(context.entries) - 1
    positions = set()
    for point in context.cache_points:
        position = reached(min(point.index, last)) if last >= 0 and point.index >= 0 else -1
        while position >= 0 and not takes(position):
            position -= 1
        positions.add(position)
    return sorted(positions - {-1})


def takes_marker(part: Part) -> bool:
    """Return whether a content part may carry a marker."""
    return str(part.get("type")) not in ANTHROPIC.unmarkable and part.get("text") != ""


def _is_loaded(tool: Part) -> bool:
    """Return whether a tool takes a marker: a tool that is loaded later is in no prefix, and takes none."""
    return not tool.get("defer_loading")


def _marked_last(parts: Sequence[JsonValue], marker: Marker, takes: Callable[[Part], bool]) -> list[JsonValue]:
    """Return parts with the marker on the last one that takes it."""
    for last in range(len(parts) - 1, -1, -1):
        part = parts[last]
        if isinstance(part, dict) and takes(part):
            return [*parts[:last], {**part, "cache_control": dict(marker)}, *parts[last + 1 :]]
    return [*parts]
