"""Validate the price model: predict the cache use of the recorded requests, and compare it with their reported usage.

The sizes are the recording's own; the rules of the cache are tested: which tokens are read, and which are written.

The requests are those that the client sent, as far as the recording shows, with the client's own compactions and hides.
System prompt and tools are in no recording: their tokens are the fixed part (`timeline.lab.sizes`), of which a share
survives a compaction. If the reported context is larger or smaller than the recorded content, a segment without content
makes up the difference.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from timeline.blocks import ToolResult
from timeline.frozen import Frozen
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.lab.cache import CacheRequest, Segment, charges
from timeline.lab.sizes import block_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from timeline.lab.cache import Change, Charge
    from timeline.lab.prices import Price
    from timeline.lab.sizes import Measured, ReplayedCall


HEAD_SHARE: Final = 0.78
"""The share of the fixed part in front of the messages: tools and system prompt. The rest is what a client puts into
the first message, and writes anew after a compaction. Measured by what recorded sessions read right after one."""
_PLACEHOLDER_TOKENS: Final = 12
"""The text that a client sends in the place of a result that it dropped."""


def requests_as_sent(measured: Measured) -> list[CacheRequest]:
    """Return the requests behind the calls of a recording whose usage was reported, in order."""
    client = _Client(measured)
    calls = {call.position: call for call in measured.calls if call.context}
    requests: list[CacheRequest] = []
    for position in range(len(measured.recording.events)):
        if (call := calls.get(position)) is not None:
            requests.append(client.send(call))
        client.take(position)
    return requests


class _Client:
    """The recorded client: the context that it would send now."""

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

    def send(self, call: ReplayedCall) -> CacheRequest:
        """Return the request of a call, as large as it was reported."""
        self._fit(call.context)
        segments = (self._head, *self._segments)
        tail = len(segments) - 1
        markers = tuple(sorted({0, min(self._tail, tail), tail}))
        long = len(markers) if call.long else int(self._long_head)
        changes, self._changes = frozenset(self._changes), set()
        self._tail = tail
        start, end = call.start.timestamp(), call.end.timestamp()
        return CacheRequest(start, end, call.model, segments, 0, 1, markers, long, changes)

    def _fit(self, context: int) -> None:
        """Make the context as large as the reported one: unrecorded content was added, or removed, at the end."""
        missing = context - self._head.tokens - sum(segment.tokens for segment in self._segments)
        if missing > 0:
            self._segments.append(Segment(next(self._names), missing))
        while missing < 0 and self._segments:
            last = self._segments.pop()
            missing += last.tokens
            if missing > 0:
                self._segments.append(Segment(next(self._names), missing))


MissCause: TypeAlias = Literal[
    "another_conversation",  # the first call reads what some other conversation had written
    "compaction",  # what the client put beside its summary is in no recording
    "shrunk",  # the context shrank without a word in the recording: old reasoning dropped, a reminder changed
    "miss",  # a miss inside the lifetime, for no reason that is recorded
    "late_hit",  # a hit after the lifetime
    "unrecorded_call",  # more was in the cache than this conversation had sent: a call beside it
]
_LEAST: Final = 256
_SHARE: Final = 0.01
"""A prediction is wrong if it misses the reported read by more tokens than both; `_SHARE` is of the context."""


class Sums(Frozen):
    """Tokens that were read and written, and what the input cost in base tokens."""

    read: int = 0
    written: int = 0
    units: float = 0.0


class Missed(Frozen):
    """A call whose read was predicted wrongly, and why that may be."""

    number: int
    cause: MissCause
    context: int
    predicted: int
    recorded: int
    idle_seconds: float


class Check(Frozen):
    """The predicted and the recorded sums of a conversation, or of several together.

    Attributes:
        file, conversation: the conversation; empty for several.
        calls: the number of calls with a reported usage.
        predicted, recorded: their sums.
        missed: the calls whose read was predicted wrongly, each with its likely cause.
    """

    file: str = ""
    conversation: str = ""
    calls: int = 0
    predicted: Sums = Sums()
    recorded: Sums = Sums()
    missed: tuple[Missed, ...] = ()

    @property
    def errors(self) -> dict[str, float | None]:
        """The relative error of each sum; None if nothing was recorded."""
        return {
            name: None
            if not (recorded := getattr(self.recorded, name))
            else getattr(self.predicted, name) / recorded - 1
            for name in Sums.model_fields
        }

    @property
    def causes(self) -> dict[str, dict[str, int]]:
        """The wrongly predicted calls and their wrong tokens, by cause; the most tokens first."""
        calls: Counter[str] = Counter(missed.cause for missed in self.missed)
        tokens: Counter[str] = Counter()
        for missed in self.missed:
            tokens[missed.cause] += abs(missed.predicted - missed.recorded)
        return {cause: {"calls": calls[cause], "tokens": count} for cause, count in tokens.most_common()}

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape."""
        return {**self.model_dump(mode="json"), "errors": self.errors, "causes": self.causes}


