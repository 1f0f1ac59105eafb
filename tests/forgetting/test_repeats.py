"""A redaction of another block changes nothing of what is shown of an abridged result: later ones refer to it."""

from __future__ import annotations

import pytest

from timeline import Timeline, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.policy.model import LineNumbers, Repeats
from timeline.store.memory import MemoryStore

LINES = [f"line {number} of a file that has something to say" for number in range(40)]
MORE = [f"and line {number} of its other half says more" for number in range(30)]


@pytest.mark.parametrize("redacted", [ToolCall, UserPrompt])
async def test_lines_that_another_block_still_has_stay_in_sight(redacted: type) -> None:
    """A redacted call leaves its result as it is, and a redacted prompt the lines of a file that have its words."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=policies.none(counter="chars4", repeats=Repeats()))
    await timeline.append(UserPrompt(text=MORE[10]))
    for name, lines in (("a", LINES), ("b", [*LINES, *MORE]), ("c", MORE)):
        asked = ToolCall(call_id=name, name="read_file", arguments={"path": "cards.py"}, response_id=name)
        await timeline.append(asked, ToolResult(call_id=name, text="\n".join(lines)))
        await timeline.render()
    blocks = [item.block for item in timeline.window.items if type(item.block) is redacted]
    await timeline.redact(blocks[-2 if redacted is ToolCall else 0].path, "test")
    context = await timeline.render()
    sent = "\n".join(entry.text for entry in context.neutral.entries)
    assert sent.count(MORE[11]) >= 1
    assert sent.count(MORE[10]) >= 1
    assert (await (await Timeline.open(store, "c")).verify()).ok


async def test_a_result_without_its_numbers_stays_in_sight_when_its_call_is_redacted() -> None:
    """A later result leaves its lines out: nobody would find them, were the first one a tombstone."""
    store = MemoryStore()
    policy = policies.none(counter="chars4", repeats=Repeats(), line_numbers=LineNumbers())
    timeline = await Timeline.open(store, "c", policy=policy)
    numbered = [f"{number:6}→{line}" for number, line in enumerate(LINES, 1)]
    for name, lines in (("a", numbered), ("b", LINES)):
        asked = ToolCall(call_id=name, name="read_file", arguments={"path": "cards.py"}, response_id=name)
        await timeline.append(asked, ToolResult(call_id=name, text="\n".join(lines)))
        await timeline.render()
    call, result, *_ = timeline.window.items
    await timeline.redact(call.block.path, "test")
    context = await timeline.render()
    shown = next(entry.text for entry in context.neutral.entries if entry.path == result.block.path)
    assert all(line in shown for line in LINES)
    assert (await (await Timeline.open(store, "c")).verify()).ok
