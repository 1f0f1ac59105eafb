"""The providers' own SDKs over a transport in memory: what they parse is what they would parse from the network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import httpx2
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

SIGNATURE: Final = "EqoBCkgIARABGAIiQL2+/x=="
SIGNATURE_OF_GEMINI: Final = "CiQB4_-8zw=="
"""As Google's SDK writes bytes, in the alphabet that is safe in an address."""


def _input(piece: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": piece}}


ANTHROPIC_EVENTS: Final[list[dict[str, Any]]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 4,
                "output_tokens": 1,
                "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 70,
                "cache_creation": {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 20},
            },
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Look "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "first."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": SIGNATURE}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I run "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "the tests."}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}},
    },
    _input(""),
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": '{"command": "p'},
    },
    _input('ytest"}'),
    {"type": "content_block_stop", "index": 2},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 42},
    },
    {"type": "message_stop"},
]
"""A response of Anthropic's with signed thinking, a text and a call, event by event."""


def anthropic_message() -> dict[str, Any]:
    """Return the response of `ANTHROPIC_EVENTS` as it comes in one piece."""
    started = ANTHROPIC_EVENTS[0]["message"]
    content = [
        {"type": "thinking", "thinking": "Look first.", "signature": SIGNATURE},
        {"type": "text", "text": "I run the tests."},
        {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "pytest"}},
    ]
    usage = {**started["usage"], "output_tokens": 42}
    return {**started, "content": content, "stop_reason": "tool_use", "usage": usage}


def _call_chunk(index: int, arguments: str, **first: str) -> dict[str, Any]:
    function = {"name": first["name"], "arguments": arguments} if first else {"arguments": arguments}
    head = {"id": first["id"], "type": "function"} if first else {}
    return _chunk({"tool_calls": [{"index": index, **head, "function": function}]})


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-6"}
    return {**head, "choices": [choice]}


_CHAT_USAGE: Final = {
    "prompt_tokens": 1000,
    "completion_tokens": 30,
    "total_tokens": 1030,
    "prompt_tokens_details": {"cached_tokens": 600},
}
CHAT_EVENTS: Final[list[dict[str, Any]]] = [
    _chunk({"role": "assistant", "content": ""}),
    _chunk({"content": "I look "}),
    _chunk({"content": "twice."}),
    _chunk(
        {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "ls", "arguments": ""}}]}
    ),
    _call_chunk(0, '{"path":'),
    _call_chunk(0, '"."}'),
    _chunk(
        {
            "tool_calls": [
                {"index": 1, "id": "call_2", "type": "function", "function": {"name": "cat", "arguments": "{"}}
            ]
        }
    ),
    _call_chunk(1, "}"),
    _chunk({}, "tool_calls"),
    {**_chunk({}), "choices": [], "usage": _CHAT_USAGE},
]
"""A chat completion with a text and two calls, chunk by chunk."""


def chat_completion() -> dict[str, Any]:
    """Return the completion of `CHAT_EVENTS` as it comes in one piece."""
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"."}'}},
        {"id": "call_2", "type": "function", "function": {"name": "cat", "arguments": "{}"}},
    ]
    message = {"role": "assistant", "content": "I look twice.", "tool_calls": calls, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": None}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-6"}
    return {**head, "choices": [choice], "usage": _CHAT_USAGE}


_REASONING: Final = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Look first."}],
    "encrypted_content": "gAAAA==",
}
_SAID: Final = {
    "id": "m_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
}
_CALLED: Final = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "ls",
    "arguments": '{"path":"."}',
    "status": "completed",
}


