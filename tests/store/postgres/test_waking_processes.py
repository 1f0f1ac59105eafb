"""The whole way of a wake-up: an append in one process, a follower in another one."""

from __future__ import annotations

import asyncio
import time
from itertools import chain
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.followers import Follower
from tests.postgres import without
from timeline import open_store
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.ports import EventStore

NEVER = 1_000.0
"""An interval at which no follower of these tests looks by itself."""
OFTEN = 0.2


@pytest.fixture
def following(postgres_url: str) -> Iterator[list[Follower]]:
    """The followers of a test, which end before its schema does."""
    del postgres_url
    followers: list[Follower] = []
    yield followers
    for follower in followers:
        follower.end()


async def joined(followers: list[Follower], url: str, interval: float) -> Follower:
    """Start a follower, and let it begin to listen."""
    follower = await asyncio.to_thread(Follower, url, interval)
    followers.append(follower)
    await asyncio.sleep(0.5)
    return follower


async def latencies(store: EventStore, follower: Follower, count: int) -> list[float]:
    """Append events one by one; return by how many seconds each was seen after it was acknowledged."""
    late = []
    for number in range(count):
        appended = await store.append(f"conversation {number % 3}", events(1))
        acknowledged = time.monotonic_ns()
        [(position, moment)] = await asyncio.wait_for(asyncio.to_thread(list, follower.saw(1)), 30)
        assert position == appended.position
        late.append((moment - acknowledged) / 1e9)
        await asyncio.sleep(0.005)
    return late


async def test_a_follower_in_another_process_wakes_at_once(postgres_url: str, following: list[Follower]) -> None:
    """It looks again by itself in a quarter of an hour, and sees each event long before."""
    async with open_store(postgres_url) as store:
        await store.append("conversation 0", events(1))
        follower = await joined(following, postgres_url, NEVER)
        late = sorted(await latencies(store, follower, 20))
    assert late[len(late) // 2] < 1.0, late


async def test_what_is_appended_while_a_follower_begins_to_listen_is_seen(
    postgres_url: str, following: list[Follower]
) -> None:
    """The store knows that nobody listened a moment ago, and tells nobody; the follower looks once more."""
    async with open_store(postgres_url) as store:
        await store.append("conversation 0", events(1))
        follower = await asyncio.to_thread(Follower, postgres_url, NEVER)
        following.append(follower)
        done = []
        for _ in range(20):
            done.append((await store.append("conversation 0", events(1))).position)
            await asyncio.sleep(0.01)
        seen = await asyncio.wait_for(asyncio.to_thread(list, follower.saw(20)), 30)
    assert [position for position, _ in seen] == done


async def test_a_follower_whose_listener_is_lost_looks_by_itself_and_listens_again(
    postgres_url: str, following: list[Follower]
) -> None:
    """The connections that listen are ended, again and again: no event is missed, and wake-ups come back."""
    async with open_store(postgres_url) as store:
        await store.append("conversation 0", events(1))
        follower = await joined(following, postgres_url, OFTEN)
        admin = await asyncpg.connect(without(postgres_url, "schema"))
        for _ in range(3):
            await admin.fetch("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'")
            assert len(await latencies(store, follower, 2)) == 2
        await admin.close()


async def test_a_burst_is_seen_whole(postgres_url: str, following: list[Follower]) -> None:
    """Wake-ups of many appends are sent together, and events are still seen once, in order."""
    async with open_store(postgres_url) as store:
        await store.append("conversation 0", events(1))
        follower = await joined(following, postgres_url, OFTEN)
        done = await asyncio.gather(*(store.append(f"conversation {n % 7}", events(2)) for n in range(60)))
        seen = [position for position, _ in await asyncio.to_thread(list, follower.saw(120))]
        last = {appended.position for appended in done}
        assert seen == sorted(set(seen))
        assert last <= set(seen)
        assert len(set(chain(seen, last))) == 120
