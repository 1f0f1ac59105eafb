"""Wake-ups of PostgreSQL: how soon a follower in another process sees an append, and what telling it costs."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from tests.bench.rows import Row, against, percentile
from tests.followers import Follower
from tests.postgres import new_schema
from tests.postgres_server import begin_run, end_run
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import Iterator

PART: Final = "PostgreSQL"
STEPS: Final = 300
TASKS: Final = 64
APPENDS: Final = 20
BAR_LATENCY: Final = 20.0
BAR_COST: Final = 0.8
"""Appends a second with wake-ups, as a share of those without."""


def rows() -> Iterator[Row]:
    """Measure both on the system's server, or on the wheel's."""
    begins = begin_run()
    try:
        late = asyncio.run(_latencies())
        yield percentile(PART, "a follower in another process sees an append", late, BAR_LATENCY, 0.95)
        told, silent = (lambda: asyncio.run(_append(tells=True))), (lambda: asyncio.run(_append(tells=False)))
        what = f"appends of {TASKS} tasks that wake a follower in another process"
        yield against(PART, what, "appends that wake nobody", (told, silent), BAR_COST, least=True, most=15)
    finally:
        if begins:
            end_run()


async def _latencies() -> list[float]:
    async with new_schema() as url, await PostgresStore.open(url) as store:
        await store.append("0", events(1))
        follower = await asyncio.to_thread(Follower, url, 1_000.0)
        await asyncio.sleep(1)
        late = []
        for number in range(STEPS):
            await store.append(str(number % 3), events(1))
            acknowledged = time.monotonic_ns()
            [(_, moment)] = await asyncio.to_thread(list, follower.saw(1))
            late.append(max(0, moment - acknowledged) / 1e9)
            await asyncio.sleep(0.01)
        follower.end()
    return late


async def _append(*, tells: bool) -> float:
    async with new_schema() as url, await PostgresStore.open(url) as store:
        if not tells:
            store.waking.tell = _silent  # type: ignore[method-assign] # what it costs is measured

        async def work(task: int) -> None:
            for _ in range(APPENDS):
                await store.append(str(task), events(1))

        await asyncio.gather(*(store.append(str(task), events(1)) for task in range(TASKS)))
        follower = await asyncio.to_thread(Follower, url, 1_000.0)
        await asyncio.sleep(0.5)
        start = time.perf_counter()
        await asyncio.gather(*map(work, range(TASKS)))
        taken = time.perf_counter() - start
        follower.end()
    return taken


def _silent(conversation: str, types: object) -> None:
    del conversation, types
