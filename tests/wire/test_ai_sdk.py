"""The AI SDK's model messages: what its own schemas take, what a decoder gives back, and where its markers stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

from tests.depth import examples
from tests.wire.entries import (
    KINDS,
    PICTURE,
    PICTURE_URL,
    THINKING,
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
from tests.wire.sdk_schemas import check_model_messages, is_model_message
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
from timeline.wire.ai_sdk import decode, encode
from timeline.wire.groups import OPENING_LINE
from timeline.wire.neutral import INTERRUPTED, CachePoint, Entry, NeutralContext

if TYPE_CHECKING:
    from pydantic import JsonValue

MARK: dict[str, Any] = {"anthropic": {"cacheControl": {"type": "ephemeral"}}}


def messages(*entries: Entry, **more: Any) -> list[dict[str, Any]]:
    """Encode entries, and return the messages."""
    encoded: list[dict[str, Any]] = encode(NeutralContext(entries=entries, **more))["messages"]
    return encoded


def ids(message: dict[str, Any], kind: str) -> list[str]:
    """Return the ids of a message's calls or results."""
    return [part["toolCallId"] for part in message["content"] if part["type"] == kind]


def markers(value: Any) -> int:
    """Count Anthropic's markers anywhere in a request."""
    if isinstance(value, dict):
        return ("cacheControl" in value) + sum(map(markers, value.values()))
    return sum(map(markers, value)) if isinstance(value, list) else 0


def check_legal(body: dict[str, Any]) -> None:
    """Assert that the SDK takes a request: its schemas, and what it demands of the order."""
    said = body["messages"]
    check_model_messages(said)
    assert all(message["role"] != "system" for message in said)
    assert not said or said[0]["role"] == "user"
    for before, message in zip([{"content": []}, *said], said, strict=False):
        assert message["content"]
        assert all(part.get("text", "x").strip() for part in message["content"] if part["type"] == "text")
        assert ids(message, "tool-result") == ids(before, "tool-call")
        assert (message["role"] == "tool") is bool(ids(message, "tool-result"))
        assert message["content"][-1]["type"] != "reasoning"
    assert not said or not ids(said[-1], "tool-call")
    every = [id_ for message in said for id_ in ids(message, "tool-call")]
    assert len(set(every)) == len(every)
    assert markers(body) <= 4
    assert not any(markers(p) for m in said for p in m["content"] if p["type"] == "reasoning")


@given(contexts(hostile_entries()))
@settings(max_examples=examples(100))
def test_any_entries_give_a_request_that_the_sdk_takes(context: NeutralContext) -> None:
    """Hostile entries encode to a legal request, and none of their text is lost."""
    body = encode(context)
    check_legal(body)
    assert_all_is_said(context, body["messages"])


@given(legal_entries())
def test_appending_entries_leaves_the_messages_before_as_they_were(entries: list[Entry]) -> None:
    """A message that is written stays what it is, save for the newest response and the place of a missing result."""
    whole = messages(*entries)
    for length in range(len(entries)):
        before = messages(*entries[:length])
        for old, new in zip(before[:-2], whole, strict=False):
            assert old == new or INTERRUPTED in str(old)


@pytest.mark.shows("004-117")
def test_a_marker_stands_at_each_cache_point_and_on_the_instructions() -> None:
    """The ephemeral tail behind them has none; the instructions become a system message to carry theirs."""
    context = NeutralContext(
        system="Be brief.",
        entries=(prompt("one"), answer("two"), prompt("three")),
        cache_points=(CachePoint(kind="previous_turn", index=1), CachePoint(kind="tail", index=2)),
        ephemeral=(prompt("now"),),
    )
    body = encode(context)
    marked = [p["text"] for m in body["messages"] for p in m["content"] if p.get("providerOptions") == MARK]
    assert marked == ["two", "three"]
    assert body["instructions"] == [{"role": "system", "content": "Be brief.", "providerOptions": MARK}]
    assert encode(context.model_copy(update={"cache_points": ()}))["instructions"] == "Be brief."
    assert [b.text for b in decode(body) if isinstance(b, SystemMessage)] == ["Be brief."]


def test_the_instructions_are_kept_for_an_hour_where_the_policy_says_so() -> None:
    """The provider's long time stands in the options of the system message alone."""
    context = NeutralContext(
        system="Be brief.",
        entries=(prompt("one"),),
        cache_points=(CachePoint(kind="tail", index=0),),
        kept_long="fixed_part",
    )
    body = encode(context)
    long = {"anthropic": {"cacheControl": {"type": "ephemeral", "ttl": "1h"}}}
    assert body["instructions"] == [{"role": "system", "content": "Be brief.", "providerOptions": long}]
    assert body["messages"][0]["content"][-1]["providerOptions"] == MARK
    everything = context.model_copy(update={"kept_long": "everything"})
    assert encode(everything)["messages"][0]["content"][-1]["providerOptions"] == long


