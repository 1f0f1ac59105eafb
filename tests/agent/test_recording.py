"""What an agent runtime does besides appending and rendering: recording replies and messages, and reading back."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import anyio
import httpx2
import pytest
from anthropic import AnthropicError
from anthropic.types import Message
from anthropic.types import TextBlock as SaidBlock
from google.genai.types import ModelContent, Part, UserContent
from pydantic import BaseModel

from tests.invariants.wires import check_anthropic, check_openai_chat
from tests.scenes import AT, after, call, log_of, opened, payloads_of, prompt, result, words
from tests.sdks import (
    ANTHROPIC_EVENTS,
    CHAT_EVENTS,
    RESPONSE_EVENTS,
    anthropic_client,
    anthropic_message,
    chat_completion,
    openai_client,
    openai_response,
)
from timeline import open_store
from timeline.agent.deduplication import content_key
from timeline.blocks import AssistantCompletion, Attachment, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.errors import InvalidBlock, StoreFull, UnknownResponse
from timeline.events import BlockRedacted, ModelCalled, event_id
from timeline.store.memory import MemoryStore
from timeline.store.testing.cancelling import cancelled_at

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.timeline import Timeline

ASKED: list[Any] = [{"role": "user", "content": "x"}]


async def events_of(events: list[dict[str, Any]], *, then: Exception | None = None) -> AsyncIterator[Any]:
    """Stream plain events, and break after the last one where an error is given."""
    for event in events:
        yield event
    if then is not None:
        raise then


class _OfAFramework:
    """A message that no SDK made."""

    role = "user"


# Reading


async def test_a_redacted_block_is_read_as_its_tombstone() -> None:
    """Erased text is not given back, its address and its reason are; its neighbours stay as they were."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), call("c1", arguments={"token": "secret"}), result("c1", 5))
    await timeline.decide([BlockRedacted(version=3, reason="a password")], at=AT, ids=[event_id(AT)])
    erased = await timeline.read("tc:turn_1.c1.call")
    assert isinstance(erased, ToolCall)
    assert (erased.text, erased.arguments, erased.name) == ("[redacted]", {}, "run")
    assert erased.meta == {"redacted": "a password"}
    assert (await timeline.read("tc:turn_1.c1.result")).text == words(5)


# Replies


async def test_a_reply_is_one_append_of_its_blocks_and_the_model_call() -> None:
    """Blocks in order, then the facts of the call with the render that it answers."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(prompt())
    await timeline.render(now=AT)
    rendered = timeline.version
    blocks = await timeline.record(Message.model_validate(anthropic_message()), started_at=AT, now=after(5))
    assert [block.path for block in blocks] == [
        "bl:turn_1.assistant.reasoning",
        "ar:turn_1.assistant.completion",
        "tc:turn_1.toolu_1.call",
    ]
    assert {(block.response_id, block.at) for block in blocks} == {("msg_1", after(5))}
    log = await log_of(store)
    assert [event.type for event in log[-4:]] == [*["block.appended"] * 3, "model.called"]
    called = log[-1].payload
    assert isinstance(called, ModelCalled)
    assert (called.answers, called.started_at, called.response_id) == (rendered, AT, "msg_1")


@pytest.mark.parametrize("reply", [anthropic_message(), chat_completion(), openai_response()], ids=lambda r: r["id"])
async def test_the_same_reply_a_second_time_adds_nothing(reply: dict[str, Any]) -> None:
    """A retry after an unclear end is harmless, later and from another process too, and gives the same blocks."""
    store = MemoryStore()
    timeline = await opened(store)
    blocks = await timeline.record(reply)
    await timeline.append(prompt())
    other = await opened(store)
    assert await other.record(reply, now=after(60)) == blocks
    assert await timeline.record(reply, now=after(90)) == blocks
    assert len(await payloads_of(store, "model.called")) == 1
    assert (await store.info("c")).version == timeline.version


async def test_two_replies_of_one_id_are_two_replies() -> None:
    """There are servers that give the same ids again; what was said is not lost for it."""
    timeline = await opened(MemoryStore())
    first = {"id": "chatcmpl-7", "choices": [{"message": {"content": "One."}}]}
    second = {"id": "chatcmpl-7", "choices": [{"message": {"content": "Two."}}]}
    await timeline.record(first)
    [block] = await timeline.record(second)
    assert block.text == "Two."
    assert (await timeline.read(block.path)).text == "Two."


async def test_replies_without_ids_are_told_apart() -> None:
    """Each is a response of its own, also when it says the same."""
    timeline = await opened(MemoryStore())
    reply = {"choices": [{"message": {"content": "Done."}}]}
    ids = {block.response_id for _ in range(3) for block in await timeline.record(reply)}
    assert len(ids) == 3


async def test_an_unknown_reply_writes_nothing() -> None:
    """The error names what is accepted."""
    timeline = await opened(MemoryStore())
    with pytest.raises(UnknownResponse, match="an object of type str"):
        await timeline.record("hello")
    assert timeline.version == 1


async def test_a_reply_goes_back_to_its_provider_as_it_came() -> None:
    """Signed thinking, text and call are one assistant message, byte for byte."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    await timeline.record(anthropic_message())
    await timeline.append(result("toolu_1"))
    body = (await timeline.render()).to_anthropic()
    assert body["messages"][1] == {"role": "assistant", "content": anthropic_message()["content"]}


