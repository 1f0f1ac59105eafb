"""LangChain's messages into blocks, and contexts into messages that the chat models of all providers take."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_openai import ChatOpenAI

from tests.depth import examples
from tests.providers import openai_chat
from tests.scenes import opened
from tests.wire.entries import (
    PICTURE,
    THINKING,
    answer,
    assert_all_is_said,
    assert_survives,
    call,
    contexts,
    hostile_entries,
    legal_entries,
    prompt,
    result,
    thought,
)
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    Block,
    CustomBlock,
    Reasoning,
    ToolCall,
    ToolResult,
    UserPrompt,
)
from timeline.errors import InvalidBlock
from timeline.integrations.langchain import usage_of
from timeline.integrations.langchain_messages import divide_request, read_messages, to_messages
from timeline.store.memory import MemoryStore
from timeline.usage import Usage
from timeline.wire.groups import OPENING_LINE
from timeline.wire.neutral import INTERRUPTED, Entry, NeutralContext

OPTIONS: Final[dict[str, Any]] = {"model": "gpt-6", "api_key": "none", "use_responses_api": False}
MODEL: Final = ChatOpenAI(**OPTIONS)
BASE64: Final = "aGk="


def blocks_of(*messages: BaseMessage, is_begun: bool = True) -> list[Block]:
    """Read messages, and leave the ids of responses out, which are made up where a message has none."""
    read = [block for blocks in read_messages(messages, is_begun=is_begun) for block in blocks]
    return [block.model_copy(update={"response_id": None}) for block in read]


def sent(context: NeutralContext, *given: Any) -> list[Any]:
    """Write a context."""
    return to_messages(context, given)


def said_by_somebody(messages: list[Any]) -> list[Any]:
    """Leave out the fixed lines of our own."""
    return [message for message in messages if str(message.content) not in {INTERRUPTED, OPENING_LINE}]


def context_of(*entries: Entry) -> NeutralContext:
    """Return a context of entries."""
    return NeutralContext(entries=entries)


# Reading


@pytest.mark.parametrize(
    ("part", "data"),
    [
        ({"type": "image", "base64": BASE64, "mime_type": "image/png"}, PICTURE),
        ({"type": "image", "source_type": "base64", "data": BASE64, "mime_type": "image/png"}, PICTURE),
        (
            {"type": "image", "url": "https://a.org/b.png"},
            {"type": "image", "source": {"type": "url", "url": "https://a.org/b.png"}},
        ),
        (
            {"type": "file", "base64": BASE64, "mime_type": "application/pdf"},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": BASE64}},
        ),
        (PICTURE, PICTURE),
        ({"type": "audio", "base64": BASE64, "mime_type": "audio/wav"},) * 2,
        ({"type": "image_url", "image_url": {"url": "https://a.org/b.png"}},) * 2,
    ],
)
def test_pictures_and_files_are_kept_in_the_form_that_every_wire_knows(part: Any, data: Any) -> None:
    """What has no such form is kept as it is."""
    assert blocks_of(HumanMessage(["Look:", part]))[1].data == data
    [read] = blocks_of(ToolMessage([{"type": "text", "text": "a file"}, part], tool_call_id="a"))
    assert (read.text, read.data) == ("a file", [data])


def test_a_prompt_of_several_parts_is_several_blocks() -> None:
    """Texts are prompts, everything else is attached."""
    read = blocks_of(HumanMessage(["One.", {"type": "text", "text": "Two."}, PICTURE]))
    assert read == [UserPrompt(text="One."), UserPrompt(text="Two."), Attachment(data=PICTURE, mime="image/png")]


def test_a_response_of_anthropics_keeps_thoughts_and_places() -> None:
    """Signed thinking is kept byte for byte, save for the number that a stream left in it."""
    content: list[Any] = [
        {**THINKING, "index": 0},
        {"type": "tool_use", "id": "a", "name": "ls", "input": {}},
        {"type": "text", "text": "Now both.", "index": 2},
        {"type": "input_json_delta", "partial_json": "{}"},
    ]
    calls: Any = [{"id": "a", "name": "ls", "args": {"p": 1}}, {"id": "b", "name": "cat", "args": {}}]
    assert blocks_of(AIMessage(content, tool_calls=calls)) == [
        Reasoning(text="hm", data=THINKING),
        ToolCall(call_id="a", name="ls", arguments={"p": 1}),
        AssistantCompletion(text="Now both."),
        ToolCall(call_id="b", name="cat"),
    ]


def test_a_response_of_openais_keeps_encrypted_reasoning() -> None:
    """The text of its summary can be read, the item itself is kept."""
    item: Any = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look."}]}
    content: list[Any] = [{**item, "encrypted_content": "gA=="}, {"type": "refusal", "refusal": "No."}]
    read = blocks_of(AIMessage(content))
    assert read == [
        Reasoning(text="Look.", data={**item, "encrypted_content": "gA=="}),
        AssistantCompletion(text="No."),
    ]
    assert blocks_of(AIMessage("Yes.", additional_kwargs={"reasoning_content": "Hm."}))[0] == Reasoning(text="Hm.")


def test_what_langchain_keeps_beside_the_content_of_a_response_is_kept() -> None:
    """A refusal and a spoken answer of Chat Completions, and all but the text of a response in the older form."""
    assert blocks_of(AIMessage("", additional_kwargs={"refusal": "No."})) == [AssistantCompletion(text="No.")]
    assert blocks_of(AIMessage("Yes.", additional_kwargs={"refusal": None})) == [AssistantCompletion(text="Yes.")]
    audio = {"id": "au_1", "data": "gA==", "transcript": "Yes.", "expires_at": 9}
    [spoken] = blocks_of(AIMessage("", additional_kwargs={"audio": audio}))
    assert (spoken.text, spoken.meta) == ("Yes.", {"audio": audio})
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA=="}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    older = AIMessage("Found.", additional_kwargs={"reasoning": item, "tool_outputs": [search], "refusal": "No more."})
    assert blocks_of(older) == [
        Reasoning(data=item),
        CustomBlock(type="assistant.part", author="assistant", data=search),
        AssistantCompletion(text="Found."),
        AssistantCompletion(text="No more."),
    ]


@pytest.mark.parametrize("beside", [{"refusal": "No."}, {"audio": {"id": "au_1", "transcript": "No."}}])
def test_a_response_whose_text_is_beside_its_content_goes_back_as_it_came(beside: dict[str, Any]) -> None:
    """Its provider knows it by what stands there."""
    said = AIMessage("", additional_kwargs=beside)
    assert sent(context_of(prompt("Do it"), answer("No.")), HumanMessage("Do it"), said)[1] is said


def test_a_part_that_only_its_provider_understands_is_kept() -> None:
    """It is in the log, and goes back with its own message alone."""
    part: Any = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
    said = AIMessage([part, {"type": "text", "text": "Found."}])
    assert blocks_of(said)[0] == CustomBlock(type="assistant.part", author="assistant", data=part)
    [back] = sent(context_of(prompt("Look"), answer("Found.")), HumanMessage("Look"), said)[1:2]
    assert back is said


def test_calls_without_an_object_keep_their_text() -> None:
    """Half a JSON object was still what the model wrote."""
    broken: Any = [{"id": "a", "name": "ls", "args": '{"p": ', "error": None}]
    assert blocks_of(AIMessage("", invalid_tool_calls=broken)) == [ToolCall(call_id="a", name="ls", arguments='{"p": ')]


def test_a_failed_tool_is_told() -> None:
    """LangChain marks the result."""
    read = blocks_of(ToolMessage("boom", tool_call_id="a", name="ls", status="error"))
    assert read == [ToolResult(call_id="a", name="ls", text="boom", is_error=True)]


def test_lines_of_our_own_are_not_imported() -> None:
    """What a context said without the log having said it is no news when it comes back."""
    assert blocks_of(ToolMessage(INTERRUPTED, tool_call_id="a"), HumanMessage(OPENING_LINE)) == []


def test_what_other_middleware_cleared_is_read_from_the_state() -> None:
    """The agent's own message says it in full."""
    whole = ToolMessage("the whole result", tool_call_id="a", id="m2")
    cleared = whole.model_copy(
        update={"content": "[cleared]", "response_metadata": {"context_editing": {"cleared": True}}}
    )
    edited = HumanMessage("[an address]", id="m1")
    assert divide_request([edited, cleared], [HumanMessage("ada@a.org", id="m1"), whole]).conversation == [
        edited,
        whole,
    ]


