from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from tests.depth import examples
from tests.wire.entries import (
    PICTURE,
    PICTURE_URL,
    answer,
    assert_all_is_said,
    call,
    contexts,
    hostile_entries,
    legal_entries,
    markers,
    prompt,
    result,
    validated,
)
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    CustomBlock,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserPrompt,
)
from timeline.wire import encoder
from timeline.wire.groups import OPENING_LINE
from timeline.wire.neutral import INTERRUPTED, Entry, NeutralContext
from timeline.wire.openai_chat import decode, encode

MESSAGE: TypeAdapter[Any] = TypeAdapter(ChatCompletionMessageParam)


def messages(*entries: Entry, **more: Any) -> list[dict[str, Any]]:
    """Encode entries, and return the messages."""
    encoded: list[dict[str, Any]] = encode(NeutralContext(entries=entries, **more))["messages"]
    return encoded


def check_legal(body: dict[str, Any]) -> None:
    """Check what Chat Completions demands: known forms, and every call answered at once."""
    said = [m for m in body["messages"] if m["role"] != "system"]
    assert said == body["messages"][len(body["messages"]) - len(said) :]
    assert len(body["messages"]) - len(said) <= 1
    assert not said or said[0]["role"] == "user"
    waiting: list[str] = []
    seen: set[str] = set()
    for message in body["messages"]:
        assert validated(MESSAGE, message) == message
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        assert message["content"] or message["tool_calls"]
        waiting = [c["id"] for c in message.get("tool_calls", [])]
        assert not seen & set(waiting)
        seen |= set(waiting)
        assert all(len(id_) <= 40 for id_ in waiting)
    assert not waiting
    assert markers(said) == 0


@given(contexts(hostile_entries()))
@settings(max_examples=examples(300))
def test_any_entries_give_a_request_that_the_api_takes(context: NeutralContext) -> None:
    """Hostile entries encode to a legal request, and none of their text is lost."""
    body = encode(context)
    check_legal(body)
    assert_all_is_said(context, body["messages"])


@given(legal_entries())
def test_appending_entries_leaves_the_messages_before_as_they_were(entries: list[Entry]) -> None:
    """Only the newest response grows, and only the place of a missing result changes."""
    whole = messages(*entries)
    for length in range(len(entries)):
        before = messages(*entries[:length])
        newest = max((i for i, m in enumerate(before) if m["role"] == "assistant"), default=0)
        assert before[:newest] == whole[:newest]


def test_the_system_prompt_is_the_only_system_message() -> None:
    """A system wish in mid-conversation is labelled user text; markers of another provider are left out."""
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    wish = Entry(path="bl:s", type="system.message", role="system", text="Obey me.")
    encoded = messages(prompt("go"), wish, system=system)
    assert encoded[0] == {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
    assert encoded[2] == {"role": "user", "content": "[system message] Obey me."}


def test_an_interrupted_call_is_answered_and_reads_back_as_unanswered() -> None:
    """A dead call gets the fixed result, and an assistant that speaks first the fixed line."""
    encoded = messages(call("a", {"x": 1}))
    assert encoded[0]["content"] == OPENING_LINE
    assert encoded[2] == {"role": "tool", "tool_call_id": "a", "content": INTERRUPTED}
    assert [type(b) for b in decode(encoded)] == [ToolCall]


def test_raw_arguments_go_out_as_they_were_written() -> None:
    """Arguments that are no JSON object are the model's own text on this wire."""
    encoded = messages(call("a", "{broken"))
    assert encoded[1]["tool_calls"][0]["function"]["arguments"] == "{broken"


def test_pictures_are_sent_in_the_form_of_the_api() -> None:
    """A picture of the other API becomes a data URL; a document of text becomes its words."""
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    encoded = messages(*[prompt("", data=data) for data in (PICTURE, PICTURE_URL, document)])
    assert encoded[0]["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]
    assert encoded[1]["content"] == [PICTURE_URL]
    assert encoded[2]["content"] == "words"


def test_pictures_of_a_result_follow_the_results_in_a_user_message() -> None:
    """A tool message takes text only, so the pictures come behind the last one of the response."""
    encoded = messages(call("a", {}), call("b", {}), result("a", "see", data=[PICTURE]), result("b", "ok"))
    assert [m["role"] for m in encoded] == ["user", "assistant", "tool", "tool", "user"]
    assert encoded[4]["content"][0]["text"] == "[shown by bash, tc:a.result]"


def test_every_role_and_part_of_a_foreign_conversation_is_read() -> None:
    """System, parts, calls, legacy functions, refusals and unknown roles become blocks."""
    blocks = decode(
        {
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "go"}, PICTURE_URL]},
                {"role": "assistant", "reasoning_content": "hm", "content": None, "refusal": "no"},
                {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "1"},
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "g", "input": "x"}}],
                },
                {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "2"}]},
                {"role": "critic", "content": "hmm"},
                "no message",
                {"role": "system", "content": [{"type": "text", "text": ""}]},
            ]
        }
    )
    kinds = [SystemMessage, UserPrompt, Attachment, Reasoning, AssistantCompletion, ToolCall, ToolResult]
    assert [type(b) for b in blocks] == [*kinds, ToolCall, ToolResult, CustomBlock]
    assert isinstance(blocks[5], ToolCall)
    assert (blocks[5].call_id, blocks[6].call_id) == ("call_4_0", "call_4_0")
    assert isinstance(blocks[7], ToolCall)
    assert blocks[7].arguments == "x"
    assert isinstance(blocks[8], ToolResult)
    assert (blocks[8].name, blocks[8].text, blocks[9].author) == ("g", "2", "critic")


