from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.naive import naive
from tests.lab.talks import FIXED, Talk, code, work
from tests.scenes import Scribe
from timeline import policies
from timeline.blocks import AssistantCompletion, ToolResult, UserPrompt
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import as_replayed, fixed_part, replay
from timeline.lab.replay_log import FIXED_PART, ProviderCounter
from timeline.lab.segments import Segmenter
from timeline.lab.simulate import simulate
from timeline.lab.sizes import VOCABULARY, Measured, measure
from timeline.lab.summaries import Metered, RecordedSummaries, Spent
from timeline.policy.files import find_policy
from timeline.policy.model import CachePointRule, Policy
from timeline.ports import CUT_KEY, HIDDEN_KEY, Summary, SummaryRequest
from timeline.store import MemoryStore
from timeline.summarizers import CallableSummarizer, ExtractiveSummarizer, frame_of, question_in_cache
from timeline.tokens import get_counter
from timeline.usage import LONG_CACHE_SECONDS
from timeline.wire.anthropic import encode

if TYPE_CHECKING:
    from timeline.lab.replay import SentCall
    from timeline.lab.results import RunResult
    from timeline.usage import KeptLong

PRICE_OF = packaged_prices().price_of
PAUSES = {9: 400.0, 20: 700.0, 33: 4_000.0}


@cache
def measured(rounds: int = 40, **fields: Any) -> Measured:
    """Return a measured recording of so many rounds, with three pauses."""
    return measure(work(rounds, pauses=PAUSES, **fields).recording())


async def ran(policy: str, limit: int = 24_000, of: Measured | None = None, **changes: Any) -> RunResult:
    """Replay under a policy that is named."""
    return await replay(of or measured(), find_policy(policy, max_tokens=limit, **changes), PRICE_OF)


def in_cache(policy: Policy) -> Policy:
    """Return a policy that asks for its summaries in the provider's cache."""
    [step] = policy.steps
    return policy.model_copy(update={"steps": (step.model_copy(update={"asked": "in_cache"}),)})


@pytest.mark.shows("R-002-9")
@pytest.mark.parametrize(
    ("policy", "limit", "kept_long"),
    [
        ("none", 24_000, None),
        ("cut_point", 24_000, None),
        ("cut_point", 40_000, None),
        ("balanced", 30_000, None),
        ("economical", 30_000, None),
        ("keep_last", 50_000, None),
        ("keep_ratio", 60_000, None),
        ("priority_chain", 24_000, None),
        ("prune_then_summarize", 40_000, None),
        ("seed-002-first", 30_000, None),
        ("clear-tool-uses", 60_000, None),
        ("gentle", 30_000, "everything"),
        ("cut_point", 24_000, "everything"),
        ("cut_point in the cache", 24_000, None),
        ("cut_point in the cache", 24_000, "everything"),
        ("goose in the cache", 30_000, None),
    ],
)
async def test_a_second_calculation_byte_by_byte_comes_to_the_same(
    policy: str, limit: int, kept_long: KeptLong | None
) -> None:
    """A store instead of a fold, whole requests compared in full instead of chains: the same contexts and costs."""
    changes = {} if kept_long is None else {"cache_points": {"kept_long": kept_long}}
    name, _, where = policy.partition(" ")
    tried = find_policy(name, max_tokens=limit, **changes)
    tried = in_cache(tried) if where else tried
    fingerprints: list[str] = []

    def watch(sent: SentCall) -> None:
        if sent.context is not None:
            fingerprints.append(sent.context.fingerprint)

    found = await replay(measured(), tried, PRICE_OF, watch=watch)
    fixed = fixed_part(measured().fixed, limit)
    counter = ProviderCounter(get_counter(VOCABULARY), measured().ratio, fixed)
    again = await naive(measured(), as_replayed(tried), counter, PRICE_OF)
    assert tuple(fingerprints) == again.fingerprints
    assert (found.totals.read, found.totals.written) == (again.read, again.written)
    assert found.totals.written_long == again.written_long
    assert tuple(row.visible for row in found.rows if not row.refused) == again.visible
    assert found.totals.units == pytest.approx(again.units, rel=1e-9)
    assert found.totals.compactions == again.compactions


