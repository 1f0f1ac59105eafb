from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tests.postgres import Postgres, with_query, without
from timeline.errors import StoreError, StoreReadOnly, StoreTooNew, StoreTooOld, StoreUnavailable
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event, events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.postgres_server import Server


@asynccontextmanager
async def administrator(url: str) -> AsyncIterator[Any]:
    """Open a connection of the server's owner, in the schema of a store."""
    connection = await asyncpg.connect(without(url, "schema"))
    try:
        await connection.execute(f"SET search_path TO {url.rpartition('schema=')[2]}")
        yield connection
    finally:
        await connection.close()


async def test_a_server_that_is_away_is_one_clear_error(own_postgres: Server) -> None:
    """Opening does not wait for a server that does not answer, and names it."""
    own_postgres.stop()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await PostgresStore.open(own_postgres.url())
    own_postgres.start()


async def test_an_append_waits_for_a_server_that_is_restarted(own_postgres: Server) -> None:
    """Appends that begin while the server is away are written once when it is back."""
    async with await PostgresStore.open(own_postgres.url()) as store:
        await store.append("a", events(2))
        await asyncio.to_thread(own_postgres.stop)
        waiting = [asyncio.create_task(store.append("a", events(1))) for _ in range(3)]
        await asyncio.sleep(0.2)
        assert not any(append.done() for append in waiting)
        await asyncio.to_thread(own_postgres.start)
        assert {(await append).version for append in waiting} == {3, 4, 5}
        assert await versions(store, "a") == [1, 2, 3, 4, 5]


async def test_a_wrong_password_is_said(own_postgres: Server) -> None:
    """The error names the cure, and no password."""
    connection = await asyncpg.connect(own_postgres.url())
    await connection.execute("CREATE ROLE passworded; CREATE ROLE app LOGIN PASSWORD 'right' IN ROLE passworded")
    await connection.close()
    with pytest.raises(StoreError, match="refused the role or its password") as refused:
        await PostgresStore.open(own_postgres.url(user="app:secret-guess"))
    assert "secret-guess" not in str(refused.value)


async def test_a_role_without_rights_is_named_what_it_lacks(own_postgres: Server) -> None:
    """It can neither create a store, nor use one that it was given no right to."""
    connection = await asyncpg.connect(own_postgres.url())
    await connection.execute("CREATE ROLE app LOGIN")
    await connection.close()
    with pytest.raises(StoreTooOld, match="administrator"):
        await PostgresStore.open(own_postgres.url(user="app"))
    async with await PostgresStore.open(own_postgres.url()):
        pass
    with pytest.raises(StoreError, match="the role lacks a right"):
        await PostgresStore.open(own_postgres.url(user="app"))


async def test_a_server_that_only_reads_refuses_an_append(postgres_url: str) -> None:
    """What is there can be read where the session may only read; nothing is written."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(1))
    reading = with_query(postgres_url, default_transaction_read_only="on")
    async with await PostgresStore.open(reading) as store:
        with pytest.raises(StoreReadOnly):
            await store.append("a", events(1))
        assert await versions(store, "a") == [1]


async def test_a_schema_of_a_later_version_is_refused(postgres_url: str) -> None:
    """A later version of the library may keep what this one would not understand."""
    async with await PostgresStore.open(postgres_url):
        pass
    async with administrator(postgres_url) as connection:
        await connection.execute("INSERT INTO migrations (number, name) VALUES (99, 'later')")
    with pytest.raises(StoreTooNew, match="Upgrade"):
        await PostgresStore.open(postgres_url)


@pytest.mark.parametrize("postgres_url", [Postgres(pooled=True)], ids=["pgbouncer"], indirect=True)
async def test_a_pool_without_its_setting_is_refused(postgres_url: str) -> None:
    """Behind pgbouncer, the settings of a session are refused, before anything is written."""
    with pytest.raises(StoreError):
        await PostgresStore.open(with_query(postgres_url, pgbouncer="false"))


@pytest.mark.parametrize("id_", ["a\0b", "\\0", "x" * 5_000, "é\U0001f600"], ids=["nul", "backslash", "long", "wide"])
async def test_an_id_that_the_server_cannot_hold_as_it_is_reads_back(postgres_url: str, id_: str) -> None:
    """PostgreSQL refuses U+0000, and index entries above 2.7 KB; the store takes both."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append(id_, [block_event(id_[:100], "text \0 text")])
        assert [info.id async for info in store.conversations()] == [id_]
        assert (await store.find(id_, id_[:100])) is not None


async def test_a_long_transaction_elsewhere_delays_the_tail_and_loses_nothing(own_postgres: Server) -> None:
    """A transaction that writes in another database of the cluster holds back the tail alone, until it ends."""
    first = await asyncpg.connect(own_postgres.url())
    await first.execute("CREATE DATABASE other")
    await first.close()
    other = await asyncpg.connect(own_postgres.url(database="other"))
    async with await PostgresStore.open(own_postgres.url()) as store:
        async with other.transaction():
            await other.execute("CREATE TABLE open_for_long ()")
            await store.append("a", events(3))
            assert await asyncio.wait_for(store.head(), 8) == 0  # it waits for at most 5 s
            assert [e async for e in store.read_all()] == []
            assert await versions(store, "a") == [1, 2, 3]
        assert [e.version async for e in store.read_all()] == [1, 2, 3]
        assert await store.head() > 0
    await other.close()
