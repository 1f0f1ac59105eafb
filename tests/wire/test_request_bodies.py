"""The body of a request against the bytes that each provider's own SDK sends for it, whatever the context holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import httpx2
import pytest
from anthropic import Anthropic, BadRequestError
from google import genai
from google.genai.errors import ClientError
from google.genai.types import HttpOptions
from hypothesis import given
from hypothesis import strategies as st
from openai import BadRequestError as OpenAIBadRequestError
from openai import OpenAI

from tests.wire.entries import contexts, hostile_entries, legal_entries
from timeline.errors import InvalidArgument
from timeline.wire.neutral import Entry, NeutralContext
from timeline.wire.request import make_request

if TYPE_CHECKING:
    from collections.abc import Callable

_SENT: Final[list[bytes]] = []


def _note(request: httpx2.Request) -> httpx2.Response:
    _SENT.append(request.content)
    return httpx2.Response(400, json={"error": {"message": "noted"}}, request=request)


_HTTP: Final = httpx2.Client(transport=httpx2.MockTransport(_note))
_ANTHROPIC: Final = Anthropic(api_key="none", max_retries=0, http_client=_HTTP)
_OPENAI: Final = OpenAI(api_key="none", max_retries=0, http_client=_HTTP)
_GOOGLE: Final = genai.Client(api_key="none", http_options=HttpOptions(httpx_client=_HTTP))
METHODS: Final[dict[str, Callable[..., Any]]] = {
    "anthropic": _ANTHROPIC.messages.create,
    "openai_chat": _OPENAI.chat.completions.create,
    "openai_responses": _OPENAI.responses.create,
    "gemini": _GOOGLE.models.generate_content,
}
NEEDED: Final[dict[str, dict[str, Any]]] = {"anthropic": {"max_tokens": 9}}
"""Parameters without which an SDK sends nothing."""
SAFE: Final[list[dict[str, Any]]] = [{"threshold": "BLOCK_NONE", "category": "HARM_CATEGORY_HARASSMENT"}]
ANSWER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "b": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"y": {"type": "string"}}}]},
        "a": {
            "type": "array",
            "items": {"type": "object", "properties": {"y": {"type": "integer"}, "x": {"type": "number"}}},
        },
    },
}
"""A schema of answers, to which the SDK adds the order of its properties."""
GEMINI: Final[list[dict[str, Any]]] = [
    {"safety_settings": SAFE, "stopSequences": ["END"], "top_p": 0.5},
    {"cachedContent": "c1"},
    {"cached_content": "cachedContents/c1", "store": True, "service_tier": "flex"},
    {"tool_config": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]}}},
    {"toolConfig": {"retrieval_config": {"language_code": "de", "lat_lng": {"longitude": 1.5, "latitude": 2.5}}}},
    {"toolConfig": {"function_calling_config": {"mode": "auto"}}, "speechConfig": "Kore", "responseSchema": {}},
    {
        "safety_settings": [{"category": "harm_category_harassment", "threshold": "off"}],
        "media_resolution": "media_resolution_low",
    },
    {"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": 9, "includeThoughts": True}},
    {"image_config": {"image_size": "1K", "aspect_ratio": "1:1"}, "response_modalities": ["IMAGE", "TEXT"]},
    {"speech_config": {"language_code": "de", "voice_config": {"prebuilt_voice_config": {"voice_name": "Kore"}}}},
    {"media_resolution": "MEDIA_RESOLUTION_LOW", "response_logprobs": True, "logprobs": 2, "candidate_count": 1},
    {"response_schema": {"type": "object", "title": "A", "properties": {"b": {"type": "string", "default": None}}}},
    {"response_schema": ANSWER},
    {"responseJsonSchema": {"type": "object", "additionalProperties": False, "$defs": {}}},
    {"http_options": {"timeout": 60_000}, "automatic_function_calling": {"disable": True}, "presence_penalty": 0.5},
]
"""The ``config`` of Google's SDK, in both spellings that it takes."""


