"""Wake-ups of PostgreSQL: how soon a follower in another process sees an append, and what a notification costs."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import asyncpg

from tests.bench.postgres import lasting_server
from tests.bench.rows import Row, against, percentile
from tests.followers import Follower
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
    """Measure both on a server that waits for its disk."""
    with lasting_server() as server, asyncio.Runner() as runner:
        late = runner.run(_latencies(server.url(schema="latencies")))
        yield percentile(PART, "a follower in another process sees an append", late, BAR_LATENCY, 0.95)
        store = runner.run(PostgresStore.open(server.url(schema="cost")))
        listener = runner.run(asyncpg.connect(server.url()))
        heard: list[object] = []
        runner.run(listener.execute(f"SELECT pg_advisory_lock_shared({store.waking.lock})"))
        runner.run(listener.add_listener(store.waking.channel, lambda *got: heard.append(got[-1])))
        notify = store.waking.notify

        def notified() -> float:
            store.waking.notify = notify  # type: ignore[method-assign] # what it costs is measured
            return runner.run(_append(store))

        def silent() -> float:
            store.waking.notify = _silent  # type: ignore[method-assign]
            return runner.run(_append(store))

        what = f"appends of {TASKS} tasks that are notified to a listener"
        yield against(PART, what, "appends that are not", (notified, silent), BAR_COST, least=True, most=31)
        assert heard
        runner.run(listener.close())
        runner.run(store.aclose())


async def _latencies(url: str) -> list[float]:
    async with await PostgresStore.open(url) as store:
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


async def _append(store: PostgresStore) -> float:
    async def work(task: int) -> None:
        for _ in range(APPENDS):
            await store.append(str(task), events(1))

    start = time.perf_counter()
    await asyncio.gather(*map(work, range(TASKS)))
    return time.perf_counter() - start


def _silent(appended: object) -> None:
    del appended
