"""The times of events: each is read at its own append, and none of a handle's is before the newest that it has seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.scenes import AT, FULL, Interrupted, after, log_of, opened, prompt, small_policy, turn, words
from timeline import Timeline, open_store, policies
from timeline.blocks import Note, UserPrompt
from timeline.errors import BudgetImpossible
from timeline.events import event_id
from timeline.events.other_payloads import CompactionStarted
from timeline.log.protocol import Draft
from timeline.ports import Hooks, Summary
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from timeline.events import Event
    from timeline.ports import EventStore, SummaryRequest

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)


@dataclass
class Slow:
    """A summarizer that takes 0.3 seconds, and lets an application do something meanwhile."""

    meanwhile: Callable[[], Awaitable[object]]
    name: str = "slow"

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer late."""
        del request
        await anyio.sleep(0.15)
        await self.meanwhile()
        await anyio.sleep(0.16)
        return Summary(text="The cards are written.", summarizer=self.name)


@dataclass
class Settable:
    """A clock that an application sets, also back."""

    at: datetime = AT

    def now(self) -> datetime:
        """Return what it was set to."""
        return self.at


def times_of(events: Sequence[Event]) -> list[datetime]:
    """Return the times of events, by version."""
    return [event.at for event in events]


def rises(events: Sequence[Event]) -> bool:
    """Return whether no event is before the one in front of it."""
    return all(before <= later for before, later in pairwise(times_of(events)))


async def talked(store: EventStore, summarizer: Slow | None = None) -> Timeline:
    """Return a conversation on the computer's clock, long enough to compact."""
    policy = policies.cut_point(max_tokens=4_000)
    timeline = await Timeline.open(store, "c", policy=policy, summarizer=summarizer)
    for number in range(4):
        await timeline.append(UserPrompt(text=f"Write card {number}. " * 150))
    return timeline


async def test_a_block_that_another_task_appends_during_a_summary_is_not_later_than_the_compaction(
    tmp_path: Path,
) -> None:
    """The events that end the compaction have higher versions, so they have no earlier times."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await talked(store, Slow(lambda: timeline.append(Note(text="meanwhile"))))
        await timeline.compact()
        events = await log_of(store)
        verified = await timeline.verify()
    types = [event.type for event in events]
    assert (
        types.index("compaction.started")
        < len(types) - 1 - types[::-1].index("block.appended")
        < types.index("compaction.completed")
    )
    assert rises(events)
    assert verified.ok


async def test_a_compaction_ends_as_much_later_than_it_begins_as_its_summary_takes() -> None:
    """Its summary block has the time of its end, as the event has."""

    async def nothing() -> None: ...

    async with open_store("memory://") as store:
        timeline = await talked(store, Slow(nothing))
        await timeline.compact()
        by_type = {event.type: event for event in await log_of(store)}
    done = by_type["compaction.completed"]
    assert done.at - by_type["compaction.started"].at >= timedelta(seconds=0.3)
    assert timeline.window.items[0].block.at == done.at
    assert timeline.compaction_state().last_at == done.at


async def test_one_render_plans_by_one_time_and_gives_each_event_its_own() -> None:
    """The events of a render that compacts are as far apart as they were appended."""
    clock = Settable()

    async def later() -> None:
        clock.at += timedelta(seconds=7)

    store = MemoryStore()
    summarizer = Interrupted(meanwhile=[later])
    timeline = await Timeline.open(store, "c", policy=POLICY, summarizer=summarizer, clock=clock)
    await timeline.append(*FULL)
    context = await timeline.render()
    assert [taken.kind for taken in context.decisions] == ["compacted"]
    at = {event.type: event.at for event in await log_of(store)}
    assert (at["compaction.started"], at["compaction.completed"], at["context.rendered"]) == (AT, after(7), after(7))


async def test_a_clock_that_steps_back_takes_no_event_back() -> None:
    """The time of the newest event holds until the clock is past it."""
    clock = Settable()
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY, clock=clock)
    for seconds in (10, 4, 12):
        clock.at = after(seconds)
        await timeline.append(prompt())
    assert times_of(await log_of(store)) == [AT, after(10), after(10), after(12)]


async def test_a_handle_that_opens_a_conversation_knows_the_time_of_its_newest_event(tmp_path: Path) -> None:
    """Also where the newest event is the one that the snapshot was taken at."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await Timeline.open(store, "c", policy=POLICY, now=AT)
        await timeline.append(*FULL, now=AT)
        await timeline.compact(now=after(100))
        await timeline.undo_compaction(now=after(200))
        late = await Timeline.open(store, "c", policy=POLICY, clock=Settable(after(50)))
        await late.append(prompt())
        assert times_of(await log_of(store))[-2:] == [after(200)] * 2