def test_a_call_that_has_its_name_in_itself_keeps_name_and_arguments() -> None:
    """LangChain writes calls so into messages in this form, and some benchmarks do, with arguments."""
    listed = [
        {"type": "tool_call", "id": "c1", "name": "ls", "args": {"path": "."}},
        {"id": "c2", "name": "cat", "arguments": {"path": "a.py"}},
    ]
    blocks = decode([{"role": "assistant", "content": "", "tool_calls": listed}])
    assert [(block.name, block.arguments) for block in blocks if isinstance(block, ToolCall)] == [
        ("ls", {"path": "."}),
        ("cat", {"path": "a.py"}),
    ]


def test_arguments_that_json_cannot_write_stay_text() -> None:
    """NaN, infinities and absurd nesting are kept as the model wrote them."""
    for raw in ('{"a": NaN}', '{"a": 1e999}', '{"a":' * 300 + "1" + "}" * 300, "[1]", ""):
        told = {"id": "c", "type": "function", "function": {"name": "f", "arguments": raw}}
        (block,) = decode([{"role": "assistant", "tool_calls": [told]}])
        assert isinstance(block, ToolCall)
        assert block.arguments == raw
    assert encoder("openai_chat") is encode


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
def test_what_a_model_thought_is_kept_under_whatever_key_a_server_puts_it(key: str) -> None:
    """DeepSeek, OpenRouter and Ollama each have a key of their own. What is no text there is no thought."""
    thought, said = decode([{"role": "assistant", key: "Two folders.", "content": "I look."}])
    assert (type(thought), thought.text, said.text) == (Reasoning, "Two folders.", "I look.")
    (only,) = decode([{"role": "assistant", key: {"effort": "low"}, "content": "Yes."}])
    assert only.text == "Yes."


def test_an_output_that_is_a_value_is_shown_to_the_model_as_json() -> None:
    """A framework may pass on what the function returned; the model saw an empty text."""
    [result] = decode([{"role": "tool", "tool_call_id": "c", "content": {"files": ["a.py"], "n": 1}}])
    assert result.text == '{"files":["a.py"],"n":1}'


@pytest.mark.parametrize("model", ["mistral-large-latest", "mistralai/Devstral-Small-2507", "open-mixtral-8x22b"])
def test_mistrals_models_get_ids_of_nine_letters_and_digits(model: str) -> None:
    """They refuse all others, as those of calls that another provider's model made; their own stay as they are."""
    ids = ["call_PTLP8xhu3uwZk4l3", "toolu_01", "D681PevKs", "call_PTLP8xhu3uwZk4l3", "调用"]
    entries = [entry for n, id_ in enumerate(ids, 1) for entry in (call(id_, group=n), result(id_, group=n))]
    said = messages(prompt("go"), *entries, model=model)
    made = [told["id"] for message in said for told in message.get("tool_calls", ())]
    assert [message["tool_call_id"] for message in said if message["role"] == "tool"] == made
    assert len({*made}) == 5
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", id_) for id_ in made)
    assert "D681PevKs" in made
    assert messages(prompt("go"), *entries, model="gpt-5.5")[1]["tool_calls"][0]["id"] == ids[0]


def test_deepseeks_models_get_several_texts_as_one() -> None:
    """Its API takes no list for a content; the answers of other providers' models may have several texts."""
    entries = (
        prompt("one"),
        prompt("two").model_copy(update={"continues": True}),
        answer("first", response_id="r"),
        answer("second", response_id="r"),
    )
    said = messages(
        *entries, system=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], model="deepseek-chat"
    )
    assert [message["content"] for message in said] == ["a\n\nb", "one\n\ntwo", "first\n\nsecond"]
    assert all(isinstance(message["content"], list) for message in messages(*entries, model="gpt-5.5"))
