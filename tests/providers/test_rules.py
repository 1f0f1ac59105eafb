"""What the fake refuses, as the providers do: each request here would cost a 400 there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.providers import anthropic, gemini, openai_chat, openai_responses
from tests.providers.wires import BrokenRequest

if TYPE_CHECKING:
    from tests.providers.wires import Wire

_ASKED: Final = {"role": "user", "content": "List src."}
_USED: Final = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}
_TOLD: Final = {"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}
_CALLED: Final = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
_ITEM: Final = {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"}
_SAID: Final = {"type": "output_text", "text": "One file.", "annotations": []}
_CALL: Final = {"functionCall": {"name": "ls", "args": {}}}
_ANSWER: Final = {"functionResponse": {"name": "ls", "response": {"output": "a.py"}}}
_LATER: Final = {"name": "x", "input_schema": {"type": "object"}, "defer_loading": True}
_SHORT: Final = {"type": "ephemeral"}
_MARKED: Final = {"type": "text", "text": "x", "cache_control": _SHORT}


def messages(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a request of Anthropic's."""
    return {"model": "m", "max_tokens": 9, "messages": [*messages], **more}


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a request for a chat completion."""
    return {"model": "m", "messages": [*messages], **more}


def response(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a request for a response."""
    return {"model": "m", "input": [*items], **more}


def generate(*contents: tuple[str, list[dict[str, Any]]], **more: Any) -> dict[str, Any]:
    """Return a request of Gemini's."""
    return {"model": "m", "contents": [{"role": role, "parts": parts} for role, parts in contents]} | more


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return a message of the user's."""
    return {"role": "user", "content": [*parts]}