# Streams


async def test_an_anthropic_stream_is_recorded_like_its_message() -> None:
    """Raw events, the SDK's helper and the final message are one response, recorded once."""
    timeline = await opened(MemoryStore())
    seen: list[Any] = []
    async with anthropic_client(ANTHROPIC_EVENTS) as client:
        stream = await client.messages.create(model="m", max_tokens=9, messages=ASKED, stream=True)
        blocks = await timeline.record_stream(stream, on_event=seen.append)
        async with client.messages.stream(model="m", max_tokens=9, messages=ASKED) as helper:
            assert await timeline.record_stream(helper) == blocks
            assert await timeline.record(await helper.get_final_message()) == blocks
    assert await timeline.record(anthropic_message()) == blocks
    assert (len(seen), timeline.version) == (len(ANTHROPIC_EVENTS) - 1, 5)  # the SDK keeps a ping to itself


async def test_an_openai_chat_stream_is_recorded_like_its_completion() -> None:
    """Raw chunks, the SDK's helper and the final completion are one response, recorded once."""
    timeline = await opened(MemoryStore())
    async with openai_client(CHAT_EVENTS) as client:
        stream = await client.chat.completions.create(model="m", messages=ASKED, stream=True)
        blocks = await timeline.record_stream(stream)
        async with client.chat.completions.stream(model="m", messages=ASKED) as helper:
            assert await timeline.record_stream(helper) == blocks
            assert await timeline.record(await helper.get_final_completion()) == blocks
    assert await timeline.record(chat_completion()) == blocks
    assert timeline.version == 5


async def test_an_openai_response_stream_is_recorded_like_its_response() -> None:
    """Raw events, the SDK's helper and the final response are one response, recorded once."""
    timeline = await opened(MemoryStore())
    async with openai_client(RESPONSE_EVENTS) as client:
        stream = await client.responses.create(model="m", input="x", stream=True)
        blocks = await timeline.record_stream(stream)
        async with client.responses.stream(model="m", input="x") as helper:
            assert await timeline.record_stream(helper) == blocks
            assert await timeline.record(await helper.get_final_response()) == blocks
    assert await timeline.record(openai_response()) == blocks
    assert timeline.version == 5


