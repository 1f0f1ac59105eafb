"""Seed 000 from outside: its figures and its five priorities, on logs under the preset; the examples are beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import Mute, Scribe, answer, call, payloads_of, prompt, result, talking, turn, words
from timeline import policies
from timeline.blocks import AssistantCompletion, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.policy.steps import StripChitchat
from timeline.summarizers import CallableSummarizer

if TYPE_CHECKING:
    from timeline import RenderedContext, Timeline
    from timeline.blocks import Block
    from timeline.ports import Summarizer

LABEL: Final = "[RINGKASAN DISKUSI SEBELUMNYA]"
BULLETS: Final = "- satu\n- dua\n- tiga"


def messages_of(number: int, tokens: int) -> list[Block]:
    """Return so many messages of so many tokens, numbered, user and assistant in turn."""
    texts = [f"m{n:03} " + words(tokens)[5:] for n in range(number)]
    return [AssistantCompletion(text=text) if n % 2 else UserPrompt(text=text) for n, text in enumerate(texts)]


def taken(context: RenderedContext) -> list[str]:
    """Return what a render did, step by step: why it hid, or who wrote the summary."""
    writers = {summary.block.path: summary.written_by.summarizer for summary in context.window.summaries}
    return [writers.get(str(done.facts.get("summary_path")), done.reason) for done in context.decisions]


async def writers(timeline: Timeline) -> list[str]:
    """Return who wrote each summary, oldest first."""
    return [done.written_by.summarizer for done in await payloads_of(timeline._store, "compaction.completed")]


def said(context: RenderedContext) -> list[str]:
    """Return the first words of the messages that are shown, without summaries."""
    entries = [entry for entry in context.neutral.entries if entry.type != "conv.range.summary"]
    return [entry.text.split()[0] for entry in entries]


async def through(timeline: Timeline, name: str, tokens: int, number: int = 10, **approval: Any) -> None:
    """Go through a stage of so many messages."""
    await timeline.enter_stage(name.lower(), name)
    await timeline.append(*messages_of(number, tokens))
    await timeline.approve_stage(**{"decision": f"keputusan {name}", **approval})


def sections(context: RenderedContext) -> dict[str, list[str]]:
    """Return the lines of the stage data by stage."""
    data = next(entry.text for entry in context.neutral.ephemeral if entry.text.startswith("STAGE DATA"))
    parts = [part.splitlines() for part in data.split("\n\n")[1:]]
    return {lines[0].removeprefix("## "): lines[1:] for lines in parts}


# Figures


@pytest.mark.shows("000-1", "000-8", "000-9", "000-14", "R-000-1", "R-000-2")
@pytest.mark.parametrize(("over", "done"), [(0, []), (1, ["scribe"])])
async def test_the_chain_starts_strictly_above_85_percent_of_128000(over: int, done: list[str]) -> None:
    """At 108,800 tokens, system prompt included, the whole context stays; with one more it is compacted."""
    blocks = [*messages_of(99, 1_000), prompt(8_800 + over)]
    context = await (await talking(policies.priority_chain(), *blocks)).render(system=words(1_000))
    assert (context.account.limit, context.account.trigger) == (128_000, 108_800)
    assert taken(context) == done
    assert len(said(context)) == (80 if done else 100)
    assert (context.account.total == 108_800) is not bool(done)


@pytest.mark.shows("000-14", "R-000-2")
@pytest.mark.parametrize(("over", "done"), [(0, ["chitchat"]), (1, ["chitchat", "scribe"])])
async def test_the_chain_stops_as_soon_as_it_is_at_the_trigger(over: int, done: list[str]) -> None:
    """Without the short message 1,700 tokens of 2,000 are left, which is enough; 1,701 are not."""
    blocks = [UserPrompt(text="ok"), *turn(600, asked=100), *turn(500, asked=100), prompt(400 + over)]
    context = await (await talking(policies.priority_chain(max_tokens=2_000), *blocks)).render()
    assert taken(context) == done


@pytest.mark.shows("000-6")
@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 2), (8, 2), (9, 3)])
async def test_tokens_are_characters_over_four(characters: int, tokens: int) -> None:
    """Rounded up, text by text."""
    timeline = await talking(policies.priority_chain(), UserPrompt(text="x" * characters))
    account = (await timeline.render()).account
    assert (account.by_category, account.total) == ({"prompts": tokens}, tokens)


@pytest.mark.shows("000-6")
async def test_a_character_counts_once_whatever_its_length_in_utf_16() -> None:
    """Eight emoji are two tokens, not four."""
    timeline = await talking(policies.priority_chain(), UserPrompt(text="\N{THUMBS UP SIGN}" * 8))
    assert (await timeline.render()).account.total == 2


@pytest.mark.shows("000-11", "R-000-21")
@pytest.mark.parametrize(
    ("tokens", "summarizer", "steps", "kept"),
    [
        (1_084, Mute(), [], 100),
        (1_090, Scribe(answers=[BULLETS]), ["scribe"], 80),
        (1_090, Mute(), ["notice"], 50),
    ],
    ids=["below", "a summary helps", "nothing else helps"],
)
async def test_the_brute_prune_is_the_last_step_of_the_chain(
    tokens: int, summarizer: Summarizer, steps: list[str], kept: int
) -> None:
    """Between 80 and 85 % nothing is pruned; above, only once no other step helped, the newest 50 messages stay."""
    timeline = await talking(policies.priority_chain(), *messages_of(100, tokens), summarizer=summarizer)
    context = await timeline.render()
    assert (taken(context), len(said(context))) == (steps, kept)


@pytest.mark.shows("000-8", "000-54")
@pytest.mark.parametrize(
    ("window", "limit", "percent"),
    [
        ({}, 128_000, 20.7),
        ({"max_tokens": 1_000_000}, 1_000_000, 2.6),
        ({"model": "gemini-2.5-flash"}, 1_048_576, 2.5),
    ],
    ids=["default", "a million", "Gemini"],
)
async def test_most_sessions_are_never_compacted(window: dict[str, Any], limit: int, percent: float) -> None:
    """26,500 tokens are some 20 % of the default window, 2.6 % of a million and 2.5 % of the table's for Gemini."""
    timeline = await talking(policies.priority_chain(**window), *messages_of(100, 240))
    context = await timeline.render(system=words(2_500))
    assert context.decisions == ()
    assert (context.account.total, context.account.limit) == (26_500, limit)
    assert percent <= context.account.percent_used < percent + 0.1


