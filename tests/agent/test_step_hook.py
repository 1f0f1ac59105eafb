"""The step hook: loops that hand out their message list, whichever list that is, over any number of compactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import AsyncAnthropic
from openai.types.chat import ChatCompletion

from tests.providers import FakeProvider
from tests.providers.coder import Coder
from tests.scenes import Mute, log_of, opened, payloads_of, small_policy, turn
from tests.sdks import anthropic_message, chat_completion
from timeline import open_store, policies
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.errors import InvalidBlock, UnknownResponse
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from timeline.agent.step_hook import StepHook

    Whose = Callable[[list[Any], list[Any]], list[Any]]

ROUNDS = 24


def whole(history: list[Any], given: list[Any]) -> list[Any]:
    """Hand over the whole history every time, as the loop of seed 001 does."""
    del given
    return history


def replaced(history: list[Any], given: list[Any]) -> list[Any]:
    """Go on from the list that was given, as the loop of seed 003 does."""
    del history
    return given


async def run_loop(client: AsyncAnthropic, hook: StepHook, whose: Whose, *, saves: bool) -> str:
    """Run an agent loop that knows of the hook alone, until the model answers with a text."""
    history: list[Any] = [{"role": "user", "content": "Make the tests pass."}]
    messages: Any = history
    while True:
        messages = (await hook.prepare_step(messages=messages))["messages"]
        reply = await client.messages.create(model="claude-opus-5", max_tokens=1_000, messages=messages)
        if saves:
            await hook.on_step_finish(reply)
        new: list[Any] = [{"role": "assistant", "content": reply.content}]
        if reply.content[0].type == "text":
            return reply.content[0].text
        used = [part for part in reply.content if part.type == "tool_use"]
        told = [{"type": "tool_result", "tool_use_id": part.id, "content": f"{part.id}\n" * 800} for part in used]
        new.append({"role": "user", "content": told})
        history = [*history, *new]
        messages = whose(history, [*messages, *new])


@pytest.mark.shows("001-11", "001-54", "R-001-25")
@pytest.mark.parametrize("saves", [True, False], ids=["saved at the end of a step", "brought by the next list"])
@pytest.mark.parametrize("whose", [whole, replaced])
async def test_a_loop_of_messages_runs_past_several_compactions(tmp_path: Path, whose: Whose, *, saves: bool) -> None:
    """Every block is stored once, every request is one that the provider takes, and every context verifies."""
    async with open_store(tmp_path / "agent.db") as store:
        timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=8_000))
        with FakeProvider(Coder(ROUNDS), limit=60_000) as provider:
            async with AsyncAnthropic(api_key="none", base_url=provider.url, max_retries=0) as client:
                answer = await run_loop(client, timeline.step_hook("anthropic"), whose, saves=saves)
        report = await timeline.verify()
        blocks = [p.block for p in await payloads_of(store, "block.appended")]
    assert answer == "All tests pass."
    assert report.ok, report.problems
    assert report.compactions >= 3
    assert [b.type for b in blocks if b.type == "user.prompt"] == ["user.prompt"]
    calls = [b.call_id for b in blocks if b.type == "react.tool.call"]
    assert calls == [b.call_id for b in blocks if b.type == "react.tool.result"]
    assert len(calls) == len(set(calls)) == ROUNDS


@pytest.mark.shows("001-54")
async def test_what_the_log_holds_already_is_not_appended_again() -> None:
    """It may have been appended, recorded or saved: the same content in the same order is the same block."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(UserPrompt(text="Fix it."))
    hook = timeline.step_hook("anthropic")
    asked = [{"role": "user", "content": "Fix it."}]
    await hook.prepare_step(messages=asked)
    await timeline.record(anthropic_message())
    await timeline.append(ToolResult(call_id="toolu_1", text="ok"))
    reply = {"role": "assistant", "content": anthropic_message()["content"]}
    told = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "ok"}]}
    before = timeline.version
    step = await hook.prepare_step(messages=[*asked, reply, {"role": "user", "content": [told]}])
    assert {e.type for e in await log_of(store) if e.version > before} == {"context.rendered"}
    assert [message["role"] for message in step["messages"]] == ["user", "assistant", "user"]


