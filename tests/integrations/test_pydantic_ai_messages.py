"""Pydantic AI's messages into blocks, and contexts into messages that its models take."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    BinaryImage,
    CachePoint,
    CompactionPart,
    DocumentUrl,
    FilePart,
    ImageUrl,
    InstructionDeltaPart,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from tests.depth import examples
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
from timeline.blocks import AssistantCompletion, Attachment, Block, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.integrations.pydantic_ai import usage_of
from timeline.integrations.pydantic_ai_messages import parted, parted_request, read_units, to_messages
from timeline.store.memory import MemoryStore
from timeline.usage import Usage
from timeline.wire.groups import OPENING_LINE
from timeline.wire.neutral import INTERRUPTED, Entry, NeutralContext

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

LAST: Final = ModelRequest([], instructions="Be brief.", run_id="r")


def blocks_of(*messages: ModelMessage, is_begun: bool = True) -> list[Block]:
    """Read messages, and leave the ids of responses out, which are made up where a response has none."""
    read = read_units(parted(messages).conversation, is_begun=is_begun)
    return [block.model_copy(update={"response_id": None}) for blocks in read for block in blocks]


def of_request(*parts: Any, is_begun: bool = True) -> list[Block]:
    """Read the parts of a request."""
    return blocks_of(ModelRequest(list(parts)), is_begun=is_begun)


def sent(context: NeutralContext, *given: ModelMessage) -> list[ModelMessage]:
    """Write a context."""
    return to_messages(context, parted(given), LAST)


def context_of(*entries: Entry) -> NeutralContext:
    """Return a context of entries."""
    return NeutralContext(entries=entries)


def parts_of(messages: list[ModelMessage]) -> list[Any]:
    """Return the parts of all messages."""
    return [part for message in messages for part in message.parts]


# Reading


def test_a_prompt_of_several_parts_is_several_blocks() -> None:
    """Texts are prompts, files are attached, and a cache point says nothing."""
    picture = BinaryContent(b"hi", media_type="image/png")
    said = UserPromptPart(["One.", picture, CachePoint(), TextContent("Two.", metadata={"a": 1})])
    assert of_request(said) == [
        UserPrompt(text="One."),
        Attachment(data=PICTURE, mime="image/png"),
        UserPrompt(text="Two."),
    ]


@pytest.mark.parametrize(
    "file",
    [
        BinaryImage(b"hi", media_type="image/png"),
        BinaryContent(b"hi", media_type="application/pdf"),
        BinaryContent(b"hi", media_type="audio/wav"),
        ImageUrl("https://a.org/b.png"),
        DocumentUrl("https://a.org/b.pdf"),
        AudioUrl("https://a.org/b.wav"),
    ],
    ids=lambda file: f"{file.kind} {file.media_type}",
)
def test_a_file_is_written_as_it_was_read(file: Any) -> None:
    """Whichever kind it is of, in a prompt and in a result."""
    [attached] = of_request(UserPromptPart([file]))
    entry = Entry(path="fi:a", type="user.attachment", role="user", data=attached.data)
    assert parts_of(sent(context_of(entry)))[0].content == [file]
    [returned] = of_request(ToolReturnPart("shoot", ["Here:", file], "a"))
    shown = result("a", returned.text, data=returned.data)
    written = parts_of(sent(context_of(prompt("a"), call("a"), shown)))[-1]
    assert (written.content, written.tool_call_id) == ([returned.text, file], "a")


def test_results_are_told_as_the_model_would_see_them() -> None:
    """Structured values as JSON, failures with their mark; a result that says there is none is left out."""
    assert of_request(ToolReturnPart("ls", {"files": ["a"]}, "a")) == [
        ToolResult(call_id="a", name="ls", text='{"files":["a"]}')
    ]
    for outcome in ("failed", "retried"):
        [failed] = of_request(ToolReturnPart("ls", "boom", "a", outcome=outcome))
        assert failed == ToolResult(call_id="a", name="ls", text="boom", is_error=True)
    assert of_request(ToolReturnPart("ls", "was stopped", "a", outcome="interrupted")) == []
    assert of_request(ToolReturnPart("ls", INTERRUPTED, "a"), UserPromptPart(OPENING_LINE)) == []


def test_feedback_of_the_framework_is_said_as_the_model_would_see_it() -> None:
    """A retry that answers no call."""
    feedback = RetryFeedbackPart("Too long.", retry=RetryInfo("model_retry", attempt=1, max_retries=2))
    [read] = of_request(UserPromptPart("a"), feedback)[1:]
    assert (read.type, read.author, read.text) == ("framework.retry", "user", feedback.model_response())


def test_a_response_keeps_its_parts_in_order() -> None:
    """Signed thinking in Anthropic's own form, other reasoning as the framework has it."""
    signed = ThinkingPart("hm", signature="c2ln", provider_name="anthropic")
    redacted = ThinkingPart("", id="redacted_thinking", signature="b3Bh", provider_name="anthropic")
    encrypted = ThinkingPart("Look.", id="rs_1", signature="gA==", provider_name="openai")
    said = ModelResponse(
        [
            signed,
            redacted,
            encrypted,
            TextPart("I look."),
            ToolCallPart("ls", '{"p": 1}', "a"),
            ToolCallPart("ls", '{"p', "b"),
        ]
    )
    read = blocks_of(said)
    assert [block.data for block in read[:2]] == [THINKING, {"type": "redacted_thinking", "data": "b3Bh"}]
    assert read[2].text == "Look."
    assert read[3:] == [
        AssistantCompletion(text="I look."),
        ToolCall(call_id="a", name="ls", arguments={"p": 1}),
        ToolCall(call_id="b", name="ls", arguments='{"p'),
    ]
    entries = [Entry(path="r", type=b.type, role="assistant", text=b.text, data=b.data) for b in read[:3]]
    assert list(sent(context_of(prompt("a"), *entries, answer("I look.")))[1].parts)[:3] == [
        signed,
        redacted,
        encrypted,
    ]


