"""What the published designs say in passing: savings and costs, drawings beside the rules, what a loop relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

from tests.providers.script import Answer
from tests.providers.server import FakeProvider
from tests.providers.summarizing import SUMMARIZERS
from tests.scenes import AT, COUNTER, Mute, Scribe, answer, call, exchange, opened, prompt, result, turn, words
from timeline import Timeline, compact_messages, open_store, policies
from timeline.blocks import AssistantCompletion, Attachment, CustomBlock, TurnHeader, UserPrompt
from timeline.errors import BudgetError, BudgetImpossible, CompactionInProgress, CompactionRefused, ContextOverflow
from timeline.lab.prices import packaged_prices
from timeline.lifecycle import CompactionErrorEvent, CompactionStartEvent, ContextUsageEvent, recorded
from timeline.policy.presets import PRESETS
from timeline.store.memory import MemoryStore
from timeline.summarizers import CallableSummarizer

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from timeline import Policy
    from timeline.blocks import Block
    from timeline.ports import Summary, SummaryRequest

BULLETS: Final = "- satu\n- dua\n- tiga"


async def talking(policy: Policy, *blocks: Block, **options: Any) -> Timeline:
    """Return a conversation of these blocks."""
    timeline = await opened(MemoryStore(), policy=policy, **{"summarizer": Scribe(), **options})
    await timeline.append(*blocks)
    return timeline


def said(number: int, tokens: int) -> list[Block]:
    """Return so many messages of so many tokens, user and assistant in turn."""
    return [answer(tokens) if position % 2 else prompt(tokens) for position in range(number)]


# Seed 000


@pytest.mark.shows("000-39")
async def test_the_memory_digest_is_in_view_under_a_policy_that_never_compacts() -> None:
    """It depends on no compaction: an application may have it alone, with the heading that it sets."""
    policy = policies.none(memory_digest={"heading": "MEMORY DIGEST (keputusan tersimpan per tahap):"})
    timeline = await talking(policy)
    await timeline.enter_stage("gagasan", "Gagasan")
    await timeline.append(*turn())
    await timeline.approve_stage(decision="keputusan Gagasan")
    context = await timeline.render()
    [digest] = context.neutral.ephemeral
    assert digest.text == "MEMORY DIGEST (keputusan tersimpan per tahap):\n- Gagasan: keputusan Gagasan"
    assert digest.text in str(context.to_openai_chat()["messages"][-1]["content"])


@pytest.mark.shows("000-57")
@pytest.mark.parametrize(("messages", "freed"), [(12, 5_000), (18, 8_000)])
async def test_a_stage_that_is_collapsed_frees_some_thousand_characters(messages: int, freed: int) -> None:
    """Its 12 to 18 messages of 500 characters less the line that names it: between 5,000 and 10,000 characters."""
    timeline = await talking(policies.priority_chain(max_tokens=20_000, stage_data=None), summarizer=Mute())
    for name in ("Gagasan", "Topik", "Outline", "Abstrak"):
        await timeline.enter_stage(name.lower(), name)
        await timeline.append(*said(messages, 125))
        await timeline.approve_stage(decision="d")
    await timeline.enter_stage("hasil", "Hasil")
    before = (await timeline.render(record=False)).account.total
    await timeline.append(prompt(20), answer(17_001 - before - 40), prompt(20))
    context = await timeline.render()
    [summary] = context.window.summaries
    assert summary.block.text.startswith("[The messages of these stages are out of view: Gagasan. ")
    assert freed <= 4 * (17_001 - context.account.total) <= 10_000


@pytest.mark.shows("000-58")
@pytest.mark.parametrize(("tokens", "written", "dollars"), [(50, 50, 0.0005), (100, 125, 0.0010)])
async def test_a_summary_of_twenty_messages_costs_a_fraction_of_a_cent(
    tokens: int, written: int, dollars: float
) -> None:
    """1,000 to 2,000 tokens of messages, some 300 of instructions, 50 to 125 of answer, at Gemini Flash's prices."""
    prompts: list[str] = []

    async def ask(text: str) -> str:
        prompts.append(text)
        return BULLETS

    policy = policies.priority_chain(max_tokens=100 * tokens)
    timeline = await talking(policy, *said(90, tokens), summarizer=CallableSummarizer(ask))
    await timeline.render()
    [asked] = prompts
    assert "Use at most 125 tokens." in asked
    question = COUNTER.count(asked)
    assert 20 * tokens < question < 20 * tokens + 320
    price = packaged_prices().price_of("gemini-2.5-flash")
    assert price.money(price.units(uncached=question, output=written)) == pytest.approx(dollars, abs=0.00005)


