from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.depth import DEPTH, Depth, sampled
from tests.lab.naive_facts import naive_recall, naive_summaries
from tests.lab.talks import Talk, code, work
from tests.recorded import by_size, needs_recordings
from timeline import Timeline
from timeline.events import BlockRedacted, BlocksHidden
from timeline.lab.facts.needs import Need, needs_of
from timeline.lab.facts.printed import beside_words
from timeline.lab.facts.searching import searchable
from timeline.lab.facts.sight import FactSight, FoundNeed, counted
from timeline.lab.facts.strings import StringFinder, facts_in, words_beside
from timeline.lab.facts.summaries import Judged
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import replay
from timeline.lab.replay_log import ReplayLog
from timeline.lab.results import DISTANCES
from timeline.lab.sizes import block_of, measure
from timeline.lab.work import measured_file
from timeline.policy.files import find_policy
from timeline.ports import Summary, SummaryRequest
from timeline.store import MemoryStore, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from timeline.blocks import Block
    from timeline.lab.replay import SentCall
    from timeline.lab.results import RunResult
    from timeline.lab.sizes import Measured

PRICE_OF: Final = packaged_prices().price_of
FACT: Final = "lostMarkerOf_7"
NAMED: Final = {
    "see https://example.org/a/b?c=d.": {"https://example.org/a/b?c=d": "url"},
    "in /src/app/main.py, line 3": {"/src/app/main.py": "path"},
    "and/or main.py": {"main.py": "file"},
    "commit 1f3a9bc, not defaced": {"1f3a9bc": "id"},
    "port 8080 and 443, 3.14159": {"8080": "number"},
    "getUserName calls snake_case, not Word or word": {"getUserName": "name", "snake_case": "name"},
}


