"""A role that may have few connections: reads, appends and wake-ups share them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest

from tests.postgres import direct_url, schema_of, without
from timeline.errors import StoreUnavailable
from timeline.store.postgres import database
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.postgres_server import Server


@asynccontextmanager
async def limited(url: str, connections: int) -> AsyncIterator[str]:
    """Give the URL of a schema for a role that may have so many connections, and owns it."""
    role = f"few_{uuid4().hex[:8]}"
    administrator = await asyncpg.connect(without(url, "schema"))
    try:
        await administrator.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT {connections}")
        await administrator.execute(f"CREATE SCHEMA {schema_of(url)} AUTHORIZATION {role}")
        parts = urlsplit(url)
        yield parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}").geturl()
        await administrator.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    finally:
        await administrator.close()


async def allow(url: str, connections: int) -> None:
    """Let the role of a URL have so many connections from now on."""
    administrator = await asyncpg.connect(without(direct_url(), "schema"))
    await administrator.execute(f"ALTER ROLE {urlsplit(url).username} CONNECTION LIMIT {connections}")
    await administrator.close()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the store warned of."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_an_append_takes_a_connection_that_reads_have_no_use_for(postgres_url: str) -> None:
    """They keep each that they needed at once, which may be all that there are."""
    async with limited(postgres_url, 3) as url, await PostgresStore.open(url) as store:
        async with AsyncExitStack() as reads:
            for _ in range(3):
                await reads.enter_async_context(store.database.moment())
        async with asyncio.timeout(5):
            assert (await store.append("a", events(1))).version == 1


async def test_an_append_takes_the_connection_of_the_read_that_ends_first(postgres_url: str) -> None:
    """The others go on."""
    async with limited(postgres_url, 3) as url, await PostgresStore.open(url) as store, AsyncExitStack() as reads:
        for _ in range(2):
            await reads.enter_async_context(store.database.moment())
        async with store.database.moment():
            append = asyncio.create_task(store.append("a", events(1)))
            await asyncio.sleep(0.05)
            assert not append.done()
        async with asyncio.timeout(5):
            assert (await append).version == 1


@pytest.mark.parametrize("connections", [3, 2, 1])
async def test_appends_go_on_beside_reads_that_never_pause(postgres_url: str, connections: int) -> None:
    """No connection is ever idle then: one is given up when its read ends."""

    async def reads() -> None:
        while not appended.done():
            await versions(store, "a")

    async with limited(postgres_url, connections) as url, await PostgresStore.open(url) as store:
        await store.append("a", events(1))
        await asyncio.gather(*(versions(store, "a") for _ in range(4)))
        appended = asyncio.create_task(store.append("a", events(1)))
        async with asyncio.timeout(5):
            await asyncio.gather(*(reads() for _ in range(8)))
        assert (await appended).version == 2


async def test_a_read_takes_the_connection_of_the_wake_ups_where_there_is_no_other(postgres_url: str) -> None:
    """Followers look for new events by themselves then."""
    async with limited(postgres_url, 2) as url, await PostgresStore.open(url) as store:
        await store.append("a", events(1))
        async with asyncio.timeout(5):
            while store.database.parts.waking is None:  # noqa: ASYNC110 - it says no word when it connects
                await asyncio.sleep(0.01)
        await allow(url, 1)
        async with asyncio.timeout(5):
            assert await versions(store, "a") == [1]


async def test_what_has_no_connection_of_its_own_waits_without_a_warning(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Reads make do with the connections that there are, and appends with one."""
    async with limited(postgres_url, 3) as url, await PostgresStore.open(url) as store:
        names = [f"c{number}" for number in range(20)]
        for _ in range(2):
            await asyncio.gather(*(store.append(name, events(1)) for name in names))
            assert await asyncio.gather(*(versions(store, name) for name in names))
    assert warnings_of(caplog) == []


async def test_reads_that_wait_for_a_connection_say_so_once(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There is none any more; the error says what is to be raised."""
    monkeypatch.setattr(database, "PATIENCE", 0.2)
    async with limited(postgres_url, 1) as url, await PostgresStore.open(url) as store:
        await allow(url, 0)
        found = await asyncio.gather(*(versions(store, "a") for _ in range(20)), return_exceptions=True)
    assert {type(each) for each in found} == {StoreUnavailable}
    assert all("CONNECTION LIMIT" in str(each) for each in found)
    (warned,) = warnings_of(caplog)
    assert "has no connection left, waiting for it" in warned


async def test_a_connection_that_was_broken_off_is_not_lent_again(postgres_url: str) -> None:
    """Who had it gets a typed error; the next one gets another connection."""

    async def broken_off() -> None:
        async with store.database.moment() as connection:
            connection.terminate()
            await connection.fetchval("SELECT 1")

    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(1))
        with pytest.raises(StoreUnavailable):
            await broken_off()
        assert await versions(store, "a") == [1]


async def test_all_kinds_of_work_wait_for_a_connection(postgres_url: str) -> None:
    """Of a role that may have one, the parts take it from one another, and none has it for a moment."""
    async with limited(postgres_url, 1) as url, await PostgresStore.open(url) as store:
        await allow(url, 0)
        writing = [
            asyncio.create_task(store.append("a", events(1))),
            asyncio.create_task(store.set_retention("window")),
        ]
        reading = asyncio.create_task(store.examine())
        await asyncio.sleep(0.3)
        assert not any(task.done() for task in (*writing, reading))
        await allow(url, 1)
        async with asyncio.timeout(20):
            await asyncio.gather(*writing)
            assert await reading == []


async def test_what_changes_older_rows_waits_for_a_server_that_is_away(own_postgres: Server) -> None:
    """As appends and reads do: nothing of it was done yet."""
    async with await PostgresStore.open(own_postgres.url()) as store:
        await store.append("a", events(1))
        await asyncio.to_thread(own_postgres.stop)
        working = [asyncio.create_task(work) for work in (store.erase("a"), store.set_retention("window"))]
        looking = asyncio.create_task(store.examine())
        await asyncio.sleep(0.5)
        assert not any(task.done() for task in (*working, looking))
        await asyncio.to_thread(own_postgres.start)
        await asyncio.gather(*working)
        assert await looking == []
        assert await store.retention() == "window"
