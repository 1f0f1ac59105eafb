"""Scavenging against the same store without it, over generated conversations with undos and forks (retention, R9)."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.playing import AT, play, run, search
from tests.invariants.strategies import LONG_RUNS, ORDERLY_LOGS, GoBack, Step, Undo, small
from timeline.errors import BudgetError, HistoryUnavailable, UndoUnavailable
from timeline.events import appended_block
from timeline.ports import StoppedClock
from timeline.retention import rehearse, scavenge
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from timeline.policy.model import Policy

T = TypeVar("T")
POLICIES = st.sampled_from([small(1_000), small(2_000), small(4_000)])
MUCH_LATER = timedelta(days=1)


def _without_turning_back(steps: Sequence[Step]) -> list[Step]:
    """Return the steps that mean the same where older blocks are gone: others choose among all that there are."""
    return [step for step in steps if not isinstance(step, Undo | GoBack)]


async def _live(timeline: Timeline, steps: Sequence[Step], now: datetime) -> datetime:
    """Play steps, with a recorded render after each, as an agent's loop does."""
    for step in steps:
        now = await play(timeline, timeline._store, [step], now)
        try:
            await timeline.render(now=now)
        except BudgetError:
            continue
    return now


async def _shown(timeline: Timeline, now: datetime) -> bytes | str:
    """Return the bytes of a render that is not recorded, or the error that it ends in."""
    try:
        return (await timeline.render(now=now, record=False)).neutral.canonical().encode()
    except BudgetError as error:
        return str(error)


async def _pair(
    store: MemoryStore, control: MemoryStore, conversation: str, policy: Policy
) -> tuple[Timeline, Timeline]:
    one = await Timeline.open(store, conversation, policy=policy, create=False)
    return one, await Timeline.open(control, conversation, policy=policy, create=False)


async def _or_gone(call: Awaitable[T], version: int, last: int) -> T | None:
    """Return what a call returns; None where it says that a version is gone, and from which one on the log is there."""
    try:
        return await call
    except HistoryUnavailable as gone:
        return None if gone.scavenged and version < gone.first_version <= last else pytest.fail(str(gone))


async def _check_past(scavenged: Timeline, control: Timeline) -> None:
    """Every version and path of the past is what it was, or is said to be gone."""
    last = control.version
    for version in range(1, last + 1):
        view = await _or_gone(scavenged.at(version), version, last)
        assert view is None or view.window == (await control.at(version)).window
    async for event in control._store.read(control.id):
        block = appended_block(event.payload)
        if block is not None:
            found = await _or_gone(scavenged.read(block.path), event.version, last)
            assert found is None or found == await control.read(block.path)


async def _check(scavenged: Timeline, control: Timeline, now: datetime) -> None:
    assert scavenged.window == control.window
    assert await _shown(scavenged, now) == await _shown(control, now)
    mine, theirs = await scavenged.verify(), await control.verify()
    assert mine.ok == theirs.ok, mine.problems
    assert mine.renders == theirs.renders
    assert mine.unverifiable.get("retention", 0) <= mine.renders


async def _undone(timeline: Timeline, now: datetime) -> list[int] | str:
    """Return which compactions an undo took back, or why it took none back."""
    try:
        return await timeline.undo_compaction(now=now)
    except UndoUnavailable as refusal:
        return str(refusal)
    except HistoryUnavailable as gone:
        return str(gone) if gone.scavenged else pytest.fail(str(gone))


@search(25)
@given(LONG_RUNS, ORDERLY_LOGS, POLICIES, st.floats(0, 1), st.integers(1, 7))
def test_windows_renders_and_what_is_left_of_the_past_are_those_of_a_store_that_was_not_scavenged(
    steps: list[Step], later: list[Step], policy: Policy, where: float, most: int
) -> None:
    """Fold, next renders, past versions and paths agree before and after; each render since verifies; it goes on."""

    async def story() -> None:
        store = MemoryStore()
        timeline = await Timeline.open(store, "c", policy=policy, now=AT)
        now = await _live(timeline, steps, AT)
        fork = await timeline.fork(at=max(1, round(where * timeline.version)), conversation="f", now=now)
        await _live(fork, steps[:3], now)
        now = await _live(timeline, steps[-3:], now)
        await store.set_retention("window")
        control, clock = deepcopy(store), StoppedClock(now + MUCH_LATER)
        rehearsed = await rehearse(store, clock=clock)
        done = await scavenge(store, clock=clock)
        assert done == rehearsed
        for conversation in ("c", "f"):
            one, other = await _pair(store, control, conversation, policy)
            await _check(one, other, now)
            await _check_past(one, other)
        for conversation in ("c", "f"):
            one, other = await _pair(store, control, conversation, policy)
            goes_on = _without_turning_back(later)
            await _live(one, goes_on, now)
            await _live(other, goes_on, now)
            report = await one.verify()
            assert report.ok == (await other.verify()).ok, report.problems
            assert one.window == other.window
        while (await store.remove("c", most=most)).events:
            one, _ = await _pair(store, control, "c", policy)
            report = await one.verify()
            assert report.checksum == report.order == report.coverage == 0, report.problems
        assert (await scavenge(store, clock=clock)).done

    run(story())


@search(20)
@given(LONG_RUNS, POLICIES)
def test_an_undo_after_a_scavenge_is_that_of_the_whole_log_or_says_that_its_originals_are_gone(
    steps: list[Step], policy: Policy
) -> None:
    """Compactions of what is still there are taken back as before, and nothing is half undone."""

    async def story() -> None:
        store = MemoryStore()
        now = await _live(await Timeline.open(store, "c", policy=policy, now=AT), steps, AT)
        await store.set_retention("window")
        control = deepcopy(store)
        await scavenge(store, clock=StoppedClock(now + MUCH_LATER))
        for timeline in await _pair(store, control, "c", policy):
            await _live(timeline, _without_turning_back(steps), now)
        one, other = await _pair(store, control, "c", policy)
        for _ in range(3):
            before = one.window
            outcome = await _undone(one, now)
            if not isinstance(outcome, list):
                assert one.window == before
                break
            assert await _undone(other, now) == outcome
            assert [i.block.path for i in one.window.items] == [i.block.path for i in other.window.items]
        assert (await one.verify()).order == 0

    run(story())