class Fixed:
    """Writes one summary whatever it is asked."""

    name = "fixed"

    def __init__(self, text: str) -> None:
        self.text = text

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer with the text."""
        return Summary(text=request.counter.truncate(self.text, request.max_tokens), summarizer=self.name)


def lost(before: str = "", *, after: str = "", rounds: int = 24) -> Measured:
    """Return a talk whose last answer names what its first result alone says, behind so much text."""
    talk = Talk()
    talk.ask("Please look for the marker.")
    talk.respond(("Bash", {"command": "make marker"}, f"{before}\nThe marker is {FACT}.\n{after}"))
    for number in range(rounds):
        talk.respond(("Bash", {"command": f"make part{number}"}, code(f"part{number}")))
    talk.respond(text=f"It is {FACT}.")
    return measure(talk.recording())


async def ran(of: Measured, policy: str, limit: int, text: str = "") -> RunResult:
    """Replay with the facts, with summaries of one text if there is one."""
    summarizer = Fixed(text) if text else None
    chosen = find_policy(policy, max_tokens=limit)
    return await replay(of, chosen, PRICE_OF, needs=needs_of(of), summarizer=summarizer)


@pytest.mark.parametrize("text", NAMED)
def test_a_text_names_paths_files_urls_ids_numbers_and_compound_names(text: str) -> None:
    """The marks of a sentence are no part of a fact, and plain words, short numbers and fractions are none."""
    assert facts_in(text) == NAMED[text]


def test_a_text_holds_a_name_that_is_part_of_a_longer_word() -> None:
    """What counts is the exact string, wherever it stands."""
    held = StringFinder(["main.py", "user_id", "8080"])
    assert held.within("/src/app/main.py\nuser_ids") == {"main.py", "user_id"}


@pytest.mark.parametrize("seed", range(3))
def test_what_texts_hold_does_not_depend_on_the_order_in_which_they_are_asked(seed: int) -> None:
    """What is remembered of other texts changes no answer."""
    texts = [code("cards"), "src/cards.py cards_1 cards_11", "cards_1", *code("rows").split("\n")]
    strings = ["cards_1", "rows_12", "src/cards.py", "Card"]
    shuffled = random.Random(seed).sample(texts, len(texts))
    held = StringFinder(strings)
    assert {text: held.within(text) for text in shuffled} == {
        text: {string for string in strings if string in text} for text in texts
    }


def test_a_need_is_what_an_earlier_block_held_at_the_distance_of_its_last_mention() -> None:
    """Its class and its origin are those of the string, and of the block that held it first."""
    of = lost(rounds=20)
    needs = needs_of(of).of_call[of.calls[-1].position]
    assert [(need.fact, need.kind, need.distance, need.origin) for need in needs] == [(FACT, "name", "far", "tool")]


def test_what_the_model_made_up_and_what_only_an_unsent_thought_says_is_no_need() -> None:
    """The uncut context held neither, so that no policy can lose it."""
    talk = Talk(signed=False)
    talk.ask("Go on.")
    talk.respond(("Bash", {"command": "ls"}, "nothing"), thought=f"Perhaps {FACT}.")
    talk.respond(text=f"I name it {FACT}, and madeUp_1.")
    of = measure(talk.recording())
    assert not any(needs_of(of).of_call.values())


@pytest.mark.parametrize("fields", [{}, {"signed": False}, {"long": True}])
async def test_uncut_everything_is_in_sight_and_nothing_is_fetched(fields: dict[str, Any]) -> None:
    """The measure begins at 1 by construction, whatever thoughts are signed and however long the cache lives."""
    of = measure(work(24, **fields).recording())
    totals = (await ran(of, "none", 16_000)).totals
    assert totals.facts_middle > 0
    for distance in DISTANCES:
        assert getattr(totals, f"seen_{distance}") == getattr(totals, f"facts_{distance}")
    assert (totals.reads, totals.stale, totals.adjusted_units) == (0, 0, totals.units)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- src/app.py x3 (@152)", {"@152"}),
        ("- src/app.py (@152), src/rows.py (@160)", {"@152", "@160"}),
        ("Outputs: @152, @160, @171", set()),
        ("- @152\n- @160", set()),
        ("[120 tokens, hidden] tc:turn_1.call_3.call", set()),
        ("Full record: su:turn_1.conv.range.summary", {"su:turn_1.conv.range.summary"}),
        ("Lists of all paths: su:t.r.paths, of names, ids and numbers: su:t.r.names", {"su:t.r.paths", "su:t.r.names"}),
        ("mail a@152 or x/@152", set()),
    ],
)
def test_an_address_counts_where_its_line_says_what_it_is_about(text: str, found: set[str]) -> None:
    """A list of addresses leads nowhere: nobody knows which one to read."""
    assert beside_words(text) == found


async def last(of: Measured, text: str, limit: int = 18_000) -> tuple[int, int, int]:
    """Return the far facts of the last call under cline: needed, in sight, and in sight or one read away."""
    run = await ran(of, "cline", limit, text)
    row = run.rows[-1]
    assert run.totals.compactions > 0
    return row.facts_far, row.seen_far, row.reachable_far


async def path_of(of: Measured) -> str:
    """Return the path of the first result, as every replay gives it."""
    seen: list[SentCall] = []
    await replay(of, find_policy("none", max_tokens=18_000), PRICE_OF, watch=seen.append)
    context = seen[-1].context
    assert context is not None
    return next(item.block.path for item in context.window.items if FACT in item.block.text)


async def test_a_covered_fact_is_reachable_by_its_path_beside_its_subject_and_gone_without() -> None:
    """The same summary with the fact itself has it in sight."""
    of = lost()
    path = await path_of(of)
    assert await last(of, f"The output of make marker: {path}") == (1, 0, 1)
    assert await last(of, "A marker was made.") == (1, 0, 0)
    assert await last(of, f"The marker is {FACT}.") == (1, 1, 1)


async def test_a_path_in_a_list_of_paths_does_not_lead_to_a_fact() -> None:
    """A model would have to read them all."""
    of = lost()
    path = await path_of(of)
    assert await last(of, f"Outputs: {path}, {path.replace('_1_0', '_2_0')}") == (1, 0, 0)


async def test_what_lies_behind_the_first_answer_of_the_recall_tool_does_not_count() -> None:
    """One read is one answer: the far tail of a giant block is further away."""
    of = lost("".join(f"line_{number}_of the_long_output_{number}\n" for number in range(900)))
    assert await last(of, f"The output of make marker: {await path_of(of)}") == (1, 0, 0)


async def test_a_name_in_the_outline_of_a_long_block_is_one_read_away() -> None:
    """The first answer of the recall tool begins with the names that lie behind it, where they have room."""
    of = lost("a line of the long output\n" * 900)
    assert await last(of, f"The output of make marker: {await path_of(of)}") == (1, 0, 1)


@pytest.mark.parametrize("how", ["redacted", "omitted"])
async def test_a_redacted_or_omitted_block_is_never_reachable(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path may still be printed; what it said is not to be had."""
    of = lost()
    path = await path_of(of)
    take = FactSight.take

    def erased(self: FactSight, place: int, version: int, block: Any) -> None:
        take(self, place, version, block)
        if block.path == path:
            omit = BlocksHidden(mode="omit", reason="test", blocks=({"version": version},))  # type: ignore[arg-type]
            self.decided([BlockRedacted(version=version) if how == "redacted" else omit])

    monkeypatch.setattr(FactSight, "take", erased)
    assert await last(of, f"The output of make marker: {path}") == (1, 0, 0)