def assistant(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return a message of the assistant's."""
    return {"role": "assistant", "content": [*parts]}


REFUSED: Final[dict[str, tuple[Wire, dict[str, Any], str]]] = {
    "anthropic no message": (anthropic.WIRE, messages(), "at least one message"),
    "anthropic assistant first": (anthropic.WIRE, messages({"role": "assistant", "content": "x"}), "first message"),
    "anthropic unknown field": (anthropic.WIRE, messages(_ASKED, bogus=1), "bogus: Extra inputs"),
    "anthropic unknown field of a part": (
        anthropic.WIRE,
        messages(user({"type": "text", "text": "x", "bogus": 1})),
        "Extra inputs",
    ),
    "anthropic no max_tokens": (anthropic.WIRE, chat(_ASKED), "max_tokens: Field required"),
    "anthropic empty content": (anthropic.WIRE, messages(user()), "non-empty content"),
    "anthropic empty text": (anthropic.WIRE, messages(user({"type": "text", "text": " "})), "non-whitespace"),
    "anthropic call without result": (anthropic.WIRE, messages(_ASKED, assistant(_USED), _ASKED), "without `tool_r"),
    "anthropic call at the end": (anthropic.WIRE, messages(_ASKED, assistant(_USED)), "without `tool_result`"),
    "anthropic result without call": (anthropic.WIRE, messages(user(_TOLD)), "unexpected `tool_use_id`"),
    "anthropic result behind text": (
        anthropic.WIRE,
        messages(_ASKED, assistant(_USED), user({"type": "text", "text": "x"}, _TOLD)),
        "must come first",
    ),
    "anthropic repeated id": (
        anthropic.WIRE,
        messages(_ASKED, assistant(_USED), user(_TOLD), assistant(_USED), user(_TOLD)),
        "must be unique",
    ),
    "anthropic five markers": (anthropic.WIRE, messages(user(*[_MARKED] * 5)), "A maximum of 4"),
    "anthropic marked tool that is loaded later": (
        anthropic.WIRE,
        messages(
            _ASKED,
            tools=[
                {"name": "x", "input_schema": {"type": "object"}, "defer_loading": True} | {"cache_control": _SHORT}
            ],
        ),
        "cannot use prompt caching",
    ),
    "anthropic an hour behind five minutes": (
        anthropic.WIRE,
        messages(user(_MARKED, {**_MARKED, "cache_control": {"type": "ephemeral", "ttl": "1h"}})),
        "must not come after",
    ),
    "anthropic ends with a space": (
        anthropic.WIRE,
        messages(_ASKED, {"role": "assistant", "content": "x "}),
        "trailing whitespace",
    ),
    "chat no message": (openai_chat.WIRE, chat(), "empty array"),
    "chat unknown role": (openai_chat.WIRE, chat({"role": "robot", "content": "x"}), "role"),
    "chat call without result": (
        openai_chat.WIRE,
        chat(_ASKED, {"role": "assistant", "tool_calls": [_CALLED]}, _ASKED),
        "did not have response messages: c1",
    ),
    "chat result without call": (
        openai_chat.WIRE,
        chat(_ASKED, {"role": "tool", "tool_call_id": "c1", "content": "x"}),
        "must be a response",
    ),
    "chat empty answer": (openai_chat.WIRE, chat(_ASKED, {"role": "assistant", "content": None}), "got null"),
    "chat empty content": (openai_chat.WIRE, chat({"role": "user", "content": []}), "empty array"),
    "chat long id": (
        openai_chat.WIRE,
        chat(_ASKED, {"role": "assistant", "tool_calls": [{**_CALLED, "id": "c" * 41}]}),
        "string too long",
    ),
    "deepseek call without its thought": (
        openai_chat.WIRE,
        {
            **chat(
                _ASKED,
                {"role": "assistant", "tool_calls": [_CALLED]},
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
            ),
            "model": "deepseek-reasoner",
        },
        "Missing `reasoning_content`",
    ),
    "gemini call without its signature": (
        openai_chat.WIRE,
        {
            **chat(
                _ASKED,
                {"role": "assistant", "tool_calls": [_CALLED]},
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
            ),
            "model": "gemini-3-pro",
        },
        "missing a thought_signature",
    ),
    "chat unknown field": (
        openai_chat.WIRE,
        chat(_ASKED, {"role": "assistant", "content": "x", "reasoning_content": "y"}),
        "Input should be",
    ),
    "response no input": (openai_responses.WIRE, response(), "must be provided"),
    "response unknown field": (openai_responses.WIRE, response({**_ASKED, "bogus": 1}), "bogus|input"),
    "response call without output": (openai_responses.WIRE, response(_ASKED, _ITEM), "No tool output found"),
    "response output without call": (
        openai_responses.WIRE,
        response(_ASKED, {"type": "function_call_output", "call_id": "c1", "output": "x"}),
        "No tool call found",
    ),
    "response lone reasoning": (
        openai_responses.WIRE,
        response(_ASKED, {"type": "reasoning", "id": "rs_1", "summary": []}, _ASKED),
        "without its required following item",
    ),
    "gemini no contents": (gemini.WIRE, generate(), "contents is not specified"),
    "gemini unknown field": (gemini.WIRE, generate(("user", [{"text": "x"}]), bogus=1), 'Unknown name "bogus"'),
    "gemini unknown field of a part": (gemini.WIRE, generate(("user", [{"text": "x", "bogus": 1}])), "Invalid value"),
    "gemini model first": (gemini.WIRE, generate(("model", [{"text": "x"}])), "begins with a user turn"),
    "gemini unknown role": (gemini.WIRE, generate(("user", [{"text": "x"}]), ("system", [{"text": "x"}])), "role"),
    "gemini empty turn": (gemini.WIRE, generate(("user", [])), "parts must not be empty"),
    "gemini empty text": (gemini.WIRE, generate(("user", [{"text": ""}])), "required oneof"),
    "gemini call without answer": (
        gemini.WIRE,
        generate(("user", [{"text": "x"}]), ("model", [_CALL]), ("user", [{"text": "x"}])),
        "number of function response parts",
    ),
    "gemini answer without call": (gemini.WIRE, generate(("user", [_ANSWER])), "number of function response parts"),
    "gemini unsigned call": (
        gemini.WIRE,
        generate(("user", [{"text": "x"}]), ("model", [_CALL]), ("user", [_ANSWER]), model="gemini-3"),
        "missing a thought_signature",
    ),
    "gemini unknown field of a tool": (gemini.WIRE, generate(("user", [{"text": "x"}]), tools=[{"bogus": 1}]), "bogus"),
    "gemini call at the end": (gemini.WIRE, generate(("user", [{"text": "x"}]), ("model", [_CALL])), "comes immediate"),
}
TAKEN: Final[dict[str, tuple[Wire, dict[str, Any]]]] = {
    "anthropic": (
        anthropic.WIRE,
        messages(_ASKED, assistant(_USED), user(_TOLD, _MARKED), system=[_MARKED], tools=[]),
    ),
    "anthropic neighbours of one role": (anthropic.WIRE, messages(_ASKED, _ASKED)),
    "chat": (
        openai_chat.WIRE,
        chat(
            {"role": "developer", "content": "You code."},
            _ASKED,
            {"role": "assistant", "content": None, "tool_calls": [_CALLED]},
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
        ),
    ),
    "response": (
        openai_responses.WIRE,
        response(_ASKED, _ITEM, {"type": "function_call_output", "call_id": "c1", "output": "x"}),
    ),
    "response with what the API fills in left out": (
        openai_responses.WIRE,
        response(
            _ASKED,
            {"type": "message", "id": "m1", "role": "assistant", "content": [_SAID]},
            _ASKED,
            tools=[{"type": "function", "name": "ls", "parameters": {}}],
        ),
    ),
    "gemini": (gemini.WIRE, generate(("user", [{"text": "x"}]), ("model", [_CALL]), ("user", [_ANSWER]))),
    "gemini call of another model with the literal text of the documentation": (
        gemini.WIRE,
        generate(
            ("user", [{"text": "x"}]),
            ("model", [{**_CALL, "thoughtSignature": "skip_thought_signature_validator"}]),
            ("user", [_ANSWER]),
            model="gemini-3",
        ),
    ),
    "gemini unsigned call of an earlier turn": (
        gemini.WIRE,
        generate(("user", [{"text": "x"}]), ("model", [_CALL]), ("user", [_ANSWER, {"text": "y"}]), model="gemini-3"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_provider_refuses_is_refused(case: str) -> None:
    """The message names what is wrong."""
    wire, request, reason = REFUSED[case]
    with pytest.raises(BrokenRequest, match=reason):
        wire.check(request)


@pytest.mark.parametrize("case", TAKEN)
def test_what_a_provider_takes_is_taken(case: str) -> None:
    """Pairs, markers and the application's own messages are in order."""
    wire, request = TAKEN[case]
    wire.check(request)
