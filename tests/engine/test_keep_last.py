"""Seed 001 through the public API: what counts, when a compaction is due, what stays, and what a model is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.providers.script import Answer
from tests.providers.server import FakeProvider
from tests.providers.summarizing import SUMMARIZERS
from tests.scenes import Mute, Scribe, answer, call, exchange, opened, payloads_of, prompt, result, turn, words
from timeline import Timeline, compact_messages, open_store, policies
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserPrompt,
)
from timeline.errors import CompactionRefused, StoreFull
from timeline.store.memory import MemoryStore
from timeline.summarizers import CallableSummarizer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from pydantic import JsonValue

    from timeline import Policy
    from timeline.blocks import Block
    from timeline.ports import Summary, SummaryRequest

SYSTEM: Final = "You are an agent."
TASK: Final = "Build a flashcard app"


def asked_model() -> tuple[list[str], Callable[[str], Awaitable[str]]]:
    """Return the prompts of a model that answers with the design's first heading, and the model."""
    prompts: list[str] = []

    async def model(prompt: str) -> str:
        prompts.append(prompt)
        return "### Original Task\nx"

    return prompts, model


async def tokens_of(*blocks: Block) -> int:
    """Return what a conversation of these blocks costs under the design, the system prompt not included."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last())
    await timeline.append(*blocks)
    return (await timeline.render()).account.messages


def talk(count: int, characters: int = 4_000) -> list[Block]:
    """Return messages of user and assistant in turn."""
    return [
        UserPrompt(text="q" * characters) if n % 2 == 0 else AssistantCompletion(text="a" * characters)
        for n in range(count)
    ]


def shown(timeline: Timeline) -> list[str]:
    """Return what of each path comes behind its turn."""
    return [item.block.path.split(".", 1)[1] for item in timeline.window.items]


# What counts


@pytest.mark.shows("001-1", "001-3", "001-56", "R-001-1", "R-001-3")
@pytest.mark.parametrize(
    ("characters", "tokens"), [(1, 1), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3), (13, 4), (4_001, 1_001)]
)
async def test_a_message_is_a_quarter_of_its_characters_rounded_up_and_two(characters: int, tokens: int) -> None:
    """Never below a quarter: five characters are two tokens, and a message two more."""
    assert await tokens_of(UserPrompt(text="x" * characters)) == tokens + 2
    assert tokens * 4 >= characters


@pytest.mark.shows("001-1", "001-3", "R-001-1", "R-001-3")
async def test_a_system_prompt_is_counted_as_the_first_of_the_messages() -> None:
    """Seventeen characters are five tokens, and the message two; without a system prompt there is no such message."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last())
    await timeline.append(prompt())
    assert (await timeline.render(system=SYSTEM)).account.fixed.system == 5 + 2
    assert (await timeline.render()).account.fixed.system == 0


@pytest.mark.shows("001-2", "R-001-2")
async def test_what_has_no_text_costs_its_message_alone() -> None:
    """An attachment that is a picture only, beside a prompt of one token."""
    picture = Attachment(mime="image/png", data=[{"type": "text", "text": "bytes"}])
    assert await tokens_of(UserPrompt(text="look"), picture) == 1 + 0 + 2
    assert await tokens_of(UserPrompt(text="look"), AssistantCompletion()) == 1 + 2 + 0 + 2


@pytest.mark.shows("001-3", "001-4", "001-5", "R-001-4")
async def test_a_response_of_several_parts_is_one_message() -> None:
    """Text, two calls with their names and arguments as JSON: each part rounded up, two tokens for the message."""
    calls = [ToolCall(call_id=c, name="Write", arguments={"b": 1, "a": "x"}, response_id="m") for c in "pq"]
    said = AssistantCompletion(text="hello", response_id="m")
    results = [ToolResult(call_id=c, text="ok") for c in "pq"]
    # "Write" and {"a":"x","b":1}, of 5 and 15 characters, are 2 + 4 tokens; "ok" with its quotes has 4 characters
    assert await tokens_of(UserPrompt(text="go"), said, *calls, *results) == (1 + 2) + (2 + 6 + 6 + 2) + 2 * (1 + 2)


@pytest.mark.shows("001-5", "R-001-4")
@pytest.mark.parametrize(
    ("name", "arguments", "tokens"),
    [
        ("run", {}, 1 + 1),
        ("Write", {}, 2 + 1),  # seven characters together, which are two
        ("edit_file", {"p": 1}, 3 + 2),  # sixteen, which are four
        ("run", {"a": "x", "b": 1}, 1 + 4),
        ("read", {"path": "é\n"}, 1 + 4),  # a line break is escaped
    ],
)
async def test_a_calls_name_and_arguments_are_each_rounded_up(
    name: str, arguments: dict[str, JsonValue], tokens: int
) -> None:
    """Each is a text of its own in the design's count."""
    told = [UserPrompt(text="go"), ToolCall(call_id="c", name=name, arguments=arguments), ToolResult(call_id="c")]
    assert await tokens_of(*told) == (1 + 2) + (tokens + 2) + (1 + 2)


