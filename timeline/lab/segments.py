"""Turn a rendered context into what the provider's cache sees: segments in wire order, and the places of markers."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Final

from timeline.frozen import begins_with, canonical_json
from timeline.lab.cache import Segment
from timeline.planning.account import INTERRUPTED_TOKENS, LOOSE_TOKENS
from timeline.wire.anthropic import sends_reasoning
from timeline.wire.groups import Response, gather
from timeline.wire.neutral import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.fold.window import Item
    from timeline.projection.context import RenderedContext
    from timeline.wire.groups import Item as Gathered
    from timeline.wire.neutral import Entry

_REASONING: Final = "assistant.reasoning"
SYSTEM: Final = 1
"""Segments in front of the messages: tools and system prompt, whose bytes no recording holds, are one."""
_MISSING_RESULT: Final = Segment(hash(("result", INTERRUPTED)), INTERRUPTED_TOKENS)
"""What the wire sends for a call without a result."""


class Segmenter:
    """Turns the contexts of one conversation into segments.

    As on Anthropic's wire, a response's results follow right behind it, and reasoning that is not sent is left out. The
    segments that equal those of the previous context are reused. Hashes are valid in this process alone: they are
    compared within the conversation, and never stored.
    """

    def __init__(self) -> None:
        self._entries: Sequence[Entry] = ()
        self._model = ""
        self._segments: list[Segment] = []
        self._places: list[int] = []
        self._finished = (0, 1)

    def copy(self) -> Segmenter:
        """Return an independent copy."""
        twin = copy(self)
        twin._segments, twin._places = [*self._segments], [*self._places]  # noqa: SLF001 - of its own class
        return twin

    def segments(self, context: RenderedContext) -> tuple[tuple[Segment, ...], tuple[int, ...]]:
        """Return a context's segments, and the positions of those with a cache marker, rising."""
        entries, fixed = context.neutral.entries, context.account.fixed
        head = Segment(hash((str(context.neutral.system), str(context.neutral.tools))), fixed.system + fixed.tools)
        known = self._known(context)
        if known == (0, 1):
            self._segments, self._places = [head], []
        self._segments[0] = head
        del self._segments[known[1] :], self._places[known[0] :]
        self._entries, self._model, self._finished = entries, context.neutral.model, known
        self._write(entries, known[0], context.window.items)
        places = self._places
        return tuple(self._segments), tuple(sorted({0, *(places[point.index] for point in context.cache_points)}))

    def _known(self, context: RenderedContext) -> tuple[int, int]:
        """Return how many entries, and segments, are complete and equal to those of the previous context."""
        entries, (finished, _) = context.neutral.entries, self._finished
        same = begins_with(entries, self._entries[:finished])
        return self._finished if same and context.neutral.model == self._model else (0, 1)

    def _write(self, entries: Sequence[Entry], first: int, items: Sequence[Item]) -> None:
        """Write the entries from one on; the segments before the newest response are complete."""
        sizes = _sizes(items, {entry.path for entry in entries[first:]})
        gathered = gather(entries[first:], first_number=first)
        places = dict.fromkeys(range(first, len(entries)), 0)
        newest = max((n for n, item in enumerate(gathered) if isinstance(item, Response)), default=0)
        whole = True
        for number, item in enumerate(gathered):
            if number == newest and whole:
                self._finished = (_first_of(item), len(self._segments))
            whole = whole and (not isinstance(item, Response) or all(call.result for call in item.calls))
            for place, entry in _in_wire_order(item):
                if entry is None:
                    self._segments.append(_MISSING_RESULT)
                elif is_sent(entry, self._model):
                    tokens = sizes.pop(entry.path, 0) + (LOOSE_TOKENS if entry.loose else 0)
                    self._segments.append(Segment(_hash(entry), tokens))
                    places[place] = len(self._segments) - 1
        reached = self._places[-1] if self._places else 0
        for place in places.values():
            reached = max(reached, place)
            self._places.append(reached)


def is_sent(entry: Entry, model: str) -> bool:
    """Return whether a request to a model includes an entry: all but thoughts that the model does not take back."""
    return entry.type != _REASONING or sends_reasoning(entry, model)


def _hash(entry: Entry) -> int:
    """Return a hash of the entry as a wire sends it; the path counts only if the wire sends it."""
    told = "" if entry.arguments is None and entry.data is None else canonical_json([entry.arguments, entry.data])
    where = entry.path if entry.loose else ""
    return hash((entry.role, entry.text, entry.name, entry.call_id, entry.is_error, told, where))


def _first_of(item: Gathered) -> int:
    """Return the number of the first entry of something gathered."""
    if not isinstance(item, Response):
        return item.number
    first = item.parts[0]
    return first.number if isinstance(first, tuple) else first.placed.number


def _sizes(items: Sequence[Item], paths: set[str]) -> dict[str, int]:
    """Return the shown tokens of the blocks at some paths, which are at the end of the window."""
    sizes: dict[str, int] = {}
    for item in reversed(items):
        if len(sizes) == len(paths):
            break
        if item.block.path in paths:
            sizes[item.block.path] = item.shown_tokens
    return sizes


def _in_wire_order(item: Gathered) -> Iterator[tuple[int, Entry | None]]:
    """Yield the entries in the order of a request, with None in the place of a missing result."""
    if not isinstance(item, Response):
        yield item
        return
    said = [part if isinstance(part, tuple) else part.placed for part in item.parts]
    while said and said[-1].entry.type == _REASONING:
        said.pop()
    yield from said
    for call in item.calls:
        yield (-1, None) if call.result is None else call.result