@pytest.mark.shows("000-13", "000-15", "000-32", "000-35", "000-37", "R-000-20")
async def test_the_five_priorities_run_one_after_another() -> None:
    """P1 strips, P2 collapses the old stages, P3 summarises twenty messages, P4 takes the recent stages, P5 prunes."""
    scribe = Scribe(answers=[BULLETS])
    timeline = await talking(policies.priority_chain(), summarizer=scribe)
    for name in ("Gagasan", "Topik", "Outline", "Abstrak", "Literatur"):
        await through(timeline, name, 1_000)
    await timeline.enter_stage("hasil", "Hasil")
    await timeline.append(UserPrompt(text="lanjut"), *messages_of(120, 2_000))
    context = await timeline.render()
    assert taken(context)[0] == "chitchat"
    assert await writers(timeline) == ["stage_digest", "scribe", "stage_digest", "notice"]
    after = [done.facts["after_tokens"] for done in context.decisions]
    assert after == sorted(after, reverse=True)
    assert said(context) == [f"m{n:03}" for n in range(70, 120)]
    [request] = scribe.asked
    assert [block.text[:4] for block in request.blocks if block.text != "lanjut"] == [f"m{n:03}" for n in range(20)]


# P1


@pytest.mark.shows("000-16", "000-17", "000-18", "000-19", "000-20", "000-21", "R-000-6", "R-000-7")
@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("ok", False),
        ("Ya", False),
        ("  LANJUT  ", False),
        ("exactly fourtn", False),  # 14 characters
        ("exactly fifteen", True),
        ("why?", True),
        ("go!", True),
        ("\N{CJK UNIFIED IDEOGRAPH-597D}\N{FULLWIDTH QUESTION MARK}", True),
        ("\N{CJK UNIFIED IDEOGRAPH-597D}\N{FULLWIDTH EXCLAMATION MARK}", True),
        ("\N{ARABIC LETTER LAM}\N{ARABIC QUESTION MARK}", True),
        ("\N{CJK UNIFIED IDEOGRAPH-597D}", False),
        ("ok" + " " * 48, False),  # 50 characters as written
        ("ok" + " " * 49, True),
        ("\N{THUMBS UP SIGN}" * 7, False),  # 14 UTF-16 units
        ("\N{THUMBS UP SIGN}" * 8, True),
        ("\N{THUMBS UP SIGN}" * 3 + " " * 44, False),  # 50 UTF-16 units as written, 47 characters
        ("\N{THUMBS UP SIGN}" * 3 + " " * 45, True),
    ],
)
async def test_short_messages_of_the_user_are_stripped(text: str, *, stays: bool, staged: bool) -> None:
    """Trimmed below 15 characters, as written at most 50, no question, no exclamation; the assistant's all stay."""
    timeline = await talking(policies.priority_chain(max_tokens=2_000), summarizer=Mute())
    if staged:
        await timeline.enter_stage("gagasan", "Gagasan")
    await timeline.append(prompt(), AssistantCompletion(text="ya"), UserPrompt(text=text))
    await timeline.append(AssistantCompletion(text="ok"), *turn(1_700, asked=5))
    context = await timeline.render()
    shown = [entry.text for entry in context.neutral.entries]
    texts = ["ya", *([text] if stays else []), "ok"]
    assert shown == [prompt().text, *texts, *[block.text for block in turn(1_700, asked=5)]]
    assert (taken(context)[:1] == ["chitchat"]) is not stays


