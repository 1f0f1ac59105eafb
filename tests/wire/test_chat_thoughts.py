"""What servers of OpenAI's chat form put beside an answer, and what of it goes back to whom."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.entries import answer, call, prompt, thought
from timeline import policies, sync
from timeline.agent.deduplication import content_key
from timeline.blocks import Reasoning
from timeline.content.media_tokens import with_media
from timeline.importers.chat import dialect_of
from timeline.wire.chat_thoughts import LEFT_OUT
from timeline.wire.neutral import Entry, NeutralContext
from timeline.wire.openai_chat import decode, encode
from timeline.wire.responses import read_response
from timeline.wire.streams import StreamReader

DETAILS = [
    {
        "type": "reasoning.text",
        "text": "Two folders.",
        "signature": "c2ln",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {"type": "reasoning.encrypted", "data": "Z2FB", "index": 1},
]
SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}
CHUNK = {"type": "thinking", "thinking": [{"type": "text", "text": "Two folders."}], "closed": True}
"""A thought of Mistral's models, which stands in the content."""
CALL: dict[str, Any] = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}


def entry_of(block: Any, **more: Any) -> Entry:
    """Return the entry of a decoded block."""
    fields: dict[str, Any] = {"path": "p", "type": block.type, "role": "assistant", "text": block.text, **more}
    if block.type == "react.tool.call":
        fields |= {"call_id": block.call_id, "name": block.name, "arguments": block.arguments}
    return Entry(**fields, data=block.data, response_id=block.response_id)


def sent_again(message: dict[str, Any], model: str = "", *, maker: str = "", **more: Any) -> dict[str, Any]:
    """Return the message that an answer of one model becomes in the next request, to another one or the same."""
    blocks = decode([{"role": "assistant", "id": "r", "model": maker, **message}])
    context = NeutralContext(entries=(prompt("go"), *(entry_of(block, **more) for block in blocks)), model=model)
    sent: dict[str, Any] = encode(context)["messages"][1]
    return sent


@pytest.mark.parametrize(
    "message",
    [
        {"content": "I look.", "reasoning_content": "Two folders."},
        {"content": "I look.", "reasoning": "Two folders.", "reasoning_details": DETAILS},
        {"content": None, "thinking": "Two folders.", "tool_calls": [CALL]},
        {"content": "I look.", "thinking_blocks": [{"type": "thinking", "thinking": "Two.", "signature": "c2ln"}]},
        {"content": None, "tool_calls": [{**CALL, "extra_content": SIGNED}, {**CALL, "id": "d"}]},
        {"content": "Done.", "extra_content": SIGNED},
        {"content": None, "tool_calls": [{**CALL, "provider_specific_fields": {"thought_signature": "c2lnbmVk"}}]},
        {"content": [CHUNK, {"type": "text", "text": "I look."}], "tool_calls": [CALL]},
        {"content": [CHUNK], "tool_calls": [CALL]},
    ],
)
def test_a_server_gets_back_what_it_put_beside_an_answer(message: dict[str, Any]) -> None:
    """Each in its own form, whether the model is known or not."""
    assert sent_again(message) == {"role": "assistant", **message}
    assert sent_again(message, "glm-5", maker="z-ai/glm-5-0926") == {"role": "assistant", **message}


def test_another_model_gets_no_thought_of_the_first() -> None:
    """Some servers refuse each field that they do not know."""
    message = {
        "content": "x",
        "reasoning": "hm",
        "reasoning_details": DETAILS,
        "tool_calls": [{**CALL, "extra_content": SIGNED}],
    }
    bare = {"role": "assistant", "content": "x", "tool_calls": [CALL]}
    assert sent_again(message, "llama-4", maker="glm-5") == bare
    chunks = {"content": [CHUNK, {"type": "text", "text": "x"}], "tool_calls": [CALL]}
    assert sent_again(chunks, "llama-4", maker="magistral-medium-2509") == bare


