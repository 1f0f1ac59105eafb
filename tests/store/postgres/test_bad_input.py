from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest

from tests.postgres import Postgres, direct_url, schema_of, with_query, without
from tests.postgres_server import Pool, given_to_server, shared_server
from timeline.errors import NotAStore, StoreError, StoreReadOnly, StoreTooNew, StoreTooOld, StoreUnavailable
from timeline.events import BlockAppended
from timeline.ports import Appended
from timeline.store.postgres import database, examining, horizon, migrations
from timeline.store.postgres.address import parse
from timeline.store.postgres.migrating import bring_up_to_date, migration_sql
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event, events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.postgres_server import Server


IGNORED = "search_path, timeline.tenant, jit, default_transaction_isolation"
"""The settings of a session that the store makes, and a forgiving pgbouncer leaves out."""


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


async def test_the_migrations_of_an_application_are_not_taken_for_a_damaged_store(postgres_url: str) -> None:
    """Many applications have a table of that name; theirs is left as it is, and nothing is to be restored."""
    schema = postgres_url.rpartition("schema=")[2]
    connection = await asyncpg.connect(without(postgres_url, "schema"))
    await connection.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.migrations (id int, migration text)")
    for readonly in (False, True):
        with pytest.raises(NotAStore, match="a schema of its own"):
            await PostgresStore.open(postgres_url, readonly=readonly)
    tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
    await connection.close()
    assert [name for (name,) in tables] == ["migrations"]


@pytest.mark.parametrize(
    "made", ["VIEW {} AS SELECT 1", "SEQUENCE {}", "TABLE {} ()"], ids=["view", "sequence", "table"]
)
async def test_a_name_of_ours_that_is_taken_is_another_applications(postgres_url: str, made: str) -> None:
    """A table of the store cannot have the name, whatever has it; the schema is left as it is."""
    schema = schema_of(postgres_url)
    async with administrator(postgres_url) as connection:
        await connection.execute(f"CREATE SCHEMA {schema}; CREATE {made.format('events')}")
        for readonly in (False, True):
            with pytest.raises(NotAStore, match=r"'events'.*a schema of its own"):
                await PostgresStore.open(postgres_url, readonly=readonly)
        names = await connection.fetch(
            "SELECT relname FROM pg_class WHERE relnamespace = $1::text::regnamespace", schema
        )
    assert [name for (name,) in names] == ["events"]


@asynccontextmanager
async def database_in(encoding: str) -> AsyncIterator[str]:
    """Give the URL of a database of its own in an encoding."""
    name = f"encoded_{uuid4().hex[:8]}"
    connection = await asyncpg.connect(without(direct_url(), "schema"))
    try:
        options = f"ENCODING '{encoding}' LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0"
        await connection.execute(f"CREATE DATABASE {name} {options}")
        yield urlsplit(direct_url())._replace(path=f"/{name}").geturl()
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


def _earlier_sql(url: str) -> str:
    """Return the statements by which earlier releases made a store, in a database of any encoding."""
    return migrations.sql(parse(url)).replace(f"<> '{migrations.ENOUGH}'", "= ''")


@pytest.fixture
async def latin() -> AsyncIterator[str]:
    """The URL of a database of its own in the encoding LATIN1."""
    async with database_in("LATIN1") as url:
        yield url


async def test_no_store_is_made_where_not_every_text_can_be_stored(latin: str) -> None:
    """The error names the encoding, and how a database is made that can; the schema is not made."""
    for make in (PostgresStore.open, bring_up_to_date, migration_sql):
        with pytest.raises(StoreError, match=r"encoding LATIN1.*ENCODING 'UTF8' TEMPLATE template0"):
            await make(latin)
    connection = await asyncpg.connect(latin)
    assert await connection.fetchval("SELECT to_regnamespace('timeline')") is None
    await connection.close()


async def test_printed_sql_makes_no_store_where_not_every_text_can_be_stored(latin: str) -> None:
    """It may have been printed where the server could not be reached, and its encoding was not known."""
    connection = await asyncpg.connect(latin)
    with pytest.raises(asyncpg.RaiseError, match="another encoding than UTF8"):
        await connection.execute(migrations.sql(parse(latin)))
    await connection.execute("ROLLBACK")
    assert await connection.fetch("SELECT FROM pg_tables WHERE schemaname = 'timeline'") == []
    await connection.close()


async def test_a_store_that_is_in_another_encoding_goes_on_and_is_examined(latin: str) -> None:
    """An earlier release made it: what it can hold is written, and an examination warns of the rest."""
    connection = await asyncpg.connect(latin)
    await connection.execute(_earlier_sql(latin))
    await connection.close()
    async with await PostgresStore.open(latin) as store:
        await store.append("a", [block_event("p", "plain words")])
        with pytest.raises(StoreError, match="Nothing was written"):
            await store.append("a", [block_event("q", "数据库")])
        assert await versions(store, "a") == [1]
        (found,) = [one for one in (await examining.examine(store.database)).findings if one.code == "encoding"]
    assert (found.level, "LATIN1" in found.text, "timeline copy" in found.text) == ("warning", True, True)


