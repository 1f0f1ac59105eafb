"""A turn that is cut behind blocks without a word, such as items of the provider's own tools."""

from __future__ import annotations

from tests.scenes import answer, prompt
from timeline import Timeline, policies
from timeline.blocks import CustomBlock
from timeline.store.memory import MemoryStore


async def test_a_turn_that_is_cut_behind_blocks_without_a_word_is_compacted() -> None:
    """Nothing is asked about them; a summary of no tokens cannot be written, and the context stayed over its limit."""
    timeline = await Timeline.open(MemoryStore(), "c", policy=policies.cut_point(max_tokens=5_000))
    for number in range(30):
        await timeline.append(prompt(text=f"Question {number}. " + "w " * 200))
        await timeline.render()
        searched = CustomBlock(type="assistant.part", data={"type": "web_search_call"}, response_id=f"r{number}")
        await timeline.append(searched, answer(text="So it is. " * 38, response_id=f"r{number}"))
    assert timeline.window.summaries
    assert (await timeline.verify()).ok
