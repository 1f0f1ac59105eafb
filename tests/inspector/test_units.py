"""Figures of a conversation whose policy counts in the provider's tokens: each is told in one unit.

What a decision writes is stored in the provider's tokens of its time, what an append writes in the counter's.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.inspector.asking import ask
from timeline import Timeline, policies
from timeline.blocks import ToolResult, UserPrompt
from timeline.cli.rows import read_rows
from timeline.events import ContextRendered
from timeline.lifecycle.live import present

if TYPE_CHECKING:
    from timeline.ports import EventStore

RATIO: Final = 1.5
"""How many tokens the provider counts where the counter counts one."""
_LATER: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
async def calibrated(store: EventStore) -> Timeline:
    """Hold a conversation of sixty calls, which were hidden from and compacted."""
    timeline = await Timeline.open(store, "c", policy=policies.balanced(max_tokens=6_000))
    for number in range(60):
        now = _LATER + timedelta(minutes=number + 20 * (number // 14))  # pauses, in which the cache goes cold
        if number % 5 == 0:
            await timeline.append(UserPrompt(text=f"Look at part {number}. " + "Say what you found. " * 8), now=now)
        await _call(store, timeline, number, now)
        text = f"line of part {number}\n" * 60
        await timeline.append(ToolResult(call_id=f"call_{number}", text=text), now=now + timedelta(seconds=2))
    return timeline


async def _call(store: EventStore, timeline: Timeline, number: int, now: datetime) -> None:
    """Render, send, and record the reply with the usage that such a provider reports."""
    context = await timeline.render(system="You are a careful programmer.", now=now)
    request = context.request("anthropic", model="claude-opus-4-5", max_tokens=4_096)
    [rendered] = [event.payload async for event in store.read("c", after=timeline.version - 1)]
    assert isinstance(rendered, ContextRendered)
    said = {"type": "tool_use", "id": f"call_{number}", "name": "bash", "input": {"command": f"make part-{number}"}}
    usage = {"input_tokens": round(rendered.counted * RATIO), "output_tokens": 30}
    reply: dict[str, Any] = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-opus-4-5"}
    reply |= {"usage": usage, "stop_reason": "tool_use", "content": [said]}
    await timeline.record(reply, request=request, now=now + timedelta(seconds=1))


async def test_beside_what_the_log_counts_a_context_has_its_system_prompt_and_no_more(
    app: Any, store: EventStore, calibrated: Timeline
) -> None:
    """At every call: the shares in the limit's tokens, and what is left of the total without the provider's own."""
    rendered = {event.version: event.payload async for event in store.read("c", types=["context.rendered"])}
    points = (await ask(app, "/v1/conversations/c/chart")).json["points"]
    assert {point["ratio"] for point in points} > {1.0}
    assert calibrated.window.state.compactions
    for point in points:
        shares = sum(tokens * point["ratio"] for tokens in point["by_role"].values())
        context = rendered[point["context"]]
        assert isinstance(context, ContextRendered)
        assert -30 < point["total"] - context.provider - shares < 60, point


async def test_the_rows_have_the_tokens_of_timeline_show(app: Any, store: EventStore, calibrated: Timeline) -> None:
    """Of summaries, of what is hidden and of what is not."""
    result = next(item for item in calibrated.window.items if isinstance(item.block, ToolResult))
    await calibrated.hide(result.block.path)
    listed = (await read_rows(store, "c")).rows
    rows = (await ask(app, "/v1/conversations/c/blocks", {"limit": 500})).json["rows"]
    told = {row["version"]: (row["state"], row["tokens"]) for row in rows if row["path"] is not None}
    assert told == {row.version: (row.state, row.tokens) for row in listed if row.path is not None}
    live = {item.version for item in calibrated.window.items}
    sent = {row["version"]: row["shown_tokens"] for row in rows if row["version"] in live}
    assert sent == {row.version: row.shown for row in listed if row.version in live}


async def test_a_conversation_is_as_full_in_the_list_as_in_its_page_and_in_its_stream(
    app: Any, store: EventStore, calibrated: Timeline
) -> None:
    """After a compaction that nothing was sent behind, and after its undo."""
    await calibrated.compact()
    for done in ("compacted", "taken back"):
        row = (await ask(app, "/v1/conversations/c")).json["conversation"]
        state = (await ask(app, "/v1/conversations/c/state")).json
        exact = sum(tokens * state["ratio"] for tokens in state["by_role"].values())
        assert abs(row["tokens"] - exact) < 60, done
        if done == "compacted":
            usage = (await present(store, "c")).progress.usage
            assert usage is not None
            assert abs(usage.current_tokens - exact) < 60
            await calibrated.undo_compaction()
