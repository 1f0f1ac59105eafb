"""What Anthropic's server leaves of a history that it compacted itself goes back to it."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types.beta.beta_message_param import BetaMessageParam
from pydantic import TypeAdapter

from tests.wire.entries import validated
from timeline import Timeline
from timeline.blocks import UserPrompt
from timeline.content.native import NATIVE
from timeline.store.memory import MemoryStore
from timeline.usage import Usage
from timeline.wire.responses import read_response
from timeline.wire.streams import StreamReader
from timeline.wire.usage import anthropic_usage

MESSAGES: TypeAdapter[Any] = TypeAdapter(list[BetaMessageParam])
COMPACTED: dict[str, Any] = {"type": "compaction", "content": "All was well.", "signature": "c2ln", "tool_changes": []}
REPLY: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5",
    "content": [{**COMPACTED, "encrypted_content": None}, {"type": "text", "text": "So."}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 20,
        "output_tokens": 5,
        "iterations": [
            {"type": "compaction", "input_tokens": 180, "output_tokens": 30, "cache_read_input_tokens": 7},
            {"type": "message", "input_tokens": 20, "output_tokens": 5},
            {"type": "advisor_message", "model": "claude-fable-6", "input_tokens": 900, "output_tokens": 90},
        ],
    },
}


async def recorded(reply: dict[str, Any]) -> Timeline:
    """Return a conversation with a prompt and a reply."""
    timeline = await Timeline.open(MemoryStore(), "c")
    await timeline.append(UserPrompt(text="go"))
    await timeline.record(reply)
    return timeline


async def messages(timeline: Timeline) -> list[dict[str, Any]]:
    """Return the messages of a request, of the types that the SDK has for them."""
    body = (await timeline.render()).to_anthropic()
    validated(MESSAGES, body["messages"])
    told: list[dict[str, Any]] = body["messages"]
    return told


async def test_a_compaction_of_the_servers_goes_back_verbatim() -> None:
    """Else the server compacts anew with each request."""
    timeline = await recorded(REPLY)
    said = (await messages(timeline))[1]["content"][0]
    assert {key: value for key, value in said.items() if key != "cache_control"} == COMPACTED
    assert (await timeline.verify()).ok


async def test_a_turn_that_paused_behind_a_compaction_ends_with_it() -> None:
    """With ``pause_after_compaction`` the request that goes on ends so."""
    timeline = await recorded({**REPLY, "content": REPLY["content"][:1], "stop_reason": "compaction"})
    assert [part["type"] for part in (await messages(timeline))[-1]["content"]] == ["compaction"]


async def test_a_compaction_in_vain_is_not_sent() -> None:
    """It changes nothing."""
    timeline = await recorded({**REPLY, "content": [{"type": "compaction", "content": None}, REPLY["content"][1]]})
    assert [part["type"] for part in (await messages(timeline))[1]["content"]] == ["text"]


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses", "gemini"])
async def test_another_provider_reads_the_words_of_a_compaction(wire: str) -> None:
    """What it replaces may be in no other message."""
    timeline = await Timeline.open(MemoryStore(), "c")
    await timeline.append_messages([{"role": "assistant", "content": [COMPACTED]}, {"role": "user", "content": "And?"}])
    body = (await timeline.render()).to_wire(wire, model="gpt-5.6")
    assert "All was well." in str(body)
    assert "c2ln" not in str(body)


def test_the_usage_of_a_compaction_counts() -> None:
    """The API's totals leave it out; an adviser's is another model's."""
    told = anthropic_usage(REPLY["usage"])
    assert told == Usage(input_tokens=200, output_tokens=35, cache_read_tokens=7)


def test_a_call_that_compacted_measures_no_counts() -> None:
    """Its figure is of two requests."""
    assert read_response(REPLY, unnamed="r").called.server_tools


def test_a_streamed_compaction_is_whole() -> None:
    """It comes in one piece."""
    reader = StreamReader()
    head = {key: value for key, value in REPLY.items() if key != "content"}
    delta = {"type": "compaction_delta", "content": "All was well.", "encrypted_content": "QUJD"}
    for event in (
        {"type": "message_start", "message": {**head, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ):
        reader.take(event)
    response = reader.response(unnamed="r")
    assert response is not None
    assert [(block.type, block.data) for block in response.blocks] == [
        (NATIVE, {"type": "compaction", "content": "All was well.", "encrypted_content": "QUJD"})
    ]