async def test_fetching_costs_a_read_of_what_is_one_read_away_and_the_whole_block_of_what_is_gone() -> None:
    """A lost fact is found again by what first brought it."""
    of = lost(after="a line of the long output\n" * 900)
    near, gone = [
        (await ran(of, "cline", 18_000, text)).rows[-1]
        for text in (f"The output of make marker: {await path_of(of)}", "A marker was made.")
    ]
    assert near.reads == gone.reads == 1
    assert 0 < near.fetch_units < gone.fetch_units


async def test_a_run_is_the_same_after_any_other_policy() -> None:
    """All policies share what a recording needs."""
    of = measure(work(40).recording())
    needs = needs_of(of)

    async def once(name: str) -> dict[str, Any]:
        found = await replay(of, find_policy(name, max_tokens=20_000), PRICE_OF, needs=needs)
        return found.totals.model_dump(exclude={"seconds"})

    alone = await once("balanced")
    await once("pi")
    await once("none")
    assert await once("balanced") == alone


async def test_without_facts_a_run_is_what_it_was() -> None:
    """The measure changes no decision and no price."""
    of = measure(work(40).recording())
    policy = find_policy("balanced", max_tokens=20_000)
    bare = await replay(of, policy, PRICE_OF)
    with_facts = await replay(of, policy, PRICE_OF, needs=needs_of(of))
    names = {
        name
        for name in type(bare.totals).model_fields
        if name.startswith(("facts_", "seen_", "reachable_", "found_", "scored_"))
    }
    names |= {name for name in type(bare.totals).model_fields if name in Judged._fields}
    names |= {"stale", "reads", "fetch_units", "fetch_money", "seconds"}
    assert bare.totals.model_dump(exclude=names) == with_facts.totals.model_dump(exclude=names)
    assert bare.totals.facts_by == {}


@pytest.mark.parametrize(("policy", "limit"), [("none", 20_000), ("balanced", 20_000), ("cut_point", 16_000)])
async def test_an_independent_calculation_finds_the_same_in_made_conversations(policy: str, limit: int) -> None:
    """Without recordings anybody can see it."""
    await agree(measure(work(40).recording()), policy, limit)


@needs_recordings
@sampled
@pytest.mark.parametrize(
    "file",
    by_size("claude-code/*.jsonl")[1:5] if DEPTH is Depth.NIGHT else by_size("claude-code/*.jsonl")[4:5],
    ids=lambda file: file.stem,
)
@pytest.mark.parametrize(("policy", "limit"), [("none", 100_000), ("balanced", 32_000), ("cline", 32_000)])
async def test_an_independent_calculation_finds_the_same_in_recordings(file: Path, policy: str, limit: int) -> None:
    """Whatever a policy hides or covers, both find the same strings. The largest recording would take a minute."""
    await agree(measured_file(str(file))[0], policy, limit)


@contextmanager
def noted_appends() -> Iterator[dict[int, Block]]:
    """Note each block that a replay appends, by version: some are covered before any context shows them."""
    logged: dict[int, Block] = {}
    append = ReplayLog.append

    def noted(log: ReplayLog, *given: Any) -> Block:
        block = append(log, *given)
        logged[log.fold.version] = block
        return block

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReplayLog, "append", noted)
        yield logged


