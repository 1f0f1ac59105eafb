"""Compacting a log: requests, hooks, commits against what was appended meanwhile, failures (design, sections 4, 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from store.memory import MemoryStore
from tests.scenes import (
    AT,
    COUNTER,
    Interrupted,
    Mute,
    Scribe,
    after,
    answer,
    call,
    exchange,
    log_of,
    opened,
    paths,
    payloads_of,
    prompt,
    result,
    small_policy,
    turn,
    words,
)
from timeline import policies
from timeline.blocks import Note
from timeline.errors import (
    BudgetImpossible,
    CompactionInProgress,
    CompactionRefused,
    CompactionSuperseded,
    ContextOverflow,
)
from timeline.events import BlocksPinned, Usage, event_id
from timeline.lease import LEASE
from timeline.ports import Hooks, Summary

if TYPE_CHECKING:
    from timeline import Timeline
    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.ports import SummaryRequest

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)
FINISHED = (*turn(1_500), *turn(1_500), *turn(400, asked=300))
"""Three turns above the trigger; a cut at the third splits nothing."""


async def split(store: MemoryStore, **options: Any) -> Timeline:
    """Return a conversation above the trigger whose second turn will be split."""
    timeline = await opened(store, **{"policy": POLICY, **options})
    await timeline.append(*turn(1_500), prompt(20), *exchange("a", 1_500), *exchange("b", 1_000), *exchange("d", 400))
    return timeline


def texts(timeline: Timeline) -> list[str]:
    """Return the texts of the window's items."""
    return [item.block.text for item in timeline.window.items]


async def decide(timeline: Timeline, *payloads: Payload) -> None:
    """Append decisions."""
    await timeline.decide(list(payloads), at=AT, ids=[event_id(AT) for _ in payloads])


# Requests


class Barrier(Scribe):
    """A summarizer that answers only when two requests are under way."""

    def __init__(self) -> None:
        super().__init__()
        self.both = anyio.Event()

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Wait for the other request."""
        self.asked.append(request)
        if len(self.asked) == 2:
            self.both.set()
        with anyio.fail_after(10):
            await self.both.wait()
        return Summary(text=request.kind, summarizer="barrier")


async def test_history_and_turn_prefix_are_asked_for_at_the_same_time() -> None:
    """A summarizer that needs both requests to run gets them."""
    barrier = Barrier()
    timeline = await split(MemoryStore(), summarizer=barrier)
    await timeline.render()
    assert sorted(barrier.kinds) == ["history", "turn_prefix"]
    compaction = timeline.window.compaction
    assert compaction is not None
    assert (compaction.parts.history, compaction.parts.turn_prefix) == ("history", "turn_prefix")
    assert compaction.written_by.summarizer == "barrier"


async def test_the_same_turn_split_again_makes_one_request_and_keeps_the_history() -> None:
    """History stays verbatim; the old prefix and the new rounds are integrated."""
    scribe = Scribe()
    timeline = await split(MemoryStore(), summarizer=scribe)
    await timeline.render()
    scribe.asked.clear()
    await timeline.append(*exchange("e", 1_500), *exchange("f", 1_500), *exchange("g", 400))
    await timeline.render()
    assert scribe.kinds == ["turn_prefix"]
    assert scribe.asked[0].previous == "turn_prefix 1"
    assert scribe.asked[0].blocks[0].path == "tc:turn_2.d.call"
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.parts.history == "history 1"
    assert paths(timeline.window.items)[:2] == ["su:turn_2.conv.range.summary.2", "ar:turn_2.user.prompt"]


async def test_both_parts_become_history_when_the_turn_is_over() -> None:
    """One request integrates the old history and the old prefix; no prefix is left."""
    scribe = Scribe()
    timeline = await split(MemoryStore(), summarizer=scribe)
    await timeline.render()
    scribe.asked.clear()
    await timeline.append(answer(1_500), *turn(1_500), *turn(400, asked=300))
    await timeline.render()
    assert scribe.kinds == ["history"]
    assert scribe.asked[0].previous == "history 1\n\nturn_prefix 1"
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.parts.turn_prefix == ""
    assert "Turn Context" not in compaction.block.text


async def test_nothing_to_summarise_makes_no_request() -> None:
    """A conversation of nothing but one open turn asks for its prefix only."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(), *exchange("a", 3_000), *exchange("b", 700))
    await timeline.render()
    assert scribe.kinds == ["turn_prefix"]


