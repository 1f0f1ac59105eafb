"""Ask one more question behind a request that was sent, so that the provider answers it from its cache.

Parameters on which the cache depends stay as they were sent: tools and tool choice, thinking and effort (with another
value of one of them, Anthropic does not find the cached messages). The others are set for a question: the cap of the
answer, one whole answer instead of a stream, and no stop words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.frozen import without_empty
from timeline.wire.foreign import object_of
from timeline.wire.neutral import Entry
from timeline.wire.request import EXTRA_BODY, make_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from timeline.events import CallRequest
    from timeline.wire.neutral import NeutralContext

_STREAMED: Final = frozenset({"stream", "stream_options", "background"})
_STOPS: Final = frozenset({"stop", "stop_sequences", "stopSequences", "n", "candidate_count", "candidateCount"})
_CAPS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens")
_CAP_OF: Final = {
    "anthropic": "max_tokens",
    "openai_chat": "max_completion_tokens",
    "openai_responses": "max_output_tokens",
    "gemini": "max_output_tokens",
    "bedrock_converse": "maxTokens",
}
"""The parameter that caps an answer, where the request has none."""
_ELSEWHERE: Final = ("previous_response_id", "conversation", "cached_content", "cachedContent")
"""Parameters by which a provider adds what the request itself does not have."""


def can_follow(request: CallRequest) -> bool:
    """Return whether a request may be answered in plain words, and contains all that the provider read."""
    parameters = _parameters(request)
    choice = parameters.get("tool_choice")
    if any(name in object_of(parameters.get("toolConfig"), "toolChoice") for name in ("any", "tool")):  # Bedrock's
        return False
    if isinstance(choice, dict):
        choice = choice.get("type", "tool")
    if choice not in {None, "auto", "none"} or any(parameters.get(name) for name in _ELSEWHERE):
        return False
    return not (_calls_only(parameters) or _is_structured(parameters))


def follow_up(context: NeutralContext, request: CallRequest, question: str, most_tokens: int) -> dict[str, Any]:
    """Return the arguments of the SDK's method for a question behind a context.

    Args:
        context: the context that the request was made from.
        request: the request that was sent; see `can_follow`.
        question: sent as the user, behind the context's own tail.
        most_tokens: cap of the answer; thoughts that the request allows come on top.
    """
    entry = Entry(path="", type="ephemeral", role="user", text=question)
    # Behind the log's entries, since a wire may leave the tail out where the server is to go on with a turn.
    asked = context.model_copy(update={"entries": (*context.entries, *context.ephemeral, entry), "ephemeral": ()})
    parameters = dict(request.parameters)
    parameters |= _asking(parameters, request.wire, most_tokens)
    if isinstance(inner := parameters.get(EXTRA_BODY), dict):
        parameters[EXTRA_BODY] = {key: value for key, value in inner.items() if key not in _STREAMED | _STOPS}
    made = make_request(
        asked,
        request.wire,
        model=request.model,
        parameters={key: value for key, value in parameters.items() if key not in _STREAMED | _STOPS},
        conversation="",
        context=None,
    )
    return made.arguments


def _asking(parameters: Mapping[str, Any], wire: str, most_tokens: int) -> dict[str, Any]:
    """Return the parameters of a request that differ for a question."""
    if wire == "gemini":
        config = dict(parameters.get("config", {}))
        kept = {key: value for key, value in config.items() if key not in _STOPS | {*_CAPS}}
        return {"config": {**kept, _CAP_OF[wire]: most_tokens + _thoughts(config)}}
    if wire == "bedrock_converse":
        config = dict(parameters.get("inferenceConfig", {}))
        kept = {key: value for key, value in config.items() if key not in _STOPS}
        thoughts = _thoughts(parameters.get("additionalModelRequestFields", {}))
        return {"inferenceConfig": {**kept, _CAP_OF[wire]: most_tokens + thoughts}}
    cap = next((name for name in _CAPS if name in parameters), _CAP_OF[wire])
    stored = {"store": False} if wire == "openai_responses" else {}
    return {cap: most_tokens + _thoughts(parameters), **stored}


def _thoughts(parameters: Mapping[str, Any]) -> int:
    """Return the tokens that a request allows for thoughts, which count as part of the answer."""
    for key in ("thinking", "thinking_config", "thinkingConfig"):
        value = parameters.get(key)
        for name in ("budget_tokens", "thinking_budget", "thinkingBudget"):
            budget = value.get(name) if isinstance(value, dict) else None
            if isinstance(budget, int) and budget > 0:
                return budget
    return 0


def _parameters(request: CallRequest) -> dict[str, Any]:
    """Return all parameters of a request on one level."""
    parameters: dict[str, Any] = dict(request.parameters)
    for key in ("config", EXTRA_BODY):
        if isinstance(inner := parameters.pop(key, None), dict):
            parameters |= inner
    return parameters


def _calls_only(parameters: Mapping[str, Any]) -> bool:
    """Return whether a request to Google demands a call."""
    config = parameters.get("tool_config") or parameters.get("toolConfig")
    calling = (config.get("function_calling_config") or config.get("functionCallingConfig")) if config else None
    return isinstance(calling, dict) and str(calling.get("mode", "")).upper() == "ANY"


def _is_structured(parameters: Mapping[str, Any]) -> bool:
    """Return whether an answer has to match a schema, by any provider's parameter for that."""
    if without_empty({key: parameters.get(key) for key in ("output_format", "response_schema", "responseSchema")}):
        return True
    if parameters.get("response_json_schema") or parameters.get("responseJsonSchema"):
        return True
    kinds = [parameters.get("response_format")]
    kinds += [
        outer.get("format") or outer.get("textFormat")
        for outer in (parameters.get("text"), parameters.get("output_config"), parameters.get("outputConfig"))
        if isinstance(outer, dict)
    ]
    if any(isinstance(kind, dict) and kind.get("type") != "text" for kind in kinds):
        return True
    mime = parameters.get("response_mime_type") or parameters.get("responseMimeType") or "text/plain"
    return bool(mime != "text/plain")