def test_behind_a_tool_that_is_kept_for_five_minutes_nothing_is_kept_for_longer() -> None:
    """A tool carries the SDK's own form of a marker; the caller's counts against the provider's four, too."""
    tool: dict[str, JsonValue] = {"name": "bash", "providerOptions": {**MARK}}
    points = tuple(CachePoint(kind=kind, index=i) for i, kind in enumerate(KINDS[:3]))
    body = encode(
        NeutralContext(
            system="Be brief.",
            tools=(tool,),
            entries=(prompt("1"), answer("2"), prompt("3")),
            cache_points=points,
            kept_long="everything",
        )
    )
    marked = [p["providerOptions"] for m in body["messages"] for p in m["content"] if "providerOptions" in p]
    assert marked == [MARK] * 3
    assert body["instructions"] == "Be brief."


def test_the_callers_own_markers_are_kept_and_push_out_the_oldest_of_ours() -> None:
    """With two markers of the caller's, only the two newest cache points are marked."""
    own: dict[str, JsonValue] = {"type": "text", "text": "own", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    points = tuple(CachePoint(kind=kind, index=i) for i, kind in enumerate(KINDS[:3]))
    body = encode(
        NeutralContext(system=[own, own], entries=(prompt("1"), answer("2"), prompt("3")), cache_points=points)
    )
    assert [p["text"] for m in body["messages"] for p in m["content"] if "providerOptions" in p] == ["2", "3"]
    assert markers(body) == 4
    assert body["instructions"][0]["providerOptions"]["anthropic"]["cacheControl"]["ttl"] == "1h"


def test_a_marker_beside_a_signature_of_googles_leaves_it_where_it_is() -> None:
    """Both stand in the options of one part, each under its provider's name."""
    signed = thought(text="", data={"thoughtSignature": "c2ln"}, response_id="r")
    entries = (prompt("go"), signed, call("a", response_id="r"))
    encoded = messages(*entries, cache_points=(CachePoint(kind="tail", index=2),))
    assert encoded[1]["content"][0]["providerOptions"] == {**MARK, "google": {"thoughtSignature": "c2ln"}}
    assert [b.data for b in decode(encoded) if isinstance(b, Reasoning)] == [{"thoughtSignature": "c2ln"}]


def test_the_signature_of_a_blank_text_goes_with_it() -> None:
    """A blank text is not sent, and the call behind it was never signed."""
    signed = thought(text="", data={"thoughtSignature": "c2ln"}, response_id="r")
    encoded = messages(prompt("go"), signed, answer("\n", response_id="r"), call("a", response_id="r"))
    assert [part.get("providerOptions") for part in encoded[1]["content"]] == [None]


def test_signed_reasoning_goes_to_the_provider_that_signed_it() -> None:
    """Each provider's form becomes its own options; unsigned reasoning is never sent."""
    encrypted = {"type": "reasoning", "id": "rs_1", "summary": [{"text": "So."}], "encrypted_content": "gAAA"}
    forms: list[tuple[Any, dict[str, Any]]] = [
        (THINKING, {"anthropic": {"signature": "c2ln"}}),
        ({"type": "redacted_thinking", "data": "b3A="}, {"anthropic": {"redactedData": "b3A="}}),
        (encrypted, {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "gAAA"}}),
        ({"text": "hm", "thought": True, "thoughtSignature": "c2ln"}, {"google": {"thoughtSignature": "c2ln"}}),
        (
            {"type": "reasoning", "text": "x", "providerOptions": {"bedrock": {"signature": "s"}}},
            {"bedrock": {"signature": "s"}},
        ),
    ]
    for data, options in forms:
        part, _ = messages(prompt("go"), thought(data=data, response_id="r"), answer("yes", response_id="r"))[1][
            "content"
        ]
        assert (part["type"], part["providerOptions"]) == ("reasoning", options)
        [again] = [b for b in decode([{"role": "assistant", "content": [part]}]) if isinstance(b, Reasoning)]
        assert (
            encode(
                NeutralContext(
                    entries=(prompt("go"), thought(data=again.data, response_id="r"), answer("yes", response_id="r"))
                )
            )["messages"][1]["content"][0]
            == part
        )
    bare = thought(data=None, text="hm", response_id="r")
    assert len(messages(prompt("go"), bare, answer("yes", response_id="r"))[1]["content"]) == 1


def test_reasoning_behind_a_rewritten_prefix_follows_the_rule_of_who_signed_it() -> None:
    """Outside a tool loop it is dropped; inside, only a model that is bound to the prefix does without."""
    for in_loop, model, kept in (
        (True, "claude-opus-4-5", 2),
        (True, "claude-opus-5-1", 1),
        (True, "anthropic/claude-opus-5.1", 1),
        (False, "", 1),
    ):
        reasoning = thought(rewritten=True, in_loop=in_loop, response_id="r")
        encoded = messages(prompt("go"), reasoning, answer("yes", response_id="r"), model=model)
        assert len(encoded[1]["content"]) == kept