@pytest.mark.shows("000-17")
async def test_short_messages_of_others_than_the_user_stay() -> None:
    """Beside a user's "ok", which goes: the assistant's, a tool's result, a message of the system's."""
    said = [AssistantCompletion(text="ok"), SystemMessage(text="ok")]
    made = [ToolCall(call_id="c", name="run", arguments={}, response_id="m"), ToolResult(call_id="c", text="ok")]
    timeline = await talking(
        policies.priority_chain(max_tokens=2_000), prompt(), *said, UserPrompt(text="ok"), *made, *turn(1_700, asked=5)
    )
    context = await timeline.render()
    assert taken(context)[0] == "chitchat"
    short = [entry.type for entry in context.neutral.entries if entry.text == "ok"]
    assert short == ["assistant.completion", "system.message", "react.tool.result"]


@pytest.mark.shows("000-22", "R-000-8")
async def test_the_words_that_are_never_chitchat_can_be_set() -> None:
    """An application has commands of its own, in whatever case it writes them."""
    steps = (StripChitchat(kept_words=("Lanjut", "go ON")),)
    policy = policies.priority_chain(max_tokens=2_000, steps=steps)
    texts = ("lanjut", "stop", "please go on", "ok")
    talk = [block for text in texts for block in (UserPrompt(text=text), answer(5))]
    context = await (await talking(policy, *talk, *turn(1_680, asked=5))).render()
    assert [entry.text for entry in context.neutral.entries if len(entry.text) < 15] == ["lanjut", "please go on"]


@pytest.mark.shows("R-000-10")
async def test_the_newest_prompt_is_never_stripped() -> None:
    """It is what the model is to answer."""
    blocks = [UserPrompt(text="ok"), *turn(1_700), UserPrompt(text="ok")]
    context = await (await talking(policies.priority_chain(max_tokens=2_000), *blocks)).render()
    assert taken(context)[0] == "chitchat"
    assert [entry.text for entry in context.neutral.entries].count("ok") == 1
    assert context.neutral.entries[-1].text == "ok"


# P2 and P4


@pytest.mark.shows("000-23", "000-51", "R-000-11")
async def test_a_conversation_without_stages_passes_over_the_steps_about_them() -> None:
    """Neither P2 nor P4 does anything: the summary is followed by the prune, which keeps 50 messages."""
    timeline = await talking(policies.priority_chain(), *messages_of(100, 2_000), summarizer=Scribe(answers=[BULLETS]))
    context = await timeline.render()
    assert await writers(timeline) == ["scribe", "notice"]
    assert len(said(context)) == 50


