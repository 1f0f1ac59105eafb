"""A further question behind a request that was sent: which requests take one, and with what parameters."""

from __future__ import annotations

from typing import Any

import pytest

from timeline.events import CallRequest
from timeline.wire.follow_up import can_follow, follow_up
from timeline.wire.neutral import Entry, NeutralContext

CONTEXT = NeutralContext(
    system="You code.", entries=(Entry(path="ar:1", type="user.prompt", role="user", text="Build it."),)
)


def request(wire: str = "anthropic", **parameters: Any) -> CallRequest:
    """Return a request as the log keeps it."""
    return CallRequest(wire=wire, encoder=1, model="m", parameters=parameters, sha256="")


def asked(wire: str, **parameters: Any) -> dict[str, Any]:
    """Return the arguments of a question of at most 50 tokens."""
    return follow_up(CONTEXT, request(wire, **parameters), "What was done?", 50)


@pytest.mark.parametrize(
    ("wire", "parameters"),
    [
        ("anthropic", {"tool_choice": {"type": "any"}}),
        ("anthropic", {"tool_choice": {"type": "tool", "name": "run"}}),
        ("anthropic", {"output_config": {"format": {"type": "json_schema", "schema": {}}}}),
        ("anthropic", {"extra_body": {"output_format": {"type": "json_schema"}}}),
        ("openai_chat", {"tool_choice": "required"}),
        ("openai_chat", {"tool_choice": {"type": "function", "function": {"name": "run"}}}),
        ("openai_chat", {"response_format": {"type": "json_object"}}),
        ("openai_responses", {"text": {"format": {"type": "json_schema"}}}),
        ("openai_responses", {"previous_response_id": "resp_1"}),
        ("gemini", {"config": {"response_mime_type": "application/json"}}),
        ("gemini", {"config": {"response_json_schema": {"type": "object"}}}),
        ("gemini", {"config": {"cached_content": "cachedContents/1"}}),
        ("gemini", {"config": {"tool_config": {"function_calling_config": {"mode": "ANY"}}}}),
        ("bedrock_converse", {"toolConfig": {"toolChoice": {"any": {}}}}),
        ("bedrock_converse", {"toolConfig": {"toolChoice": {"tool": {"name": "run"}}}}),
    ],
)
def test_a_request_that_wants_no_plain_words_or_is_not_whole_takes_no_question(
    wire: str, parameters: dict[str, Any]
) -> None:
    """A demanded call, an answer of a schema, or history that the provider adds."""
    assert not can_follow(request(wire, **parameters))


@pytest.mark.parametrize(
    ("wire", "parameters"),
    [
        ("anthropic", {"tool_choice": {"type": "auto"}, "thinking": {"type": "adaptive"}, "max_tokens": 9}),
        ("anthropic", {"output_config": {"effort": "low"}}),
        ("openai_chat", {"tool_choice": "auto", "response_format": {"type": "text"}, "stream": True}),
        (
            "openai_responses",
            {"text": {"format": {"type": "text"}, "verbosity": "low"}, "reasoning": {"effort": "low"}},
        ),
        ("gemini", {"config": {"tool_config": {"function_calling_config": {"mode": "AUTO"}}}}),
        ("bedrock_converse", {"toolConfig": {"toolChoice": {"auto": {}}}}),
    ],
)
def test_other_requests_take_one(wire: str, parameters: dict[str, Any]) -> None:
    """Their answers may be plain words."""
    assert can_follow(request(wire, **parameters))


@pytest.mark.parametrize(
    ("wire", "parameters", "expected"),
    [
        ("anthropic", {"max_tokens": 9, "stream": True, "stop_sequences": ["x"]}, {"max_tokens": 50}),
        (
            "anthropic",
            {"max_tokens": 9_000, "thinking": {"type": "enabled", "budget_tokens": 1_024}},
            {"max_tokens": 1_074, "thinking": {"type": "enabled", "budget_tokens": 1_024}},
        ),
        ("anthropic", {"tool_choice": {"type": "auto"}}, {"max_tokens": 50, "tool_choice": {"type": "auto"}}),
        ("openai_chat", {"max_tokens": 9, "stream": True, "stream_options": {}, "n": 2}, {"max_tokens": 50}),
        ("openai_chat", {"prompt_cache_key": "k"}, {"max_completion_tokens": 50, "prompt_cache_key": "k"}),
        ("openai_chat", {"extra_body": {"stop": "x", "top_k": 1}}, {"extra_body": {"top_k": 1}}),
        ("openai_responses", {"background": True, "store": True}, {"max_output_tokens": 50, "store": False}),
    ],
)
def test_parameters_stay_but_for_what_a_question_needs_and_no_cache_depends_on(
    wire: str, parameters: dict[str, Any], expected: dict[str, Any]
) -> None:
    """The cap of the answer is the question's, and the answer comes whole."""
    told = asked(wire, **parameters)
    others = {"model", "system", "messages", "instructions", "input"}
    assert {**told, **expected} == told
    assert not (told.keys() - others) & {"stream", "stream_options", "stop_sequences", "n", "background"}


def test_googles_parameters_are_in_its_config() -> None:
    """Its thoughts count as part of the answer, too."""
    config = {"maxOutputTokens": 9, "stopSequences": ["x"], "thinking_config": {"thinking_budget": 100}}
    told = asked("gemini", config=config)
    assert told["config"]["max_output_tokens"] == 150
    assert told["config"]["thinking_config"] == {"thinking_budget": 100}
    assert "stopSequences" not in told["config"]


def test_the_question_comes_behind_the_contexts_own_tail() -> None:
    """What was sent behind the messages is part of what was sent."""
    tail = Entry(path="", type="ephemeral", role="user", text="It is noon.")
    told = follow_up(CONTEXT.model_copy(update={"ephemeral": (tail,)}), request("openai_chat"), "What was done?", 50)
    assert [message["content"] for message in told["messages"]] == [
        "You code.",
        "Build it.",
        "It is noon.",
        "What was done?",
    ]