async def test_spilling_alone_makes_no_request() -> None:
    """A pasted prompt becomes a preview without any summary."""
    store, scribe = MemoryStore(), Scribe()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(9_000))
    context = await timeline.render()
    assert scribe.asked == []
    assert [d.kind for d in context.decisions] == ["spilled"]
    assert [event.type for event in await log_of(store)][2:] == ["blocks.hidden", "context.rendered"]
    assert "ar:turn_1.user.prompt" in context.neutral.entries[0].text
    assert (await timeline.read("ar:turn_1.user.prompt")).text == words(9_000)


async def test_instructions_reach_the_summarizer() -> None:
    """What the caller of a forced compaction wants attended to."""
    scribe = Scribe()
    timeline = await split(MemoryStore(), summarizer=scribe)
    await timeline.compact(instructions="keep the names")
    assert {request.instructions for request in scribe.asked} == {"keep the names"}


# When


async def test_a_forced_compaction_runs_below_the_trigger() -> None:
    """``compact()`` compacts whatever the size, and says what it did."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(keep_recent_tokens=400), summarizer=Scribe())
    await timeline.append(*FINISHED)
    [taken] = await timeline.compact(now=after(60))
    assert (taken.kind, taken.reason) == ("compacted", "forced")
    [completed] = await payloads_of(store, "compaction.completed")
    assert completed.reason == "forced"
    assert completed.block.at == after(60)
    assert taken.facts["before_tokens"] == completed.before_tokens == 3_710
    assert taken.facts["after_tokens"] == completed.after_tokens == timeline.window.tokens


async def test_a_forced_compaction_without_gain_is_refused_and_recorded() -> None:
    """Never a silent no-op: the typed reason is raised and stands in the log."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY)
    await timeline.append(*turn(100))
    with pytest.raises(CompactionRefused) as caught:
        await timeline.compact()
    assert caught.value.reason == "nothing_to_cover"
    assert caught.value.facts["messages"] == 105
    [failed] = await payloads_of(store, "compaction.failed")
    assert (failed.reason, failed.visible_tokens, failed.retry_after) == ("nothing_to_cover", 105, 256)
    assert len(timeline.window.items) == 2


async def test_the_same_refusal_is_recorded_once() -> None:
    """Asking again changes nothing in the log."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY)
    await timeline.append(*turn(100))
    for _ in range(3):
        with pytest.raises(CompactionRefused):
            await timeline.compact()
    assert len(await payloads_of(store, "compaction.failed")) == 1


async def test_after_a_refusal_no_new_try_until_the_visible_tokens_have_grown() -> None:
    """The refusal is answered from the record; with the growth that it named the next render tries again."""
    store, scribe = MemoryStore(), Scribe()
    policy = small_policy(max_tokens=10_000, trigger=0.5, target=0.5, keep_recent_tokens=2_000)
    timeline = await opened(store, policy=policy, summarizer=scribe)
    await timeline.append(prompt(), answer(5_200, response_id="m1"))
    first = await timeline.render()
    assert [d.reason for d in first.decisions] == ["nothing_to_cover"]
    assert first.overflow
    [failed] = await payloads_of(store, "compaction.failed")
    retry_at = failed.visible_tokens + failed.retry_after
    assert retry_at == 5_205 + 521
    await timeline.append(*exchange("a", 300))
    second = await timeline.render()
    assert [(d.kind, d.facts) for d in second.decisions] == [("refused", {"retry_at": retry_at})]
    assert len(await payloads_of(store, "compaction.failed")) == 1
    await timeline.append(*exchange("b", retry_at - timeline.window.tokens - 2))
    assert timeline.window.tokens == retry_at
    third = await timeline.render()
    assert [d.kind for d in third.decisions] == ["compacted"]
    assert scribe.kinds == ["turn_prefix"]


async def test_above_the_limit_a_refusal_does_not_stand_in_the_way() -> None:
    """A context that cannot be sent at all is tried again each time."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000))
    await timeline.append(prompt(), answer(950, response_id="m1"))
    assert (await timeline.render()).overflow
    await timeline.append(*exchange("a", 60))
    context = await timeline.render()
    assert [d.kind for d in context.decisions] == ["compacted"]


