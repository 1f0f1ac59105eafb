"""A policy's steps on a log: in order, each on what the one before it left, down to the trigger (seeds 000 and 004)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import Mute, Scribe, after, answer, exchange, log_of, opened, payloads_of, prompt, talking, turn
from timeline import policies
from timeline.errors import CompactionRefused, ContextOverflow
from timeline.planning.clear_tool_outputs import CLEARED
from timeline.policy.presets import PRESETS
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pydantic import JsonValue

    from timeline import RenderedContext, Timeline
    from timeline.blocks import Block
    from timeline.policy.model import Policy
    from timeline.ports import Summarizer

LITERAL: Final = ("priority_chain", "keep_last", "keep_ratio", "prune_then_summarize")


def kinds(context: RenderedContext) -> list[str]:
    """Return what a render decided, in order."""
    return [taken.kind for taken in context.decisions]


def small_talk(count: int) -> list[Block]:
    """Return so many turns of chitchat: a prompt of four tokens and an answer of six."""
    return [block for _ in range(count) for block in (prompt(text="ok, carry on."), answer(6))]


async def prompted(policy: Policy, *blocks: Block, summarizer: Summarizer | None = None) -> Timeline:
    """Return a conversation of these blocks whose contexts have a system prompt."""
    timeline = await talking(policy, summarizer=summarizer)
    await timeline.render(system="You are an agent.")
    await timeline.append(*blocks)
    return timeline


@pytest.mark.shows("000-1", "003-31", "004-80")
@pytest.mark.parametrize("name", LITERAL)
async def test_below_the_trigger_no_step_runs(name: str) -> None:
    """What is not due is sent as it is: chitchat, old outputs and all."""
    timeline = await talking(PRESETS[name](), *small_talk(30), prompt(), *exchange("a", 100), *turn())
    context = await timeline.render(system="You help.")
    assert context.decisions == ()
    assert len(context.neutral.entries) == 65
    assert timeline.version == len(await log_of(timeline._store)) == 67  # the opening, the blocks and the render


async def test_a_hide_without_tool_outputs_names_no_tools() -> None:
    """The facts of a decision leave out tools where none are concerned."""
    policy = policies.priority_chain(max_tokens=1_000)
    timeline = await talking(policy, *small_talk(40), prompt(500))
    stripped = (await timeline.render()).decisions[0]
    assert (stripped.kind, stripped.reason) == ("hidden", "chitchat")
    assert not {"outputs", "tools"} & stripped.facts.keys()


@pytest.mark.shows("003-1", "004-74", "004-80")
async def test_every_render_draws_up_the_account_before_the_call() -> None:
    """Whether anything is due is known before a request goes out, not from the answer to it."""
    policy = policies.prune_then_summarize(max_tokens=6_000, counter="chars4", protect=0, minimum=100)
    timeline = await talking(policy, prompt(), *exchange("a", 1_500), answer(), *turn(), *turn())
    context = await timeline.render()
    assert (context.account.available >= 0, context.decisions) == (True, ())
    await timeline.append(*turn(1_000))
    assert kinds(await timeline.render()) == ["hidden"]


# Seed 000: the chain


@pytest.mark.shows("000-14", "000-16", "000-32", "R-000-2")
async def test_the_chain_stops_as_soon_as_the_trigger_does_not_hold_any_more() -> None:
    """Stripping chitchat is enough here: nobody is asked for a summary."""
    scribe = Scribe()
    timeline = await talking(
        policies.priority_chain(max_tokens=2_000), *turn(1_500), *small_talk(20), *turn(10), summarizer=scribe
    )
    before = timeline.window.tokens
    context = await timeline.render()
    assert before == 1_720
    assert (context.account.total, context.account.trigger) == (1_640, 1_700)
    assert (kinds(context), scribe.asked) == (["hidden"], [])
    [hidden] = context.decisions
    assert (hidden.facts["before_tokens"], hidden.facts["after_tokens"]) == (1_720, 1_640)
    assert context.preparation.tokens.after_prune == context.preparation.tokens.final == 1_640


@pytest.mark.shows("000-15")
async def test_each_step_looks_at_what_the_one_before_it_left() -> None:
    """The summary is measured against the context without the chitchat."""
    scribe = Scribe()
    blocks = [*turn(1_000), *small_talk(20), *turn(1_000), *turn(10)]
    timeline = await talking(policies.priority_chain(max_tokens=2_000), *blocks, summarizer=scribe)
    before = timeline.window.tokens
    context = await timeline.render()
    assert kinds(context) == ["hidden", "compacted"]
    assert context.decisions[1].facts["before_tokens"] == before - 20 * 4


@pytest.mark.shows("000-34", "R-000-17")
async def test_where_no_summary_could_be_written_the_next_step_goes_on() -> None:
    """A failing model costs the summary and nothing else: the prune is next."""
    blocks = [block for _ in range(40) for block in turn(22, asked=22)]
    timeline = await talking(policies.priority_chain(max_tokens=2_000), *blocks, summarizer=Mute())
    context = await timeline.render()
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert kinds(context)[-1] == "compacted"
    assert completed.written_by.summarizer == "notice"
    assert len(context.neutral.entries) == 1 + 50
    notice = context.neutral.entries[0].text
    assert notice.startswith("[Context truncated. Earlier conversation contained 30 messages")


@pytest.mark.shows("000-38")
async def test_what_was_dropped_can_be_read_back() -> None:
    """A prune covers; nothing leaves the log."""
    blocks = [block for n in range(40) for block in (prompt(text=f"Question {n}: " + "abc " * 20), answer(20))]
    timeline = await talking(policies.priority_chain(max_tokens=2_000), *blocks, summarizer=Mute())
    await timeline.render()
    assert (await timeline.read("ar:turn_1.user.prompt")).text.startswith("Question 0")
    assert (await timeline.verify()).ok


async def test_the_prune_comes_only_after_shrunk_stage_data_was_counted() -> None:
    """P4 gives every stage in short from now on: where that is enough, the newest messages all stay."""
    timeline = await talking(policies.priority_chain(max_tokens=8_000), summarizer=Mute())
    for name in ("idea", "plan", "draft"):
        await timeline.enter_stage(name)
        await timeline.append(*[block for _ in range(4) for block in turn(100, asked=50)])
        await timeline.approve_stage(decision=f"{name} settled", short="s" * 40, detailed="d" * 1_000)
    await timeline.enter_stage("review")
    await timeline.append(*[block for _ in range(32) for block in turn(100, asked=100)])
    context = await timeline.render()
    assert kinds(context) == ["compacted"]
    assert sum(item.block.type == "user.prompt" for item in timeline.window.items) == 32
    assert context.account.fixed.ephemeral < 100
    assert context.account.total <= context.account.trigger


@pytest.mark.shows("000-12", "R-000-3")
async def test_what_the_chain_leaves_free_takes_another_round_or_two() -> None:
    """At most 85 % are used afterwards, so 19,200 tokens are free; but there the next round may be due again."""
    confirmed = [block for _ in range(40) for block in (prompt(text="ok"), answer(text="fine"))]
    timeline = await talking(policies.priority_chain(), *turn(54_000, asked=54_000), *confirmed, prompt(721))
    context = await timeline.render()
    assert [taken.reason for taken in context.decisions] == ["chitchat"]
    assert (context.account.total, context.account.available) == (108_761, 19_239)
    await timeline.append(*turn(2_000, asked=500))
    assert kinds(await timeline.render()) == ["compacted"]


# Seed 001: keep last


def fifty_messages() -> list[Block]:
    """Return the fifty messages of the seed's drawing, less the first one, which is the system prompt."""
    return [
        prompt(text="Build a flashcard app"),
        *[block for n in range(1, 23) for block in exchange(f"c{n}", 100)],
        answer(text="All tests pass"),
        prompt(text="Add AI integration"),
        *exchange("c23", 100),
    ]