async def test_the_events_of_another_handle_hold_a_handle_that_has_seen_them() -> None:
    """Of two writers whose clocks differ, the one behind goes on from the other's time."""
    store = MemoryStore()
    ahead = await opened(store, clock=Settable(after(60)), now=None)
    behind = await opened(store, clock=Settable(AT))
    await ahead.append(prompt())
    await behind.append(prompt())  # an append that comes second follows the log first
    await behind.catch_up()
    await behind.hide((await behind.append(prompt(400)))[0].path)
    assert times_of(await log_of(store)) == [after(60)] * 5


async def test_times_that_the_application_gives_stay_as_given() -> None:
    """An argument ``now``, a block's own time and an imported event's, before or after the newest one."""
    store = MemoryStore()
    timeline = await opened(store, clock=Settable(after(1_000)))
    await timeline.append(prompt(), now=after(-60))
    await timeline.append(prompt(at=after(-3_600)), now=after(5))
    await timeline.append(prompt(at=after(90_000)))
    await timeline.extend([Draft(event_id(AT), after(-7), prompt(), 5)])
    given = [AT, after(-60), after(-3_600), after(90_000), after(-7)]
    assert times_of(await log_of(store)) == given
    assert [item.block.at for item in timeline.window.items] == given[1:]


async def test_the_event_behind_one_with_a_given_time_is_not_before_it() -> None:
    """The newest event is the one with the highest version, in one append too."""
    store = MemoryStore()
    timeline = await opened(store, clock=Settable(AT))
    await timeline.append(prompt(at=after(30)), prompt(), prompt(at=after(-30)), prompt())
    assert times_of(await log_of(store)) == [AT, after(30), after(30), after(-30), AT]


