from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.postgres import direct_url, schema_of, with_query, without
from tests.store.postgres.test_contract_elsewhere import MAKE_ROLE, ROLE
from tests.store.postgres.test_statements import as_tenant
from timeline.errors import ConversationNotFound, StoreError, StoreLocked
from timeline.store.postgres import migrations
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event, compaction, events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    Connection = asyncpg.Connection[asyncpg.Record]


@pytest.fixture
async def member_url(postgres_url: str) -> str:
    """The URL of an empty schema for a role without BYPASSRLS."""
    connection = await asyncpg.connect(without(direct_url(), "schema"))
    try:
        await connection.execute(MAKE_ROLE)
    finally:
        await connection.close()
    _, _, place = postgres_url.partition("://")[2].partition("@")
    return f"postgresql://{ROLE}@{place}"


@pytest.fixture
async def tenants(member_url: str) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    """Open the stores of two tenants in one schema."""
    async with (
        await PostgresStore.open(with_query(member_url, tenant="1")) as one,
        await PostgresStore.open(with_query(member_url, tenant="2")) as two,
    ):
        yield one, two


PARTITIONS = 4
_SAMPLED = "SELECT tablename, attname FROM pg_stats WHERE schemaname = $1 AND tablename LIKE 'events%'"

_WAITS = (
    "SELECT EXISTS (SELECT 1 FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation"
    " WHERE NOT l.granted AND c.relnamespace = $1::text::regnamespace)"
)


@asynccontextmanager
async def administrator(url: str) -> AsyncIterator[Connection]:
    """Open a connection of the server's owner, for the tenant 2 of a store."""
    settings = {"search_path": schema_of(url), "timeline.tenant": "2"}
    connection = await asyncpg.connect(without(direct_url(), "schema"), server_settings=settings)
    try:
        yield connection
    finally:
        await connection.close()


async def seen_in_partitions(connection: Connection, url: str) -> tuple[list[int], list[str]]:
    """Return the tenants whose rows a role reads in the partitions, and the columns whose values it is told."""
    rows = [
        row
        for number in range(PARTITIONS)
        for row in await connection.fetch(f"SELECT tenant FROM events_{number}")  # noqa: S608 - a number
    ]
    told = await connection.fetch(_SAMPLED, schema_of(url))
    return sorted(tenant for (tenant,) in rows), [f"{table}.{column}" for table, column in told]


async def until_it_waits(url: str) -> None:
    """Wait until somebody waits for a table of a store."""
    async with administrator(url) as connection, asyncio.timeout(10):
        while not await connection.fetchval(_WAITS, schema_of(url)):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)


async def append_for_both(url: str) -> None:
    """Append to conversations of two tenants, of which one has as many in each partition as the other in all."""
    for tenant, many in (("1", 40), ("2", 3)):
        async with await PostgresStore.open(with_query(url, tenant=tenant)) as store:
            for number in range(many):
                await store.append(f"c{number}", events(1))


async def test_tenants_see_nothing_of_one_another(tenants: tuple[PostgresStore, PostgresStore]) -> None:
    """Neither conversations, events, texts, digests, facts nor words; and both may have one id."""
    one, two = tenants
    said = block_event("p", "a secret word")
    hash_ = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    await one.append("a", [said, compaction(1, 1)], values={hash_: "secret"})
    with pytest.raises(ConversationNotFound):
        await two.info("a")
    assert await two.head() == 0
    assert [event async for event in two.read_all()] == []
    assert await two.values([hash_]) == {}
    assert await one.values([hash_]) == {hash_: "secret"}
    assert [found async for found in one.search("secret")]
    assert [found async for found in two.search("secret")] == []
    assert [found async for found in one.digests()]
    assert [found async for found in two.digests()] == []
    assert [fact async for fact in two.facts()] == []
    assert await two.known_ids("a", [said.id]) == set()
    assert (await two.append("a", events(1))).version == 1
    await two.erase("a")
    assert [event.version async for event in one.read("a")] == [1, 2]
    assert [info.id async for info in two.conversations()] == []


async def test_a_role_that_sees_all_rows_is_refused_once_there_are_tenants(
    tenants: tuple[PostgresStore, PostgresStore], postgres_url: str
) -> None:
    """A superuser would read the rows of all tenants as its own."""
    await tenants[0].append("a", events(1))
    for url in (postgres_url, with_query(postgres_url, tenant="1")):
        with pytest.raises(StoreError, match="BYPASSRLS"):
            await PostgresStore.open(url)


async def made_by_the_first_step(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a store with partitions as it was before they had policies, with events of both tenants; return its URL."""
    partitioned = with_query(url, partitions=str(PARTITIONS))
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
        await append_for_both(partitioned)
    return partitioned


async def test_a_partition_that_is_read_by_its_own_name_shows_the_rows_of_one_tenant(member_url: str) -> None:
    """Neither rows of another one, nor their values in the server's statistics: to no role, and not to the owner."""
    url = with_query(member_url, partitions=str(PARTITIONS))
    await append_for_both(url)
    async with administrator(url) as connection:
        await connection.execute("ANALYZE events")
        assert {1, 2} == set((await seen_in_partitions(connection, url))[0])
        async with as_tenant(connection, schema_of(url)):
            assert await seen_in_partitions(connection, url) == ([2, 2, 2], [])
        await connection.execute(f"SET ROLE {ROLE}")
        assert await seen_in_partitions(connection, url) == ([2, 2, 2], [])


async def test_the_partitions_of_an_older_store_get_their_policies_when_it_is_opened(
    member_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that the first step alone made showed them; the URL that opens it need not name their number."""
    url = await made_by_the_first_step(member_url, monkeypatch)
    async with administrator(url) as connection, as_tenant(connection, schema_of(url)):
        assert set((await seen_in_partitions(connection, url))[0]) == {1, 2}
    async with await PostgresStore.open(with_query(member_url, tenant="2")) as store:
        assert (await store.append("c0", events(1))).version == 2
    async with administrator(url) as connection, as_tenant(connection, schema_of(url)):
        assert (await seen_in_partitions(connection, url))[0] == [2, 2, 2, 2]


async def test_the_step_of_the_partitions_and_an_append_never_wait_for_each_other(
    member_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for an append that has written to one partition, and keeps it from no other one."""
    url = await made_by_the_first_step(member_url, monkeypatch)
    async with administrator(url) as appending:
        async with appending.transaction():
            await appending.execute("LOCK TABLE ONLY events, ONLY events_3 IN ROW EXCLUSIVE MODE")
            opening = asyncio.create_task(PostgresStore.open(with_query(url, tenant="1")))
            await until_it_waits(url)
            await appending.execute("LOCK TABLE ONLY events_0 IN ROW EXCLUSIVE MODE")
        async with await opening as store:
            assert (await store.info("c0")).version == 1


async def test_a_step_gives_up_behind_a_reader_that_holds_a_table_for_long(
    member_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as pg_dump, for hours: every append of the programs that are running would wait behind the step."""
    url = await made_by_the_first_step(member_url, monkeypatch)
    monkeypatch.setattr(migrations, "_WAITING", "SET LOCAL lock_timeout TO '20ms'")
    async with administrator(url) as reading, reading.transaction():
        await reading.execute("LOCK TABLE ONLY events_0 IN ACCESS SHARE MODE")
        with pytest.raises(StoreLocked, match="try again"):
            await PostgresStore.open(with_query(url, tenant="1"))