@pytest.mark.shows("001-7", "001-19", "001-20", "001-42", "001-59")
async def test_fifty_messages_keep_ten() -> None:
    """The drawing of the seed: behind the system prompt come the summary, then the messages [40] to [49]."""
    timeline = await prompted(policies.keep_last(), *fifty_messages())
    await timeline.compact()
    context = await timeline.render(system="You are an agent.")
    summary, *kept = context.neutral.entries
    assert (summary.role, summary.text) == ("assistant", "## Session Summary (Round 1)\n\nhistory 1")
    assert [entry.path.split(".", 1)[1] for entry in kept] == [
        *["c20.call", "c20.result", "c21.call", "c21.result", "c22.call", "c22.result"],
        *["assistant.completion", "user.prompt", "c23.call", "c23.result"],
    ]
    system, opening, sent, *rest = context.to_openai_chat()["messages"]
    assert [message["role"] for message in (system, opening, sent)] == ["system", "user", "assistant"]
    assert opening["content"] == "[The conversation goes on from here.]"
    assert (sent["content"], len(rest)) == (summary.text, 10)


async def test_fifty_messages_keep_eleven_where_a_result_stands_on_the_boundary() -> None:
    """With a message less at the end the boundary is [39], a result: its call stays as well."""
    timeline = await prompted(policies.keep_last(), *fifty_messages()[:46], *fifty_messages()[47:])
    await timeline.compact()
    _, *kept = (await timeline.render()).neutral.entries
    assert len(kept) == 11
    assert [entry.path for entry in kept][:2] == ["tc:turn_1.c19.call", "tc:turn_1.c19.result"]


