"""Measure a recording's blocks in the provider's tokens, from the usage of its own calls.

Between two calls the context grows only by the appended blocks; the growth is divided among them in proportion to our
own counts. The fixed part is the rest of the first call's input: system prompt and tools, which no recording has. So a
replayed policy decides on the provider's tokens, and none of our tokenizers affects the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from timeline.content.media_tokens import with_media
from timeline.events import BlockAppended, ModelCalled
from timeline.fold.turns import RESPONSE_BLOCKS
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.importers.recording import RecordedEvent, Recording
    from timeline.ports import TokenCounter
    from timeline.usage import CacheKind, Usage

VOCABULARY: Final = "o200k_base"
"""The counter that weighs a recording's blocks against each other; the provider's own figures scale the weights."""
LOWEST: Final = 0.3
HIGHEST: Final = 3.5
"""The plausible ratios; any other comes from unrecorded content, not from the tokenizer."""
USUAL: Final = 1.0
"""The provider's tokens for one of ours, for a recording without usable figures."""
_FAILED: Final = frozenset({"error", "aborted"})


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A model call of a recording.

    Attributes:
        position: position of the first event of its response; the call sent the events before it.
        start: when it was sent.
        end: when its answer was complete.
        model: the called model; empty if unknown.
        usage: as the provider reported it; None if nothing was reported.
    """

    position: int
    start: datetime
    end: datetime
    model: str
    usage: Usage | None

    @property
    def context(self) -> int:
        """Tokens of the whole input, as reported; 0 if nothing was reported."""
        return 0 if self.usage is None else self.usage.sent_tokens

    @property
    def long(self) -> bool:
        """Whether everything that it wrote to the cache was for the long time."""
        usage = self.usage
        return usage is not None and usage.cache_write_1h_tokens > 0 and not usage.cache_write_5m_tokens

    @property
    def long_head(self) -> bool:
        """Whether it wrote for both times: the long time comes first on the wire, so the head of the request has it."""
        usage = self.usage
        return usage is not None and usage.cache_write_1h_tokens > 0 and usage.cache_write_5m_tokens > 0


@dataclass(frozen=True, slots=True)
class ReplayedPast:
    """The part of a log that a replay takes as it was: its events, and how many of the recording's lie in it."""

    events: tuple[Event, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A recording with its sizes in the provider's tokens.

    Attributes:
        recording: the measured recording.
        calls: its answered model calls, in order.
        tokens: for each event of the recording the tokens of its block, or of the client's summary; else 0.
        fixed: tokens of system prompt and tools, and of any other unrecorded content.
        ratio: the provider's tokens for one of ours; the median.
        past: of a log that is replayed from one of its model calls on, what came before that call.
        unrecorded: tokens of the history in front that is not in the file (`timeline.lab.unrecorded`).
        cache: how the provider keeps prompts, if that is not as it was recorded (`timeline.lab.lifetimes`).
    """

    recording: Recording
    calls: tuple[ReplayedCall, ...]
    tokens: tuple[int, ...]
    fixed: int
    ratio: float
    past: ReplayedPast | None = None
    unrecorded: int = 0
    cache: CacheKind | None = None

    @property
    def long(self) -> bool:
        """Whether most calls wrote for the long time; if so, replayed calls do too."""
        if self.cache is not None:
            return self.cache == "1h"
        wrote = [call.long for call in self.calls if call.usage is not None]
        return 2 * sum(wrote) > len(wrote)

    @property
    def long_head(self) -> bool:
        """Whether the client's requests asked for the long time for their head, and the short time for the rest."""
        return any(call.long_head for call in self.calls)


def measure(recording: Recording, *, fixed: int | None = None) -> Measured:
    """Measure a recording's blocks.

    Args:
        recording: a recording from an importer.
        fixed: tokens of system prompt and tools; derived from the first call's usage unless given.
    """
    events = recording.events
    own = _own_tokens(events, get_counter(VOCABULARY))
    calls = calls_of_recording(events)
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


def calls_of_recording(events: Sequence[RecordedEvent]) -> tuple[ReplayedCall, ...]:
    """Return the model calls behind a recording's responses, in order.

    In a recording without any call, each response counts as a call, at the time of its first block; in any other, a
    response without a call was written by the client. A call that failed or was aborted before the provider counted
    anything is left out.
    """
    by_response = {e.payload.response_id: e for e in events if isinstance(e.payload, ModelCalled)}
    calls: list[ReplayedCall] = []
    seen: set[str] = set()
    for position, event in enumerate(events):
        response = _response_of(event)
        if response is None or response in seen:
            continue
        seen.add(response)
        called = by_response.get(response)
        payload = None if called is None else called.payload
        if called is None or not isinstance(payload, ModelCalled):
            if not by_response:
                calls.append(ReplayedCall(position, event.at, event.at, "", None))
        else:
            usage = payload.usage if payload.usage.sent_tokens else None
            if usage is not None or payload.finish_reason not in _FAILED:
                start = min(payload.started_at or event.at, called.at)
                calls.append(ReplayedCall(position, start, called.at, payload.model, usage))
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
    """Return the text that an event adds to the context, to be counted; None if it adds nothing."""
    if isinstance(event.payload, ImportedCompaction):
        return event.payload.summary
    block = block_of(event)
    return None if block is None else block.countable()


@dataclass(frozen=True, slots=True)
class _Span:
    """The events between two calls, and the growth of the context in between."""

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


def _spans(events: Sequence[RecordedEvent], calls: Sequence[ReplayedCall], own: Sequence[int]) -> list[_Span]:
    spans: list[_Span] = []
    before: ReplayedCall | None = None
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
    """Divide the growth of a span among its events; the shares add up exactly."""
    given = counted = 0
    for position in span.positions:
        counted += own[position]
        share = round(span.growth * counted / span.counted) - given
        tokens[position] = share
        given += share
