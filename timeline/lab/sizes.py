"""What a recording's blocks count with the provider that answered it, told by the usage of its own calls.

Between two calls the context grows by what was appended alone; that growth is spread over the blocks in between by our
own count of them. What stands before the first call and is in no recording, system prompt and tools, is the fixed part.
A policy that is replayed then decides on the provider's tokens, and no tokenizer of ours comes into the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from timeline.blocks import with_media
from timeline.events import BlockAppended, ModelCalled
from timeline.fold.turns import RESPONSE_BLOCKS
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.importers.recording import RecordedEvent, Recording
    from timeline.ports import TokenCounter
    from timeline.usage import Usage

VOCABULARY: Final = "o200k_base"
"""What weighs a recording's blocks against one another, before the provider's own figures scale them."""
LOWEST: Final = 0.3
HIGHEST: Final = 3.5
"""A ratio beyond these two measured something else than a tokenizer: content that no recording holds."""
USUAL: Final = 1.0
"""Provider's tokens for one of ours, where a recording tells nothing."""
_FAILED: Final = frozenset({"error", "aborted"})


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A model call of a recording.

    Attributes:
        position: of the first event of its response: what stands before it was sent.
        start: when it was sent.
        end: when its answer was complete.
        model: that was called; empty where nothing says it.
        usage: as the provider reported it; None where nothing was reported.
    """

    position: int
    start: datetime
    end: datetime
    model: str
    usage: Usage | None

    @property
    def context(self) -> int:
        """Tokens of the whole input, as reported; 0 where nothing was."""
        return 0 if self.usage is None else input_tokens(self.usage)

    @property
    def long(self) -> bool:
        """Whether all that it wrote into the cache was to be kept for the long time."""
        usage = self.usage
        return usage is not None and usage.cache_write_1h_tokens > 0 and not usage.cache_write_5m_tokens

    @property
    def long_head(self) -> bool:
        """Whether it wrote for both times: what is kept for long stands first, so that is the head of the request."""
        usage = self.usage
        return usage is not None and usage.cache_write_1h_tokens > 0 and usage.cache_write_5m_tokens > 0


def input_tokens(usage: Usage) -> int:
    """Return the whole input of a call, whatever answered it."""
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_5m_tokens + usage.cache_write_1h_tokens


@dataclass(frozen=True, slots=True)
class Measured:
    """A recording with its sizes in the provider's tokens.

    Attributes:
        recording: that was measured.
        calls: its model calls that were answered, in order.
        tokens: of each event of the recording: of the block that it appends, or of the client's summary; else 0.
        fixed: tokens of system prompt and tools, and of whatever else no event holds.
        ratio: the provider's tokens for one of ours, in the middle.
    """

    recording: Recording
    calls: tuple[RecordedCall, ...]
    tokens: tuple[int, ...]
    fixed: int
    ratio: float

    @property
    def long(self) -> bool:
        """Whether most calls wrote for the long time: then a replayed call does."""
        wrote = [call.long for call in self.calls if call.usage is not None]
        return 2 * sum(wrote) > len(wrote)

    @property
    def long_head(self) -> bool:
        """Whether the recorded client had the head of its requests kept for the long time, the rest for the short."""
        return any(call.long_head for call in self.calls)


def measure(recording: Recording, *, fixed: int | None = None) -> Measured:
    """Measure a recording's blocks.

    Args:
        recording: what an importer read.
        fixed: tokens of system prompt and tools; told by the first call's usage unless given.
    """
    events = recording.events
    own = _own_tokens(events, get_counter(VOCABULARY))
    calls = recorded_calls(events)
    spans = _spans(events, calls, own)
    ratios = [span.ratio for span in spans if span.fits]
    ratio = median(ratios) if ratios else USUAL
    tokens = [round(count * ratio) for count in own]
    for span in spans:
        if span.fits:
            _spread(tokens, own, span)
    first = next((call for call in calls if call.context), None)
    if fixed is None:
        fixed = 0 if first is None else max(0, first.context - sum(tokens[: first.position]))
    return Measured(recording, calls, tuple(tokens), fixed, ratio)


def recorded_calls(events: Sequence[RecordedEvent]) -> tuple[RecordedCall, ...]:
    """Return the model calls behind a recording's responses, in order.

    Where a recording tells of no calls at all, each response counts as one, at the time of its first block; elsewhere a
    response without a call was made up by the client. A call that failed or was broken off before the provider counted
    anything is none.
    """
    told = {e.payload.response_id: e for e in events if isinstance(e.payload, ModelCalled)}
    calls: list[RecordedCall] = []
    seen: set[str] = set()
    for position, event in enumerate(events):
        response = _response_of(event)
        if response is None or response in seen:
            continue
        seen.add(response)
        called = told.get(response)
        payload = None if called is None else called.payload
        if called is None or not isinstance(payload, ModelCalled):
            if not told:
                calls.append(RecordedCall(position, event.at, event.at, "", None))
        else:
            usage = payload.usage if input_tokens(payload.usage) else None
            if usage is not None or payload.finish_reason not in _FAILED:
                start = min(payload.started_at or event.at, called.at)
                calls.append(RecordedCall(position, start, called.at, payload.model, usage))
    return tuple(calls)


def _response_of(event: RecordedEvent) -> str | None:
    """Return the response that an event's block is part of; None for any other event."""
    block = block_of(event)
    return None if block is None or type(block) not in RESPONSE_BLOCKS else block.response_id or event.key


def block_of(event: RecordedEvent) -> Block | None:
    """Return the block that an event appends, or None."""
    return event.payload.block if isinstance(event.payload, BlockAppended) else None


def _own_tokens(events: Sequence[RecordedEvent], counter: TokenCounter) -> list[int]:
    counts = iter(counter.count_many([text for event in events if (text := _text_of(event)) is not None]))
    own: list[int] = []
    for event in events:
        block = block_of(event)
        counted = 0 if _text_of(event) is None else next(counts)
        own.append(counted if block is None else with_media(block, counted))
    return own


def _text_of(event: RecordedEvent) -> str | None:
    """Return what an event adds to the context, as a text to count; None where it adds nothing."""
    if isinstance(event.payload, ImportedCompaction):
        return event.payload.summary
    block = block_of(event)
    return None if block is None else block.countable()


@dataclass(frozen=True, slots=True)
class _Span:
    """The events between two calls, and by how much the context grew meanwhile."""

    positions: range
    growth: int
    counted: int
    rewritten: bool

    @property
    def ratio(self) -> float:
        return self.growth / self.counted if self.counted else 0.0

    @property
    def fits(self) -> bool:
        return not self.rewritten and LOWEST <= self.ratio <= HIGHEST


def _spans(events: Sequence[RecordedEvent], calls: Sequence[RecordedCall], own: Sequence[int]) -> list[_Span]:
    spans: list[_Span] = []
    before: RecordedCall | None = None
    for call in calls:
        if not call.context:
            continue
        if before is not None:
            positions = range(before.position, call.position)
            rewritten = before.model != call.model or any(
                isinstance(events[p].payload, ImportedCompaction | ImportedHide) for p in positions
            )
            counted = sum(own[p] for p in positions)
            spans.append(_Span(positions, call.context - before.context, counted, rewritten))
        before = call
    return spans


def _spread(tokens: list[int], own: Sequence[int], span: _Span) -> None:
    """Give the events of a span their shares of its growth, which add up to it exactly."""
    given = counted = 0
    for position in span.positions:
        counted += own[position]
        share = round(span.growth * counted / span.counted) - given
        tokens[position] = share
        given += share