def test_what_stands_in_no_state_is_said_for_this_once() -> None:
    """Other middleware adds a line to a request; a list without a state is a conversation all the same."""
    asked = HumanMessage("Look.", id="m1")
    repaired = ToolMessage("malformed", tool_call_id="a")
    told = divide_request(
        [SystemMessage("Be brief."), asked, {"role": "user", "content": "The files: a.py"}, repaired], [asked]
    )
    assert (told.leading, told.conversation, told.passing) == (
        [SystemMessage("Be brief.")],
        [asked, repaired],
        ["The files: a.py"],
    )
    assert divide_request([HumanMessage("Look.")], []).conversation == [HumanMessage("Look.")]


def test_an_exchange_in_front_of_the_state_is_part_of_the_prefix_with_the_system_messages_around_it() -> None:
    """A line alone is none, and neither is what stands where the state begins."""
    system, asked = SystemMessage("Be brief.", id="m0"), HumanMessage("Look.", id="m1")
    examples = [HumanMessage("1 + 1?"), AIMessage("2")]
    assert divide_request([*examples, system, asked], [system, asked])[:2] == ([*examples, system], [asked])
    assert divide_request([system, *examples, asked], [system, asked])[:2] == ([system, *examples], [asked])
    assert divide_request([system, examples[0], asked], [system, asked]) == ([system], [asked], ["1 + 1?"])
    assert divide_request([asked, examples[1]], [asked])[:2] == ([], [asked, examples[1]])


