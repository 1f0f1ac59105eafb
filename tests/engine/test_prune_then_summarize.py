"""Seed 004 through the public API: what counts, what is over, what is cleared, what is asked, sent and recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from anthropic import AsyncAnthropic

from tests.providers.script import Answer
from tests.providers.server import FakeProvider
from tests.scenes import (
    AT,
    Mute,
    Scribe,
    after,
    answer,
    call,
    exchange,
    log_of,
    opened,
    payloads_of,
    prompt,
    result,
    talking,
    turn,
    words,
)
from tests.sdks import anthropic_message
from timeline import Timeline, policies
from timeline.blocks import AssistantCompletion, Attachment, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.errors import CompactionRefused, ContextOverflow
from timeline.lifecycle import (
    CompactionCompleteEvent,
    CompactionStartEvent,
    CompactionSummarizeEvent,
    ContextUsageEvent,
    recorded,
)
from timeline.store.memory import MemoryStore
from timeline.summarizers import CallableSummarizer

if TYPE_CHECKING:
    from timeline import Policy, RenderedContext
    from timeline.blocks import Block

CLEARED: Final = "[Tool output cleared - see conversation summary]"
QUESTION: Final = (
    "What have we accomplished in our conversation so far? Summarize our progress, current state, and next steps."
)


def quarters(**changes: Any) -> Policy:
    """Return the design's policy, counted in quarters of characters."""
    return policies.prune_then_summarize(**{"counter": "chars4", **changes})


async def account_of(policy: Policy, *blocks: Block) -> dict[str, int]:
    """Return what a conversation of these blocks costs, by category."""
    return (await (await talking(policy, *blocks)).render()).account.by_category


# What counts


@pytest.mark.shows("004-12", "004-25", "004-26", "004-28", "004-29", "004-31", "004-32", "004-38", "R-004-3")
async def test_each_part_counts_and_a_message_and_a_step_four_more() -> None:
    """Text, thoughts, a call's name with its JSON input, a result's text; every message 4, every response 4 more."""
    blocks = [
        UserPrompt(text="x" * 41),  # 11 tokens, and its message
        Reasoning(text="y" * 9, response_id="m"),  # 3, and the response's message and step
        AssistantCompletion(text="z" * 5, response_id="m"),  # 2
        ToolCall(call_id="c", name="run", arguments={"b": 1, "a": "x"}, response_id="m"),  # run{"a":"x","b":1}: 5
        ToolResult(call_id="c", text="o\n" * 6 + "o"),  # 4, and its message; as JSON it would be 6
    ]
    timeline = await talking(quarters(), *blocks)
    account = (await timeline.render()).account
    assert account.by_category == {
        "prompts": 11 + 4,
        "reasoning": 3 + 4 + 4,
        "completions": 2,
        "calls": 5,
        "results": 4 + 4,
    }
    assert account.messages == sum(account.by_category.values()) == 41


@pytest.mark.shows("004-26", "004-109")
@pytest.mark.parametrize(("model", "counter", "tokens"), [(None, "chars4", 2), ("anthropic/claude-3-opus", None, 3)])
async def test_a_calls_name_and_input_are_counted_together(model: str | None, counter: str | None, tokens: int) -> None:
    """`Write{}` has seven characters, and two tokens of OpenAI's, which a tenth more makes three."""
    changes: dict[str, Any] = {"counter": counter} if counter else {}
    policy = policies.prune_then_summarize(model=model, **changes)
    told = [UserPrompt(text="go"), ToolCall(call_id="c", name="Write", arguments={}), ToolResult(call_id="c")]
    assert (await account_of(policy, *told))["calls"] == tokens + 4 + 4


@pytest.mark.shows("004-31")
async def test_each_result_of_one_tool_message_is_a_message() -> None:
    """Two results that came in one message of the tool's: one token each, and four twice."""
    calls = [{"type": "tool-call", "toolCallId": c, "toolName": "run", "input": {}} for c in "pq"]
    results = [
        {"type": "tool-result", "toolCallId": c, "toolName": "run", "output": {"type": "text", "value": "abcd"}}
        for c in "pq"
    ]
    timeline = await talking(quarters())
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": calls}]
    await timeline.append_messages([*said, {"role": "tool", "content": results}], wire="ai_sdk")
    assert (await timeline.render()).account.by_category["results"] == 2 * (1 + 4)


@pytest.mark.shows("004-33")
@pytest.mark.parametrize(("characters", "tokens"), [(1, 1), (4, 1), (5, 2), (7, 2), (9, 3)])
async def test_a_quick_estimate_rounds_up(characters: int, tokens: int) -> None:
    """Four characters a token, lengths between two multiples included."""
    assert await account_of(quarters(), UserPrompt(text="x" * characters)) == {"prompts": tokens + 4}


@pytest.mark.shows("004-37")
async def test_texts_are_counted_by_the_models_own_vocabulary() -> None:
    """Six tokens, as the tokenizer's documentation has it, and four for the message."""
    policy = policies.prune_then_summarize(model="openai/gpt-4")
    assert policy.counter == "cl100k_base"
    assert await account_of(policy, UserPrompt(text="tiktoken is great!")) == {"prompts": 6 + 4}


@pytest.mark.shows("004-109", "R-004-4")
async def test_a_model_with_another_tokenizer_has_a_tenth_more_rounded_up() -> None:
    """Six tokens are seven; for OpenAI's own they stay six."""
    text = UserPrompt(text="antidisestablishmentarianism")
    ours = policies.prune_then_summarize(model="openai/gpt-4o")
    other = policies.prune_then_summarize(model="anthropic/claude-3-opus")
    assert await account_of(ours, text) == {"prompts": 6 + 4}
    assert await account_of(other, text) == {"prompts": 7 + 4}