async def test_a_context_above_the_trigger_and_within_the_limit_is_sent_and_reported() -> None:
    """Nothing to compact, nothing to spill: the caller is told that it is over."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000))
    await timeline.append(prompt(), answer(950))
    context = await timeline.render()
    assert context.overflow
    assert context.account.sent <= context.account.limit
    assert len(context.neutral.entries) == 2


async def test_a_context_that_cannot_be_made_to_fit_is_an_overflow_with_its_facts() -> None:
    """The error holds the account and the largest blocks, largest first."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=1_000))
    await timeline.append(prompt(30), answer(1_200))
    with pytest.raises(ContextOverflow) as caught:
        await timeline.render(system=words(10))
    account = caught.value.account
    assert account["total"] > account["limit"] == 1_000
    assert account["fixed"] == account["system"] == 10
    assert caught.value.largest_blocks[0] == ("ar:turn_1.assistant.completion", 1_200)
    assert "ar:turn_1.assistant.completion (1200)" in str(caught.value)
    assert await payloads_of(store, "context.rendered") == []


async def test_a_fixed_part_that_leaves_no_room_is_an_error_with_its_facts() -> None:
    """No compaction can help against a system prompt; nothing is asked, and nothing is covered."""
    store, scribe = MemoryStore(), Scribe()
    timeline = await opened(store, policy=small_policy(max_tokens=1_000, output_reserve=400), summarizer=scribe)
    await timeline.append(*turn(100))
    version = timeline.version
    with pytest.raises(BudgetImpossible) as caught:
        await timeline.render(system=words(400), tools=[words(100)])
    assert (caught.value.account["fixed"], caught.value.account["limit"]) == (900, 1_000)
    assert caught.value.account["reserved"] == 400
    assert scribe.asked == []
    assert [event.type for event in (await log_of(store))[version:]] == ["context.overflowed"]


async def test_the_policy_none_never_compacts() -> None:
    """Above the limit the overflow is raised; at or below it everything is sent."""
    scribe = Scribe()
    policy = policies.none(counter="chars4", max_tokens=4_000)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=scribe)
    await timeline.append(*FINISHED)
    context = await timeline.render(system=words(200))
    assert (len(context.neutral.entries), context.decisions) == (6, ())
    with pytest.raises(ContextOverflow):
        await timeline.render(system=words(400))
    assert scribe.asked == []


async def test_the_policy_none_sends_what_fits_beside_a_large_system_prompt() -> None:
    """Without compaction there is no trigger to leave room for."""
    timeline = await opened(MemoryStore(), policy=policies.none(counter="chars4", max_tokens=1_000))
    await timeline.append(prompt(10))
    assert (await timeline.render(system=words(950))).account.sent == 960


async def test_reserves_are_kept_free_below_the_limit() -> None:
    """A context that would eat the room for the answer is an overflow."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000, output_reserve=300))
    await timeline.append(prompt(), answer(750))
    with pytest.raises(ContextOverflow) as caught:
        await timeline.render()
    assert (caught.value.account["total"], caught.value.account["reserved"]) == (1_055, 300)


async def test_a_compaction_that_stays_above_the_trigger_is_followed_by_its_refusal_at_once() -> None:
    """Two renders in a row do not differ in what they append: the first one has decided all there is to decide."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(1_400), *turn(3_600))
    context = await timeline.render()
    assert [(d.kind, d.reason) for d in context.decisions] == [
        ("compacted", "over_trigger"),
        ("refused", "nothing_to_cover"),
    ]
    assert context.overflow
    version = timeline.version
    await timeline.render()
    assert timeline.version == version


# Hooks


