from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types import Message
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from tests.sdks import (
    SIGNATURE,
    SIGNATURE_OF_GEMINI,
    anthropic_message,
    chat_completion,
    gemini_response,
    openai_response,
)
from timeline.blocks import AssistantCompletion, CustomBlock, Reasoning, ToolCall
from timeline.errors import UnknownResponse
from timeline.usage import Usage
from timeline.wire.responses import ModelResponse, read_response
from timeline.wire.usage import anthropic_usage, openai_usage

if TYPE_CHECKING:
    from pydantic import BaseModel

SHAPES: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "anthropic": (Message, anthropic_message()),
    "openai_chat": (ChatCompletion, chat_completion()),
    "openai_responses": (Response, openai_response()),
    "gemini": (GenerateContentResponse, gemini_response()),
}


def read(reply: Any) -> ModelResponse:
    """Read a reply; one without an id is called ``own``."""
    return read_response(reply, unnamed="own")


@pytest.mark.parametrize("shape", SHAPES)
def test_an_sdk_object_and_its_dict_are_the_same_response(shape: str) -> None:
    """What is recorded depends on what the provider said, not on how the caller holds it."""
    model, told = SHAPES[shape]
    from_object, from_dict = read(model.model_validate(told)), read(told)
    assert from_object == from_dict
    assert from_object.key() == from_dict.key()
    own = {told.get("id") or told["responseId"]}
    assert {block.response_id for block in from_dict.blocks} == {from_dict.called.response_id} == own


def test_an_anthropic_message_keeps_its_order_and_its_signature() -> None:
    """Signed thinking is kept byte for byte, before the text and the call that it led to."""
    thought, said, called = read(Message.model_validate(anthropic_message())).blocks
    assert isinstance(thought, Reasoning)
    assert thought.data == {"type": "thinking", "thinking": "Look first.", "signature": SIGNATURE}
    assert isinstance(said, AssistantCompletion)
    assert (said.text, said.meta) == ("I run the tests.", {})
    assert isinstance(called, ToolCall)
    assert (called.call_id, called.name, called.arguments) == ("toolu_1", "bash", {"command": "pytest"})


@pytest.mark.shows("004-10")
def test_anthropic_usage_tells_cache_writes_by_their_lifetime() -> None:
    """Reads, and writes for five minutes and for an hour, are kept apart."""
    called = read(anthropic_message()).called
    assert called.usage == Usage(
        input_tokens=4, output_tokens=42, cache_read_tokens=900, cache_write_5m_tokens=50, cache_write_1h_tokens=20
    )
    assert (called.model, called.finish_reason) == ("claude-opus-5", "tool_use")


@pytest.mark.parametrize(
    ("short", "long", "written"), [(0, 0, 5_000), (0, 1_000, 4_000), (5_000, 0, 5_000), (0, 5_000, 0)]
)
def test_anthropic_usage_counts_writes_that_the_breakdown_leaves_out(short: int, long: int, written: int) -> None:
    """A gateway may know the sum alone, and fill the breakdown with zeros."""
    lifetimes = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long}
    usage = anthropic_usage({"cache_creation_input_tokens": 5_000, "cache_creation": lifetimes})
    assert (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens) == (written, long)


def test_openai_usage_leaves_out_of_the_input_what_the_cache_answered() -> None:
    """Both OpenAI shapes report totals; what was read from the cache or written to it is taken off."""
    assert read(chat_completion()).called.usage == Usage(input_tokens=400, output_tokens=30, cache_read_tokens=600)
    assert read(openai_response()).called.usage == Usage(
        input_tokens=300, output_tokens=30, cache_read_tokens=600, cache_write_5m_tokens=100
    )


@pytest.mark.parametrize(
    ("told", "read_", "written"),
    [
        ({"cached_tokens": 600}, 600, 0),  # Moonshot
        ({"prompt_cache_hit_tokens": 600, "prompt_cache_miss_tokens": 400}, 600, 0),  # DeepSeek
        ({"prompt_tokens_details": {"cached_tokens": 600, "cache_creation_tokens": 100}}, 600, 100),  # LiteLLM
        ({"prompt_tokens_details": {"cached_tokens": 0, "cache_creation_input_tokens": 900}}, 0, 900),  # DashScope
        ({"cache_read_input_tokens": 600, "cache_creation_input_tokens": 100, "total_tokens": 1_050}, 600, 100),
        ({"prompt_tokens_details": {"cached_tokens": 600}, "cached_tokens": 600}, 600, 0),
    ],
)
def test_chat_usage_knows_the_caches_figures_under_the_names_of_its_servers(
    told: dict[str, Any], read_: int, written: int
) -> None:
    """What the cache answered costs a tenth, and no figure counts twice."""
    usage = openai_usage({"prompt_tokens": 1_000, "completion_tokens": 50, **told})
    assert usage == Usage(
        input_tokens=1_000 - read_ - written,
        output_tokens=50,
        cache_read_tokens=read_,
        cache_write_5m_tokens=written,
    )