@pytest.mark.shows(
    "001-17",
    "001-30",
    "001-36",
    "001-38",
    "001-40",
    "001-44",
    "001-45",
    "001-52",
    "001-60",
    "R-001-15",
    "R-001-19",
    "R-001-20",
)
async def test_three_rounds_are_chained_and_numbered() -> None:
    """Each summary takes the one before it in, bears its number, and says what it covers and what that cost."""
    scribe = Scribe()
    timeline = await prompted(policies.keep_last(), summarizer=scribe)
    for _ in range(3):
        await timeline.append(*[block for _ in range(20) for block in turn(50, asked=50)])
        await timeline.compact()
    assert [request.previous for request in scribe.asked] == [None, "history 1", "history 2"]
    assert [len(request.blocks) for request in scribe.asked] == [40 - 10, 40, 40]
    assert not any(block.type == "conv.range.summary" for request in scribe.asked for block in request.blocks)
    rounds = await payloads_of(timeline._store, "compaction.completed")
    assert [completed.round for completed in rounds] == [1, 2, 3]
    for number, completed in enumerate(rounds, start=1):
        assert completed.block.text == f"## Session Summary (Round {number})\n\nhistory {number}"
        assert completed.before_tokens > completed.after_tokens > 0
        assert completed.covered_blocks == 40 * number - 10
    [summary] = [item for item in timeline.window.items if item.is_summary]
    assert summary.block.path == rounds[-1].block.path


@pytest.mark.shows("001-41", "R-001-16")
async def test_every_round_is_told_what_the_conversation_began_with() -> None:
    """The original task is the first prompt of the log, not the first one that is left."""
    scribe = Scribe()
    timeline = await prompted(policies.keep_last(), prompt(text="Build a flashcard app"), summarizer=scribe)
    for _ in range(3):
        await timeline.append(*[block for _ in range(20) for block in turn(50, asked=50)])
        await timeline.compact()
    assert [request.original_task for request in scribe.asked] == ["Build a flashcard app"] * 3
    assert [request.compaction_number for request in scribe.asked] == [1, 2, 3]


@pytest.mark.shows("001-43", "R-001-21")
async def test_a_compaction_is_one_line_of_the_programs_log(caplog: pytest.LogCaptureFixture) -> None:
    """Round, tokens before and after, how many messages were summarised; through `logging`, under the name timeline."""
    timeline = await prompted(policies.keep_last(), *fifty_messages())
    with caplog.at_level("INFO", logger="timeline"):
        [taken] = await timeline.compact()
    before, left = taken.facts["before_tokens"], taken.facts["after_tokens"]
    assert left == (await timeline.render(system="You are an agent.")).account.messages  # without the system prompt
    [line] = caplog.messages
    assert line == f"conversation c: compaction 1: {before} -> {left} tokens (39 messages summarised)"


