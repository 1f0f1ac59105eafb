"""Anthropic's messages."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from anthropic.types.beta import message_create_params as beta
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming

from tests.providers.wires import BrokenRequest, Wire, call_ids, check_types, signature, strict, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import SchemaValidator

    from tests.providers.script import Answer, Asked, Call, Trouble
    from tests.providers.wires import Event, Said

_WHOLE: Final = strict(MessageCreateParamsNonStreaming)
_STREAM: Final = strict(MessageCreateParamsStreaming)
_OF_OLDER_MODELS: Final = {"temperature", "top_p", "top_k"}
"""What the SDK has no types for any more, and older models take."""
_MOST_MARKERS: Final = 4
_STOPS: Final = {
    "end": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "filter": "refusal",
}
_REFUSALS: Final = {
    "rate_limit": (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "server": (500, "api_error", "Internal server error"),
    "context_limit": (400, "invalid_request_error", "prompt is too long: {tokens} tokens > {limit} maximum"),
    "authentication": (401, "authentication_error", "invalid x-api-key"),
    "no_model": (404, "not_found_error", "model: {model}"),
    "filter": (400, "invalid_request_error", "Output blocked by content filtering policy"),
}


def _check(body: dict[str, Any]) -> None:
    typed = {name: value for name, value in body.items() if name not in _OF_OLDER_MODELS}
    check_types(typed, _types_of(body))
    messages = body["messages"]
    if not messages:
        raise BrokenRequest("messages: at least one message is required")
    if messages[0]["role"] != "user":
        raise BrokenRequest('messages: first message must use the "user" role')
    _check_markers(body)
    for number, message in enumerate(messages):
        _check_content(number, message["content"], optional=number == len(messages) - 1 and _is_answer(message))
    _check_pairs(messages)
    _check_server_tools(body)
    _check_added_tools(body)
    names = [tool["name"] for tool in body.get("tools", ())]
    if len(names) != len(set(names)):
        raise BrokenRequest("tools: Tool names must be unique.")


def _types_of(body: dict[str, Any]) -> SchemaValidator:
    """Return the types of a request: the beta's, if it adds tools in the middle of the conversation."""
    entries = [message for message in body.get("messages", ()) if message.get("role") == "system"]
    if any(part.get("type") == "tool_addition" for entry in entries for part in _parts(entry["content"])):
        return _beta_types(stream=bool(body.get("stream")))
    return _STREAM if body.get("stream") else _WHOLE


@cache
def _beta_types(*, stream: bool) -> SchemaValidator:
    return strict(beta.MessageCreateParamsStreaming if stream else beta.MessageCreateParamsNonStreaming)


def _check_added_tools(body: dict[str, Any]) -> None:
    """A tool that is added by its name is one that the request declares."""
    entries = [message for message in body["messages"] if message["role"] == "system"]
    parts = [part for entry in entries for part in _parts(entry["content"]) if part["type"] == "tool_addition"]
    declared, added = {tool["name"] for tool in body.get("tools", ())}, [part["tool"]["name"] for part in parts]
    if unknown := {*added} - declared:
        raise BrokenRequest(f"messages: tool_addition/tool_removal references unknown tool {unknown.pop()!r}")


def _check_markers(body: dict[str, Any]) -> None:
    """At most four, none on a tool that is loaded later, and none for an hour behind one for five minutes."""
    places = [*body.get("tools", ()), *_parts(body.get("system", ()))]
    places += [part for message in body["messages"] for part in _parts(message["content"])]
    if any(tool.get("defer_loading") and tool.get("cache_control") for tool in body.get("tools", ())):
        raise BrokenRequest("tools: Tools with defer_loading cannot use prompt caching.")
    markers = [place["cache_control"] for place in places if place.get("cache_control")]
    if len(markers) > _MOST_MARKERS:
        raise BrokenRequest(f"A maximum of {_MOST_MARKERS} blocks with cache_control may be provided.")
    hours = [marker.get("ttl", "5m") == "1h" for marker in markers]
    if hours != sorted(hours, reverse=True):
        raise BrokenRequest("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.")


def _is_answer(message: dict[str, Any]) -> bool:
    return bool(message["role"] == "assistant")


def _check_content(number: int, content: Any, *, optional: bool) -> None:
    if not content and not optional:
        raise BrokenRequest(
            f"messages.{number}: all messages must have non-empty content except for the optional final assistant "
            "message"
        )
    for part in _parts(content):
        if part["type"] == "text" and not part["text"].strip():
            raise BrokenRequest(f"messages.{number}: text content blocks must contain non-whitespace text")
        if part["type"] in {"thinking", "redacted_thinking"} and "cache_control" in part:
            raise BrokenRequest(f"messages.{number}: cache_control: Extra inputs are not permitted")
    if optional and texts(_parts(content)[-1:]).endswith((" ", "\n")):
        raise BrokenRequest("messages: final assistant content cannot end with trailing whitespace")


def _check_pairs(messages: list[dict[str, Any]]) -> None:
    """Each call has its result at the beginning of the next message, and each result its call just before."""
    open_calls: list[str] = []
    known: set[str] = set()
    for number, message in enumerate(_merged(messages)):
        parts = _parts(message["content"])
        results = [part["tool_use_id"] for part in parts if part["type"] == "tool_result"]
        if missing := [call for call in open_calls if call not in results]:
            raise BrokenRequest(
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}."
            )
        if strange := [result for result in results if result not in open_calls]:
            raise BrokenRequest(
                f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(strange)}."
            )
        if results and any(part["type"] != "tool_result" for part in parts[: len(results)]):
            raise BrokenRequest(f"messages.{number}: `tool_result` blocks must come first in the content")
        open_calls = [part["id"] for part in parts if part["type"] == "tool_use"]
        if len({*open_calls}) != len(open_calls) or known & {*open_calls}:
            raise BrokenRequest(f"messages.{number}: `tool_use` ids must be unique")
        known |= {*open_calls}
    if open_calls:
        raise BrokenRequest(f"messages: `tool_use` ids were found without `tool_result` blocks: {open_calls}.")