def test_parts_that_only_their_provider_understands_are_kept() -> None:
    """They are in the log, and go back with their own response alone."""
    searched = NativeToolCallPart("web_search", {"q": "a"}, "s", provider_name="openai")
    own = CompactionPart(id="c", provider_name="openai", provider_details={"encrypted_content": "x"})
    said = ModelResponse([searched, own, TextPart("Found.")])
    assert [block.type for block in blocks_of(said)] == ["assistant.part", "assistant.part", "assistant.completion"]
    asked = ModelRequest([UserPromptPart("Look")])
    assert sent(context_of(prompt("Look"), answer("Found.")), asked, said)[1] is said


def test_a_file_that_the_model_made_is_attached_to_its_response() -> None:
    """A picture is told in a line where it cannot go back as what it was."""
    drawn = ModelResponse([FilePart(BinaryContent(b"hi", media_type="image/png"))])
    [block] = blocks_of(drawn)
    assert (block.author, block.data) == ("assistant", PICTURE)


def test_what_may_be_something_of_the_history_rewritten_is_no_addition() -> None:
    """Where another capability masks a prompt, or answers a call, its words are the conversation's."""
    asked, answered = UserPromptPart("I am Ada."), ModelResponse([TextPart("Hello.")])
    history: list[Any] = [ModelRequest([asked]), answered, ModelRequest([UserPromptPart("Look.")])]
    masked = UserPromptPart("I am X.")
    found = parted_request([ModelRequest([masked]), *history[1:]], history)
    assert (found.conversation[0], found.leading, found.passing) == (masked, [], [])
    result = ToolReturnPart("bash", "cut off", "c1")
    found = parted_request([*history[:-1], ModelRequest([*history[-1].parts, result])], history)
    assert (found.conversation[-1], found.leading, found.passing) == (result, [], [])
    copies = deepcopy(history)
    assert parted_request(copies, history).conversation == parted(copies).conversation