PICTURE: Final[dict[str, Any]] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


@pytest.mark.shows("000-17")
@pytest.mark.parametrize("kind", ["picture", "own data", "parts", "pinned", "plain"])
async def test_a_short_message_that_is_more_than_its_text_stays(kind: str) -> None:
    """With a picture beside it or of its own, in several parts, or pinned; the same text alone goes."""
    timeline = await talking(policies.priority_chain(max_tokens=20_000), *turn(), summarizer=Mute())
    more: dict[str, list[Any]] = {"picture": [PICTURE], "parts": [{"type": "text", "text": "go"}]}
    content = [{"type": "text", "text": "ok"}, *more.get(kind, [])]
    if kind == "own data":
        [block] = await timeline.append(UserPrompt(text="ok", data=[PICTURE]))
    else:
        [block, *_] = await timeline.append_messages([{"role": "user", "content": content}], wire="openai_chat")
    if kind == "pinned":
        await timeline.pin(block.path)
    await timeline.append(answer(20), *turn(16_900, asked=100))
    context = await timeline.render()
    assert (block.path in [entry.path for entry in context.neutral.entries]) is (kind != "plain")


@pytest.mark.shows("000-25")
@pytest.mark.parametrize("more", [True, False])
async def test_a_stage_stays_while_the_model_is_to_go_on_from_its_messages(*, more: bool) -> None:
    """Approved, and nothing was said since: its last message is what the model answers; with one behind it, it goes."""
    steps = [{"kind": "collapse_stages", "which": "oldest", "recent": 0}]
    timeline = await talking(policies.priority_chain(max_tokens=2_000, steps=steps, stage_data=None))
    await timeline.enter_stage("gagasan", "Gagasan")
    await timeline.append(*said(3, 580))
    await timeline.approve_stage(decision="d")
    if more:
        await timeline.append(prompt())
    context = await timeline.render()
    assert [taken.kind for taken in context.decisions] == (["compacted"] if more else ["refused"])
    assert len(context.window.summaries) == more


@pytest.mark.shows("000-33", "002-30", "002-31", "003-22", "003-24", "R-003-9")
@pytest.mark.parametrize(
    ("policy", "most"),
    [
        (policies.priority_chain(max_tokens=1_000), [125]),
        (policies.priority_chain(max_tokens=8_000), [200]),
        (policies.cut_point(counter="chars4", max_tokens=4_000, keep_recent_tokens=100), [500, 250]),
        (policies.cut_point(counter="chars4", max_tokens=20_000, keep_recent_tokens=100), [800, 400]),
        (policies.keep_ratio(max_tokens=20_000), [452]),
        (policies.keep_ratio(max_tokens=30_000), [800]),
    ],
)
async def test_in_little_room_a_summary_is_shorter(policy: Policy, most: list[int]) -> None:
    """At most an eighth of the room for messages, and a sixteenth for a split turn's prefix."""
    scribe = Scribe(answers=[BULLETS, BULLETS])
    blocks = [*said(40, 100), prompt(), *(block for n in range(20) for block in exchange(f"c{n}", 100))]
    timeline = await talking(policy, *blocks, summarizer=scribe)
    await timeline.compact()
    assert [request.max_tokens for request in sorted(scribe.asked, key=lambda request: request.kind)] == most


@pytest.mark.shows("002-30", "002-31")
async def test_a_summary_is_at_most_half_as_long_as_what_it_covers() -> None:
    """1,400 tokens of earlier turns and 714 of the split one's steps, where there is room for 800 and 400."""
    scribe = Scribe(answers=[BULLETS, BULLETS])
    blocks = [*said(14, 100), prompt(), *(block for n in range(8) for block in exchange(f"c{n}", 100))]
    timeline = await talking(policies.cut_point(counter="chars4", keep_recent_tokens=100), *blocks, summarizer=scribe)
    await timeline.compact()
    assert {request.kind: request.max_tokens for request in scribe.asked} == {"history": 700, "turn_prefix": 357}


# Seed 001

ENGLISH: Final = (
    "The agent reads the file, changes two lines and runs the tests again. All of them pass, so it asks for the rest.",
    "When the connection is lost the client waits a moment and tries again; it tells the user how to go on by hand.",
    "A card that was forgotten comes back on the same day, and one that was easy is shown again after a week.",
)
"""Plain English of several kinds."""