async def test_the_same_words_said_again_are_another_message() -> None:
    """Repeated content is told apart by its place in the order."""
    store = MemoryStore()
    timeline = await opened(store)
    hook = timeline.step_hook("openai_chat")
    said: list[Any] = []
    for _ in range(3):
        said.append({"role": "user", "content": "go on"})
        await hook.prepare_step(messages=said)
        said.append({"role": "assistant", "content": "done"})
    texts = [p.block.text for p in await payloads_of(store, "block.appended")]
    assert texts == ["go on", "done", "go on", "done", "go on"]


async def grown(store: MemoryStore, whose: Whose, **options: Any) -> tuple[Timeline, list[Any]]:
    """Return a timeline that has compacted, and the list of its loop."""
    timeline = await opened(store, policy=small_policy(max_tokens=2_000), **options)
    hook = timeline.step_hook("openai_chat")
    history: list[Any] = []
    given = history
    for number in range(12):
        new = [
            {"role": "user", "content": f"question {number} " * 40},
            {"role": "assistant", "content": f"answer {number} " * 40},
        ]
        history = [*history, *new]
        given = (await hook.prepare_step(messages=whose(history, [*given, *new])))["messages"]
    assert timeline.window.summaries
    return timeline, whose(history, given)


@pytest.mark.parametrize("whose", [whole, replaced])
async def test_a_new_process_goes_on_with_the_same_list(whose: Whose) -> None:
    """A hook that has seen nothing yet finds out what of a list is in the log."""
    store = MemoryStore()
    _, said = await grown(store, whose)
    again = await opened(store)
    before = again.version
    await again.step_hook("openai_chat").prepare_step(messages=[*said, {"role": "user", "content": "And now?"}])
    new = [e.payload.block.text for e in await log_of(store) if e.version > before and e.type == "block.appended"]  # type: ignore[attr-defined]
    assert new == ["And now?"]


@pytest.mark.shows("001-55", "R-001-26")
async def test_the_messages_that_a_loop_collected_are_saved_when_it_says_so() -> None:
    """A response that lists the messages of all steps so far brings each of them once."""
    store = MemoryStore()
    timeline = await opened(store)
    hook = timeline.step_hook("openai_chat")
    await hook.prepare_step(messages=[{"role": "user", "content": "hi"}])
    brought = [{"role": "assistant", "content": "one"}]
    assert [b.text for b in await hook.on_step_finish({"messages": brought})] == ["one"]
    brought.append({"role": "assistant", "content": "two"})
    assert [b.text for b in await hook.on_step_finish({"messages": brought})] == ["two"]


async def test_a_leading_system_message_is_the_system_prompt() -> None:
    """It is no block of the log, whose texts never become system messages, and comes back at the head."""
    store = MemoryStore()
    timeline = await opened(store)
    hook = timeline.step_hook("openai_chat")
    messages = [{"role": "system", "content": "You code."}, {"role": "user", "content": "hi"}]
    assert await hook.prepare_step(messages=messages) == {"messages": messages}
    assert [p.block.type for p in await payloads_of(store, "block.appended")] == ["user.prompt"]
    assert hook.context is not None
    assert hook.context.account.fixed.system > 0


async def test_a_call_that_was_cut_off_is_not_appended_by_the_loop_either() -> None:
    """What `record` kept out of the requests stays out, though the loop's list still has it."""
    store = MemoryStore()
    timeline = await opened(store)
    hook = timeline.step_hook("openai_chat")
    asked = [{"role": "user", "content": "hi"}]
    await hook.prepare_step(messages=asked)
    told = chat_completion()
    told["choices"][0] |= {"finish_reason": "length"}
    await hook.on_step_finish(ChatCompletion.model_validate(told))
    await hook.prepare_step(messages=[*asked, told["choices"][0]["message"]])
    calls = [p.block.call_id for p in await payloads_of(store, "block.appended") if p.block.type == "react.tool.call"]
    assert calls == ["call_1"]


async def test_what_is_no_message_is_refused_before_anything_is_written() -> None:
    """The error says where it stands."""
    timeline = await opened(MemoryStore())
    before = timeline.version
    hook = timeline.step_hook("anthropic")
    with pytest.raises(InvalidBlock, match=r"messages\[0\]"):
        await hook.prepare_step(messages=["hello"])
    with pytest.raises(UnknownResponse):
        await hook.on_step_finish(3)
    assert timeline.version == before


