from __future__ import annotations

from hypothesis import given

from tests.invariants.checks import check_states, check_window
from tests.invariants.places import new_store
from tests.invariants.playing import AT, play, read_log, run, search
from tests.invariants.strategies import LOGS, Step, small
from timeline.timeline import Timeline


@search(60)
@given(LOGS)
def test_the_window_is_what_a_naive_fold_of_the_whole_log_says(steps: list[Step]) -> None:
    """States, order, window start, open calls, answers, pins and groups agree with the second implementation."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=small(), now=AT)
        await play(timeline, store, steps)
        log = await read_log(store, "c")
        check_window(timeline.window, log)
        check_states([e async for e in store.read("c")], log, "c")

    run(story())
