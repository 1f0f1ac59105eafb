"""A log in step with a framework's own list of messages."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.log.counted import Counted
from tests.scenes import answer, call, log_of, opened, prompt, result, small_policy, words
from tests.sdks import anthropic_message
from timeline.agent import list_follower
from timeline.agent.divergence import divergence
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.log.off_loop import off_loop
from timeline.store.memory import MemoryStore
from timeline.wire.neutral import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.agent.divergence import Divergence
    from timeline.blocks import Block
    from timeline.timeline import Timeline

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


def asked(text: str) -> dict[str, Any]:
    """Return a content of Google's in which the user asks."""
    return {"role": "user", "parts": [{"text": text}]}


def looked(number: int) -> list[dict[str, Any]]:
    """Return a call without an id, the same each time, and its result."""
    called = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
    seen = {"functionResponse": {"name": "look", "response": {"result": f"seen {number}"}}}
    return [called, {"role": "user", "parts": [seen]}]


async def test_a_list_of_messages_that_goes_back_leaves_the_tail() -> None:
    """The edited question is all that the model sees of the two; the system prompt is no part of the log."""
    timeline = await opened(MemoryStore())
    follower = timeline.list_follower()
    system, first = {"role": "system", "content": "You code."}, {"role": "user", "content": "first"}
    said = [system, first, {"role": "assistant", "content": "one"}, {"role": "user", "content": "second"}]
    await follower.take_messages(said)
    edited = [*said[:3], {"role": "user", "content": "edited"}]
    assert [block.text for block in await follower.take_messages(edited)] == ["edited"]
    assert (await timeline.render()).to_openai_chat()["messages"] == edited[1:]


async def test_a_recorded_reply_leaves_with_the_question_that_it_answers() -> None:
    """The list never had it, so that it stayed in view; what an application says by itself stays."""
    timeline = await opened(MemoryStore())
    follower = timeline.list_follower()
    said = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "one"}]
    await follower.take_messages([*said, {"role": "user", "content": "second"}])
    await timeline.record(anthropic_message())
    await timeline.append(result("toolu_1"), UserPrompt(text="by the way"))
    await follower.take_messages([*said, {"role": "user", "content": "edited"}])
    shown = (await timeline.render()).to_openai_chat()["messages"]
    assert [message["content"] for message in shown] == ["first", "one", "by the way", "edited"]


async def test_a_list_of_calls_without_ids_is_appended_once() -> None:
    """Also by a follower that did not see the first of them; the same call again is another call."""
    timeline = await opened(MemoryStore())
    history = [asked("x"), *looked(1), *looked(2)]
    await timeline.list_follower().take_messages(history[:3], wire="gemini")
    follower = timeline.list_follower()
    assert [block.type for block in await follower.take_messages(history, wire="gemini")] == [
        "react.tool.call",
        "react.tool.result",
    ]
    assert await follower.take_messages(history, wire="gemini") == []


@pytest.mark.parametrize("named", [False, True], ids=["by_content", "by_ids"])
@pytest.mark.parametrize("kept", [slice(4, 16), slice(9, 16)], ids=["from_a_prompt_on", "from_a_call_on"])
async def test_a_trimmed_list_of_equal_calls_without_ids_is_known(kept: slice, *, named: bool) -> None:
    """Each turn runs the same command: a call is the one of its turn, and not the first that the log has."""
    timeline = await opened(MemoryStore())
    turns = [
        [asked(f"prompt {n}"), *looked(n), {"role": "model", "parts": [{"text": f"answer {n}"}]}] for n in range(4)
    ]
    history = [message for turn in turns for message in turn]
    ids = [f"m{n}" for n in range(len(history))] if named else None
    follower = timeline.list_follower()
    await follower.take_messages(history, wire="gemini", ids=ids)
    for list_, names in ((history[kept], ids and ids[kept]), (history[:4] + history[12:], ids and ids[:4] + ids[12:])):
        assert await follower.take_messages(list_, wire="gemini", ids=names) == []
    grown = [*history[kept], asked("one more"), *looked(2)]
    names = ids and [*ids[kept], "n1", "n2", "n3"]
    new = await follower.take_messages(grown, wire="gemini", ids=names)
    assert [block.type for block in new] == ["user.prompt", "react.tool.call", "react.tool.result"]
    items = [item.block for item in timeline.window.items if item.state != "omitted"]
    assert [b.text for b in items if isinstance(b, ToolResult)] == [f'{{"result":"seen {n}"}}' for n in (0, 1, 2, 3, 2)]


