"""Which lines of a session each part of a rendered context stands for, so that a client may go back to any of them.

A client that was handed a context may be resumed at any line of it. What is left then is what the parts behind that
line stand for: not only the blocks that they show. A part stands for the lines up to the next part's first one, hidden
ones among them; a summary for all that it covers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.wire.anthropic import STEPWISE
from timeline.wire.groups import OPENING_LINE, Call, Placed, Response, gather

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.fold.window import Item, Window
    from timeline.projection.context import RenderedContext
    from timeline.wire.neutral import Entry, NeutralContext


class _Span(NamedTuple):
    """What a part of a context stands for: the item that it shows, and the first version that is left with it.

    Both are empty of a part that says nothing of the log.
    """

    first: int | None = None
    item: Item | None = None


_NOTHING: Final = _Span()


def lines_through(context: RenderedContext, lines: Sequence[tuple[int, str]], newest: str) -> list[str]:
    """Return for each part of a context's messages the newest line that it and the parts before it stand for.

    Args:
        context: without cache points and ephemeral texts.
        lines: each version that appended a block of a line, with the line's uuid, in order.
        newest: uuid of the newest line, which the last part stands for.

    Returns:
        A uuid for each part, in the order of the messages; empty where it stands for no line.
    """
    versions = [version for version, _ in lines]
    found: list[str] = []
    for end in _ends([*_Spans(context.window).of(context.neutral)], context.window):
        place = len(lines) if end is None else bisect_right(versions, end)
        found.append(newest if end is None else lines[place - 1][1] if place else "")
    return found


def _ends(spans: Sequence[_Span], window: Window) -> list[int | None]:
    """Return for each part the last version in front of all that is left behind it; None for the last part."""
    found: list[int | None] = []
    behind: int | None = None  # of the parts that show another item than the one in hand
    own: _Span = _NOTHING
    pending: int | None = None
    for span in reversed(spans):
        if span.item is None or span.item is not own.item:
            behind, own, pending = _least(behind, pending), span, None
        found.append(None if behind is None else behind - 1)
        pending = _least(pending, _left_with(span, window, behind))
    return found[::-1]


def _left_with(span: _Span, window: Window, behind: int | None) -> int | None:
    """Return the first version that is left with a part.

    A prompt that a compaction carried is sent behind the summary of what came of it. What came of it goes with it, also
    out of the summary, where its turn goes on behind the summary. Of a turn that the summary tells whole it stays.
    """
    if span.item is None or not span.item.carried:
        return span.first
    turn = [item.version for item in window.items if item.block.turn_id == span.item.block.turn_id]
    goes_on = behind is not None and any(version >= behind for version in turn)
    return span.item.version if goes_on else None


def _least(one: int | None, other: int | None) -> int | None:
    return min((number for number in (one, other) if number is not None), default=None)


class _Spans:
    """Finds what the parts of a window's context stand for."""

    def __init__(self, window: Window) -> None:
        self._items = {item.block.path: item for item in window.items}
        self._covered = {made.block.path: made.covers.ranges for made in window.summaries}
        self._starts: dict[int, int] = {}
        for item in window.items:
            self._starts[item.response] = min(item.version, self._starts.get(item.response, item.version))

    def of(self, neutral: NeutralContext) -> Iterator[_Span]:
        """Yield what each part of the messages stands for, as Anthropic's wire writes them."""
        writer = STEPWISE.start(neutral.model)
        written = 0
        for item in gather(neutral.entries):
            writer.add(item)
            parts = [part for message in writer.messages for part in message["content"]][written:]
            written += len(parts)
            if not isinstance(item, Response):
                yield from (self._of_entry(item.entry) for _ in parts)
                continue
            if parts and parts[0].get("text") == OPENING_LINE and len(parts) == written:
                yield _NOTHING
                del parts[0]
            yield from self._of_response(item, parts)

    def _of_entry(self, entry: Entry, *, is_first: bool = False) -> _Span:
        """Return what an entry stands for; the first one of a response also for what of it is not shown."""
        item = self._items[entry.path]
        if ranges := self._covered.get(entry.path):
            return _Span(ranges[0][0], item)
        return _Span(self._starts[item.response] if is_first and item.response else item.version, item)

    def _of_response(self, response: Response, parts: Sequence[dict[str, Any]]) -> Iterator[_Span]:
        """Yield what the parts of a response and its results stand for: each for itself and those before it."""
        answers = iter(response.calls)
        left = deque(response.parts)
        for part in parts:
            if part["type"] == "tool_result":
                result = next(answers).result
                yield _NOTHING if result is None else self._of_entry(result.entry)
                continue
            is_first = len(left) == len(response.parts)
            texts = self._texts_in_front(left)
            if part["type"] == "tool_use":
                call = left.popleft()
                yield self._of_entry(call.placed.entry if isinstance(call, Call) else call.entry, is_first=is_first)
            else:
                yield self._of_entry(texts[-1].entry, is_first=is_first) if texts else _NOTHING

    def _texts_in_front(self, left: deque[Placed | Call]) -> list[Placed]:
        """Take the parts before the next call; a text may be several, of which some have no part in the context."""
        texts: list[Placed] = []
        while left and isinstance(one := left[0], Placed):
            texts.append(one)
            left.popleft()
        return texts
