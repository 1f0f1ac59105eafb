"""The recall tool: every path that a context prints can be followed, and whatever else is asked gets a plain answer."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types import ToolParam
from google.genai.types import FunctionDeclaration, Tool
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from tests.scenes import AT, Scribe, answer, call, exchange, opened, prompt, result, small_policy, turn, words
from timeline.agent.recall import RecallTool, schema
from timeline.blocks import Attachment, CustomBlock, Reasoning, ToolCall, ToolResult
from timeline.errors import HistoryUnavailable, InvalidArgument
from timeline.events import BlockRedacted, BlocksHidden, Replacement, event_id
from timeline.store.memory import MemoryStore
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from timeline.timeline import Timeline

PATH = re.compile(r"\b(?:ar|tc|fi|so|su|bl):[^\s\]\[,;'\"\\()]+")
"""A path in a text, with what may stand around it left out."""
ADDRESS = re.compile(r"\((@\d+)\)")
PROVIDERS: dict[str, Any] = {
    "anthropic": ToolParam,
    "openai_chat": ChatCompletionFunctionToolParam,
    "openai_responses": FunctionToolParam,
    "gemini": FunctionDeclaration,
}
REQUIRES_ALL = {"openai_chat", "openai_responses"}
"""Wires whose strict mode demands that every property is required."""


async def told(timeline: Timeline, path: str, **more: Any) -> str:
    """Ask for a path."""
    return await timeline.recall_tool("anthropic").handle({"path": path, **more})


# Schema


@pytest.mark.parametrize("wire", PROVIDERS)
def test_the_schema_has_the_providers_shape_and_is_closed(wire: Any) -> None:
    """The SDK's own type takes it; nothing beyond path, offset and limit may be asked."""
    told = schema(wire)
    TypeAdapter(PROVIDERS[wire]).validate_python(told)
    check_parameters(wire, told)


def check_parameters(wire: str, told: Any) -> None:
    """Check the part of a schema that says what may be asked."""
    function = told.get("function", told)
    [key] = function.keys() - {"type", "name", "description", "strict"}
    parameters = function[key]
    assert parameters["additionalProperties"] is False
    assert list(parameters["properties"]) == ["path", "offset", "limit"]
    assert parameters["required"] == (["path", "offset", "limit"] if wire in REQUIRES_ALL else ["path"])


def test_the_schema_for_googles_sdk_is_a_declaration_beside_others() -> None:
    """It stands among the functions of one tool, and goes through as it is."""
    declared = Tool.model_validate({"function_declarations": [{"name": "ls"}, schema("gemini")]})
    [_, recall] = declared.function_declarations or []
    assert recall.model_dump(exclude_none=True) == schema("gemini")


def test_the_schema_for_the_ai_sdk_is_what_its_program_makes_a_tool_of() -> None:
    """A function tool as the SDK hands it to its providers: name, description and a JSON Schema."""
    told = schema("ai_sdk")
    assert set(told) == {"type", "name", "description", "inputSchema"}
    assert (told["type"], told["name"]) == ("function", "recall")
    Draft202012Validator.check_schema(told["inputSchema"])  # type: ignore[arg-type]  # a JSON object
    check_parameters("ai_sdk", told)


def test_an_unknown_wire_is_refused() -> None:
    """The message says which there are."""
    with pytest.raises(InvalidArgument, match="anthropic, openai_chat, openai_responses, gemini, bedrock_converse"):
        schema("morse")  # type: ignore[arg-type]


# Content


