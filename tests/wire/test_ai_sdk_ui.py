"""The AI SDK's interface messages: what its own schemas take, and what a decoder gives back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.depth import examples
from tests.wire.entries import (
    PICTURE,
    answer,
    assert_all_is_said,
    call,
    contexts,
    hostile_entries,
    prompt,
    result,
    thought,
)
from tests.wire.sdk_schemas import check_ui_messages
from timeline.blocks import AssistantCompletion, Attachment, CustomBlock, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.wire import encoder
from timeline.wire.ai_sdk_ui import decode, encode
from timeline.wire.neutral import INTERRUPTED, Entry, NeutralContext


def messages(*entries: Entry, **more: Any) -> list[dict[str, Any]]:
    """Encode entries, and return the messages."""
    encoded: list[dict[str, Any]] = encode(NeutralContext(entries=entries, **more))["messages"]
    return encoded


def tool(state: str, **more: Any) -> dict[str, Any]:
    """Return a message with one part of a tool."""
    part = {"type": "tool-ls", "toolCallId": "c", "state": state, "input": {"path": "."}, **more}
    return {"id": "m1", "role": "assistant", "parts": [{"type": "step-start"}, part]}


@given(contexts(hostile_entries()))
@settings(max_examples=examples(80))
def test_any_entries_give_messages_that_the_sdk_takes(context: NeutralContext) -> None:
    """Hostile entries encode to messages of the SDK's own form, and none of their text is lost."""
    body = encode(context)
    check_ui_messages(body["messages"])
    assert_all_is_said(context, body["messages"])


def test_what_the_assistant_did_until_the_user_spoke_is_one_message() -> None:
    """Each response is a step of it; a prompt ends it."""
    entries = (prompt("go"), call("a", response_id="r1"), result("a", "1"), answer("Done.", response_id="r2"))
    told = messages(*entries, prompt("And now?"))
    assert [message["role"] for message in told] == ["user", "assistant", "user"]
    assert [part["type"] for part in told[1]["parts"]] == ["step-start", "tool-bash", "step-start", "text"]
    assert told[1]["id"] == "tc:a.call"
    blocks = decode(told)
    assert [block.response_id for block in blocks if block.author == "assistant"] == ["tc:a.call", "tc:a.call.1"]


def test_a_thought_is_shown_and_signed_only_where_it_may_be_sent() -> None:
    """An interface shows what was thought; a signature that does not hold any more stays out."""
    for rewritten in (False, True):
        reasoning = thought(rewritten=rewritten, response_id="r")
        part = messages(prompt("go"), reasoning, answer("yes", response_id="r"))[1]["parts"][1]
        assert (part["type"], part["text"]) == ("reasoning", "hm")
        assert ("providerMetadata" in part) is not rewritten


def test_a_signature_of_googles_stands_with_its_call() -> None:
    """It reads back as the signature of that call."""
    signed = thought(text="", data={"thoughtSignature": "c2ln"}, response_id="r")
    told = messages(prompt("go"), signed, call("a", response_id="r"))
    assert told[1]["parts"][1]["callProviderMetadata"] == {"google": {"thoughtSignature": "c2ln"}}
    assert [type(block) for block in decode(told)] == [UserPrompt, Reasoning, ToolCall]


def test_an_interrupted_call_is_a_failed_one_and_reads_back_as_unanswered() -> None:
    """The SDK refuses to send a call without a result."""
    part = messages(call("a"))[0]["parts"][1]
    assert (part["state"], part["errorText"]) == ("output-error", INTERRUPTED)
    assert [type(block) for block in decode(messages(call("a")))] == [ToolCall]


