"""The figures of a PostgreSQL store, read back from the SDK's in-memory reader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint

from tests.postgres import without
from timeline.integrations.store_metrics import observed
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import Callable


def read(reader: InMemoryMetricReader) -> dict[str, float]:
    """Return the newest value of each metric, by its name behind the common part."""
    data = reader.get_metrics_data()
    return {
        metric.name.removeprefix("timeline.store."): point.value
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint)
    }


async def until(reader: InMemoryMetricReader, holds: Callable[[dict[str, float]], bool]) -> None:
    """Wait until what is reported holds."""
    async with asyncio.timeout(30):
        while not holds(read(reader)):  # noqa: ASYNC110 - nothing of ours happens when a transaction of others ends
            await asyncio.sleep(0.02)


async def test_the_queue_and_the_groups_are_reported(postgres_url: str) -> None:
    """While appends wait they are in the queue; then they are in groups, fewer than there were appends."""
    reader = InMemoryMetricReader()
    async with (
        await PostgresStore.open(postgres_url) as store,
        observed(store, meter_provider=MeterProvider([reader])),
    ):
        appending = [asyncio.create_task(store.append(str(number), events(1))) for number in range(40)]
        await asyncio.sleep(0)
        waiting = read(reader)
        await asyncio.gather(*appending)
        await asyncio.gather(*(store.append(str(number), events(1)) for number in range(40)))
        done = read(reader)
    assert waiting["queue.appends"] > 0
    assert waiting["queue.characters"] > waiting["queue.appends"]
    assert (done["queue.appends"], done["queue.characters"], done["lost"]) == (0, 0, 0)
    assert done["appends"] == 80
    assert done["groups"] < 40
    assert read(reader) == {}


async def test_a_transaction_that_stays_open_is_seen_in_the_lag_and_the_age(postgres_url: str) -> None:
    """The gauge grows with each transaction behind it, and falls when it ends; how long it is open is another one."""
    reader = InMemoryMetricReader()
    async with (
        await PostgresStore.open(postgres_url) as store,
        observed(store, meter_provider=MeterProvider([reader]), interval=0.05),
    ):
        other = await asyncpg.connect(without(postgres_url, "schema"))
        transaction = other.transaction()
        await transaction.start()
        await other.execute("SELECT pg_current_xact_id()")
        for number in range(20):
            await store.append(str(number), events(1))
        await until(reader, lambda found: found["horizon.lag"] >= 20 and found["horizon.age"] >= 1)
        await transaction.rollback()
        await other.close()
        await until(reader, lambda found: found["horizon.lag"] < 20 and found["horizon.age"] == 0)


async def test_appends_that_came_second_are_counted(postgres_url: str) -> None:
    """Two stores append to one conversation at once: each knows a head that the other one moves on."""
    reader = InMemoryMetricReader()
    async with (
        await PostgresStore.open(postgres_url) as store,
        await PostgresStore.open(postgres_url) as other,
        observed(store, meter_provider=MeterProvider([reader])),
    ):
        for _ in range(10):
            await store.append("a", events(1))
            await other.append("a", events(1))
        assert (await store.info("a")).version == 20
        found = read(reader)
    assert found["lost"] == 8  # all but the first two, which know no head yet
    assert found["appends"] == 10
