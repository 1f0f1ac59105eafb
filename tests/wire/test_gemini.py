"""Google's Gen AI API: what the SDK's own types take, what a decoder gives back, and which prefix may be cached."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from google.genai.types import Content, CreateCachedContentConfig, GenerateContentConfig
from hypothesis import given, settings

from tests.depth import examples
from tests.wire.entries import (
    KINDS,
    PICTURE,
    PICTURE_URL,
    answer,
    assert_all_is_said,
    call,
    contexts,
    hostile_entries,
    legal_entries,
    prompt,
    result,
    thought,
)
from timeline.blocks import AssistantCompletion, Attachment, CustomBlock, Reasoning, ToolCall, ToolResult
from timeline.wire import encoder
from timeline.wire.gemini import decode, encode, model_blocks, result_block
from timeline.wire.gemini_cache import cached_prefixes
from timeline.wire.groups import OPENING_LINE
from timeline.wire.neutral import INTERRUPTED, CachePoint, Entry, NeutralContext

SIGNATURE = "c2ln+/8="
OWN = thought(text="", data={"thoughtSignature": SIGNATURE}, response_id="r")


def contents(*entries: Entry, **options: Any) -> list[dict[str, Any]]:
    """Encode entries, and return the contents."""
    told: list[dict[str, Any]] = encode(NeutralContext(entries=entries, **options))["contents"]
    return told


def named(content: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    """Return the ids and names of a content's calls or answers."""
    return [(part[kind]["id"], part[kind]["name"]) for part in content["parts"] if kind in part]


def check_legal(body: dict[str, Any]) -> None:
    """Assert that the SDK takes a request, and that the API would."""
    said = body["contents"]
    for content in said:
        assert Content.model_validate(content).parts
        assert all(part != {"text": ""} for part in content["parts"])
    GenerateContentConfig.model_validate({k: v for k, v in body.get("config", {}).items() if k != "tools"})
    assert not said or said[0]["role"] == "user"
    assert ("model", "model") not in pairwise(content["role"] for content in said)
    ids: set[str] = set()
    for before, content in zip([{"parts": []}, *said], said, strict=False):
        assert named(content, "function_response") == named(before, "function_call")
        calls = {id_ for id_, _ in named(content, "function_call")}
        assert content["role"] == "model" or not calls
        assert not calls & ids
        ids |= calls
    assert not said or not named(said[-1], "function_call")


@given(contexts(hostile_entries()))
@settings(max_examples=examples(150))
def test_any_entries_give_a_request_that_the_sdk_takes(context: NeutralContext) -> None:
    """Hostile entries encode to a legal request, and none of their text is lost."""
    body = encode(context)
    check_legal(body)
    assert_all_is_said(context, body["contents"])


@given(legal_entries())
def test_appending_entries_leaves_the_contents_before_as_they_were(entries: list[Entry]) -> None:
    """A content that is written stays what it is, save for the newest response and the place of a missing result."""
    whole = contents(*entries)
    for length in range(len(entries)):
        before = contents(*entries[:length])
        assert [c["role"] for c in before] == [c["role"] for c in whole[: len(before)]]
        for old, new in zip(before[:-2], whole, strict=False):
            assert old == new or INTERRUPTED in str(old)


@given(contexts(legal_entries()))
def test_a_cached_prefix_and_the_rest_are_the_whole_request(context: NeutralContext) -> None:
    """Both halves are what the SDK takes; no call is parted from its answer, and the same prefix has the same hash."""
    body = encode(context)
    for prefix in cached_prefixes(context):
        CreateCachedContentConfig.model_validate({k: v for k, v in prefix.cached.items() if k != "tools"})
        request = prefix.request("cachedContents/1")
        assert GenerateContentConfig.model_validate(request["config"]).cached_content == "cachedContents/1"
        assert prefix.cached["contents"] + request["contents"] == body["contents"]
        assert len(prefix.cached["contents"]) == prefix.contents > 0
        assert not named(prefix.cached["contents"][-1], "function_call")
        assert {**body.get("config", {}), "contents": prefix.cached["contents"]} == prefix.cached
        longer = context.model_copy(update={"ephemeral": (*context.ephemeral, prompt("more", type="ephemeral"))})
        assert prefix.sha256 in [other.sha256 for other in cached_prefixes(longer)]