async def test_a_stream_that_breaks_is_one_completion_marked_interrupted() -> None:
    """What arrived before the connection was lost is in the log, and the SDK's own error goes on to the caller."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(prompt())
    async with anthropic_client(ANTHROPIC_EVENTS[:9], breaks=True) as client:
        stream = await client.messages.create(model="m", max_tokens=9, messages=ASKED, stream=True)
        with pytest.raises((httpx2.ReadError, AnthropicError)):
            await timeline.record_stream(stream)
    [said] = [item.block for item in timeline.window.items if isinstance(item.block, AssistantCompletion)]
    assert (said.text, said.meta) == ("I run ", {"interrupted": True})
    [called] = await payloads_of(store, "model.called")
    assert (called.finish_reason, called.usage.cache_read_tokens) == ("interrupted", 900)


async def test_leaving_the_loop_records_what_was_seen() -> None:
    """Whoever stops listening has read so far, and the model is told that it was cut off there."""
    timeline = await opened(MemoryStore())
    async with timeline.recording(events_of(CHAT_EVENTS)) as recording:
        async for event in recording:
            if event == CHAT_EVENTS[1]:
                break
    [said] = recording.blocks
    assert (said.text, said.meta) == ("I look ", {"interrupted": True})


async def test_a_stream_that_is_left_after_its_end_is_whole() -> None:
    """Nobody has to wait for the connection to close."""
    timeline = await opened(MemoryStore())
    async with timeline.recording(events_of(ANTHROPIC_EVENTS)) as recording:
        async for event in recording:
            if event["type"] == "message_stop":
                break
    assert [block.meta for block in recording.blocks] == [{}, {}, {}]


async def test_a_cancelled_stream_is_recorded_before_the_cancellation_goes_on() -> None:
    """A user's stop button loses nothing that was shown."""
    timeline = await opened(MemoryStore())

    async def stalls() -> AsyncIterator[Any]:
        for event in CHAT_EVENTS[:2]:
            yield event
        scope.cancel()
        await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        await timeline.record_stream(stalls())
    assert scope.cancelled_caught
    [item] = timeline.window.items
    assert (item.block.text, item.block.meta) == ("I look ", {"interrupted": True})


async def test_a_cancelled_task_records_its_stream_too() -> None:
    """Whoever cancels the task itself loses nothing either."""
    timeline = await opened(MemoryStore())
    waits = asyncio.Event()

    async def stalls() -> AsyncIterator[Any]:
        for event in CHAT_EVENTS[:2]:
            yield event
        waits.set()
        await anyio.sleep_forever()

    task = asyncio.create_task(timeline.record_stream(stalls()))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [item.block.text for item in timeline.window.items] == ["I look "]


@pytest.mark.parametrize("suspension", range(1, 9))
async def test_a_record_that_was_cancelled_anywhere_is_made_good_by_the_next_one(
    tmp_path: Path, suspension: int
) -> None:
    """The reply is in the log once, whether the cancelled append had reached it or not."""
    async with open_store(tmp_path / "agent.db") as store:
        timeline = await opened(store)
        with suppress(asyncio.CancelledError):
            await cancelled_at(timeline.record(anthropic_message()), suspension)
        assert len(await timeline.record(anthropic_message())) == 3
        assert len(await payloads_of(store, "model.called")) == 1
        assert (await timeline.verify()).ok


@pytest.mark.parametrize("suspension", range(1, 13))
async def test_a_stream_that_was_cancelled_anywhere_is_in_the_log_once(tmp_path: Path, suspension: int) -> None:
    """As far as it came; the recording itself is no place to be cancelled in twice."""

    async def slowly() -> AsyncIterator[Any]:
        for event in CHAT_EVENTS:
            await asyncio.sleep(0)
            yield event

    async with open_store(tmp_path / "agent.db") as store:
        timeline = await opened(store)
        with suppress(asyncio.CancelledError):
            await cancelled_at(timeline.record_stream(slowly()), suspension)
        assert len(await payloads_of(store, "model.called")) == (suspension > 1)
        assert (await timeline.verify()).ok


async def test_several_records_of_one_reply_at_the_same_time_are_one(tmp_path: Path) -> None:
    """Tasks of one timeline and of another one: the first is written, all get its blocks."""
    async with open_store(tmp_path / "agent.db") as store:
        one, other = await opened(store), await opened(store)
        given = await asyncio.gather(*(timeline.record(anthropic_message()) for timeline in (one, other) * 4))
        assert all(blocks == given[0] for blocks in given)
        assert (await store.info("c")).version == 5


