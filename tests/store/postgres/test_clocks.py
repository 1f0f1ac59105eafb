"""Clients whose clocks differ, and go backwards: the log's order is that of its versions, and leases are the log's."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest

from tests.invariants.moods import MoodySummarizer
from timeline import Timeline, open_store, policies
from timeline.blocks import UserPrompt
from timeline.errors import CompactionInProgress, CompactionSuperseded
from timeline.events import BlockAppended, CompactionCompleted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.events import Event
    from timeline.ports import EventStore

NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
SECOND: Final = timedelta(seconds=1)


@asynccontextmanager
async def clients(url: str, summarizer: MoodySummarizer) -> AsyncIterator[tuple[Timeline, Timeline]]:
    """Open the conversation of two clients, each with a store of its own."""
    policy = policies.cut_point(max_tokens=2_000, counter="chars4")
    async with open_store(url) as one, open_store(url) as other:
        mine = await Timeline.open(one, "c", policy=policy, summarizer=summarizer, now=NOON)
        yield mine, await Timeline.open(other, "c", policy=policy, summarizer=summarizer, now=NOON)


def said(events: list[Event]) -> list[str]:
    """Return the texts that were appended, in the order of the events."""
    return [event.payload.block.text for event in events if isinstance(event.payload, BlockAppended)]


async def everything(store: EventStore) -> tuple[list[Event], list[Event]]:
    """Read the conversation, and all conversations."""
    return [event async for event in store.read("c")], [event async for event in store.read_all()]


async def test_events_are_in_the_order_of_their_appends_whatever_the_clocks_say(postgres_url: str) -> None:
    """One clock is an hour behind and runs backwards; both clients, and whoever opens later, see one order."""
    async with clients(postgres_url, MoodySummarizer()) as (mine, other):
        for number in range(6):
            client, at = (other, NOON - HOUR - number * SECOND) if number % 2 else (mine, NOON + number * SECOND)
            await client.append(UserPrompt(text=f"{number}"), now=at)
        own, all_ = await everything(other._store)
        assert said(own) == said(all_) == [f"{number}" for number in range(6)]
        assert [event.version for event in own] == list(range(1, len(own) + 1))
        assert [event.position for event in all_] == sorted(event.position for event in all_)
        assert [event.at for event in own] != sorted(event.at for event in own)
        await mine._log.catch_up()
        assert mine.window == other.window
        opened = await Timeline.open(mine._store, "c", policy=mine.policy, now=NOON - 2 * HOUR)
        assert opened.window == other.window
        assert (await opened.verify()).ok


async def test_a_lease_holds_by_the_clock_of_whoever_asks_and_only_one_compaction_counts(postgres_url: str) -> None:
    """A client an hour behind waits for the lease; one an hour ahead takes it over, which voids the first."""
    summarizer = MoodySummarizer()
    async with clients(postgres_url, summarizer) as (mine, other):
        for number in range(8):
            await mine.append(UserPrompt(text=f"{number} " * 400), now=NOON)

        async def meanwhile() -> None:
            with pytest.raises(CompactionInProgress):
                await other.compact(now=NOON - HOUR, wait=False)
            assert await other.compact(now=NOON + HOUR, wait=False)

        summarizer.meanwhile = meanwhile
        with pytest.raises(CompactionSuperseded):
            await mine.compact(now=NOON)
        log, _ = await everything(mine._store)
        assert len([event for event in log if isinstance(event.payload, CompactionCompleted)]) == 1
        for client in (mine, other):
            await client._log.catch_up()
        assert mine.window == other.window
        assert (await other.verify()).ok
