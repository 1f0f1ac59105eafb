"""A redaction that reaches what is shown of a result, not the result: what others left out is shown again."""

from __future__ import annotations

import pytest

from timeline import Timeline, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.policy.model import Repeats
from timeline.store.memory import MemoryStore

LINES = [f"line {number} of a file that has something to say" for number in range(40)]
MORE = [f"and line {number} of its other half says more" for number in range(30)]


@pytest.mark.parametrize("redacted", [ToolCall, UserPrompt])
async def test_lines_that_another_block_still_has_stay_in_sight(redacted: type) -> None:
    """A call that is redacted takes the text in its result's place; a prompt the words that this text quotes."""
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