async def test_an_error_of_the_caller_records_what_arrived_and_goes_on() -> None:
    """The caller's own error is what is raised."""
    timeline = await opened(MemoryStore())
    with pytest.raises(ZeroDivisionError):
        await timeline.record_stream(events_of(CHAT_EVENTS), on_event=lambda event: 1 // (event != CHAT_EVENTS[2]))
    assert [item.block.text for item in timeline.window.items] == ["I look twice."]


async def test_what_could_not_be_recorded_is_noted_on_the_error_that_ended_the_stream() -> None:
    """A store that fails at that moment does not hide why the stream ended."""

    class Full(MemoryStore):
        async def append(self, conversation: str, events: Any, **options: Any) -> Any:
            if any(event.type == "model.called" for event in events):
                raise StoreFull("no room")
            return await super().append(conversation, events, **options)

    timeline = await opened(Full())
    with pytest.raises(ZeroDivisionError) as caught:
        await timeline.record_stream(events_of(CHAT_EVENTS[:3], then=ZeroDivisionError()))
    assert caught.value.__notes__ == ["What had arrived of the stream was not recorded: no room"]


async def test_a_stream_of_something_else_is_a_typed_error() -> None:
    """Nothing is written for it; where the stream itself breaks first, that is what is raised."""
    timeline = await opened(MemoryStore())
    with pytest.raises(UnknownResponse, match="without a single event"):
        await timeline.record_stream(events_of([{"type": "ping"}]))
    with pytest.raises(ZeroDivisionError) as caught:
        await timeline.record_stream(events_of([], then=ZeroDivisionError()))
    assert not hasattr(caught.value, "__notes__")
    assert timeline.version == 1


@pytest.mark.parametrize("events", [ANTHROPIC_EVENTS, CHAT_EVENTS, RESPONSE_EVENTS], ids=["anthropic", "chat", "items"])
async def test_wherever_a_stream_is_cut_every_wire_takes_the_next_request(events: list[dict[str, Any]]) -> None:
    """The agent asks again after a cut; no request holds half a call, a call without a result, or a blank text."""
    store = MemoryStore()
    for length in range(1, len(events)):
        timeline = await opened(store, f"c{length}")
        await timeline.append(prompt())
        with pytest.raises(ZeroDivisionError):
            await timeline.record_stream(events_of(events[:length], then=ZeroDivisionError()))
        await timeline.append(UserPrompt(text="Go on."))
        context = await timeline.render()
        check_anthropic(context.to_anthropic())
        check_openai_chat(context.to_openai_chat())
        assert (await timeline.verify()).ok


# Messages


@pytest.mark.shows("004-82")
async def test_anthropic_messages_are_appended_as_blocks() -> None:
    """An SDK's own content objects may stand in them; results join their calls."""
    reply = Message.model_validate(anthropic_message())
    timeline = await opened(MemoryStore())
    blocks = await timeline.append_messages(
        [
            {"role": "user", "content": "Fix it."},
            {"role": "assistant", "content": reply.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "3 failed"}]},
            {"role": "assistant", "content": [SaidBlock(type="text", text="Done.")]},
        ]
    )
    assert [block.path for block in blocks] == [
        "ar:turn_1.user.prompt",
        "bl:turn_1.assistant.reasoning",
        "ar:turn_1.assistant.completion",
        "tc:turn_1.toolu_1.call",
        "tc:turn_1.toolu_1.result",
        "ar:turn_1.assistant.completion.2",
    ]
    answered = blocks[4]
    assert isinstance(answered, ToolResult)
    assert answered.name == "bash"
    assert [m["role"] for m in (await timeline.render()).to_anthropic()["messages"]] == ["user", "assistant"] * 2


async def test_openai_messages_are_appended_as_blocks() -> None:
    """Which form it is, the messages tell."""
    message = chat_completion()["choices"][0]["message"]
    timeline = await opened(MemoryStore())
    blocks = await timeline.append_messages(
        [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": "Look."},
            message,
            {"role": "tool", "tool_call_id": "call_1", "content": "src"},
        ]
    )
    kinds = [SystemMessage, UserPrompt, AssistantCompletion, ToolCall, ToolCall, ToolResult]
    assert [type(block) for block in blocks] == kinds


async def test_messages_of_two_appends_are_never_one_response() -> None:
    """Messages bring no ids; each assistant message is a response of its own all the same."""
    timeline = await opened(MemoryStore())
    said = {"role": "assistant", "content": "Yes."}
    for _ in range(2):
        await timeline.append_messages([{"role": "user", "content": "So?"}, said])
    await timeline.append_messages([said])
    roles = [message["role"] for message in (await timeline.render()).to_openai_chat()["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "assistant"]


async def test_a_message_of_several_parts_opens_one_turn() -> None:
    """A picture and two texts are one question, in the turn that a header opened where there is one."""
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    parts = [picture, {"type": "text", "text": "This."}, {"type": "text", "text": "And that."}]
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), {"type": "turn.header"})
    blocks = await timeline.append_messages([{"role": "user", "content": parts}], wire="anthropic")
    assert [(type(block), block.turn_id) for block in blocks] == [
        (Attachment, "turn_2"),
        (UserPrompt, "turn_2"),
        (UserPrompt, "turn_2"),
    ]
    [more] = await timeline.append(UserPrompt(text="Next."))
    assert more.turn_id == "turn_3"