@dataclass
class Journal:
    """Hooks that write down what they are given, or raise."""

    entries: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    problem: Exception | None = None

    def hooks(self) -> Hooks:
        """Return the two hooks."""
        return Hooks(on_before_compaction=self._before, on_after_compaction=self._after)

    async def _before(self, facts: dict[str, Any]) -> None:
        await self._note("before", facts)

    async def _after(self, facts: dict[str, Any]) -> None:
        await self._note("after", facts)

    async def _note(self, name: str, facts: dict[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        self.entries.append((name, facts))
        if self.problem is not None:
            raise self.problem


async def test_hooks_are_awaited_with_exactly_the_seeds_keys() -> None:
    """``{before_tokens}`` before; ``{before_tokens, after_tokens, compacted_tokens}`` after."""
    journal = Journal()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe(), hooks=journal.hooks())
    await timeline.append(*FINISHED)
    await timeline.render()
    (first, before), (second, done) = journal.entries
    assert (first, before) == ("before", {"before_tokens": 3_710})
    assert second == "after"
    assert list(done) == ["before_tokens", "after_tokens", "compacted_tokens"]
    assert done["before_tokens"] == 3_710
    assert done["after_tokens"] == timeline.window.tokens
    assert done["compacted_tokens"] == 3_010


async def test_no_hook_is_called_where_nothing_is_compacted() -> None:
    """Neither under the limit nor for a refusal."""
    journal = Journal()
    timeline = await opened(MemoryStore(), policy=POLICY, hooks=journal.hooks())
    await timeline.append(*turn(100))
    await timeline.render()
    with pytest.raises(CompactionRefused):
        await timeline.compact()
    assert journal.entries == []


async def test_an_error_in_a_hook_is_recorded_and_not_fatal() -> None:
    """The compaction goes on; the log says which hook failed and how."""
    store, journal = MemoryStore(), Journal(problem=RuntimeError("no disk"))
    timeline = await opened(store, policy=POLICY, summarizer=Scribe(), hooks=journal.hooks())
    await timeline.append(*FINISHED)
    context = await timeline.render()
    assert [d.kind for d in context.decisions] == ["compacted"]
    failed = await payloads_of(store, "hook.failed")
    assert [(f.hook, f.error) for f in failed] == [
        ("on_before_compaction", "RuntimeError: no disk"),
        ("on_after_compaction", "RuntimeError: no disk"),
    ]
    assert (await timeline.verify()).ok


# Summarizers that fail


async def test_when_the_summarizer_fails_the_extractive_one_answers() -> None:
    """The conversation is compacted all the same, and the summary says why it was not the first choice."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Mute())
    await timeline.append(*FINISHED)
    [taken] = (await timeline.render()).decisions
    assert taken.kind == "compacted"
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.written_by.summarizer == "extractive"
    assert "out of service" in (compaction.written_by.fallback_reason or "")
    assert compaction.block.meta["written_by"] == compaction.written_by.model_dump(exclude_defaults=True)


@pytest.mark.parametrize(
    ("summarizer", "reason"),
    [
        (Mute(problem=TimeoutError("30 s")), "mute: TimeoutError: 30 s"),
        (Scribe(answers=["", ""]), "empty"),
        (Scribe(answers=["  \n", " "]), "empty"),
        (Scribe(answers=[words(5_000), words(5_000)]), "5000 tokens"),
    ],
    ids=["error", "empty", "blank", "over-long"],
)
async def test_an_error_an_empty_and_an_over_long_answer_are_failures(summarizer: Any, reason: str) -> None:
    """Failure means error, timeout, empty or over-long; the reason is recorded with the summary."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=summarizer)
    await timeline.append(*FINISHED)
    await timeline.render()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert reason in (compaction.written_by.fallback_reason or "")


async def test_a_summarizer_that_answers_has_no_fallback_reason() -> None:
    """Who wrote the summary, with model and prompt version."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    await timeline.append(*FINISHED)
    await timeline.render()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.written_by.model_dump() == {
        "summarizer": "scribe",
        "model": "model-x",
        "prompt_version": "7",
        "fallback_reason": None,
        "usage": None,
    }


async def test_a_cancelled_compaction_leaves_the_conversation_as_it_was() -> None:
    """Cancelling while the summary is written covers nothing, and the next try works."""
    store = MemoryStore()

    async def forever() -> None:
        await anyio.sleep_forever()

    timeline = await opened(store, policy=POLICY, summarizer=Interrupted(meanwhile=[forever]))
    await timeline.append(*FINISHED)
    before = timeline.window.items
    with anyio.move_on_after(0.05) as scope:
        await timeline.compact()
    assert scope.cancelled_caught
    assert timeline.window.items == before
    assert [d.kind for d in await timeline.compact()] == ["compacted"]
    assert (await timeline.verify()).ok


class HalfAnswered(Scribe):
    """A summarizer that answers for the history, and never for the turn's prefix."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = anyio.Event()

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer, or wait for ever."""
        if request.kind == "turn_prefix":
            await self.answered.wait()
            await anyio.sleep_forever()
        self.answered.set()
        return Summary(text="- done", summarizer="half", usage=Usage(input_tokens=50))


async def test_a_cancelled_compaction_says_what_is_known_of_its_requests() -> None:
    """What the answered one took is counted; of the one that was broken off nobody is told, and the log says so."""
    store, summarizer = MemoryStore(), HalfAnswered()
    timeline = await split(store, summarizer=summarizer)
    async with anyio.create_task_group() as group:
        group.start_soon(timeline.compact)
        await summarizer.answered.wait()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    [failed] = await payloads_of(store, "compaction.failed")
    assert (failed.reason, failed.usage, failed.unanswered) == ("cancelled", Usage(input_tokens=50), 1)


# What happens while the summary is written


async def test_blocks_that_are_appended_meanwhile_are_kept_behind_the_summary() -> None:
    """Only appends behind the range: the compaction is committed at the log's end, they stay visible."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    scribe.meanwhile.append(lambda: timeline.append(prompt(text="meanwhile"), answer(text="yes")))
    await timeline.render()
    assert scribe.kinds == ["history"]
    assert texts(timeline)[-2:] == ["meanwhile", "yes"]
    assert timeline.window.items[0].version > timeline.window.items[-1].version
    assert (await timeline.verify()).ok


async def test_blocks_of_another_writer_are_kept_too() -> None:
    """Another process may append while this one summarises."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    other = await opened(store, policy=POLICY)
    scribe.meanwhile.append(lambda: other.append(prompt(text="from elsewhere")))
    context = await timeline.render()
    assert scribe.kinds == ["history"]
    assert texts(timeline)[-1] == context.neutral.entries[-1].text == "from elsewhere"
    assert (await timeline.verify()).ok


async def test_model_calls_and_renders_meanwhile_do_not_matter() -> None:
    """Events that change nothing in the range leave the plan valid."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    reader = await opened(store, policy=policies.none(counter="chars4"))

    async def used() -> None:
        await reader.record_model_call(model="m", now=AT)
        await reader.render()

    scribe.meanwhile.append(used)
    await timeline.render()
    assert scribe.kinds == ["history"]
    assert timeline.window.compaction is not None


async def test_the_result_of_a_carried_call_joins_it_behind_the_summary() -> None:
    """An answer that arrives meanwhile is shown as the answer to its call."""
    scribe = Interrupted()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    waiting: tuple[Block, ...] = (prompt(), call("p", response_id="m1", pending=True))
    await timeline.append(*waiting, *FINISHED)
    scribe.meanwhile.append(lambda: timeline.append(result("p", text="approved")))
    context = await timeline.render()
    assert scribe.kinds == ["history"]
    [shown] = [e for e in context.neutral.entries if e.text == "approved"]
    assert not shown.loose
    assert "tc:turn_1.p.call" in [e.path for e in context.neutral.entries]


async def test_a_late_result_of_a_covered_dead_call_goes_out_as_text() -> None:
    """A call that the model gave up is covered; its answer stands behind the summary with its path."""
    scribe = Interrupted()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(), call("x", response_id="m1"), answer(100, response_id="m2"), *FINISHED)
    scribe.meanwhile.append(lambda: timeline.append(result("x", text="too late")))
    context = await timeline.render()
    [shown] = [e for e in context.neutral.entries if e.text == "too late"]
    assert shown.loose
    assert (await timeline.verify()).ok


