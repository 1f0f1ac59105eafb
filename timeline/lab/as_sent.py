"""The requests that a recorded client really sent, as far as its recording tells: what the price model is tested on.

Compactions and hides are the client's own. System prompt and tools are in no recording: their tokens are the fixed part
(`timeline.lab.sizes`), of which a share survives a compaction. Where the reported context says that something else came
or went, a segment without content stands for it.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolResult
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.lab.cache import Request, Segment
from timeline.lab.sizes import block_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.lab.cache import Change
    from timeline.lab.sizes import Measured, RecordedCall

HEAD_SHARE: Final = 0.78
"""Of the fixed part, what stands in front of the messages: tools and system prompt. The rest is what a client puts into
the first message, and writes anew after a compaction. From what recorded sessions read right behind one."""
_PLACEHOLDER_TOKENS: Final = 12
"""What a client leaves in the place of a result that it stopped sending."""


def requests_as_sent(measured: Measured) -> list[Request]:
    """Return the requests behind the calls of a recording whose usage was reported, in order."""
    client = _Client(measured)
    calls = {call.position: call for call in measured.calls if call.context}
    requests: list[Request] = []
    for position in range(len(measured.recording.events)):
        if (call := calls.get(position)) is not None:
            requests.append(client.send(call))
        client.take(position)
    return requests


class _Client:
    """What the recorded client would send now."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self._names: Iterator[int] = count()
        head = round(measured.fixed * HEAD_SHARE)
        self._head = Segment(next(self._names), head)
        self._segments = [Segment(next(self._names), measured.fixed - head)]
        self._results: dict[str, int] = {}
        self._changes: set[Change] = set()
        self._tail = 0
        self._long_head = measured.long_head

    def take(self, position: int) -> None:
        """Take in an event of the recording."""
        event = self._measured.recording.events[position]
        match event.payload:
            case ImportedCompaction(kept_blocks=kept):
                summary = Segment(next(self._names), self._measured.tokens[position])
                self._segments = [summary, *(self._segments[-kept:] if kept else ())]
                self._results.clear()
                self._changes.add("compaction")
            case ImportedHide(call_ids=ids):
                for place in (self._results[id_] for id_ in ids if id_ in self._results):
                    self._segments[place] = Segment(next(self._names), _PLACEHOLDER_TOKENS)
                self._changes.add("hide")
            case _:
                block = block_of(event)
                if isinstance(block, ToolResult):
                    self._results[block.call_id] = len(self._segments)
                if block is not None:
                    self._segments.append(Segment(next(self._names), self._measured.tokens[position]))

    def send(self, call: RecordedCall) -> Request:
        """Return the request of a call, as large as it was reported."""
        self._fit(call.context)
        segments = (self._head, *self._segments)
        tail = len(segments) - 1
        markers = tuple(sorted({0, min(self._tail, tail), tail}))
        long = len(markers) if call.long else int(self._long_head)
        changes, self._changes = frozenset(self._changes), set()
        self._tail = tail
        start, end = call.start.timestamp(), call.end.timestamp()
        return Request(start, end, call.model, segments, 0, 1, markers, long, changes)

    def _fit(self, context: int) -> None:
        """Make what is sent as large as the reported context: something unrecorded came, or went, at the end."""
        missing = context - self._head.tokens - sum(segment.tokens for segment in self._segments)
        if missing > 0:
            self._segments.append(Segment(next(self._names), missing))
        while missing < 0 and self._segments:
            last = self._segments.pop()
            missing += last.tokens
            if missing > 0:
                self._segments.append(Segment(next(self._names), missing))