def test_a_summary_of_the_applications_is_kept_only_where_it_is_all_that_there_is() -> None:
    """The log holds what it stands for, unless the log has only begun."""
    assert of_request(CompactionPart("They talked.")) == []
    [kept] = of_request(CompactionPart("They talked."), is_begun=False)
    assert (kept.author, kept.text) == ("user", "They talked.")


def test_system_prompts_that_a_history_begins_with_are_its_prefix() -> None:
    """A later one is part of the conversation, and one for a single request stays with that request."""
    once = SystemPromptPart("Three tokens left.", scope="request")
    history: list[ModelMessage] = [
        ModelRequest([SystemPromptPart("You code."), once, UserPromptPart("a")]),
        ModelResponse([TextPart("b")]),
        ModelRequest([SystemPromptPart("Be brief."), once, UserPromptPart("c")]),
    ]
    found = parted(history)
    assert [part.content for part in found.system] == ["You code."]  # type: ignore[union-attr]  # all of them are prompts
    assert found.bookkeeping == [once]
    assert blocks_of(*history)[2] == SystemMessage(text="Be brief.")


# Writing


@given(contexts(legal_entries()))
def test_what_is_written_is_read_back(context: NeutralContext) -> None:
    """Texts, calls, arguments and results survive; so does an error's mark."""
    bare = context.model_copy(update={"ephemeral": ()})
    read = blocks_of(*sent(bare))
    assert_survives(context.entries, read)
    failed = {b.call_id for b in read if isinstance(b, ToolResult) and b.is_error}
    assert failed == {e.call_id for e in context.entries if e.is_error}


@given(contexts(hostile_entries() | legal_entries()))
@settings(max_examples=examples(30))
def test_every_context_is_a_history_that_the_framework_takes(context: NeutralContext) -> None:
    """Whatever stands in a log: pairs are whole and in their places, nothing is empty, and all is said."""
    messages = sent(context)
    assert isinstance(messages[0], ModelRequest)
    assert isinstance(messages[-1], ModelRequest)
    assert (messages[-1].instructions, messages[-1].run_id) == ("Be brief.", "r")
    for message, following in pairwise(messages):
        calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
        results = [part.tool_call_id for part in following.parts if isinstance(part, ToolReturnPart)]
        assert isinstance(message, ModelResponse) or isinstance(following, ModelResponse)
        assert results[: len(calls)] == calls
        assert len(set(calls)) == len(calls)
        assert message.parts
    written = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    assert len(ModelMessagesTypeAdapter.validate_python(written)) == len(messages)
    assert_all_is_said(context, written)


@given(contexts(legal_entries()))
def test_the_runs_own_parts_go_out_where_they_say_the_same(context: NeutralContext) -> None:
    """A context that shows a whole history is that history, part by part."""
    bare = context.model_copy(update={"ephemeral": ()})
    history = sent(bare)
    given_ = [unit for unit in parted(history).conversation if not _is_ours(unit)]
    again = [unit for unit in parted(sent(bare, *history)).conversation if not _is_ours(unit)]
    assert len(again) == len(given_)
    assert all(one is other for one, other in zip(again, given_, strict=True))


def _is_ours(unit: Any) -> bool:
    return getattr(unit, "content", None) in (INTERRUPTED, OPENING_LINE)


def test_results_prompts_and_the_last_request_are_one_request() -> None:
    """Cache points, metadata and whatever else a part holds stay with it."""
    asked = UserPromptPart(["And?", CachePoint(ttl="1h")])
    returned = ToolReturnPart("bash", "done", "x", metadata={"secret": 1})
    history: list[ModelMessage] = [
        ModelRequest([UserPromptPart("a")]),
        ModelResponse([ToolCallPart("bash", {}, "x")]),
        ModelRequest([returned, asked]),
    ]
    again = sent(
        context_of(prompt("a"), call("x"), result("x"), prompt("And?", path="ar:turn_2.user.prompt")), *history
    )
    assert [part is own for part, own in zip(again[-1].parts, [returned, asked], strict=True)] == [True, True]


