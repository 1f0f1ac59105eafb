"""A reply that ended for want of room (seed 003, reactive): set aside what was cut, then go on or end, typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from tests.invariants.wires import check_anthropic, check_openai_chat
from tests.scenes import AT, FULL, Mute, Scribe, exchange, log_of, opened, payloads_of, prompt, small_policy, turn
from tests.sdks import ANTHROPIC_EVENTS, anthropic_client, anthropic_message, chat_completion, openai_response
from timeline import policies
from timeline.blocks import ToolResult
from timeline.errors import InvalidArgument, UnknownResponse
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CUT_OFF = "Your last answer was cut off for want of room. Go on where it ended."
POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)


def anthropic_reply(**changes: Any) -> Message:
    """Return a message of Anthropic's that ran out of room in its call."""
    return Message.model_validate(anthropic_message() | {"stop_reason": "max_tokens"} | changes)


def chat_reply() -> ChatCompletion:
    """Return a chat completion that ran out of room in the second of two calls."""
    told = chat_completion()
    told["choices"][0]["finish_reason"] = "length"
    told["choices"][0]["message"]["tool_calls"][1]["function"]["arguments"] = '{"path": "src/ma'
    return ChatCompletion.model_validate(told)


def responses_reply() -> Response:
    """Return a response of OpenAI's that ran out of room in its call."""
    told = openai_response() | {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return Response.model_validate(told)


REPLIES = [(anthropic_reply, 0, ["toolu_1"]), (chat_reply, 1, ["call_2"]), (responses_reply, 0, ["call_1"])]


@pytest.mark.shows("003-9", "003-32", "R-003-6")
@pytest.mark.parametrize(("reply", "whole", "cut"), REPLIES)
async def test_with_room_left_the_loop_ends_typed(reply: Any, whole: int, cut: list[str]) -> None:
    """No compaction is due, so nothing would help: the answer alone is too long."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY)
    await timeline.append(prompt())
    stop = await timeline.after_length_stop(reply())
    assert (stop.exit, stop.decisions) == ("max_tokens", ())
    assert [call["call_id"] for call in stop.discarded] == cut
    assert len(stop.calls) == whole
    assert await payloads_of(store, "compaction.completed") == []


@pytest.mark.shows("003-6", "003-8", "R-003-6", "R-003-7")
@pytest.mark.parametrize(("reply", "whole", "cut"), REPLIES)
async def test_with_a_full_context_it_is_compacted_and_the_loop_goes_on(reply: Any, whole: int, cut: list[str]) -> None:
    """What was cut is never sent, what came whole is, and the next request is one that a provider takes."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(*FULL, prompt())
    stop = await timeline.after_length_stop(reply())
    assert stop.exit is None
    assert "compacted" in [taken.kind for taken in stop.decisions]
    assert not stop.account.over_trigger
    for call in stop.calls:
        await timeline.append(ToolResult(call_id=call.call_id, text="ok"))
    context = await timeline.render(now=AT)
    check_anthropic(context.to_anthropic())
    check_openai_chat(context.to_openai_chat())
    assert context.to_anthropic()["messages"][-1]["role"] == "user"
    ends = context.to_openai_chat()["messages"][-1]
    assert ((ends["role"], ends["content"]) == ("user", CUT_OFF)) is (whole == 0)
    sent = [entry.call_id for entry in context.neutral.entries if entry.type == "react.tool.call"]
    assert not {*sent} & {*cut}
    assert (await timeline.verify()).ok


@pytest.mark.shows("003-6")
async def test_nothing_of_the_reply_is_lost() -> None:
    """The call that was cut is read back by the path of the completion that is marked."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(prompt())
    stop = await timeline.after_length_stop(chat_reply())
    marked = next(block for block in stop.blocks if block.meta)
    kept = (await timeline.read(marked.path)).meta
    assert kept["interrupted"] is True
    assert kept["cut_calls"] == list(stop.discarded)
    assert kept["cut_calls"] == [{"call_id": "call_2", "name": "cat", "arguments": '{"path": "src/ma'}]


def anthropic_full(**usage: int) -> Message:
    """Return a message of Anthropic's that filled the model's window."""
    full = {"stop_reason": "model_context_window_exceeded", "content": [{"type": "text", "text": "I was"}]}
    return anthropic_reply(**full, usage={"input_tokens": 2_900, "output_tokens": 100, **usage})


@pytest.mark.parametrize("reply", [anthropic_full, lambda: anthropic_full(input_tokens=0, output_tokens=0)])
async def test_where_the_models_window_was_full_the_context_is_made_smaller_whatever_the_policy_allows(
    reply: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Each later answer would end at once; the provider's figures say how much smaller, and which limit to set."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY.model_copy(update={"max_tokens": 40_000}), summarizer=Scribe())
    await timeline.append(*FULL, prompt())
    before = (await timeline.render(now=AT)).account.sent
    stop = await timeline.after_length_stop(reply(), now=AT)
    assert (stop.exit, [taken.kind for taken in stop.decisions]) == (None, ["compacted"])
    assert stop.account.sent <= 0.7 * before
    assert [compaction.reason for compaction in await payloads_of(store, "compaction.completed")] == ["refused"]
    assert ("Give the conversation a policy with max_tokens=3000" in caplog.text) is (reply is anthropic_full)
    assert (await timeline.render(now=AT)).to_openai_chat()["messages"][-1]["content"] == CUT_OFF
    assert (await timeline.verify()).ok


async def test_where_the_models_window_was_full_and_nothing_gives_way_the_loop_ends() -> None:
    """The refusal or the failure is among the decisions."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(prompt())
    stop = await timeline.after_length_stop(anthropic_full())
    assert (stop.exit, [taken.kind for taken in stop.decisions]) == ("max_tokens", ["refused"])
    policy = small_policy(max_tokens=40_000, keep_recent_tokens=400, on_failure="unchanged")
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Mute())
    await timeline.append(*FULL, prompt())
    stop = await timeline.after_length_stop(anthropic_full())
    assert (stop.exit, [taken.kind for taken in stop.decisions]) == ("max_tokens", ["failed"])


