"""Ollama's own API: replies, streams and pictures."""

from __future__ import annotations

from typing import Any

from timeline.blocks import AssistantCompletion, Attachment, Reasoning, ToolCall
from timeline.usage import Usage
from timeline.wire.openai_chat import decode
from timeline.wire.responses import read_response
from timeline.wire.streams import StreamReader

CALL: dict[str, Any] = {"function": {"name": "ls", "arguments": {"path": "a"}}}
HEAD: dict[str, Any] = {"model": "qwen3", "created_at": "2026-11-01T00:00:00Z"}
END: dict[str, Any] = {"done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 3}
PNG = "iVBORw0KGgo="


def said(blocks: Any) -> list[tuple[type, str]]:
    """Return the types and texts of blocks."""
    return [(type(block), block.text) for block in blocks]


def test_a_reply_is_recorded_with_its_thought_and_calls() -> None:
    """Its figures have names of their own, its calls no id."""
    message = {"role": "assistant", "content": "I look.", "thinking": "hm", "tool_calls": [CALL]}
    response = read_response({**HEAD, **END, "message": message}, unnamed="r1")
    assert said(response.blocks) == [(Reasoning, "hm"), (AssistantCompletion, "I look."), (ToolCall, "")]
    call = response.blocks[-1]
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("ls", {"path": "a"})
    assert response.called.usage == Usage(input_tokens=9, output_tokens=3)
    assert (response.called.model, response.called.finish_reason) == ("qwen3", "stop")


def test_a_stream_is_the_reply_that_it_brings_in_pieces() -> None:
    """A stream that is cut is marked, as any other."""
    reader = StreamReader()
    for message in (
        {"thinking": "h"},
        {"thinking": "m"},
        {"content": "I "},
        {"content": "look.", "tool_calls": [CALL]},
    ):
        reader.take({**HEAD, "done": False, "message": {"role": "assistant", "content": "", **message}})
    cut = reader.response(unnamed="r1")
    reader.take({**HEAD, **END, "message": {"role": "assistant", "content": ""}})
    whole = reader.response(unnamed="r1")
    assert cut is not None
    assert whole is not None
    assert said(whole.blocks) == [(Reasoning, "hm"), (AssistantCompletion, "I look."), (ToolCall, "")]
    assert (cut.called.finish_reason, whole.called.usage.output_tokens) == ("interrupted", 3)


def test_the_pictures_of_a_message_are_attachments() -> None:
    """They are base64 beside the content; a path is only known to be there."""
    blocks = decode([{"role": "user", "content": "What is it?", "images": [PNG, "pictures/a.png"]}])
    assert [type(block) for block in blocks[1:]] == [Attachment, Attachment]
    assert blocks[1].data == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
