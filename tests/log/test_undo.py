"""Taking compactions back (design, section 4, undo)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.scenes import (
    AT,
    Scribe,
    after,
    answer,
    exchange,
    log_of,
    opened,
    paths,
    payloads_of,
    prompt,
    small_policy,
    turn,
)
from timeline import Timeline, open_store
from timeline.blocks import RangeSummary
from timeline.errors import CompactionCovered, CompactionRefused, UndoUnavailable
from timeline.events import CompactionCompleted, Covers, WrittenBy, event_id
from timeline.log.history import versions_to_revert
from timeline.policy.model import Hiding
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400, hiding=None)


def shown(timeline: Timeline) -> list[tuple[str, str]]:
    """Return path and state of every live block, in order."""
    return [(item.block.path, item.state) for item in timeline.window.items]


async def compacted(store: EventStore, times: int = 1, **options: Any) -> tuple[Timeline, list[list[tuple[str, str]]]]:
    """Return a conversation that was compacted so often, and what was shown before each time."""
    timeline = await opened(store, **{"policy": POLICY, "summarizer": Scribe(), **options})
    before = []
    for _ in range(times):
        await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
        before.append(shown(timeline))
        await timeline.render(now=AT)
    return timeline, before


async def made(store: EventStore) -> list[int]:
    """Return the versions of all compactions."""
    return [event.version for event in await log_of(store) if event.type == "compaction.completed"]


# One


async def test_an_undone_compaction_shows_again_what_it_covered(tmp_path: Path) -> None:
    """Every block in the state that it was in before; also when the file is opened again."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline, [before] = await compacted(store)
        [version] = await made(store)
        assert await timeline.undo_compaction(now=AT) == [version]
        assert shown(timeline) == before
        assert timeline.window.summaries == ()
        assert (await timeline.verify()).ok
    async with open_store(str(tmp_path / "a.db")) as store:
        again = await opened(store, policy=POLICY)
        assert again.window == timeline.window
        assert (await again.verify()).ok


async def test_an_undo_is_an_event_and_the_log_keeps_the_compaction() -> None:
    """Nothing is deleted: the summary can still be read by its path."""
    store = MemoryStore()
    timeline, _ = await compacted(store)
    summary = paths(timeline.window.items)[0]
    await timeline.undo_compaction(now=AT)
    [reverted] = await payloads_of(store, "compaction.reverted")
    assert reverted.versions == tuple(await made(store))
    assert reverted.policy == POLICY.hash()
    assert (await timeline.read(summary)).path == summary


async def test_what_came_after_a_compaction_stays() -> None:
    """Blocks that were appended since come behind those that are shown again."""
    store = MemoryStore()
    timeline, [before] = await compacted(store)
    await timeline.append(*turn(50))
    await timeline.undo_compaction(now=AT)
    assert shown(timeline)[: len(before)] == before
    assert paths(timeline.window.items)[len(before) :] == ["ar:turn_4.user.prompt", "ar:turn_4.assistant.completion"]


async def test_the_next_summary_gets_a_path_of_its_own() -> None:
    """The path of the one that was taken back is its address for ever."""
    store = MemoryStore()
    timeline, _ = await compacted(store)
    await timeline.undo_compaction(now=AT)
    await timeline.compact(now=AT)
    first, second = await payloads_of(store, "compaction.completed")
    assert first.block.path != second.block.path
    assert (await timeline.verify()).ok


async def test_hides_survive_an_undo() -> None:
    """They are decisions of their own."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(prompt(), *exchange("a", 1_000), *turn(1_500), *turn(400, asked=300))
    await timeline.hide("tc:turn_1.a.result", now=AT)
    await timeline.compact(now=AT)
    await timeline.hide("ar:turn_3.user.prompt", text="asked", now=AT)
    await timeline.undo_compaction(now=AT)
    states = dict(shown(timeline))
    assert states["tc:turn_1.a.result"] == states["ar:turn_3.user.prompt"] == "hidden"
    assert (await timeline.verify()).ok


async def test_pins_and_redactions_survive_an_undo() -> None:
    """So do all other decisions, those about what was covered included."""
    store = MemoryStore()
    timeline, _ = await compacted(store)
    await timeline.pin("ar:turn_3.user.prompt", now=AT)
    await timeline.undo_compaction(now=AT)
    assert [item.block.path for item in timeline.window.items if item.pinned] == ["ar:turn_3.user.prompt"]


# A chain


async def test_undone_newest_first_each_gives_back_what_it_found() -> None:
    """The superseded summary is live again, until it is taken back itself."""
    store = MemoryStore()
    timeline, before = await compacted(store, times=3)
    for expected in reversed(before):
        await timeline.undo_compaction(now=AT)
        assert shown(timeline)[: len(expected)] == expected
        assert (await timeline.verify()).ok
    assert {state for _, state in shown(timeline)} == {"visible"}
    assert len(shown(timeline)) == 18


async def test_one_that_a_later_summary_covers_cannot_go_alone() -> None:
    """The error names the later one; nothing is written."""
    store = MemoryStore()
    timeline, _ = await compacted(store, times=3)
    first, second, _ = await made(store)
    length = len(await log_of(store))
    with pytest.raises(CompactionCovered, match="cascade=True") as covered:
        await timeline.undo_compaction(first, now=AT)
    assert (covered.value.version, covered.value.by) == (first, second)
    assert len(await log_of(store)) == length


async def test_a_cascade_takes_the_chain_back_in_one_append(tmp_path: Path) -> None:
    """Newest first, one event."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline, before = await compacted(store, times=3)
        first, second, third = await made(store)
        assert await timeline.undo_compaction(second, cascade=True, now=AT) == [third, second]
        assert shown(timeline)[: len(before[1])] == before[1]
        assert await timeline.undo_compaction(first, cascade=True, now=AT) == [first]
        reverted = await payloads_of(store, "compaction.reverted")
        assert [r.versions for r in reverted] == [(third, second), (first,)]
        assert (await timeline.verify()).ok