def test_a_model_that_is_asked_for_under_another_name_gets_its_thoughts_back() -> None:
    """A deployment, or a gateway's alias: the reply names the model itself, and each request the other name."""
    message = {"content": None, "reasoning_content": "hm", "tool_calls": [CALL]}
    reply = {"id": "x", "model": "kimi-k2-thinking", "choices": [{"message": message, "finish_reason": "tool_calls"}]}
    with sync.open_store("memory://") as store:
        timeline = sync.Timeline.open(store, "c", policy=policies.cut_point())
        timeline.append_messages([{"role": "user", "content": "go"}])
        timeline.record(reply, request=timeline.render().request("openai_chat", model="thinker-prod"))
        context = timeline.render()
        sent = [context.to_openai_chat(model=model)["messages"][1] for model in ("thinker-prod", "", "other")]
    assert ["reasoning_content" in message for message in sent] == [True, True, False]


def test_a_model_that_demands_thoughts_gets_those_of_another_and_a_word_where_there_are_none() -> None:
    """It refuses calls without one; an answer without calls needs none."""
    message = {"content": None, "reasoning_content": "hm", "tool_calls": [CALL]}
    assert sent_again(message, "deepseek-v4-flash", maker="deepseek-v4-pro")["reasoning_content"] == "hm"
    hidden = NeutralContext(
        entries=(prompt("go"), thought(data=None, text=""), call("c")), model="moonshotai/Kimi-K2.6"
    )
    assert encode(hidden)["messages"][1]["reasoning_content"] == LEFT_OUT
    assert "reasoning_content" not in sent_again({"content": "x"}, "deepseek-v4-pro")
    assert "reasoning_content" not in sent_again({"content": None, "tool_calls": [CALL]}, "moonshotai/kimi-k2-instruct")


def test_a_model_that_demands_thoughts_gets_those_of_another_server_under_its_own_key() -> None:
    """DeepSeek refuses calls whose thought stands under the key of OpenRouter, or of Ollama."""
    for key in ("reasoning", "thinking"):
        message = {"content": None, key: "hm", "tool_calls": [CALL]}
        sent = sent_again(message, "deepseek-reasoner", maker="qwen/qwen3")
        assert sent == {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [CALL]}


def test_signed_thoughts_behind_a_rewritten_prefix_follow_the_rule_for_signatures() -> None:
    """The text alone depends on nothing before it."""
    message = {"content": "x", "reasoning": "hm", "reasoning_details": DETAILS}
    for loop, model, kept in (
        (True, "claude-opus-5", True),
        (False, "claude-opus-5", False),
        (True, "claude-opus-5.1", False),
    ):
        sent = sent_again(message, model, maker=model, rewritten=True, in_loop=loop)
        assert ("reasoning_details" in sent, sent["reasoning"]) == (kept, "hm")


def test_what_a_caller_changes_in_a_body_is_not_the_logs() -> None:
    """Fields that a server gave are lists and objects."""
    [block] = decode([{"role": "assistant", "content": "", "reasoning_details": DETAILS}])
    context = NeutralContext(entries=(prompt("go"), entry_of(block), answer("x", response_id=block.response_id)))
    encode(context)["messages"][1]["reasoning_details"][0]["text"] = "changed"
    assert encode(context)["messages"][1]["reasoning_details"] == DETAILS


