from __future__ import annotations

from typing import Any

import pytest
from google.genai.types import GenerateContentResponse
from hypothesis import given
from hypothesis import strategies as st

from tests.sdks import (
    ANTHROPIC_EVENTS,
    CHAT_EVENTS,
    GEMINI_EVENTS,
    RESPONSE_EVENTS,
    anthropic_message,
    chat_completion,
    gemini_response,
    openai_response,
)
from timeline.blocks import AssistantCompletion, Reasoning, ToolCall
from timeline.wire.responses import ModelResponse, read_response
from timeline.wire.streams import StreamReader

DIALECTS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "anthropic": (ANTHROPIC_EVENTS, anthropic_message()),
    "openai_chat": (CHAT_EVENTS, chat_completion()),
    "openai_responses": (RESPONSE_EVENTS, openai_response()),
    "gemini": (GEMINI_EVENTS, gemini_response()),
}


def read(events: list[dict[str, Any]]) -> ModelResponse:
    """Read a stream of events, of which one at least belongs to a response."""
    reader = StreamReader()
    for event in events:
        reader.take(event)
    response = reader.response(unnamed="own")
    assert response is not None
    return response


def until(events: list[dict[str, Any]], word: str) -> list[dict[str, Any]]:
    """Return the events up to the first one that holds a word."""
    return events[: 1 + next(n for n, event in enumerate(events) if word in str(event))]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_ended_is_the_response_in_one_piece(dialect: str) -> None:
    """Streamed or not, the same response gives the same blocks, the same usage and the same key."""
    events, reply = DIALECTS[dialect]
    assert read(events) == read_response(reply, unnamed="own")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_wherever_a_stream_is_cut_one_completion_is_marked_and_no_call_is_half(dialect: str) -> None:
    """After every number of events: at most one mark, calls only with whole arguments, nothing that did not come."""
    events, reply = DIALECTS[dialect]
    whole = {
        block.call_id: block for block in read_response(reply, unnamed="own").blocks if isinstance(block, ToolCall)
    }
    ends = len(events) - (2 if dialect == "openai_chat" else 1)
    for length in range(1, ends):
        blocks = read(events[:length]).blocks
        marked = [block for block in blocks if block.meta.get("interrupted")]
        assert len(marked) == bool(blocks)
        assert all(isinstance(block, AssistantCompletion) for block in marked)
        assert all(whole[b.call_id] == b for b in blocks if isinstance(b, ToolCall))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_text_so_far_is_kept(dialect: str) -> None:
    """What the user has read already is not lost with the connection."""
    events, _ = DIALECTS[dialect]
    response = read(until(events, "I "))
    said = response.blocks[-1]
    assert isinstance(said, AssistantCompletion)
    assert said.text.startswith("I ")
    assert said.meta == {"interrupted": True}
    assert response.called.finish_reason in {"interrupted", "in_progress"}


@pytest.mark.parametrize(
    ("dialect", "last", "raw"),
    [
        ("anthropic", '"command": "p', '{"command": "p'),
        ("openai_chat", '{"path":', '{"path":'),
        ("openai_responses", '{"path"', '{"path"'),
    ],
)
def test_a_call_whose_arguments_were_cut_is_kept_beside_the_text(dialect: str, last: str, raw: str) -> None:
    """It is no call any more, so nothing runs half of it; what there was of it stays in the log."""
    events, _ = DIALECTS[dialect]
    response = read(until(events, last))
    assert not [block for block in response.blocks if isinstance(block, ToolCall)]
    said = response.blocks[-1]
    cut_calls = said.meta["cut_calls"]
    assert isinstance(cut_calls, list)
    assert [call["arguments"] for call in cut_calls if isinstance(call, dict)] == [raw]


def test_what_came_of_a_shell_and_of_a_patch_is_kept_where_they_were_cut() -> None:
    """Their arguments come in events of their own."""
    operation = {"type": "update_file", "path": "a.py", "diff": ""}
    begun = {"status": "in_progress", "call_id": "c1"}
    shell = {**begun, "type": "shell_call", "action": {"commands": []}}
    patch = {**begun, "type": "apply_patch_call", "operation": operation}
    told: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (shell, {"type": "response.shell_call_command.delta", "command_index": 0, "delta": "make te"}),
        (patch, {"type": "response.apply_patch_call_operation_diff.delta", "delta": "@@ -1"}),
    ]
    for item, delta in told:
        added = {"type": "response.output_item.added", "output_index": 0, "item": item}
        kept: Any = read([added, {**delta, "output_index": 0}]).blocks[-1].meta["cut_calls"]
        [cut] = kept
        assert cut["name"] == item["type"].removesuffix("_call")
        assert cut["arguments"].endswith(delta["delta"])
        assert "a.py" in cut["arguments"] or item is shell