@pytest.mark.shows("001-39", "001-47", "R-001-19")
@pytest.mark.parametrize("system", ["You help.", None])
async def test_where_all_messages_are_recent_nothing_is_done(system: str | None) -> None:
    """Ten messages above the threshold stay as they are, and no round is counted; the refusal has a reason."""
    policy = policies.keep_last(max_tokens=12_000)
    timeline = await talking(policy, *[block for _ in range(5) for block in turn(200, asked=200)])
    context = await timeline.render(system=system)
    assert [(taken.kind, taken.reason) for taken in context.decisions] == [("refused", "nothing_to_cover")]
    assert len(context.neutral.entries) == 10
    assert timeline.window.compactions == 0


@pytest.mark.shows("001-50")
async def test_an_empty_conversation_stays_as_it_is() -> None:
    """There is nothing to compact."""
    timeline = await talking(policies.keep_last())
    with pytest.raises(CompactionRefused) as refused:
        await timeline.compact()
    assert refused.value.reason == "nothing_to_cover"
    assert (await timeline.render(system="You help.")).neutral.entries == ()


@pytest.mark.shows("001-48", "001-53", "001-61", "R-001-22")
async def test_where_no_summary_could_be_written_keep_last_leaves_everything_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A render goes on with the messages as they are, and a warning says why."""
    blocks = [block for _ in range(20) for block in turn(50, asked=50)]
    timeline = await talking(policies.keep_last(max_tokens=13_000), *blocks, summarizer=Mute())
    context = await timeline.render()
    assert kinds(context) == ["failed"]
    assert len(context.neutral.entries) == 40
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "out of service" in caplog.text


@pytest.mark.shows("001-63", "R-001-23")
async def test_a_message_cut_asks_once() -> None:
    """Whatever turns the range touches, it is one request."""
    scribe = Scribe()
    timeline = await prompted(policies.keep_last(), *fifty_messages(), summarizer=scribe)
    await timeline.compact()
    assert scribe.kinds == ["history"]


class Counting(MemoryStore):
    """A store that remembers what was appended together."""

    def __init__(self) -> None:
        super().__init__()
        self.appends: list[list[str]] = []

    async def append(self, conversation: str, events: Any, **options: Any) -> Any:
        """Append, and remember the events' types."""
        self.appends.append([event.payload.type for event in events])
        return await super().append(conversation, events, **options)


@pytest.mark.shows("001-64", "R-001-24")
async def test_a_compaction_is_one_append() -> None:
    """Summary, coverage and previews are written together or not at all."""
    store = Counting()
    timeline = await opened(store, policy=policies.keep_last(carried_share=0.001), summarizer=Scribe())
    pending = exchange("c0", 2_000, pending=True)
    await timeline.append(prompt(), *pending, *[block for _ in range(20) for block in turn(50, asked=50)])
    await timeline.pin("tc:turn_1.c0.call")
    await timeline.compact()
    written = [types for types in store.appends if "compaction.completed" in types]
    assert written == [["compaction.completed", "blocks.hidden"]]


@pytest.mark.shows("001-14", "004-88", "R-001-10", "R-004-22")
@pytest.mark.parametrize("name", LITERAL)
async def test_a_compaction_leaves_the_system_prompt_in_front(name: str) -> None:
    """System prompt and tools are the same bytes before and after, and no summary is written into them."""
    tools: list[JsonValue] = [{"name": "run", "input_schema": {"type": "object"}}]
    timeline = await talking(PRESETS[name](), *[block for _ in range(40) for block in turn(100, asked=100)])
    before = (await timeline.render(system="You are an agent.", tools=tools)).to_anthropic()
    await timeline.compact()
    after = (await timeline.render(system="You are an agent.", tools=tools)).to_anthropic()
    assert before["messages"] != after["messages"]
    assert (before["system"], before["tools"]) == (after["system"], after["tools"])


# Seed 003: keep ratio