async def test_a_long_path_is_read_back_where_the_server_takes_each_byte_for_a_character() -> None:
    """A store that an earlier release made in SQL_ASCII: its server cuts texts in the midst of a character."""
    path = "路径" * 300
    async with database_in("SQL_ASCII") as url:
        connection = await asyncpg.connect(url)
        await connection.execute(_earlier_sql(url))
        await connection.close()
        async with await PostgresStore.open(url) as store:
            await store.append("a", [block_event(path, "words")])
            (read,) = [event async for event in store.read("a")]
            assert isinstance(read.payload, BlockAppended)
            assert read.payload.block.path == path


@pytest.mark.parametrize("postgres_url", [Postgres(pooled=True)], ids=["pgbouncer"], indirect=True)
async def test_a_pool_without_its_setting_is_refused(postgres_url: str) -> None:
    """Pgbouncer refuses the settings of a session; the error names the cure, and nothing is written."""
    for readonly in (False, True):
        with pytest.raises(StoreError, match="pgbouncer=true") as refused:
            await PostgresStore.open(with_query(postgres_url, pgbouncer="false"), readonly=readonly)
        assert type(refused.value) is StoreError
    async with administrator(with_query(direct_url(), schema=postgres_url.rpartition("schema=")[2])) as connection:
        assert await connection.fetchval("SELECT to_regclass('migrations')") is None


@contextmanager
def own_pool(connections: int, ignored: str = "") -> Iterator[Pool]:
    """Run a pgbouncer of the test's own, with so many connections to the server."""
    server = shared_server()
    folder = server.folder / f"pool-{uuid4().hex[:8]}"
    folder.mkdir()
    given_to_server(folder)
    pool = Pool(folder, server.folder, connections=connections, ignored=ignored)
    try:
        pool.start()
        yield pool
    finally:
        pool.stop()


@pytest.fixture
def forgiving_pool() -> Iterator[Pool]:
    """A pgbouncer that drops the settings of a session, with three connections to the server."""
    with own_pool(3, IGNORED) as pool:
        yield pool


async def test_opening_behind_a_pool_without_a_server_to_ask_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pgbouncer itself keeps who waits for a server that hangs, or is busy, for two minutes."""
    monkeypatch.setattr(database, "CONNECT", 0.3)
    with own_pool(1) as pool:
        other = await asyncpg.connect(without(pool.url(), "pgbouncer"), statement_cache_size=0)
        async with asyncio.timeout(10), other.transaction():
            with pytest.raises(StoreUnavailable, match="pooler had no connection"):
                await PostgresStore.open(pool.url())
        await other.close()


async def test_a_pool_that_drops_settings_and_statements_is_refused(postgres_url: str, forgiving_pool: Pool) -> None:
    """Without schema and tenant a store would be another one, and without its statements would wait; it is refused.

    With the setting, it goes on with what is there; so nothing was written meanwhile, and nothing lost.
    """
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(2))
    pooled = with_query(forgiving_pool.url(), schema=postgres_url.rpartition("schema=")[2])
    for wrong in ({}, {"tenant": "7"}):
        url = with_query(pooled, pgbouncer="false", **wrong)
        with pytest.raises(StoreError, match="pgbouncer=true"):
            await asyncio.wait_for(PostgresStore.open(url), 20)
    async with await PostgresStore.open(pooled) as store:
        done = await asyncio.gather(*(store.append("a", events(1)) for _ in range(30)))
        assert sorted(each.version for each in done) == list(range(3, 33))


async def test_a_pool_that_mixes_up_statements_is_one_clear_error(own_postgres: Server) -> None:
    """Where the database gives a session its settings by itself, the driver's statements are mixed up; that is said."""
    connection = await asyncpg.connect(own_postgres.url())
    async with await PostgresStore.open(own_postgres.url()) as store:
        await store.append("a", events(1))
    await connection.execute("SELECT set_config('search_path', '\"timeline\"', false)")
    await connection.execute("ALTER DATABASE postgres SET search_path FROM CURRENT")
    await connection.execute("ALTER DATABASE postgres SET timeline.tenant = '0'")
    await connection.close()
    folder = own_postgres.folder / "pool"
    folder.mkdir()
    given_to_server(folder)
    pool = Pool(folder, own_postgres.folder, connections=3, ignored=IGNORED)
    pool.start()
    outcomes: list[object] = []
    try:
        async with asyncio.timeout(60):
            try:
                async with await PostgresStore.open(with_query(pool.url(), pgbouncer="false")) as store:
                    appends = (store.append(f"c{n % 7}", events(1)) for n in range(40))
                    reads = (store.info("a") for _ in range(40))
                    outcomes = list(await asyncio.gather(*appends, *reads, return_exceptions=True))
            except StoreError as error:
                outcomes = [error]
    finally:
        pool.stop()
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert all("pgbouncer=true" in str(error) for error in refused), {str(error) for error in refused}
    async with await PostgresStore.open(own_postgres.url()) as store:
        held = {info.id: info.version async for info in store.conversations() if info.id != "a"}
        assert sum(held.values()) == sum(isinstance(outcome, Appended) for outcome in outcomes)