@pytest.mark.parametrize(("total", "output"), [(1_550, 550), (1_050, 50), (0, 50), (None, 50), (1_650, 50)])
def test_chat_usage_counts_thoughts_that_are_in_the_total_alone(total: int | None, output: int) -> None:
    """Google's endpoint and xAI bill them as output; a gateway may add to the total what its cache answered."""
    cached = {"prompt_tokens_details": {"cached_tokens": 600}}
    usage = openai_usage({"prompt_tokens": 1_000, "completion_tokens": 50, "total_tokens": total, **cached})
    assert usage.output_tokens == output


def test_a_response_of_the_responses_api_keeps_its_encrypted_reasoning() -> None:
    """The whole item is kept, since only the whole item may be sent back."""
    thought, said, called = read(openai_response()).blocks
    assert thought.text == "Look first."
    assert thought.data == openai_response()["output"][0]
    assert said.text == "I look."
    assert isinstance(called, ToolCall)
    assert (called.call_id, called.arguments) == ("call_1", {"path": "."})


def test_the_text_of_a_custom_tool_stays_a_text() -> None:
    """What a free-form tool is given is no JSON, even where it looks like it."""
    item = {"type": "custom_tool_call", "call_id": "c", "name": "apply", "input": '{"a":1}'}
    [called] = read({**openai_response(), "output": [item]}).blocks
    assert isinstance(called, ToolCall)
    assert called.arguments == '{"a":1}'


def test_a_response_of_googles_keeps_its_signature_before_its_call() -> None:
    """The figures of the prompt include what the cache answered, and thoughts are billed as output."""
    response = read(gemini_response())
    thought, said, signature, called, unnamed = response.blocks
    assert (thought.text, said.text) == ("Look first.", "I look twice.")
    assert isinstance(signature, Reasoning)
    assert signature.data == {"thoughtSignature": SIGNATURE_OF_GEMINI}
    assert isinstance(called, ToolCall)
    assert isinstance(unnamed, ToolCall)
    assert (called.call_id, called.arguments, unnamed.call_id) == ("call_1", {"path": "."}, "resp_g1_3")
    assert response.called.usage == Usage(input_tokens=400, output_tokens=30, cache_read_tokens=600)
    assert (response.called.model, response.called.finish_reason) == ("gemini-3.8-flash", "STOP")


def test_a_prompt_that_google_refused_is_a_response_without_blocks() -> None:
    """The call was made; why nothing came is its finish reason."""
    response = read({"prompt_feedback": {"block_reason": "SAFETY"}, "usage_metadata": {"prompt_token_count": 9}})
    assert (response.blocks, response.called.finish_reason) == ((), "SAFETY")
    assert response.called.usage.input_tokens == 9


def test_what_has_no_block_type_of_its_own_is_kept_whole() -> None:
    """Server-side tools and whatever comes later lose nothing."""
    searched = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    [of_anthropic] = read({**anthropic_message(), "content": [searched]}).blocks
    [of_openai] = read({**openai_response(), "output": [item]}).blocks
    assert isinstance(of_anthropic, CustomBlock)
    assert isinstance(of_openai, CustomBlock)
    assert (of_anthropic.data, of_openai.data) == (searched, item)


def test_citations_are_kept_beside_the_text() -> None:
    """They are part of what was said, and no part of what is sent again."""
    cited = [{"type": "char_location", "cited_text": "x"}]
    part = {"type": "text", "text": "So it is.", "citations": cited}
    [said] = read({**anthropic_message(), "content": [part]}).blocks
    assert said.meta == {"citations": cited}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_reply_without_an_id_gets_the_one_that_is_given(shape: str) -> None:
    """Its blocks belong together all the same, and calls without ids are told apart."""
    told = {key: value for key, value in SHAPES[shape][1].items() if key not in {"id", "responseId"}}
    response = read(told)
    assert {block.response_id for block in response.blocks} == {"own"} == {response.called.response_id}


def test_calls_without_ids_are_told_apart_from_those_of_other_responses() -> None:
    """Some servers give calls no id; the response's own tells whose they are."""
    function = {"name": "ls", "arguments": "{}"}
    message = {"role": "assistant", "tool_calls": [{"function": function}, {"function": function}]}
    blocks = read({"id": "r7", "choices": [{"message": message}]}).blocks
    assert [block.call_id for block in blocks] == ["r7_0", "r7_1"]