def test_details_that_are_streamed_in_pieces_are_put_together() -> None:
    """By their index, or where there is none behind the last one of their type."""
    pieces: list[dict[str, Any]] = [
        {
            "reasoning_details": [
                {"type": "reasoning.text", "text": "Two ", "format": "anthropic-claude-v1", "index": 0}
            ]
        },
        {"reasoning_details": [{"type": "reasoning.text", "text": "folders.", "signature": None, "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "", "signature": "c2ln", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "Z2FB", "index": 1}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "Tw"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "o.", "signature": "c2ln"}]},
        {"tool_calls": [{"index": 0, **CALL, "extra_content": SIGNED}]},
    ]
    reader = StreamReader()
    for delta in pieces:
        reader.take({"model": "m", "choices": [{"index": 0, "delta": delta}]})
    reader.take({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    response = reader.response(unnamed="r")
    assert response is not None
    whole = {
        "content": None,
        "reasoning_details": DETAILS,
        "thinking_blocks": [{"type": "thinking", "thinking": "Two.", "signature": "c2ln"}],
        "tool_calls": [{**CALL, "extra_content": SIGNED}],
    }
    same = read_response({"model": "m", "choices": [{"message": whole, "finish_reason": "tool_calls"}]}, unnamed="r")
    assert list(response.blocks) == list(same.blocks)
    assert response.blocks[0].text == "Two folders.\nTwo."


def test_content_that_is_streamed_in_chunks_is_put_together() -> None:
    """Thoughts come as lists, the answer behind them as lists or as strings; nothing else has a place of its own."""
    reference = {"type": "reference", "reference_ids": [1]}
    pieces: list[Any] = [
        "",
        [{"type": "thinking", "thinking": [{"type": "text", "text": "Two "}]}],
        [{"type": "thinking", "thinking": [{"type": "text", "text": "folders."}], "closed": True}],
        [{"type": "text", "text": "I "}],
        "look.",
        [reference, {"type": "text", "text": "There."}],
        None,
    ]
    reader = StreamReader()
    for piece in pieces:
        reader.take({"model": "m", "choices": [{"index": 0, "delta": {"content": piece}}]})
    reader.take({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    response = reader.response(unnamed="r")
    assert response is not None
    content = [CHUNK, {"type": "text", "text": "I look."}, reference, {"type": "text", "text": "There."}]
    whole = {"model": "m", "choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    assert list(response.blocks) == list(read_response(whole, unnamed="r").blocks)
    assert [block.text for block in response.blocks] == ["Two folders.", "I look.", "", "There."]


def test_a_list_with_thoughts_in_its_content_keeps_its_calls() -> None:
    """Anthropic has parts of the same name, whose thought is a text."""
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [CHUNK], "tool_calls": [CALL]}]
    assert dialect_of(messages) == "openai_chat"


def test_a_thought_in_a_list_is_the_one_that_was_recorded() -> None:
    """A list names no model, details may be put together otherwise, and older logs hold the text alone."""
    made = [
        *decode([{"role": "assistant", "reasoning": "hm", "reasoning_details": DETAILS, "model": "m"}]),
        *decode([{"role": "assistant", "reasoning_content": "hm"}]),
        *decode([{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}], "model": "m"}]),
        Reasoning(text="hm"),
    ]
    assert len({content_key(block) for block in made}) == 1
    one, other = (
        decode(
            [{"role": "assistant", "tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": s}}}]}]
        )[0]
        for s in ("YQ==", "Yg==")
    )
    assert content_key(one) != content_key(other)


def test_encrypted_details_count_by_their_size() -> None:
    """They cost the tokens of the thought, which no counter sees."""
    [block] = decode(
        [{"role": "assistant", "reasoning_details": [{"type": "reasoning.encrypted", "data": "A" * 1_600}]}]
    )
    assert with_media(block, 0) == 300


def test_what_is_not_sent_again_is_kept_with_its_block() -> None:
    """A citation, who of several users spoke, and the sound of an answer, whose transcript is its text."""
    cited = [{"type": "url_citation", "url_citation": {"url": "https://example.org"}}]
    sound = {"id": "audio_1", "data": "AAAA", "transcript": "Hello.", "expires_at": 1}
    asked, said, spoken = decode(
        [
            {"role": "user", "name": "ann", "content": "Hi."},
            {"role": "assistant", "content": "See there.", "annotations": cited},
            {"role": "assistant", "content": None, "audio": sound},
        ]
    )
    assert (asked.meta, said.meta) == ({"name": "ann"}, {"citations": cited})
    assert (spoken.text, spoken.meta) == ("Hello.", {"audio": sound})