@pytest.mark.parametrize("id_", ["a\0b", "\\0", "x" * 5_000, "é\U0001f600"], ids=["nul", "backslash", "long", "wide"])
async def test_an_id_that_the_server_cannot_hold_as_it_is_reads_back(postgres_url: str, id_: str) -> None:
    """PostgreSQL refuses U+0000, and index entries above 2.7 KB; the store takes both."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append(id_, [block_event(id_[:100], "text \0 text")])
        assert [info.id async for info in store.conversations()] == [id_]
        assert (await store.find(id_, id_[:100])) is not None


async def test_a_long_transaction_elsewhere_delays_the_tail_and_loses_nothing(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that writes in another database of the cluster holds back the tail alone, until it ends.

    Appends and reads of a conversation go on; the tail waits for a bounded time, once; an examination and the lag of
    the horizon say who and how far.
    """
    monkeypatch.setattr(examining, "LONG", 0)
    monkeypatch.setattr(horizon, "_PATIENCE", 0.3)
    first = await asyncpg.connect(own_postgres.url())
    await first.execute("CREATE DATABASE other")
    await first.close()
    other = await asyncpg.connect(own_postgres.url(database="other"))
    async with await PostgresStore.open(own_postgres.url()) as store:
        async with other.transaction():
            await other.execute("CREATE TABLE open_for_long ()")
            await store.append("a", events(3))
            assert await asyncio.wait_for(store.head(), 5) == 0  # it waits for as long as it has patience
            assert [e async for e in store.read_all()] == []
            assert await versions(store, "a") == [1, 2, 3]
            assert (await asyncio.wait_for(store.append("a", events(1)), 5)).version == 4
            assert [found.version async for found in store.search("hello", page=9)] != []
            assert await store.horizon_lag() >= 2
            findings = (await examining.examine(store.database)).findings
            (held,) = [finding.text for finding in findings if finding.code == "transaction"]
            assert f"process {other.get_server_pid()} of database other" in held
            assert "4 events" in held
        assert [e.version async for e in store.read_all()] == [1, 2, 3, 4]
        assert await store.head() > 0
        assert await store.horizon_lag() < 2
    await other.close()


async def test_a_place_and_a_page_beyond_what_the_server_counts_are_taken_as_the_ends(postgres_url: str) -> None:
    """Before everything, behind everything, and more rows than there can be."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(2))
        assert [event.version async for event in store.read_all(after=-(2**70), page=2**70)] == [1, 2]
        assert [event async for event in store.read_all(after=2**70)] == []
        assert [event.version async for event in store.read("a", after=-(2**70), page=2**70)] == [1, 2]


async def test_an_encoding_in_the_url_changes_no_answer(postgres_url: str) -> None:
    """The driver would encode in it what a look-up asks for: what it cannot write was said not to be there."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("数据", [block_event("p", "数据库")])
    async with await PostgresStore.open(with_query(postgres_url, client_encoding="latin1")) as store:
        assert (await store.info("数据")).version == 1
        await store.append("数据", [block_event("q", "数据库")])
        assert await versions(store, "数据") == [1, 2]


async def test_a_role_whose_transactions_are_serializable_opens_a_store_at_once_with_others(postgres_url: str) -> None:
    """Who waited for another process that made the store sees that it is there."""
    url = with_query(postgres_url, default_transaction_isolation="serializable")
    stores = await asyncio.gather(*(PostgresStore.open(url) for _ in range(6)))
    await asyncio.gather(*(store.append("a", events(1)) for store in stores for _ in range(5)))
    assert await versions(stores[0], "a") == list(range(1, 31))
    for store in stores:
        await store.aclose()


async def test_a_server_without_room_for_the_locks_of_many_partitions_is_no_machine_without_memory(
    own_postgres: Server,
) -> None:
    """It is a setting of the server, which the error names; what the server says of it is in its own language."""
    own_postgres.stop()
    own_postgres.start(max_connections="10", max_locks_per_transaction="10")
    with pytest.raises(StoreUnavailable, match="max_locks_per_transaction"):
        await PostgresStore.open(with_query(own_postgres.url(), partitions="128"))
