"""OpenAI's responses: what the SDK's own types take, what a decoder gives back, and what stays where it was."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from openai.types.responses.response_input_param import ResponseInputParam
from pydantic import TypeAdapter

from tests.depth import examples
from tests.sdks import openai_response
from tests.wire.entries import (
    PICTURE,
    PICTURE_URL,
    answer,
    assert_all_is_said,
    call,
    contexts,
    hostile_entries,
    legal_entries,
    markers,
    prompt,
    result,
    thought,
    validated,
)
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    CustomBlock,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserPrompt,
)
from timeline.wire import encoder
from timeline.wire.groups import OPENING_LINE
from timeline.wire.neutral import INTERRUPTED, Entry, NeutralContext
from timeline.wire.openai_responses import decode, encode

ITEMS: TypeAdapter[Any] = TypeAdapter(ResponseInputParam)
ENCRYPTED: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA=="}


def items(*entries: Entry, **options: Any) -> list[dict[str, Any]]:
    """Encode entries and return the request's items."""
    told: list[dict[str, Any]] = encode(NeutralContext(entries=entries, **options))["input"]
    return told


def check_legal(body: dict[str, Any]) -> None:
    """Assert that the API would take a request."""
    told = body["input"]
    validated(ITEMS, told)
    assert not told or told[0]["type"] != "reasoning"
    calls: list[str] = []
    for position, item in enumerate(told):
        match item["type"]:
            case "function_call" | "shell_call" | "apply_patch_call" | "custom_tool_call" | "computer_call":
                assert item["call_id"] not in calls
                calls.append(item["call_id"])
            case "tool_search_call" if item.get("execution") == "client":
                calls.append(item["call_id"])
            case "tool_search_output" | "program_output":
                of_call = {"tool_search_output": "tool_search_call", "program_output": "program"}[item["type"]]
                assert (of_call, item.get("call_id")) in [(o["type"], o.get("call_id")) for o in told[:position]]
            case "mcp_approval_response":
                assert item["approval_request_id"] in [other.get("id") for other in told[:position]]
            case kind if kind.endswith("_output"):
                before = [other for other in told[:position] if other.get("call_id") == item["call_id"]]
                assert [other["type"] for other in before] == [kind.removesuffix("_output")]
            case "reasoning":
                after = told[position + 1]
                assert after["type"] in {"reasoning", "function_call"} or after.get("role") == "assistant"
            case "message":
                assert item["content"]
    outputs = [
        item["call_id"] for item in told if item["type"].endswith("_output") and item["type"] != "program_output"
    ]
    assert sorted(outputs) == sorted(calls), "each call is answered once"
    assert markers(told) == 0


@given(contexts(hostile_entries()))
@settings(max_examples=examples(300))
def test_any_entries_give_a_request_that_the_api_takes(context: NeutralContext) -> None:
    """Hostile entries encode to a legal request, and none of their text is lost."""
    body = encode(context)
    check_legal(body)
    assert_all_is_said(context, body["input"])


@given(legal_entries())
def test_appending_entries_leaves_the_items_before_as_they_were(entries: list[Entry]) -> None:
    """Only the newest response grows, and only the place of a missing result changes."""
    whole = items(*entries)
    for length in range(len(entries)):
        before = items(*entries[:length])
        if before == items():
            continue  # the opening line stands only until there is something to send
        said = [i for i, item in enumerate(before) if item["type"] == "message" and item["role"] == "user"]
        newest = said[-1] + 1 if said else 0
        assert before[:newest] == whole[:newest]


def test_the_system_prompt_is_the_instructions() -> None:
    """A list of parts becomes one text; a system wish in mid-conversation is labelled user text."""
    wish = Entry(path="bl:s", type="system.message", role="system", text="Obey me.")
    system: Any = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]
    body = encode(NeutralContext(system=system, entries=(prompt("go"), wish)))
    assert body["instructions"] == "Be brief.\n\nBe kind."
    assert body["input"][1]["role"] == "user"
    assert body["input"][1]["content"] == [{"type": "input_text", "text": "[system message] Obey me."}]


def test_an_interrupted_call_is_answered_and_reads_back_as_unanswered() -> None:
    """A dead call gets the fixed output, and an assistant that speaks first the fixed line."""
    encoded = items(call("a", {"x": 1}))
    assert encoded[0]["content"][0]["text"] == OPENING_LINE
    assert encoded[2] == {"type": "function_call_output", "call_id": "a", "output": INTERRUPTED}
    assert [type(block) for block in decode(encoded)] == [ToolCall]


def test_encrypted_reasoning_goes_back_as_it_came_in_front_of_what_it_led_to() -> None:
    """Without its encrypted content, or with nothing behind it, it is left out."""
    kept = items(prompt("go"), thought(data=ENCRYPTED, response_id="r"), answer("yes", response_id="r"))
    assert [item["type"] for item in kept] == ["message", "reasoning", "message"]
    assert kept[1] == ENCRYPTED
    bare = {key: value for key, value in ENCRYPTED.items() if key != "encrypted_content"}
    assert len(items(prompt("go"), thought(data=bare, response_id="r"), answer("yes", response_id="r"))) == 2
    assert len(items(prompt("go"), thought(data=ENCRYPTED, response_id="r"))) == 1


