"""OpenAI's responses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)

from tests.providers.openai_errors import error, refusal
from tests.providers.wires import BrokenRequest, Wire, call_ids, check_types, signature, strict, texts

if TYPE_CHECKING:
    from tests.providers.script import Answer, Asked
    from tests.providers.wires import Event, Said

_WHOLE: Final = strict(ResponseCreateParamsNonStreaming)
_STREAM: Final = strict(ResponseCreateParamsStreaming)
_INCOMPLETE: Final = {"length": "max_output_tokens", "filter": "content_filter"}
_CALLS: Final = frozenset({"function_call", "shell_call", "apply_patch_call", "custom_tool_call", "computer_call"})
_OF_THE_APPLICATION: Final = {"system", "developer"}


def _check(body: dict[str, Any]) -> None:
    check_types(_filled(body), _STREAM if body.get("stream") else _WHOLE)
    items = _items(body)
    if not items and not body.get("previous_response_id"):
        raise BrokenRequest("One of 'input', 'previous_response_id' or 'prompt' must be provided.")
    for number, item in enumerate(items):
        if item.get("content") == []:
            raise BrokenRequest(f"Invalid 'input[{number}].content': empty array.")
        following = items[number + 1 : number + 2]
        if item.get("type") == "reasoning" and (not following or following[0].get("role") in {"user", "system"}):
            raise BrokenRequest(
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
            )
    _check_pairs(items, continues=bool(body.get("previous_response_id")))


def _filled(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request with what the API fills in where it is left out, though the SDK's types demand it."""
    told = dict(body)
    if isinstance(tools := body.get("tools"), list):
        told["tools"] = [{"strict": None, **tool} if tool.get("type") == "function" else tool for tool in tools]
    if isinstance(items := body.get("input"), list):
        told["input"] = [{"status": "completed", **item} if _is_output(item) else item for item in items]
    return told


def _is_output(item: dict[str, Any]) -> bool:
    """Say whether an item is a message of the model's as the API gave it."""
    return item.get("type") == "message" and item.get("role") == "assistant" and "id" in item


def _check_pairs(items: list[dict[str, Any]], *, continues: bool) -> None:
    """Each output has its call before it, and each call an output."""
    waiting: dict[str, str] = {}
    answered: set[str] = set()
    for item in items:
        kind = str(item.get("type"))
        if kind in _CALLS:
            if item["call_id"] in waiting.keys() | answered:
                raise BrokenRequest(f"Duplicate function call with call_id {item['call_id']}.")
            waiting[item["call_id"]] = kind
        elif kind.endswith("_call_output"):
            if waiting.pop(item["call_id"], None) != kind.removesuffix("_output") and not continues:
                raise BrokenRequest(f"No tool call found for {_words(kind)} with call_id {item['call_id']}.")
            answered.add(item["call_id"])
    if waiting:
        id_, kind = min(waiting.items())
        raise BrokenRequest(f"No tool output found for {_words(kind)} {id_}.")
    if not continues:
        _check_references(items)


