"""The times of events: each is read at its own append, and none of a handle's is before the newest that it has seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio

from tests.scenes import log_of
from timeline import Timeline, open_store, policies
from timeline.blocks import Note, UserPrompt
from timeline.events import CompactionCompleted
from timeline.lifecycle import CompactionCompleteEvent, recorded
from timeline.ports import Summary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from timeline.events import Event
    from timeline.ports import EventStore, SummaryRequest

TOOK = 0.3


@dataclass
class Slow:
    """A summarizer that takes 0.3 seconds, and lets an application do something meanwhile."""

    meanwhile: Callable[[], Awaitable[object]] | None = None
    name: str = "slow"
    asked: int = field(default=0)

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer late."""
        del request
        self.asked += 1
        await anyio.sleep(TOOK / 2)
        if self.meanwhile is not None:
            await self.meanwhile()
        await anyio.sleep(TOOK / 2 + 0.01)
        return Summary(text="The cards are written.", summarizer=self.name)


def times_of(events: Sequence[Event]) -> list[datetime]:
    """Return the times of events, by version."""
    return [event.at for event in events]


def rises(times: Sequence[datetime]) -> bool:
    """Return whether no time is before the one in front of it."""
    return all(before <= after for before, after in pairwise(times))


async def talked(store: EventStore, summarizer: Slow) -> Timeline:
    """Return a conversation on the computer's clock, long enough to compact."""
    policy = policies.cut_point(max_tokens=4_000)
    timeline = await Timeline.open(store, "c", policy=policy, summarizer=summarizer)
    for number in range(4):
        await timeline.append(UserPrompt(text=f"Write card {number}. " * 150))
    return timeline


async def test_a_block_that_another_task_appends_during_a_summary_is_not_later_than_the_compaction() -> None:
    """The events that end the compaction have higher versions, so they have no earlier times."""
    summarizer = Slow()
    async with open_store("memory://") as store:
        timeline = await talked(store, summarizer)
        summarizer.meanwhile = lambda: timeline.append(Note(text="meanwhile"))
        await timeline.compact()
        events = await log_of(store)
    assert "block.appended" in [event.type for event in events[-3:-1]], "the note came while the summary was written"
    assert rises(times_of(events))


async def test_a_compaction_lasts_as_long_as_its_summary_takes() -> None:
    """Log, lifecycle stream and digests say how long."""
    async with open_store("memory://") as store:
        timeline = await talked(store, Slow())
        await timeline.compact()
        [started] = [event for event in await log_of(store) if event.type == "compaction.started"]
        [event] = [event for event in await log_of(store) if event.type == "compaction.completed"]
        [told] = [t async for t in recorded(store, "c") if isinstance(t, CompactionCompleteEvent)]
        [digest] = [digest async for digest in store.digests()]
    assert isinstance(event.payload, CompactionCompleted)
    assert event.at - started.at >= timedelta(seconds=TOOK)
    assert event.payload.block.at == event.at
    durations = (
        event.payload.duration,
        event.payload.written_by.duration,
        told.duration,
        told.summary_duration,
        digest.duration,
        timeline.compaction_state().last_duration,
    )
    assert all(duration is not None and TOOK <= duration < TOOK + 5 for duration in durations), durations