async def test_a_result_is_given_with_its_address_and_size() -> None:
    """The first line says what it is; the content follows as it was."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), call("c1"), ToolResult(call_id="c1", name="run", text="3 failed", exit_status=1))
    assert await told(timeline, "tc:turn_1.c1.result") == (
        "[tc:turn_1.c1.result · @4 · react.tool.result of run · exit status 1 · turn_1 · 2 tokens]\n3 failed"
    )


async def test_a_call_is_given_with_its_arguments_as_json() -> None:
    """Arguments that are no object are given as the model wrote them."""
    timeline = await opened(MemoryStore())
    await timeline.append(call("c1", arguments={"path": "ü.py"}), call("c2", arguments='{"path": "a'))
    assert (await told(timeline, "tc:turn_0.c1.call")).splitlines()[1:] == ['{"path":"ü.py"}']
    assert (await told(timeline, "tc:turn_0.c2.call")).splitlines()[1:] == ['{"path": "a']


@pytest.mark.shows("002-50", "R-002-3")
async def test_a_summary_is_given_with_its_full_record() -> None:
    """The paths of all that it covers are there to be followed."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=4_000), summarizer=Scribe())
    for number in range(30):
        await timeline.append(*exchange(f"c{number}", 200, name="bash", arguments={"command": f"make t{number}"}))
    await timeline.compact(now=AT)
    summary = timeline.window.summary
    assert summary is not None
    tool = timeline.recall_tool("anthropic", max_tokens=20_000)
    answered = await tool.handle({"path": summary.block.path})
    assert "turn prefix 1" in answered
    assert "Full record of everything that it covers:\n" in answered
    assert words(200).strip() in await tool.handle({"path": "tc:turn_0.c0.result"})
    assert "tc:turn_0.c0.result" in answered
    assert '"command": "make t0"' in answered


async def test_data_is_given_as_json_without_what_is_encoded() -> None:
    """A picture is named, not spelt out; a provider's own part is there to be read."""
    picture: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 9_000}}
    timeline = await opened(MemoryStore())
    await timeline.append(
        Attachment(data=picture, mime="image/png"),
        CustomBlock(type="x.part", data={"a": [1]}),
        Reasoning(text="Hm.", data={"type": "thinking", "thinking": "Hm.", "signature": "sig"}),
        ToolResult(call_id="c", text="seen", data=[{"type": "text", "text": "seen"}, picture]),
    )
    shown = await told(timeline, "fi:turn_0.attachment")
    assert "[image: it is not text, so that only the application can look at it]" in shown
    assert "AAAA" not in shown
    assert "AAAA" not in await told(timeline, "tc:turn_0.c.result")
    assert '{"a":[1]}' in await told(timeline, "bl:turn_0.x.part")
    assert (await told(timeline, "bl:turn_0.assistant.reasoning")).splitlines()[1:] == ["Hm."]
    assert (await told(timeline, "tc:turn_0.c.result")).count("seen") == 1


def picture_of(size: int) -> Any:
    """Return a picture part whose data has so many characters."""
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * size}}


def asking(path: str, **more: Any) -> ToolCall:
    """Return the model's call of the tool."""
    return ToolCall(call_id="r1", name="recall", arguments={"path": path, **more}, response_id="m9")


async def with_picture() -> Timeline:
    """Return a conversation whose picture is hidden."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), Attachment(data=picture_of(20), mime="image/png"), answer())
    await timeline.hide("fi:turn_1.attachment")
    return timeline


async def test_a_picture_is_shown_again_inside_the_result() -> None:
    """The Messages API takes pictures there; the part is what was recorded."""
    timeline = await with_picture()
    asked = asking("fi:turn_1.attachment")
    await timeline.append(asked, await timeline.recall_tool("anthropic").answer(asked))
    [told_result] = (await timeline.render()).to_anthropic()["messages"][-1]["content"]
    [text, shown] = told_result["content"]
    assert (told_result["tool_use_id"], shown["source"]) == ("r1", picture_of(20)["source"])
    assert "[image: comes with offset 0, inside this result]" in text["text"]


async def test_a_picture_is_shown_inside_the_output_of_a_function_call() -> None:
    """OpenAI's Responses API takes pictures there, too."""
    timeline = await with_picture()
    asked = asking("fi:turn_1.attachment")
    await timeline.append(asked, await timeline.recall_tool("openai_responses").answer(asked))
    output = (await timeline.render()).to_wire("openai_responses")["input"][-1]
    assert (output["type"], output["call_id"]) == ("function_call_output", "r1")
    assert [part["type"] for part in output["output"]] == ["input_text", "input_image"]


async def test_a_picture_is_shown_beside_the_response_of_a_function() -> None:
    """Google's API takes pictures there, as inline data."""
    timeline = await with_picture()
    asked = asking("fi:turn_1.attachment")
    await timeline.append(asked, await timeline.recall_tool("gemini").answer(asked))
    [part] = (await timeline.render()).to_gemini()["contents"][-1]["parts"]
    answered = part["function_response"]
    assert (answered["id"], answered["name"]) == ("r1", "recall")
    assert "[image: comes with offset 0, inside this result]" in answered["response"]["output"]
    assert answered["parts"] == [{"inline_data": {"mime_type": "image/png", "data": "A" * 20}}]