async def test_a_decision_inside_the_range_makes_a_new_plan() -> None:
    """A pin meanwhile is respected: the range is planned and summarised once more."""
    scribe = Interrupted(usage=Usage(input_tokens=50))
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(text="remember this"), *FINISHED)
    scribe.meanwhile.append(lambda: decide(timeline, BlocksPinned(versions=(2,))))
    context = await timeline.render()
    assert scribe.kinds == ["history", "history"]
    assert "remember this" not in [block.text for block in scribe.asked[1].blocks]
    assert "remember this" in [e.text for e in context.neutral.entries]
    assert timeline.window.compaction is not None
    assert timeline.window.compaction.written_by.usage == Usage(input_tokens=100)
    assert (await timeline.verify()).ok


async def test_a_range_that_changes_twice_is_given_up_with_a_typed_failure() -> None:
    """Re-planned once, then ``compaction.failed(superseded)``; the forced form raises it."""
    store, scribe = MemoryStore(), Interrupted(usage=Usage(input_tokens=50))
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    scribe.meanwhile += [lambda v=v: decide(timeline, BlocksPinned(versions=(v,))) for v in (2, 3)]  # type: ignore[misc]
    with pytest.raises(CompactionSuperseded):
        await timeline.compact()
    [failed] = await payloads_of(store, "compaction.failed")
    assert (failed.reason, failed.usage) == ("superseded", Usage(input_tokens=100))
    assert await payloads_of(store, "compaction.completed") == []
    assert len(scribe.asked) == 2