async def test_a_failing_summarizer_leaves_a_step_as_it_was() -> None:
    """Seed 001: a step whose summary fails is prepared without one, and the loop goes on."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(max_tokens=20_000), summarizer=Mute())
    messages = [
        {"role": role, "content": f"{role} {number} " * 150} for number in range(12) for role in ("user", "assistant")
    ]
    assert (await timeline.step_hook("openai_chat").prepare_step(messages=messages))["messages"] == messages
    context = await timeline.render()
    assert not timeline.window.summaries
    assert context.decisions


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
async def test_what_is_shown_of_the_stages_is_never_taken_for_a_message(wire: Any) -> None:
    """A process that goes on with the list that another one was given appends what was said since, and no more."""
    store = MemoryStore()
    timeline = await opened(store, policy=policies.priority_chain())
    await timeline.enter_stage("gagasan", "Gagasan")
    await timeline.append(*turn(5))
    await timeline.approve_stage(decision="keputusan", short="ringkasan")
    first: list[Any] = [{"role": "user", "content": "go on"}]
    given = (await timeline.step_hook(wire).prepare_step(messages=first))["messages"]
    assert "ringkasan" in str(given[-1])
    further = [{"role": "assistant", "content": "done"}, {"role": "user", "content": "and now?"}]
    other = await opened(store, policy=policies.priority_chain())
    await other.step_hook(wire).prepare_step(messages=[*given, *further])
    said = [item.block.text for item in other.window.items if item.block.type != "stage.digest"]
    assert said == [*[block.text for block in turn(5)], "go on", "done", "and now?"]


@pytest.mark.parametrize("late", [False, True])
async def test_a_new_process_goes_on_from_the_list_that_the_one_before_was_given(*, late: bool) -> None:
    """Parallel results stand in the order of their calls there, and a late one is a text; neither is new."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=policies.cut_point())
    await timeline.append(
        UserPrompt(text="Go."),
        *(ToolCall(call_id=id_, name="ls", response_id="r1") for id_ in "ab"),
        ToolResult(call_id="b", text="of b"),
        *([AssistantCompletion(text="Waiting.", response_id="r2")] if late else []),
        ToolResult(call_id="a", text="of a"),
        UserPrompt(text="And?"),
    )
    given = (await timeline.step_hook("openai_chat").prepare_step(messages=[]))["messages"]
    again = await Timeline.open(store, "c", policy=policies.cut_point())
    before = len(again.window.items)
    await again.step_hook("openai_chat").prepare_step(messages=[*given, {"role": "assistant", "content": "Done."}])
    assert [item.block.text for item in again.window.items[before:]] == ["Done."]


@pytest.mark.parametrize("joint", ["", "\n", "\n\n"])
async def test_the_texts_of_a_reply_that_a_loop_keeps_as_one_are_known(joint: str) -> None:
    """Anthropic's API parts an answer at each citation; a loop whose messages are texts joins it again."""
    timeline = await opened(MemoryStore())
    history: list[Any] = [{"role": "user", "content": "x"}]
    await timeline.step_hook("openai_chat").prepare_step(messages=history)
    await timeline.append(*(AssistantCompletion(text=text, response_id="r") for text in ("It is", "42", ".")))
    history += [{"role": "assistant", "content": joint.join(("It is", "42", "."))}, {"role": "user", "content": "y"}]
    await timeline.step_hook("openai_chat").prepare_step(messages=history)
    assert [item.block.text for item in timeline.window.items] == ["x", "It is", "42", ".", "y"]


async def test_a_reply_that_is_said_again_is_new_where_the_log_has_the_first_in_several_texts() -> None:
    """The texts of the log are one reply, and stand for one message of the list."""
    timeline = await opened(MemoryStore())
    history: list[Any] = [{"role": "user", "content": "x"}]
    await timeline.step_hook("openai_chat").prepare_step(messages=history)
    await timeline.append(*(AssistantCompletion(text=text, response_id="r") for text in ("It is", "42")))
    said = {"role": "assistant", "content": "It is42"}
    history += [said, {"role": "user", "content": "y"}, said, {"role": "user", "content": "z"}]
    await timeline.step_hook("openai_chat").prepare_step(messages=history)
    assert [item.block.text for item in timeline.window.items] == ["x", "It is", "42", "y", "It is42", "z"]