def test_a_summary_of_theirs_is_kept_only_where_it_is_all_that_there_is() -> None:
    """The log holds what it stands for, unless the log has only begun."""
    summary = HumanMessage("Here is a summary: …", additional_kwargs={"lc_source": "summarization"})
    assert blocks_of(summary) == []
    [kept] = blocks_of(summary, is_begun=False)
    assert (kept.author, kept.text) == ("user", "Here is a summary: …")


def test_a_message_of_another_kind_is_told_by_its_role() -> None:
    """LangChain has roles of anybody's."""
    assert blocks_of(ChatMessage(content="psst", role="critic")) == [
        CustomBlock(type="chat.message", author="critic", text="psst")
    ]
    with pytest.raises(InvalidBlock, match=r"messages\[1\]"):
        read_messages([HumanMessage("a"), "b"], is_begun=True)  # type: ignore[list-item]  # what a caller may give by mistake
    assert blocks_of(RemoveMessage("m1")) == []


# Writing


@given(contexts(legal_entries()))
def test_what_is_written_is_read_back(context: NeutralContext) -> None:
    """Texts, calls, arguments and results survive; so does an error's mark."""
    bare = context.model_copy(update={"ephemeral": ()})
    read = blocks_of(*to_messages(bare, ()))
    assert_survives(context.entries, read)
    failed = {b.call_id for b in read if isinstance(b, ToolResult) and b.is_error}
    assert failed == {e.call_id for e in context.entries if e.is_error}


@given(contexts(hostile_entries() | legal_entries()))
@settings(max_examples=examples(60))
def test_every_context_is_a_request_that_the_provider_takes(context: NeutralContext) -> None:
    """Whatever stands in a log: pairs are whole, ids are the provider's, nothing is empty, and all is said."""
    messages = to_messages(context, ())
    assert messages[-1].type != "ai"
    assert messages[0].type == "human"
    payload = json.loads(json.dumps(MODEL._get_request_payload(messages)))
    for message in payload["messages"]:
        if isinstance(message.get("content"), list):  # what a caller attached is the caller's own
            message["content"] = [part for part in message["content"] if part["type"] == "text"] or "attached"
    openai_chat.WIRE.check({"model": "m", "messages": payload["messages"]})
    assert_all_is_said(context, [message.content for message in messages])


@given(contexts(legal_entries()))
def test_the_callers_own_messages_go_out_where_they_say_the_same(context: NeutralContext) -> None:
    """A context that shows a whole history is that history, object by object."""
    bare = context.model_copy(update={"ephemeral": ()})
    history = said_by_somebody(to_messages(bare, ()))
    again = said_by_somebody(to_messages(bare, history))
    assert len(again) == len(history)
    assert all(one is other for one, other in zip(again, history, strict=True))


def test_ids_that_come_twice_are_told_apart() -> None:
    """A server that counts its calls anew in each response still has pairs."""
    context = context_of(
        prompt("a"),
        call("call_0", response_id="r1", group=1),
        result("call_0", "one", group=1),
        call("call_0", response_id="r2", group=2),
        result("call_0", "two", group=2),
    )
    messages = sent(context)
    ids = [m.tool_calls[0]["id"] for m in messages if isinstance(m, AIMessage)]
    assert [(m.tool_call_id, m.content) for m in messages if isinstance(m, ToolMessage)] == list(
        zip(ids, ["one", "two"], strict=True)
    )
    assert len(set(ids)) == 2