async def test_a_superseded_compaction_does_not_stop_a_render() -> None:
    """The render goes on with what there is, and says that the compaction failed."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    scribe.meanwhile += [lambda v=v: decide(timeline, BlocksPinned(versions=(v,))) for v in (2, 3)]  # type: ignore[misc]
    context = await timeline.render()
    assert [d.kind for d in context.decisions] == ["failed"]
    assert context.overflow


async def test_another_compaction_meanwhile_is_told_who_compacts() -> None:
    """While one writer summarises, a second one that does not wait gets the lease's version and expiry."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    other = await opened(store, policy=POLICY, summarizer=Scribe())
    refused: list[CompactionInProgress] = []

    async def compact_too() -> None:
        with pytest.raises(CompactionInProgress) as caught:
            await other.compact(wait=False, now=AT)
        refused.append(caught.value)

    scribe.meanwhile.append(compact_too)
    await timeline.compact(now=AT)
    [completed] = await payloads_of(store, "compaction.completed")
    assert completed.lease == refused[0].version
    assert refused[0].expires_at == AT + LEASE
    assert (await timeline.verify()).ok


# The figures


async def test_every_compaction_frees_at_least_what_the_policy_asks() -> None:
    """With a summarizer that fills every cap, and one turn split again and again, each one makes real progress."""

    class Filler(Scribe):
        async def summarize(self, request: SummaryRequest) -> Summary:
            self.asked.append(request)
            return Summary(text=words(request.max_tokens), summarizer="filler")

    store = MemoryStore()
    policy = small_policy(max_tokens=8_000, keep_recent_tokens=10, digest_tokens=0)
    timeline = await opened(store, policy=policy, summarizer=Filler())
    await timeline.append(*[block for _ in range(5) for block in turn(900, asked=100)], prompt())
    for n in range(12):
        await timeline.append(*exchange(f"c{n}", 20 + 60 * n))
        try:
            await timeline.compact()
        except CompactionRefused:
            continue
    completed = await payloads_of(store, "compaction.completed")
    assert len(completed) >= 3
    for payload in completed:
        freed = payload.before_tokens - payload.after_tokens
        assert freed >= max(256, payload.before_tokens // 10)
    assert (await timeline.verify()).ok


async def test_the_summary_counts_what_its_event_says() -> None:
    """The window's tokens after a compaction are those that were recorded."""
    timeline = await split(MemoryStore(), summarizer=Scribe())
    await timeline.append(Note(text="n"))
    await timeline.render()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.after_tokens == timeline.window.tokens
    assert compaction.tokens == COUNTER.count(compaction.block.text)
