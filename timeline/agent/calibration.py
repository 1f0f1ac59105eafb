"""Calibration: measure how the provider's token counts compare with ours (design: Budget).

Two calls of one model with the same prompt and tools, and nothing rewritten between them, differ only by what was
appended. So the two counts are compared by their differences: text that only the provider knows (its own prompt for
tools, a hidden prefix) is in both calls, and is not charged to the conversation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from timeline.events import ContextRendered, ModelCalled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.events import Event
    from timeline.usage import Usage

LOWEST: Final = 0.7
HIGHEST: Final = 1.5
"""The ratio is limited to this range: a value outside of it does not come from a tokenizer."""
LEAST_COUNTED: Final = 1_000
"""Fewest compared tokens for a ratio; below, it is 1.0."""
REWRITES: Final = (
    "compaction.completed",
    "compaction.reverted",
    "blocks.hidden",
    "blocks.revealed",
    "block.redacted",
)
"""Events that rewrite the context, so that calls before and after them cannot be compared."""
FACTS: Final = ("model.called", "context.rendered", *REWRITES)
"""Types of the events that a calibration reads."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of a comparison.

    Attributes:
        ratio: the provider's tokens for each of ours, from 0.7 to 1.5; 1.0 while too little could be compared.
        reported: the provider's tokens for the compared text.
        counted: our tokens for the same text, the policy's margin included.
        model: the model that the provider's tokens are of.
    """

    ratio: float = 1.0
    reported: int = 0
    counted: int = 0
    model: str = ""


@dataclass(frozen=True, slots=True)
class _Call:
    prefix: tuple[str | None, ...]
    run: int
    counted: int
    reported: int


def calibrate(events: Iterable[Event]) -> Calibration:
    """Compare the calls of the newest model.

    Args:
        events: events of one conversation, by version; those of the types `FACTS` are enough.
    """
    rendered: dict[int, ContextRendered] = {}
    calls: list[_Call] = []
    model, run = "", 0
    for event in events:
        payload = event.payload
        if isinstance(payload, ContextRendered):
            rendered[event.version] = payload
        elif isinstance(payload, ModelCalled):
            answered = None if payload.answers is None else rendered.get(payload.answers)
            reported = _input(payload.usage)
            if answered is not None and reported:
                model = payload.model
                prefix = (model, answered.system, answered.tools)
                calls.append(_Call(prefix, run, answered.tokens, reported))
        elif event.type in REWRITES:
            run += 1
    reported_tokens = counted_tokens = 0
    for one, next_ in pairwise(call for call in calls if call.prefix[0] == model):
        if one.prefix == next_.prefix and one.run == next_.run and next_.counted > one.counted:
            reported_tokens += next_.reported - one.reported
            counted_tokens += next_.counted - one.counted
    if counted_tokens < LEAST_COUNTED:
        return Calibration(1.0, reported_tokens, counted_tokens, model)
    ratio = min(HIGHEST, max(LOWEST, reported_tokens / counted_tokens))
    return Calibration(ratio, reported_tokens, counted_tokens, model)


def _input(usage: Usage) -> int:
    """Return all input tokens of a call, from the cache or not."""
    written = usage.cache_write_5m_tokens + usage.cache_write_1h_tokens
    return usage.input_tokens + usage.cache_read_tokens + written