async def test_a_picture_is_shown_inside_the_output_of_a_tool_of_the_ai_sdk() -> None:
    """The output is a list of content then."""
    timeline = await with_picture()
    asked = asking("fi:turn_1.attachment")
    await timeline.append(asked, await timeline.recall_tool("ai_sdk").answer(asked))
    [told_result] = (await timeline.render()).to_ai_sdk()["messages"][-1]["content"]
    assert (told_result["type"], told_result["toolCallId"]) == ("tool-result", "r1")
    assert [part["type"] for part in told_result["output"]["value"]] == ["text", "image-data"]


async def test_a_picture_is_shown_behind_a_result_that_is_text_only() -> None:
    """A tool message of the chat completions has no pictures: it says where to look."""
    timeline = await with_picture()
    asked = asking("fi:turn_1.attachment")
    await timeline.append(asked, await timeline.recall_tool("openai_chat").answer(asked))
    tool, user = (await timeline.render()).to_openai_chat()["messages"][-2:]
    assert (tool["role"], user["role"], user["content"][1]["type"]) == ("tool", "user", "image_url")
    assert "[image: comes with offset 0, in the message behind this result]" in tool["content"]


async def test_pictures_together_are_bounded_and_what_has_no_form_is_named() -> None:
    """What does not come says why; text beside it comes all the same."""
    timeline = await opened(MemoryStore())
    audio = {"type": "audio", "data": "B" * 40}
    parts = [picture_of(3_000_000), picture_of(3_000_000), audio, picture_of(9)]
    await timeline.append(prompt(), Attachment(text="three views", data=parts))
    answered = await timeline.recall_tool("anthropic").answer(asking("fi:turn_1.attachment"))
    assert answered.data == [parts[0], parts[3]]
    assert "three views" in answered.text
    assert "[image: too large to be shown, 3,000,0" in answered.text
    assert "[audio: it is not text, so that only the application can look at it]" in answered.text


@pytest.mark.parametrize("text", ["", "a view"])
async def test_a_picture_in_a_form_without_a_type_is_shown_again(text: str) -> None:
    """Google's parts and Bedrock's say by a key what they are: the answer called them encoded data."""
    timeline = await opened(MemoryStore())
    part = {"inlineData": {"mimeType": "image/png", "data": "A" * 3_000}}
    await timeline.append(prompt(), Attachment(text=text, data=part))
    answered = await timeline.recall_tool("anthropic").answer(asking("fi:turn_1.attachment"))
    assert answered.data == [picture_of(3_000)]
    assert "[image: comes with offset 0, inside this result]" in answered.text
    assert "encoded data" not in answered.text


async def test_a_picture_deep_inside_the_data_of_a_block_is_no_text() -> None:
    """Its encoded data would fill the answer; what is around it is shown."""
    timeline = await opened(MemoryStore())
    data = {"screen": {"title": "Cards", "views": [{"png": "A" * 3_000}]}}
    await timeline.append(prompt(), CustomBlock(type="app.screen", data=data, turn_id="turn_1", path="bl:screen"))
    said = await told(timeline, "bl:screen")
    assert '"title":"Cards"' in said
    assert '"png":"[3000 characters of encoded data]"' in said


