"""Turn a rendered context into what the provider's cache sees: segments in wire order, and the places of markers."""

from __future__ import annotations

from itertools import accumulate
from operator import is_
from typing import TYPE_CHECKING, Final

from timeline.frozen import begins_with, canonical_json, common_length
from timeline.lab.cache import Segment
from timeline.planning.costs import INTERRUPTED_TOKENS, LOOSE_TOKENS
from timeline.wire.anthropic import sends_reasoning
from timeline.wire.groups import Gatherer, Placed, Response
from timeline.wire.neutral import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from timeline.fold.window import Item
    from timeline.lab.shown import ShownContext
    from timeline.wire.groups import GatherMark
    from timeline.wire.groups import Item as Gathered
    from timeline.wire.neutral import Entry

_REASONING: Final = "assistant.reasoning"
SYSTEM: Final = 1
"""Segments in front of the messages: tools and system prompt, whose bytes no recording holds, are one."""
_HEAD: Final = hash(("system", "tools"))
"""The hash of that segment: its bytes never change."""
_MISSING_RESULT: Final = Segment(hash(("result", INTERRUPTED)), INTERRUPTED_TOKENS)
"""What the wire sends for a call without a result."""


class Thoughts:
    """Which entries of a recording models are sent. A thought is looked at once, however often it is projected."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[Entry, bool]] = {}

    def is_sent(self, entry: Entry, model: str) -> bool:
        """Return whether a request to a model includes an entry, as `is_sent` does."""
        if entry.type != _REASONING:
            return True
        known = self._known.get((id(entry), model))
        if known is None:  # the entry stays, and with it its id
            known = self._known[id(entry), model] = entry, sends_reasoning(entry, model)
        return known[1]

    def unsent(self, entries: Iterable[Entry], model: str) -> set[str]:
        """Return the paths of the entries that a request to a model leaves out."""
        return {each.path for each in entries if each.type == _REASONING and not self.is_sent(each, model)}


class Segmenter:
    """Turns the contexts of one conversation into segments.

    As on Anthropic's wire, a response's results follow right behind it, and reasoning that is not sent is left out. A
    context is gathered from the last mark on before which it is the previous one: only what its new entries join is
    written anew. Some policies hide at each call, mostly near the end.
    Hashes are valid in this process alone: they are compared within the conversation, and never stored.

    Args:
        alike: hashes of entries that several conversations have in common, by the id of each object.
        thoughts: knows which of the conversation's a model takes back.
    """

    def __init__(self, alike: Mapping[int, int] | None = None, thoughts: Thoughts | None = None) -> None:
        self._alike: Mapping[int, int] = {} if alike is None else alike
        self._thoughts = thoughts or Thoughts()
        self._hashes: dict[int, tuple[Entry, int]] = {}
        self._begin("")

    def _begin(self, model: str) -> None:
        """Forget the previous context, but not the hashes of its entries."""
        self._model = model
        self._entries: Sequence[Entry] = ()
        self._gatherer = Gatherer()
        self._sizes: list[int] = []
        self._segments: list[Segment] = []
        self._starts: list[int] = []
        self._own_places: list[int] = []
        self._places: list[int] = []
        self._marks: list[tuple[int, GatherMark]] = []

    def copy(self) -> Segmenter:
        """Return an independent copy, which gathers its first context from the beginning."""
        twin = Segmenter(self._alike, self._thoughts)
        twin._hashes = {**self._hashes}
        return twin

    def segments(self, shown: ShownContext) -> tuple[tuple[Segment, ...], tuple[int, ...]]:
        """Return a context's segments, and the positions of those with a cache marker, rising."""
        fixed, model = shown.fixed, shown.window.model
        head = Segment(_HEAD, fixed.system + fixed.tools)
        joined = len(self._gatherer.items)
        if model != self._model:
            self._begin(model)
        elif not begins_with(shown.entries, self._entries):
            joined = self._back_to(common_length(self._entries, shown.entries, is_))
        self._take(shown.entries, shown.window.items, joined)
        self._entries = shown.entries
        places = self._places
        return (head, *self._segments), tuple(sorted({0, *[places[point.index] for point in shown.points]}))

    def _back_to(self, alike: int) -> int:
        """Go back to the last mark within the first entries; return from which gathered item on to write anew."""
        while self._marks and self._marks[-1][0] > alike:
            self._marks.pop()
        if not self._marks:
            self._begin(self._model)
            return 0
        entries, mark = self._marks[-1]
        del self._sizes[entries:], self._own_places[entries:], self._places[entries:]
        joined = self._gatherer.back_to(mark)
        if joined < len(self._starts):
            del self._segments[self._starts[joined] :], self._starts[joined:]
        for part in mark.newest.parts if mark.newest is not None else ():
            if isinstance(part, Placed):  # a thought that is its last part now has no segment any more
                self._own_places[part.number] = 0
        return joined

    def _take(self, entries: Sequence[Entry], items: Sequence[Item], joined: int) -> None:
        """Take the entries behind the known ones; write what they join, and all items from ``joined`` on, anew."""
        known = len(self._sizes)
        new = entries[known:]
        sizes = _sizes(items, {entry.path for entry in new})
        path = entries[known - 1].path if known else ""
        for number, entry in enumerate(new, start=known):
            if entry.path != path and (mark := self._gatherer.mark()) is not None:
                self._marks.append((number, mark))
            joined = min(joined, self._gatherer.take(Placed(number, entry)))
            self._sizes.append(sizes.pop(entry.path, 0) + (LOOSE_TOKENS if entry.loose else 0))
            self._own_places.append(0)
            path = entry.path
        self._write(joined)

    def _write(self, joined: int) -> None:
        """Write the gathered items from one on."""
        if joined == len(self._gatherer.items):
            return
        if joined < len(self._starts):
            del self._segments[self._starts[joined] :], self._starts[joined:]
        segments, own, model, is_sent = self._segments, self._own_places, self._model, self._thoughts.is_sent
        for item in self._gatherer.items[joined:]:
            self._starts.append(len(segments))
            for place, entry in _in_wire_order(item):
                if entry is None:
                    segments.append(_MISSING_RESULT)
                elif entry.type != _REASONING or is_sent(entry, model):
                    segments.append(Segment(self._hash(entry), self._sizes[place]))
                    own[place] = len(segments)  # behind the head
        first = self._gatherer.items[joined].first
        del self._places[first:]
        reached = self._places[-1] if self._places else 0
        self._places += accumulate(own[first:], max, initial=reached)
        del self._places[first]  # the initial value

    def _hash(self, entry: Entry) -> int:
        """Return the hash of an entry, which is worked out once."""
        if (alike := self._alike.get(id(entry))) is not None:
            return alike
        known = self._hashes.get(id(entry))
        if known is None:
            known = self._hashes[id(entry)] = entry, hash_of(entry)  # the entry stays, and with it its id
        return known[1]


