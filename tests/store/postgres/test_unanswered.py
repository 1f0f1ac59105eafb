"""A server that does not answer: it is waited for with a word about it, and what waits behind it is refused in time."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tests.postgres import without
from timeline.errors import AppendUncertain, StoreBusy, StoreClosed, StoreUnavailable
from timeline.ports import Appended
from timeline.store.postgres import committing, database, migrations, parts, writer
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from tests.postgres_server import Server
    from timeline.store.postgres.connections import Connection


@asynccontextmanager
async def locked(url: str, table: str = "events") -> AsyncIterator[None]:
    """Keep everybody from a table."""
    connection = await asyncpg.connect(without(url, "schema"))
    try:
        async with connection.transaction():
            schema = url.rpartition("schema=")[2]
            await connection.execute(f"LOCK TABLE {schema}.{table} IN ACCESS EXCLUSIVE MODE")
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


@pytest.mark.parametrize(
    ("table", "what", "work"),
    [
        ("erased", "write", lambda store: store.erase("a")),
        ("settings", "write", lambda store: store.set_retention("window")),
        ("facts", "write", lambda store: store.fact_record("a")),
        ("events", "read", lambda store: store.examine()),
    ],
    ids=["erase", "set_retention", "facts", "examine"],
)
async def test_work_of_several_statements_that_is_not_answered_is_waited_for_with_a_word(
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    table: str,
    what: str,
    work: Callable[[PostgresStore], Coroutine[Any, Any, object]],
) -> None:
    """Whichever of its statements it is; it comes to its end all the same."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(2))
        monkeypatch.setattr(database, "SLOW", 0.2)
        async with locked(postgres_url, table):
            working = asyncio.create_task(work(store))
            assert f"the server has not answered a {what} for 0 seconds" in await said(caplog)
            assert not working.done()
        await working


async def test_a_commit_that_is_not_answered_is_waited_for_with_a_word(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It waits for a synchronous standby that is missing."""
    async with await PostgresStore.open(own_postgres.url()) as store:
        await store.append("a", events(2))
        administrator = await asyncpg.connect(own_postgres.url())
        await administrator.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        await administrator.execute("SELECT pg_reload_conf()")
        monkeypatch.setattr(database, "SLOW", 0.2)
        goes_on = True

        async def write() -> None:
            while goes_on:  # the server heeds a setting that it reads again a moment later
                await store.set_retention("window")
                await store.set_retention("keep")

        working = asyncio.create_task(write())
        assert "the server has not answered a write" in await said(caplog)
        assert not working.done()
        goes_on = False
        await administrator.execute("ALTER SYSTEM RESET synchronous_standby_names")
        await administrator.execute("SELECT pg_reload_conf()")
        await administrator.close()
        await working


async def test_only_the_time_in_which_the_server_is_waited_for_counts(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A large removal has many statements that are answered, and a caller may pause between two of them."""

    async def work(connection: Connection) -> None:
        for _ in range(8):
            await connection.execute("SELECT pg_sleep(0.1)")
        await asyncio.sleep(0.8)
        await connection.execute("SELECT 1")

    async with await PostgresStore.open(postgres_url) as store:
        monkeypatch.setattr(database, "SLOW", 0.6)
        await store.database.do(work)
        async with store.database.moment() as connection:
            await work(connection)
        assert caplog.records == []


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