async def test_only_the_first_piece_brings_the_pictures() -> None:
    """Whoever goes on reading has seen them."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), Attachment(text=words(50), data=[picture_of(9)]))
    tool = timeline.recall_tool("anthropic")
    answered = [await tool.answer(asking("fi:turn_1.attachment", offset=offset)) for offset in (0, 20)]
    assert [answer_.data for answer_ in answered] == [[picture_of(9)], None]


@pytest.mark.parametrize("arguments", ["{broken", {"path": "tc:turn_9.x.result"}, {"path": "ar:turn_1.user.prompt"}])
async def test_an_answer_without_pictures_says_what_the_handler_says(arguments: Any) -> None:
    """It answers the call that was made, also where there is nothing to be read."""
    timeline = await with_picture()
    tool = timeline.recall_tool("anthropic")
    answered = await tool.answer(ToolCall(call_id="r1", name="recall", arguments=arguments))
    assert (answered.call_id, answered.name, answered.data) == ("r1", "recall", None)
    assert answered.text == await tool.handle(arguments)


async def test_a_call_that_was_cut_off_can_be_read_back() -> None:
    """It was never sent as a call; whoever asks sees how far it came."""
    timeline = await opened(MemoryStore())
    cut = {"call_id": "c", "name": "write", "arguments": '{"text": "half'}
    await timeline.append(answer(2, meta={"interrupted": True, "cut_calls": [cut]}))
    assert "half" in await told(timeline, "ar:turn_0.assistant.completion")


async def test_a_block_without_content_says_so() -> None:
    """An empty answer would look like a failure."""
    timeline = await opened(MemoryStore())
    await timeline.append(call("c"), result("c", 0))
    assert "[no content]" in await told(timeline, "tc:turn_0.c.result")


# Ranges


@given(
    st.text("ab é\n中🙂", max_size=400),
    st.integers(90, 160),
    st.sampled_from(["chars4", "o200k_base"]),
    st.none() | st.integers(1, 50),
)
async def test_following_the_offsets_gives_the_whole_content_within_the_budget(
    text: str, max_tokens: int, counter_name: str, limit: int | None
) -> None:
    """Piece after piece, nothing is lost or repeated, and no answer is over its budget."""
    counter = get_counter(counter_name)
    timeline = await opened(MemoryStore(), counter=counter)
    await timeline.append(prompt(text=text))
    tool = timeline.recall_tool("anthropic", max_tokens=max_tokens)
    pieces: list[str] = []
    offset = 0
    while offset < len(text):
        answered = await tool.handle({"path": "ar:turn_1.user.prompt", "offset": offset, "limit": limit})
        assert counter.count(answered) <= max_tokens
        body = answered.split("\n", 1)[1]
        tail = re.search(rf"\n\[characters {offset} to (\d+) of {len(text)}; [^\n]*\]$", body)
        end = int(tail[1]) if tail else len(text)
        pieces.append(body[: end - offset])
        assert end > offset
        offset = end
    assert "".join(pieces) == text


async def test_a_piece_ends_with_a_line_where_it_can() -> None:
    """Half a line of a log reads badly."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(text="a line of forty characters, all the same\n" * 50))
    answered = await timeline.recall_tool("anthropic", max_tokens=200).handle({"path": "ar:turn_1.user.prompt"})
    assert re.search(r"same\n\n\[characters 0 to \d+ of 2050; go on with offset \d+\]$", answered)


async def test_an_offset_behind_the_end_says_how_long_the_content_is() -> None:
    """The model can go back from there."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(text="abc"))
    assert "3 characters" in await told(timeline, "ar:turn_1.user.prompt", offset=10**30)


# What cannot be read


async def test_a_redacted_block_is_told_from_an_unknown_one() -> None:
    """The reason is given, the content is not."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(text="my password"))
    await timeline.decide([BlockRedacted(version=2, reason="a password")], at=AT, ids=[event_id(AT)])
    answered = await told(timeline, "ar:turn_1.user.prompt")
    assert answered.startswith("[ar:turn_1.user.prompt · @2 · redacted]")
    assert "Reason: a password." in answered
    assert "my password" not in answered


async def test_a_block_that_only_says_that_it_is_redacted_is_given() -> None:
    """What somebody wrote is what is read."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(text="[redacted]"))
    assert (await told(timeline, "ar:turn_1.user.prompt")).endswith("tokens]\n[redacted]")


async def test_deleted_history_is_said_in_words() -> None:
    """Retention may have taken it; the tool never raises for that."""

    async def gone(path: str) -> Any:
        assert path
        raise HistoryUnavailable("c", 3, 10, 20)

    async def nothing(of: Any) -> Any:
        return list(of)[:0]

    tool = RecallTool("anthropic", read=gone, count=nothing, counter=get_counter("chars4"), max_tokens=99)
    answered = await tool.handle({"path": "ar:turn_1.user.prompt"})
    assert answered.startswith("[ar:turn_1.user.prompt · deleted]")


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("tc:turn_1.c1", "tc:turn_1.c1.result"),
        ("tc:turn_1.c1.reslt", "tc:turn_1.c1.result"),
        ("tc:turn_1.c11.result", "tc:turn_1.c1.result"),
        ("turn_1.c1.result", "tc:turn_1.c1.result"),
        ("call:turn_1.c1.result", "tc:turn_1.c1.result"),
        ("ar:turn_1.prompt", "ar:turn_1.user.prompt"),
    ],
)
async def test_an_unknown_path_is_answered_with_the_nearest_ones(asked: str, nearest: str) -> None:
    """A slip of the model costs it one more call."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn(), *exchange("c1"), *turn())
    answered = await told(timeline, asked)
    assert answered.startswith("[unknown path]")
    assert nearest in answered.partition("Nearest paths: ")[2]


