"""Compacting a log: when it is done, when it is refused, and what it comes to (design, sections 5 and 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.compacting import FINISHED, POLICY, split
from tests.scenes import (
    COUNTER,
    Scribe,
    after,
    answer,
    exchange,
    log_of,
    opened,
    payloads_of,
    prompt,
    small_policy,
    turn,
    words,
)
from timeline import policies
from timeline.blocks import Note
from timeline.errors import BudgetImpossible, CompactionRefused, ContextOverflow
from timeline.ports import Summary
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.ports import SummaryRequest


@pytest.mark.shows("002-5")
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


@pytest.mark.parametrize("room", [-100, 0, 7])
async def test_a_forced_compaction_names_the_reserves_that_leave_no_room(room: int) -> None:
    """The summarizer could write nothing, and is not what has to be mended."""
    policy = policies.prune_then_summarize(max_tokens=4_000, output_reserve=4_000 - room, safety_buffer=0)
    timeline = await opened(MemoryStore(), policy=policy)
    for number in range(9):
        await timeline.append(*turn(100 + number, 100))
    with pytest.raises(BudgetImpossible, match="output_reserve"):
        await timeline.compact()


async def test_a_forced_compaction_without_gain_is_refused_and_recorded() -> None:
    """Never a silent no-op: the typed reason is raised and recorded in the log."""
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
    """Nothing to compact, nothing to show as a preview: the context reports that it is above the trigger."""
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


@pytest.mark.shows("004-8", "R-004-31")
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