@pytest.mark.shows("000-24", "000-25", "000-27", "000-32", "000-52", "R-000-11", "R-000-12")
@pytest.mark.parametrize(
    ("over", "collapsed"),
    [(1, ["Gagasan"]), (10_000, ["Gagasan", "Topik"]), (20_000, ["Gagasan", "Topik", "Outline"])],
)
async def test_stages_are_collapsed_oldest_first_until_it_is_enough(over: int, collapsed: list[str]) -> None:
    """One at a time, estimated after each; its messages give way to its entry in the digest, the others stay."""
    timeline = await talking(policies.priority_chain(stage_data=None))
    names = ("Gagasan", "Topik", "Outline", "Abstrak", "Literatur", "Metodologi")
    for name in names:
        await through(timeline, name, 1_000, decision=name[0] * 200)
    await timeline.enter_stage("hasil", "Hasil")
    before = (await timeline.render(record=False)).account.total
    await timeline.append(*messages_of(48, 1_000), prompt(108_800 - before - 48_000 + over))
    context = await timeline.render()
    [summary] = context.window.summaries
    assert summary.block.text.startswith(f"[The messages of these stages are out of view: {'; '.join(collapsed)}. ")
    entries = [f"- {name}: {name[0] * 200}" for name in names]
    assert context.neutral.ephemeral[0].text.splitlines()[1:] == entries
    assert taken(context) == ["stage_digest"]
    assert len(said(context)) == 10 * (6 - len(collapsed)) + 49
    assert context.account.total <= 108_800


@pytest.mark.shows("000-2", "000-36", "R-000-18")
async def test_three_stages_are_shown_in_detail_until_one_of_them_is_collapsed() -> None:
    """Of five, three with 1,000 characters and two with 280; once P4 took one of the three, all with 280."""
    timeline = await talking(policies.priority_chain(), summarizer=Mute())
    names = ("Gagasan", "Topik", "Outline", "Abstrak", "Literatur")
    for name in names:
        await through(timeline, name, 1_000, short=name[0] * 280, detailed=name[0] * 1_000)
    await timeline.enter_stage("hasil", "Hasil")
    await timeline.append(prompt())
    before = await timeline.render()
    lengths = {name: len(lines[0]) for name, lines in sections(before).items()}
    assert lengths == {"Gagasan": 280, "Topik": 280, "Outline": 1_000, "Abstrak": 1_000, "Literatur": 1_000}
    await timeline.append(*messages_of(50, 1_900))
    context = await timeline.render()
    assert taken(context) == ["stage_digest", "stage_digest"]
    assert {name: len(lines[0]) for name, lines in sections(context).items()} == dict.fromkeys(names, 280)
    assert before.account.fixed.stage_data - context.account.fixed.stage_data == 3 * 720 // 4


@pytest.mark.shows("000-35", "000-36", "R-000-11")
@pytest.mark.parametrize(("over", "collapsed"), [(500, "A"), (700, "A"), (800, "A; B"), (1_000, "A; B; C")])
async def test_the_shrinking_of_stage_data_counts_before_another_recent_stage_is_taken(
    over: int, collapsed: str
) -> None:
    """A stage's messages are 200 tokens, and the short texts of all three 540 less: that is often enough with one."""
    policy = policies.priority_chain(max_tokens=16_000)
    timeline = await talking(policy, summarizer=Mute())
    for name in "ABC":
        await through(timeline, name, 50, number=4, short=name * 280, detailed=name * 1_000)
    await timeline.enter_stage("d", "D")
    before = (await timeline.render(record=False)).account.total
    await timeline.append(prompt(20), answer(13_600 - before - 40 + over), prompt(20))
    context = await timeline.render()
    [summary] = context.window.summaries
    assert summary.block.text.startswith(f"[The messages of these stages are out of view: {collapsed}. ")
    assert context.account.total <= 13_600