def test_a_summary_is_covered_by_whatever_supersedes_one_that_covers_it() -> None:
    """The chain is followed link by link; what supersedes nothing of it stays."""
    standing = {
        10: Covers(ranges=((2, 8),)),
        20: Covers(ranges=((2, 18),), summaries=(10,)),
        30: Covers(ranges=((2, 28),), summaries=(20,)),
        40: Covers(ranges=((35, 38),)),
    }
    assert versions_to_revert("c", standing, None, cascade=False) == [40]
    assert versions_to_revert("c", standing, 10, cascade=True) == [30, 20, 10]
    assert versions_to_revert("c", standing, 30, cascade=False) == [30]
    with pytest.raises(CompactionCovered) as covered:
        versions_to_revert("c", standing, 20, cascade=False)
    assert covered.value.by == 30


# Nothing to take back


async def test_without_a_compaction_there_is_nothing_to_take_back() -> None:
    """The reason says so."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    with pytest.raises(UndoUnavailable, match="none is in force") as gone:
        await timeline.undo_compaction(now=AT)
    assert gone.value.conversation == "c"


async def test_a_version_that_is_no_standing_compaction_is_refused() -> None:
    """The reason lists those that are; one that was taken back is none."""
    store = MemoryStore()
    timeline, _ = await compacted(store, times=2)
    first, second = await made(store)
    with pytest.raises(UndoUnavailable, match=f"none in force is at version 3; .* at {first}, {second}"):
        await timeline.undo_compaction(3, now=AT)
    await timeline.undo_compaction(now=AT)
    with pytest.raises(UndoUnavailable, match=f"at version {second}; .* at {first}"):
        await timeline.undo_compaction(second, now=AT)


async def test_a_compaction_whose_originals_are_gone_cannot_be_taken_back() -> None:
    """A recording that began after its client had compacted holds no more than the summary."""

    class Trimmed(MemoryStore):
        """A store whose history before version 5 was deleted."""

        def read(self, conversation: str, *, after: int = 0, **options: Any) -> Any:
            """Leave out what is gone."""
            return super().read(conversation, after=max(after, 4), **options)

    timeline, _ = await compacted(Trimmed())
    with pytest.raises(UndoUnavailable, match=r"its originals are gone: .* holds the versions 5 to 10 only"):
        await timeline.undo_compaction(now=AT)
    assert timeline.window.summary is not None


# On hold


async def test_after_an_undo_nothing_is_folded_by_itself() -> None:
    """Renders report what is over the budget, and how much, instead."""
    store = MemoryStore()
    timeline, _ = await compacted(store)
    await timeline.undo_compaction(now=AT)
    context = await timeline.render(now=after(10_000))
    [held] = context.decisions
    assert (held.kind, held.reason) == ("held", "undone")
    assert held.facts == {"total": 3_710, "trigger": 3_600, "limit": 4_000}
    assert context.overflow
    assert len(await made(store)) == 1


async def test_on_hold_even_a_context_above_the_limit_is_only_reported() -> None:
    """The caller that took the summary back wants to see what is there."""
    store = MemoryStore()
    timeline, _ = await compacted(store)
    await timeline.undo_compaction(now=AT)
    await timeline.append(answer(2_000))
    context = await timeline.render(now=AT)
    assert context.account.available < 0
    assert [taken.kind for taken in context.decisions] == ["held"]


async def test_below_the_trigger_a_hold_says_nothing() -> None:
    """There is nothing to hold back."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(600), *turn(600), *turn(400))
    await timeline.compact(now=AT)
    await timeline.undo_compaction(now=AT)
    assert (await timeline.render(now=AT)).decisions == ()


async def test_a_forced_compaction_ends_the_hold() -> None:
    """From then on renders compact as before."""
    store = MemoryStore()
    timeline, _ = await compacted(store)
    await timeline.undo_compaction(now=AT)
    await timeline.compact(now=AT)
    assert timeline.window.hold is None
    await timeline.append(*turn(1_500), *turn(1_500))
    assert [t.kind for t in (await timeline.render(now=AT)).decisions] == ["compacted"]