def check(measured: Measured, price_of: Callable[[str], Price], *, file: str = "") -> Check:
    """Predict what a recording's calls read and wrote, and compare it with their reports."""
    calls = [call for call in measured.calls if call.context]
    requests = requests_as_sent(measured)
    predicted = charges(requests, price_of)
    reported = [_reported(call, price_of) for call in calls]
    return Check(
        file=file,
        conversation=measured.recording.id,
        calls=len(calls),
        predicted=_sums(Sums(read=one.read, written=one.written, units=one.units) for one in predicted),
        recorded=_sums(reported),
        missed=tuple(_missed(calls, requests, predicted)),
    )


def check_together(checks: Sequence[Check]) -> Check:
    """Sum several conversations."""
    return Check(
        calls=sum(one.calls for one in checks),
        predicted=_sums(one.predicted for one in checks),
        recorded=_sums(one.recorded for one in checks),
        missed=tuple(missed for one in checks for missed in one.missed),
    )


def _sums(parts: Iterable[Sums]) -> Sums:
    found = list(parts)
    return Sums(
        read=sum(part.read for part in found),
        written=sum(part.written for part in found),
        units=sum(part.units for part in found),
    )


def _reported(call: ReplayedCall, price_of: Callable[[str], Price]) -> Sums:
    """Return a call's reported tokens, with their price."""
    usage = call.usage
    if usage is None:
        return Sums()
    written = usage.cache_write_tokens
    price = price_of(call.model)
    units = price.units(
        read=usage.cache_read_tokens,
        written=written,
        uncached=usage.input_tokens,
        written_long=usage.cache_write_1h_tokens,
    )
    return Sums(read=usage.cache_read_tokens, written=written, units=units)


def _missed(
    calls: Sequence[ReplayedCall], requests: Sequence[CacheRequest], predicted: Sequence[Charge]
) -> Iterable[Missed]:
    befores = [None, *calls[:-1]][: len(calls)]
    rows = zip(befores, calls, requests, predicted, strict=True)
    for number, (before, call, request, charge) in enumerate(rows, start=1):
        read = 0 if call.usage is None else call.usage.cache_read_tokens
        if abs(charge.read - read) <= max(_LEAST, _SHARE * call.context):
            continue
        idle = 0.0 if before is None else (call.start - before.end).total_seconds()
        yield Missed(
            number=number,
            cause=_cause(before, call, request, charge, read),
            context=call.context,
            predicted=charge.read,
            recorded=read,
            idle_seconds=idle,
        )


def _cause(
    before: ReplayedCall | None, call: ReplayedCall, request: CacheRequest, charge: Charge, read: int
) -> MissCause:
    if before is None:
        return "another_conversation"
    if "compaction" in request.changes:
        return "compaction"
    if charge.read < read:
        return "late_hit" if charge.cause == "gap" else "unrecorded_call"
    return "shrunk" if call.context < before.context else "miss"