async def test_a_policy_that_makes_room_costs_less_and_stays_in_the_limit() -> None:
    """No call is above the limit, none is refused, nothing is divided; the price is what is not in sight."""
    none, ours = await ran("none", 20_000), await ran("cut_point", 20_000)
    assert ours.totals.units < none.totals.units
    assert (ours.totals.over_limit, ours.totals.refusals, ours.totals.orphans) == (0, 0, 0)
    assert max(row.tokens for row in ours.rows) <= 20_000
    assert ours.totals.mean_visible < none.totals.mean_visible
    assert (none.totals.hidden_needs, none.totals.compactions) == (0, 0)
    assert 0 < ours.totals.hidden_needs <= ours.totals.needs == none.totals.needs


async def test_a_fixed_part_that_is_kept_for_an_hour_is_written_once_for_each_longer_pause() -> None:
    """Of three pauses one is longer than an hour; for five minutes it is written behind each of them."""
    rule = CachePointRule(kept_long="fixed_part")
    short, long = await ran("cut_point"), await ran("cut_point", cache_points=rule)
    assert [row.written_long for row in long.rows if row.written_long] == [long.fixed, long.fixed]
    assert sum(row.read == 0 for row in short.rows) == 1 + len(PAUSES)
    assert sum(row.read == 0 for row in long.rows) == 2
    assert [row.tokens for row in short.rows] == [row.tokens for row in long.rows]
    assert long.totals.written == short.totals.written - 2 * long.fixed
    assert short.totals.written_long == 0


async def test_messages_that_are_kept_for_an_hour_are_written_once_for_each_longer_pause() -> None:
    """The same requests: of three pauses one is longer than an hour, and all that is written is dearer."""
    rule = CachePointRule(kept_long="everything")
    short, long = await ran("none"), await ran("none", cache_points=rule)
    assert [row.tokens for row in long.rows] == [row.tokens for row in short.rows]
    assert long.totals.written_long == long.totals.written < short.totals.written
    assert long.totals.collapses == {"gap": 1}
    assert short.totals.collapses == {"gap": len(PAUSES)}


async def test_what_is_kept_for_an_hour_is_hidden_once_the_hour_is_over() -> None:
    """The recording says five minutes, which is what its own client had asked for."""
    rule = CachePointRule(kept_long="everything")
    hour = await ran("cut_point", cache_points=rule)
    assert min(row.idle_seconds for row in hour.rows if row.hidden) > LONG_CACHE_SECONDS
    assert min(row.idle_seconds for row in (await ran("cut_point")).rows if row.hidden) < LONG_CACHE_SECONDS


async def test_a_recording_that_was_cached_for_an_hour_is_replayed_so_under_any_policy() -> None:
    """It is what its runtime asked for; a policy asks for more, and never for less."""
    found = await ran("none", of=measured(long=True))
    assert found.totals.written_long == found.totals.written > 0


async def test_a_policy_that_never_makes_room_is_sent_whole_and_counted() -> None:
    """It is what all others are compared with; the calls above its limit are told."""
    none = await ran("none")
    assert none.totals.refusals == 0
    assert none.totals.over_limit == sum(row.tokens > 24_000 for row in none.rows) > 0
    assert [row.tokens for row in none.rows] == [row.recorded for row in none.rows]


async def test_the_rows_add_up_to_the_totals() -> None:
    """What a comparison sums is what its calls say."""
    found = await ran("cut_point")
    rows, totals = found.rows, found.totals
    assert [row.number for row in rows] == list(range(1, totals.calls + 1))
    assert totals.units == pytest.approx(sum(row.units + row.summary_units for row in rows))
    assert totals.money == pytest.approx(totals.units * 5 / 1e6)
    assert all(row.read + row.written + row.uncached == row.tokens for row in rows)
    assert sum(totals.collapses.values()) == sum(row.collapsed for row in rows)
    assert totals.compactions == sum(row.compactions for row in rows) > 0
    assert totals.visible_at_end == rows[-1].visible


async def test_a_prefix_is_lost_to_the_pause_or_to_the_decision() -> None:
    """Each loss has its cause: three pauses; what is hidden then is lost to the pause, not to the hide."""
    none, ours = await ran("none"), await ran("cut_point")
    assert none.totals.collapses == {"gap": 3}
    assert ours.totals.collapses["gap"] == 3
    assert {row.cause for row in ours.rows if row.compactions and not row.hidden} <= {"compaction", "gap"}