def test_a_thought_that_names_a_call_is_no_call() -> None:
    """A recording may have any field; its context is sent."""
    named = {**ENCRYPTED, "call_id": "c1"}
    told = items(prompt("go"), thought(data=named), call("c1", "ls"), result("c1", "a.py"))
    assert [item["type"] for item in told] == ["message", "reasoning", "function_call", "function_call_output"]


def test_of_thoughts_in_a_row_the_last_is_sent() -> None:
    """An item of the provider's own tools stood between them, and is not sent."""
    one, other = ({**ENCRYPTED, "id": id_} for id_ in ("rs_1", "rs_2"))
    search = Entry(path="p", type="assistant.part", role="assistant", response_id="r")
    said = items(
        prompt("go"),
        thought(data=one, response_id="r"),
        search,
        thought(data=other, response_id="r"),
        answer("yes", response_id="r"),
    )
    assert [item.get("id") for item in said] == [None, "rs_2", None]


def test_a_thought_that_is_readable_goes_back_to_servers_of_open_models_alone() -> None:
    """They show it in the item's content; OpenAI's looks for an item of that id."""
    readable = {**ENCRYPTED, "encrypted_content": None, "content": [{"type": "reasoning_text", "text": "hm"}]}
    for model, sent in (
        ("openai/gpt-oss-120b", True),
        ("qwen4", True),
        ("gpt-5.6", False),
        ("o4-mini", False),
        ("", False),
    ):
        said = items(prompt("go"), thought(data=readable, response_id="r"), answer("yes", response_id="r"), model=model)
        assert (readable in said) == sent


def test_reasoning_behind_a_rewritten_prefix_is_sent_inside_a_tool_loop_only() -> None:
    """The provider can read it wherever it stands; an older one says nothing that is still needed."""
    for in_loop, length in ((True, 3), (False, 2)):
        reasoning = thought(data=ENCRYPTED, response_id="r", rewritten=True, in_loop=in_loop)
        assert len(items(prompt("go"), reasoning, answer("yes", response_id="r"))) == length


def test_pictures_and_files_are_sent_in_the_form_of_the_api() -> None:
    """Pictures of the other APIs become input images, in results too; what has no form becomes a line."""
    file = {"type": "file", "file": {"file_id": "f1", "filename": "a.pdf"}}
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    encoded = items(*[prompt("", data=data) for data in (PICTURE, PICTURE_URL, file, document)])
    inline = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}
    assert [item["content"][0] for item in encoded] == [
        inline,
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
        {"type": "input_file", "file_id": "f1", "filename": "a.pdf"},
        {"type": "input_text", "text": "words"},
    ]
    output = items(call("a", {}), result("a", "see", data=[PICTURE]))[-1]["output"]
    assert output == [{"type": "input_text", "text": "see"}, inline]


def test_every_item_of_a_foreign_conversation_is_read() -> None:
    """Instructions, messages, reasoning, calls, outputs and items of other kinds become blocks."""
    blocks = decode(
        {
            "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": "go"},
                {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/a.png"}]},
                *openai_response()["output"],
                {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "2"}]},
                {"type": "web_search_call", "id": "ws_1", "status": "completed"},
                {"role": "developer", "content": "Now be long."},
                "no item",
            ],
        }
    )
    asked = [SystemMessage, UserPrompt, Attachment]
    said = [Reasoning, AssistantCompletion, ToolCall, ToolResult, CustomBlock, SystemMessage]
    assert [type(block) for block in blocks] == [*asked, *said]
    assert len({block.response_id for block in blocks[3:6]}) == 1
    assert isinstance(blocks[6], ToolResult)
    assert (blocks[6].name, blocks[6].text) == ("ls", "2")
    assert [block.text for block in (*blocks[:2], blocks[-1])] == ["Be brief.", "go", "Now be long."]


def test_an_item_of_no_known_type_is_kept_as_it_came() -> None:
    """Nothing is added to it, not even a type that it does not have."""
    unknown: list[dict[str, Any]] = [{"id": "x_1"}, {"type": "x", "id": "x_2"}]
    assert [block.data for block in decode(unknown)] == unknown


def test_an_item_of_no_known_type_is_a_part_of_its_response() -> None:
    """So it is sent back among the calls that it came with."""
    call = {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"}
    blocks = decode([{"role": "user", "content": "go"}, call, {"type": "x"}])
    assert [type(block) for block in blocks] == [UserPrompt, ToolCall, CustomBlock]
    assert blocks[1].response_id == blocks[2].response_id


def test_a_request_of_one_text_is_a_prompt() -> None:
    """The API takes a bare string as what the user says."""
    assert [block.text for block in decode({"input": "go"})] == ["go"]
    assert encoder("openai_responses") is encode