@pytest.mark.parametrize(
    ("state", "more", "text", "failed"),
    [
        ("output-available", {"output": {"files": 2}}, '{"files":2}', False),
        ("output-available", {"output": "two"}, "two", False),
        ("output-error", {"errorText": "no such folder"}, "no such folder", True),
        ("output-denied", {"approval": {"id": "a", "approved": False, "reason": "not now"}}, "not now", True),
    ],
)
def test_a_tool_that_answered_is_a_call_and_its_result(
    state: str,
    more: dict[str, Any],
    text: str,
    failed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Whatever the tool gave becomes the text that the SDK itself would send."""
    check_ui_messages([tool(state, **more)])
    called, answered = decode([tool(state, **more)])
    assert isinstance(called, ToolCall)
    assert isinstance(answered, ToolResult)
    assert (called.name, called.arguments, called.pending) == ("ls", {"path": "."}, False)
    assert (answered.text, answered.is_error, answered.name) == (text, failed, "ls")


def test_a_call_that_waits_for_an_approval_is_pending() -> None:
    """A preliminary output is no result yet, and half an input is no call."""
    waiting = tool("approval-requested", approval={"id": "a"})
    check_ui_messages([waiting])
    [called] = decode([waiting])
    assert isinstance(called, ToolCall)
    assert called.pending
    assert [type(b) for b in decode([tool("output-available", output="so far", preliminary=True)])] == [ToolCall]
    assert decode([tool("input-streaming")]) == []


@pytest.mark.parametrize(
    ("details", "read"),
    [
        (
            [
                {"type": "text", "text": "hm", "signature": "S"},
                {"type": "redacted", "data": "R"},
                {"type": "text", "text": "so"},
            ],
            [
                ("hm", {"type": "thinking", "thinking": "hm", "signature": "S"}),
                ("", {"type": "redacted_thinking", "data": "R"}),
                ("so", None),
            ],
        ),
        ([], [("hm so", None)]),
    ],
    ids=["pieces", "no-pieces"],
)
def test_a_thought_of_version_4_keeps_the_signature_of_each_of_its_pieces(
    details: list[dict[str, Any]], read: list[tuple[str, Any]]
) -> None:
    """The model demands them back; the text beside them says the same once more."""
    part = {"type": "reasoning", "reasoning": "hm so", "details": details}
    *thoughts, said = decode([{"id": "m", "role": "assistant", "parts": [part, {"type": "text", "text": "Done."}]}])
    assert [(type(block), block.text, block.data) for block in thoughts] == [(Reasoning, *piece) for piece in read]
    assert said.text == "Done."


def test_every_part_of_a_foreign_message_is_read() -> None:
    """Reasoning, files, sources, data and tools without a type of their own."""
    parts: list[dict[str, Any]] = [
        {"type": "step-start"},
        {"type": "reasoning", "text": "hm", "providerMetadata": {"anthropic": {"signature": "c2ln"}}},
        {"type": "text", "text": "I look.", "state": "done"},
        {
            "type": "dynamic-tool",
            "toolName": "mcp",
            "toolCallId": "c",
            "state": "output-available",
            "input": 7,
            "output": 1,
        },
        {"type": "step-start"},
        {"type": "source-url", "sourceId": "s", "url": "https://example.org"},
        {"type": "data-plan", "data": {"steps": 2}},
        {"type": "text", "text": "Do", "state": "streaming"},
    ]
    asked = [
        {"type": "text", "text": "go"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aGk="},
    ]
    told = [{"id": "u", "role": "user", "parts": asked}, {"id": "m", "role": "assistant", "parts": parts}]
    check_ui_messages(told)
    blocks = decode(told)
    assert [type(block) for block in blocks] == [
        *(UserPrompt, Attachment, Reasoning, AssistantCompletion),
        *(ToolCall, ToolResult, CustomBlock, CustomBlock),
    ]
    assert blocks[1].data == PICTURE
    assert isinstance(blocks[4], ToolCall)
    assert (blocks[4].name, blocks[4].arguments, blocks[5].text) == ("mcp", "7", "1")
    assert encoder("ai_sdk_ui") is encode