@pytest.mark.shows("000-35", "000-36")
async def test_a_recent_stage_of_a_few_words_is_taken_with_the_one_behind_it() -> None:
    """The short texts free enough, but its messages cost less than the line: alone it would be refused."""
    timeline = await talking(policies.priority_chain(max_tokens=16_000), summarizer=Mute())
    for name, tokens in (("A", 1), ("B", 200), ("C", 200)):
        await through(timeline, name, tokens, number=2, short=name * 280, detailed=name * 1_000)
    await timeline.enter_stage("d", "D")
    before = (await timeline.render(record=False)).account.total
    await timeline.append(prompt(20), answer(13_600 - before - 40 + 500), prompt(20))
    context = await timeline.render()
    [summary] = context.window.summaries
    assert summary.block.text.startswith("[The messages of these stages are out of view: A; B. ")
    assert context.account.total <= 13_600


@pytest.mark.shows("000-36", "R-000-18")
@pytest.mark.parametrize("number", [0, 10], ids=["without messages", "collapsed by P2"])
async def test_without_messages_to_take_from_a_recent_stage_its_data_stays_in_detail(number: int) -> None:
    """P4 takes no stage, so it shrinks none: at 7,100 tokens of 6,800 the render ends refused."""
    timeline = await talking(policies.priority_chain(max_tokens=8_000), summarizer=Mute())
    names = "ABC" + "DEF" * bool(number)
    for name in names:
        await through(timeline, name, 100, number=number, short=name * 280, detailed=name * 1_000)
    await timeline.enter_stage("g", "G")
    if number:
        await timeline.append(*messages_of(3, 700))
        assert taken(await timeline.render()) == ["stage_digest"]
        await timeline.rewind_stage("d")
    before = (await timeline.render(record=False)).account.total
    await timeline.append(prompt(20), answer(7_100 - before - 40), prompt(20))
    context = await timeline.render()
    assert [(done.kind, done.reason) for done in context.decisions] == [("refused", "nothing_to_cover")]
    assert (context.account.total, context.account.trigger) == (7_100, 6_800)
    assert {name: len(lines[0]) for name, lines in sections(context).items()} == dict.fromkeys("ABC", 1_000)


@pytest.mark.shows("000-25", "000-35", "000-36", "R-000-12")
@pytest.mark.parametrize("names", ["ABCDE", "CDE"], ids=["P2", "P4"])
@pytest.mark.parametrize(("tokens", "collapsed"), [(3, False), (100, True)])
async def test_stages_whose_messages_cost_less_than_the_line_that_names_them_stay(
    names: str, tokens: int, *, collapsed: bool
) -> None:
    """Two messages of three tokens each; collapsed, a context above the line would only grow."""
    timeline = await talking(policies.priority_chain(max_tokens=8_000), summarizer=Mute())
    for name in names:
        await through(timeline, name, tokens, number=2, short=name * 280, detailed=name * 1_000)
    await timeline.enter_stage("g", "G")
    before = (await timeline.render(record=False)).account.total
    await timeline.append(prompt(20), answer(6_801 - before - 40), prompt(20))
    context = await timeline.render()
    assert [done.kind for done in context.decisions] == (["compacted"] if collapsed else ["refused"])
    assert (len(context.window.summaries), context.account.total <= 6_800) == (collapsed, collapsed)
    if not collapsed:
        assert said(context).count("m000") == said(context).count("m001") == len(names)
        assert {len(lines[0]) for lines in sections(context).values()} == ({280, 1_000} if len(names) > 3 else {1_000})


@pytest.mark.shows("000-2", "000-36")
async def test_stages_that_p2_took_stay_in_detail_when_a_rewind_makes_them_the_newest() -> None:
    """P4 never ran: the newest three show their detailed text, though their messages are out of view."""
    timeline = await talking(policies.priority_chain(max_tokens=8_000))
    for name in "ABCDEF":
        await through(timeline, name, 100, short=name * 280, detailed=name * 1_000)
    await timeline.enter_stage("g", "G")
    await timeline.append(*messages_of(3, 700))
    context = await timeline.render()
    assert taken(context) == ["stage_digest"]
    assert "view: A; B; C. " in context.neutral.entries[0].text
    assert {name: len(lines[0]) for name, lines in sections(context).items()} == {
        **dict.fromkeys("ABC", 280),
        **dict.fromkeys("DEF", 1_000),
    }
    await timeline.rewind_stage("d")
    after = sections(await timeline.render())
    assert {name: len(lines[0]) for name, lines in after.items()} == dict.fromkeys("ABC", 1_000)