@pytest.mark.shows("001-71")
@pytest.mark.parametrize("vocabulary", ["o200k_base", "cl100k_base"])
async def test_english_is_estimated_within_a_quarter_of_what_a_tokenizer_counts(
    vocabulary: Literal["o200k_base", "cl100k_base"],
) -> None:
    """Above it here; the exact counter is a setting of the same policy."""
    for text in ENGLISH:
        estimated, exact = [
            (await (await talking(policy, UserPrompt(text=text))).render()).account.messages - 2
            for policy in (policies.keep_last(), policies.keep_last(counter=vocabulary))
        ]
        assert exact <= estimated <= 1.25 * exact


@pytest.mark.shows("001-8", "R-001-5")
@pytest.mark.parametrize(("tokens", "due"), [(31_199, False), (31_200, True)])
async def test_a_threshold_between_two_tokens_is_the_lower_one(tokens: int, *, due: bool) -> None:
    """0.8 of 39,001 is 31,200.8: it is due from 31,200 on."""
    each = (tokens - 12 * 2) // 12
    sizes = [each + (tokens - 12 * 2 - 12 * each), *[each] * 11]
    blocks = [answer(size) if number % 2 else prompt(size) for number, size in enumerate(sizes)]
    timeline = await talking(policies.keep_last(max_tokens=50_001), *blocks)
    context = await timeline.render()
    assert [taken.kind for taken in context.decisions] == (["refused"] if due else [])


@pytest.mark.shows("001-40", "R-001-19")
async def test_the_round_goes_on_in_another_process(tmp_path: Path) -> None:
    """It is that of the last recorded compaction, whoever made it; a refused one in between is no round."""
    async with open_store(tmp_path / "a.db") as store:
        timeline = await opened(store, policy=policies.keep_last(), summarizer=Scribe())
        for _ in range(2):
            await timeline.append(*said(30, 500))
            await timeline.compact()
        with pytest.raises(CompactionRefused):
            await timeline.compact()
    async with open_store(tmp_path / "a.db") as store:
        again = await opened(store, policy=policies.keep_last(), summarizer=Scribe())
        await again.append(*said(12, 500))
        await again.compact()
        assert again.window.summaries[0].block.text.startswith("## Session Summary (Round 3)\n")


@pytest.mark.shows("001-50")
@pytest.mark.parametrize("system", [None, "You help."])
async def test_a_single_message_stays_as_it_is(system: str | None) -> None:
    """By itself, and behind a system prompt."""
    timeline = await talking(policies.keep_last(), prompt(500))
    await timeline.render(system=system)
    with pytest.raises(CompactionRefused, match="nothing_to_cover"):
        await timeline.compact()
    assert len((await timeline.render(system=system)).neutral.entries) == 1


@pytest.mark.shows("001-70")
async def test_the_hook_makes_no_copy_of_the_messages_that_stay_as_they_are() -> None:
    """Below the threshold each message in the list that comes back is the very object that was given."""
    timeline = await talking(policies.keep_last())
    given = [{"role": "assistant" if number % 2 else "user", "content": f"message {number}"} for number in range(11)]
    sent = (await timeline.step_hook("openai_chat").prepare_step(messages=given))["messages"]
    assert sent is not given
    assert len(sent) == len(given)
    assert all(one is other for one, other in zip(sent, given, strict=True))


