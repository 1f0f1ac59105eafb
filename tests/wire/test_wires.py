"""Every wire format through the shell: appended, rendered, compacted, recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.genai.types import GenerateContentResponse

from tests.scenes import after, answer, call, prompt, result
from tests.sdks import GEMINI_EVENTS, gemini_response
from tests.wire.validity import check_taken
from timeline import Timeline, compact_messages, policies
from timeline.blocks import Attachment, CustomBlock, ToolResult
from timeline.errors import InvalidArgument
from timeline.store import MemoryStore
from timeline.wire import MESSAGES, WIRES, decoder
from timeline.wire.groups import OPENING_LINE

if TYPE_CHECKING:
    from pydantic import JsonValue

TALK = (
    prompt(text="build it"),
    call("c1", "bash", response_id="r1", arguments={"command": "make"}),
    result("c1", text="Exit code 2", name="bash"),
    answer(text="It fails.", response_id="r2"),
    prompt(text="And now?"),
)


async def talk(*blocks: Any, id_: str = "c") -> Timeline:
    """Open a timeline on which some blocks were said."""
    timeline = await Timeline.open(MemoryStore(), id_, policy=policies.cut_point(), now=after(0))
    await timeline.append(*blocks, now=after(1))
    return timeline


async def messages_of(wire: str) -> list[dict[str, Any]]:
    """Return a conversation in a wire's form."""
    body = (await (await talk(*TALK)).render(now=after(2))).to_wire(wire)
    messages: list[dict[str, Any]] = body[MESSAGES[wire]]
    return messages


@pytest.mark.parametrize("wire", MESSAGES)
async def test_messages_of_every_form_are_told_apart_and_appended(wire: str) -> None:
    """Nobody has to say which form it is, and the turns are the same."""
    timeline = await talk(prompt(text="Hello"))
    blocks = await timeline.append_messages(await messages_of(wire), now=after(3))
    assert [(b.type, b.text) for b in blocks] == [(b.type, b.text) for b in TALK]
    assert [block.turn_id for block in blocks] == ["turn_2"] * 4 + ["turn_3"]
    again = (await timeline.render(now=after(4))).to_wire(wire)
    assert [b.text for b in decoder(wire)(again)] == ["Hello", *(b.text for b in TALK)]


async def test_a_form_that_has_no_messages_is_refused() -> None:
    """The error names those that have."""
    with pytest.raises(InvalidArgument, match="anthropic, openai_chat, openai_responses, gemini, bedrock_converse"):
        await (await talk(*TALK)).append_messages([{"role": "user", "content": "x"}], wire="pigeon")  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("wire", MESSAGES)
async def test_a_plain_list_of_every_form_is_compacted_in_that_form(wire: str) -> None:
    """What stays are the very messages; a summary stands at the head, and the next round integrates it."""
    said = [
        block
        for n in range(40)
        for block in (
            prompt(text=f"Question {n}. " + "More. " * 200),
            answer(text=f"Answer {n}." + " So." * 300, response_id=f"r{n}"),
        )
    ]
    body = (await (await talk(*said)).render(now=after(2))).to_wire(wire)
    messages = body[MESSAGES[wire]]
    done = await compact_messages(messages, policies.keep_last(max_tokens=24_000), now=after(3))
    assert done.changed
    assert done.after_tokens < done.before_tokens
    assert any(kept is messages[-1] for kept in done.messages)
    texts = [block.text for block in decoder(wire)({MESSAGES[wire]: done.messages})]
    assert texts[-1] == said[-1].text
    assert any("Session Summary" in text for text in texts[:2])


async def test_a_reply_of_googles_is_recorded_and_sent_back_as_it_came() -> None:
    """As the SDK's object or as a stream of its chunks; the signature goes back on its call."""
    for streamed in (False, True):
        timeline = await talk(prompt(text="List the files."))
        if streamed:

            async def stream() -> Any:
                for event in GEMINI_EVENTS:
                    yield GenerateContentResponse.model_validate(event)

            blocks = await timeline.record_stream(stream(), now=after(2))
        else:
            reply = GenerateContentResponse.model_validate(gemini_response())
            blocks = await timeline.record(reply, now=after(2))
        assert [block.type.rpartition(".")[2] for block in blocks] == [
            *("reasoning", "completion", "reasoning", "call", "call"),
        ]
        context = await timeline.render(now=after(3))
        parts = context.to_gemini()["contents"][1]["parts"]
        sent = GenerateContentResponse.model_validate({"candidates": [{"content": {"parts": parts}}]})
        came = GenerateContentResponse.model_validate(gemini_response())
        assert [p.thought_signature for p in sent.parts or ()] == [p.thought_signature for p in (came.parts or ())[1:]]
        assert context.neutral.model == "gemini-3.8-flash"


async def test_a_prefix_for_googles_cache_stays_the_same_while_the_turn_goes_on() -> None:
    """Its hash finds the cached object again; the rest is what came since."""
    timeline = await talk(*TALK)
    first = (await timeline.render(system="You build.", now=after(2))).gemini_prefixes()[0]
    await timeline.append(call("c2", "bash", response_id="r3"), result("c2", text="fine"), now=after(3))
    later = await timeline.render(system="You build.", now=after(4))
    [prefix, *_] = later.gemini_prefixes()
    assert (prefix.kind, prefix.sha256, prefix.cached) == ("previous_turn", first.sha256, first.cached)
    assert len(prefix.rest) > len(first.rest)
    other = await timeline.render(system="You do not build.", now=after(5))
    assert prefix.sha256 not in [found.sha256 for found in other.gemini_prefixes(model="gemini-3.8-flash")]