@pytest.mark.parametrize(
    ("shape", "ending"),
    [
        ("anthropic", {"stop_reason": "max_tokens"}),
        ("gemini", {"candidates": [{**gemini_response()["candidates"][0], "finishReason": "MAX_TOKENS"}]}),
        ("openai_responses", {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
    ],
)
def test_a_call_in_which_the_room_ran_out_is_no_call(shape: str, ending: dict[str, Any]) -> None:
    """Half of what was meant is never run; the text before it is marked, and keeps what there was of the call."""
    response = read({**SHAPES[shape][1], **ending})
    said = next(block for block in response.blocks if isinstance(block, AssistantCompletion))
    assert said.meta["interrupted"] is True
    cut = said.meta["cut_calls"]
    assert isinstance(cut, list)
    assert len(cut) == 1
    assert response.called.finish_reason in {"max_tokens", "max_output_tokens", "MAX_TOKENS"}


def ended(finish: Any, *arguments: str) -> ModelResponse:
    """Return a chat completion with calls, and why it ended."""
    calls = [{"id": f"c{n}", "function": {"name": "f", "arguments": told}} for n, told in enumerate(arguments)]
    message = {"content": "I call.", "tool_calls": calls}
    return read({"id": "r", "model": "m", "choices": [{"message": message, "finish_reason": finish}]})


@pytest.mark.parametrize(
    "finish", ["error", "insufficient_system_resource", "network_error", "content_filter", "sensitive", "model_length"]
)
def test_half_a_call_that_a_filter_or_a_failure_left_is_no_call(finish: str) -> None:
    """A loop would run it, or answer that its arguments are no JSON; those before it are whole."""
    said, called = ended(finish, "{}", '{"path": ').blocks
    assert isinstance(called, ToolCall)
    assert (said.meta["interrupted"], called.call_id) == (True, "c0")
    assert said.meta["cut_calls"] == [{"call_id": "c1", "name": "f", "arguments": '{"path": '}]


def test_a_response_that_its_server_broke_off_is_an_interrupted_one() -> None:
    """A filter ends a response as the provider means it to end."""
    assert [ended(finish).blocks[0].meta for finish in ("error", "content_filter", "stop")] == [
        {"interrupted": True},
        {},
        {},
    ]
    assert len(ended("content_filter", "{}").blocks) == len(ended("tool_calls", "not json").blocks) == 2


def test_a_finish_reason_that_is_no_text_is_none() -> None:
    """Nearly compatible servers write all kinds of things."""
    odd: list[Any] = [{}, [], 1]
    assert [ended(finish).called.finish_reason for finish in odd] == [None, None, None]


def test_a_text_in_which_the_room_ran_out_is_an_answer_like_any_other() -> None:
    """What the finish reason says is enough."""
    told = {**anthropic_message(), "content": [{"type": "text", "text": "So"}], "stop_reason": "max_tokens"}
    assert [block.meta for block in read(told).blocks] == [{}]


def test_a_reply_of_googles_without_its_candidate_list_is_read() -> None:
    """Google's Agent Development Kit hands out the one candidate's fields beside the usage."""
    [candidate] = gemini_response()["candidates"]
    whole = gemini_response()
    told = read({key: value for key, value in whole.items() if key != "candidates"} | candidate)
    assert [block.dump() for block in told.blocks] == [block.dump() for block in read(whole).blocks]
    assert told.called == read(whole).called


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "text",
        b"bytes",
        [],
        {},
        {"choices": None},
        {"object": "chat.completion.chunk", "choices": []},
        {"type": "message", "role": "assistant", "content": "x"},
        {"object": "list", "data": []},
        {"object": "text_completion", "choices": [{"text": "x", "finish_reason": "stop"}]},
        {"id": "a", "choices": [{"message": "x"}]},
        {"id": "a", "choices": [{"message": {"role": "assistant", "content": 5}}]},
        {"type": "error", "error": {"message": "no"}},
        object(),
    ],
    ids=lambda reply: str(reply) if isinstance(reply, dict) else "an object",
)
def test_an_unknown_shape_is_a_typed_error_that_names_what_is_accepted(reply: Any) -> None:
    """Nothing is guessed into a response."""
    with pytest.raises(UnknownResponse, match="Anthropic message, an OpenAI chat completion, an OpenAI response or a"):
        read(reply)


def test_a_reply_that_is_nested_without_end_is_refused() -> None:
    """What could not be written again is not read."""
    deep: Any = {}
    for _ in range(2_000):
        deep = {"a": deep}
    with pytest.raises(UnknownResponse, match="nested too deeply"):
        read({**anthropic_message(), "content": [{"type": "x", "data": deep}]})
