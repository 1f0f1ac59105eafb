"""What never happened for the agent: people see it, no model and no summary does, and it can be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import opened, small_policy, turn
from timeline.agent.disowned import append_disowned
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline import Timeline

WORD = "zirconium"


async def rejected(timeline: Timeline, *blocks: Any) -> None:
    """Append a reply that was rejected."""
    await append_disowned(timeline._conversation, [blocks], "rejected", None)


async def test_a_rejected_reply_is_in_the_log_with_its_reason_and_in_no_context() -> None:
    """One append holds the blocks and their omission."""
    store = MemoryStore()
    timeline = await opened(store, "s")
    await timeline.append(UserPrompt(text="Go"))
    before = timeline.version
    await rejected(timeline, AssistantCompletion(text=f"It is {WORD}."), AssistantCompletion(text="Yes."))
    context = await timeline.render(record=False)
    shown = context.blocks
    assert timeline.version == before + 3
    assert WORD not in str(context.to_anthropic())
    told = [(block.state, block.reason) for block in shown if block.path.startswith("ar:turn_1.assistant")]
    assert [(state, reason.partition(";")[0]) for state, reason in told] == [("omitted", "rejected")] * 2
    assert (await timeline.read("ar:turn_1.assistant.completion")).text == f"It is {WORD}."
    assert (await timeline.verify()).ok


async def test_what_was_rejected_can_be_taken_back() -> None:
    """By the command for everything that is hidden."""
    timeline = await opened(MemoryStore(), "s")
    await timeline.append(UserPrompt(text="Go"))
    await rejected(timeline, AssistantCompletion(text=f"It is {WORD}."))
    await timeline.reveal("ar:turn_1.assistant.completion")
    assert WORD in str((await timeline.render()).to_anthropic())


async def test_no_summary_says_what_was_rejected() -> None:
    """Neither its text, nor its record, nor the digest, also of a later compaction."""
    store = MemoryStore()
    timeline = await opened(store, "s", policy=small_policy(max_tokens=4_000))
    await timeline.append(UserPrompt(text="Go"))
    call = ToolCall(call_id="c1", name="bash", arguments={"command": f"make {WORD}"})
    await rejected(timeline, call, ToolResult(call_id="c1", text=f"wrote {WORD}.py", exit_status=1))
    await rejected(timeline, AssistantCompletion(text=f"See https://example.com/{WORD} and {WORD}.py"))
    for _ in range(3):
        await timeline.append(*(block for _ in range(8) for block in turn(500, 30)))
        context = await timeline.render()
        assert timeline.window.summaries
        assert WORD not in str(context.to_anthropic())
    summary = timeline.window.summaries[-1]
    assert WORD not in str(await timeline.read(summary.block.path))
    assert timeline.compaction_state().count >= 2


@pytest.mark.parametrize("answered", [False, True])
async def test_a_rejected_call_is_answered_by_no_later_result(answered: bool) -> None:  # noqa: FBT001
    """The same call may come again, accepted this time: with its result it is sent as one pair."""
    timeline = await opened(MemoryStore(), "s")
    await timeline.append(UserPrompt(text="Go"))
    call = ToolCall(call_id="c1", name="bash", arguments={"command": WORD})
    result = [ToolResult(call_id="c1", text=WORD)] if answered else []
    await rejected(timeline, call, *result)
    await timeline.append(ToolCall(call_id="c1", name="bash", arguments={}), ToolResult(call_id="c1", text="withheld"))
    body = (await timeline.render()).to_openai_responses()["input"]
    assert [(item["type"], item.get("call_id")) for item in body[1:]] == [
        ("function_call", "c1"),
        ("function_call_output", "c1"),
    ]
    assert WORD not in str(body)
    assert not timeline.window.open_calls()


async def test_a_rejected_call_without_a_result_is_not_waited_for() -> None:
    """A compaction cuts behind it as if it were not there."""
    timeline = await opened(MemoryStore(), "s", policy=small_policy(max_tokens=4_000))
    await timeline.append(UserPrompt(text="Go"))
    await rejected(timeline, ToolCall(call_id="c1", name="bash", arguments={"command": WORD}))
    assert not timeline.window.open_calls()
    await timeline.append(*(block for _ in range(8) for block in turn(500, 30)))
    context = await timeline.render()
    assert timeline.compaction_state().count == 1
    assert WORD not in str(context.to_anthropic())