async def test_the_methods_are_the_wires() -> None:
    """Each format has a method of its name, and all are in the one table."""
    context = await (await talk(*TALK)).render(now=after(2))
    assert all(getattr(context, f"to_{wire}")() == context.to_wire(wire) for wire in WIRES)


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "ai_sdk_ui"])
@pytest.mark.parametrize("said", [(), ("",), (" \n",), ("", " ")], ids=["nothing", "empty", "blank", "both"])
async def test_a_context_of_which_nothing_can_be_sent_is_a_valid_request(wire: str, said: tuple[str, ...]) -> None:
    """The opening line stands for it: a provider refuses a request without a message, or one of the system alone."""
    timeline = await talk(*(prompt(text=text) for text in said))
    context = await timeline.render(system="Be brief.", now=after(2))
    check_taken(wire, context.neutral)
    assert not [block for block in decoder(wire)(context.to_wire(wire)) if block.author == "user"]
    assert OPENING_LINE in str(context.to_wire(wire))
    assert str(context.request(wire, model="m").body).count(OPENING_LINE) == 1
    await timeline.append(prompt(text="Hello"), now=after(3))
    assert OPENING_LINE not in str((await timeline.render(now=after(4))).request(wire, model="m").body)


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses", "ai_sdk", "ai_sdk_ui"])
async def test_a_failed_call_without_a_word_of_output_says_so(wire: str) -> None:
    """An empty text would be a success to OpenAI's models, and Anthropic refuses an empty error of the AI SDK."""
    timeline = await talk(prompt(text="go"), call("c1", "bash"), result("c1", text="", is_error=True))
    body = (await timeline.render(now=after(2))).to_wire(wire)
    assert str(body).count("[failed, without any output]") == 1
    [told] = [block for block in decoder(wire)(body) if isinstance(block, ToolResult)]
    assert (told.text, told.is_error) == ("", True)


async def test_an_interface_shows_no_opening_line() -> None:
    """Its messages are for a person, and nobody has said anything."""
    context = await (await talk(prompt(text=" "))).render(now=after(2))
    assert context.to_ai_sdk_ui()["messages"] == []


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "data",
    [{"path": "/a.png"}, "aGk=", 7, [], [1, 2], {"no": "type"}, {"inlineData": {}}, {"type": "text", "text": "x"}],
)
async def test_an_attachment_of_an_unknown_shape_is_named(wire: str, data: Any) -> None:
    """Nothing that was said is left out: the model can ask for what it is not shown."""
    timeline = await talk(prompt(text="See"), Attachment(data=data, mime="image/png", meta={"file": "a.png"}))
    context = await timeline.render(now=after(2))
    check_taken(wire, context.neutral)
    assert "[not shown here: " in str(context.to_wire(wire))
    assert "image/png, fi:turn_1.a%2Epng]" in str(context.to_wire(wire))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "data",
    [
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"inline_data": {"mime_type": "image/png", "data": "aGk="}},
    ],
)
async def test_a_picture_in_the_form_of_google_without_a_type_is_sent(wire: str, data: Any) -> None:
    """Google's parts name no type, and their form is clear."""
    context = await (await talk(prompt(text="See"), Attachment(data=data))).render(now=after(2))
    check_taken(wire, context.neutral)
    assert "aGk=" in str(context.to_wire(wire))
    assert "not shown" not in str(context.to_wire(wire))


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (
            {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
        ),
        (
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"}},
        ),
        ({"type": "input_file", "file_id": "f1"}, {"type": "file", "file": {"file_id": "f1"}}),
    ],
)
async def test_parts_of_the_responses_api_in_a_list_of_messages_are_what_the_user_said(part: Any, sent: Any) -> None:
    """Its text opens a turn, and its pictures and files are sent."""
    timeline = await talk()
    said = {"role": "user", "content": [{"type": "input_text", "text": "Never touch migrations"}, part]}
    text, attached = await timeline.append_messages([said], now=after(1))
    assert (text.type, text.text) == ("user.prompt", "Never touch migrations")
    assert attached.data == sent
    shown = (await timeline.render(now=after(2))).to_openai_chat()["messages"]
    assert shown == [{"role": "user", "content": [{"type": "text", "text": "Never touch migrations"}, sent]}]


async def test_a_file_at_an_address_stays_a_part_of_the_responses_api() -> None:
    """Chat Completions has no form for it, and its own API is sent it as it came."""
    part = {"type": "input_file", "file_url": "https://example.org/a.pdf"}
    timeline = await talk(prompt(text="See"))
    await timeline.append_messages([{"role": "user", "content": [part]}], now=after(2))
    assert part in (await timeline.render(now=after(3))).to_openai_responses()["input"][-1]["content"]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_part_whose_type_is_no_text_breaks_no_wire(wire: str) -> None:
    """Recordings have such parts, where another program wrote them or a disk was damaged."""
    odd: dict[str, JsonValue] = {"type": ["text"], "text": "?"}
    said = CustomBlock(type="assistant.part", author="assistant", data=odd, response_id="r1")
    timeline = await talk(prompt(text="go"), said, answer(text="Done.", response_id="r1"), Attachment(data=odd))
    assert "Done." in str((await timeline.render(now=after(2))).to_wire(wire))


@pytest.mark.parametrize("wire", MESSAGES)
async def test_a_part_of_a_message_whose_type_is_no_text_costs_no_other(wire: str) -> None:
    """Whichever form the message has."""
    key = "parts" if wire in {"gemini", "ai_sdk_ui"} else "content"
    part: dict[str, Any] = {"text": "Done."} if wire == "gemini" else {"type": "text", "text": "Done."}
    blocks = decoder(wire)([{"role": "user", key: [{"type": ["text"], "text": "?"}, part]}])
    assert "Done." in [block.text for block in blocks]