def openai_response() -> dict[str, Any]:
    """Return a response of OpenAI's Responses API with encrypted reasoning, a text and a call."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-6",
        "status": "completed",
        "output": [_REASONING, _SAID, _CALLED],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
            "output_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 10},
            "total_tokens": 1030,
        },
    }


def _response_events() -> list[dict[str, Any]]:
    opened = {**openai_response(), "status": "in_progress", "output": [], "usage": None}
    blank = {**_SAID, "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    said = {"item_id": "m_1", "output_index": 1, "content_index": 0}
    called = {"item_id": "fc_1", "output_index": 2}
    thought = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    unsaid = {**_CALLED, "arguments": "", "status": "in_progress"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": opened},
        {"type": "response.output_item.added", "output_index": 0, "item": {**_REASONING, "summary": []}},
        {"type": "response.reasoning_summary_text.delta", **thought, "delta": "Look first."},
        {"type": "response.output_item.done", "output_index": 0, "item": _REASONING},
        {"type": "response.output_item.added", "output_index": 1, "item": blank},
        {"type": "response.content_part.added", **said, "part": part},
        {"type": "response.output_text.delta", **said, "delta": "I ", "logprobs": []},
        {"type": "response.output_text.delta", **said, "delta": "look.", "logprobs": []},
        {"type": "response.output_item.done", "output_index": 1, "item": _SAID},
        {"type": "response.output_item.added", "output_index": 2, "item": unsaid},
        {"type": "response.function_call_arguments.delta", **called, "delta": '{"path"'},
        {"type": "response.function_call_arguments.delta", **called, "delta": ':"."}'},
        {"type": "response.output_item.done", "output_index": 2, "item": _CALLED},
        {"type": "response.completed", "response": openai_response()},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


RESPONSE_EVENTS: Final = _response_events()
"""The response of `openai_response`, event by event."""


def _gemini_chunk(parts: list[dict[str, Any]], output: int, finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    usage = {
        "promptTokenCount": 1000,
        "cachedContentTokenCount": 600,
        "candidatesTokenCount": output,
        "thoughtsTokenCount": 12,
        "totalTokenCount": 1012 + output,
    }
    return {
        "candidates": [{**candidate, "finishReason": finish} if finish else candidate],
        "usageMetadata": usage,
        "modelVersion": "gemini-3.8-flash",
        "responseId": "resp_g1",
    }


_GEMINI_CALL: Final = {
    "functionCall": {"id": "call_1", "name": "ls", "args": {"path": "."}},
    "thoughtSignature": SIGNATURE_OF_GEMINI,
}
GEMINI_EVENTS: Final[list[dict[str, Any]]] = [
    _gemini_chunk([{"text": "Look ", "thought": True}], 0),
    _gemini_chunk([{"text": "first.", "thought": True}], 0),
    _gemini_chunk([{"text": "I look "}], 3),
    _gemini_chunk([{"text": "twice."}], 6),
    _gemini_chunk([_GEMINI_CALL, {"functionCall": {"name": "cat", "args": {}}}], 16),
    _gemini_chunk([], 18, "STOP"),
]
"""A response of Google's with a thought, a text, a signed call and one without an id, chunk by chunk."""


def gemini_response() -> dict[str, Any]:
    """Return the response of `GEMINI_EVENTS` as it comes in one piece."""
    parts: list[dict[str, Any]] = [
        {"text": "Look first.", "thought": True},
        {"text": "I look twice."},
        _GEMINI_CALL,
        {"functionCall": {"name": "cat", "args": {}}},
    ]
    return _gemini_chunk(parts, 18, "STOP")


class _Body(httpx2.AsyncByteStream):
    """A body of server-sent events, which breaks after the last one where it is to."""

    def __init__(self, events: Sequence[dict[str, Any]], *, breaks: bool) -> None:
        self._events = events
        self._breaks = breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self._events:
            named = f"event: {event['type']}\n" if "type" in event else ""
            yield f"{named}data: {json.dumps(event)}\n\n".encode()
        if self._breaks:
            raise httpx2.ReadError("the connection was lost")


def _client(events: Sequence[dict[str, Any]], *, breaks: bool) -> httpx2.AsyncClient:
    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=_Body(events, breaks=breaks), request=request)

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


def anthropic_client(events: Sequence[dict[str, Any]], *, breaks: bool = False) -> AsyncAnthropic:
    """Return a client whose every stream consists of these events."""
    return AsyncAnthropic(api_key="none", max_retries=0, http_client=_client(events, breaks=breaks))


def openai_client(events: Sequence[dict[str, Any]], *, breaks: bool = False) -> AsyncOpenAI:
    """Return a client whose every stream consists of these events."""
    return AsyncOpenAI(api_key="none", max_retries=0, http_client=_client(events, breaks=breaks))