async def test_a_stream_that_filled_the_models_window_is_known_by_its_recorded_call() -> None:
    """Its blocks do not say why it ended."""
    timeline = await opened(MemoryStore(), policy=POLICY.model_copy(update={"max_tokens": 40_000}), summarizer=Scribe())
    await timeline.append(*FULL, prompt())
    await timeline.render(now=AT)
    events = [dict(event) for event in ANTHROPIC_EVENTS]
    delta = next(event for event in events if event["type"] == "message_delta")
    delta["delta"] = {"stop_reason": "model_context_window_exceeded", "stop_sequence": None}

    async def stream() -> AsyncIterator[dict[str, Any]]:
        for event in events:
            yield event

    stop = await timeline.after_length_stop(await timeline.record_stream(stream()), now=AT)
    assert "compacted" in [taken.kind for taken in stop.decisions]
    assert stop.exit is None


async def test_a_reply_that_is_recorded_already_is_not_recorded_again() -> None:
    """The loop may record first and look at the stop afterwards, with the reply or with its blocks."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY)
    await timeline.append(prompt())
    blocks = await timeline.record(anthropic_reply())
    before = await log_of(store)
    assert (await timeline.after_length_stop(anthropic_reply())).blocks == tuple(blocks)
    assert (await timeline.after_length_stop(blocks)).discarded[0]["call_id"] == "toolu_1"
    assert await log_of(store) == before


@pytest.mark.shows("003-6", "R-003-7")
async def test_a_stream_that_ran_out_of_room_is_handled_by_its_blocks() -> None:
    """Its call was whole, as far as it parses; it was cut all the same."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(prompt())
    events = [dict(event) for event in ANTHROPIC_EVENTS]
    delta = next(event for event in events if event["type"] == "message_delta")
    delta["delta"] = {"stop_reason": "max_tokens", "stop_sequence": None}
    asked: list[Any] = [{"role": "user", "content": "x"}]
    async with anthropic_client(events) as client:
        stream = await client.messages.create(model="m", max_tokens=9, messages=asked, stream=True)
        blocks = await timeline.record_stream(stream)
    stop = await timeline.after_length_stop(blocks)
    assert (stop.exit, [call["call_id"] for call in stop.discarded]) == ("max_tokens", ["toolu_1"])