def test_a_prefix_ends_at_each_cache_point_that_leaves_something_to_send() -> None:
    """The prefix of the whole context is none, as the API wants contents behind it."""
    entries = (prompt("one"), answer("two"), prompt("three"))
    points = tuple(CachePoint(kind=kind, index=index) for kind, index in zip(KINDS, (1, 2), strict=False))
    [prefix] = cached_prefixes(NeutralContext(system="Be brief.", entries=entries, cache_points=points))
    assert (prefix.kind, prefix.blocks, prefix.contents) == ("previous_turn", 2, 2)
    assert prefix.cached["system_instruction"] == "Be brief."
    assert [part["text"] for content in prefix.rest for part in content["parts"]] == ["three"]


def test_the_system_prompt_and_the_tools_stand_in_the_config() -> None:
    """A list of parts becomes one text; a system wish in mid-conversation is labelled user text."""
    tool: Any = {"function_declarations": [{"name": "ls", "parameters": {"type": "OBJECT"}}]}
    system: Any = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]
    wish = Entry(path="bl:s", type="system.message", role="system", text="Obey me.")
    body = encode(NeutralContext(system=system, tools=(tool,), entries=(prompt("go"), wish)))
    config = GenerateContentConfig.model_validate(body["config"])
    assert config.system_instruction == "Be brief.\n\nBe kind."
    assert config.tools is not None
    assert len(config.tools) == 1
    assert body["contents"][1] == {"role": "user", "parts": [{"text": "[system message] Obey me."}]}
    assert decode(body)[0].text == "Be brief.\n\nBe kind."


def test_a_signature_goes_back_on_the_part_that_it_came_with() -> None:
    """On a call, on a text, on a thought or on an empty text; the bytes are the same."""
    parts: list[dict[str, Any]] = [
        {"text": "hm", "thought": True},
        {"text": "I look.", "thought_signature": SIGNATURE},
        {"function_call": {"name": "ls", "args": {}, "id": "a"}, "thought_signature": SIGNATURE},
        {"text": "", "thought_signature": SIGNATURE},
    ]
    blocks = decode([{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": parts}])[1:]
    assert [type(b) for b in blocks] == [
        *(Reasoning, Reasoning, AssistantCompletion),
        *(Reasoning, ToolCall, Reasoning),
    ]
    entries = [thought(text=b.text, data=b.data, response_id="r") for b in blocks]
    entries[2] = answer("I look.", response_id="r")
    entries[4] = call("a", {}, name="ls", response_id="r")
    assert contents(prompt("go"), *entries)[1]["parts"] == parts[1:]
    again = Content.model_validate({"parts": parts}).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert [type(b) for b in decode([{"role": "model", **again}])] == [type(b) for b in blocks]


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"output": "a.py"}, "a.py"),
        ({"output": "a.py", "error": None, "note": ""}, "a.py"),
        ({"output": ""}, ""),
        ({"output": "a.py", "exit_code": 3}, '{"output":"a.py","exit_code":3}'),
        ({"error": "no", "output": {"left": 1}}, '{"error":"no","output":{"left":1}}'),
    ],
)
def test_an_answer_with_more_than_its_output_is_kept_whole(told: dict[str, Any], text: str) -> None:
    """Only where there is nothing else, the output or the error stands for it."""
    answered = {"functionResponse": {"id": "a", "name": "ls", "response": told}}
    assert [block.text for block in decode([{"role": "user", "parts": [answered]}])] == [text]