@pytest.mark.shows("001-11")
async def test_a_loop_of_fifty_steps_is_compacted_whenever_a_step_is_due() -> None:
    """The design's `maxSteps`: how many steps there are is the loop's affair; each gets messages below the line."""
    policy = policies.keep_last(max_tokens=36_000)  # due from 20,000 tokens on
    timeline = await talking(policy)
    hook = timeline.step_hook("openai_chat")
    messages: list[Any] = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Build it."}]
    for step in range(50):
        messages = (await hook.prepare_step(messages=messages))["messages"]
        assert sum(len(str(message["content"])) for message in messages) / 4 < 20_000
        made = {"id": f"c{step}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        reply = {"role": "assistant", "content": None, "tool_calls": [made]}
        told = {"role": "tool", "tool_call_id": f"c{step}", "content": "out " * 1_500}
        messages = [*messages, reply, told]
    assert timeline.window.compactions == 4
    calls = [item.block.call_id for item in timeline.window.items if item.block.type == "react.tool.call"]
    assert calls[-1] == "c48"


TOLD: Final = "## Session Summary (Round 2)\n\n### Original Task\n" + "Build the app. " * 2_000
"""A summary of another program's, of 7,515 tokens."""


@pytest.mark.shows("001-18", "001-39", "R-001-19")
async def test_a_summary_of_another_program_alone_before_the_boundary_is_no_round() -> None:
    """Nothing is behind it to be summarised: the refusal says so, and its number stays."""
    scribe = Scribe()
    timeline = await talking(policies.keep_last(messages=2), summarizer=scribe)
    await timeline.render(system="You help.")
    await timeline.append(AssistantCompletion(text=TOLD), *turn(900, asked=900))
    with pytest.raises(CompactionRefused, match="nothing_to_cover"):
        await timeline.compact()
    assert (scribe.asked, timeline.window.compactions, len(timeline.window.items)) == ([], 0, 3)
    await timeline.append(*turn(900, asked=900))
    await timeline.compact()
    assert (scribe.asked[0].previous, timeline.window.compactions) == (TOLD.partition("\n\n")[2], 3)


@pytest.mark.shows("001-18", "001-39", "R-001-19")
async def test_a_list_that_begins_with_a_summary_comes_back_as_it_is() -> None:
    """System prompt, summary and the newest ten messages, above the threshold: call after call."""
    messages: list[Any] = [{"role": "system", "content": "You help."}, {"role": "assistant", "content": TOLD}]
    messages += [{"role": "assistant" if n % 2 else "user", "content": "m" * 12_000} for n in range(10)]
    for _ in range(2):
        done = await compact_messages(messages, policies.keep_last(max_tokens=50_000), summarizer=Scribe())
        assert [(taken.kind, taken.reason) for taken in done.decisions] == [("refused", "nothing_to_cover")]
        assert [TOLD in str(message["content"]) for message in done.messages].count(True) == 1
        messages = done.messages


@pytest.mark.shows("001-17", "R-001-15")
async def test_what_the_user_says_under_the_heading_of_a_summary_is_no_summary() -> None:
    """The design knows its own by the assistant's role as well: this one is summarised as a message."""
    scribe = Scribe()
    timeline = await talking(policies.keep_last(messages=2), summarizer=scribe)
    await timeline.render(system="You help.")
    told = "## Session Summary (Round 2)\n\n### Original Task\nBuild it"
    await timeline.append(UserPrompt(text=told), *said(7, 500)[1:])
    await timeline.compact()
    [request] = scribe.asked
    assert (request.previous, request.compaction_number, request.blocks[0].text) == (None, 1, told)


# Seed 002


@pytest.mark.shows("002-19")
@pytest.mark.parametrize(("target", "first"), [(0.9, "p.call"), (0.5, "d.call")])
async def test_a_cut_inside_a_response_that_is_too_large_to_keep_goes_on_behind_it(target: float, first: str) -> None:
    """Two calls and their results have 12,000 of 20,000 tokens: the cut is before them where they may stay."""
    policy = policies.cut_point(
        counter="chars4", max_tokens=20_000, keep_recent_tokens=8_000, target=target, halvings=0
    )
    large = [call(name, arguments={"x": "w" * 12_000}, response_id="m") for name in "pq"]
    results = [result(name, 3_000) for name in "pq"]
    timeline = await talking(policy, *turn(4_000), prompt(50), *large, *results, *exchange("d", 500))
    await timeline.compact()
    kept = [item.block.path for item in timeline.window.items if not item.is_summary and not item.carried]
    assert kept[0] == f"tc:turn_2.{first}"


@pytest.mark.shows("002-48", "002-49")
async def test_the_digest_shortens_what_is_elsewhere_in_full() -> None:
    """Two of three paths beside the number of hits, and 60 characters of what was shown for a hidden block."""
    policy = policies.cut_point(counter="chars4", keep_recent_tokens=400)
    found = result("g", text="Found 3 files\nsrc/a.py\nsrc/b.py\nsrc/c.py")
    made = call("g", "Grep", arguments={"pattern": "x"})
    timeline = await talking(policy, prompt(), made, found, *exchange("h", 900), *turn(3_000), *turn(300, asked=100))
    await timeline.hide("tc:turn_1.h.result", text="r" * 61)
    await timeline.compact()
    summary = timeline.window.summaries[0].block.path
    digest: Any = (await timeline.read(summary)).meta["compaction_digest"]
    [search], [hidden] = digest["searches"], digest["hidden"]
    assert (search["hits"], search["hit_paths"]) == (3, ["src/a.py", "src/b.py"])
    assert hidden == {"path": "tc:turn_1.h.result", "replacement": "r" * 60 + "\N{HORIZONTAL ELLIPSIS}"}
    assert (await timeline.read("tc:turn_1.g.result")).text.endswith("src/c.py")


@pytest.mark.shows("002-38", "002-41")
async def test_the_previous_turns_point_is_on_the_block_before_the_current_header() -> None:
    """The header belongs to the turn that it opens."""
    timeline = await talking(policies.cut_point(counter="chars4"), TurnHeader(text="Turn 1"), *turn())
    await timeline.append(TurnHeader(text="Turn 2"), *turn())
    context = await timeline.render()
    types = {point.kind: context.neutral.entries[point.index + 1 :][:1] for point in context.cache_points}
    assert [entry.text for entry in types["previous_turn"]] == ["Turn 2"]


@pytest.mark.shows("002-63")
async def test_a_long_way_to_the_tail_has_a_cache_point_of_its_own() -> None:
    """A response of fifteen calls, with their results, is one round: no pre-tail point, and 30 blocks to the tail."""
    calls = [call(f"c{number}", response_id="m") for number in range(15)]
    results = [result(f"c{number}") for number in range(15)]
    timeline = await talking(policies.cut_point(counter="chars4"), prompt(), *calls, *results)
    context = await timeline.render()
    assert [(point.kind, point.index) for point in context.cache_points] == [("lagging", 10), ("tail", 30)]
    for first, kinds in (([], ["tail"]), ([answer(response_id="m")], ["lagging", "tail"])):  # 20 blocks, and 21
        said = [prompt(), *first, answer(response_id="m"), *calls[:9], *results[:9]]
        short = await talking(policies.cut_point(counter="chars4"), *said)
        assert [point.kind for point in (await short.render()).cache_points] == kinds


@pytest.mark.shows("002-64")
@pytest.mark.parametrize("record", [True, False])
async def test_behind_the_two_parts_of_a_summary_is_a_record_of_what_was_done(*, record: bool) -> None:
    """From the log, in at most 300 tokens, unless the form leaves it out; the first line says what the text is."""
    policy = policies.cut_point(counter="chars4", keep_recent_tokens=400, form={"record": record})
    timeline = await talking(policy, prompt())
    for number in range(60):
        made = call(f"c{number}", "bash", arguments={"command": f"make part_{number}"})
        await timeline.append(made, result(f"c{number}", 100))
    await timeline.append(answer(2_000), *turn(300, asked=100))
    await timeline.compact()
    heading, history, *rest = timeline.window.summaries[0].block.text.split("\n\n")
    assert heading == "[Summary of the earlier conversation: a record of what happened, not instructions.]"
    assert history == "history 1"
    assert bool(rest) is record
    if record:
        assert rest[0] == "## Done so far, from the log (read an address for the full content)"
        assert "Commands by last result:\n- make part_59 (@122)" in rest[1]
        assert 250 < COUNTER.count("\n\n".join(rest[1:])) <= 300
        assert "\nNot shown: 11 commands, " in rest[1]


# Seed 003


@pytest.mark.shows("003-20", "003-33")
@pytest.mark.parametrize(("share", "kept"), [(0.4, 3), (0.3, 3), (0.2, 1)])
async def test_the_pair_in_the_drawing_of_nine_messages_is_never_divided(share: float, kept: int) -> None:
    """The newest two of nine would begin with a result, so its call stays with it; the newest three begin there."""
    blocks = [
        *[prompt(500), *exchange("a", 500), prompt(500), answer(500)],
        *[prompt(500), *exchange("b", 500), answer(500)],
    ]
    timeline = await talking(policies.keep_ratio(share=share), *blocks)
    await timeline.compact()
    types = [entry.type for entry in (await timeline.render()).neutral.entries[2:]]
    assert types == ["react.tool.call", "react.tool.result", "assistant.completion"][-kept:]


@pytest.mark.shows("003-20")
async def test_results_of_parallel_calls_stay_with_the_response_that_made_them() -> None:
    """Of nine messages three are kept, which begin with the second of three results: all five of them stay."""
    calls = [call(f"c{number}", response_id="m") for number in range(3)]
    results = [result(f"c{number}", 500) for number in range(3)]
    timeline = await talking(policies.keep_ratio(), *said(4, 500), *calls, *results, answer(500))
    await timeline.compact()
    types = [entry.type for entry in (await timeline.render()).neutral.entries[2:]]
    assert types == ["react.tool.call"] * 3 + ["react.tool.result"] * 3 + ["assistant.completion"]


@pytest.mark.shows("003-34")
@pytest.mark.parametrize("wire", list(SUMMARIZERS))
async def test_the_text_of_the_models_answer_is_the_summary(wire: str) -> None:
    """Its text parts alone: what it thought before it answered is no part of it."""
    with FakeProvider(Answer("We refactored the parser.", thought="Let me see.")) as provider:
        timeline = await talking(policies.keep_ratio(), *said(10, 1_000), summarizer=SUMMARIZERS[wire](provider))
        await timeline.compact()
    assert timeline.window.summaries[0].block.text == "[COMPACT SUMMARY]\nWe refactored the parser."


@pytest.mark.shows("000-38", "003-23", "R-003-9")
async def test_a_notice_counts_messages_and_not_their_parts(caplog: pytest.LogCaptureFixture) -> None:
    """A response of a text and three calls is one, each result another; with two prompts they are six of nine."""
    calls = [call(f"c{number}", response_id="m") for number in range(3)]
    results = [result(f"c{number}", 500) for number in range(3)]
    blocks = [prompt(text="Fix it."), answer(500, response_id="m"), *calls, *results, *said(4, 500)]
    timeline = await talking(policies.keep_ratio(), *blocks, summarizer=Mute())
    await timeline.compact()
    assert timeline.window.summaries[0].block.text.startswith(
        "[COMPACT SUMMARY]\n[Context truncated. Earlier conversation contained 6 messages about: Fix it.; abc "
    )
    [line] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "out of service. A notice takes the messages' place" in line
    assert timeline.window.summaries[0].written_by.fallback_reason == "No summary: out of service"


# Seed 004


@pytest.mark.shows("004-126")
async def test_a_context_that_is_sent_above_its_line_shows_100_per_cent() -> None:
    """After an undo it leaves too little for the answer, and fits: no indicator shows more than the whole."""
    timeline = await talking(policies.prune_then_summarize(counter="chars4"), *(turn(2_900) * 4))
    await timeline.compact()
    await timeline.undo_compaction()
    await timeline.append(prompt(1_000))
    context = await timeline.render()
    assert context.account.total > context.account.limit
    [usage] = [event async for event in recorded(timeline._store, "c") if isinstance(event, ContextUsageEvent)]
    assert (usage.percent_used, context.account.percent_used, usage.is_critical) == (100.0, 100.0, True)


@pytest.mark.shows("004-50", "R-004-10")
@pytest.mark.parametrize(("behind", "cleared"), [(300, []), (400, ["new"])])
async def test_only_outputs_behind_the_last_summary_make_a_prune_worth_it(behind: int, cleared: list[str]) -> None:
    """350 tokens are demanded; the 900 before the summary of a stage do not count."""
    timeline = await talking(policies.priority_chain(), prompt(), *exchange("old", 900), answer(), summarizer=Mute())
    await timeline.enter_stage("a")
    await timeline.append(*turn(900), *turn(900))
    await timeline.approve_stage(decision="d")
    await timeline.enter_stage("b")
    await timeline.append(prompt(), *exchange("new", behind), answer(), *turn())
    await timeline.compact()
    policy = policies.prune_then_summarize(counter="chars4", protect=100, minimum=250, keep_turns=1)
    await timeline.use_policy(policy)
    await timeline.end_run()
    assert [item.block.call_id for item in timeline.window.items if item.state == "hidden"] == cleared


@pytest.mark.shows("004-42", "R-004-10")
async def test_a_turn_is_one_user_message_with_all_that_belongs_to_it() -> None:
    """A header, a prompt and a file of the user's begin a turn once: the outputs of the newest two stay."""
    policy = policies.prune_then_summarize(counter="chars4", protect=0, minimum=1)
    timeline = await talking(policy)
    for number in range(3):
        opening = [TurnHeader(text="Turn"), prompt(), Attachment(text="a file")]
        await timeline.append(*opening, *exchange(f"c{number}", 500), answer())
    await timeline.end_run()
    assert [item.block.call_id for item in timeline.window.items if item.state == "hidden"] == ["c0"]


@pytest.mark.shows("004-73", "R-004-19")
async def test_fewer_turns_than_are_kept_are_all_recent() -> None:
    """What the assistant said before the first prompt, too: going back ends at the beginning."""
    timeline = await talking(policies.prune_then_summarize(counter="chars4"), answer(900), *turn(900, asked=900))
    with pytest.raises(CompactionRefused, match="nothing_to_cover"):
        await timeline.compact()
    assert len(timeline.window.items) == 3


@pytest.mark.shows("004-110")
async def test_while_a_summary_is_written_the_conversation_goes_on() -> None:
    """Another handle appends and renders; its own compaction is refused with the reason."""
    store = MemoryStore()
    sent: list[str] = []
    policy = policies.prune_then_summarize(counter="chars4", keep_turns=1)

    class Busy(Scribe):
        async def summarize(self, request: SummaryRequest) -> Summary:
            other = await opened(store, policy=policy, summarizer=Scribe())
            await other.append(prompt(text="And now?"))
            sent.append((await other.render(now=AT)).neutral.entries[-1].text)
            with pytest.raises(CompactionInProgress, match="being optimized, please wait"):
                await other.compact(wait=False, now=AT)
            return await super().summarize(request)

    timeline = await opened(store, policy=policy, summarizer=Busy())
    await timeline.append(*turn(900), *turn(900), *turn())
    await timeline.compact(now=AT)
    assert sent == ["And now?"]
    assert [item.block.type for item in timeline.window.items] == [
        *("conv.range.summary", "user.prompt", "assistant.completion", "user.prompt"),
    ]


@pytest.mark.shows("004-123")
@pytest.mark.parametrize("fails", [True, False])
async def test_above_the_limit_a_failing_model_is_asked_again_and_no_new_session_suggested(*, fails: bool) -> None:
    """It may answer the next time; only where nothing is left to summarise a new session helps."""
    policy = policies.prune_then_summarize(counter="chars4", on_failure="unchanged")
    old = turn(6_000) * 3 if fails else turn(18_000)
    timeline = await talking(policy, *old, summarizer=Mute())
    with pytest.raises(ContextOverflow):
        await timeline.render()
    [error] = [event async for event in recorded(timeline._store, "c") if isinstance(event, CompactionErrorEvent)]
    assert (error.reason, error.can_retry, error.suggest_new_session) == (
        ("summarizer", True, False) if fails else ("nothing_to_cover", False, True)
    )


@pytest.mark.shows("004-145")
async def test_clearing_outputs_alone_frees_more_than_half() -> None:
    """Where old outputs are most of a conversation: no model is asked, and every call stays."""
    policy = policies.prune_then_summarize(model="openai/gpt-4o", counter="chars4")
    scribe = Scribe()
    timeline = await talking(policy, summarizer=scribe)
    for number in range(24):
        await timeline.append(prompt(), *exchange(f"c{number}", 4_650), answer(50))
    context = await timeline.render()
    assert context.preparation.tokens.after_prune < 0.5 * context.preparation.tokens.before
    assert (context.preparation.was_compacted, scribe.asked) == (False, [])
    assert [entry.type for entry in context.neutral.entries].count("react.tool.call") == 24


@pytest.mark.shows("004-146")
async def test_a_part_of_a_kind_of_its_own_is_sent_and_counts() -> None:
    """An application's block of 100 tokens; the design counts 0 for a part that it does not know."""
    note = CustomBlock(type="my.note", author="planner", text=words(100))
    timeline = await talking(policies.prune_then_summarize(counter="chars4"), UserPrompt(text="abcd"), note)
    context = await timeline.render()
    assert context.account.by_category["other"] == 100 + 4
    assert words(100).strip() in str(context.to_openai_chat()["messages"])


@pytest.mark.shows("004-148")
@pytest.mark.parametrize(("changed", "cached"), [("You help.", True), ("You help!", False)])
async def test_a_single_character_of_the_system_prompt_is_a_cache_miss(changed: str, *, cached: bool) -> None:
    """With the same character everything in front of what is new is read; with another one nothing is."""
    timeline = await talking(policies.prune_then_summarize(counter="chars4"), *turn(2_000, asked=2_000))
    await timeline.render(system="You help.")
    await timeline.append(*turn(50))
    context = await timeline.render(system=changed)
    reused: Any = (await timeline.diff()).dump()["reuse"]
    assert reused["cached"] + reused["processed"] == context.account.sent
    assert (reused["cached"] > 4_000) is cached
    assert (reused["cached"] == 0) is not cached


@pytest.mark.shows("004-76", "004-104", "004-106", "R-004-28")
async def test_while_a_summary_is_written_every_handle_knows_it_and_since_when() -> None:
    """The state of another handle says so until the compaction is done; the stream has the moment it began."""
    store = MemoryStore()
    seen: list[tuple[bool, int]] = []
    begun: list[datetime] = []

    class Looking(Scribe):
        async def summarize(self, request: SummaryRequest) -> Summary:
            state = (await Timeline.open(store, "c")).compaction_state(now=AT)
            seen.append((state.compacting, state.count))
            begun.extend([event.at async for event in recorded(store, "c") if isinstance(event, CompactionStartEvent)])
            return await super().summarize(request)

    policy = policies.prune_then_summarize(counter="chars4", keep_turns=1)
    timeline = await opened(store, policy=policy, summarizer=Looking())
    await timeline.append(*turn(900), *turn(900), *turn())
    await timeline.compact(now=AT)
    after = (await Timeline.open(store, "c")).compaction_state(now=AT)
    assert (seen, begun) == ([(True, 0)], [AT])
    assert (after.compacting, after.count) == (False, 1)


# All of them

DESIGNS: Final = ("priority_chain", "keep_last", "cut_point", "keep_ratio", "prune_then_summarize")


@pytest.mark.shows("000-59", "001-72", "002-65", "003-35", "004-149")
@pytest.mark.parametrize("name", DESIGNS)
async def test_what_is_pinned_and_a_call_that_waits_stay_in_view(name: str) -> None:
    """Among messages that a summary covers, and as they were; the summary stands for the others."""
    timeline = await talking(PRESETS[name](counter="chars4"))
    await timeline.render(system="You help.")
    await timeline.append(prompt(text="Mind this."), call("w", pending=True), *said(84, 300))
    await timeline.pin("ar:turn_1.user.prompt")
    await timeline.compact()
    carried = [(item.block.path, item.state) for item in timeline.window.items if item.carried]
    assert carried[:2] == [("ar:turn_1.user.prompt", "carried"), ("tc:turn_1.w.call", "carried")]
    sent = str((await timeline.render(system="You help.")).to_openai_chat()["messages"])
    assert "Mind this." in sent


@pytest.mark.shows("000-59", "001-72", "002-65", "003-35", "004-149")
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize(("tokens", "state"), [(11_900, "carried"), (12_100, "hidden")])
async def test_what_is_pinned_is_a_preview_beyond_a_share_of_the_limit(name: str, tokens: int, state: str) -> None:
    """The share is 15 %, which is 12,000 tokens of 80,000; the whole block can be read."""
    timeline = await talking(PRESETS[name](counter="chars4", max_tokens=80_000))
    await timeline.render(system="You help.")
    _, _, told, *_ = await timeline.append(prompt(text="Go on."), *exchange("p", tokens), *said(84, 300))
    await timeline.pin(told.path)
    await timeline.compact()
    assert [item.state for item in timeline.window.items if item.block.path == told.path] == [state]
    assert await timeline.read(told.path) == told


@pytest.mark.shows("000-59", "001-72", "002-65", "003-35", "004-149")
@pytest.mark.parametrize("name", DESIGNS)
async def test_a_call_without_a_result_counts_the_line_that_is_sent_for_it(name: str) -> None:
    """Fifteen tokens: a provider takes no call that nothing answers."""
    answered = await talking(PRESETS[name](counter="chars4"), prompt(), call("c"), result("c"), answer())
    waiting = await talking(PRESETS[name](counter="chars4"), prompt(), call("c"), answer())
    one, two = [(await timeline.render()).account.by_category["calls"] for timeline in (answered, waiting)]
    assert two == one + 15


@pytest.mark.shows("000-59", "001-72", "002-65", "003-35", "004-149")
@pytest.mark.parametrize("name", DESIGNS)
async def test_what_no_step_makes_fit_is_a_typed_error(name: str) -> None:
    """A system prompt that leaves no room for the messages: the provider would refuse the request."""
    policy = PRESETS[name](counter="chars4", max_tokens=20_000)
    timeline = await talking(policy, *said(4, 100))
    with pytest.raises(BudgetError) as refused:
        await timeline.render(system=words(20_000 - policy.output_reserve - 10))
    assert isinstance(refused.value, ContextOverflow | BudgetImpossible)
    assert refused.value.account["total"] >= 19_990
