"""OpenAI's chat completions, and two servers of that form, chosen by the model: DeepSeek's and Google's.

OpenAI's refuses every field that it does not know; the others demand back what a model thought.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)

from tests.providers.openai_errors import error, refusal
from tests.providers.wires import BrokenRequest, Wire, call_ids, check_types, strict, texts

if TYPE_CHECKING:
    from tests.providers.script import Answer, Asked
    from tests.providers.wires import Event, Said

_WHOLE: Final = strict(CompletionCreateParamsNonStreaming)
_STREAM: Final = strict(CompletionCreateParamsStreaming)
_LONGEST_ID: Final = 40
_STOPS: Final = {
    "end": "stop",
    "calls": "tool_calls",
    "length": "length",
    "refusal": "stop",
    "filter": "content_filter",
}
_SIGNED: Final = {"google": {"thought_signature": "c2lnbmVk"}}
_OF_THE_APPLICATION: Final = {"system", "developer"}


def _check(body: dict[str, Any]) -> None:
    model = str(body.get("model"))
    if model.startswith("deepseek"):
        body = _check_thoughts(body)
    elif model.startswith("gemini"):
        body = _check_signatures(body)
    check_types(body, _STREAM if body.get("stream") else _WHOLE)
    if not body["messages"]:
        raise BrokenRequest("Invalid 'messages': empty array. Expected an array with minimum length 1.")
    open_calls: list[str] = []
    for number, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                raise BrokenRequest(
                    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                )
            open_calls.remove(message["tool_call_id"])
            continue
        _check_answered(open_calls)
        calls = message.get("tool_calls") or []
        if not message.get("content") and not (calls or message.get("refusal")) and message["role"] == "assistant":
            raise BrokenRequest(f"Invalid value for 'messages.[{number}].content': expected a string, got null.")
        if message.get("content") == []:
            raise BrokenRequest(f"Invalid 'messages[{number}].content': empty array.")
        if any(len(call["id"]) > _LONGEST_ID for call in calls):
            raise BrokenRequest(f"Invalid 'messages[{number}].tool_calls[0].id': string too long.")
        open_calls = [call["id"] for call in calls]
    _check_answered(open_calls)


def _check_thoughts(body: dict[str, Any]) -> dict[str, Any]:
    """Refuse calls without their thought, as DeepSeek's thinking mode does; return the rest of the request."""
    messages = [{k: v for k, v in message.items() if k != "reasoning_content"} for message in body["messages"]]
    for number, message in enumerate(body["messages"]):
        if message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str):
            raise BrokenRequest(
                f"Missing `reasoning_content` field in the assistant message at message index {number}."
            )
    return {**body, "messages": messages}


def _check_signatures(body: dict[str, Any]) -> dict[str, Any]:
    """Refuse a step of the newest turn whose first call is unsigned, as Gemini 3 does; return the rest."""
    asked = max((n for n, message in enumerate(body["messages"]) if message["role"] == "user"), default=0)
    for number, message in enumerate(body["messages"]):
        calls = message.get("tool_calls")
        if number > asked and calls and calls[0].get("extra_content") != _SIGNED:
            raise BrokenRequest("Function call is missing a thought_signature in functionCall parts.")
    return {**body, "messages": [_unsigned(message) for message in body["messages"]]}


def _unsigned(message: dict[str, Any]) -> dict[str, Any]:
    calls = message.get("tool_calls")
    bare = [{k: v for k, v in call.items() if k != "extra_content"} for call in calls or ()]
    return {**message, "tool_calls": bare} if calls else message


def _check_answered(open_calls: list[str]) -> None:
    if open_calls:
        raise BrokenRequest(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
        )


def _said(body: dict[str, Any]) -> Said:
    system = [texts(m["content"]) for m in body["messages"] if m["role"] in _OF_THE_APPLICATION]
    said: list[tuple[str, str]] = []
    for message in body["messages"]:
        if message["role"] not in _OF_THE_APPLICATION:
            if message.get("content"):
                said.append((message["role"], texts(message["content"])))
            said += [
                (message["role"], json.dumps(call, ensure_ascii=False)) for call in message.get("tool_calls") or []
            ]
    return "\n".join(system), said


def _calls(answer: Answer, asked: Asked) -> list[dict[str, Any]]:
    ids = call_ids(asked, answer.calls, "call")
    calls: list[dict[str, Any]] = [
        {"id": id_, "type": "function", "function": {"name": call.name, "arguments": call.json}}
        for id_, call in zip(ids, answer.calls, strict=True)
    ]
    if asked.model.startswith("gemini") and calls:
        calls[0]["extra_content"] = _SIGNED  # of parallel calls the first is signed
    return calls


def _usage(answer: Answer, asked: Asked) -> dict[str, Any]:
    fresh = asked.tokens if answer.input_tokens is None else answer.input_tokens
    sent = fresh + answer.cached_tokens
    return {
        "prompt_tokens": sent,
        "completion_tokens": answer.written,
        "total_tokens": sent + answer.written,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _head(asked: Asked, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{asked.number}", "object": kind, "created": 1, "model": asked.model}


def _whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    refused = answer.ends_with == "refusal"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if refused or not (answer.text or not answer.calls) else answer.text,
        "refusal": answer.text if refused else None,
    }
    if answer.calls:
        message["tool_calls"] = _calls(answer, asked)
    message |= _thought(answer, asked)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _STOPS[answer.ends_with]}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _usage(answer, asked)}


def _thought(answer: Answer, asked: Asked) -> dict[str, Any]:
    return {"reasoning_content": answer.thought} if asked.model.startswith("deepseek") else {}


def _events(answer: Answer, asked: Asked) -> list[Event]:
    head = _head(asked, "chat.completion.chunk")
    key = "refusal" if answer.ends_with == "refusal" else "content"
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", **_thought(answer, asked)}]
    deltas += [{key: piece} for piece in answer.pieces()]
    for index, call in enumerate(_calls(answer, asked)):
        arguments = call["function"]["arguments"]
        opened = {**call, "function": {**call["function"], "arguments": ""}}
        deltas.append({"tool_calls": [{"index": index, **opened}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in (arguments[:5], arguments[5:])
        ]
    choices: list[Event] = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "logprobs": None, "finish_reason": _STOPS[answer.ends_with]})
    events = [{**head, "choices": [choice]} for choice in choices]
    if (asked.body.get("stream_options") or {}).get("include_usage"):
        events.append({**head, "choices": [], "usage": _usage(answer, asked)})
    return events


WIRE: Final = Wire(
    name="openai_chat",
    check=_check,
    said=_said,
    whole=_whole,
    events=_events,
    refusal=refusal,
    broken=error,
    last_line="[DONE]",
)