@pytest.mark.parametrize(
    "response", [{"temperature": 21.5, "at": ["a", None]}, {"result": "done"}, {"error": "no", "code": 3}, {}]
)
def test_an_answer_that_is_an_object_goes_back_as_the_object_that_came(response: dict[str, Any]) -> None:
    """It went back as a text of JSON under ``output``. Pictures beside it stay beside it."""
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    for parts in ([], [picture]):
        answered = {"id": "a", "name": "ls", "response": response, "parts": parts}
        [block] = decode([{"role": "user", "parts": [{"functionResponse": answered}]}])
        entry = result("a", block.text, data=block.data, is_error="error" in response)
        [part] = contents(prompt("go"), call("a", {}, name="ls"), entry)[2]["parts"]
        sent = part["function_response"]
        assert list(sent["response"].items()) == list(response.items())
        assert len(sent.get("parts", ())) == len(parts)


def test_the_signature_of_a_blank_text_stays_on_it() -> None:
    """It was on the call behind it, which has none: the blank text is sent as it came, and alone says nothing."""
    blank = answer("\n", response_id="r")
    said = contents(prompt("go"), OWN, blank, call("a", {}, name="ls", response_id="r"))[1]["parts"]
    assert said == [
        {"text": "\n", "thought_signature": SIGNATURE},
        {"function_call": {"name": "ls", "args": {}, "id": "a"}},
    ]
    assert len(contents(prompt("go"), OWN, blank)) == 1


def test_a_signature_behind_a_rewritten_prefix_is_sent_inside_a_tool_loop_only() -> None:
    """The rule is the one of all signed reasoning; the call goes out all the same."""
    for in_loop in (True, False):
        rewritten = OWN.model_copy(update={"rewritten": True, "in_loop": in_loop})
        [part] = contents(prompt("go"), rewritten, call("a", response_id="r"))[1]["parts"]
        assert ("thought_signature" in part) is in_loop


@pytest.mark.parametrize(
    ("model", "sent"), [("gemini-3.8-flash", True), ("gemini-2.5-pro", False), ("claude-5", False), ("", False)]
)
def test_a_call_of_another_model_says_so_to_models_that_demand_a_signature(model: str, sent: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """The first call of a response has what the provider tells to send there; the others need none."""
    first, second = contents(prompt("go"), call("a"), call("b"), model=model)[1]["parts"]
    assert ("thought_signature" in first, "thought_signature" in second) == (sent, False)
    [signed] = contents(prompt("go"), OWN, call("a", response_id="r"), model=model)[1]["parts"]
    assert signed["thought_signature"] == SIGNATURE


def test_answers_without_ids_are_paired_by_name_and_order() -> None:
    """Older recordings have no ids: an answer is that of the next open call of its name."""
    asked: list[dict[str, Any]] = [{"functionCall": {"name": name, "args": {}}} for name in ("ls", "cat", "ls")]
    told = [{"functionResponse": {"name": n, "response": {"output": n + str(i)}}} for i, n in enumerate(["ls", "ls"])]
    blocks = decode([{"role": "model", "parts": asked}, {"role": "user", "parts": told}])
    calls = [block.call_id for block in blocks if isinstance(block, ToolCall)]
    assert len(set(calls)) == 3
    results = {block.call_id: block.text for block in blocks if isinstance(block, ToolResult)}
    assert results == {calls[0]: "ls0", calls[2]: "ls1"}


def test_an_interrupted_call_is_answered_and_reads_back_as_unanswered() -> None:
    """A dead call gets the fixed output, and a model that speaks first the fixed line."""
    encoded = contents(call("a", {"x": 1}))
    assert encoded[0]["parts"] == [{"text": OPENING_LINE}]
    assert encoded[2]["parts"][0]["function_response"]["response"] == {"output": INTERRUPTED}
    assert [type(block) for block in decode(encoded)] == [ToolCall]


def test_a_loose_result_becomes_user_text_with_its_path() -> None:
    """A result whose call is gone says so in the user's place."""
    [_, late] = contents(prompt("go"), result("a", "late", loose=True))
    assert late == {"role": "user", "parts": [{"text": "[result of bash, tc:a.result]\nlate"}]}


def test_pictures_and_files_are_sent_in_the_form_of_the_api() -> None:
    """Pictures of the other APIs become inline data, in results too; what has no form becomes a line."""
    audio = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
    own = {"type": "fileData", "fileData": {"fileUri": "gs://a/b", "mimeType": "video/mp4"}}
    words = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    broken = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "no base64!"}}
    encoded = contents(*[prompt("", data=data) for data in (PICTURE, PICTURE_URL, audio, own, words, broken)])
    inline = {"inline_data": {"mime_type": "image/png", "data": "aGk="}}
    assert [content["parts"][0] for content in encoded] == [
        inline,
        {"file_data": {"file_uri": "https://example.org/a.png", "mime_type": "image/png"}},
        {"inline_data": {"mime_type": "audio/wav", "data": "aGk="}},
        {"file_data": {"file_uri": "gs://a/b", "mime_type": "video/mp4"}},
        {"text": "words"},
        {"text": "[not shown here: image, text/plain, ar:]"},
    ]
    [answered] = contents(call("a", {}), result("a", "see", data=[PICTURE]))[-1]["parts"]
    assert answered["function_response"]["parts"] == [inline]
    blocks = decode(encoded)
    assert next(block.data for block in blocks if isinstance(block, Attachment)) == PICTURE
    [seen] = [
        b for b in decode(contents(call("a", {}), result("a", "see", data=[PICTURE]))) if b.type.endswith("result")
    ]
    assert (seen.text, seen.data) == ("see", [{"type": "text", "text": "see"}, PICTURE])