async def test_a_handle_with_a_policy_of_its_own_is_held_too() -> None:
    """The conversation's policy is what it was; changing it for everybody lifts the hold."""
    store = MemoryStore()
    timeline, _ = await compacted(store)
    await timeline.undo_compaction(now=AT)
    policy = small_policy(max_tokens=4_000, keep_recent_tokens=500, hiding=None)
    other = await opened(store, policy=policy, summarizer=Scribe())
    assert [t.kind for t in (await other.render(now=AT)).decisions] == ["held"]
    assert [t.kind for t in (await timeline.render(now=AT)).decisions] == ["held"]
    await other.use_policy(policy)
    assert [t.kind for t in (await other.render(now=AT)).decisions] == ["compacted"]


async def test_a_refused_compaction_leaves_the_hold() -> None:
    """It changed nothing."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(600), *turn(600), *turn(400))
    await timeline.compact(now=AT)
    await timeline.undo_compaction(now=AT)
    for _ in range(2):
        await timeline.compact(now=AT)
        with pytest.raises(CompactionRefused):
            await timeline.compact(now=AT)
        await timeline.undo_compaction(now=AT)
    assert timeline.window.hold == POLICY.hash()


async def test_hiding_goes_on_during_a_hold() -> None:
    """It is no summary, and can be revealed block by block."""
    policy = POLICY.model_copy(update={"hiding": Hiding(intact=1, old=90)})
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await timeline.append(*turn(600), prompt(), *exchange("a", 900), answer(response_id="x"), *turn(400))
    await timeline.compact(now=AT)
    await timeline.undo_compaction(now=AT)
    await timeline.render(now=AT)
    context = await timeline.render(now=after(1_000))
    assert [taken.kind for taken in context.decisions] == ["hidden"]


# Several writers


async def test_another_writer_follows_an_undo() -> None:
    """It sees the same window, though it went through the compaction."""
    store = MemoryStore()
    timeline, _ = await compacted(store)
    other = await opened(store, policy=POLICY)
    await timeline.undo_compaction(now=AT)
    await timeline.append(*turn(10))
    await other.append(*turn(20))
    await timeline.append(*turn(30))
    await other.render(now=AT, record=False)
    assert other.window == timeline.window
    assert (await other.verify()).ok


async def test_an_undo_follows_another_writer(tmp_path: Path) -> None:
    """What was appended meanwhile is in what it shows."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline, [before] = await compacted(store)
        other = await opened(store, policy=POLICY)
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(other.append, prompt(3, path=f"ar:x.{number}"))
            group.start_soon(timeline.undo_compaction)
        await timeline.append(answer(1))
        assert {path for path, _ in shown(timeline)} >= {f"ar:x.{number}" for number in range(8)}
        assert shown(timeline)[: len(before)] == before
        assert (await timeline.verify()).ok


async def test_two_undos_at_once_take_one_back_once() -> None:
    """The second one finds no compaction in force."""
    store = MemoryStore()
    first, _ = await compacted(store)
    second = await opened(store, policy=POLICY)
    outcomes: list[str] = []

    async def undo(timeline: Timeline) -> None:
        try:
            await timeline.undo_compaction(now=AT)
            outcomes.append("undone")
        except UndoUnavailable:
            outcomes.append("unavailable")

    async with anyio.create_task_group() as group:
        for timeline in (first, second):
            group.start_soon(undo, timeline)
    assert sorted(outcomes) == ["unavailable", "undone"]
    assert len(await payloads_of(store, "compaction.reverted")) == 1


async def test_a_recorded_clients_compaction_can_be_taken_back() -> None:
    """Its originals are in the log like any other's."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(*turn(100), *turn(100))
    completed = CompactionCompleted(
        block=RangeSummary(turn_id="turn_2", path="su:turn_2.conv.range.summary", text="x", at=AT),
        tokens=1,
        counter="chars4",
        covers=Covers(ranges=((2, 3),)),
        source="imported",
        reason="imported",
        written_by=WrittenBy(summarizer="client"),
    )
    await timeline.decide([completed], at=AT, ids=[event_id(AT)])
    assert len(timeline.window.items) == 3
    await timeline.undo_compaction(now=AT)
    assert {state for _, state in shown(timeline)} == {"visible"}
    assert len(timeline.window.items) == 4


async def test_the_previews_of_a_compaction_go_with_it() -> None:
    """They were made so that it would fit; what was kept behind them is shown whole again."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(1_500), prompt(), *exchange("a", 3_000))
    before = shown(timeline)
    context = await timeline.render(now=AT)
    assert [taken.kind for taken in context.decisions] == ["compacted", "previewed"]
    await timeline.undo_compaction(now=AT)
    assert shown(timeline) == before
    assert (await timeline.verify()).ok