@pytest.mark.parametrize("start", [2, 5])
async def test_a_list_that_was_trimmed_to_a_result_without_its_call_is_known(start: int) -> None:
    """Without an id the result answers nothing that the list has; it is that of the log in its place."""
    timeline = await opened(MemoryStore())
    both = [looked(n) for n in (1, 2)]
    parallel = [
        {"role": role, "parts": [each[n]["parts"][0] for each in both]} for n, role in enumerate(("model", "user"))
    ]
    history = [asked("x"), *looked(1), asked("y"), *parallel, {"role": "model", "parts": [{"text": "Seen."}]}]
    follower = timeline.list_follower()
    await follower.take_messages(history, wire="gemini")
    grown = [*history, asked("z"), *looked(3)]
    added = ["user.prompt", "react.tool.call", "react.tool.result"]
    for list_, types in ((history, []), (grown, added), (grown, [])):
        new = await follower.take_messages(list_[start:], wire="gemini")
        assert [block.type for block in new] == types
    assert [item.state for item in timeline.window.items if item.omitted] == []
    assert len(timeline.window.items) == 12


async def test_a_call_without_an_id_that_was_left_is_another_call_when_it_is_made_again() -> None:
    """Its result is its own: the id of an abandoned call is not given twice."""
    timeline = await opened(MemoryStore())
    follower = timeline.list_follower()
    await follower.take_messages([asked("x"), *looked(1), asked("y"), *looked(2)], wire="gemini")
    await follower.take_messages([asked("x"), *looked(1), asked("z"), *looked(3)], wire="gemini")
    seen = [item.block.text for item in timeline.window.items if item.state != "omitted" and item.answers]
    assert seen == ['{"result":"seen 1"}', '{"result":"seen 3"}']
    calls = [item.block.call_id for item in timeline.window.items if isinstance(item.block, ToolCall)]
    assert len({*calls}) == 3


async def test_ids_are_given_for_the_system_message_of_a_list_too() -> None:
    """One for each message of the list, as the framework has them."""
    timeline = await opened(MemoryStore())
    said = [{"role": "system", "content": "You code."}, {"role": "user", "content": "x"}]
    [block] = await timeline.list_follower().take_messages(said, ids=["s", "m1"])
    assert block.meta["framework_id"] == "m1"


async def test_what_stands_for_a_thought_is_no_news() -> None:
    """Some models demand a thought with each call; one that is hidden, or never was, is said to be left out."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(5), call("c1"), result("c1", 9))
    given = (await timeline.render()).to_openai_chat(model="deepseek-reasoner")["messages"]
    assert given[1]["reasoning_content"] == "[left out]"
    assert await timeline.list_follower().take_messages(given, wire="openai_chat") == []


async def test_an_answer_that_a_framework_stripped_is_known() -> None:
    """Models begin with blank lines, behind a thought above all; the list has the answer without them."""
    timeline = await opened(MemoryStore())
    follower = timeline.list_follower()
    said = [{"role": "user", "content": "x"}]
    await follower.take_messages(said)
    await timeline.append(AssistantCompletion(text="\n\nDone.\n"))
    said.append({"role": "assistant", "content": "Done."})
    assert await follower.take_messages(said) == []
    assert len(timeline.window.items) == 2


async def test_the_texts_of_a_reply_that_a_framework_keeps_as_one_are_known() -> None:
    """Between two of them the model called; what comes behind is appended, and nothing is left."""
    timeline = await opened(MemoryStore())
    follower = timeline.list_follower()
    said: list[dict[str, Any]] = [{"role": "user", "content": "x"}]
    await follower.take_messages(said)
    reply = [text_of_reply("I look. "), call("c1", response_id="r"), text_of_reply("And wait.")]
    await timeline.append(*reply)
    made = [{"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}]
    said += [{"role": "assistant", "content": "I look. And wait.", "tool_calls": made}]
    said += [{"role": "tool", "tool_call_id": "c1", "content": "ok"}]
    assert [block.type for block in await follower.take_messages(said)] == ["react.tool.result"]
    assert all(item.state == "visible" for item in timeline.window.items)


def text_of_reply(text: str) -> AssistantCompletion:
    """Return one of several texts of a reply."""
    return AssistantCompletion(text=text, response_id="r")


def thought_of(name: str) -> dict[str, Any]:
    """Return a message of Claude's with signed thinking and a call."""
    signed = {"type": "thinking", "thinking": name, "signature": f"sig-{name}"}
    return {"role": "assistant", "content": [signed, {"type": "tool_use", "id": name, "name": "run", "input": {}}]}


