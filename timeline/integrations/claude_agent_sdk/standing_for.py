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
    """The versions that a part of a context stands for; ``last`` is 0 where it says nothing of the log."""

    first: int
    last: int
    item: Item | None = None


def lines_through(context: RenderedContext, lines: Sequence[tuple[int, str]], newest: str) -> list[str]:
    """Return for each part of a context's messages the newest line that it and the parts before it stand for.

    Args:
        context: without cache points and ephemeral texts.
        lines: each version that appended a block of a line, with the line's uuid, in order.
        newest: uuid of the newest line, which the last part stands for.

    Returns:
        A uuid for each part, in the order of the messages; empty where it stands for no line.
    """
    spans = [*_Spans(context.window).of(context.neutral)]
    versions = [version for version, _ in lines]
    found: list[str] = []
    last = 0
    for number, span in enumerate(spans):
        last = max(last, span.last)
        later = spans[number + 1 :]
        end = next((after.first - 1 for after in later if after.first > last), None)
        end = _before_an_open_turn(later, end, context.window)
        if end is None:
            found.append(newest)
        else:
            place = bisect_right(versions, end)
            found.append(lines[place - 1][1] if place else "")
    return found


def _before_an_open_turn(later: Sequence[_Span], end: int | None, window: Window) -> int | None:
    """Return an end that is in front of a turn whose prompt comes later in the context.

    A prompt that a compaction carried is sent behind the summary of what came of it. Without the prompt nothing of its
    turn is to be kept, also what the summary tells of it; but for turns that the summary tells whole.
    """
    for span in later:
        item = span.item
        if item is None or not item.carried or (end is not None and item.version > end):
            continue
        turn = [one.version for one in window.items if one.block.turn_id == item.block.turn_id and not one.is_summary]
        if end is None or max(turn) > end:
            end = min(turn) - 1
    return end


_NOTHING: Final = _Span(0, 0)


class _Spans:
    """Finds what the parts of a window's context stand for."""

    def __init__(self, window: Window) -> None:
        self._items = {item.block.path: item for item in window.items}
        self._covered = {made.block.path: made.covers.ranges for made in window.summaries}
        self._starts: dict[int, int] = {}
        for item in window.items:
            if item.response:
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

    def _of_entry(self, entry: Entry) -> _Span:
        item = self._items[entry.path]
        ranges = self._covered.get(entry.path)
        if ranges:
            return _Span(ranges[0][0], ranges[-1][1], item)
        return _Span(self._starts.get(item.response, item.version), item.version, item)

    def _of_response(self, response: Response, parts: Sequence[dict[str, Any]]) -> Iterator[_Span]:
        """Yield what the parts of a response and its results stand for: each for itself and those before it."""
        answers = iter(response.calls)
        left = deque(response.parts)
        for part in parts:
            if part["type"] == "tool_result":
                result = next(answers).result
                yield _NOTHING if result is None else self._of_entry(result.entry)
                continue
            texts = self._texts_in_front(left)
            if part["type"] == "tool_use":
                call = left.popleft()
                yield self._of_entry(call.placed.entry if isinstance(call, Call) else call.entry)
            else:
                yield self._of_entry(texts[-1].entry) if texts else _NOTHING

    def _texts_in_front(self, left: deque[Placed | Call]) -> list[Placed]:
        """Take the parts before the next call; a text may be several, of which some have no part in the context."""
        texts: list[Placed] = []
        while left and isinstance(one := left[0], Placed):
            texts.append(one)
            left.popleft()
        return texts
