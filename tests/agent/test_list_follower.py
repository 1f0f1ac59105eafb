"""A log in step with a framework's own list of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from tests.scenes import answer, call, log_of, opened, prompt, result, small_policy, words
from timeline.blocks import AssistantCompletion, ToolResult, UserPrompt
from timeline.store.memory import MemoryStore
from timeline.wire.neutral import INTERRUPTED

if TYPE_CHECKING:
    from timeline.blocks import Block

LIST: list[list[Block]] = [[prompt(5)], [answer(3), call("c1")], [result("c1", 9)]]


async def test_the_same_list_twice_appends_nothing() -> None:
    """What is in the log is known by what it says."""
    timeline = await opened(MemoryStore())
    follower = timeline.list_follower()
    assert len(await follower.take(LIST)) == 4
    assert await follower.take(LIST) == []
    assert await timeline.list_follower().take(LIST) == []


async def test_only_the_new_end_of_a_list_that_grew_is_appended() -> None:
    """The same words again are news where they stand behind all that is known."""
    timeline = await opened(MemoryStore())
    follower = timeline.list_follower()
    await follower.take(LIST)
    assert [block.type for block in await follower.take([*LIST, [prompt(5)]])] == ["user.prompt"]


async def test_what_others_appended_is_known() -> None:
    """A reply that was recorded comes back in the framework's list."""
    timeline = await opened(MemoryStore())
    follower = timeline.list_follower()
    await follower.take(LIST[:1])
    await timeline.append(answer(3), call("c1"))
    assert [block.type for block in await follower.take(LIST)] == ["react.tool.result"]


async def test_what_a_context_said_of_its_own_is_no_news() -> None:
    """Neither a summary, nor the line that stands for hidden content, nor the result of a call that has none."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=4_000))
    follower = timeline.list_follower()
    for number in range(8):
        told = f"{number} {words(500)}"
        await follower.take([[UserPrompt(text=f"{number} {words(30)}")], [AssistantCompletion(text=told)]])
    await timeline.render()
    (summary,) = timeline.window.summaries
    hidden = timeline.window.items[-1].block.path
    await timeline.hide(hidden)
    line = timeline.window.items[-1].replacement
    assert line is not None
    back: list[list[Block]] = [
        [UserPrompt(text=summary.block.text)],
        [AssistantCompletion(text=line.text)],
        [ToolResult(call_id="c9", text=INTERRUPTED)],
    ]
    assert await follower.take(back) == []


async def test_two_at_a_time_append_what_they_share_once() -> None:
    """Parallel calls of the model hand over one history."""
    store = MemoryStore()
    follower = (await opened(store)).list_follower()
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(follower.take, LIST)
    assert len([event for event in await log_of(store) if event.type == "block.appended"]) == 4


async def test_what_a_framework_says_it_left_is_omitted_once() -> None:
    """By the versions of its blocks; what was revealed since is left again only by a new call."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(5), answer(3), prompt(7), answer(9))
    gone = [item for item in timeline.window.items if item.block.turn_id == "turn_2"]
    await timeline.list_follower().leave([item.version for item in gone])
    left = {item.block.path: item.hide.reason for item in timeline.window.items if item.hide is not None}
    assert left == dict.fromkeys([item.block.path for item in gone], "abandoned")
    version = timeline.version
    await timeline.list_follower().leave([item.version for item in gone])
    await timeline.list_follower().leave([])
    assert timeline.version == version
    await timeline.reveal(gone[0].block.path)
    assert all(item.state == "visible" for item in timeline.window.items)