def fourteen_messages() -> list[Block]:
    """Return the messages of the seed's drawing."""
    return [
        *[prompt(text="Help me refactor"), *exchange("c1", 300)],
        *[prompt(text="Now fix the bug"), *exchange("c4", 300)],
        *[prompt(text="Also add tests"), *exchange("c7", 300)],
        *[prompt(text="Run the tests"), *exchange("c10", 30)],
        *[prompt(text="Now deploy"), answer(text="I'll push to git")],
    ]


@pytest.mark.shows("003-3", "003-21", "003-24", "003-26", "003-27", "R-003-5")
async def test_fourteen_messages_are_cut_at_nine() -> None:
    """The drawing of the seed: a summary of [0] to [8] as the user's, `Understood.`, then five messages."""
    scribe = Scribe()
    timeline = await talking(policies.keep_ratio(), *fourteen_messages(), summarizer=scribe)
    await timeline.compact()
    context = await timeline.render()
    assert [(entry.role, entry.text) for entry in context.neutral.entries[:2]] == [
        ("user", "[COMPACT SUMMARY]\nhistory 1"),
        ("assistant", "Understood."),
    ]
    assert [entry.path for entry in context.neutral.entries[2:]] == [
        "ar:turn_4.user.prompt",
        "tc:turn_4.c10.call",
        "tc:turn_4.c10.result",
        "ar:turn_5.user.prompt",
        "ar:turn_5.assistant.completion",
    ]
    [request] = scribe.asked
    assert [block.text for block in request.blocks if block.type == "user.prompt"] == [
        "Help me refactor",
        "Now fix the bug",
        "Also add tests",
    ]
    assert len(request.blocks) == 9


@pytest.mark.shows("003-23", "003-28", "003-30", "R-003-9", "R-003-10")
@pytest.mark.parametrize(
    "summarizer",
    [
        Mute(),
        Mute(problem=TimeoutError("the model took too long")),
        Mute(problem=ValueError("the answer is no JSON")),
        Scribe(answers=[""]),
    ],
    ids=["failure", "timeout", "error", "empty"],
)
async def test_where_no_summary_could_be_written_a_notice_takes_its_place(summarizer: Summarizer) -> None:
    """Timeout, error and empty answer: the newest 40 % stay, and the rest is named; nothing is raised."""
    timeline = await talking(policies.keep_ratio(max_tokens=17_500), *fourteen_messages(), summarizer=summarizer)
    context = await timeline.render()
    assert kinds(context) == ["compacted"]
    assert context.neutral.entries[0].text == (
        "[COMPACT SUMMARY]\n[Context truncated. Earlier conversation contained 9 messages about: "
        "Help me refactor; Now fix the bug; Also add tests]"
    )
    assert len(context.neutral.entries) == 7
    sent = context.to_openai_chat()["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant"] * 2 + ["tool", "user", "assistant"]


# Seed 004: prune then summarize


def large_outputs() -> list[Block]:
    """Return three turns; the outputs of the first one are large."""
    first = [prompt(), *exchange("a", 1_000), *exchange("b", 1_000), *exchange("d", 1_000), answer(300)]
    return [*first, *turn(50, asked=50), *turn(50, asked=50)]


def pruning(max_tokens: int) -> Policy:
    """Return seed 004's policy with figures for a short conversation."""
    return policies.prune_then_summarize(
        max_tokens=max_tokens, output_reserve=0, counter="chars4", protect=1_000, minimum=500, min_progress_tokens=0
    )


@pytest.mark.shows("004-2", "004-6", "004-79", "004-83", "004-1", "004-98")
@pytest.mark.parametrize(
    ("max_tokens", "expected"), [(4_000, []), (3_000, ["hidden"]), (1_500, ["hidden", "compacted"])]
)
async def test_outputs_are_cleared_first_and_a_summary_follows_only_where_that_is_not_enough(
    max_tokens: int, expected: list[str]
) -> None:
    """Nothing, the cheap step, or both: each is asked for only when the one before was not enough."""
    timeline = await talking(pruning(max_tokens), *large_outputs())
    context = await timeline.render()
    assert kinds(context) == expected
    assert context.account.available >= 0
    await timeline.append(*turn())
    assert (await timeline.verify()).ok