async def test_a_summary_is_priced_as_the_call_that_it_would_be() -> None:
    """What is covered goes in by itself, what is written comes out at the price of an answer."""
    found = await ran("goose", 30_000)
    [row, *_] = [row for row in found.rows if row.compactions]
    assert row.summary_read >= row.covered_tokens > 0
    assert row.summary_units == pytest.approx(row.summary_read + 5 * row.summary_written)


async def test_a_summary_costs_its_prompt_and_its_blocks_as_they_are_given() -> None:
    """A whole block costs what was measured; a replacement, or what was cut, is counted as the summarizer gets it."""
    counter = get_counter("chars4")
    metered = Metered(ExtractiveSummarizer(), counter, limit=100_000)
    metered.sizes.update({"a": 900, "b": 900, "c": 900})
    blocks = (
        UserPrompt(path="a", text="Build a flashcard app."),
        ToolResult(path="b", call_id="1", text="word " * 40, meta={CUT_KEY: True}),
        ToolResult(path="c", call_id="2", text="word " * 20, meta={HIDDEN_KEY: "manual"}),
        AssistantCompletion(path="d", text="word " * 10),
    )
    request = SummaryRequest("history", blocks, "Earlier: a plan.", "Build a flashcard app.", 100, counter)
    asked: list[str] = []

    async def model(message: str) -> str:
        asked.append(message)
        return "- a flashcard app"

    await CallableSummarizer(model).summarize(request)
    answer = await metered.summarize(request)
    spent = metered.spent()
    assert spent is not None
    assert spent.read == 900 + 50 + 25 + 13 + counter.count(frame_of(request))
    assert spent.written == counter.count(answer.text)
    [sent] = asked
    prompt, task = sent.partition("===")[0].strip(), "Build a flashcard app."
    for part in (prompt, task, "Earlier: a plan."):
        assert part in frame_of(request)
    record = counter.count(sent) - counter.count(frame_of(request))
    assert 0 <= record - sum(counter.count(block.text) for block in blocks) <= 4 * 8, "a number and a speaker a block"


async def test_a_summary_that_is_asked_for_in_the_cache_costs_a_read_of_the_context_and_its_question() -> None:
    """All that the last call left in the cache is read for a tenth; the question is new, and so is the answer."""
    questions: list[int] = []

    class Spy(ExtractiveSummarizer):
        async def summarize(self, request: SummaryRequest) -> Summary:
            assert request.warm is not None
            questions.append(request.counter.count(question_in_cache(request)))
            return await super().summarize(request)

    asking = in_cache(find_policy("goose", max_tokens=30_000))
    alone, found = await ran("goose", 30_000), await replay(measured(), asking, PRICE_OF, summarizer=Spy())
    place = next(number for number, row in enumerate(found.rows) if row.compactions)
    before, row = found.rows[place - 1], found.rows[place]
    asked = 2 if row.splits else 1  # about the finished history, and about the beginning of the divided turn
    assert (row.summary_read, row.summary_cached) == (0, asked * (before.read + before.written))
    rest = asked * before.uncached + sum(questions[:asked])
    assert row.summary_units == pytest.approx(row.summary_cached / 10 + rest + 5 * row.summary_written)
    assert row.summary_units < alone.rows[place].summary_units / 2
    assert (row.read, row.written, row.cause) == (
        alone.rows[place].read,
        alone.rows[place].written,
        alone.rows[place].cause,
    )


async def test_a_question_that_has_no_room_in_the_window_is_priced_by_itself() -> None:
    """Behind a context as large as the window there is none."""

    class Warm:
        wire, model, tokens = "anthropic", "m", 99_000

        def arguments(self, question: str, most_tokens: int) -> dict[str, Any]:
            raise AssertionError((question, most_tokens))

    counter = get_counter("chars4")
    block = UserPrompt(path="a", text="Build a flashcard app.")
    request = SummaryRequest("history", (block,), None, None, 400, counter, warm=Warm())
    metered = Metered(ExtractiveSummarizer(), counter, limit=100_000)
    answer = await metered.summarize(request)
    assert (answer.asked, answer.alone_because) == ("alone", "window")
    assert metered.spent() == Spent(
        counter.count(frame_of(request)) + counter.count(block.text), counter.count(answer.text)
    )


