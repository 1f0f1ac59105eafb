"""A runtime without a list of messages goes back behind a block of the log."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.log.counted import Counted
from tests.scenes import AT, answer, call, opened, prompt, result, small_policy, words
from timeline import Timeline, policies
from timeline.agent.going_back import left_at_the_end
from timeline.blocks import AssistantCompletion, Attachment, ToolCall, UserPrompt
from timeline.errors import BlockNotFound, BlockProtected
from timeline.events import BlockRedacted, event_id, new_event
from timeline.store.memory import MemoryStore


async def shown(timeline: Timeline) -> list[str]:
    """Return the paths of what a model is shown."""
    return [block.path for block in (await timeline.render(record=False)).blocks if block.state != "omitted"]


async def said(timeline: Timeline) -> str:
    """Return all that a model is shown, as text."""
    return str((await timeline.render(record=False)).to_anthropic()["messages"])


async def test_a_turn_that_is_taken_back_is_in_no_context_and_no_history() -> None:
    """What left comes back to the caller: a runtime puts the prompt into its line of input again."""
    timeline = await opened(MemoryStore())
    stays = await timeline.append(prompt(5), answer(3))
    gone = await timeline.append(UserPrompt(text="Delete it."), call("c1"), result("c1", 9), answer(2))
    version = timeline.version
    assert await timeline.go_back(gone[0].path) == gone
    assert timeline.version == version + 1
    assert await shown(timeline) == [block.path for block in stays]
    assert len(await timeline.messages("openai_chat")) == 2
    assert (await timeline.verify()).ok


async def test_reveal_of_one_block_takes_all_of_them_back() -> None:
    """A redo."""
    timeline = await opened(MemoryStore())
    blocks = await timeline.append(prompt(5), answer(3), prompt(7), answer(9))
    await timeline.go_back(blocks[2].path)
    await timeline.reveal(blocks[3].path)
    assert await shown(timeline) == [block.path for block in blocks]


async def test_a_redo_leaves_hidden_what_was_hidden_and_lets_later_renders_hide_the_rest() -> None:
    """Once the cache is cold, the context is the one that there is without the undo."""
    contexts = []
    for undone in (False, True):
        timeline, now = await opened(MemoryStore(), policy=policies.balanced(max_tokens=20_000)), AT
        for turn in range(4):
            [first, *_] = await timeline.append(prompt(5), now=now)
            for number in range(4):
                id_ = f"c{turn}{number}"
                await timeline.append(call(id_), result(id_, 600), now=now)
                await timeline.render(now=now)
                now += timedelta(seconds=10)
        secret = timeline.window.items[-1].block
        await timeline.hide(secret.path, text="kept from the model", now=now)
        if undone:
            await timeline.go_back(first.path, now=now)
            await timeline.reveal(first.path, now=now)
            assert "kept from the model" in await said(timeline)
        context = await timeline.render(now=now + timedelta(hours=3))
        contexts.append([(block.path, block.state, block.tokens) for block in context.blocks])
    assert contexts[0] == contexts[1]
    assert {"hidden", "visible"} <= {state for _, state, _ in contexts[0]}


async def test_of_turns_that_were_taken_back_one_after_the_other_the_last_one_comes_back_first() -> None:
    """Undo, undo, redo, redo, in another process, too: each redo gives what was sent before the undo."""
    store = MemoryStore()
    timeline = await opened(store)
    for number in range(3):
        await timeline.append(UserPrompt(text=f"question {number}"), answer(3))
    seen = [await said(timeline)]
    left = []
    for _ in range(2):
        left.append((await timeline.go_back())[0])
        seen.append(await said(timeline))
    other = await Timeline.open(store, timeline.id)
    for before in reversed(seen[:-1]):
        await other.reveal(left.pop().path)
        assert await said(other) == before


async def test_the_first_of_several_turns_that_were_taken_back_brings_all_of_them() -> None:
    """It stands behind the others: alone it would answer a prompt that is not there."""
    timeline = await opened(MemoryStore())
    blocks = await timeline.append(prompt(5), answer(3), prompt(7), answer(9))
    await timeline.go_back()
    await timeline.go_back()
    await timeline.reveal(blocks[3].path)
    assert await shown(timeline) == [block.path for block in blocks]


async def test_going_back_behind_a_compaction_shows_again_what_stays_and_may_compact_again() -> None:
    """The summary knew of what left, so it goes; unlike an undo by hand this holds no later render."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=4_000))
    for number in range(12):
        told = f"answer {number} {words(400)}"
        await timeline.append(UserPrompt(text=f"question {number}"), AssistantCompletion(text=told))
        await timeline.render()
    assert timeline.window.summary is not None
    left = await timeline.go_back("ar:turn_2.user.prompt")
    assert [block.text for block in left[:1]] == ["question 1"]
    assert len(left) == 22
    assert timeline.window.summary is None
    assert timeline.window.hold == ""
    assert "question 0" in await said(timeline)
    assert "question 1" not in await said(timeline)
    assert (await timeline.verify()).ok


