"""Snapshots of the past, compared with the log in depth and made anew; undos that are folded in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.growth import compact, cycles, uncompacted, with_undos
from tests.bench.logs import POLICY, START, extend
from tests.invariants.watched import check_near
from tests.log.counted import Counted
from timeline.audit.deep import repair, verify_deep
from timeline.blocks import RangeSummary
from timeline.events import CompactionCompleted, SummaryParts, WrittenBy, event_id
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.ports import EventStore


async def test_a_snapshot_that_is_not_the_logs_is_found_and_made_anew() -> None:
    """Its checksum matches: only folding the log finds it out."""
    store = MemoryStore()
    await cycles(store, "c", 3_000)
    first, *_, last = versions = await store.waypoints("c")
    right = await store.load_waypoint("c", last)
    assert right is not None
    wrong = right.model_copy(update={"state": {**right.state, "rounds": 99}})
    await store.replace_waypoints("c", [wrong, right.model_copy(update={"version": 99_999})])
    report = await verify_deep(store)
    assert [(each.what, each.derivable) for each in report.differences] == [("waypoints", True)] * 2
    assert f"version {last}" in report.differences[0].problem
    await repair(store, dry_run=False)
    assert await store.waypoints("c") == versions
    assert await store.load_waypoint("c", last) == right
    assert (await verify_deep(store)).ok
    assert first < last


async def test_a_repair_makes_the_snapshots_that_a_log_of_an_earlier_release_lacks() -> None:
    """Nothing is wrong without them; with them the past is near again."""
    store = MemoryStore()
    await cycles(store, "c", 6_000)
    await store.replace_waypoints("c", [], dropped=await store.waypoints("c"))
    assert (await verify_deep(store)).ok
    planned = await repair(store)
    assert [each.what for each in planned.mended] == ["waypoints"]
    assert await store.waypoints("c") == []
    await repair(store, dry_run=False)
    assert len(await store.waypoints("c")) >= 2
    assert (await repair(store)).mended == ()
    await check_near(store, "c")


async def _apart(store: EventStore) -> Timeline:
    """Make a conversation with two compactions, of which neither covers the other's summary."""
    timeline = await Timeline.open(store, "c", policy=POLICY, now=START)
    await extend(timeline, 200)
    for number, (start, end) in enumerate(((0, 40), (2, 60))):
        summary = RangeSummary(path=f"su:turn_1.part.{number}", turn_id="turn_1", text="Said before.", at=START)
        completed = CompactionCompleted(
            block=summary,
            tokens=5,
            counter="chars4",
            covers=timeline.window.covers_between(start, end),
            parts=SummaryParts(history=summary.text),
            before_tokens=9_000,
            after_tokens=5,
            round=number + 1,
            written_by=WrittenBy(summarizer="test"),
        )
        await timeline.decide([completed], at=START, ids=[event_id(START)])
        await extend(timeline, 40, first=200 + 40 * number)
        await timeline.render(system="S", now=START)
    return timeline


async def test_undos_that_interleave_are_folded_as_they_were() -> None:
    """The older of two compactions is undone first, then the newer one: contexts, folds and snapshots agree."""
    store = MemoryStore()
    timeline = await _apart(store)
    first, second = [e.version async for e in store.read("c", types=["compaction.completed"])]
    for version in (first, second):
        assert await timeline.undo_compaction(version, now=START) == [version]
        await timeline.render(system="S", now=START)
        await extend(timeline, 40, first=timeline.version)
    report = await timeline.verify()
    assert (report.ok, report.problems, report.renders) == (True, (), 4)
    await check_near(store, "c")
    await compact(timeline, "su:again", keep=10)
    await check_near(store, "c")


async def test_verifying_reads_each_event_once_or_twice_however_often_compactions_were_undone() -> None:
    """Not once again for each undo, and not all of them for each recorded context."""
    for made in (uncompacted, with_undos):
        store = Counted()
        timeline = await made(4_000, store=store)
        store.events = 0
        report = await timeline.verify()
        assert report.ok
        assert timeline.version <= store.events <= 2 * timeline.version