@pytest.mark.parametrize(("own", "again"), [("call_0", "call_0_2"), ("functions.ls:0", "functions_ls_0_dd50e5a0_2")])
async def test_calls_whose_ids_do_not_do_keep_what_the_provider_put_beside_them(own: str, again: str) -> None:
    """A server that counts its calls anew in each response signs them all the same: only the ids are others."""
    signed = ToolCallPart("ls", {}, own, provider_name="google", provider_details={"thought_signature": "c2ln"})
    answered = ModelResponse([ThinkingPart("", signature="s", provider_name="google"), signed], provider_name="google")
    history: list[ModelMessage] = [
        ModelRequest([UserPromptPart("a")]),
        answered,
        ModelRequest([ToolReturnPart("ls", "one", own, metadata={"n": 1})]),
        deepcopy(answered),
        ModelRequest([ToolReturnPart("ls", "two", own, metadata={"n": 2})]),
    ]
    timeline = await opened(MemoryStore())
    for blocks in read_units(parted(history).conversation, is_begun=True):
        await timeline.append(*blocks)
    messages = sent((await timeline.render()).neutral, *history)
    parts = [part for part in parts_of(messages) if isinstance(part, ToolCallPart | ToolReturnPart)]
    assert [part.tool_call_id for part in parts][2:] == [again, again]
    assert [part.provider_details for part in parts if isinstance(part, ToolCallPart)] == [signed.provider_details] * 2
    assert [part.metadata for part in parts if isinstance(part, ToolReturnPart)] == [{"n": 1}, {"n": 2}]
    assert history[3] == answered


def test_the_frameworks_own_parts_stand_at_the_head() -> None:
    """What became of its instructions is no part of the conversation, and no compaction loses it."""
    delta = InstructionDeltaPart(id=None, content="Be brief.")
    history = [ModelRequest([SystemPromptPart("You code."), UserPromptPart("a"), delta])]
    assert blocks_of(*history) == [UserPrompt(text="a")]
    assert list(sent(context_of(prompt("what was before")), *history)[0].parts)[:2] == [history[0].parts[0], delta]


def test_a_thought_behind_a_rewritten_prefix_is_left_out_and_so_is_its_response() -> None:
    """Its signature holds no more; in a tool loop it is still demanded."""
    said = ModelResponse([ThinkingPart("hm", signature="c2ln", provider_name="anthropic"), TextPart("Yes.")])
    for entry, is_sent in ((thought(rewritten=True), False), (thought(rewritten=True, in_loop=True), True)):
        kept = sent(context_of(prompt("a"), entry, answer("Yes.")), ModelRequest([UserPromptPart("a")]), said)[1]
        assert (kept is said) is is_sent
        assert any(isinstance(part, ThinkingPart) for part in kept.parts) is is_sent


def test_a_call_without_a_result_is_answered() -> None:
    """The line is fixed, so that what was sent before never changes."""
    [*_, answered] = parts_of(sent(context_of(prompt("a"), call("x"))))
    assert (answered.content, answered.outcome) == (INTERRUPTED, "interrupted")


def test_a_system_prompt_of_the_runs_stays_one_and_no_other_becomes_one() -> None:
    """Text of the log never speaks with the application's voice."""
    entry = Entry(path="bl:s", type="system.message", role="system", text="Be brief.")
    own = SystemPromptPart("Be brief.")
    history = ModelRequest([UserPromptPart("a"), own])
    assert parts_of(sent(context_of(prompt("a"), entry), history))[1] is own
    assert parts_of(sent(context_of(prompt("a"), entry)))[1].content == "[system message] Be brief."


def test_usage_counts_what_no_cache_answered() -> None:
    """The framework's input is the whole input."""
    told = RequestUsage(
        input_tokens=100, output_tokens=7, cache_read_tokens=60, cache_write_tokens=30, cache_write_1h_tokens=10
    )
    assert usage_of(told) == Usage(
        input_tokens=10, output_tokens=7, cache_read_tokens=60, cache_write_5m_tokens=20, cache_write_1h_tokens=10
    )