@pytest.mark.shows("003-6", "R-003-7")
async def test_a_call_behind_which_the_reply_went_on_came_whole() -> None:
    """Only a call that ends the reply may be half of what was meant: this one is run, and the text is half."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(prompt())
    made = {"type": "tool_use", "id": "toolu_9", "name": "cat", "input": {"path": "a"}}
    stop = await timeline.after_length_stop(anthropic_reply(content=[made, {"type": "text", "text": "Then I"}]))
    assert ([call.call_id for call in stop.calls], stop.discarded) == (["toolu_9"], ())
    assert [block.text for block in stop.blocks][-1] == "Then I"


@pytest.mark.shows("003-32")
async def test_a_compaction_that_cannot_help_ends_the_loop() -> None:
    """A summarizer that fails under `unchanged` leaves the context as it is: typed, and never a crash."""
    policy = small_policy(max_tokens=4_000, keep_recent_tokens=400, on_failure="unchanged")
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Mute())
    await timeline.append(*FULL, prompt())
    stop = await timeline.after_length_stop(anthropic_reply())
    assert stop.exit == "max_tokens"
    assert [taken.kind for taken in stop.decisions] == ["failed"]


async def test_the_policy_that_never_compacts_ends_the_loop() -> None:
    """Whatever the size of the context."""
    timeline = await opened(MemoryStore(), policy=policies.none(max_tokens=4_000, counter="chars4"))
    await timeline.append(*FULL)
    assert (await timeline.after_length_stop(anthropic_reply())).exit == "max_tokens"


@pytest.mark.shows("003-7")
async def test_system_prompt_and_tools_count() -> None:
    """The same conversation is too large beside a long prompt."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    for number in range(30):
        await timeline.append(*exchange(f"c{number}", 90))
    assert (await timeline.after_length_stop(anthropic_reply())).exit == "max_tokens"
    stop = await timeline.after_length_stop(anthropic_reply(id="msg_2"), system="word " * 900)
    assert stop.exit is None
    assert stop.account.fixed.system > 1_000


async def test_the_account_is_that_of_the_next_request_once_stages_gave_way() -> None:
    """Stages that were collapsed are told in short, and the account knows (seed 000)."""
    timeline = await opened(MemoryStore(), policy=policies.priority_chain(max_tokens=8_000), summarizer=Mute())
    for name in ("idea", "plan", "draft"):
        await timeline.enter_stage(name)
        await timeline.append(*[block for _ in range(4) for block in turn(100, asked=50)])
        await timeline.approve_stage(decision=f"{name} settled", short="s" * 40, detailed="d" * 1_000)
    await timeline.enter_stage("review")
    await timeline.append(*[block for _ in range(30) for block in turn(100, asked=100)])
    stop = await timeline.after_length_stop(anthropic_reply())
    assert (stop.exit, [taken.kind for taken in stop.decisions]) == (None, ["compacted"])
    assert stop.account == (await timeline.render()).account


async def test_a_reply_that_ended_otherwise_is_refused_before_anything_is_written() -> None:
    """It is `record`'s business; and what is no reply is nobody's."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    before = timeline.version
    with pytest.raises(InvalidArgument, match="'tool_use'"):
        await timeline.after_length_stop(anthropic_message())
    with pytest.raises(UnknownResponse):
        await timeline.after_length_stop(3)
    assert timeline.version == before