async def test_messages_with_keys_are_appended_once() -> None:
    """A history that grew is given as a whole; only what is new is appended, its results beside their calls."""
    store = MemoryStore()
    timeline = await opened(store)
    history: list[Any] = [{"role": "user", "content": "Look."}, chat_completion()["choices"][0]["message"]]
    first = await timeline.append_messages(history, keys=["m1", "m2"])
    history += [{"role": "tool", "tool_call_id": i, "content": "x"} for i in ("call_1", "call_2")]
    again = await opened(store)
    added = await again.append_messages(history, keys=["m1", "m2", "m3", "m4"], now=after(9))
    assert (len(first), [block.path for block in added]) == (
        4,
        ["tc:turn_1.call_1.result", "tc:turn_1.call_2.result"],
    )
    assert await again.append_messages(history, keys=["m1", "m2", "m3", "m4"]) == []


@pytest.mark.parametrize(
    ("messages", "options", "field"),
    [
        (["hello"], {}, r"messages\[0\]': is of the type str: give"),
        ([_OfAFramework()], {}, "is of the type _OfAFramework: give what your framework's client sends"),
        ([{"role": "user", "content": "x"}, {"content": "y"}], {}, r"messages\[1\]"),
        ([{"role": "user", "content": "x"}], {"keys": []}, "keys"),
        ([{"role": "user", "content": "x"}, {"role": "user", "content": "y"}], {"keys": ["m", "m"]}, "'m' names two"),
        ([{"role": "user", "content": "x"}], {"keys": ["m\udcfc"]}, "surrogate"),
        ([{"role": "user", "content": "x"}], {"wire": "morse"}, "wire"),
    ],
)
async def test_what_is_no_message_is_a_typed_error_and_writes_nothing(
    messages: list[Any], options: dict[str, Any], field: str
) -> None:
    """The error says which one it is."""
    timeline = await opened(MemoryStore())
    with pytest.raises(InvalidBlock, match=field):
        await timeline.append_messages(messages, **options)
    assert timeline.version == 1


async def test_a_message_whose_class_fixes_its_role_is_read() -> None:
    """Google's SDK has such classes; a dump of what was set has no role."""
    timeline = await opened(MemoryStore())
    await timeline.append_messages([UserContent("x"), ModelContent("y")], wire="gemini")
    assert [type(item.block) for item in timeline.window.items] == [UserPrompt, AssistantCompletion]


class _Chunk(BaseModel):
    """A part whose class fixes its type, as Mistral's SDK has them."""

    text: str
    type: Literal["text"] = "text"


class _Message(BaseModel):
    """A message whose class fixes its role."""

    content: list[_Chunk]
    role: Literal["user"] = "user"


async def test_a_part_whose_class_fixes_its_type_is_read() -> None:
    """Mistral's SDK has such classes for messages and for their chunks."""
    timeline = await opened(MemoryStore())
    [block] = await timeline.append_messages([_Message(content=[_Chunk(text="x")])])
    assert (type(block), block.text) == (UserPrompt, "x")


async def test_a_message_that_says_nothing_is_passed_over_whatever_is_beside_its_content() -> None:
    """An answer that was stopped at once, with a client's notes about it."""
    timeline = await opened(MemoryStore())
    stopped = {"role": "assistant", "content": "", "annotations": [{"type": "status", "value": "stopped"}]}
    assert await timeline.append_messages([stopped]) == []


async def test_a_picture_that_googles_sdk_holds_reaches_other_providers_in_their_alphabet() -> None:
    """The SDK writes base64 for URLs, which Anthropic and OpenAI refuse; bytes in a dict are the same picture."""
    timeline = await opened(MemoryStore())
    data = b"\xfb\xff\xfe"
    await timeline.append_messages([UserContent(Part.from_bytes(data=data, mime_type="image/png"))], wire="gemini")
    held = {"inline_data": {"data": data, "mime_type": "image/png"}}
    await timeline.append_messages([{"role": "user", "parts": [held]}], wire="gemini")
    sent = str((await timeline.render()).to_openai_chat())
    assert sent.count("data:image/png;base64,+//+") == 2


