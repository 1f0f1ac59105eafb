"""Calibrated counts: whatever is appended, reported, hidden, covered or taken back, each window counts alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.checks import check_window
from tests.invariants.places import new_store
from tests.invariants.playing import AT, read_log, run, search
from tests.invariants.strategies import CALLS, HIDINGS, LOGS, Step, small
from tests.invariants.watched import Watched, check_same_fold
from timeline.log.history import fold_history
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.policy.model import Policy

CALIBRATED: Final = st.builds(
    small,
    st.sampled_from([2_000, 6_000]),
    counts=st.just("calibrated"),
    margin=st.sampled_from([0.0, 0.3, 0.66]),
    hiding=st.none() | HIDINGS,
)
"""Policies that count as the provider does, from different ratios on."""


@search(30)
@given(LOGS, CALIBRATED, st.lists(st.none() | CALLS, min_size=1, max_size=5))
def test_snapshot_fork_undo_and_dry_run_count_as_the_whole_log_does(
    steps: list[Step], policy: Policy, calls: list[Step | None]
) -> None:
    """Contexts within the limit, the same ones from each window, and nothing appended by rendering twice."""

    async def story() -> None:
        store = await new_store()
        watched = Watched(store, await Timeline.open(store, "c", policy=policy, now=AT))
        for number, step in enumerate(steps):
            await watched.play(step)
            await watched.render()
            if (call := calls[number % len(calls)]) is not None:
                await watched.play(call)
        log = await read_log(store, "c")
        check_window(replace(watched.timeline.window, items=watched.timeline._log.fold.stored), log)
        fork = await watched.timeline.fork(now=watched.now)
        assert fork.window.reported == watched.timeline.window.reported
        check_same_fold(fork._log.fold, await fold_history(store, fork.id))
        report = await watched.timeline.verify()
        assert report.ok, report.problems

    run(story())


@search(30)
@given(LOGS, st.lists(CALLS, min_size=1, max_size=5))
def test_a_ratio_that_came_after_the_blocks_is_as_if_it_had_been_known_before(
    steps: list[Step], calls: list[Step]
) -> None:
    """Figures depend on the ratio in force, not on when it was measured or which figures were shown before."""

    async def story() -> None:
        store, policy = await new_store(), small(6_000, counts="calibrated", margin=0.3)
        watched = Watched(store, await Timeline.open(store, "c", policy=policy, now=AT))
        counter, start = watched.timeline.counter, policy.first_ratio
        for number, step in enumerate(steps):
            await watched.play(step)
            await watched.outcome()
            await watched.play(calls[number % len(calls)])
            live = watched.timeline._log.fold
            fresh = live.copy()
            fresh.count_by(counter, start)
            assert [i.tokens for i in live.window.items] == [i.tokens for i in fresh.window.items]
            assert [i.shown_tokens for i in live.window.items] == [i.shown_tokens for i in fresh.window.items]

    run(story())