@pytest.mark.shows("001-6", "R-001-4")
@pytest.mark.parametrize(
    ("text", "as_json"),
    [("abcd", '"abcd"'), ("a\nb\nc\nd", '"a\\nb\\nc\\nd"'), ('{"a": 1}', '"{\\"a\\": 1}"'), ("", '""')],
)
async def test_a_result_counts_as_its_json_string(text: str, as_json: str) -> None:
    """Quotes and escapes included: four characters are six, and two tokens."""
    without = await tokens_of(UserPrompt(text="go"), ToolCall(call_id="c", name="run"), ToolResult(call_id="c"))
    told = await tokens_of(UserPrompt(text="go"), ToolCall(call_id="c", name="run"), ToolResult(call_id="c", text=text))
    assert told - without == -(-len(as_json) // 4) - 1  # an empty result is two characters: one token


@pytest.mark.shows("001-6")
async def test_a_structured_result_is_counted_as_the_text_that_is_sent() -> None:
    """The AI SDK's JSON output is kept, and sent, as its text, so its quotes are escaped; each result is a message."""
    value = {"a": 1, "b": [1, 2, 3], "text": 'hello "x"'}
    calls = [{"type": "tool-call", "toolCallId": c, "toolName": "run", "input": {}} for c in "pq"]
    results = [
        {"type": "tool-result", "toolCallId": c, "toolName": "run", "output": {"type": "json", "value": value}}
        for c in "pq"
    ]
    timeline = await opened(MemoryStore(), policy=policies.keep_last())
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": calls}]
    await timeline.append_messages([*said, {"role": "tool", "content": results}], wire="ai_sdk")
    context = await timeline.render()
    sent = [entry.text for entry in context.neutral.entries if entry.type == "react.tool.result"]
    assert [json.loads(text) for text in sent] == [value, value]
    quarters = [-(-len(json.dumps(text)) // 4) for text in sent]
    assert context.account.by_category["results"] == sum(quarters) + 2 * 2


@pytest.mark.shows("001-4")
async def test_what_is_sent_beside_texts_calls_and_results_counts_too() -> None:
    """A thought of 400 characters, and the result that a provider demands of a call without one."""
    thought = Reasoning(text="abcd" * 100, response_id="m")
    said = AssistantCompletion(text="abcd", response_id="m")
    assert await tokens_of(UserPrompt(text="abcd"), thought, said) == (1 + 2) + (100 + 1 + 2)
    answered = await tokens_of(UserPrompt(text="go"), ToolCall(call_id="c", name="run"), ToolResult(call_id="c"))
    open_call = await tokens_of(UserPrompt(text="go"), ToolCall(call_id="c", name="run"))
    assert open_call == answered - (1 + 2) + 15


PICTURE: Final[dict[str, Any]] = {
    "role": "user",
    "content": [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}},
    ],
}
"""A message of the user's with a picture that says nothing of its size."""


@pytest.mark.shows("001-4")
async def test_a_picture_counts_and_is_sent() -> None:
    """One token of text, two of the message, and 1,600 of a picture whose size is not known; the design counts none."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last())
    await timeline.append_messages([PICTURE], wire="openai_chat")
    context = await timeline.render()
    assert context.account.by_category == {"prompts": 1 + 2 + 1_600}
    assert context.to_openai_chat()["messages"] == [PICTURE]


@pytest.mark.shows("001-4")
async def test_every_kind_of_content_is_in_the_account() -> None:
    """Prompts, completions, calls, results and what the system says, each with its message's two tokens."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last())
    await timeline.append(prompt(10), Reasoning(text="abcd" * 3), answer(20), call("c", "run"), result("c", 30))
    await timeline.append(SystemMessage(text="abcd" * 7))
    account = (await timeline.render()).account
    assert account.by_category == {
        "prompts": 10 + 2,
        "reasoning": 3 + 2,
        "completions": 20,
        "calls": 2,
        "results": 31 + 2,  # 120 characters and two quotes
        "other": 7 + 2,
    }
    assert account.messages == sum(account.by_category.values())


TWO_PARTS: Final = {"role": "user", "content": [{"type": "text", "text": "abcd"}, {"type": "text", "text": "efgh"}]}
"""A message of the user's in two parts."""


@pytest.mark.shows("001-3", "001-12", "001-15", "R-001-3")
@pytest.mark.parametrize("wire", ["openai_chat", "ai_sdk", "anthropic"])
async def test_a_message_of_two_parts_is_one_message(wire: Any) -> None:
    """Each part is rounded up, and two tokens are added once; eleven such messages are never compacted."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last())
    await timeline.append_messages([TWO_PARTS], wire=wire)
    assert (await timeline.render()).account.messages == 1 + 1 + 2
    parts = [{"type": "text", "text": text * 4_000} for text in "pq"]
    said: list[Any] = [{"role": "user", "content": parts}, {"role": "assistant", "content": "a" * 4_000}]
    messages: list[Any] = [said[0], {"role": "assistant", "content": "a" * 40_000}, *said * 5]
    policy = policies.keep_last(max_tokens=43_000)  # due from 25,600 tokens on
    assert (await compact_messages(messages[:11], policy, wire=wire, summarizer=Scribe())).messages == messages[:11]
    done = await compact_messages(messages, policy, wire=wire, summarizer=Scribe())
    [taken] = done.decisions
    assert (taken.kind, taken.facts["messages"]) == ("compacted", 1)
    assert done.messages[-10:] == messages[2:]


# When it is due


@pytest.mark.shows("001-8", "R-001-5")
@pytest.mark.parametrize(("more", "due"), [(0, False), (1, True)])
async def test_tools_do_not_count_towards_the_threshold(more: int, *, due: bool) -> None:
    """Tools of more than 20,000 tokens beside 93,599 of messages: all is sent, and the limit of 128,000 holds."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Scribe())
    left = 93_599 - (5 + 2) - 12 * 2 - 11 * 7_000
    await timeline.append(*talk(11, 28_000), UserPrompt(text="q" * 4 * (left + more)))
    context = await timeline.render(system=SYSTEM, tools=[{"name": "x" * 80_000}])
    assert context.account.fixed.tools > 20_000
    assert [taken.kind for taken in context.decisions] == (["compacted"] if due else [])


@pytest.mark.shows("001-69")
@pytest.mark.parametrize(
    ("changes", "line", "kept"),
    [
        ({"max_tokens": 50_000}, 31_200, 10),
        ({"trigger": {"system_reserve": 12_000}}, 85_600, 10),
        ({"trigger": {"output_reserve": 14_000}}, 85_600, 10),
        ({"trigger": {"safety_buffer": 15_000}}, 85_600, 10),
        ({"trigger": {"share": 0.5}}, 58_500, 10),
        ({"messages": 4}, 93_600, 4),
    ],
)
async def test_each_of_the_six_figures_can_be_set(changes: dict[str, Any], line: int, kept: int) -> None:
    """The limit, three reserves and the share make the line, one at a time; the last is the messages that stay."""
    for total, due in ((line - 1, False), (line, True)):
        timeline = await opened(MemoryStore(), policy=policies.keep_last(**changes), summarizer=Scribe())
        each = line // 15
        last = total - (5 + 2) - 14 * 2 - 13 * each
        await timeline.append(*talk(13, 4 * each), UserPrompt(text="q" * 4 * last))
        context = await timeline.render(system=SYSTEM)
        assert [taken.kind for taken in context.decisions] == (["compacted"] if due else [])
        assert len(context.neutral.entries) == (1 + kept if due else 14)


@pytest.mark.shows("001-7", "001-8", "001-13", "R-001-5")
@pytest.mark.parametrize(("more", "due"), [(0, False), (1, True)])
async def test_it_is_due_from_93600_tokens_on(more: int, *, due: bool) -> None:
    """System prompt of 5 + 2 tokens and twelve messages: at 93,599 all is sent, at 93,600 it is compacted."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Scribe())
    left = 93_599 - (5 + 2) - 12 * 2 - 11 * 7_000
    await timeline.append(*talk(11, 28_000), UserPrompt(text="q" * 4 * (left + more)))
    context = await timeline.render(system=SYSTEM)
    assert [taken.kind for taken in context.decisions] == (["compacted"] if due else [])
    if not due:
        assert context.account.fixed.system + context.account.messages == 93_599


@pytest.mark.shows("001-9", "001-12", "R-001-7")
@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("gpt-4o", 93_600),
        ("gpt-4-turbo", 93_600),
        ("gpt-4", 0),  # its reserves are larger than its window: ten messages are sent, of more the oldest give way
        ("claude-3-5-sonnet-20240620", 151_200),
        ("claude-3-haiku-20240307", 151_200),
        ("mystery", 93_600),
    ],
)
async def test_each_model_of_the_table_has_a_line_of_its_own(model: str, line: int) -> None:
    """Ten messages come back as they are whatever they take of the window; of fourteen four are compacted."""
    policy = policies.keep_last(model=model)
    few = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    window = policy.max_tokens
    await few.append(*talk(10, 4 * (window // 10 - 10)))
    context = await few.render(system=SYSTEM)
    assert (len(few.window.items), context.account.sent) == (10, 5 + 2 + 10 * (window // 10 - 8))
    many = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    below, above = max(0, line - (5 + 2) - 14 * 2 - 1) // 14, max(500, line // 14)
    if line:
        await many.append(*talk(14, 4 * below))
        assert (await many.render(system=SYSTEM)).decisions == ()
        many = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await many.append(*talk(14, 4 * above))
    context = await many.render(system=SYSTEM)
    assert [(taken.kind, taken.facts["messages"]) for taken in context.decisions] == [("compacted", 4)]
    assert len(context.neutral.entries) == 1 + 10


async def test_what_fits_the_window_is_sent_without_a_model_too() -> None:
    """Ten messages of 12,000 tokens are never compacted, and leave 7,980 of 128,000 for the answer."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Mute())
    hook = timeline.step_hook("openai_chat")
    messages = [{"role": "assistant" if n % 2 else "user", "content": f"{n}" + "m" * 47_999} for n in range(10)]
    assert len((await hook.prepare_step(messages=messages))["messages"]) == 10
    assert (await timeline.render()).account.sent == 120_020


@pytest.mark.shows("001-12", "001-51", "R-001-6", "R-001-10")
@pytest.mark.parametrize(
    ("system", "count", "covered"),
    [
        (SYSTEM, 10, None),  # eleven with the system prompt
        (SYSTEM, 11, 1),
        (None, 10, None),
        (None, 11, None),  # eleven, the first of which stands in for the system prompt
        (None, 12, 1),
    ],
)
async def test_at_most_eleven_messages_are_never_compacted(system: str | None, count: int, covered: int | None) -> None:
    """The system prompt is one of them; without one the first message is kept in its place. Due from 12,000 tokens."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(max_tokens=26_000), summarizer=Scribe())
    await timeline.append(*talk(2, 16_000), *talk(count - 2, 2_800))
    context = await timeline.render(system=system)
    assert context.account.over_trigger is (covered is None)
    rounds = await payloads_of(timeline._store, "compaction.completed")
    assert [completed.covered_blocks for completed in rounds] == ([] if covered is None else [covered])


@pytest.mark.shows("001-14", "001-19", "R-001-10")
async def test_without_a_system_prompt_the_first_message_stays_in_front() -> None:
    """As the design's list has it: first message, summary, the newest ten; in the next round too."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=scribe)
    await timeline.append(UserPrompt(text=TASK), *talk(20))
    await timeline.compact()
    first, summary, *rest = (await timeline.render()).neutral.entries
    assert (first.text, summary.text, len(rest)) == (TASK, "## Session Summary (Round 1)\n\nhistory 1", 10)
    assert TASK not in [block.text for block in scribe.asked[0].blocks]
    await timeline.append(*talk(6))
    await timeline.compact()
    first, summary, *rest = (await timeline.render()).neutral.entries
    assert (first.text, summary.text, len(rest)) == (TASK, "## Session Summary (Round 2)\n\nhistory 2", 10)
    assert (await timeline.verify()).ok


@pytest.mark.shows("001-11", "001-66")
async def test_after_a_cut_that_frees_too_little_the_next_try_waits_for_a_tenth_more() -> None:
    """The tenth newest message has 160,000 tokens, and those before it too few; then the boundary passes it.

    Nothing is done yet, since the messages grew by less than a tenth. Then all before the boundary is covered.
    """
    timeline = await opened(MemoryStore(), policy=policies.keep_last(max_tokens=200_000), summarizer=Scribe())
    await timeline.append(*talk(9, 400), UserPrompt(text="h" * 640_000), *talk(9, 400)[1:], UserPrompt(text="q"))
    refused = (await timeline.render(system=SYSTEM)).decisions
    await timeline.append(*talk(4, 400)[1:])
    waits = (await timeline.render(system=SYSTEM)).decisions
    assert [(taken.kind, taken.reason) for taken in (*refused, *waits)] == [("refused", "no_progress")] * 2
    await timeline.append(*talk(2, 32_000)[1:])
    assert (await timeline.render(system=SYSTEM)).decisions == waits
    await timeline.append(*talk(2, 40_000))
    assert [taken.kind for taken in (await timeline.render(system=SYSTEM)).decisions] == ["compacted"]


@pytest.mark.shows("001-14", "R-001-10")
@pytest.mark.parametrize("blank", ["", "  \n", [], [{"type": "text", "text": ""}]])
async def test_a_system_prompt_without_a_word_is_none(blank: Any) -> None:
    """No wire sends it: the first message stays in front, and a change to no prompt at all is none of the prefix."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Scribe())
    await timeline.append(UserPrompt(text=TASK), *talk(20))
    await timeline.render(system=blank)
    await timeline.compact()
    context = await timeline.render()
    assert [entry.text for entry in context.neutral.entries][:2] == [TASK, "## Session Summary (Round 1)\n\nhistory 1"]
    assert context.account.fixed.system == 0
    assert await payloads_of(timeline._store, "prefix.changed") == []


@pytest.mark.shows("001-14", "R-001-10")
@pytest.mark.parametrize("parts", [1, 2])
async def test_a_long_first_message_stays_whole(parts: int) -> None:
    """25,002 tokens of 128,000, in one part or two, round after round; the newest ten and a summary are beside it."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Scribe())
    text = "HEAD" + "x" * 100_000 + "TAIL"
    content = [{"type": "text", "text": text[n * len(text) // parts :][: len(text) // parts]} for n in range(parts)]
    await timeline.append_messages([{"role": "user", "content": content}], wire="openai_chat")
    for number in (1, 2):
        await timeline.append(*talk(24, 13_000)[number % 2 :])
        context = await timeline.render()
        assert [taken.kind for taken in context.decisions] == ["compacted"]
        first, summary, *rest = context.to_openai_chat()["messages"]
        assert first["content"] == (text if parts == 1 else content)
        assert (f"(Round {number})" in summary["content"], len(rest)) == (True, 10)
    messages: list[Any] = [{"role": "user", "content": text}, *({"role": "user", "content": "m" * 16_000},) * 30]
    done = await compact_messages(messages, policies.keep_last(), summarizer=Scribe())
    assert (done.messages[0], len(done.messages)) == (messages[0], 12)


@pytest.mark.shows("001-14", "R-001-10")
async def test_a_first_message_that_does_not_fit_beside_the_newest_is_a_preview() -> None:
    """60,000 tokens of 128,000 beside ten messages of 7,000: sent whole, the request would be refused."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Scribe())
    await timeline.append(UserPrompt(text="q" * 240_000), *talk(5, 3_000), *talk(10, 28_000))
    context = await timeline.render()
    first = context.neutral.entries[0]
    assert (first.text[:10], len(first.text) < 2_000) == ("q" * 10, True)
    assert context.account.sent < 128_000


@pytest.mark.shows("001-12", "001-14", "R-001-6")
async def test_a_plain_list_of_messages_follows_the_same_rule() -> None:
    """Eleven messages come back as they are; of twelve the first and the newest ten stay."""
    sizes = [12_000, 16_000, *[2_800] * 10]
    messages: list[Any] = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": "m" * size} for n, size in enumerate(sizes)
    ]
    policy = policies.keep_last(max_tokens=26_000)
    assert (await compact_messages(messages[:11], policy, summarizer=Scribe())).messages == messages[:11]
    done = await compact_messages(messages, policy, summarizer=Scribe())
    told = [str(message["content"]) for message in done.messages]
    assert (len(told[0]), "## Session Summary (Round 1)" in told[1]) == (12_000, True)
    assert [len(text) for text in told[2:]] == [2_800] * 10


# What stays


@pytest.mark.shows("001-15", "001-16", "001-49", "001-57", "R-001-9")
@pytest.mark.parametrize(
    ("keep", "first"),
    [(1, "c4.call"), (2, "c4.call"), (3, "c3.call"), (4, "c3.call"), (5, "c2.call"), (6, "c2.call"), (9, None)],
)
async def test_the_boundary_counts_messages_and_moves_back_from_a_result(keep: int, first: str | None) -> None:
    """Four pairs behind a prompt: an odd boundary is a result, whose call is kept too, so one message more stays."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=keep), summarizer=Scribe())
    await timeline.render(system=SYSTEM)
    await timeline.append(prompt(100), *(block for n in range(1, 5) for block in exchange(f"c{n}", 1_000)))
    if first is None:
        with pytest.raises(CompactionRefused) as refused:
            await timeline.compact()
        assert refused.value.reason == "nothing_to_cover"
        return
    await timeline.compact()
    assert shown(timeline)[0] == "conv.range.summary"
    assert shown(timeline)[1] == first
    assert len(shown(timeline)) - 1 == keep + keep % 2


@pytest.mark.shows("001-16", "R-001-9")
async def test_parallel_results_keep_the_one_call_message_that_made_them() -> None:
    """Three results at the boundary go back as far as the response that called."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=2), summarizer=Scribe())
    await timeline.render(system=SYSTEM)
    calls = [call(f"p{n}", response_id="m") for n in range(3)]
    await timeline.append(*turn(400), *turn(400), *calls, *(result(f"p{n}", 40) for n in range(3)))
    await timeline.compact()
    assert shown(timeline)[1:] == [f"p{n}.{kind}" for kind in ("call", "result") for n in range(3)]


@pytest.mark.shows("001-16", "R-001-9")
async def test_a_boundary_that_goes_back_to_the_first_message_leaves_nothing_to_summarise() -> None:
    """Twelve results, of which the newest ten are to stay, keep the one response that called."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Scribe())
    await timeline.render(system=SYSTEM)
    calls = [call(f"p{n}", response_id="m") for n in range(12)]
    await timeline.append(*calls, *(result(f"p{n}", 40) for n in range(12)))
    before = shown(timeline)
    with pytest.raises(CompactionRefused) as refused:
        await timeline.compact()
    assert (refused.value.reason, shown(timeline)) == ("nothing_to_cover", before)


@pytest.mark.shows("001-18", "001-39", "R-001-19")
@pytest.mark.parametrize("system", [SYSTEM, None])
async def test_a_summary_alone_behind_the_boundary_is_not_summarised_again(system: str | None) -> None:
    """Nothing came since: the compaction is refused, and the round stays."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Scribe())
    await timeline.render(system=system)
    await timeline.append(*talk(30))
    await timeline.compact()
    before = shown(timeline)
    with pytest.raises(CompactionRefused) as refused:
        await timeline.compact()
    assert refused.value.reason == "nothing_to_cover"
    assert (shown(timeline), timeline.window.compactions) == (before, 1)


@pytest.mark.shows("001-17", "001-40", "R-001-15")
async def test_the_round_goes_on_from_that_of_a_summary_among_the_messages() -> None:
    """A list of messages that another program compacted twice begins with its summary: the next round is the third."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=2), summarizer=scribe)
    await timeline.render(system=SYSTEM)
    told = "## Session Summary (Round 2)\n\n### Original Task\nBuild it"
    await timeline.append(UserPrompt(text="Go on."), AssistantCompletion(text=told), *talk(6))
    await timeline.compact()
    [request], [completed] = scribe.asked, await payloads_of(timeline._store, "compaction.completed")
    assert (request.previous, request.compaction_number) == ("### Original Task\nBuild it", 3)
    assert (completed.round, completed.block.text) == (3, "## Session Summary (Round 3)\n\nhistory 1")


@pytest.mark.shows("001-66")
async def test_a_compaction_that_frees_less_than_a_tenth_is_refused() -> None:
    """Two messages of twelve that are small: the design would ask a model for them at every step."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=policies.keep_last(max_tokens=26_000), summarizer=scribe)
    await timeline.append(*talk(2, 2_000), *talk(10, 4_800))
    context = await timeline.render(system=SYSTEM)
    assert [(taken.kind, taken.reason) for taken in context.decisions] == [("refused", "no_progress")]
    assert (len(context.neutral.entries), scribe.asked, timeline.window.compactions) == (12, [], 0)


# What a model is asked

EXPECTED: Final = """\
## Previous Summary
None - this is the first compaction round.

## Original User Task
Build a flashcard app

## Messages to Summarize
[0] USER:
Build a flashcard app

---

[1] ASSISTANT:
I'll start:

  1.  cards
[Tool: Read({"path":"a.ts"})]

---

[2] TOOL:
[Result: %s...]

---

[3] ASSISTANT:
%s
[...truncated...]
"""


async def asked_of_a_model(*blocks: Block, rounds: int = 1) -> list[str]:
    """Return the prompts that a model gets for so many compactions of a conversation that keeps two messages."""
    prompts: list[str] = []

    async def model(prompt: str) -> str:
        prompts.append(prompt)
        return f"### Original Task\n{TASK}\n\n### Current State\n- Working on: round {len(prompts)}"

    summarizer = CallableSummarizer(model, window_tokens=100_000)
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=2), summarizer=summarizer)
    await timeline.render(system=SYSTEM)
    for _ in range(rounds):
        await timeline.append(*blocks, *turn(4_000), *turn(10))
        await timeline.compact()
    return prompts


@pytest.mark.shows(
    "001-17",
    "001-21",
    "001-30",
    "001-31",
    "001-32",
    "001-33",
    "001-34",
    "001-41",
    "001-46",
    "R-001-16",
    "R-001-17",
    "R-001-18",
)
async def test_a_model_is_given_the_messages_in_the_designs_form() -> None:
    """Numbered from 0 under their role, a huge result in 500 characters, a long message in 2,000, `---` between."""
    blocks: list[Block] = [
        UserPrompt(text=TASK),
        AssistantCompletion(text="I'll start:\n\n  1.  cards", response_id="m"),
        ToolCall(call_id="c", name="Read", arguments={"path": "a.ts"}, response_id="m"),
        ToolResult(call_id="c", name="Read", text="x" * 12_000),
        AssistantCompletion(text="y" * 2_001, response_id="n"),
    ]
    [told] = await asked_of_a_model(*blocks)
    assert EXPECTED % ("x" * 500, "y" * 2_000) in told


@pytest.mark.shows("001-31", "001-32")
async def test_a_record_has_an_entry_for_each_message_and_arguments_as_they_were_written() -> None:
    """A result without text has its number too; keys keep their order, and a message of two parts is one entry."""
    prompts, model = asked_model()
    summarizer = CallableSummarizer(model, window_tokens=100_000)
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=2), summarizer=summarizer)
    await timeline.append_messages([TWO_PARTS], wire="openai_chat")
    await timeline.render(system=SYSTEM)
    made = ToolCall(call_id="c", name="run", arguments={"z": 1, "a": 2})
    await timeline.append(made, ToolResult(call_id="c"), *turn(4_000), *turn())
    await timeline.compact()
    record = prompts[0].split("## Messages to Summarize\n")[1]
    assert record.startswith(
        "[0] USER:\nabcd\nefgh\n\n---\n\n"
        '[1] ASSISTANT:\n[Tool: run({"z":1,"a":2})]\n\n---\n\n'
        "[2] TOOL:\n[Result: ]\n\n---\n\n"
        "[3] USER:\n"
    )


@pytest.mark.shows("001-31")
async def test_a_record_names_pictures_and_leaves_out_thoughts_and_empty_messages() -> None:
    """The design gives a picture an empty line, and a message of nothing but thoughts, or without text, an entry."""
    prompts, model = asked_model()
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=2), summarizer=CallableSummarizer(model))
    await timeline.append_messages([PICTURE], wire="openai_chat")
    await timeline.render(system=SYSTEM)
    await timeline.append(
        Reasoning(text="hm", response_id="m"),
        AssistantCompletion(text="I see", response_id="m"),
        Reasoning(text="alone", response_id="n"),
        AssistantCompletion(text="", response_id="o"),
        UserPrompt(text=""),
        AssistantCompletion(text="Done", response_id="p"),
        *turn(2_000),
        *turn(),
    )
    await timeline.compact()
    record = prompts[0].split("## Messages to Summarize\n")[1]
    assert record.split("\n\n---\n\n")[:3] == [
        "[0] USER:\nlook\n(image/png)",
        "[1] ASSISTANT:\nI see",
        "[2] ASSISTANT:\nDone",
    ]


@pytest.mark.shows("001-21", "001-22", "001-23", "001-24", "001-25", "001-26", "001-29", "001-30", "001-35", "001-36")
@pytest.mark.shows("R-001-11", "R-001-15")
async def test_a_model_is_asked_for_the_designs_sections() -> None:
    """Headings and columns in their order, 800 tokens, no code blocks, errors only where there were any."""
    [told] = await asked_of_a_model(UserPrompt(text=TASK))
    wanted = [
        "Your summary replaces the messages below, so keep everything\nthat is needed to go on with the task.",
        "Be thorough but concise: what you leave out is out of the agent's sight.",
        "## Session Summary (Round 1)",
        "### Original Task\n[the user's original request, verbatim]",
        "### Completed Work\n| File/Component | Action | Description |\n|----------------|--------|-------------|\n",
        "[one row for each file touched, with what was done]",
        "### Key Technical Decisions\n- [choices that affect future work; ",
        "dependencies that were installed, patterns in use]",
        "### Current State\n- Working on: [what is in progress]",
        "- Last completed: [the most recent accomplishment]",
        "### Pending Work\n- [ ] [each remaining item]",
        "### Errors & Resolutions\n- [error → resolution; leave this section out unless there were errors]",
        "- At most 800 tokens.",
        "- Tables and bullet points, for density.",
        "- Exact file paths.",
        "- No code blocks, unless one is absolutely critical.",
        "- Where there is a previous summary, integrate its content and do not repeat it.",
    ]
    places = [told.find(text) for text in wanted]
    assert -1 not in places
    assert places == sorted(places)
    assert "incorporates context" not in told


@pytest.mark.shows("001-30", "001-36", "001-37", "001-40", "001-44", "R-001-14")
async def test_the_third_round_is_given_the_second_summary_and_asked_for_the_line_about_two() -> None:
    """The previous summary goes in whole, and not as a message."""
    *_, told = await asked_of_a_model(UserPrompt(text=TASK), rounds=3)
    assert f"## Previous Summary\n### Original Task\n{TASK}\n\n### Current State\n- Working on: round 2\n" in told
    assert "## Session Summary (Round 3)" in told
    assert "End with this line:\nThis summary incorporates context from 2 previous compaction rounds.\n" in told
    assert "Session Summary" not in told.split("## Messages to Summarize")[1]


@pytest.mark.shows("001-27", "001-28", "R-001-12", "R-001-13")
async def test_the_summarizer_is_allowed_1000_tokens_at_a_temperature_of_0_3() -> None:
    """Both come with the request; a model's answer of 1,200 tokens is cut to 1,000."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=scribe)
    await timeline.append(*talk(30))
    await timeline.compact()
    [request] = scribe.asked
    assert (request.max_tokens, request.temperature) == (1_000, 0.3)

    async def model(_: str) -> str:
        return "word. " * 800

    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=CallableSummarizer(model))
    await timeline.append(*talk(30))
    await timeline.compact()
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert 900 < completed.tokens <= 1_000 + 8  # the heading is the form's


@pytest.mark.shows("001-28", "001-63", "R-001-13", "R-001-23")
@pytest.mark.parametrize("wire", list(SUMMARIZERS))
async def test_the_temperature_is_sent_to_the_model(wire: str) -> None:
    """One request, whichever provider is asked; another policy's request names none."""
    for policy, temperature in ((policies.keep_last(), 0.3), (policies.keep_ratio(), None)):
        with FakeProvider("### Original Task\nBuild it") as provider:
            timeline = await opened(MemoryStore(), policy=policy, summarizer=SUMMARIZERS[wire](provider))
            await timeline.append(*talk(30))
            await timeline.compact()
        [asked] = provider.asked
        assert {**asked.body, **asked.body.get("generationConfig", {})}.get("temperature") == temperature


LONGEST: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
"""How the providers name the longest answer."""


@pytest.mark.shows("001-27", "004-66", "R-001-12")
@pytest.mark.parametrize("wire", list(SUMMARIZERS))
@pytest.mark.parametrize(
    ("policy", "longest"), [(policies.keep_last(), 1_000), (policies.prune_then_summarize(max_tokens=100_000), 2_000)]
)
async def test_the_longest_answer_that_is_sent_is_the_designs_figure(wire: str, policy: Policy, longest: int) -> None:
    """Whichever provider is asked; what the model wrote until it was stopped there is the summary."""
    with FakeProvider(Answer("### Original Task\nBuild it", stop="length")) as provider:
        summarizer = SUMMARIZERS[wire](provider, window_tokens=200_000)
        timeline = await opened(MemoryStore(), policy=policy, summarizer=summarizer)
        await timeline.append(*talk(40))
        await timeline.compact()
    [asked] = provider.asked
    told = {**asked.body, **asked.body.get("generationConfig", {})}
    assert [told[name] for name in LONGEST if name in told] == [longest]
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert "Build it" in completed.block.text
    assert "stopped by its length" in completed.written_by.fallback_reason


@pytest.mark.shows("001-28")
@pytest.mark.parametrize("wire", list(SUMMARIZERS))
async def test_a_temperature_of_the_applications_own_goes_before_the_policys(wire: str) -> None:
    """Who calls the model knows it best."""
    with FakeProvider("### Original Task\nBuild it") as provider:
        summarizer = SUMMARIZERS[wire](provider, temperature=0.0)
        timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=summarizer)
        await timeline.append(*talk(30))
        await timeline.compact()
    [asked] = provider.asked
    assert {**asked.body, **asked.body.get("generationConfig", {})}["temperature"] == 0.0


@pytest.mark.shows("001-68", "004-69", "004-144")
@pytest.mark.parametrize("wire", list(SUMMARIZERS))
@pytest.mark.parametrize(
    ("policy", "beginning", "last"),
    [
        (policies.keep_last(), "You summarise the history of a coding agent's conversation.", ""),
        (
            policies.prune_then_summarize(max_tokens=100_000),
            "You summarise an agent's conversation so that",
            "Provide the summary to continue from.",
        ),
    ],
)
async def test_the_designs_instructions_are_the_system_prompt(
    wire: str, policy: Policy, beginning: str, last: str
) -> None:
    """And the messages are the one user prompt, whichever provider is asked; 004's ends by asking to go on from."""
    with FakeProvider("### Original Task\nBuild it") as provider:
        summarizer = SUMMARIZERS[wire](provider, window_tokens=200_000)
        timeline = await opened(MemoryStore(), policy=policy, summarizer=summarizer)
        await timeline.append(UserPrompt(text=TASK), *talk(30))
        await timeline.compact()
    [asked] = provider.asked
    assert (asked.system.startswith(beginning), TASK in asked.system) == (True, False)
    assert [role for role, _ in asked.said] == ["user"]
    assert (TASK in asked.text, beginning in asked.text) == (True, False)
    assert asked.text.rstrip().endswith(last)


@pytest.mark.shows("001-67", "004-68", "R-003-11")
async def test_the_agents_own_model_may_write_the_summary() -> None:
    """Seed 001 asks the model of the agent; here the caller names it, and the summary says which it was."""
    with FakeProvider(Answer("### Original Task\nBuild it")) as provider:
        summarizer = SUMMARIZERS["anthropic"](provider)
        timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=summarizer)
        await timeline.append(*talk(30))
        await timeline.compact()
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert (completed.written_by.summarizer, completed.written_by.model) == ("anthropic", "small-1")
    assert provider.asked[0].body["model"] == "small-1"


# What is recorded, and loaded again


@pytest.mark.shows("001-38", "001-52", "001-65", "R-001-20")
async def test_the_event_names_what_is_covered_and_the_next_load_leaves_it_out(tmp_path: Path) -> None:
    """Round, tokens before and after, summary, covered versions; a second process gets the list that is left."""
    async with open_store(tmp_path / "a.db") as store:
        timeline = await opened(store, policy=policies.keep_last(max_tokens=48_000), summarizer=Scribe())
        await timeline.append(*talk(30))
        versions = [item.version for item in timeline.window.items]
        await timeline.render(system=SYSTEM)  # due from 29,600 tokens on
        [completed] = await payloads_of(store, "compaction.completed")
    assert (completed.round, completed.before_tokens, completed.after_tokens) == (1, 30 * 1_002, 10 * 1_002 + 10 + 2)
    assert completed.block.text == "## Session Summary (Round 1)\n\nhistory 1"
    assert completed.covers.ranges == ((versions[0], versions[19]),)
    async with open_store(tmp_path / "a.db") as store:
        again = await opened(store, policy=policies.keep_last())
        assert [item.version for item in again.window.items if not item.is_summary] == versions[20:]
        assert len((await again.render(system=SYSTEM)).neutral.entries) == 11


@pytest.mark.shows("001-38")
async def test_the_event_counts_the_conversation_without_its_system_prompt() -> None:
    """Which is no part of the log, although it counts towards the threshold."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(max_tokens=36_000), summarizer=Scribe())
    await timeline.append(*talk(30))
    account = (await timeline.render(system=SYSTEM)).account
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert (completed.before_tokens, completed.after_tokens) == (30 * 1_002, 10 * 1_002 + 10 + 2)
    assert account.total == completed.after_tokens + 5 + 2


# The hook for an agent's step


@pytest.mark.shows("001-11", "001-54", "R-001-25")
async def test_the_step_hook_compacts_from_the_threshold_on_and_not_before() -> None:
    """Ten messages come back as they are; thirty above the threshold come back as summary and ten."""
    policy = policies.keep_last(max_tokens=36_000)  # due from 20,000 tokens on
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    hook = timeline.step_hook("openai_chat")
    messages: list[Any] = [{"role": "system", "content": SYSTEM}]
    for n in range(19):
        messages.append({"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "m" * 4_000})
        sent = (await hook.prepare_step(messages=messages))["messages"]
        assert [message["content"] for message in sent] == [message["content"] for message in messages]
    messages.append({"role": "assistant", "content": "19 " + "m" * 4_000})
    sent = (await hook.prepare_step(messages=messages))["messages"]
    assert [str(message["content"]).split()[0] for message in sent if message["role"] != "system"][-10:] == [
        str(n) for n in range(10, 20)
    ]
    assert any("## Session Summary (Round 1)" in str(message["content"]) for message in sent)
    assert timeline.window.compactions == 1


GIVEN: Final[list[Any]] = [
    {"role": "user", "content": "a"},
    {"role": "user", "content": "b", "name": "joe"},
    {"role": "user", "content": [{"type": "text", "text": "p1"}, {"type": "text", "text": "p2"}]},
    {
        "role": "assistant",
        "content": "calling",
        "name": "bot",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"b": 1,  "a": 2}'}},
            {"id": "c2", "type": "function", "function": {"name": "run", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "r2"},
    {"role": "tool", "tool_call_id": "c1", "content": ""},
    {"role": "system", "content": "mid"},
    {"role": "user", "content": "end"},
]
"""Messages with all that our own form would change."""


@pytest.mark.shows("001-54", "R-001-25")
@pytest.mark.parametrize("system", [None, SYSTEM])
async def test_below_the_threshold_the_hook_returns_the_same_messages(system: str | None) -> None:
    """Names, spaces, the order of results, a system message in the midst: each message is the very one that came."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Scribe())
    hook = timeline.step_hook("openai_chat", system=system)
    leading = {"role": "system", "content": SYSTEM}
    given = [*([] if system else [leading]), *GIVEN]
    for more in ([], [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]):
        given += more
        sent = (await hook.prepare_step(messages=given))["messages"]
        assert sent == [leading, *(message for message in given if message is not leading)]
    assert len((await timeline.render(system=SYSTEM)).neutral.entries) == 13
    assert (await timeline.verify()).ok


@pytest.mark.shows("001-54")
async def test_what_no_provider_takes_is_mended_below_the_threshold_too() -> None:
    """A call without its result, and a list that begins with an answer, go out in our own form."""
    for given in ([*GIVEN[:5], GIVEN[-1]], [{"role": "assistant", "content": "hello"}, GIVEN[0]]):
        timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Scribe())
        sent = (await timeline.step_hook("openai_chat").prepare_step(messages=given))["messages"]
        assert sent != given
        assert sent[0]["role"] == "user"
        calls = [made["id"] for message in sent for made in message.get("tool_calls", ())]
        assert calls == [message["tool_call_id"] for message in sent if message["role"] == "tool"]