async def test_a_refused_call_is_told_by_its_error_and_costs_nothing() -> None:
    """A policy that keeps whole turns cannot make room in a long one."""
    talk = Talk()
    talk.ask("All in one turn.")
    for number in range(12):
        talk.respond(("Read", {"file_path": f"{number}.py"}, code("x", 100)))
    found = await ran("prune_then_summarize", 24_000, measure(talk.recording()))
    refused = [row for row in found.rows if row.refused]
    assert {row.refused for row in refused} == {"ContextOverflow"}
    assert all(row.units == row.tokens == 0 for row in refused)
    assert found.totals.refused == {"ContextOverflow": len(refused)}
    assert found.totals.refusals == len(refused)


@pytest.mark.parametrize("signed", [True, False])
async def test_a_thought_that_nobody_signed_is_not_sent_and_not_in_sight(*, signed: bool) -> None:
    """The provider takes back only what it signed; behind a rewritten prefix see the second calculation."""
    talk = Talk(signed=signed)
    talk.ask("Look at the file.")
    talk.respond(thought="I had better read it. " * 50, text="I have read it.")
    talk.ask("Say so.")
    talk.respond(text="I say so.")
    [_, after] = (await ran("none", of=measure(talk.recording()))).rows
    assert (after.visible > 200) is signed


async def test_a_need_is_hidden_where_the_newest_content_is_not_in_sight() -> None:
    """A file that is read, covered and edited then; one that was read again behind the cut is in sight."""
    talk = Talk()
    talk.ask("Read two files.")
    talk.respond(("Read", {"file_path": "old.py"}, code("old", 200)), ("Read", {"file_path": "new.py"}, code("new", 5)))
    talk.respond(text="Read.")
    for number in range(5):
        talk.ask(f"Step {number}.")
        talk.respond(("Bash", {"command": "make"}, code("log", 150)), text="I try it.")
    talk.respond(("Read", {"file_path": "new.py"}, code("new", 5)))
    talk.respond(("Edit", {"file_path": "new.py", "old_string": "a", "new_string": "b"}, "Edited."))
    talk.respond(("Edit", {"file_path": "old.py", "old_string": "a", "new_string": "b"}, "Edited."))
    talk.respond(("Edit", {"file_path": "other.py", "old_string": "a", "new_string": "b"}, "Edited."))
    talk.respond(text="Done.")
    found = await ran("goose", 25_000, measure(talk.recording()))
    assert found.totals.compactions > 0
    assert [(row.needs, row.hidden_needs) for row in found.rows[-5:]] == [(1, 1), (1, 0), (1, 1), (0, 0), (0, 0)]


async def test_a_fixed_part_that_leaves_no_room_is_replayed_smaller() -> None:
    """Figures at such a limit compare with each other alone, and the result says so."""
    found = await ran("cut_point", 16_000)
    assert (found.fixed, found.measured_fixed) == (2_000, measured().fixed)
    assert (await ran("cut_point", 24_000)).fixed == pytest.approx(FIXED, abs=30)


async def test_a_recording_without_usage_is_replayed_in_our_own_tokens() -> None:
    """Its calls are its responses, and its model is not known."""
    plain = [event for event in work(16).recording().events if event.payload.type == "block.appended"]  # type: ignore[union-attr]  # no compaction is among them
    found = await ran("cut_point", 10_000, measure(replace(work(0).recording(), events=tuple(plain))))
    assert (found.ratio, found.fixed, found.totals.priced) == (1.0, 0, False)
    assert found.totals.calls == 18
    assert found.totals.read > 0


async def test_the_recorded_clients_summaries_stand_in_while_there_are_any() -> None:
    """They are cut to the policy's cap; the next ones are another's."""
    talk = work(20)
    talk.compact("RECORDED: what the client's model wrote. " * 400)
    for _ in range(20):
        talk.respond(("Bash", {"command": "make"}, code("log", 40)))
    whole = measure(talk.recording())
    summaries = RecordedSummaries(whole.recording, Scribe())
    texts: list[str] = []

    def watch(sent: SentCall) -> None:
        if sent.context is not None:
            texts.extend(e.text for e in sent.context.neutral.entries if e.type == "conv.range.summary")

    await replay(whole, policies.cut_point(max_tokens=24_000), PRICE_OF, summarizer=summaries, watch=watch)
    assert "RECORDED" in texts[0]
    assert "history 1" in texts[-1]