def test_an_interrupted_call_is_answered_and_reads_back_as_unanswered() -> None:
    """A dead call gets the fixed output, and an assistant that speaks first the fixed line."""
    encoded = messages(call("a", "{broken"))
    assert encoded[0]["content"][0]["text"] == OPENING_LINE
    assert encoded[2]["content"][0]["output"] == {"type": "text", "value": INTERRUPTED}
    [again] = decode(encoded)
    assert isinstance(again, ToolCall)
    assert again.arguments == "{broken"


def test_a_result_that_is_an_object_goes_back_as_an_object() -> None:
    """It went back as a text of JSON, so that a provider's cached prefix broke."""
    output = {"type": "json", "value": {"b": 1, "a": [None]}}
    part = {"type": "tool-result", "toolCallId": "c", "toolName": "bash", "output": output}
    [block] = decode([{"role": "tool", "content": [part]}])
    body = encode(NeutralContext(entries=(prompt("go"), call("c"), result("c", block.text, data=block.data))))
    assert body["messages"][2]["content"][0]["output"] == output


def test_pictures_and_files_are_sent_as_files() -> None:
    """Base64 or an address, in results too; what is only a provider's name for a file becomes a line."""
    pdf = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
        "title": "t",
    }
    file = {"type": "file", "file": {"file_id": "f1"}}
    encoded = messages(*[prompt("", data=data) for data in (PICTURE, PICTURE_URL, pdf, file)])
    assert [message["content"][0] for message in encoded] == [
        {"type": "file", "data": "aGk=", "mediaType": "image/png"},
        {"type": "file", "data": "https://example.org/a.png", "mediaType": "image/*"},
        {"type": "file", "data": "aGk=", "mediaType": "application/pdf", "filename": "t"},
        {"type": "text", "text": "[not shown here: file, text/plain, ar:]"},
    ]
    read = [block for block in decode(encoded) if isinstance(block, Attachment)]
    assert read[0].data == PICTURE
    assert read[1].data == {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    assert read[2].meta == {"file": "t"}
    shown = messages(call("a"), result("a", "see", data=[{"type": "text", "text": "see"}, PICTURE]))
    output = shown[2]["content"][0]["output"]
    assert output["value"][1] == {"type": "image-data", "data": "aGk=", "mediaType": "image/png"}
    [seen] = [block for block in decode(shown) if isinstance(block, ToolResult)]
    assert (seen.text, seen.data) == ("see", [{"type": "text", "text": "see"}, PICTURE])


def test_every_part_of_a_foreign_conversation_is_read() -> None:
    """Messages as programs of the SDK keep them: texts, pictures, reasoning, calls, results of every kind."""
    outputs: list[tuple[dict[str, Any], str, bool]] = [
        ({"type": "json", "value": {"n": 1}}, '{"n":1}', False),
        ({"type": "error-json", "value": ["x"]}, '["x"]', True),
        ({"type": "execution-denied", "reason": "no"}, "no", True),
        ({"type": "content", "value": [{"type": "text", "text": "see"}]}, "see", False),
    ]
    calls = [
        {"type": "tool-call", "toolCallId": f"c{n}", "toolName": "ls", "input": {"n": n}} for n in range(len(outputs))
    ]
    conversation: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
        {"role": "user", "content": [{"type": "image", "image": "https://example.org/a.png"}]},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "I look."}, *calls],
        },
        {
            "role": "tool",
            "content": [
                {"type": "tool-result", "toolCallId": f"c{n}", "toolName": "ls", "output": output}
                for n, (output, _, _) in enumerate(outputs)
            ],
        },
        {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "a", "approved": True}]},
        {"role": "assistant", "content": "Done."},
    ]
    assert all(map(is_model_message, conversation))
    blocks = decode({"instructions": {"role": "system", "content": "Above all."}, "messages": conversation})
    asked = [SystemMessage, SystemMessage, UserPrompt, Attachment]
    said = [Reasoning, AssistantCompletion, *[ToolCall] * 4, *[ToolResult] * 4, CustomBlock, AssistantCompletion]
    assert [type(block) for block in blocks] == [*asked, *said]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    assert [(r.text, r.is_error) for r in results] == [(text, failed) for _, text, failed in outputs]
    assert encoder("ai_sdk") is encode


def test_a_result_of_version_4_says_beside_itself_that_its_call_failed() -> None:
    """Later versions say it in the output."""
    told = {"type": "tool-result", "toolCallId": "c", "toolName": "ls", "result": "no such folder", "isError": True}
    [block] = decode([{"role": "tool", "content": [told]}])
    assert isinstance(block, ToolResult)
    assert (block.text, block.is_error) == ("no such folder", True)


def test_files_and_signatures_of_version_4_are_those_of_later_ones() -> None:
    """They have other names there."""
    file = {"type": "file", "data": "AAAA", "mimeType": "application/pdf"}
    thoughts = [{"type": "reasoning", "text": "hm", "signature": "S"}, {"type": "redacted-reasoning", "data": "R"}]
    blocks = decode([{"role": "user", "content": [file]}, {"role": "assistant", "content": thoughts}])
    assert [block.data for block in blocks] == [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}},
        {"type": "thinking", "thinking": "hm", "signature": "S"},
        {"type": "redacted_thinking", "data": "R"},
    ]
