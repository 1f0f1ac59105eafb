"""Gemini's generateContent."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64decode
from typing import TYPE_CHECKING, Any, Final

from google.genai import types
from pydantic import TypeAdapter, ValidationError

from tests.providers.wires import BrokenRequest, Wire, call_ids, signature, texts

if TYPE_CHECKING:
    from tests.providers.script import Answer, Asked, Trouble
    from tests.providers.wires import Event, Said

_CONTENTS: Final = TypeAdapter(list[types.Content])
_TOOLS: Final = TypeAdapter(list[types.Tool])
_DEMANDS_SIGNATURES: Final = re.compile(r"gemini-[3-9]")
_SKIPPED: Final = frozenset(
    {b"skip_thought_signature_validator", urlsafe_b64decode("skip_thought_signature_validator")}
)
"""What Google's documentation says to send for calls that another model made: these bytes, or this literal text.

The API takes both: frameworks put the bytes into base64, and others send the text as if it was base64.
"""
_FIELDS: Final = {
    "model",
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "labels",
}
_STOPS: Final = {"end": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY", "filter": "SAFETY"}
_REFUSALS: Final = {
    "rate_limit": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan."),
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "server": (500, "INTERNAL", "An internal error has occurred."),
    "context_limit": (
        400,
        "INVALID_ARGUMENT",
        "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).",
    ),
    "authentication": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "no_model": (404, "NOT_FOUND", "models/{model} is not found for API version v1beta."),
    "filter": (400, "INVALID_ARGUMENT", "The request was blocked by the safety filters."),
}


def _check(body: dict[str, Any]) -> None:
    if strange := sorted(body.keys() - _FIELDS):
        raise BrokenRequest(f'Invalid JSON payload received. Unknown name "{strange[0]}": Cannot find field.')
    try:
        contents = _CONTENTS.validate_python(body.get("contents") or [])
        _TOOLS.validate_python(body.get("tools") or [])
        if "systemInstruction" in body:
            types.Content.model_validate(body["systemInstruction"])
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise BrokenRequest(f"Invalid value at {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
    if not contents:
        raise BrokenRequest("* GenerateContentRequest.contents: contents is not specified")
    if (contents[0].role or "user") != "user":
        raise BrokenRequest("Please ensure that the conversation begins with a user turn.")
    _check_turns(contents)
    if _DEMANDS_SIGNATURES.match(body["model"]):
        _check_signatures(contents)


def _check_signatures(contents: list[types.Content]) -> None:
    """The first call of each response since the user last spoke carries the signature that it came with."""
    spoken = [n for n, c in enumerate(contents) if c.role == "user" and any(p.text for p in c.parts or ())]
    for number, content in enumerate(contents[spoken[-1] :] if spoken else contents, start=spoken[-1] if spoken else 0):
        call = next((part for part in content.parts or () if part.function_call), None)
        if call is None or call.function_call is None:
            continue
        if call.thought_signature not in {_signature(call.function_call.id or ""), *_SKIPPED}:
            raise BrokenRequest(
                f"Function call `{call.function_call.name}` in the {number}. content block is missing a "
                "thought_signature."
            )


def _signature(call_id: str) -> bytes:
    return f"signed {call_id}".encode()


def _check_turns(contents: list[types.Content]) -> None:
    """No turn is empty; calls come behind a user's turn, and exactly their answers come next."""
    waiting = 0
    for number, content in enumerate(contents):
        parts = content.parts or []
        if content.role not in {None, "user", "model"}:
            raise BrokenRequest("Please use a valid role: user, model.")
        if not parts or any(part == types.Part() for part in parts):
            raise BrokenRequest(f"* GenerateContentRequest.contents[{number}].parts: contents.parts must not be empty.")
        if any(part.text is not None and not part.text for part in parts):
            raise BrokenRequest(f"* GenerateContentRequest.contents[{number}].parts.data: required oneof field.")
        answers = sum(part.function_response is not None for part in parts)
        if answers != waiting:
            raise BrokenRequest(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        waiting = sum(part.function_call is not None for part in parts)
        if waiting and (content.role != "model" or contents[number - 1].role == "model"):
            raise BrokenRequest(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
    if waiting:
        raise BrokenRequest("Please ensure that function response turn comes immediately after a function call turn.")


def _said(body: dict[str, Any]) -> Said:
    said = [
        (content.get("role") or "user", str(part["text"]) if "text" in part else json.dumps(part, ensure_ascii=False))
        for content in body["contents"]
        for part in content["parts"]
    ]
    return texts((body.get("systemInstruction") or {}).get("parts")), said


def _parts(answer: Answer, asked: Asked) -> list[dict[str, Any]]:
    ids = call_ids(asked, answer.calls, "fc")
    calls: list[dict[str, Any]] = [
        {
            "functionCall": {
                "id": id_,
                "name": call.name,
                "args": {} if isinstance(call.arguments, str) else call.arguments,
            }
        }
        for id_, call in zip(ids, answer.calls, strict=True)
    ]
    if calls and _DEMANDS_SIGNATURES.match(asked.model):
        calls[0]["thoughtSignature"] = b64encode(_signature(ids[0])).decode()
    elif calls and answer.thought:
        calls[0]["thoughtSignature"] = signature(answer.thought)
    thoughts = [{"text": answer.thought, "thought": True}] if answer.thought else []
    return [*thoughts, *([{"text": answer.text}] if answer.text else []), *calls]


def _response(parts: list[dict[str, Any]], answer: Answer, asked: Asked, finish: str | None) -> dict[str, Any]:
    fresh = asked.tokens if answer.input_tokens is None else answer.input_tokens
    sent = fresh + answer.cached_tokens
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    usage = {
        "promptTokenCount": sent,
        "candidatesTokenCount": answer.written,
        "totalTokenCount": sent + answer.written,
        "cachedContentTokenCount": answer.cached_tokens,
    }
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": asked.model,
        "responseId": f"r{asked.number}",
    }


def _whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    return _response(_parts(answer, asked), answer, asked, _STOPS[answer.ends_with])


def _events(answer: Answer, asked: Asked) -> list[Event]:
    pieces: list[list[dict[str, Any]]] = [[{"text": answer.thought, "thought": True}]] if answer.thought else []
    pieces += [[{"text": piece}] for piece in answer.pieces()]
    pieces += [[part] for part in _parts(answer, asked) if "functionCall" in part]
    pieces = pieces or [[{"text": ""}]]
    last = len(pieces) - 1
    finish = _STOPS[answer.ends_with]
    return [_response(piece, answer, asked, finish if number == last else None) for number, piece in enumerate(pieces)]


def _error(status: int, name: str, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": name}}


def _refusal(trouble: Trouble, asked: Asked) -> tuple[int, dict[str, Any]]:
    status, name, message = _REFUSALS[trouble.kind]
    body = _error(status, name, message.format(tokens=asked.tokens, limit=trouble.limit, model=asked.model))
    if trouble.retry_after is not None:
        delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{trouble.retry_after}s"}
        body["error"]["details"] = [delay]
    return status, body


WIRE: Final = Wire(
    name="gemini",
    check=_check,
    said=_said,
    whole=_whole,
    events=_events,
    refusal=_refusal,
    broken=lambda message: _error(400, "INVALID_ARGUMENT", message),
)