async def test_a_render_with_a_given_time_gives_it_to_all_of_its_events() -> None:
    """A replay takes no time, however long its summaries take."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, clock=Settable(after(1_000)))
    await timeline.append(*FULL, now=AT)
    await timeline.render(now=after(5))
    events = await log_of(store)
    assert [event.at for event in events if event.type != "block.appended"] == [AT, *[after(5)] * 3]
    assert timeline.window.items[0].block.at == after(5)


async def test_a_fork_goes_on_from_the_time_of_the_version_that_it_shares() -> None:
    """Its first event is not before its past, and not held by what came later in its parent."""
    clock = Settable()
    store = MemoryStore()
    timeline = await opened(store, clock=clock)
    await timeline.append(prompt(), now=after(50))
    await timeline.append(prompt(), now=after(500))
    branch = await timeline.fork(at=2)
    await branch.append(prompt())
    assert times_of(await log_of(store, branch.id))[-2:] == [after(50), after(50)]


async def test_every_kind_of_event_gets_the_time_of_its_append() -> None:
    """Decisions by hand, stages, model calls, an undo, a policy, hooks, an overflow."""
    clock = Settable()
    store = MemoryStore()

    async def broken(_: object) -> None:
        raise RuntimeError

    policy = POLICY.model_copy(update={"boundary": True})
    hooks = Hooks(on_after_compaction=broken)
    timeline = await Timeline.open(store, "c", policy=policy, clock=clock, hooks=hooks)

    async def step(append: Callable[[], Awaitable[object]]) -> None:
        clock.at += timedelta(seconds=1)
        before = timeline.version
        await append()
        new = [event for event in await log_of(store) if event.version > before]
        assert new
        assert {event.at for event in new} == {clock.at}, [event.type for event in new]

    [pinned] = await timeline.append(prompt(300))
    await timeline.append(*FULL)
    path = pinned.path
    await step(lambda: timeline.record_model_call(model="m"))
    await step(lambda: timeline.hide(path))
    await step(lambda: timeline.reveal(path))
    await step(lambda: timeline.pin(path))
    await step(lambda: timeline.unpin(path))
    await step(lambda: timeline.enter_stage("plan"))
    await step(lambda: timeline.append(*turn(5)))
    await step(lambda: timeline.approve_stage(decision="So be it"))
    await step(lambda: timeline.rewind_stage("plan"))
    await step(timeline.compact)
    await step(timeline.undo_compaction)
    await step(lambda: timeline.use_policy(POLICY))
    await step(lambda: timeline.render(system="You help."))
    await step(lambda: timeline.inject("By the way", keep="pair"))
    await step(lambda: timeline.append_messages([{"role": "user", "content": "On."}]))
    await step(lambda: timeline.set_retention("window"))
    clock.at -= timedelta(hours=1)
    await timeline.set_legal_hold(on=True)
    *_, newest, hold = times_of(await log_of(store))
    assert hold == newest
    clock.at += timedelta(hours=1)

    async def overflow() -> None:
        with pytest.raises(BudgetImpossible):
            await timeline.render(system=words(5_000))

    await step(overflow)


async def test_a_lease_runs_from_the_time_of_its_own_event() -> None:
    """A render that began long before it may compact does not take a lease that is half over."""
    clock = Settable()

    async def slow(_: object) -> None:
        clock.at += timedelta(seconds=90)

    store = MemoryStore()
    step_one = await opened(store, policy=POLICY, clock=clock, hooks=Hooks(on_after_compaction=slow))
    await step_one.append(*FULL)
    await step_one.compact()
    await step_one.append(*FULL)
    await step_one.compact()
    starts = [event for event in await log_of(store) if isinstance(event.payload, CompactionStarted)]
    assert [event.at for event in starts] == [AT, after(90)]
    assert all(
        event.payload.expires_at - event.at == timedelta(seconds=120)
        for event in starts
        if isinstance(event.payload, CompactionStarted)
    )


async def test_behind_a_block_of_the_end_of_time_a_conversation_is_compacted() -> None:
    """The last moment that there is was given to it: no lease can end later, and the events behind it have it, too."""
    store = MemoryStore()
    end = datetime.max.replace(tzinfo=UTC)
    timeline = await opened(store, policy=POLICY, clock=Settable(), now=None)
    await timeline.append(*FULL, Note(text="for ever", at=end))
    context = await timeline.render()
    assert [taken.kind for taken in context.decisions] == ["compacted"]
    await timeline.undo_compaction()
    await timeline.compact()
    assert timeline.window.lease is None
    [*_, newest] = await log_of(store)
    assert newest.at == end
    assert (await timeline.verify()).ok


async def test_a_dead_lease_of_a_clock_that_is_ahead_is_taken_over_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start is not before the end of the lease that it replaces, or it would be void."""
    monkeypatch.setattr("timeline.engine.lease.LEASE", timedelta(milliseconds=50))
    store = MemoryStore()
    timeline = await talked(store)
    month = datetime.now(UTC) + timedelta(days=30)
    await timeline.decide([CompactionStarted(expires_at=month)], at=month - timedelta(minutes=2), ids=[event_id(AT)])
    with anyio.fail_after(10):
        await timeline.compact()
    _, taken_over = [event for event in await log_of(store) if event.type == "compaction.started"]
    assert taken_over.at == month
    assert timeline.window.lease is None
    assert timeline.window.compaction is not None


async def test_the_events_of_two_handles_that_append_at_once_are_in_order(tmp_path: Path) -> None:
    """Many tasks of two stores, one clock an hour ahead: no version is before the one in front of it."""
    path = str(tmp_path / "a.db")

    class Ahead:
        def now(self) -> datetime:
            return datetime.now(UTC) + timedelta(hours=1)

    async with open_store(path) as one, open_store(path) as two:
        handles = [await Timeline.open(one, "c"), await Timeline.open(two, "c", clock=Ahead())]

        async def talk(timeline: Timeline) -> None:
            for _ in range(5):
                await timeline.append(prompt())
                await timeline.record_model_call(model="m")

        async with anyio.create_task_group() as group:
            for handle in handles * 4:
                group.start_soon(talk, handle)
        events = await log_of(one)
    assert len(events) == 1 + 2 * 4 * 5 * 2
    assert rises(events)