def _check_server_tools(body: dict[str, Any]) -> None:
    """What a tool of the server found stands in the response of its call, or in the next; a text ends the turn.

    A program that calls the client's tools goes on for as long as each response has a further call of it.
    """
    waiting: set[str] = set()
    pending: set[str] = set()
    for number, message in enumerate(_merged(body["messages"])):
        parts = _parts(message["content"])
        called = {part["id"] for part in parts if part["type"] in {"server_tool_use", "mcp_tool_use"}}
        kinds = {part["tool_use_id"]: part["type"] for part in parts if part["type"].endswith("_tool_result")}
        found = {id_ for id_, kind in kinds.items() if kind != "tool_result"}
        if strange := found - called - waiting:
            raise BrokenRequest(f"messages.{number}: unexpected `tool_use_id` in `{kinds[strange.pop()]}`.")
        goes_on = all(part["type"] == "tool_result" for part in parts)
        callers = {part["caller"]["tool_id"] for part in parts if part.get("caller", {}).get("tool_id")}
        if strange := callers - called - waiting:
            raise BrokenRequest(f"messages.{number}: `caller.tool_id` {strange.pop()} is no pending code execution.")
        running = callers & waiting
        if (missing := waiting - found - running) and not goes_on:
            raise BrokenRequest(
                f"messages.{number}: tool use with id `{missing.pop()}` was found without a corresponding result block"
            )
        waiting = waiting if goes_on else (called | running) - found
        pending = pending if goes_on else callers & waiting
    if pending and not body.get("container"):
        raise BrokenRequest(
            "container_id is required when there are pending tool uses generated by code execution with tools."
        )


def _merged(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join neighbours of one role, as the provider does."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            content = [*merged[-1]["content"], *_parts(message["content"])]
            merged[-1] = {"role": message["role"], "content": content}
        else:
            merged.append({"role": message["role"], "content": _parts(message["content"])})
    return merged


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _said(body: dict[str, Any]) -> Said:
    said = [
        (message["role"], str(part["text"]) if part["type"] == "text" else json.dumps(part, ensure_ascii=False))
        for message in body["messages"]
        for part in _parts(message["content"])
    ]
    inner = [text for role, text in said if role == "system"]
    return "\n".join([texts(body.get("system")), *inner]), [one for one in said if one[0] != "system"]


def _content(answer: Answer, asked: Asked) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if answer.thought:
        parts.append({"type": "thinking", "thinking": answer.thought, "signature": signature(answer.thought)})
    if answer.text:
        parts.append({"type": "text", "text": answer.text, "citations": None})
    ids = call_ids(asked, answer.calls, "toolu")
    calls = [
        {
            "type": "tool_use",
            "id": id_,
            "name": call.name,
            "input": {} if isinstance(call.arguments, str) else call.arguments,
        }
        for id_, call in zip(ids, answer.calls, strict=True)
    ]
    return parts + calls


def _usage(answer: Answer, asked: Asked) -> dict[str, Any]:
    given = answer.input_tokens
    return {
        "input_tokens": asked.tokens if given is None else given,
        "cache_read_input_tokens": answer.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": answer.written,
    }


def _whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    return {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": _content(answer, asked),
        "stop_reason": _STOPS[answer.ends_with],
        "stop_sequence": None,
        "usage": _usage(answer, asked),
    }


def _events(answer: Answer, asked: Asked) -> list[Event]:
    whole = _whole(answer, asked)
    opened = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    events: list[Event] = [{"type": "message_start", "message": opened}, {"type": "ping"}]
    calls = iter(answer.calls)
    for index, part in enumerate(whole["content"]):
        blank, deltas = _pieces(part, answer, calls)
        events.append({"type": "content_block_start", "index": index, "content_block": blank})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": answer.written}})
    return [*events, {"type": "message_stop"}]


def _pieces(part: dict[str, Any], answer: Answer, calls: Iterator[Call]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a part as its stream begins it, and what comes of it then."""
    match part["type"]:
        case "text":
            return {**part, "text": ""}, [{"type": "text_delta", "text": piece} for piece in answer.pieces()]
        case "thinking":
            signed = {"type": "signature_delta", "signature": part["signature"]}
            thought = {"type": "thinking_delta", "thinking": part["thinking"]}
            return {**part, "thinking": "", "signature": ""}, [thought, signed]
        case _:
            written = next(calls).json
            pieces = ("", written[:5], written[5:])
            return {**part, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"}


def _refusal(trouble: Trouble, asked: Asked) -> tuple[int, dict[str, Any]]:
    status, kind, message = _REFUSALS[trouble.kind]
    return status, _error(kind, message.format(tokens=asked.tokens, limit=trouble.limit, model=asked.model))


WIRE: Final = Wire(
    name="anthropic",
    check=_check,
    said=_said,
    whole=_whole,
    events=_events,
    refusal=_refusal,
    broken=lambda message: _error("invalid_request_error", message),
)
