"""A transaction that stays open, in the store's own database or in another one: who waits for it, and what is said."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.postgres import with_query
from timeline.lifecycle import follow
from timeline.lifecycle.live import steps
from timeline.store.postgres import examining, horizon
from timeline.store.postgres.horizon import Horizon
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import compaction, events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.postgres_server import Server
    from timeline.ports import EventStore

ROLE = """
CREATE ROLE agent LOGIN;
GRANT USAGE ON SCHEMA timeline TO agent;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA timeline TO agent;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA timeline TO agent;
"""


@asynccontextmanager
async def held(server: Server, database: str) -> AsyncIterator[int]:
    """Hold a transaction that writes; give the process id of its connection."""
    if database != "postgres":
        first = await asyncpg.connect(server.url())
        await first.execute(f"CREATE DATABASE {database}")
        await first.close()
    connection = await asyncpg.connect(server.url(database=database))
    try:
        async with connection.transaction():
            await connection.execute("CREATE TABLE open_for_long ()")
            yield connection.get_server_pid()
    finally:
        await connection.close()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the store warned of."""
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


async def first_of_one(store: EventStore) -> int:
    """Follow a conversation to its first event, and return its version."""
    async with aclosing(steps(store, "a", after=0)) as following:  # type: ignore[type-var]  # a generator
        async for step in following:
            if step.events:
                return step.version
    raise AssertionError("the store was closed")


async def first_of_all(store: EventStore) -> int:
    """Follow all conversations to the first event, and return its version."""
    async with aclosing(follow(store, after=0)) as following:  # type: ignore[type-var]  # a generator
        async for event in following:
            return event.version
    raise AssertionError("the store was closed")


@pytest.mark.parametrize("database", ["postgres", "other"])
async def test_followers_wait_for_a_transaction_that_stays_open_with_a_word_about_it(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, database: str
) -> None:
    """One conversation is followed all the same; a follower of all, in another store, goes on at its end."""
    monkeypatch.setattr(horizon, "_PATIENCE", 0.5)
    async with (
        await PostgresStore.open(own_postgres.url()) as store,
        await PostgresStore.open(own_postgres.url(), readonly=True) as reader,
    ):
        await store.append("a", events(8))
        following = asyncio.create_task(first_of_all(reader))
        async with held(own_postgres, database) as process:
            await store.append("a", [compaction(1, 4)])
            assert await asyncio.wait_for(first_of_one(reader), 30) == 9
            async with asyncio.timeout(30):
                while not warnings(caplog):  # noqa: ASYNC110 - what is waited for is a clock
                    await asyncio.sleep(0.02)
            assert not following.done()
        assert await asyncio.wait_for(following, 30) == 9
    (said,) = warnings(caplog)
    assert f"process {process} of database {database} writes in a transaction that began" in said
    assert "seconds ago, and readers of all conversations wait for its end" in said


async def test_who_asks_again_and_again_is_told_what_holds_the_answer_up(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A store that appends nothing itself waits for nothing; its reads end before what others appended."""
    monkeypatch.setattr(horizon, "_PATIENCE", 0.3)
    monkeypatch.setattr(horizon, "_BETWEEN_LOOKS", 0.0)
    async with (
        await PostgresStore.open(own_postgres.url()) as store,
        await PostgresStore.open(own_postgres.url(), readonly=True) as reader,
    ):
        assert [event async for event in reader.read_all()] == []
        assert warnings(caplog) == []
        async with held(own_postgres, "other"):
            await store.append("a", events(1))
            async with asyncio.timeout(30):
                while not warnings(caplog):
                    assert [event async for event in reader.read_all()] == []
                    await asyncio.sleep(0.02)
        (said,) = warnings(caplog)
        assert "of database other writes in a transaction" in said
        assert [event.version async for event in reader.read_all()] == [1]


async def test_a_read_of_all_warns_once_a_minute(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each append of a store's own is waited for, not for long; the words about it do not fill a log."""
    monkeypatch.setattr(horizon, "_PATIENCE", 0.1)
    async with await PostgresStore.open(own_postgres.url()) as store:
        async with held(own_postgres, "postgres"):
            for _ in range(3):
                await store.append("a", events(1))
                assert [event async for event in store.read_all()] == []
            assert len(warnings(caplog)) == 1
            monkeypatch.setattr(horizon, "_BETWEEN", 0.0)
            await store.append("a", events(1))
            assert await store.head() == 0
            assert len(warnings(caplog)) == 2
        assert [event.version async for event in store.read_all()] == [1, 2, 3, 4]


async def test_a_role_that_sees_no_times_of_others_is_told_who_it_waits_for(own_postgres: Server) -> None:
    """PostgreSQL shows it the process, and not since when; an examination as that role names it, too."""
    async with await PostgresStore.open(own_postgres.url()) as store:
        await store.append("a", events(1))
    first = await asyncpg.connect(own_postgres.url())
    await first.execute(ROLE)
    await first.close()
    url = with_query(own_postgres.url(user="agent"), migrate="no")
    async with await PostgresStore.open(url) as store, held(own_postgres, "postgres") as process:
        await store.append("a", events(1))
        assert await versions(store, "a") == [1, 2]
        holder = await Horizon(store.database).holder()
        assert holder is not None
        assert holder.seconds is None
        assert str(holder).startswith(f"process {process} of database postgres writes in a transaction, and readers")
        assert await store.horizon_age() == 0
        (found,) = [one for one in (await examining.examine(store.database)).findings if one.code == "horizon"]
        assert f"1 event waits for older transactions to end: process {process}" in found.text
