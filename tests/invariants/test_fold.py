from __future__ import annotations

from hypothesis import example, given

from tests.invariants.checks import check_states, check_window
from tests.invariants.places import new_store
from tests.invariants.playing import AT, play, read_log, run, search
from tests.invariants.strategies import LOGS, GoBack, Say, Step, small
from timeline.blocks import AssistantCompletion, ToolCall, UserPrompt
from timeline.timeline import Timeline

OPEN = Say((UserPrompt(text="run"), ToolCall(call_id="c", name="t", response_id="r1")))
LATER = Say((UserPrompt(text="later"), AssistantCompletion(text="yes", response_id="r2")))


@search(60)
@given(LOGS)
@example([OPEN, LATER, GoBack(None)])  # the open call is open again: few searches meet one
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