@pytest.mark.parametrize("named", [1, 2, 3, 4])
async def test_a_block_inside_a_response_stands_for_all_of_it(named: int) -> None:
    """No call stays without its result, and no result without its call."""
    timeline = await opened(MemoryStore())
    blocks = await timeline.append(
        prompt(5),
        AssistantCompletion(text="I look.", response_id="msg_1"),
        ToolCall(call_id="c1", name="ls", response_id="msg_1"),
        ToolCall(call_id="c2", name="ls", response_id="msg_1"),
        result("c1", 4),
        result("c2", 4),
    )
    assert await timeline.go_back(blocks[named].path) == blocks[1:]
    assert timeline.window.open_calls() == ()
    assert await shown(timeline) == [blocks[0].path]


async def test_the_late_result_of_a_call_that_stays_stays_with_it() -> None:
    """What a tool did in an earlier turn is not undone by a later prompt that is."""
    timeline = await opened(MemoryStore())
    [_, waiting] = await timeline.append(prompt(5), ToolCall(call_id="c1", name="deploy", pending=True))
    [later, came] = await timeline.append(prompt(7), result("c1", 4))
    assert await timeline.go_back(later.path) == [later]
    assert await shown(timeline) == ["ar:turn_1.user.prompt", waiting.path, came.path]


async def test_the_calls_that_left_are_not_run_after_a_crash() -> None:
    """They wait for no result any more, in another process neither."""
    store = MemoryStore()
    timeline = await opened(store)
    [asked, _] = await timeline.append(prompt(5), call("c1"))
    assert len(timeline.window.open_calls()) == 1
    await timeline.go_back(asked.path)
    assert (await Timeline.open(store, timeline.id)).window.open_calls() == ()


@pytest.mark.parametrize("again", [False, True], ids=["here", "opened_again"])
async def test_a_call_that_was_open_before_a_turn_is_open_again_when_the_turn_is_taken_back(again: bool) -> None:  # noqa: FBT001 - the test's own
    """A loop that resumes runs its tool, and no compaction covers it meanwhile."""
    store = MemoryStore()
    timeline = await opened(store)
    [_, waiting] = await timeline.append(prompt(5), ToolCall(call_id="c1", name="run", response_id="r1"))
    await timeline.append(prompt(7), AssistantCompletion(text="Later.", response_id="r2"))
    assert timeline.window.open_calls() == ()
    [later, *_] = await timeline.go_back()
    timeline = await Timeline.open(store, timeline.id) if again else timeline
    assert [item.block for item in timeline.window.open_calls()] == [waiting]
    await timeline.reveal(later.path)
    assert timeline.window.open_calls() == ()


async def test_going_back_twice_leaves_once() -> None:
    """The second time there is nothing that could leave."""
    timeline = await opened(MemoryStore())
    [_, _, second] = await timeline.append(prompt(5), answer(3), prompt(7))
    await timeline.go_back(second.path)
    version = timeline.version
    assert await timeline.go_back(second.path) == []
    assert timeline.version == version


async def test_a_decision_of_a_stage_stays() -> None:
    """A stage is taken back by its own rewind."""
    timeline = await opened(MemoryStore())
    [asked] = await timeline.append(prompt(5))
    await timeline.enter_stage("topic")
    await timeline.approve_stage(decision="Cards.")
    digest = timeline.window.items[-1].block.path
    assert await timeline.go_back(asked.path) == [asked]
    with pytest.raises(BlockProtected, match="rewind its stage"):
        await timeline.go_back(digest)


async def test_a_summary_and_what_is_no_block_are_refused() -> None:
    """The error names the cure."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=4_000))
    for number in range(12):
        await timeline.append(UserPrompt(text=f"{number}"), AssistantCompletion(text=words(400)))
    await timeline.compact()
    assert timeline.window.summary is not None
    with pytest.raises(BlockProtected, match="undo its compaction"):
        await timeline.go_back(timeline.window.summary.block.path)
    with pytest.raises(BlockNotFound):
        await timeline.go_back("ar:turn_99.user.prompt")


async def test_a_fork_goes_back_behind_what_it_shares_and_its_parent_does_not() -> None:
    """The decision is the fork's own."""
    timeline = await opened(MemoryStore())
    blocks = await timeline.append(prompt(5), answer(3), prompt(7), answer(9))
    branch = await timeline.fork()
    assert await branch.go_back(blocks[2].path) == blocks[2:]
    assert await shown(branch) == [block.path for block in blocks[:2]]
    assert await shown(timeline) == [block.path for block in blocks]


