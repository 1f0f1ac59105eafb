"""A server that is killed under load, again and again, and what several processes were acknowledged meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import TYPE_CHECKING

import pytest

from tests.depth import DEPTH, Depth, at_night, sampled
from tests.histories import Players, logs_of, problems
from tests.postgres import PLACES, Postgres
from timeline import open_store
from timeline.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.postgres_server import Server
    from timeline.events import Event

PROCESSES = 3
SECONDS = {Depth.QUICK: 1, Depth.FULL: 2, Depth.NIGHT: 120}[DEPTH]
KILLS = {Depth.QUICK: 1, Depth.FULL: 3, Depth.NIGHT: 50}[DEPTH]


@sampled
@pytest.mark.timeout(4 * SECONDS + 120)
@pytest.mark.parametrize("postgres_url", PLACES if DEPTH is Depth.NIGHT else PLACES[3:], indirect=True)
async def test_several_processes_on_a_database_agree_on_one_log(postgres_url: str, tmp_path: Path) -> None:
    """Appends with and without an expected version, conflicts and looks of three processes have an order."""
    async with open_store(postgres_url) as store:
        players = Players(postgres_url, tmp_path)
        try:
            for _ in range(PROCESSES):
                await asyncio.to_thread(players.join)
            await asyncio.sleep(SECONDS)
            operations = await asyncio.to_thread(players.end)
        finally:
            players.kill()
        logs = await logs_of(store)
    assert problems(operations, logs) == []
    assert {"ok", "failed"} <= {operation.outcome for operation in operations}


@sampled
@pytest.mark.timeout(20 * KILLS + 180)
@pytest.mark.parametrize(
    "own_postgres",
    [pytest.param(Postgres("oldest"), id="oldest"), pytest.param(Postgres("newest"), id="newest", marks=at_night)],
    indirect=True,
)
async def test_a_server_that_is_killed_under_load_loses_nothing_and_repeats_nothing(
    own_postgres: Server, tmp_path: Path
) -> None:
    """Every acknowledged append is there once, where it was said to be; a tail saw each event once, in order."""
    draw, url = random.Random(24), own_postgres.url(schema="timeline")
    async with open_store(url) as store:
        first = await store.head()
    players = Players(url, tmp_path)
    seen: list[Event] = []
    ended = asyncio.Event()
    try:
        for _ in range(PROCESSES):
            await asyncio.to_thread(players.join)
        tailing = asyncio.create_task(tail(url, first, seen, ended))
        for _ in range(KILLS):
            await asyncio.sleep(draw.uniform(0.2, 1.2))
            await asyncio.to_thread(own_postgres.kill)
            await asyncio.sleep(draw.choice([0, 0.3]))
            await asyncio.to_thread(own_postgres.start)
        await asyncio.sleep(0.5)
        players.all[0].process.kill()  # what it had under way may be there or not
        players.all[0].process.wait()
        operations = await asyncio.to_thread(players.end)
    finally:
        players.kill()
    async with open_store(url) as store:
        logs = await logs_of(store)
        everything = [event.id async for event in store.read_all()]
    ended.set()
    await tailing
    assert problems(operations, logs) == []
    acknowledged = [one for one in operations if one.ids and one.outcome == "ok"]
    assert len(acknowledged) > 10 * KILLS, "the server was killed, but not under load"
    assert [event.id for event in seen] == everything
    assert all(one.position < two.position for one, two in itertools.pairwise(seen))
    for conversation in logs:
        versions = [event.version for event in seen if event.conversation == conversation]
        assert versions == list(range(1, len(versions) + 1))


async def tail(url: str, after: int, seen: list[Event], ended: asyncio.Event) -> None:
    """Read what comes behind a position, over and over; go on behind the last event after an error."""
    async with open_store(url) as store:
        last = False
        while not last:
            last = ended.is_set()
            try:
                async for event in store.read_all(after=after):
                    seen.append(event)
                    after = event.position
            except StoreError:
                last = False
            await asyncio.sleep(0.02)