@pytest.mark.shows("004-14", "004-45", "004-46", "004-47", "004-53", "004-55", "R-004-11")
async def test_what_was_cleared_keeps_its_size_and_says_when() -> None:
    """Of a cleared output the call, the tokens and the time are known, and the content can be read."""
    timeline = await talking(pruning(3_000), *large_outputs())
    await timeline.render(now=after(60))
    [hidden] = [event for event in await log_of(timeline._store) if event.type == "blocks.hidden"]
    assert hidden.at == after(60)
    items = {item.block.path: item for item in timeline.window.items}
    cleared = items["tc:turn_1.a.result"]
    assert cleared.replacement is not None
    assert cleared.replacement.text == f"{CLEARED} @4"
    assert (cleared.tokens, cleared.shown_tokens < 30, cleared.changed_at) == (1_000, True, hidden.version)
    assert items["tc:turn_1.a.call"].state == "visible"
    assert [path for path, item in items.items() if item.state == "hidden"] == [
        "tc:turn_1.a.result",
        "tc:turn_1.b.result",
    ]
    assert (await timeline.read("tc:turn_1.a.result")).text == "abc " * 1_000


@pytest.mark.shows("004-3", "004-87", "004-89", "004-90", "004-114", "004-115", "004-116", "R-004-20")
async def test_the_summary_is_an_answer_to_a_fixed_question() -> None:
    """Question and answer come before the kept turns; neither goes into the system prompt."""
    policy = pruning(1_500)
    timeline = await talking(policy, *large_outputs())
    context = await timeline.render(system="You are an agent.")
    question, told, *kept = context.neutral.entries
    assert (question.role, question.text) == ("user", policy.form.question)
    assert question.text.startswith("What have we accomplished in our conversation so far?")
    assert (told.role, told.text) == ("assistant", "history 1")
    assert (question.type, told.type) == ("conv.range.summary", "conv.range.summary")
    assert (len(kept), kept[0].path) == (4, "ar:turn_2.user.prompt")
    assert "history 1" not in str(context.to_anthropic()["system"])


@pytest.mark.shows("004-102")
async def test_every_message_before_the_cut_is_given_to_the_summarizer() -> None:
    """Cleared outputs go out as they are shown; prompts and answers are all there."""
    scribe = Scribe()
    timeline = await talking(pruning(1_500), *large_outputs(), summarizer=scribe)
    await timeline.render()
    [request] = scribe.asked
    assert [block.path for block in request.blocks if block.type in {"user.prompt", "assistant.completion"}] == [
        "ar:turn_1.user.prompt",
        "ar:turn_1.assistant.completion",
    ]
    assert sum(block.text.startswith(CLEARED) for block in request.blocks) == 2


@pytest.mark.shows("004-21", "004-71")
async def test_a_compaction_says_what_it_did() -> None:
    """The compaction's number, the tokens before and after, the compacted tokens, and the summary's path."""
    timeline = await talking(policies.prune_then_summarize(counter="chars4"), *large_outputs())
    [taken] = [taken for taken in await timeline.compact() if taken.kind == "compacted"]
    assert set(taken.facts) >= {
        "compaction_number",
        "before_tokens",
        "after_tokens",
        "compacted_tokens",
        "summary_path",
    }
    assert taken.facts["after_tokens"] == (await timeline.render()).account.messages
    assert (await timeline.read(str(taken.facts["summary_path"]))).type == "conv.range.summary"


@pytest.mark.shows("R-004-19")
async def test_one_prompt_in_a_run_is_refused_with_a_reason() -> None:
    """An agent that was asked once has no two turns: what does not fit is a typed refusal, then a typed error."""
    blocks = [prompt(), *[block for n in range(40) for block in exchange(f"c{n}", 60)]]
    timeline = await talking(pruning(2_000), *blocks)
    with pytest.raises(CompactionRefused) as refused:
        await timeline.compact()
    assert refused.value.reason == "nothing_to_cover"
    with pytest.raises(ContextOverflow):
        await timeline.render()