TOOLS: Final[Any] = (
    {"url_context": {}, "googleSearch": {}},
    {
        "functionDeclarations": [
            {
                "parameters": {
                    "type": "object",
                    "required": ["b"],
                    "properties": {
                        "b": {"type": "array", "items": {"type": "integer", "enum": ["1"]}, "minItems": 1},
                        "a": {"anyOf": [{"type": "string", "format": "date", "description": "d"}], "nullable": True},
                    },
                },
                "name": "bash",
                "description": "Run it.",
            },
            {"name": "read", "behavior": "BLOCKING", "parametersJsonSchema": {"type": "object", "$defs": {"z": {}}}},
        ]
    },
)
"""Tools of Google's; the contexts that are drawn have Anthropic's."""


def sent(wire: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the body that a wire's SDK sends for the arguments of its method."""
    _SENT.clear()
    with pytest.raises((BadRequestError, OpenAIBadRequestError, ClientError)):
        METHODS[wire](**arguments)
    [content] = _SENT
    body: dict[str, Any] = json.loads(content)
    return body


def assert_sent(neutral: NeutralContext, wire: str, **parameters: Any) -> None:
    """Assert that a request's body is what the SDK sends: keys by name, and their order in all that a context gives."""
    if wire == "gemini":
        neutral = neutral.model_copy(update={"tools": TOOLS if neutral.tools else ()})
    given = {**NEEDED.get(wire, {}), **parameters}
    request = make_request(neutral, wire, model="m", parameters=given, conversation="c", context=None)
    if wire == "gemini" and not request.body["contents"]:
        return  # its SDK refuses it before anything is sent
    received = sent(wire, request.arguments)
    assert received == request.body
    for key in received.keys() - {"generationConfig"}:
        assert json.dumps(received[key]) == json.dumps(request.body[key])


@pytest.mark.parametrize("wire", METHODS)
@given(neutral=contexts(legal_entries()))
def test_what_a_projection_gives_is_sent_as_the_request_says(wire: str, neutral: NeutralContext) -> None:
    """System prompt, tools, messages, cache markers and tail, to the order of their keys."""
    assert_sent(neutral, wire)


@pytest.mark.parametrize("wire", METHODS)
@given(neutral=contexts(hostile_entries()))
def test_what_no_projection_gives_is_sent_as_the_request_says(wire: str, neutral: NeutralContext) -> None:
    """Pictures, documents, sound, files, and data that no provider has a form for."""
    assert_sent(neutral, wire)


@given(neutral=contexts(legal_entries()), config=st.sampled_from(GEMINI))
def test_the_parameters_of_googles_sdk_are_sent_as_the_request_says(
    neutral: NeutralContext, config: dict[str, Any]
) -> None:
    """In its own names, or in those of the REST API."""
    assert_sent(neutral, "gemini", config=config)


@pytest.mark.parametrize(("options", "key"), [("http_options", "extra_body"), ("httpOptions", "extraBody")])
def test_what_googles_sdk_merges_into_the_body_is_refused(options: str, key: str) -> None:
    """It is sent, and the body that the request says does not have it."""
    neutral = NeutralContext(entries=(Entry(path="p", type="user.prompt", role="user", text="Hi."),), policy="")
    config: dict[str, Any] = {options: {key: {"labels": {"team": "a"}}}}
    request = make_request(neutral, "gemini", model="m", parameters={}, conversation="c", context=None)
    assert sent("gemini", {**request.arguments, "config": config}) != request.body
    with pytest.raises(InvalidArgument, match=f"config.{options}.{key}"):
        make_request(neutral, "gemini", model="m", parameters={"config": config}, conversation="c", context=None)
    empty = {"config": {options: {key: None, "timeout": 60_000}}}
    assert make_request(neutral, "gemini", model="m", parameters=empty, conversation="c", context=None).body
