"""The history of a resumed recording that its file does not hold: rounds of a known size and unknown content.

A client that resumes a session sends all of it, and may write only what is new into another file. The first call then
reports far more than system prompt and tools. What is above a usual fixed part is history: it can be hidden and
compacted like any other, so it is replayed as rounds of one call and its result, of the recording's own mean size. Two
thirds of a recorded conversation are results, and most of the rest are calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.events import BlockAppended
from timeline.importers.recording import RecordedEvent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.lab.sizes import Measured

MOST_FIXED: Final = 48_000
"""Tokens: a larger first call, less its blocks, is not system prompt and tools alone."""
USUAL_FIXED: Final = 42_000
"""Tokens of system prompt and tools where the first call cannot tell them: the median of 273 sessions, rounded up."""
CALL_SHARE: Final = 0.2
"""The share of a round's tokens that its call has; the result has the rest."""
LEAST_ROUND: Final = 500
"""Tokens of a round, at the least: a recording may begin with many small ones."""
MOST_ROUNDS: Final = 2_000
"""Rounds of a history, at the most: a first call that reports billions of tokens is wrong, and must come to an end."""
KEY: Final = "unrecorded"
"""Begins the keys of the events; no importer makes such keys."""


def with_history(measured: Measured) -> Measured:
    """Return a recording with its unrecorded history as rounds in front, or as it is where there is none."""
    history = measured.fixed - USUAL_FIXED
    if measured.fixed <= MOST_FIXED or not measured.calls:
        return measured
    per_round = max(LEAST_ROUND, sum(measured.tokens) // len(measured.calls), -(-history // MOST_ROUNDS))
    at = measured.recording.events[0].at
    placed = [*_history(history, per_round, at)]
    events = tuple(event for event, _ in placed)
    calls = tuple(replace(call, position=call.position + len(events)) for call in measured.calls)
    return replace(
        measured,
        recording=replace(measured.recording, events=(*events, *measured.recording.events)),
        calls=calls,
        tokens=(*(tokens for _, tokens in placed), *measured.tokens),
        fixed=USUAL_FIXED,
        unrecorded=history,
    )


def _history(tokens: int, per_round: int, at: datetime) -> Iterator[tuple[RecordedEvent, int]]:
    """Yield the events of so many tokens, each with its own."""
    prompt = UserPrompt(text="[a prompt that is not in the recording]", turn_id=KEY)
    yield _event(prompt, "prompt", at), 0
    rounds = max(1, round(tokens / per_round))
    for number in range(rounds):
        size = tokens * (number + 1) // rounds - tokens * number // rounds
        response, call_size = f"{KEY}-{number}", round(size * CALL_SHARE)
        call = ToolCall(call_id=response, name="unrecorded", arguments={}, response_id=response, turn_id=KEY)
        result = ToolResult(call_id=response, name="unrecorded", text="[a result that is not in the recording]")
        yield _event(call, f"call-{number}", at), call_size
        yield _event(result.model_copy(update={"turn_id": KEY}), f"result-{number}", at), size - call_size


def _event(block: Block, name: str, at: datetime) -> RecordedEvent:
    return RecordedEvent(BlockAppended(block=block, tokens=0, counter=""), at, f"{KEY}-{name}")