async def agree(of: Measured, policy: str, limit: int) -> None:
    """Hold needed facts and those in sight against the calculation: the same.

    Those one read away lie within its two counts, by a tenth: without the records behind summaries, and with all that
    these can have.
    """
    contexts: list[Any] = []
    chosen = find_policy(policy, max_tokens=limit)
    with noted_appends() as logged:
        lab = await replay(of, chosen, PRICE_OF, needs=needs_of(of), watch=lambda sent: contexts.append(sent.context))
    found = naive_recall(of.recording.events, [call.position for call in of.calls], contexts)
    judged = naive_summaries(of.recording.events, [call.position for call in of.calls], contexts, logged)
    for name in ("summary_facts", "summary_held", "summary_said", "summary_invented"):
        assert getattr(lab.totals, name) == judged[name], name
    assert judged["summary_invented"] == 0, "the extractive summarizer copies"
    sent = {number for number, context in enumerate(contexts) if context is not None}
    for distance in DISTANCES:
        told = [row for number, row in enumerate(lab.rows) if number in sent]
        for state in ("facts", "seen"):
            assert sum(getattr(row, f"{state}_{distance}") for row in told) == found[f"{state}_{distance}"]
        reached = sum(getattr(row, f"reachable_{distance}") for row in told)
        most_off = max(2, 0.1 * found[f"facts_{distance}"])
        assert found[f"reachable_{distance}"] - most_off <= reached <= found[f"listed_{distance}"] + most_off
        searched = sum(getattr(row, f"found_{distance}") for row in told)
        beside = found[f"reachable_{distance}"] + found[f"searched_{distance}"]
        assert reached <= searched <= found[f"facts_{distance}"]
        assert beside - most_off <= searched <= max(beside, reached + found[f"searched_{distance}"]) + most_off


async def test_a_value_counts_as_stale_where_only_its_earlier_state_is_shown() -> None:
    """The content that was read is in sight, the write that changed it is not: the context shows what is wrong."""
    talk = Talk()
    talk.ask("Rename it.")
    talk.respond(("Read", {"file_path": "src/a.py"}, "old_marker = 1"))
    talk.respond(("Write", {"file_path": "src/a.py", "content": f"{FACT} = 1"}, "Written."))
    talk.respond(text=f"Now it is {FACT}.")
    of = measure(talk.recording())
    [need] = [need for need in needs_of(of).of_call[of.calls[-1].position] if need.fact == FACT]
    read, wrote = [at for at, event in enumerate(of.recording.events) if " = 1" in str(event.payload)]
    assert (need.last, need.before) == (wrote, (read,))


async def test_an_unchanged_value_is_never_stale() -> None:
    """Two reads of one file without a write between say the same."""
    talk = Talk()
    talk.ask("Read it.")
    for _ in range(2):
        talk.respond(("Read", {"file_path": "src/a.py"}, f"{FACT} = 1"))
    talk.respond(text=f"It is {FACT}.")
    of = measure(talk.recording())
    assert [need.before for need in needs_of(of).of_call[of.calls[-1].position]] == [()]


async def two_away(answer: str, first: str, *, before: str = "") -> tuple[int, int]:
    """Return whether the last answer's fact is one read, and two, away where no summary names it."""
    talk = Talk()
    talk.ask("Please look for the marker.")
    talk.respond(("Bash", {"command": "make marker"}, f"{before}{first}"))
    for number in range(24):
        talk.respond(("Bash", {"command": f"make part{number}"}, code(f"part{number}")))
    talk.respond(text=answer)
    row = (await ran(measure(talk.recording()), "cline", 18_000, "A marker was made.")).rows[-1]
    return row.reachable_far, row.found_far


@pytest.mark.parametrize(
    ("answer", "first", "expected"),
    [
        (f"The zebra is {FACT} indeed.", f"A zebra indeed: {FACT}.", (0, 1)),
        (f"The zebra is {FACT} indeed.", f"A giraffe: {FACT}.", (0, 0)),
        (f"{FACT}", f"A zebra: {FACT}.", (0, 0)),
        (f"zebra\n{FACT}\nzebra", f"A zebra: {FACT}.", (0, 0)),
        ("old_thing/marker/lostFile_7.py", "A zebra: old_thing/marker/lostFile_7.py", (0, 1)),
    ],
)
async def test_a_fact_is_two_away_where_a_search_that_does_not_name_it_has_it_among_its_first_hits(
    answer: str, first: str, expected: tuple[int, int]
) -> None:
    """By the words on either side of it in the answer's line, or by the piece of a path that the context shows."""
    assert await two_away(answer, first) == expected