def _check_references(items: list[dict[str, Any]]) -> None:
    """What an answer, a program's call or its output, and found tools refer to, comes before them."""
    seen: set[tuple[str, Any]] = set()
    for item in items:
        kind, caller = str(item.get("type")), item.get("caller") or {}
        if kind == "mcp_approval_response" and ("mcp_approval_request", item["approval_request_id"]) not in seen:
            raise BrokenRequest(
                "The following MCP approval requests have approval responses but weren't passed as input: "
                + item["approval_request_id"]
            )
        if caller.get("type") == "program" and ("program", caller["caller_id"]) not in seen:
            raise BrokenRequest(f"No program found for {_words(kind)} with caller_id {caller['caller_id']}.")
        called_by = {"program_output": "program", "tool_search_output": "tool_search_call"}.get(kind)
        if called_by and (called_by, item.get("call_id")) not in seen:
            raise BrokenRequest(f"No {_words(called_by)} found for {_words(kind)} with call_id {item.get('call_id')}.")
        seen |= {(kind, item.get("call_id")), (kind, item.get("id"))}


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _items(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _said(body: dict[str, Any]) -> Said:
    system, said = [str(body.get("instructions") or "")], []
    for item in _items(body):
        role = item.get("role")
        if role in _OF_THE_APPLICATION:
            system.append(texts(item.get("content", ())))
        elif role:
            said.append((role, texts(item["content"])))
        else:
            said.append(
                ("tool" if item["type"].endswith("_output") else "assistant", json.dumps(item, ensure_ascii=False))
            )
    return "\n".join(filter(None, system)), said


def _output(answer: Answer, asked: Asked) -> list[dict[str, Any]]:
    ids = call_ids(asked, answer.calls, "call")
    status = "incomplete" if answer.ends_with in _INCOMPLETE else "completed"
    calls = [
        {
            "id": f"fc_{id_}",
            "type": "function_call",
            "call_id": id_,
            "name": call.name,
            "arguments": call.json,
            "status": status,
        }
        for id_, call in zip(ids, answer.calls, strict=True)
    ]
    thought = {
        "id": f"rs_{asked.number}",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": answer.thought}],
        "encrypted_content": signature(answer.thought),
    }
    thoughts = [thought] if answer.thought else []
    if not answer.text:
        return [*thoughts, *calls]
    part = (
        {"type": "refusal", "refusal": answer.text}
        if answer.ends_with == "refusal"
        else {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    )
    said = {"id": f"msg_{asked.number}", "type": "message", "role": "assistant", "status": status, "content": [part]}
    return [*thoughts, said, *calls]


def _usage(answer: Answer, asked: Asked) -> dict[str, Any]:
    fresh = asked.tokens if answer.input_tokens is None else answer.input_tokens
    sent = fresh + answer.cached_tokens
    return {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": answer.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": answer.written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + answer.written,
    }


def _whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    reason = _INCOMPLETE.get(answer.ends_with)
    return {
        "id": f"resp_{asked.number}",
        "object": "response",
        "created_at": 1,
        "model": asked.model,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "instructions": asked.body.get("instructions"),
        "metadata": {},
        "output": _output(answer, asked),
        "parallel_tool_calls": True,
        "temperature": asked.body.get("temperature", 1.0),
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": _usage(answer, asked),
    }


def _events(answer: Answer, asked: Asked) -> list[Event]:
    whole = _whole(answer, asked)
    opened = {**whole, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    events: list[Event] = [{"type": "response.created", "response": opened}]
    for index, item in enumerate(whole["output"]):
        match item["type"]:
            case "message":
                events += _message(index, item, answer)
            case "reasoning":
                events += _thought(index, item)
            case _:
                events += _call(index, item)
    ended = "response.completed" if whole["status"] == "completed" else "response.incomplete"
    events.append({"type": ended, "response": whole})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _message(index: int, item: dict[str, Any], answer: Answer) -> list[Event]:
    part = item["content"][0]
    kind = "refusal" if part["type"] == "refusal" else "output_text"
    at = {"item_id": item["id"], "output_index": index, "content_index": 0}
    extra: dict[str, Any] = {} if kind == "refusal" else {"logprobs": []}
    told = {"refusal": answer.text} if kind == "refusal" else {"text": answer.text, "logprobs": []}
    blank = {**part, ("refusal" if kind == "refusal" else "text"): ""}
    return [
        {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **at, "part": blank},
        *({"type": f"response.{kind}.delta", **at, **extra, "delta": piece} for piece in answer.pieces()),
        {"type": f"response.{kind}.done", **at, **told},
        {"type": "response.content_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _thought(index: int, item: dict[str, Any]) -> list[Event]:
    at = {"item_id": item["id"], "output_index": index, "summary_index": 0}
    part = item["summary"][0]
    return [
        {"type": "response.output_item.added", "output_index": index, "item": {**item, "summary": []}},
        {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}},
        {"type": "response.reasoning_summary_text.delta", **at, "delta": part["text"]},
        {"type": "response.reasoning_summary_text.done", **at, "text": part["text"]},
        {"type": "response.reasoning_summary_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _call(index: int, item: dict[str, Any]) -> list[Event]:
    at = {"item_id": item["id"], "output_index": index}
    name = "response.function_call_arguments"
    written = item["arguments"]
    blank = {**item, "status": "in_progress", "arguments": ""}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": blank},
        *({"type": f"{name}.delta", **at, "delta": piece} for piece in (written[:5], written[5:])),
        {"type": f"{name}.done", **at, "name": item["name"], "arguments": written},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


WIRE: Final = Wire(
    name="openai_responses",
    check=_check,
    said=_said,
    whole=_whole,
    events=_events,
    refusal=refusal,
    broken=error,
)