def is_sent(entry: Entry, model: str) -> bool:
    """Return whether a request to a model includes an entry: all but thoughts that the model does not take back."""
    return entry.type != _REASONING or sends_reasoning(entry, model)


def hash_of(entry: Entry) -> int:
    """Return a hash of the entry as a wire sends it; the path counts only if the wire sends it."""
    arguments, data = entry.arguments, entry.data
    content = "" if arguments is None else canonical_json(arguments), "" if data is None else canonical_json(data)
    where = entry.path if entry.loose else ""
    return hash((entry.role, entry.text, entry.name, entry.call_id, entry.is_error, content, where))


def _sizes(items: Sequence[Item], paths: set[str]) -> dict[str, int]:
    """Return the shown tokens of the blocks at some paths, which are at the end of the window."""
    sizes: dict[str, int] = {}
    for place in range(len(items) - 1, -1, -1):
        if len(sizes) == len(paths):
            break
        item = items[place]
        if item.block.path in paths:
            sizes[item.block.path] = item.shown_tokens
    return sizes


def _in_wire_order(item: Gathered) -> Iterator[tuple[int, Entry | None]]:
    """Yield the entries in the order of a request, with None in the place of a missing result."""
    if not isinstance(item, Response):
        yield item
        return
    placed = [part if isinstance(part, tuple) else part.placed for part in item.parts]
    while placed and placed[-1].entry.type == _REASONING:
        placed.pop()
    yield from placed
    for call in item.calls:
        yield (-1, None) if call.result is None else call.result