@pytest.mark.shows("001-54")
@pytest.mark.parametrize("wire", ["anthropic", "ai_sdk"])
async def test_where_messages_bear_cache_markers_they_come_back_marked(wire: Any) -> None:
    """The same roles and texts; without markers the provider would keep nothing of them."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Scribe())
    given = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    sent = (await timeline.step_hook(wire).prepare_step(messages=given))["messages"]
    assert [(message["role"], message["content"][0]["text"]) for message in sent] == [
        (message["role"], message["content"]) for message in given
    ]
    assert "ephemeral" in json.dumps(sent[-1])


@pytest.mark.shows("001-53")
async def test_a_store_that_refuses_a_compaction_ends_the_step() -> None:
    """What could not be stored is never taken for stored: the agent would go on with a summary that nobody has."""

    class Full(MemoryStore):
        async def append(self, conversation: str, events: Any, **options: Any) -> Any:
            if any(event.payload.type == "compaction.completed" for event in events):
                raise StoreFull("the disk is full")
            return await super().append(conversation, events, **options)

    timeline = await opened(Full(), policy=policies.keep_last(max_tokens=36_000), summarizer=Scribe())
    messages = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "m" * 4_000} for n in range(30)]
    with pytest.raises(StoreFull):
        await timeline.step_hook("openai_chat").prepare_step(messages=messages)
    assert timeline.window.compactions == 0


@pytest.mark.shows("001-11", "001-48")
async def test_after_a_failure_the_model_is_asked_again_once_the_messages_grew_by_a_tenth() -> None:
    """Not at every step: a model that is down would be asked, and waited for, each time."""
    asked: list[int] = []

    class Down(Mute):
        async def summarize(self, request: SummaryRequest) -> Summary:
            asked.append((await timeline.render(record=False)).account.messages)
            return await super().summarize(request)

    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=Down())
    await timeline.append(*talk(96))
    for _ in range(12):
        await timeline.append(*talk(2, 3_000))
        await timeline.render(system=SYSTEM)
    first, second = asked
    assert second - first > first // 10 > second - first - 2_000


@pytest.mark.shows("001-1")
async def test_characters_are_those_of_python() -> None:
    """Eight thumbs are eight characters, two tokens; JavaScript counts sixteen of its units."""
    assert await tokens_of(UserPrompt(text="\N{THUMBS UP SIGN}" * 8)) == 2 + 2


@pytest.mark.shows("001-63", "R-001-23")
@pytest.mark.parametrize(("window", "calls"), [(32_000, 3), (128_000, 1)])
async def test_a_model_with_a_small_window_is_asked_chunk_by_chunk(window: int, calls: int) -> None:
    """80,000 tokens do not fit 32,000; a model with the agent's own window is asked once."""
    prompts, model = asked_model()
    summarizer = CallableSummarizer(model, window_tokens=window)
    timeline = await opened(MemoryStore(), policy=policies.keep_last(), summarizer=summarizer)
    await timeline.append(*(block for _ in range(80) for block in turn(550, 550)))
    await timeline.compact()
    assert len(prompts) == calls