@pytest.mark.parametrize(("own", "again"), [("call_0", "call_0_2"), ("functions.ls:0", "functions_ls_0_dd50e5a0_2")])
async def test_calls_whose_ids_do_not_do_keep_what_the_provider_put_beside_them(own: str, again: str) -> None:
    """A server that counts its calls anew in each response signs them all the same: only the ids are others."""
    asked: dict[str, Any] = {"name": "ls", "args": {"id": own}, "id": own}
    raw = {"id": own, "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    beside = {"tool_calls": [raw], "__gemini_function_call_thought_signatures__": {own: "c2ln"}}
    used = {"type": "tool_use", "id": own, "name": "ls", "input": {"id": own}}
    history: list[Any] = [HumanMessage("a")]
    for number in (1, 2):
        said = AIMessage(
            [THINKING, used], tool_calls=[asked], additional_kwargs=beside, response_metadata={"n": number}
        )
        history += [said, ToolMessage("done", tool_call_id=own, name="ls", artifact=number)]
    before = [message.model_copy(deep=True) for message in history]
    timeline = await opened(MemoryStore())
    for blocks in read_messages(history, is_begun=True):
        await timeline.append(*blocks)
    *_, message, result_ = sent((await timeline.render()).neutral, *history)
    assert history == before
    assert message == said.model_copy(
        update={
            "content": [THINKING, {**used, "id": again}],
            "tool_calls": [{**said.tool_calls[0], "id": again}],
            "additional_kwargs": {
                "tool_calls": [{**raw, "id": again}],
                "__gemini_function_call_thought_signatures__": {again: "c2ln"},
            },
        }
    )
    assert result_ == history[-1].model_copy(update={"tool_call_id": again})


def test_a_call_without_a_result_is_answered() -> None:
    """The line is fixed, so that what was sent before never changes."""
    assert sent(context_of(prompt("a"), call("x")))[-1].content == INTERRUPTED


def test_thoughts_keep_their_places_among_calls() -> None:
    """A provider that signed them demands the turn back as it was."""
    shared: dict[str, Any] = {"response_id": "r"}
    message = sent(context_of(prompt("a"), thought(**shared), call("x", **shared), result("x")))[1]
    assert message.content == [THINKING, {"type": "tool_use", "id": "x", "name": "bash", "input": {}}]
    assert [call_["id"] for call_ in message.tool_calls] == ["x"]


def test_a_thought_behind_a_rewritten_prefix_is_left_out_and_so_is_its_message() -> None:
    """Its signature holds no more; in a tool loop it is still demanded."""
    said = AIMessage([THINKING, {"type": "text", "text": "Yes."}])
    for entry, is_sent in ((thought(rewritten=True), False), (thought(rewritten=True, in_loop=True), True)):
        kept = sent(context_of(prompt("a"), entry, answer("Yes.")), HumanMessage("a"), said)[1]
        assert (kept is said) is is_sent
        assert ("thinking" in str(kept.content)) is is_sent


def test_pictures_are_written_as_standard_blocks() -> None:
    """Every chat model of LangChain's takes these."""
    picture = Entry(path="fi:a", type="user.attachment", role="user", data=PICTURE)
    [message] = sent(context_of(picture))
    assert message.content == [{"type": "image", "base64": BASE64, "mime_type": "image/png"}]


def test_a_system_message_of_the_callers_stays_one_and_no_other_becomes_one() -> None:
    """Text of the log never speaks with the application's voice."""
    entry = Entry(path="bl:s", type="system.message", role="system", text="Be brief.")
    own = SystemMessage("Be brief.")
    assert sent(context_of(prompt("a"), entry), HumanMessage("a"), own)[1] is own
    assert sent(context_of(prompt("a"), entry))[1] == HumanMessage("[system message] Be brief.")


# Usage


@pytest.mark.parametrize(
    ("details", "usage"),
    [
        ({}, Usage(input_tokens=100, output_tokens=7)),
        ({"cache_read": 60}, Usage(input_tokens=40, output_tokens=7, cache_read_tokens=60)),
        (
            {"cache_read": 60, "cache_creation": 30},
            Usage(input_tokens=10, output_tokens=7, cache_read_tokens=60, cache_write_5m_tokens=30),
        ),
        (
            {"cache_creation": 0, "ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 50},
            Usage(input_tokens=30, output_tokens=7, cache_write_5m_tokens=20, cache_write_1h_tokens=50),
        ),
        (
            {"priority_cache_read": 60, "priority_cache_creation": 30, "priority": 40},
            Usage(input_tokens=10, output_tokens=7, cache_read_tokens=60, cache_write_5m_tokens=30),
        ),
        ({"flex_cache_read": 60, "flex": 40}, Usage(input_tokens=40, output_tokens=7, cache_read_tokens=60)),
    ],
)
def test_usage_counts_what_no_cache_answered(details: Any, usage: Usage) -> None:
    """LangChain's input is the whole input."""
    told: Any = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107, "input_token_details": details}
    assert usage_of(AIMessage("a", usage_metadata=told)) == usage
    assert usage_of(AIMessage("a")) == Usage()