@pytest.mark.shows("004-27", "004-59", "R-004-12")
async def test_a_cleared_result_counts_its_placeholder() -> None:
    """1,000 tokens before; then the one placeholder with the path, and its message."""
    timeline = await talking(quarters(protect=0, minimum=1, keep_turns=1), prompt(), *exchange("a", 1_000), *turn())
    await timeline.end_run()
    context = await timeline.render()
    told = f"{CLEARED} @4"
    assert [entry.text for entry in context.neutral.entries if entry.type == "react.tool.result"] == [told]
    assert context.account.by_category["hidden"] == -(-len(told) // 4) + 4


@pytest.mark.shows("004-30", "004-31")
async def test_a_marker_counts_its_question_and_its_summary() -> None:
    """A summary of 100 tokens, the fixed question of 27, and what two messages cost."""
    timeline = await talking(
        quarters(keep_turns=1), *turn(900), *turn(900), *turn(), summarizer=Scribe(answers=["abcd" * 100])
    )
    await timeline.compact()
    account = (await timeline.render()).account
    assert account.by_category["summaries"] == 100 + -(-len(QUESTION) // 4) + 2 * 4


# Limits, and what is over


@pytest.mark.shows("004-11", "004-23", "004-24", "004-35", "004-39", "R-004-1", "R-004-2")
@pytest.mark.parametrize(
    ("model", "context", "reserve"),
    [
        ("openai/gpt-4o", 128_000, 16_384),
        ("openai/gpt-4o-mini", 128_000, 16_384),
        ("openai/gpt-4-turbo", 128_000, 4_096),
        ("openai/gpt-4", 8_192, 4_096),
        ("openai/gpt-3.5-turbo", 16_385, 4_096),
        ("anthropic/claude-3.5-sonnet", 200_000, 8_192),
        ("anthropic/claude-3-opus", 200_000, 4_096),
        ("anthropic/claude-3-sonnet", 200_000, 4_096),
        ("anthropic/claude-3-haiku", 200_000, 4_096),
        ("google/gemini-pro", 32_000, 8_192),
        ("google/gemini-1.5-pro", 1_000_000, 8_192),
        ("somebody/else", 16_000, 4_096),
        ("openai/not-listed", 16_000, 4_096),
    ],
)
async def test_what_is_available_is_the_models_window_less_its_longest_answer(
    model: str, context: int, reserve: int
) -> None:
    """The design's table, and 16,000 with 4,096 for any other model."""
    timeline = await talking(policies.prune_then_summarize(model=model, counter="chars4", margin=0.0), prompt(96))
    check = (await timeline.render()).overflow_check
    assert (check.model_limit, check.output_reserve) == (context, reserve)
    assert check.available_tokens == context - reserve - 100


@pytest.mark.shows("004-92", "004-139")
@pytest.mark.parametrize(
    ("model", "context", "reserve"),
    [
        ("deepseek/deepseek-chat", 64_000, 8_192),
        ("deepseek-reasoner", 64_000, 8_192),
        ("groq/moonshotai/kimi-k2-instruct", 131_072, 16_384),
        ("gemini-2.5-pro", 1_048_576, 65_536),
    ],
)
def test_the_providers_of_its_cache_table_have_limits_too(model: str, context: int, reserve: int) -> None:
    """Rows of the table of limits, for this preset alone; the trigger stays, and a figure that is given goes before."""
    policy = policies.prune_then_summarize(model=model)
    assert (policy.max_tokens, policy.output_reserve, policy.trigger.kind) == (context, reserve, "overdrawn")
    assert policies.prune_then_summarize(model=model, max_tokens=20_000).max_tokens == 20_000


@pytest.mark.shows(
    "004-4", "004-6", "004-19", "004-34", "004-36", "004-40", "004-77", "004-78", "004-80", "R-004-5", "R-004-7"
)
async def test_it_is_over_when_less_than_nothing_is_available() -> None:
    """16,000 less 4,096: at 11,904 tokens all is sent, at 11,905 it is compacted; the check never shows less than 0."""
    messages = [block for _ in range(4) for block in turn(1_470, asked=1_490)]  # 4 * (1,494 + 1,478) = 11,888
    timeline = await talking(quarters(), *messages)
    full = await timeline.render(system="x" * 64)
    assert (full.account.available, full.decisions) == (0, ())
    assert full.overflow_check.model_dump() == {
        "is_overflow": False,
        "current_tokens": 11_904,
        "available_tokens": 0,
        "model_limit": 16_000,
        "output_reserve": 4_096,
    }
    over = await timeline.render(system="x" * 65)
    assert [taken.kind for taken in over.decisions] == ["compacted"]
    await timeline.undo_compaction()
    held = await timeline.render(system="x" * 65)
    assert held.account.available == -1
    assert (held.overflow_check.is_overflow, held.overflow_check.available_tokens) == (True, 0)


@pytest.mark.shows("004-2", "004-6", "004-79", "R-004-19")
@pytest.mark.parametrize(
    ("policy", "old", "newest"),
    [
        (policies.prune_then_summarize(model="openai/gpt-4o", counter="chars4"), 11_000, 50_500),
        (quarters(), 880, 5_600),
        (quarters(), 300, 5_800),
    ],
)
async def test_a_summary_is_asked_for_before_a_context_overflows(policy: Policy, old: int, newest: int) -> None:
    """However little the turns before the newest two are: what a summary of them leaves fits, and is sent."""
    scribe = Scribe()
    timeline = await talking(policy, *turn(old), *turn(newest), *turn(newest), summarizer=scribe)
    context = await timeline.render()
    assert [taken.kind for taken in context.decisions] == ["compacted"]
    assert (len(scribe.asked), context.account.available > 0) == (1, True)


@pytest.mark.shows("R-004-19")
@pytest.mark.parametrize(("old", "freed"), [(223, 0), (224, 1)])
async def test_a_summary_that_may_free_a_single_token_is_made(old: int, freed: int) -> None:
    """It is taken for as long as it may become, and with nothing to free it is refused."""
    timeline = await talking(quarters(keep_turns=1), *turn(old), *turn(10), summarizer=Scribe())
    if freed:
        [taken] = await timeline.compact()
        assert (taken.kind, taken.facts["messages"]) == ("compacted", 2)
        return
    with pytest.raises(CompactionRefused) as refused:
        await timeline.compact()
    assert (refused.value.reason, refused.value.facts["would_free"]) == ("no_progress", 0)


@pytest.mark.shows("004-6", "004-79")
async def test_a_request_that_leaves_no_room_for_the_answer_is_refused() -> None:
    """Two turns of 12,500 tokens fit 16,000, but not with the 4,096 of the answer: an error, after the summary."""
    scribe = Scribe()
    timeline = await talking(quarters(), *turn(3_000), *turn(6_250), *turn(6_250), summarizer=scribe)
    with pytest.raises(ContextOverflow) as refused:
        await timeline.render()
    assert len(scribe.asked) == 1
    assert refused.value.account["total"] - refused.value.account["reserved"] < 16_000 < refused.value.account["total"]


@pytest.mark.shows("004-126", "R-004-6")
@pytest.mark.parametrize(
    ("tokens", "level"), [(800, "normal"), (801, "warning"), (950, "warning"), (951, "critical"), (1_000, "critical")]
)
async def test_usage_has_a_mark_above_80_and_one_above_95_per_cent(tokens: int, level: str) -> None:
    """In the account of a context, and in the stream that an indicator follows."""
    timeline = await talking(policies.none(counter="chars4", max_tokens=1_000), prompt(tokens))
    context = await timeline.render()
    assert context.account.level == level
    assert context.account.percent_used == pytest.approx(tokens / 10)
    [usage] = [event async for event in recorded(timeline._store, "c")]
    assert isinstance(usage, ContextUsageEvent)
    assert usage.percent_used == pytest.approx(tokens / 10)
    assert (usage.is_warning, usage.is_critical) == (tokens > 800, tokens > 950)


@pytest.mark.shows("004-34", "004-95", "004-126")
async def test_what_is_reserved_for_the_answer_counts_as_used() -> None:
    """Else a model that reserves a third of its window would compact before the first warning."""
    policy = quarters(max_tokens=10_000, output_reserve=3_000)
    timeline = await talking(policy, prompt(4_996))
    context = await timeline.render(system="x" * 400, tools=[{"name": "x" * 4_000}], ephemeral=["x" * 200])
    tools = context.account.fixed.tools
    assert (tools > 1_000, context.account.fixed.ephemeral) == (True, 50)
    total = 5_000 + 100 + tools + 50 + 3_000
    assert context.account.total == total
    assert context.account.available == 10_000 - total
    assert context.overflow_check.current_tokens == total - 3_000
    assert context.account.percent_used == pytest.approx(total / 100)
    [usage] = [event async for event in recorded(timeline._store, "c") if isinstance(event, ContextUsageEvent)]
    assert (usage.current_tokens, usage.is_warning) == (total, True)


# What is cleared


async def cleared(*sizes: int, keep_turns: int = 2, protect: int = 400, minimum: int = 200) -> list[str]:
    """Return the calls whose outputs the end of a run clears: one output of each size a turn, and two turns behind."""
    policy = quarters(protect=protect, minimum=minimum, keep_turns=keep_turns, max_tokens=100_000)
    timeline = await talking(policy)
    for number, size in enumerate(sizes):
        await timeline.append(prompt(), *exchange(f"c{number}", size))
    await timeline.end_run()
    hidden = [item for item in timeline.window.items if item.state == "hidden"]
    assert all(isinstance(item.block, ToolResult) for item in hidden)
    return [str(item.block.call_id) for item in hidden]


@pytest.mark.shows("004-5", "004-41", "004-42", "004-51", "004-52", "R-004-10")
async def test_the_prune_goes_backwards_and_leaves_the_newest_two_turns_alone() -> None:
    """400 tokens behind those turns are protected as well; what is older is cleared."""
    assert await cleared(300, 300, 200, 200, 900, 900) == ["c0", "c1"]
    assert await cleared(900, 900) == []
    assert await cleared(900, 900, keep_turns=1) == ["c0"]


@pytest.mark.shows("004-44", "R-004-10")
async def test_the_output_that_crosses_the_line_is_cleared_itself() -> None:
    """500 and 300 make more than 400 together with the newest 300; 200 and 200 do not."""
    assert await cleared(500, 300, 300, 1, 1) == ["c0", "c1"]
    assert await cleared(500, 200, 200, 1, 1) == ["c0"]


@pytest.mark.shows("004-44")
async def test_an_output_that_is_shorter_than_the_placeholder_stays() -> None:
    """Eight tokens past the line: the placeholder would take seventeen."""
    assert await cleared(8, 500, 400, 1, 1) == ["c1"]


@pytest.mark.shows("004-50", "R-004-10")
async def test_it_is_tried_only_above_protect_and_minimum_together() -> None:
    """600 tokens of old outputs are left, 601 are not."""
    assert await cleared(300, 200, 100, 1, 1) == []
    assert await cleared(301, 200, 100, 1, 1) == ["c0"]


@pytest.mark.shows("004-9", "R-004-10")
@pytest.mark.parametrize(("oldest", "calls"), [(20_000, []), (20_100, ["c0"])])
async def test_by_default_40000_tokens_are_protected_and_20000_are_freed(oldest: int, calls: list[str]) -> None:
    """Behind the newest two turns, whose outputs stay whatever their size."""
    timeline = await talking(quarters(max_tokens=1_000_000))
    for number, size in enumerate((oldest, 40_000, 50_000, 50_000)):
        await timeline.append(prompt(), *exchange(f"c{number}", size))
    await timeline.end_run()
    assert [item.block.call_id for item in timeline.window.items if item.state == "hidden"] == calls


@pytest.mark.shows("004-9")
async def test_by_default_4096_tokens_are_kept_free_for_the_answer() -> None:
    """Of 16,000, unless a model is named."""
    account = (await (await talking(quarters(), prompt(100))).render()).account
    assert (account.limit, account.fixed.reserved) == (16_000, 4_096)
    assert account.available == 16_000 - 4_096 - (100 + 4)


@pytest.mark.shows("004-48", "R-004-13")
async def test_nothing_is_cleared_where_the_minimum_is_not_freed() -> None:
    """700 old tokens, of which 300 are past the line; each placeholder costs some of it."""
    assert await cleared(*[100] * 7, 1, 1, minimum=200) == ["c0", "c1", "c2"]
    assert await cleared(*[100] * 7, 1, 1, minimum=280) == []


@pytest.mark.shows("004-48", "R-004-10")
@pytest.mark.parametrize("margin", [0.0, 0.1])
@pytest.mark.parametrize(("size", "calls"), [(308, ["c0"]), (307, [])])
async def test_protected_tokens_and_minimum_are_counted_alike(margin: float, size: int, calls: list[str]) -> None:
    """With a margin as without: an output of 308 tokens and a placeholder of 13 free 295, one of 307 frees 294."""
    policy = quarters(protect=400, minimum=295, max_tokens=100_000, margin=margin)
    timeline = await talking(policy)
    for number, output in enumerate((size, 400, 1, 1)):
        await timeline.append(prompt(), *exchange(f"c{number}", output))
    await timeline.end_run()
    assert [item.block.call_id for item in timeline.window.items if item.state == "hidden"] == calls


TWO_PARTS: Final = {"role": "user", "content": [{"type": "text", "text": "abcd"}, {"type": "text", "text": "efgh"}]}
"""A message of the user's in two parts."""


@pytest.mark.shows("004-31", "004-42", "004-73")
async def test_a_user_message_of_two_parts_is_one_message_and_one_turn() -> None:
    """It costs four tokens once; with a turn before it, it is the newest two turns: outputs of both are left alone."""
    timeline = await talking(quarters(protect=0, minimum=1))
    await timeline.append_messages([TWO_PARTS], wire="openai_chat")
    assert (await timeline.render()).account.by_category == {"prompts": 1 + 1 + 4}
    timeline = await talking(quarters(protect=0, minimum=1), prompt(), *exchange("a", 900))
    await timeline.append_messages([TWO_PARTS], wire="openai_chat")
    assert await timeline.end_run() == []
    await timeline.append_messages([TWO_PARTS], wire="openai_chat")
    assert [taken.facts["outputs"] for taken in await timeline.end_run()] == [1]


@pytest.mark.shows("004-70", "004-73", "004-81")
@pytest.mark.parametrize("wire", ["openai_chat", "ai_sdk"])
async def test_two_turns_whose_prompts_have_two_parts_stay_whole(wire: Any) -> None:
    """The question, the summary, and the messages of the newest two turns, each as it came."""
    said = [
        message
        for n in range(4)
        for message in (
            {"role": "user", "content": [{"type": "text", "text": f"q{n}a"}, {"type": "text", "text": f"q{n}b"}]},
            {"role": "assistant", "content": f"a{n} " + "abc " * 900},
        )
    ]
    timeline = await talking(quarters())
    await timeline.append_messages(said, wire=wire)
    await timeline.compact()
    sent = (await timeline.render()).to_wire(wire)["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant"] * 3
    assert [[part["text"] for part in message["content"]] for message in (sent[2], sent[4])] == [
        ["q2a", "q2b"],
        ["q3a", "q3b"],
    ]


@pytest.mark.shows("004-43", "R-004-10")
async def test_the_prune_stops_at_a_summary() -> None:
    """What lies before a summary stays whole: an earlier policy collapsed a stage, and left what came before it."""
    timeline = await talking(policies.priority_chain(), prompt(), *exchange("old", 900), answer(), summarizer=Mute())
    await timeline.enter_stage("a")
    await timeline.append(*turn(900), *turn(900))
    await timeline.approve_stage(decision="d")
    await timeline.enter_stage("b")
    await timeline.append(prompt(), *exchange("new", 900), answer(), *turn())
    await timeline.compact()
    places = [item.block.path for item in timeline.window.items]
    assert places.index("tc:turn_1.old.result") < places.index("su:turn_3.conv.range.summary")
    await timeline.use_policy(quarters(protect=0, minimum=1, keep_turns=1))
    await timeline.end_run()
    states = {item.block.path: item.state for item in timeline.window.items if isinstance(item.block, ToolResult)}
    assert states == {"tc:turn_1.old.result": "visible", "tc:turn_4.new.result": "hidden"}


@pytest.mark.shows("004-43")
@pytest.mark.parametrize(("pinned", "state"), [(True, "carried"), (False, "hidden")])
async def test_an_output_that_a_summary_carried_is_cleared_once_it_is_unpinned(*, pinned: bool, state: str) -> None:
    """It is older than the summary, but is sent behind it; what is pinned stays."""
    timeline = await talking(
        quarters(protect=0, minimum=1, keep_turns=1), prompt(), *exchange("old", 900), *turn(900), *turn(900)
    )
    await timeline.pin("tc:turn_1.old.result")
    await timeline.compact()
    if not pinned:
        await timeline.unpin("tc:turn_1.old.result")
    await timeline.append(prompt(), *exchange("new", 900), *turn())
    await timeline.end_run()
    states = {item.block.path: item.state for item in timeline.window.items if isinstance(item.block, ToolResult)}
    assert states == {"tc:turn_1.old.result": state, "tc:turn_4.new.result": "hidden"}


@pytest.mark.shows("004-1", "004-14", "004-45", "004-46", "004-47", "004-53", "004-54", "004-55", "R-004-11")
async def test_a_cleared_output_keeps_its_call_its_size_and_its_place() -> None:
    """The log says when it was cleared and what it had; the block itself is whole."""
    long = {"command": "make cards " * 100}
    made = exchange("a", 700, name="bash", arguments=long)
    timeline = await talking(quarters(protect=0, minimum=1, keep_turns=1), prompt(), *made, answer(), *turn())
    before = [entry.path for entry in (await timeline.render()).neutral.entries]
    [taken] = await timeline.end_run(now=after(5))
    context = await timeline.render()
    assert [entry.path for entry in context.neutral.entries] == before
    assert context.neutral.entries[1].arguments == long
    [hidden] = [event for event in await log_of(timeline._store) if event.type == "blocks.hidden"]
    item = next(item for item in timeline.window.items if item.state == "hidden")
    assert (hidden.at, item.block.path, item.tokens) == (after(5), "tc:turn_1.a.result", 700)
    assert item.block.text == "abc " * 700  # what is shown in its place is beside it
    assert (taken.facts["outputs"], taken.facts["tools"]) == (1, "bash")
    assert (await timeline.read("tc:turn_1.a.result")).text == "abc " * 700


@pytest.mark.shows("004-60", "004-81", "004-85", "004-97")
async def test_what_is_left_is_converted_with_its_roles_and_pairs() -> None:
    """Calls by the assistant, the cleared result by the tool, under the same id; what is empty is left out."""
    timeline = await talking(
        quarters(protect=0, minimum=1, keep_turns=1),
        UserPrompt(text="one"),
        call("a", "bash", arguments={"command": "make"}),
        result("a", 700),
        AssistantCompletion(text=""),
        AssistantCompletion(text="done"),
        UserPrompt(text="two"),
    )
    await timeline.end_run()
    told = f"{CLEARED} @4"
    chat = (await timeline.render()).to_openai_chat()["messages"]
    assert [(message["role"], message.get("content")) for message in chat] == [
        ("user", "one"),
        ("assistant", None),
        ("tool", told),
        ("assistant", "done"),
        ("user", "two"),
    ]
    [made] = chat[1]["tool_calls"]
    assert (made["id"], made["function"]["name"], json.loads(made["function"]["arguments"])) == (
        chat[2]["tool_call_id"],
        "bash",
        {"command": "make"},
    )
    with FakeProvider(Answer("ok")) as provider:
        async with AsyncAnthropic(api_key="none", base_url=provider.url, max_retries=0) as client:
            body: Any = (await timeline.render()).to_anthropic()
            reply = await client.messages.create(model="model-x", max_tokens=100, **body)
    assert reply.content[0].text == "ok"


@pytest.mark.shows("004-84")
async def test_the_model_reads_back_what_was_cleared_and_what_was_summarised() -> None:
    """By the path that the placeholder prints, and by that path again once a summary stands for both."""
    timeline = await talking(
        quarters(protect=0, minimum=1, keep_turns=1), prompt(), *exchange("a", 700), *turn(900), *turn()
    )
    await timeline.end_run()
    chat = (await timeline.render()).to_openai_chat()["messages"]
    [placeholder] = [message["content"] for message in chat if message["role"] == "tool"]
    tool = timeline.recall_tool("openai_chat", max_tokens=20_000)
    asked = {"path": placeholder.split()[-1]}
    assert words(700).strip() in await tool.handle(asked)
    await timeline.compact()
    assert asked["path"] not in [item.block.path for item in timeline.window.items]
    assert words(700).strip() in await tool.handle(asked)


# What a model is asked for a summary

RECORD: Final = """\
The conversation:
USER:
Build page_42

---

ASSISTANT:
On it
[Called Read with: {"path":"a.ts"}]

---

TOOL:
[Read result: %s...]

---

TOOL:
[bash result: cleared]
"""


@pytest.mark.shows(
    "004-61",
    "004-62",
    "004-63",
    "004-64",
    "004-65",
    "004-67",
    "004-69",
    "004-72",
    "004-102",
    "R-004-15",
    "R-004-16",
    "R-004-17",
)
async def test_the_whole_request_for_a_summary() -> None:
    """Five headings, 2,000 tokens, names and values, the record by role; it ends by asking to go on from."""
    prompts: list[str] = []

    async def model(prompt: str) -> str:
        prompts.append(prompt)
        return "## What Was Accomplished\n- page_42"

    policy = quarters(keep_turns=1, max_tokens=100_000)
    blocks: list[Block] = [
        UserPrompt(text="Build page_42"),
        AssistantCompletion(text="On it", response_id="m"),
        ToolCall(call_id="c", name="Read", arguments={"path": "a.ts"}, response_id="m"),
        ToolResult(call_id="c", text="x" * 501),
        ToolCall(call_id="d", name="bash", arguments={}, response_id="n"),
        ToolResult(call_id="d", text="y" * 40_000),
        *turn(9_000),
        *turn(),
    ]
    summarizer = CallableSummarizer(model, window_tokens=100_000)
    timeline = await talking(policy, *blocks, summarizer=summarizer)
    await timeline.hide("tc:turn_1.d.result")
    await timeline.compact()
    [told] = prompts
    assert (
        RECORD.replace("TOOL:\n[bash", "ASSISTANT:\n[Called bash with: {}]\n\n---\n\nTOOL:\n[bash") % ("x" * 500)
        in told
    )
    wanted = [
        "You summarise an agent's conversation so that it can be continued in a new context window.",
        "Whoever continues it has no\naccess to the messages below; your summary is where it starts from",
        "make it actionable and specific",
        "Write a detailed but concise summary under exactly these five headings:",
        "## What Was Accomplished",
        "created, changed, written, configured or uploaded, each with its id, name or path",
        "## Current State",
        "What is being worked on now, what the user is trying to achieve, and what is only partly done.",
        "## User Preferences (Critical)",
        "Design, content and style choices; every explicit wish",
        "Rejected options: what the user said no to.",
        "## What Comes Next",
        "Remaining tasks of the user's original request, follow-ups, unresolved questions and decisions.",
        "## Technical Context",
        "Relevant ids, names and values; error states; tool calls that were in progress.",
        "use the actual names, ids and values, and no vague phrases",
        "Stay under 2000 tokens while keeping all critical context.",
    ]
    places = [told.find(text) for text in wanted]
    assert (-1 in places, places) == (False, sorted(places))
    assert told.rstrip().endswith("\n\nProvide the summary to continue from.")


@pytest.mark.shows("004-96")
async def test_without_a_model_the_summary_knows_request_work_state_and_next_steps() -> None:
    """Each under its heading."""
    said = "I created src/db.ts with the schema. The review command still needs to be written."
    timeline = await opened(MemoryStore(), policy=quarters(keep_turns=1))
    await timeline.append(prompt(text="Build the flashcard app"), *exchange("a", 2_000), answer(text=said), *turn())
    await timeline.compact()
    assert timeline.window.summary is not None
    parts = [part.split("\n", 1) for part in timeline.window.summary.block.text.split("## ")[1:]]
    told = dict(parts)
    assert "I created src/db.ts with the schema." in told["What Was Accomplished"]
    assert "- Working on: Build the flashcard app\n" in told["Current State"]
    assert "- Last completed: I created src/db.ts with the schema." in told["Current State"]
    assert "- The review command still needs to be written." in told["What Comes Next"]


@pytest.mark.shows("004-72")
async def test_a_message_is_whole_in_the_record() -> None:
    """A prompt and an answer of 9,000 characters, and all of eight calls in one response; 001 cuts each at 2,000."""
    calls = [
        ToolCall(call_id=f"k{n}", name="update", arguments={"section": f"sec_{n}", "body": "w" * 400}, response_id="m")
        for n in range(8)
    ]
    blocks = [
        UserPrompt(text="HEAD" + "u" * 9_000 + "TAIL"),
        AssistantCompletion(text="a" * 9_000 + "END", response_id="l"),
        UserPrompt(text="Go on."),
        *calls,
        *(ToolResult(call_id=f"k{n}", name="update", text="" if n else "ok") for n in range(8)),
    ]
    told = await asked_of_a_model(*blocks)
    assert "HEAD" + "u" * 9_000 + "TAIL" in told
    assert "a" * 9_000 + "END" in told
    # the input's keys in the order in which the model wrote them
    assert [f'[Called update with: {{"section":"sec_{n}","body":"' in told for n in range(8)] == [True] * 8
    assert (told.count("[update result: ok]"), told.count("[update result: ]")) == (1, 7)
    assert "[...truncated...]" not in told


PICTURE: Final[dict[str, Any]] = {
    "role": "user",
    "content": [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}},
    ],
}
"""A message of the user's with a picture that says nothing of its size."""