@pytest.mark.shows("001-21")
@pytest.mark.parametrize(("window", "kept"), [(32_000, 16_000), (128_000, 30_003)])
async def test_a_task_takes_no_more_than_an_eighth_of_the_models_window(window: int, kept: int) -> None:
    """7,501 tokens are verbatim in 128,000, and cut to 4,000 in 32,000; the record has room beside them."""
    prompts, model = asked_model()
    summarizer = CallableSummarizer(model, window_tokens=window)
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=2), summarizer=summarizer)
    await timeline.render(system=SYSTEM)
    await timeline.append(UserPrompt(text="T" * 30_000 + "END"), AssistantCompletion(text="ok"), *turn(900), *turn())
    await timeline.compact()
    told = prompts[0].split("## Original User Task\n")[1].split("\n")[0]
    assert (len(told), told.endswith("END")) == (kept, kept > 30_000)


@pytest.mark.shows("001-21")
async def test_a_task_takes_no_more_than_0_28_of_the_extractive_summary() -> None:
    """Of a task of 10,000 characters the summary without a model has 279 tokens of its 1,000."""
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=2))
    await timeline.append(UserPrompt(text=("word. " * 2_000)[:10_000]), *turn(900), *turn(900), *turn())
    await timeline.render(system=SYSTEM)
    await timeline.compact()
    [summary] = timeline.window.summaries
    told = summary.block.text.split("### Original Task\n")[1].split("\n###")[0].strip()
    assert (-(-len(told) // 4), told.endswith("…")) == (279, True)


@pytest.mark.shows("001-41", "R-001-16")
@pytest.mark.parametrize("asks", [True, False])
async def test_without_any_prompt_the_task_is_said_to_be_unknown(*, asks: bool) -> None:
    """To the model that is asked, and in the summary that is written without one."""
    prompts: list[str] = []

    async def model(prompt: str) -> str:
        prompts.append(prompt)
        return "### Original Task\nUnknown task"

    summarizer = CallableSummarizer(model) if asks else None
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=2), summarizer=summarizer)
    await timeline.append(*[AssistantCompletion(text=words(900), response_id=f"m{n}") for n in range(8)])
    await timeline.compact()
    assert ["## Original User Task\nUnknown task\n" in told for told in prompts] == [True] * asks
    assert "### Original Task\nUnknown task" in timeline.window.summaries[0].block.text