def test_a_call_that_was_whole_before_the_cut_stays_a_call() -> None:
    """Its arguments are all there; it goes on as a call that was never answered."""
    blocks = read(CHAT_EVENTS[:7]).blocks
    assert [block.call_id for block in blocks if isinstance(block, ToolCall)] == ["call_1"]


def test_reasoning_that_was_cut_before_its_signature_is_kept_and_not_sent() -> None:
    """The empty completion carries the mark; the thought stays readable."""
    thought, mark = read(ANTHROPIC_EVENTS[:4]).blocks
    assert isinstance(thought, Reasoning)
    assert thought.text == "Look "
    assert (mark.text, mark.meta) == ("", {"interrupted": True})


def test_a_cut_before_any_content_is_a_model_call_without_blocks() -> None:
    """The request was paid for; there is nothing to show for it."""
    response = read(ANTHROPIC_EVENTS[:1])
    assert response.blocks == ()
    assert (response.called.finish_reason, response.called.usage.cache_read_tokens) == ("interrupted", 900)


def test_a_providers_own_compaction_is_kept_whole() -> None:
    """It comes in one delta, and goes back only as it came."""
    part = {"type": "compaction", "content": None}
    told = {"content": "So far.", "encrypted_content": "gAAA=="}
    events: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": part},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", **told}},
        {"type": "content_block_stop", "index": 0},
    ]
    [block] = read([ANTHROPIC_EVENTS[0], *events, *ANTHROPIC_EVENTS[-2:]]).blocks
    assert block.data == {"type": "compaction", **told}


def test_a_signed_part_of_a_stream_is_never_joined_to_another() -> None:
    """The signature goes back on the part that it came with, also where that says nothing."""
    pieces = [
        [{"text": "So "}],
        [{"text": "it is.", "thoughtSignature": "c2ln"}],
        [{"text": "", "thoughtSignature": "cg=="}],
    ]
    chunks = [{"candidates": [{"content": {"parts": parts}}]} for parts in pieces]
    blocks = read([*chunks, {"candidates": [{"finishReason": "STOP"}]}]).blocks
    assert [(type(block), block.text) for block in blocks] == [
        (AssistantCompletion, "So "),
        (Reasoning, ""),
        (AssistantCompletion, "it is."),
        (Reasoning, ""),
    ]
    assert blocks[3].data == {"text": "", "thoughtSignature": "cg=="}


def test_the_chunks_of_googles_sdk_are_read_as_their_dicts() -> None:
    """Its objects write their keys another way, and bytes as bytes."""
    objects: Any = [GenerateContentResponse.model_validate(chunk) for chunk in GEMINI_EVENTS]
    assert read(objects) == read(GEMINI_EVENTS)


def test_a_failed_response_is_an_interrupted_one() -> None:
    """The Responses API reports a failure as an event; what came before it is kept."""
    failed = {**openai_response(), "status": "failed", "output": [], "error": {"code": "server_error", "message": "x"}}
    response = read([*RESPONSE_EVENTS[:8], {"type": "response.failed", "response": failed}])
    assert [block.text for block in response.blocks] == ["Look first.", "I look."]
    assert (response.blocks[-1].meta, response.called.finish_reason) == ({"interrupted": True}, "failed")


def test_a_stream_that_ends_without_its_last_event_is_interrupted() -> None:
    """A proxy that goes away ends the stream in silence."""
    assert read(ANTHROPIC_EVENTS[:-2]).called.finish_reason == "interrupted"


def test_chat_chunks_without_an_index_are_put_together_by_their_ids() -> None:
    """Some servers leave it out."""
    calls = [{"id": "a", "function": {"name": "f", "arguments": '{"x"'}}, {"function": {"arguments": ":1}"}}]
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in calls]
    [call] = read([*chunks, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}]).blocks
    assert isinstance(call, ToolCall)
    assert (call.call_id, call.arguments) == ("a", {"x": 1})


@pytest.mark.parametrize("ids", [("a", "b"), ("", ""), (None, None)])
def test_parallel_calls_that_all_have_the_index_0_are_calls_of_their_own(ids: tuple[str | None, str | None]) -> None:
    """Google's endpoint, and gateways before it, number them so; each comes whole."""
    calls = [
        {"index": 0, "id": id_, "function": {"name": name, "arguments": f'{{"{name}":1}}'}}
        for id_, name in zip(ids, ("x", "y"), strict=True)
    ]
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in calls]
    blocks = read([*chunks, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}]).blocks
    made = [(block.name, block.arguments) for block in blocks if isinstance(block, ToolCall)]
    assert made == [("x", {"x": 1}), ("y", {"y": 1})]
    assert len({block.call_id for block in blocks}) == 2