@pytest.mark.shows("004-143")
async def test_a_picture_counts_and_is_sent() -> None:
    """One token of text, four of the message, and 1,600 of a picture whose size is not known."""
    timeline = await talking(quarters())
    await timeline.append_messages([PICTURE], wire="openai_chat")
    context = await timeline.render()
    assert context.account.by_category == {"prompts": 1 + 4 + 1_600}
    assert context.to_openai_chat()["messages"] == [PICTURE]


@pytest.mark.shows("004-72")
async def test_a_record_names_attachments_and_leaves_out_thoughts_and_empty_messages() -> None:
    """The design writes nothing for a picture, and only the role of a message without text or call."""
    told = await asked_of_a_model(
        UserPrompt(text="look"),
        Attachment(mime="image/png", data={"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}),
        Reasoning(text="hm", response_id="m"),
        AssistantCompletion(text="I see", response_id="m"),
        Reasoning(text="alone", response_id="n"),
        AssistantCompletion(text="", response_id="o"),
        AssistantCompletion(text="Done", response_id="p"),
    )
    record = told.split("The conversation:\n")[1]
    assert record.startswith(
        "USER:\nlook\n(image/png)\n\n---\n\nASSISTANT:\nI see\n\n---\n\nASSISTANT:\nDone\n\n---\n\nUSER:\n"
    )


async def asked_of_a_model(*blocks: Block) -> str:
    """Return the prompt that a model gets for the summary of a conversation that keeps one turn."""
    prompts: list[str] = []

    async def model(prompt: str) -> str:
        prompts.append(prompt)
        return "## What Was Accomplished\n- page_42"

    timeline = await talking(
        quarters(keep_turns=1, max_tokens=100_000),
        *blocks,
        *turn(9_000),
        *turn(),
        summarizer=CallableSummarizer(model, window_tokens=100_000),
    )
    await timeline.compact()
    [told] = prompts
    return told


@pytest.mark.shows("004-65", "004-66", "R-004-16")
@pytest.mark.parametrize(
    ("model", "most"),
    [(None, 1_488), ("openai/gpt-4", 512), ("openai/gpt-3.5-turbo", 1_536), ("openai/gpt-4o", 2_000)],
)
async def test_a_summary_takes_no_more_than_an_eighth_of_a_small_window(model: str | None, most: int) -> None:
    """Of the room for messages; 2,000 tokens would be half of what gpt-4 has."""
    scribe = Scribe()
    policy = quarters(model=model)
    room = policy.max_tokens - policy.output_reserve
    old = turn(room // 3)
    timeline = await talking(policy, *old, *old, *turn(), *turn(), summarizer=scribe)
    await timeline.compact()
    assert [request.max_tokens for request in scribe.asked] == [min(2_000, room // 8)] == [most]


@pytest.mark.shows("004-65", "004-66", "R-004-16")
async def test_a_summary_takes_no_more_than_half_of_what_it_summarises() -> None:
    """Of two turns of 317 tokens it is 317; in a later round the summary before is added to the half."""
    scribe = Scribe(answers=["abcd" * 300, "history 2"])
    policy = quarters(keep_turns=1, max_tokens=100_000)
    timeline = await talking(policy, *turn(300), *turn(300), *turn(), summarizer=scribe)
    await timeline.compact()
    await timeline.append(*turn(300), *turn())
    await timeline.compact()
    assert [request.max_tokens for request in scribe.asked] == [634 // 2, (22 + 317) // 2 + 300]


@pytest.mark.shows("004-66")
async def test_2000_tokens_are_the_most_and_no_temperature_is_named() -> None:
    """The cap goes with the request."""
    scribe = Scribe()
    timeline = await talking(
        quarters(keep_turns=1, max_tokens=100_000), *turn(9_000), *turn(9_000), *turn(), summarizer=scribe
    )
    await timeline.compact()
    [request] = scribe.asked
    assert (request.max_tokens, request.temperature, request.prompt) == (2_000, None, "continuation")


@pytest.mark.shows("004-18", "004-101", "004-103", "R-004-25", "R-004-26")
@pytest.mark.parametrize("mark", ["interrupted", "error"])
async def test_a_failed_answer_goes_into_the_summary_only_with_its_text_or_call(mark: str) -> None:
    """Thoughts alone stay out; what was said before the end, and what was called, go in."""
    scribe = Scribe()
    broken: dict[str, Any] = {"meta": {mark: True}}
    timeline = await talking(
        quarters(keep_turns=1),
        prompt(),
        Reasoning(text="of nothing", response_id="m1"),
        AssistantCompletion(response_id="m1", **broken),
        Reasoning(text="of something", response_id="m2"),
        AssistantCompletion(text="I was about to", response_id="m2", **broken),
        call("a", response_id="m3"),
        AssistantCompletion(response_id="m3", **broken),
        result("a", 900),
        *turn(900),
        *turn(),
        summarizer=scribe,
    )
    await timeline.compact()
    [request] = scribe.asked
    told = [block.text for block in request.blocks]
    assert "of nothing" not in told
    assert {"of something", "I was about to"} <= set(told)
    assert [block.type for block in request.blocks if block.call_id == "a"] == ["react.tool.call", "react.tool.result"]


@pytest.mark.shows("004-10", "004-18")
async def test_a_recorded_reply_keeps_model_usage_and_how_it_ended() -> None:
    """In the event of its call; what ended otherwise than with its last word is told apart by that."""
    timeline = await talking(quarters(), prompt())
    usage = {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
    await timeline.record(anthropic_message() | {"model": "model-x", "stop_reason": "tool_use", "usage": usage})
    [called] = await payloads_of(timeline._store, "model.called")
    assert (called.model, called.finish_reason) == ("model-x", "tool_use")
    kept = called.usage
    assert (kept.input_tokens, kept.output_tokens, kept.cache_read_tokens, kept.cache_write_5m_tokens) == (7, 5, 3, 2)


# What is left, and what is recorded


@pytest.mark.shows("004-70", "004-73", "R-004-18")
@pytest.mark.parametrize(("keep", "kept"), [(1, ["turn_4"]), (2, ["turn_3", "turn_4"])])
async def test_the_newest_turns_stay_whole_from_their_prompt_on(keep: int, kept: list[str]) -> None:
    """A turn goes from its user message to the next one; the rest is the summary."""
    timeline = await talking(quarters(keep_turns=keep))
    for number in range(4):
        await timeline.append(prompt(100), *exchange(f"c{number}", 400), answer(400))
    await timeline.compact()
    first, *rest = timeline.window.items
    assert first.is_summary
    assert [item.block.turn_id for item in rest] == [turn_id for turn_id in kept for _ in range(4)]


@pytest.mark.shows(
    "004-12", "004-13", "004-15", "004-16", "004-17", "004-21", "004-71", "004-99", "004-105", "004-114", "004-115"
)
async def test_a_compaction_records_how_many_messages_and_tokens_it_took() -> None:
    """Its summary is told apart by its type, has a time, and names the summary that it takes in."""
    scribe = Scribe(answers=["abcd" * 50, "abcd" * 60])
    timeline = await talking(quarters(keep_turns=1), *turn(900), *turn(900), *turn(10), summarizer=scribe)
    before = (await timeline.render()).account.messages
    [first] = await timeline.compact(now=after(7))
    # four messages of the two turns: 2 * (5 + 4) + 2 * (900 + 8)
    assert (first.facts["messages"], first.facts["before_tokens"]) == (4, before)
    saved = 1_834 - (50 + -(-len(QUESTION) // 4) + 2 * 4)
    assert int(first.facts["before_tokens"]) - int(first.facts["after_tokens"]) == saved
    await timeline.append(*turn(900), *turn(10))
    await timeline.compact(now=after(9))
    made: list[Any] = [event for event in await log_of(timeline._store) if event.type == "compaction.completed"]
    one, two = made
    assert [(event.payload.block.type, event.payload.block.at, event.payload.tokens) for event in (one, two)] == [
        ("conv.range.summary", after(7), 50 + 27),
        ("conv.range.summary", after(9), 60 + 27),
    ]
    assert two.payload.covers.summaries == (one.version,)
    assert [request.previous for request in scribe.asked] == [None, "abcd" * 50]
    assert one.payload.covered_blocks == 4
    question, told = (await timeline.render()).neutral.entries[:2]
    assert (question.role, question.text, question.type) == ("user", QUESTION, "conv.range.summary")
    assert (told.role, told.text, told.type) == ("assistant", "abcd" * 60, "conv.range.summary")


@pytest.mark.shows("001-43", "004-15", "004-21", "004-71", "004-121", "004-122", "R-001-21")
async def test_messages_are_counted_and_not_blocks(caplog: pytest.LogCaptureFixture) -> None:
    """A prompt, a response of a text and two calls, and two results are four: in decision, lifecycle and log line."""
    timeline = await talking(
        quarters(keep_turns=1),
        prompt(500),
        answer(500, response_id="m"),
        call("a", response_id="m"),
        call("b", response_id="m"),
        result("a", 500),
        result("b", 500),
        *turn(),
    )
    with caplog.at_level("INFO", logger="timeline"):
        [done] = await timeline.compact()
    assert done.facts["messages"] == 4
    told = [event async for event in recorded(timeline._store, "c")]
    assert [event.messages_count for event in told if isinstance(event, CompactionSummarizeEvent)] == [4]
    assert [event.messages_compacted for event in told if isinstance(event, CompactionCompleteEvent)] == [4]
    [line] = [line for line in caplog.messages if "compaction 1" in line]
    assert line.endswith("tokens (4 messages summarised)")


@pytest.mark.shows("004-87", "004-114", "R-004-20", "R-004-21")
async def test_the_question_can_be_set_and_the_rest_of_the_form_stays() -> None:
    """A table of a single field: the user asks that, and the assistant answers with the summary, without a heading."""
    policy = quarters(keep_turns=1, form={"question": "Where are we?"})
    timeline = await talking(policy, *turn(900), *turn(900), *turn())
    await timeline.compact()
    entries = (await timeline.render()).neutral.entries[:2]
    assert [(entry.role, entry.text) for entry in entries] == [("user", "Where are we?"), ("assistant", "history 1")]


@pytest.mark.shows("004-12", "004-13", "004-16", "004-56")
async def test_every_part_is_stored_with_type_content_tokens_order_and_time() -> None:
    """As events of the log, one a part, numbered in order, each with an id of its own."""
    timeline = await talking(
        quarters(),
        UserPrompt(text="hi"),
        Reasoning(text="hm", response_id="m"),
        AssistantCompletion(text="yes", response_id="m"),
        ToolCall(call_id="c", name="run", arguments={"a": [1]}, response_id="m"),
        ToolResult(call_id="c", text="ok"),
    )
    events: list[Any] = [event for event in await log_of(timeline._store) if event.type == "block.appended"]
    assert [event.payload.block.type for event in events] == [
        *("user.prompt", "assistant.reasoning", "assistant.completion"),
        *("react.tool.call", "react.tool.result"),
    ]
    assert [(event.version, event.at, event.payload.tokens) for event in events] == [
        (2, AT, 1),
        (3, AT, 1),
        (4, AT, 1),
        (5, AT, 3),
        (6, AT, 1),
    ]
    assert len({event.id for event in events}) == 5
    assert json.loads(json.dumps(events[3].payload.block.dump()))["arguments"] == {"a": [1]}


@pytest.mark.shows("004-58")
async def test_the_messages_since_the_last_compaction_are_what_is_loaded() -> None:
    """A second handle has the summary and the kept turn, and reads no covered block."""
    timeline = await talking(quarters(keep_turns=1), *turn(900), *turn(900), *turn(10))
    await timeline.compact()
    again = await Timeline.open(timeline._store, "c", policy=quarters())
    assert [item.block.path.split(":")[1] for item in again.window.items] == [
        "turn_3.conv.range.summary",
        "turn_3.user.prompt",
        "turn_3.assistant.completion",
    ]
    stored = await timeline._store.load_window("c")
    assert min(event.version for event in stored.events) == 6


@pytest.mark.shows("004-8", "004-140", "R-004-31")
async def test_a_switch_turns_all_of_it_off() -> None:
    """`policies.none()` clears nothing and asks nobody; what does not fit is an error. It is not the default."""
    scribe = Scribe()
    timeline = await talking(
        policies.none(counter="chars4", max_tokens=2_000), prompt(), *exchange("a", 1_900), summarizer=scribe
    )
    assert (await timeline.render()).decisions == ()
    await timeline.append(*turn(200))
    with pytest.raises(ContextOverflow):
        await timeline.render()
    assert await timeline.end_run() == []
    assert scribe.asked == []


# What providers cache


def markers(body: Any) -> int:
    """Return how many cache markers a request has."""
    return json.dumps(body).count("cache_control")


@pytest.mark.shows("004-92", "004-117")
async def test_only_anthropics_request_bears_markers() -> None:
    """One is on the system prompt; the others match prefixes by themselves, and get none."""
    timeline = await talking(quarters(), *turn())
    await timeline.append_messages([TWO_PARTS], wire="openai_chat")
    context: RenderedContext = await timeline.render(system="You help.")
    sent = context.to_anthropic()
    assert sent["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert markers(sent) > 1
    assert [markers(context.to_wire(wire)) for wire in ("openai_chat", "openai_responses", "gemini")] == [0, 0, 0]


@pytest.mark.shows("004-7", "004-88", "R-004-22")
async def test_the_prefix_in_front_of_the_messages_is_the_same_for_every_provider() -> None:
    """System prompt and tools, byte for byte, before and after a compaction."""
    tools: list[Any] = [{"name": "run", "input_schema": {"type": "object"}}]
    timeline = await talking(quarters(keep_turns=1), *turn(900), *turn(900), *turn(10))
    before = await timeline.render(system="You help.", tools=tools)
    await timeline.compact()
    compacted = await timeline.render(system="You help.", tools=tools)
    for wire in ("anthropic", "openai_chat", "openai_responses", "gemini"):
        one, two = before.to_wire(wire), compacted.to_wire(wire)
        changed = {key for key in one if json.dumps(one[key]) != json.dumps(two[key])}
        assert changed <= {"messages", "input", "contents"}
    assert before.to_openai_chat()["messages"][0] == compacted.to_openai_chat()["messages"][0]


@pytest.mark.shows("004-143")
async def test_thoughts_go_back_to_the_provider_that_signed_them() -> None:
    """The design leaves them out of what it sends; providers want theirs back while the model works with tools."""
    thought: Any = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    timeline = await talking(
        quarters(),
        prompt(),
        Reasoning(text="hm", data=thought, response_id="m"),
        call("a", response_id="m"),
        result("a"),
    )
    context = await timeline.render()
    [said] = [message for message in context.to_anthropic()["messages"] if message["role"] == "assistant"]
    assert [part["type"] for part in said["content"]] == ["thinking", "tool_use"]
    assert "hm" not in json.dumps(context.to_openai_chat())


# What an interface is told


@pytest.mark.shows("004-122")
async def test_the_end_of_a_compaction_names_the_messages_and_the_share_saved() -> None:
    """In the stream of the lifecycle: tokens before and after, messages, summary."""
    timeline = await talking(quarters(keep_turns=1), *turn(900), *turn(900), *turn(10))
    await timeline.compact()
    done = [event async for event in recorded(timeline._store, "c")][-1]
    assert isinstance(done, CompactionCompleteEvent)
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert (done.tokens_before, done.tokens_after, done.messages_compacted) == (
        completed.before_tokens,
        completed.after_tokens,
        4,
    )
    assert done.percent_saved == pytest.approx(100 * (1 - done.tokens_after / done.tokens_before))
    assert (done.was_pruned, done.was_summarized, done.summary) == (False, True, "history 1")


@pytest.mark.shows("004-119")
async def test_a_prune_at_the_end_of_a_run_has_a_reason_of_its_own() -> None:
    """Nothing was over, and nobody asked for it."""
    timeline = await talking(quarters(protect=0, minimum=1, keep_turns=1), prompt(), *exchange("a", 900), *turn())
    await timeline.end_run()
    starts = [event async for event in recorded(timeline._store, "c") if isinstance(event, CompactionStartEvent)]
    assert [event.reason for event in starts] == ["run_end"]