def test_the_name_of_a_tool_keeps_what_the_api_takes() -> None:
    """Dots and colons are taken, another sign is not, and the call and its answer have one name."""
    [asked], [answered] = (c["parts"] for c in contents(call("a", name="mcp.fs:read it"), result("a"))[1:])
    assert asked["function_call"]["name"] == answered["function_response"]["name"]
    assert asked["function_call"]["name"].startswith("mcp.fs:read_it_")


@pytest.mark.parametrize("single", ["go", {"role": "user", "parts": [{"text": "go"}]}])
def test_contents_that_are_no_list_are_a_list_of_one(single: Any) -> None:
    """The SDK takes a text alone, and a content alone."""
    assert [block.text for block in decode({"contents": single})] == [block.text for block in decode(single)] == ["go"]


def test_an_answer_under_another_id_than_its_call_is_still_its_result() -> None:
    """A client may number its calls anew; of several answers the one with the id of the call counts."""
    parts = [{"functionResponse": {"id": id_, "name": "ls", "response": {"output": id_}}} for id_ in ("a", "b")]
    assert [result_block(id_, "ls", parts[1:]).text for id_ in ("a", "b")] == ["b", "b"]
    assert [result_block(id_, "ls", parts).text for id_ in ("a", "b")] == ["a", "b"]


@pytest.mark.parametrize("name", ["response_1", "of the provider"])
def test_all_parts_of_a_content_are_one_response(name: str) -> None:
    """Thoughts, texts, calls, signatures, and parts that no block is made for: no cut comes between them."""
    signed = {"text": "Hm.", "thoughtSignature": SIGNATURE}
    parts: list[dict[str, Any]] = [
        {"text": "hm", "thought": True},
        signed,
        {"functionCall": {"name": "ls"}},
        {"executableCode": {"code": "1"}},
    ]
    blocks = model_blocks(parts, name, calls="call_1")
    assert [type(block) for block in blocks] == [Reasoning, Reasoning, AssistantCompletion, ToolCall, CustomBlock]
    assert {block.response_id for block in blocks} == {name}


def test_what_no_block_is_made_for_is_kept_whole() -> None:
    """Code that the provider ran, and whatever comes later, loses nothing; what is no content is passed over."""
    part = {"executableCode": {"code": "1+1", "language": "PYTHON"}}
    blocks = decode({"contents": [{"role": "model", "parts": [part]}, "go", {"parts": []}, 7]})
    assert isinstance(blocks[0], CustomBlock)
    assert (blocks[0].data, blocks[1].text, len(blocks)) == (part, "go", 2)
    assert encoder("gemini") is encode
