"""Dry runs in a loop: each is what a fresh handle renders of this log, whatever the runs before have left."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.recorded import needs_recordings, recorded
from tests.scenes import after, answer, call, prompt
from timeline import policies
from timeline.blocks import ToolResult
from timeline.errors import ContextOverflow
from timeline.events import BlockAppended
from timeline.lab.work import measured_file
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.policy.model import Policy

EACH = 5
"""A fresh handle renders every so many steps."""
POLICIES = ("balanced", "economical", "gentle", "prune_then_summarize", "priority_chain", "keep_last", "cut_point")


def policy_of(name: str, max_tokens: int) -> Policy:
    """Return a policy with so much room beside its reserve; it counts characters, so that a run takes no tokenizer."""
    made: Policy = getattr(policies, name)(max_tokens=max_tokens)
    return made.model_copy(update={"counter": "chars4", "max_tokens": max_tokens + made.output_reserve})


def said(call_id: str, text: str) -> Block:
    """Return what a tool said."""
    return ToolResult(call_id=call_id, name="run", text=text)


def work(rounds: int) -> list[Block]:
    """Return a conversation whose results are long enough to be hidden, cut and covered."""
    lines = "\n".join(f"line {number} of what `src/a_{number}.py` says" for number in range(60))
    made: list[Block] = []
    for number in range(rounds):
        if number % 9 == 0:
            made.append(prompt(text=f"Do part {number}, and keep limit_{number} as it is."))
        made += [call(f"c{number}", arguments={"file": f"src/a_{number}.py"}), said(f"c{number}", f"{number}: {lines}")]
        made.append(answer(text=f"Part {number} is done in src/a_{number}.py."))
    return made


async def dry(timeline: Timeline, seconds: float) -> str:
    """Return all of a dry run's context as text, or what it says where there is too much."""
    try:
        context = await timeline.render(system="You are an agent.", now=after(seconds), record=False)
    except ContextOverflow as refusal:
        return str(refusal)
    return json.dumps(context.dump(), sort_keys=True, default=str)


@pytest.mark.parametrize("name", POLICIES)
async def test_a_dry_run_in_a_loop_is_that_of_a_fresh_handle(name: str) -> None:
    """Blocks are appended one by one, far beyond the limit, and one of them is redacted on the way."""
    await _compare(work(20), policy_of(name, 6_000))


@needs_recordings
async def test_a_dry_run_of_a_recording_is_that_of_a_fresh_handle() -> None:
    """The same of what an agent said."""
    (measured, *_) = measured_file(str(recorded("claude-code/**/*.jsonl")[0]))
    events: Sequence[Any] = measured.recording.events
    blocks = [event.payload.block for event in events if isinstance(event.payload, BlockAppended)]
    await _compare([block.model_copy(update={"path": ""}) for block in blocks[:80]], policy_of("balanced", 10_000))


async def _compare(blocks: list[Block], policy: Policy) -> None:
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=policy, now=after(0))
    appended: list[Block] = []
    decided = 0
    for number, block in enumerate(blocks):
        appended += await timeline.append(block, now=after(number))
        if number == len(blocks) // 2:
            await timeline.redact(appended[1].path, "a test", now=after(number))
        ours = await dry(timeline, number)
        if number % EACH == 0:
            fresh = await dry(await Timeline.open(store, "c", policy=policy, now=after(0)), number)
            assert ours == fresh
        decided += '"kind": "compacted"' in ours or '"kind": "hidden"' in ours
    assert decided