@pytest.mark.parametrize("ids", [("a", "a", "a"), ("a", "b", "c"), (None, None, None)])
def test_pieces_that_repeat_the_name_of_their_call_begin_no_other(ids: tuple[str | None, ...]) -> None:
    """Some servers write it on each piece, with the id or with a new one each time."""
    pieces = ['{"x"', ":1}", ""]
    calls = [
        {"index": 0, "id": id_, "function": {"name": "f", "arguments": piece}}
        for id_, piece in zip(ids, pieces, strict=True)
    ][: 3 if ids[0] == ids[1] else 2]
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in calls]
    [call] = read([*chunks, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}]).blocks
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("f", {"x": 1})


def test_what_a_model_thinks_is_put_together_under_the_key_of_its_server() -> None:
    """OpenRouter and vLLM stream it as ``reasoning``."""
    deltas: list[dict[str, Any]] = [{"reasoning": "Two "}, {"reasoning": "folders."}, {"content": "I look."}]
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
    thought, said = read([*chunks, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]).blocks
    assert (type(thought), thought.text, said.text) == (Reasoning, "Two folders.", "I look.")


@pytest.mark.parametrize(
    "last",
    [
        {"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 9}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": {"prompt_tokens": 9}}},
    ],
)
def test_usage_is_found_where_moonshot_and_groq_put_it(last: dict[str, Any]) -> None:
    """In the last choice, and under a key of its own."""
    assert read([{"choices": [{"delta": {"content": "Hi."}}]}, last]).called.usage.input_tokens == 9


def test_a_stream_of_something_else_gives_nothing() -> None:
    """Events that belong to no known response are let through and forgotten."""
    reader = StreamReader()
    for event in ({"type": "ping"}, {"type": "error"}, {}, None, 7, "data: x"):
        reader.take(event)
    assert not reader.began
    assert reader.response(unnamed="own") is None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(sorted({str(event.get("type")) for events, _ in DIALECTS.values() for event in events}))


ODD_EVENTS = st.fixed_dictionaries(
    {"type": TYPES}, optional=dict.fromkeys(("index", "output_index", "delta", "item", "message", "usage"), JSON_VALUES)
)


@given(st.sampled_from(list(DIALECTS)), st.lists(st.integers(0, 17), max_size=12), st.lists(ODD_EVENTS, max_size=3))
def test_events_that_are_lost_repeated_or_mixed_up_never_raise(
    dialect: str, order: list[int], more: list[dict[str, Any]]
) -> None:
    """A stream that makes no sense is recorded as far as it goes; the agent does not stop over it."""
    events, _ = DIALECTS[dialect]
    reader = StreamReader()
    for event in [*(events[n] for n in order if n < len(events)), *more]:
        reader.take(event)
    response = reader.response(unnamed="own")
    assert response is None or response.called.response_id


def test_chunks_that_mistrals_sdk_puts_into_events_are_read() -> None:
    """Each is the ``data`` of an event."""
    reader = StreamReader()
    for content, finish in (("I ", None), ("look.", "stop")):
        choice = {"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": finish}
        reader.take({"data": {"id": "m1", "model": "mistral-large", "choices": [choice]}})
    response = reader.response(unnamed="r")
    assert response is not None
    assert [block.text for block in response.blocks] == ["I look."]


DRAWN: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}, "index": 0}


@pytest.mark.parametrize("repeated", [False, True])
def test_what_a_model_drew_beside_its_answer_is_kept_streamed_or_not(*, repeated: bool) -> None:
    """OpenRouter and LiteLLM have pictures in a field of their own; the reply was recorded without them."""
    head = {"id": "gen-1", "object": "chat.completion.chunk", "model": "m"}
    deltas = [
        {"role": "assistant", "content": "Here."},
        {"images": [DRAWN]},
        *([{"images": [DRAWN]}] if repeated else []),
    ]
    chunks: list[dict[str, Any]] = [
        *({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas),
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    message = {"role": "assistant", "content": "Here.", "images": [DRAWN]}
    whole = {
        **head,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    response = read_response(whole, unnamed="own")
    assert [(block.type, block.text, block.data) for block in response.blocks] == [
        ("assistant.completion", "Here.", None),
        ("assistant.part", "", DRAWN),
    ]
    assert read(chunks) == response
