"""Figures of the cut-point design, drawn by renders: cache points before and after a compaction, and a split turn.

Turns are named as in the seed. A is the oldest, the current turn is E.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import Scribe, answer, exchange, opened, payloads_of, prompt, small_policy
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline import RenderedContext, Timeline

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=1_050)


async def five_turns(store: MemoryStore) -> Timeline:
    """Return the conversation of the figure: turns A to E of one round each, just under the trigger."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    for name in "ABCDE":
        await timeline.append(prompt(100, turn_id=name), answer(600 if name < "E" else 300))
    return timeline


def drawing(context: RenderedContext) -> str:
    """Draw a context as the seed does: turns in brackets, and behind a block its cache point."""
    points = {point.index: point.kind for point in context.cache_points}
    parts: list[str] = []
    for index, entry in enumerate(context.neutral.entries):
        turn = "SUMMARY" if entry.type == "conv.range.summary" else f"TURN {entry.path.split(':')[1].split('.')[0]}"
        if not parts or not parts[-1].startswith(f"[{turn}]"):
            parts.append(f"[{turn}]")
        if index in points:
            parts[-1] += f"^{points[index]}"
    return " ".join(parts)


@pytest.mark.shows("002-41", "002-42", "002-38", "002-39", "002-40")
async def test_cache_points_before_the_compaction_of_the_figure() -> None:
    """Pre-tail at the end of A, previous turn at the end of D, tail at the end of E: on last blocks, not between."""
    timeline = await five_turns(MemoryStore())
    context = await timeline.render()
    assert context.decisions == ()
    assert drawing(context) == "[TURN A]^pre_tail [TURN B] [TURN C] [TURN D]^previous_turn [TURN E]^tail"
    ends = {entry.path for entry in context.neutral.entries if entry.type == "assistant.completion"}
    assert {context.neutral.entries[point.index].path for point in context.cache_points} <= ends


@pytest.mark.shows("002-43", "002-28", "002-29", "002-44")
async def test_cache_points_after_the_compaction_of_the_figure() -> None:
    """The summary replaces A to C, D and E are in view, and too few rounds are left for a pre-tail point."""
    store = MemoryStore()
    timeline = await five_turns(store)
    await timeline.compact()
    assert drawing(await timeline.render()) == "[SUMMARY] [TURN D]^previous_turn [TURN E]^tail"
    [completed] = await payloads_of(store, "compaction.completed")
    assert completed.block.meta["covered_turn_ids"] == ["A", "B", "C"]
    assert "split_turn_id" not in completed.block.meta


@pytest.mark.shows("002-45", "002-23", "002-28", "002-29")
async def test_a_cut_inside_turn_c_of_the_figure() -> None:
    """The summary replaces A, B and the prefix of C; the tail of C, D and E are in view.

    The prompt of C is carried besides, so that the tail has its question.
    """
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    for name in "AB":
        await timeline.append(prompt(100, turn_id=name), answer(600))
    await timeline.append(prompt(50, turn_id="C"), *exchange("prefix", 600), *exchange("tail", 300))
    for name in "DE":
        await timeline.append(prompt(50, turn_id=name), answer(300))
    before = await timeline.render()
    assert before.decisions == ()
    assert drawing(before) == "[TURN A] [TURN B]^pre_tail [TURN C] [TURN D]^previous_turn [TURN E]^tail"
    await timeline.compact()
    context = await timeline.render()
    assert drawing(context) == "[SUMMARY] [TURN C] [TURN D]^previous_turn [TURN E]^tail"
    assert [entry.path for entry in context.neutral.entries][1:4] == [
        "ar:C.user.prompt",
        "tc:C.tail.call",
        "tc:C.tail.result",
    ]
    [completed] = await payloads_of(store, "compaction.completed")
    assert completed.block.meta["covered_turn_ids"] == ["A", "B"]
    assert completed.block.meta["split_turn_id"] == "C"
    assert "## Turn Context (split turn)\n\nturn prefix 1\n\n## Done so far" in completed.block.text