@pytest.mark.parametrize("asked", ["notes/" * 2_000, "@" + "9" * 12_000, "tc:turn_1." + "\N{FOX FACE}" * 5_000])
async def test_an_unknown_path_of_any_length_is_repeated_in_part(asked: str) -> None:
    """An answer has its most tokens, whatever the model asks: repeated whole, a long path would fill the window."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn(), *exchange("c1"), *turn())
    tool = timeline.recall_tool("anthropic", max_tokens=500)
    answered = await tool.handle({"path": asked})
    assert answered.startswith("[unknown ")
    assert repr(asked[:50])[:-1] in answered
    assert get_counter("o200k_base").count(answered) <= 500


async def test_a_path_of_another_conversation_has_no_nearest_one() -> None:
    """Nothing is made up."""
    timeline = await opened(MemoryStore())
    assert "exactly as it is printed" in await told(timeline, "tc:turn_9.x.result")


@pytest.mark.parametrize("quoted", ["`{}`", "[{}]", '"{}"', "{}.", "({})…", " {}\n"])
async def test_a_path_with_its_quotes_is_found(quoted: str) -> None:
    """Models copy what stands around a path."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(text="Hello."))
    assert "Hello." in await told(timeline, quoted.format("ar:turn_1.user.prompt"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["path", "offset", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)
PATHS = st.sampled_from(["ar:turn_1.user.prompt", "ar:", ":", ".", "tc:turn_1.", "\ud800", "a" * 300, "%", "_"])


@given(
    JSON
    | st.fixed_dictionaries({"path": PATHS | st.text()}, optional={"offset": JSON, "limit": JSON})
    | st.text(max_size=20)
    | st.just("[" * 9_999)
)
async def test_whatever_a_model_writes_is_answered_in_words(arguments: Any) -> None:
    """No argument makes the tool raise, and every answer says something."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    assert (await timeline.recall_tool("openai_chat").handle(arguments)).startswith("[")


async def test_arguments_as_json_text_are_read() -> None:
    """OpenAI hands them out so."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(text="Hello."))
    asked = json.dumps({"path": "ar:turn_1.user.prompt", "offset": None, "limit": 2})
    assert "\nHe\n[characters 0 to 2 of 6; go on with offset 2]" in await timeline.recall_tool("openai_chat").handle(
        asked
    )


# All that is printed


@pytest.mark.shows("004-84")
async def test_every_path_that_any_context_prints_is_followed() -> None:
    """Summaries, their records, previews, replacements and labels of late results lead to what they name."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=3_000, preview_tokens=80))
    tool = timeline.recall_tool("anthropic")
    shown = ""
    for number in range(60):
        arguments = {"command": f"pytest tests/test_{number}.py", "text": words(60 if number % 9 else 4_000)}
        blocks: list[Any] = [call(f"c{number}", name="bash", arguments=arguments, response_id=f"r{number}")]
        if number % 7 != 3:
            blocks.append(result(f"c{number}", 120 if number % 10 else 4_000, is_error=number % 3 == 0))
        if number % 7 == 4:
            blocks.append(result(f"c{number - 1}", 50))
        await timeline.append(*([prompt(60)] if number % 20 == 0 else []), *blocks)
        if number % 5 == 2:
            last = timeline.window.items[-1]
            hidden = Replacement(version=last.version, text=f"[hidden: {last.block.path}]", tokens=9)
            await timeline.decide([BlocksHidden(reason="cold", blocks=(hidden,))], at=AT, ids=[event_id(AT)])
        context = await timeline.render(now=AT)
        text = json.dumps(context.to_anthropic(), ensure_ascii=False)
        for path in set(PATH.findall(text)):
            answered = await tool.handle({"path": path})
            assert answered.startswith(f"[{path} · "), (path, answered)
        for address in set(ADDRESS.findall(text)):
            answered = await tool.handle({"path": address})
            assert f" · {address} · " in answered.partition("]")[0], (address, answered)
        shown += text
    labels = ("[hidden: ", "preview: ", "[result of ", "Done so far, from the log", "left out; all arguments: ")
    assert [label for label in labels if label not in shown] == []
