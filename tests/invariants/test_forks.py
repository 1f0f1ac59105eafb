from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.checks import check_states, check_window
from tests.invariants.places import new_store
from tests.invariants.playing import AT, read_log, run, search
from tests.invariants.strategies import LOGS, LONG_RUNS, POLICIES, Step, small
from tests.invariants.watched import Watched
from timeline.errors import BlockNotFound, HistoryUnavailable
from timeline.events import appended_block
from timeline.projection.context import RenderedContext
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tests.invariants.reference import LogLine
    from timeline.policy.model import Policy
    from timeline.ports import EventStore

Seen = dict[int, tuple["datetime", RenderedContext]]


async def _watched(policy: Policy) -> Watched:
    store = await new_store()
    return Watched(store, await Timeline.open(store, "c", policy=policy, now=AT))


async def _live(watched: Watched, steps: Sequence[Step]) -> Seen:
    """Play steps with a render after each; return the contexts by their versions, with their moments."""
    seen: Seen = {}
    for step in steps:
        await watched.play(step)
        outcome = await watched.outcome()
        if isinstance(outcome, RenderedContext):
            seen.setdefault(outcome.version, (watched.now, outcome))
    return seen


def paths_of(log: Sequence[LogLine]) -> set[str]:
    """Return every path that a log gave out."""
    return {block.path for line in log if (block := appended_block(line.payload)) is not None}


@search(20)
@given(LONG_RUNS, POLICIES, st.data())
def test_a_past_version_is_what_the_log_up_to_there_says_and_renders_what_was_rendered_then(
    steps: list[Step], policy: Policy, data: st.DataObject
) -> None:
    """Window, paths and bytes of a moment do not depend on what came later: undo, compactions, hides."""

    async def story() -> None:
        watched = await _watched(policy)
        seen = await _live(watched, steps)
        log = await read_log(watched.store, "c")
        version = data.draw(st.integers(1, len(log)))
        view = await watched.timeline.at(version)
        check_window(view.window, log[:version])
        later = paths_of(log) - paths_of(log[:version])
        for path in sorted(later)[:3]:
            with pytest.raises(BlockNotFound):
                await view.read(path)
        for then, context in list(seen.values())[-3:]:
            again = await (await watched.timeline.at(context.version)).render(now=then)
            assert again.neutral.canonical() == context.neutral.canonical()
            assert again.fingerprint == context.fingerprint
        assert await read_log(watched.store, "c") == log, "looking back wrote something"
        with pytest.raises(HistoryUnavailable):
            await watched.timeline.at(len(log) + 1)

    run(story())


async def check_fork(store: EventStore, fork: Watched, parent: str, base: int) -> None:
    """A fork shares its parent's past up to its base, and nothing that came later; all of it holds by itself."""
    mine, theirs = await read_log(store, fork.timeline.id), await read_log(store, parent)
    assert mine[:base] == theirs[:base]
    assert [line.version for line in mine] == list(range(1, len(mine) + 1))
    check_states([event async for event in store.read(fork.timeline.id)], mine, fork.timeline.id)
    for path in sorted(paths_of(theirs[base:]) - paths_of(mine))[:5]:
        with pytest.raises(BlockNotFound):
            await fork.timeline.read(path)
    for path in sorted(paths_of(mine))[:20]:
        assert (await fork.timeline.read(path)).path == path
    await fork.check_order()
    await fork.check_everything()


@search(20)
@given(LOGS, LONG_RUNS, LONG_RUNS, POLICIES, st.data())
def test_a_fork_and_its_parent_go_on_without_each_other(
    before: list[Step], here: list[Step], there: list[Step], policy: Policy, data: st.DataObject
) -> None:
    """Forked at any version, even behind compactions and undone ones, both render, compact and undo by themselves."""

    async def story() -> None:
        parent = await _watched(policy)
        await _live(parent, before)
        await parent.timeline._log.catch_up()
        base = data.draw(st.integers(1, parent.timeline.version))
        fork = Watched(parent.store, await parent.timeline.fork(at=base, now=parent.now))
        fork.now, fork.forced = parent.now, parent.forced
        for mine, theirs in zip(here[:6], there[:6], strict=False):
            await parent.play(mine)
            await parent.outcome()
            await fork.play(theirs)
            await fork.outcome()
        await check_fork(parent.store, fork, "c", base)
        await parent.check_everything()

    run(story())


@search(20)
@given(LOGS, LONG_RUNS, st.data())
def test_a_fork_of_a_fork_reads_through_to_the_first(
    before: list[Step], there: list[Step], data: st.DataObject
) -> None:
    """Its past ends where each of its ancestors was left, whatever they did since."""

    async def story() -> None:
        first = await _watched(small(1_000))
        await _live(first, before)
        ancestors = [first]
        bases = []
        for steps in (there[:4], there[4:8]):
            line = ancestors[-1].timeline
            bases.append(data.draw(st.integers(1, line.version)))
            fork = Watched(first.store, await line.fork(at=bases[-1], now=first.now))
            fork.now, fork.forced = first.now, True
            ancestors.append(fork)
            for each in ancestors:
                await each.play(*steps)
                await each.outcome()
        for parent, fork, base in zip(ancestors, ancestors[1:], bases, strict=False):
            await check_fork(first.store, fork, parent.timeline.id, base)

    run(story())


@search(20)
@given(LONG_RUNS, POLICIES)
def test_a_fork_of_a_recorded_context_shows_the_same_bytes(steps: list[Step], policy: Policy) -> None:
    """Forked where a context was projected from, the first render of the fork is that context."""

    async def story() -> None:
        watched = await _watched(policy)
        for then, context in list((await _live(watched, steps)).values())[-3:]:
            fork = await watched.timeline.fork(at=context.version, now=then)
            again = await fork.render(now=then)
            assert again.neutral.canonical() == context.neutral.canonical()

    run(story())