async def test_a_picture_that_an_earlier_release_read_is_known() -> None:
    """It is in the log as Google's SDK writes it."""
    timeline = await opened(MemoryStore())
    source = {"type": "base64", "media_type": "image/png", "data": "-__-"}
    await timeline.append(Attachment(data={"type": "image", "source": source}, mime="image/png"))
    picture = UserContent(Part.from_bytes(data=b"\xfb\xff\xfe", mime_type="image/png"))
    assert await timeline.list_follower().take_messages([picture], wire="gemini") == []


async def test_no_messages_append_nothing() -> None:
    """An empty list is no error."""
    timeline: Timeline = await opened(MemoryStore())
    assert await timeline.append_messages([]) == []
    assert timeline.version == 1


def test_a_result_that_an_earlier_release_kept_as_text_is_known_as_the_object_it_was() -> None:
    """A list that has it again appends nothing, with a picture beside it or without."""
    part: Any = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    kept: list[tuple[Any, Any]] = [
        (None, {"type": "json"}),
        ([{"type": "text", "text": "{}"}, part], [{"type": "json"}, part]),
    ]
    for earlier, now in kept:
        before, after = (ToolResult(call_id="c", text="{}", data=data) for data in (earlier, now))
        assert content_key(before) == content_key(after)


async def test_a_list_with_an_answer_that_has_pictures_beside_it_is_taken() -> None:
    """OpenRouter's replies are handed back so by the programs that keep their own list; the list was refused."""
    drawn = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    timeline = await opened(MemoryStore())
    await timeline.append_messages(
        [{"role": "user", "content": "Draw."}, {"role": "assistant", "content": "Here.", "images": [drawn]}]
    )
    assert [item.block.data for item in timeline.window.items] == [None, None, drawn]


@pytest.mark.parametrize(
    ("wire", "message", "field"),
    [
        ("openai_chat", {"role": "tool", "tool_call_id": "a", "content": 22}, "content"),
        ("openai_chat", {"role": "user", "content": [7, {"type": "text", "text": "x"}]}, "content"),
        ("anthropic", {"role": "user", "content": [["x"]]}, "content"),
        ("openai_chat", {"role": "user", "parts": [{"text": "x"}]}, "parts"),
        ("openai_chat", {"role": "user", "content": [{"type": "text", "txt": "x"}]}, "content"),
        ("anthropic", {"role": "assistant", "content": [{"type": "text", "text": 5}]}, "content"),
        ("openai_responses", {"role": "user", "content": [{"type": "input_text", "content": "x"}]}, "content"),
        ("openai_chat", {"role": "assistant", "tool_calls": {"id": "a", "function": {"name": "ls"}}}, "tool_calls"),
        ("gemini", {"role": "user", "content": "x"}, "content"),
        ("ai_sdk_ui", {"role": "user", "content": "x"}, "content"),
        ("openai_chat", {"role": "user", "content": [{"text": "as in Bedrock's Converse API"}]}, "content"),
        ("bedrock_converse", {"role": "user", "content": [{"type": "text", "text": "as in Anthropic's"}]}, "content"),
        ("anthropic", {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "ls"}}]}, "content"),
        ("openai_chat", {"role": "user", "blocks": [{"block_type": "text", "text": "as in LlamaIndex"}]}, "blocks"),
        ("openai_chat", {"role": "user", "content": "as in Agno", "images": [{"url": "https://a/b.png"}]}, "images"),
        ("openai_chat", {"role": "user", "content": [{"type": "image", "image": object()}]}, ""),
    ],
)
async def test_content_that_no_form_has_is_refused(wire: Any, message: dict[str, Any], field: str) -> None:
    """It was left out without a word; now nothing of the list is written."""
    timeline = await opened(MemoryStore())
    with pytest.raises(InvalidBlock) as caught:
        await timeline.append_messages([{"role": "user"}, message], wire=wire)
    assert caught.value.field == f"messages[1].{field}".rstrip(".")
    assert timeline.window.items == ()
