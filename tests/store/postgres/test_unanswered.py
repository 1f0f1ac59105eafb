"""A server that does not answer: it is waited for with a word about it, and what waits behind it is refused in time."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.postgres import without
from timeline.errors import AppendUncertain, StoreBusy, StoreClosed, StoreUnavailable
from timeline.ports import Appended
from timeline.store.postgres import committing, database, migrations, parts, writer
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.postgres_server import Server


@asynccontextmanager
async def locked(url: str) -> AsyncIterator[None]:
    """Keep everybody from the events."""
    connection = await asyncpg.connect(without(url, "schema"))
    try:
        async with connection.transaction():
            await connection.execute(f"LOCK TABLE {url.rpartition('schema=')[2]}.events IN ACCESS EXCLUSIVE MODE")
            yield
    finally:
        await connection.close()


async def said(caplog: pytest.LogCaptureFixture) -> str:
    """Return the first warning, when it comes."""
    async with asyncio.timeout(30):
        while True:
            warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
            if warned:
                return warned[0]
            await asyncio.sleep(0.02)


async def test_a_read_that_is_not_answered_is_waited_for_with_a_word(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It comes to its end all the same."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(2))
        monkeypatch.setattr(database, "SLOW", 0.1)
        async with locked(postgres_url):
            reading = asyncio.create_task(store.read_versions("a", [1]))
            assert "the server has not answered a read for 0 seconds" in await said(caplog)
            assert not reading.done()
        assert [event.version for event in await reading] == [1]


async def test_opening_waits_for_who_makes_the_same_store_with_a_word(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The steps of a schema are taken by one process at a time."""
    monkeypatch.setattr(database, "SLOW", 0.1)
    schema = postgres_url.rpartition("schema=")[2]
    connection = await asyncpg.connect(without(postgres_url, "schema"))
    try:
        async with connection.transaction():
            await connection.execute(f"SELECT pg_advisory_xact_lock({migrations._LOCK}, hashtext('{schema}'))")
            opening = asyncio.create_task(PostgresStore.open(postgres_url))
            assert "has not answered what makes the store ready" in await said(caplog)
            assert not opening.done()
        await (await opening).aclose()
    finally:
        await connection.close()


async def test_appends_behind_one_that_is_not_answered_are_refused_in_time(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The one that is under way is written when the server answers; of the others nothing is."""
    monkeypatch.setattr(writer, "LONGEST_WAIT", 0.3)
    monkeypatch.setattr(writer, "SLOW", 0.1)
    monkeypatch.setattr(writer, "_LOOK", 0.05)
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(1))
        async with locked(postgres_url):
            first = asyncio.create_task(store.append("a", events(1)))
            await asyncio.sleep(0.05)
            others = [store.append("a", events(1)) for _ in range(3)]
            refused = await asyncio.gather(*others, return_exceptions=True)
            assert [type(each) for each in refused] == [StoreBusy] * 3
            assert "an append, behind which" in await said(caplog)
            assert store.figures.waiting == store.figures.waiting_characters == 0
        assert (await first).version == 2
        assert (await store.append("a", events(1))).version == 3


async def test_a_store_closes_although_the_server_does_not_answer(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was under way is in doubt, and what waited behind it was not written."""
    monkeypatch.setattr(writer, "LONGEST_WAIT", 0.3)
    store = await PostgresStore.open(postgres_url)
    await store.append("a", events(1))
    async with locked(postgres_url):
        first = asyncio.create_task(store.append("a", events(1)))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(store.append("a", events(1)))
        await asyncio.sleep(0)
        await asyncio.wait_for(store.aclose(), 30)
        with pytest.raises(AppendUncertain, match="broke"):
            await first
        with pytest.raises(StoreBusy):
            await second


async def test_what_waits_for_a_connection_is_refused_when_the_store_closes(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server is there, and nothing is said about it."""
    store = await PostgresStore.open(postgres_url)
    async with AsyncExitStack() as held:
        for _ in range(parts.READERS):
            await held.enter_async_context(store.database.moment())
        waiting = [asyncio.create_task(work) for work in (store.read_versions("a", [1]), store.examine())]
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.aclose())
        refused = await asyncio.gather(*waiting, return_exceptions=True)
    await closing
    assert [type(each) for each in refused] == [StoreClosed] * 2
    assert caplog.records == []


async def test_reads_wait_for_a_server_that_ends_their_connections(own_postgres: Server) -> None:
    """However often it does, and in whatever state the driver is: none fails."""
    async with await PostgresStore.open(own_postgres.url()) as store:
        await store.append("a", events(50))
        over = asyncio.Event()

        async def read() -> int:
            times = 0
            while not over.is_set():
                assert len([event async for event in store.read("a")]) == 50
                times += 1
            return times

        readers = [asyncio.create_task(read()) for _ in range(4)]
        connection = await asyncpg.connect(own_postgres.url())
        for _ in range(60):
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'timeline' AND pid <> pg_backend_pid()"
            )
            await asyncio.sleep(0.02)
        await connection.close()
        over.set()
        assert all(await asyncio.gather(*readers))
        assert isinstance(await store.append("a", events(1)), Appended)


async def test_appends_that_wait_together_for_a_server_that_is_away_wait_once(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one after the other: of thirty agents the last one would be told after five minutes."""
    monkeypatch.setattr(committing, "PATIENCE", 0.5)
    async with await PostgresStore.open(own_postgres.url()) as store:
        await store.append("a", events(1))
        await asyncio.to_thread(own_postgres.stop)
        async with asyncio.timeout(8):
            appends = (store.append(f"c{number}", events(1)) for number in range(30))
            outcomes = await asyncio.gather(*appends, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
        await asyncio.to_thread(own_postgres.start)
        assert (await store.append("c29", events(1))).version == 1