def result_of(name: str) -> dict[str, Any]:
    """Return the message with the result of that call."""
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": f"{name} is done"}]}


async def test_thoughts_of_a_branch_that_is_taken_up_again_go_back_to_the_model() -> None:
    """Also to a model that refuses a thought behind another prefix, and wants all that are behind their own."""
    timeline = await opened(MemoryStore())
    follower = timeline.list_follower()
    asked = {"role": "user", "content": "go"}
    branches = {
        name: [asked, *(make(f"{name}{n}") for n in "123" for make in (thought_of, result_of))] for name in "ab"
    }
    for name in "aba":
        ids = ["asked", *(f"{name}{number}" for number in range(6))]
        await follower.take_messages(branches[name], ids=ids, wire="anthropic")
        body = (await timeline.render()).to_anthropic(model="claude-opus-5-5")
        shown = [part["thinking"] for m in body["messages"] for part in m["content"] if part["type"] == "thinking"]
        assert shown == [f"{name}1", f"{name}2", f"{name}3"]
    report = await timeline.verify()
    assert (report.ok, report.renders) == (True, 3)


async def test_what_others_append_while_a_list_is_compared_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long list is compared in a thread, and others append meanwhile."""
    timeline = await opened(MemoryStore())
    reply = AssistantCompletion(text="Done.")

    async def meanwhile(items: int, work: Callable[[], Any]) -> Any:
        found = await off_loop(items, work)
        if not log_has(timeline, reply.text):
            await timeline.append(reply)
        return found

    monkeypatch.setattr(list_follower, "off_loop", meanwhile)
    follower = timeline.list_follower()
    await timeline.append(prompt(5))
    assert await follower.take([[prompt(5)], [reply]]) == []


def log_has(timeline: Timeline, text: str) -> bool:
    """Return whether a block of the window says this."""
    return any(item.block.text == text for item in timeline.window.items)


@pytest.mark.parametrize(("known", "in_thread"), [(10, False), (1_000, True)])
async def test_a_list_is_compared_with_a_long_log_in_a_thread(
    known: int, *, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop serves other conversations meanwhile, also where the list itself was trimmed."""
    threads: list[threading.Thread] = []

    def compared(*args: Any, **options: Any) -> Divergence:
        threads.append(threading.current_thread())
        return divergence(*args, **options)

    monkeypatch.setattr(list_follower, "divergence", compared)
    timeline = await opened(MemoryStore())
    await timeline.append(*(UserPrompt(text=str(number)) for number in range(known)))
    assert len(await timeline.list_follower().take([[UserPrompt(text=str(known - 1))], [prompt(5)]])) == 1
    assert [thread is not threading.current_thread() for thread in threads] == [in_thread]


async def test_leaving_blocks_reads_no_event_before_them() -> None:
    """However long the history is, and also by a follower that has not read it."""
    read: list[int] = []
    for history in (50, 500):
        store = Counted()
        timeline = await opened(store)
        await timeline.append(*(UserPrompt(text=str(number)) for number in range(history)))
        await timeline.append(prompt(5), answer(3))
        last = timeline.version
        store.events = 0
        await timeline.list_follower().leave([last - 1, last])
        read.append(store.events)
        assert [item.omitted for item in timeline.window.items[-3:]] == [False, True, True]
        await timeline.list_follower().leave([], again=[last - 1, last])
        assert not any(item.omitted for item in timeline.window.items)
    assert read[0] == read[1]