async def test_without_a_block_the_newest_prompt_leaves_and_then_the_one_before() -> None:
    """A user who takes back twice goes back two prompts, and at the beginning there is nothing left to take back."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(5), answer(3), prompt(7), answer(9))
    assert [block.path for block in await timeline.go_back()] == [
        "ar:turn_2.user.prompt",
        "ar:turn_2.assistant.completion",
    ]
    assert [block.path for block in await timeline.go_back()][:1] == ["ar:turn_1.user.prompt"]
    assert await timeline.go_back() == []


async def test_a_redaction_in_front_of_the_block_that_it_names_keeps_nothing_in_view() -> None:
    """The decision came before the block, and changed nothing: the fold shows it, and an undo takes it back."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(prompt(5))
    early = BlockRedacted(version=timeline.version + 2)
    await store.append("c", [new_event(event_id(AT), AT, early)])
    appended = await timeline.append(prompt(7))
    assert await timeline.go_back() == appended


async def test_a_message_of_several_parts_leaves_as_a_whole() -> None:
    """The picture in front of the words, too."""
    timeline = await opened(MemoryStore())
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    parts = [picture, {"type": "text", "text": "What is this?"}]
    blocks = await timeline.append_messages([{"role": "user", "content": parts}])
    assert len(blocks) == 2
    assert await timeline.go_back() == blocks


async def test_the_parts_of_a_message_leave_together_wherever_the_log_is_read_from() -> None:
    """The first part that is read first may be the third of the message."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(prompt(5), answer(3))
    first, last = timeline.version + 1, timeline.version + 4
    await timeline.append(UserPrompt(text="Look."), *(Attachment(text="x", meta={"continues": True}),) * 3)
    for most in range(1, last + 1):
        left = await left_at_the_end(store, timeline.id, last, first=1, last=last, most=most)
        assert [*left] == [*range(first, last + 1)]


async def test_a_summary_inside_a_response_does_not_part_it_wherever_the_log_is_read_from() -> None:
    """A compaction may come while a response is recorded."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=4_000))
    for number in range(12):
        await timeline.append(UserPrompt(text=f"{number}"), AssistantCompletion(text=words(400)))
    await timeline.append(UserPrompt(text="Go on."))
    begins = timeline.version + 1
    await timeline.append(AssistantCompletion(text="One.", response_id="r1"))
    await timeline.compact(until="ar:turn_11.user.prompt")
    await timeline.append(AssistantCompletion(text="Two.", response_id="r1"))
    last = timeline.version
    for most in range(1, last + 1):
        left = await left_at_the_end(store, timeline.id, last, first=1, last=last, most=most)
        assert [*left] == [begins, last]


@pytest.mark.parametrize("turns", [10, 1_000])
async def test_taking_back_the_newest_turn_reads_that_turn_and_not_what_came_before(turns: int) -> None:
    """A user who takes a turn back in a long conversation waits no longer than in a short one."""
    store = Counted()
    timeline = await opened(store)
    await timeline.append(*(block for _ in range(turns) for block in (prompt(1), answer(1))))
    last = await timeline.append(prompt(5), call("c1"), result("c1", 4), answer(3))
    store.events = 0
    assert await timeline.go_back() == last
    assert store.events <= 64


async def test_an_answer_that_broke_off_in_a_call_leaves_once() -> None:
    """Else a redo of the turn before it would bring it back without its prompt."""
    timeline = await opened(MemoryStore())
    cut = {"call_id": "c1", "name": "run", "arguments": '{"command": "l'}
    first = await timeline.append(prompt(5), answer(3))
    await timeline.append(prompt(7), answer(2, meta={"interrupted": True, "cut_calls": [cut]}))
    await timeline.go_back()
    assert await timeline.go_back() == first
    await timeline.reveal(first[0].path)
    assert await shown(timeline) == [block.path for block in first]


async def test_a_turn_that_a_summary_covers_in_part_comes_back_only_as_a_whole() -> None:
    """The summary was written without a word of it: without the covered call, the redo would lose it."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=4_000))
    await timeline.append(UserPrompt(text="question 0"), AssistantCompletion(text=words(2_000)))
    turn = await timeline.append(UserPrompt(text="question 1"), call("c1"), result("c1", 9), answer(2))
    left = await timeline.go_back()
    assert left == turn
    await timeline.compact(until=left[-1].path)
    with pytest.raises(BlockProtected, match="a summary covers some of what was taken back with it"):
        await timeline.reveal(left[-1].path)
    await timeline.undo_compaction()
    await timeline.reveal(left[-1].path)
    assert [item.block.path for item in timeline.window.items if not item.omitted][2:] == [block.path for block in left]


async def test_a_redacted_call_whose_turn_was_taken_back_needs_no_summary() -> None:
    """It stays as it was redacted, and without its result it is not sent: nobody is asked about it."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=2_000))
    await timeline.append(prompt(1_500))
    turn = await timeline.append(call("c1"), result("c1", 9), call("c2"), result("c2", 9), answer(2))
    await timeline.redact(turn[0].path, "a key")
    await timeline.go_back(turn[0].path)
    await timeline.compact(until=turn[-1].path)
    assert (await timeline.verify()).ok