async def test_what_a_search_finds_has_to_be_in_its_first_answer() -> None:
    """A hit is read once; of a giant block's far tail that is its outline, which does not hold everything."""
    plain = "a line of the long output\n" * 900
    names = "".join(f"def other_name_{number}_of_many(): ...\n" for number in range(4_000))
    answer, hit = f"The zebra is {FACT} indeed.", f"A zebra indeed: {FACT}."
    assert await two_away(answer, hit, before=plain) == (0, 1)
    assert await two_away(answer, hit, before=names) == (0, 0)


async def test_a_stale_value_counts_as_minus_one_in_the_score() -> None:
    """An agent that is shown an earlier state goes on with it, though the later one were one read away."""
    need = Need(FACT, "name", "far", "file", 1, 3, (2,))
    seen, read, gone = (FoundNeed(need, where, stale=False) for where in ("seen", "reachable", "gone"))
    stale = FoundNeed(need, "reachable", stale=True)
    figures = counted([seen, read, gone, stale])
    assert (figures["reachable_far"], figures["scored_far"], figures["stale"]) == (3, 1, 1)


async def test_the_labs_ranking_is_the_ranking_of_a_store() -> None:
    """The same blocks in the same order, for words, compound words and humps."""
    of = measure(work(30).recording())
    store, ranking = MemoryStore(), Ranking()
    timeline = await Timeline.open(store, "c", now=of.recording.events[0].at)
    blocks = [block for event in of.recording.events if (block := block_of(event)) is not None]
    for block in await timeline.append(*blocks):
        ranking.add(block.path, searchable(block))
    for query in ("pytest", "src/app", "def part", "getName", "value part_3", "the of"):
        hits = [found.path async for found in store.search(query)]
        assert ranking.best(query, 5) == hits[:5]


async def test_a_summary_is_worth_what_later_answers_use_of_it() -> None:
    """Of two facts of its range one is used later, and it holds that one; the other one is no need."""
    of = lost("The other is otherMarker_9.")
    told = f"The marker is {FACT}, and otherMarker_9 too."
    totals = (await ran(of, "cline", 18_000, told)).totals
    assert totals.compactions > 0
    assert totals.summary_facts == totals.summary_held == totals.summary_said > 0
    assert totals.held_per_100 == pytest.approx(100 * totals.summary_held / totals.summary_tokens)
    less = (await ran(of, "cline", 18_000, "A marker was made.")).totals
    assert (less.summary_said, less.summary_facts) == (0, totals.summary_facts)


async def test_the_record_behind_a_summary_is_counted_apart() -> None:
    """It is the same whoever writes: what calls and prompts named again is in it."""
    talk = Talk()
    talk.ask(f"Please look for {FACT}, and then again for {FACT}.")
    for number in range(24):
        talk.respond(("Bash", {"command": f"grep {FACT} part{number}"}, code(f"part{number}")))
    talk.respond(text=f"It is {FACT}.")
    totals = (await ran(measure(talk.recording()), "cut_point", 16_000, "It was looked for.")).totals
    assert totals.summary_said == 0 < totals.summary_held
    assert totals.summary_tokens > totals.summary_said_tokens
    assert totals.said_per_100 == 0


async def test_a_name_that_nothing_in_the_range_holds_is_invented() -> None:
    """A path, an identifier and a number of nobody's; the path that a block of the range has is no invention."""
    of = lost()
    made_up = f"src/none/such.py has madeUp_1 and 48151623; {FACT} is at {await path_of(of)}."
    row = next(row for row in (await ran(of, "cline", 18_000, made_up)).rows if row.compactions)
    assert row.summary_invented == 3


@pytest.mark.parametrize(
    ("said", "invented"),
    [(FACT[1:], 1), (FACT[:-1], 1), (f"{FACT[:-1]}…", 0), (FACT, 0), ("src/app/", 0)],
)
async def test_half_of_a_name_is_invented(said: str, invented: int) -> None:
    """Nobody said it; a folder of a path, and what the summary itself says is cut, is none."""
    of = lost("src/app/main.py")
    row = next(row for row in (await ran(of, "cline", 18_000, f"It is {said} there.")).rows if row.compactions)
    assert row.summary_invented == invented


def test_the_words_beside_a_fact_are_those_of_its_own_line() -> None:
    """A query of them is meant to find this line."""
    text = "first line\nthe limit src/a.py\nnext line\nlast line"
    assert words_beside("src/a.py", text, []) == "limit"