@pytest.mark.shows("000-3", "000-5", "R-000-19")
async def test_references_citations_and_artifacts_have_caps() -> None:
    """Five references and five citations a stage; ten artifacts of 500 characters over all, the newest stages first."""
    timeline = await talking(policies.priority_chain())
    for name in ("Gagasan", "Topik"):
        await through(
            timeline,
            name,
            10,
            references=[f"r{n}" for n in range(7)],
            citations=[f"c{n}" for n in range(6)],
            artifacts=[f"{n}" * 600 for n in range(6)],
        )
    shown = sections(await timeline.render())
    for lines in shown.values():
        assert [line for line in lines if line.startswith("- r")] == [f"- r{n}" for n in range(5)]
        assert [line for line in lines if line.startswith("- c")] == [f"- c{n}" for n in range(5)]
        assert [line for line in lines if line.startswith("- and")][:2] == ["- and 2 more", "- and 1 more"]
    artifacts = {name: [line for line in lines if len(line) > 400] for name, lines in shown.items()}
    assert {name: len(lines) for name, lines in artifacts.items()} == {"Gagasan": 4, "Topik": 6}
    assert {len(line) for lines in artifacts.values() for line in lines} == {len("- ") + 500}


# P3


@pytest.mark.shows("000-28", "000-29", "R-000-14")
@pytest.mark.parametrize("staged", [False, True])
async def test_the_oldest_twenty_messages_are_summarised(*, staged: bool) -> None:
    """Of the whole conversation; where there are stages, of the current one alone."""
    scribe = Scribe(answers=[BULLETS])
    timeline = await talking(policies.priority_chain(), summarizer=scribe)
    await through(timeline, "Gagasan", 100) if staged else None
    if staged:
        await timeline.enter_stage("topik", "Topik")
    await timeline.append(*messages_of(60, 1_900))
    context = await timeline.render()
    [request] = scribe.asked
    assert [block.text[:4] for block in request.blocks] == [f"m{n:03}" for n in range(20)]
    assert {len(block.text) for block in request.blocks} == {4 * 1_900}
    assert len(said(context)) == 40 + (10 if staged else 0)