async def test_a_replay_decides_as_a_simulation_does() -> None:
    """The same compactions as `simulate` makes of the recording in a store, where both count alike."""
    counted = replace(measured(), ratio=1.0)
    tokens = get_counter(VOCABULARY)
    events = counted.recording.events
    own = [tokens.count(e.payload.block.countable()) if e.payload.type == "block.appended" else 0 for e in events]  # type: ignore[union-attr]  # no compaction is among them
    counted = replace(counted, tokens=tuple(own), fixed=0)
    policy = policies.cut_point(max_tokens=12_000)
    found = await replay(counted, policy, PRICE_OF)
    stored = await simulate(MemoryStore(), counted.recording, policy)
    assert found.totals.compactions == stored.compactions > 0


async def test_what_is_not_worked_out_anew_is_what_it_would_be() -> None:
    """Segments that go on from the context before are those of the context by itself."""
    segmenter = Segmenter()
    seen = 0

    def watch(sent: SentCall) -> None:
        nonlocal seen
        assert sent.shown is not None
        seen += 1
        assert segmenter.segments(sent.shown) == Segmenter().segments(sent.shown)

    for name, limit in (("none", 60_000), ("economical", 60_000), ("keep_last", 60_000), ("clear-tool-uses", 24_000)):
        await replay(measured(), find_policy(name, max_tokens=limit), PRICE_OF, watch=watch)
    assert seen == 4 * len(measured().calls)


async def test_a_context_that_changes_near_its_end_is_written_anew_from_there() -> None:
    """A policy that hides an old result at each call had all segments of all calls written anew."""

    class Asked(dict[int, int]):
        """No hashes; counts for how many entries one was asked."""

        times = 0

        def get(self, key: int, default: Any = None) -> Any:
            self.times += 1
            return super().get(key, default)

    asked, contexts = Asked(), 0
    segmenter, newest = Segmenter(asked), 0

    def watch(sent: SentCall) -> None:
        nonlocal contexts, newest
        if sent.shown is not None:
            segmenter.segments(sent.shown)
            contexts, newest = contexts + 1, len(sent.shown.entries)

    replayed = await replay(measured(), find_policy("clear-tool-uses", max_tokens=24_000), PRICE_OF, watch=watch)
    assert sum(row.hidden > 0 for row in replayed.rows) > contexts / 4
    assert newest <= asked.times < 4 * newest


async def test_a_summary_that_is_told_in_several_messages_is_counted_once() -> None:
    """Its last message is one of the model's; the calls behind it go on from there, and send no more than there is."""
    talk = Talk(fixed=2_000)
    talk.ask("Read the files.")
    for number in range(24):
        talk.respond(("read_file", {"path": f"src/{number}.py"}, code(f"part_{number}")))
    talk.ask("Wait.")
    talk.ask("Now tell me what is in them.")
    for number in range(3):
        talk.respond(text=f"Part {number} moves a card.")
    segmenter, compared = Segmenter(), 0

    def watch(sent: SentCall) -> None:
        nonlocal compared
        if sent.shown is not None:
            compared += bool(sent.shown.window.summaries)
            assert segmenter.segments(sent.shown) == Segmenter().segments(sent.shown)

    policy = find_policy("prune_then_summarize", max_tokens=16_000)
    await replay(measure(talk.recording()), policy, PRICE_OF, watch=watch)
    assert compared == 3


async def test_segments_stand_for_the_parts_of_the_wire() -> None:
    """One for each content part of the request, and markers on those that carry one there."""

    def watch(sent: SentCall) -> None:
        assert sent.shown is not None
        neutral = sent.shown.context().neutral
        segments, markers = Segmenter().segments(sent.shown)
        parts = [part for message in encode(neutral)["messages"] for part in message["content"]]
        assert len(segments) == len(parts) + 1
        assert markers == (0, *(n for n, part in enumerate(parts, start=1) if "cache_control" in part))
        assert neutral.system == FIXED_PART

    await replay(measured(), policies.cut_point(max_tokens=30_000), PRICE_OF, watch=watch)


async def test_twice_as_long_a_recording_takes_about_twice_the_work() -> None:
    """Function calls are counted, not seconds: a replay in a limit costs what the recording is long."""
    policy = find_policy("cut_point", max_tokens=24_000)

    async def effort(rounds: int) -> int:
        of, count = measured(rounds), 0

        def tick(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(tick)
        try:
            await replay(of, policy, PRICE_OF)
        finally:
            sys.setprofile(None)
        return count

    await effort(8)  # what is imported and loaded once is loaded now
    assert await effort(160) < 2.3 * await effort(80)
