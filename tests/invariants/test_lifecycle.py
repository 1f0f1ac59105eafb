"""The lifecycle stream of any log has an order that an interface can rely on, and figures that add up (seed 004)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.designs import DESIGNS
from tests.invariants.places import new_store
from tests.invariants.playing import AT, play, run, search
from tests.invariants.strategies import HIDINGS, LOGS, LONG_RUNS, Step, small
from timeline.errors import BudgetError
from timeline.lifecycle import (
    CompactionCompleteEvent,
    CompactionErrorEvent,
    CompactionPruneEvent,
    CompactionStartEvent,
    CompactionSummarizeEvent,
    LifecycleEvent,
    recorded,
)
from timeline.lifecycle.progress import Progress
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.policy.model import Policy

POLICIES: st.SearchStrategy[Policy] = st.one_of(DESIGNS, HIDINGS.map(lambda hiding: small(hiding=hiding)))


def check_order(events: list[LifecycleEvent]) -> None:
    """Start, prunes, a summary, and one end; an error may also come by itself."""
    begun: CompactionStartEvent | None = None
    saved, summarizing = 0, False
    for event in events:
        match event:
            case CompactionStartEvent():
                assert begun is None, "a compaction begins in another one"
                begun, saved, summarizing = event, 0, False
            case CompactionPruneEvent():
                assert begun is not None
                assert not summarizing, "pruned while a summary is written"
                saved += event.tokens_saved
            case CompactionSummarizeEvent():
                assert begun is not None
                assert not summarizing, "two summaries at the same time"
                summarizing = True
            case CompactionCompleteEvent(reason="imported"):
                pass  # another client made it: nobody knows when that one began
            case CompactionCompleteEvent():
                assert begun is not None, "an end without a beginning"
                assert (event.tokens_before, event.reason) == (begun.tokens_before, begun.reason)
                assert event.was_summarized == summarizing
                assert event.was_pruned or not saved
                assert event.tokens_after < event.tokens_before
                begun = None
            case CompactionErrorEvent():
                begun = None
            case _:
                assert begun is None, "a render in the middle of a compaction"


@search(40)
@given(st.one_of(LOGS, LONG_RUNS), POLICIES)
def test_the_stream_of_any_log_is_in_order(steps: list[Step], policy: Policy) -> None:
    """Whatever is appended, compacted, taken back and hidden, each compaction is told from its start to one end."""

    async def story() -> None:
        store = await new_store()
        timeline, now = await Timeline.open(store, "c", policy=policy, now=AT), AT
        for step in steps:
            now = await play(timeline, store, [step], now)
            with suppress(BudgetError):
                await timeline.render(now=now)
        events = [event async for event in recorded(store, "c")]
        check_order(events)
        progress = Progress()
        for event in events:
            progress = progress.after(event)
        assert progress.status is None, "nobody compacts any more"
        assert [event async for event in recorded(store)] == events

    run(story())