@pytest.mark.shows("000-28", "000-29", "R-000-14")
@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize(("number", "summarised"), [(5, 4), (10, 9), (20, 19), (21, 20)])
async def test_all_but_the_newest_of_a_shorter_conversation_are_summarised(
    number: int, summarised: int, *, staged: bool
) -> None:
    """The model continues from the newest message, so it stays; the same in a stage that is shorter."""
    scribe = Scribe(answers=[BULLETS])
    timeline = await talking(policies.priority_chain(), summarizer=scribe)
    if staged:
        await timeline.enter_stage("gagasan", "Gagasan")
    await timeline.append(*messages_of(number, 110_000 // number))
    context = await timeline.render()
    [request] = scribe.asked
    assert [block.text[:4] for block in request.blocks] == [f"m{n:03}" for n in range(summarised)]
    assert said(context) == [f"m{n:03}" for n in range(summarised, number)]


@pytest.mark.shows("000-28", "000-29", "R-000-14")
async def test_ten_messages_fewer_are_summarised_where_a_response_would_be_divided() -> None:
    """The twentieth message is among the thirty results of one response, which stays whole."""
    scribe = Scribe(answers=[BULLETS])
    calls = [call(f"c{n}", response_id="m") for n in range(30)]
    results = [result(f"c{n}", 3_000) for n in range(30)]
    timeline = await talking(policies.priority_chain(), *messages_of(10, 2_000), *calls, *results, summarizer=scribe)
    context = await timeline.render()
    [request] = scribe.asked
    assert [block.text[:4] for block in request.blocks] == [f"m{n:03}" for n in range(10)]
    assert [entry.type for entry in context.neutral.entries].count("react.tool.result") == 30


@pytest.mark.shows("000-29", "R-000-14")
async def test_one_message_fewer_is_summarised_where_a_pair_would_be_divided() -> None:
    """The twentieth is a call: it stays with its result."""
    scribe = Scribe(answers=[BULLETS])
    blocks = [*messages_of(19, 1_900), call("a"), result("a", 1_900), *messages_of(39, 1_900)]
    timeline = await talking(policies.priority_chain(), *blocks, summarizer=scribe)
    context = await timeline.render()
    [request] = scribe.asked
    assert len(request.blocks) == 19
    assert [entry.type for entry in context.neutral.entries[1:3]] == ["react.tool.call", "react.tool.result"]


@pytest.mark.shows("000-28", "000-29", "R-000-14")
@pytest.mark.parametrize("staged", [False, True])
async def test_the_summary_before_is_one_of_the_twenty(*, staged: bool) -> None:
    """The second summary is given the first one and the nineteen messages behind it, and takes their place."""
    scribe = Scribe(answers=[BULLETS, BULLETS])
    timeline = await talking(policies.priority_chain(), summarizer=scribe)
    if staged:
        await timeline.enter_stage("gagasan", "Gagasan")
    await timeline.append(*messages_of(60, 1_900))
    await timeline.render()
    await timeline.append(*messages_of(20, 1_900))
    context = await timeline.render()
    _, request = scribe.asked
    assert (request.previous, len(context.window.summaries)) == (BULLETS, 1)
    assert [block.text[:4] for block in request.blocks] == [f"m{n:03}" for n in range(20, 39)]
    assert said(context) == [f"m{n:03}" for n in (*range(39, 60), *range(20))]


@pytest.mark.shows("000-29")
async def test_the_model_sees_the_twenty_messages_whole() -> None:
    """A long message and a long result are in the request from end to end."""
    prompts: list[str] = []

    async def ask(text: str) -> str:
        prompts.append(text)
        return BULLETS

    output = "d " * 400 + "INSIDE " + "e " * 400
    first = [UserPrompt(text="a" * 3_000 + " MIDDLE " + "b" * 3_000), call("c"), ToolResult(call_id="c", text=output)]
    summarizer = CallableSummarizer(ask)
    timeline = await talking(policies.priority_chain(), *first, *messages_of(80, 1_500), summarizer=summarizer)
    await timeline.render()
    assert "a MIDDLE b" in prompts[0]
    assert output.strip() in prompts[0]


@pytest.mark.shows("000-30", "000-33", "R-000-15")
@pytest.mark.parametrize(("language", "wished"), [("Indonesian", True), ("Dutch", True), ("", False)])
async def test_the_model_is_asked_for_three_to_five_points_in_a_language(language: str, *, wished: bool) -> None:
    """Indonesian unless the policy's step names another; at most 125 tokens are asked for."""
    prompts: list[str] = []

    async def ask(text: str) -> str:
        prompts.append(text)
        return BULLETS

    policy = policies.priority_chain()
    if language != "Indonesian":
        step = {"kind": "summarize", "cut": {"kind": "oldest"}, "prompt": "bullets", "language": language}
        policy = policies.priority_chain(steps=[step])
    timeline = await talking(policy, *messages_of(60, 1_900), summarizer=CallableSummarizer(ask))
    await timeline.render()
    asked = prompts[-1]
    assert "3 to 5 bullet points" in asked
    assert (f"Write in {language}." in asked) is wished
    assert "at most 125 tokens" in asked
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert completed.parts.history == BULLETS


@pytest.mark.shows("000-33", "000-34", "R-000-17")
@pytest.mark.parametrize("tokens", [201, 449, 20_000])
@pytest.mark.parametrize("own", [True, False])
async def test_a_long_summary_is_cut_to_200_tokens_and_is_no_failure(tokens: int, *, own: bool) -> None:
    """From a summarizer of the application's own, and from a function that asks a model: P5 drops nothing."""

    async def ask(_: str) -> str:
        return words(tokens)

    summarizer = Scribe(answers=[words(tokens)]) if own else CallableSummarizer(ask)
    timeline = await talking(policies.priority_chain(), *messages_of(100, 1_100), summarizer=summarizer)
    context = await timeline.render()
    [compaction] = context.window.summaries
    assert compaction.block.text.strip() == f"{LABEL}\n{words(200)}".strip()
    assert "was cut to" in str(compaction.written_by.fallback_reason)
    assert len(said(context)) == 80


@pytest.mark.shows("000-31", "R-000-16")
async def test_one_labelled_message_takes_the_place_of_the_twenty() -> None:
    """A system message; the wires send it as the user's, under its label: a provider's system prompt is apart."""
    timeline = await talking(policies.priority_chain(), *messages_of(60, 1_900), summarizer=Scribe(answers=[BULLETS]))
    context = await timeline.render(system="You help.")
    [summary] = [entry for entry in context.neutral.entries if entry.type == "conv.range.summary"]
    assert (summary.role, summary.text) == ("system", f"{LABEL}\n{BULLETS}")
    first, second, *_ = context.to_openai_chat()["messages"]
    assert (first["role"], first["content"]) == ("system", "You help.")
    assert second["role"] == "user"
    assert second["content"].startswith(f"[system message] {LABEL}\n")
    assert context.to_anthropic()["messages"][0]["role"] == "user"


@pytest.mark.shows("000-34", "R-000-17")
@pytest.mark.parametrize(
    "summarizer",
    [Mute(), Mute(problem=TimeoutError("slow")), Scribe(answers=["", ""])],
    ids=["error", "timeout", "empty"],
)
async def test_a_model_that_fails_costs_its_step_alone(summarizer: Summarizer) -> None:
    """P4 is next where there are stages, and P5 where there are none; the render raises nothing."""
    staged = await talking(policies.priority_chain(), summarizer=summarizer)
    await through(staged, "Gagasan", 1_000)
    await staged.enter_stage("topik", "Topik")
    await staged.append(*messages_of(55, 1_900))
    assert taken(await staged.render())[-1] == "stage_digest"
    plain = await talking(policies.priority_chain(), *messages_of(60, 1_900), summarizer=summarizer)
    assert taken(await plain.render()) == ["notice"]


# P5


@pytest.mark.shows("000-37", "R-000-20")
async def test_one_message_more_is_kept_where_a_pair_would_be_divided() -> None:
    """The fiftieth from the end is a result: its call stays as well."""
    blocks = [*messages_of(29, 1_400), call("a"), result("a", 1_400), *messages_of(49, 1_400)]
    context = await (await talking(policies.priority_chain(), *blocks, summarizer=Mute())).render()
    assert taken(context) == ["notice"]
    assert [entry.type for entry in context.neutral.entries[1:3]] == ["react.tool.call", "react.tool.result"]
    assert len(context.neutral.entries) == 1 + 51


@pytest.mark.shows("000-38")
async def test_a_second_notice_takes_the_place_of_the_first() -> None:
    """It counts the messages that it drops itself; the newest 50 stay again."""
    timeline = await talking(policies.priority_chain(), *messages_of(60, 1_900), summarizer=Mute())
    await timeline.render()
    await timeline.append(*messages_of(20, 1_900))
    context = await timeline.render()
    [summary] = context.window.summaries
    assert summary.block.text.startswith("[Context truncated. Earlier conversation contained 20 messages about: m014 ")
    assert summary.block.text.count("[Context truncated.") == 1
    assert said(context) == [f"m{n:03}" for n in (*range(30, 60), *range(20))]


@pytest.mark.shows("000-37", "R-000-20")
async def test_a_response_with_many_parallel_calls_is_never_divided() -> None:
    """The newest fifty messages begin among its thirty results, so all of them are kept: nothing is dropped."""
    calls = [call(f"c{n}", response_id="m") for n in range(30)]
    results = [result(f"c{n}", 1_900) for n in range(30)]
    blocks = [*calls, *results, *messages_of(30, 1_900)]
    timeline = await talking(policies.priority_chain(), *blocks, summarizer=Mute())
    context = await timeline.render()
    assert context.decisions[-1].kind == "refused"
    assert context.window.summaries == ()