@pytest.mark.shows("001-26", "001-27", "R-001-11", "R-001-12")
async def test_of_few_messages_fewer_than_800_tokens_are_asked_for() -> None:
    """Eight messages of 152 tokens are summarised under gpt-4: half of them are allowed, four fifths of that asked."""
    prompts, model = asked_model()
    scribe, said = Scribe(), ["x" * 600] * 18
    for summarizer in (scribe, CallableSummarizer(model)):
        timeline = await opened(MemoryStore(), policy=policies.keep_last(model="gpt-4"), summarizer=summarizer)
        await timeline.append(*[answer(text=t) if n % 2 else prompt(text=t) for n, t in enumerate(said)])
        await timeline.render(system=SYSTEM)
    [request] = scribe.asked
    assert (len(request.blocks), request.max_tokens) == (8, 8 * (150 + 2) // 2) == (8, 608)
    assert "At most 486 tokens." in prompts[0]


@pytest.mark.shows("001-27", "R-001-12")
async def test_in_a_later_round_the_summary_before_is_added_to_the_half() -> None:
    """Four messages of 302 tokens: half of them in the first round, with the 300 of its summary in the second."""
    scribe = Scribe(answers=["abcd" * 300, "history 2"])
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=2), summarizer=scribe)
    await timeline.render(system=SYSTEM)
    for size in (6, 4):
        await timeline.append(*[answer(300) if n % 2 else prompt(300) for n in range(size)])
        await timeline.compact()
    assert [request.max_tokens for request in scribe.asked] == [4 * 302 // 2, 300 + 4 * 302 // 2]


@pytest.mark.shows("001-27", "R-001-12")
async def test_a_summary_takes_no_more_than_an_eighth_of_a_small_limit() -> None:
    """500 tokens of 4,000, however much is summarised."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=policies.keep_last(messages=2, max_tokens=4_000), summarizer=scribe)
    await timeline.append(*talk(12, 1_600))
    await timeline.compact()
    assert [request.max_tokens for request in scribe.asked] == [500]
