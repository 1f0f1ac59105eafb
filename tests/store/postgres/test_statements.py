"""The plans of the statements: by an index on a table with rows, and in one partition where an append looks."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg
import pytest

from tests.postgres import with_query, without
from timeline import open_store
from timeline.errors import PathTaken, VersionConflict
from timeline.store.postgres import statements, table_files
from timeline.store.postgres.address import parse
from timeline.store.postgres.create import WITH_TENANT
from timeline.store.postgres.facts import GROUPS
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event, compaction, events, fork

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    Connection = asyncpg.Connection[asyncpg.Record]

OF_CONVERSATIONS = {
    f"{name}.{kind}": text
    for name, each in {"WHOLE": statements.WHOLE, "BARE": statements.BARE}.items()
    for kind, text in each._asdict().items()
}
STATEMENTS = {
    name: text
    for name, text in {**vars(statements), **OF_CONVERSATIONS}.items()
    if isinstance(text, str) and re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s", text) and not text.endswith(" ")
}
OF_THE_LIST = {"WHOLE.recent_conversations", "BARE.recent_conversations", "CONVERSATION_COUNT", "COUNT_UNLISTED"}
"""Look at when each conversation changed, which has no index: each append would write it (ADR 0099). The last one looks
up a row for each conversation, of all of them."""
VALUES: dict[str, Any] = {
    "int8": 5,
    "text": "c5",
    "bytea": b"5",
    "uuid": UUID(int=5),
    "bool": False,
    "int8[]": [5, 6],
    "text[]": ["c5", "c6"],
    "uuid[]": [UUID(int=5), UUID(int=6)],
    "bytea[]": [b"5", b"6"],
}
FILL = """
SELECT setval(pg_get_serial_sequence('conversations', 'key'), 10000);
INSERT INTO conversations (key, id_key, id, version, window_start, title, created_at, updated_at,
    head, parent_key, base)
    SELECT n, 'c' || n, 'c' || n, 10, 1, '', '', '', '\\x00', CASE WHEN n % 10 = 0 THEN n - 1 END, 0
    FROM generate_series({first} + 1, {first} + 2000) AS n;
INSERT INTO events (conversation, version, position, event_id, type, schema_version, at, path, tokens,
    payload, checksum)
    SELECT 1 + n / 10, 1 + n % 10, (n::bigint << 10) + 1, lpad(to_hex(n), 32, '0')::uuid,
        CASE WHEN n % 50 = 0 THEN 'compaction.completed' ELSE 'block.appended' END, 1, '', 'p' || n, 1,
        repeat('x', 200),
        CASE WHEN n % 97 = 0 THEN '' ELSE 'c' END
    FROM generate_series({first} * 10, {first} * 10 + 19999) AS n;
INSERT INTO snapshots (conversation, version, body, checksum) SELECT n, 5, '', ''
    FROM generate_series({first} + 1, {first} + 2000) AS n;
INSERT INTO bases (conversation, version, body, checksum) SELECT n, 5, '', ''
    FROM generate_series({first} + 1, {first} + 2000) AS n;
INSERT INTO waypoints (conversation, version, body, checksum) SELECT n, 5, '', ''
    FROM generate_series({first} + 1, {first} + 2000) AS n;
INSERT INTO stored_values (hash, text) SELECT 'c' || n, ''
    FROM generate_series({first} + 1, {first} + 2000) AS n;
INSERT INTO erased (id_key, id, at, reason) SELECT 'e' || n, '', '', ''
    FROM generate_series({first} + 1, {first} + 2000) AS n;
INSERT INTO compactions (position, conversation, version, at, round, source, summary, before_tokens,
    after_tokens,
    errors)
    SELECT (n::bigint << 10) + 1, 1 + n / 10, 1, '', 1, '', '', 1, 1, 0
    FROM generate_series({first} * 10, {first} * 10 + 19999, 5) AS n;
INSERT INTO facts (position, number, conversation, kind, failed, version, subject, tool, detail, source)
    SELECT (n::bigint << 10) + 1, 0, 1 + n / 10, 1, 0, 1, '', '', '', 1
    FROM generate_series({first} * 10, {first} * 10 + 19999, 5) AS n;
"""


@asynccontextmanager
async def filled(url: str) -> AsyncIterator[Connection]:
    """Open a connection of a store with 20,000 events for a tenant, and as many for another one."""
    async with open_store(url):
        pass
    connection = await asyncpg.connect(
        without(url, "schema", "partitions"), server_settings={"search_path": parse(url).schema}
    )
    for tenant, first in ((7, 0), (8, 2_000)):
        await connection.execute(f"SET timeline.tenant TO '{tenant}'")
        await connection.execute(FILL.format(first=first))
    await connection.execute("SET timeline.tenant TO '7'")
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def as_tenant(connection: Connection, schema: str) -> AsyncIterator[None]:
    """Be a role that owns nothing: the policies of the tables bind it."""
    role = f"tenant_{schema}"
    await connection.execute(
        f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role};"
        f" GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};"
        f" GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role}"
    )
    try:
        await connection.execute(f"SET ROLE {role}")
        yield
    finally:
        await connection.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


async def plan_of(connection: Connection, statement: str) -> list[dict[str, Any]]:
    """Return the nodes of a statement's plan."""
    prepared = await connection.prepare(statement)
    given = [VALUES[one.name] for one in prepared.get_parameters()]
    ((plan,),) = await connection.fetch(f"EXPLAIN (FORMAT JSON) {statement}", *given)
    return list(nodes(json.loads(plan)[0]["Plan"]))


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Iterate over a node and all below it."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


async def scans(connection: Connection) -> dict[str, list[str]]:
    """Return the tables that statements read whole, by statement."""
    found = {}
    for name in STATEMENTS.keys() - OF_THE_LIST:
        plan = await plan_of(connection, STATEMENTS[name])
        if tables := [
            node["Relation Name"]
            for node in plan
            if node["Node Type"] == "Seq Scan" and node["Relation Name"] in WITH_TENANT
        ]:
            found[name] = tables
    return found


async def test_no_statement_scans_a_table(postgres_url: str) -> None:
    """Before and after ANALYZE, for the owner and for a tenant's role, every look-up has an index."""
    schema = parse(postgres_url).schema
    found = {}
    async with filled(postgres_url) as connection:
        for state in ("plain", "analysed"):
            if state == "analysed":
                await connection.execute("ANALYZE")
            found[state] = await scans(connection)
            async with as_tenant(connection, schema):
                found[f"{state}, tenant"] = await scans(connection)
    assert found == {state: {} for state in found}


@pytest.mark.parametrize("analysed", [False, True], ids=["new", "analysed"])
async def test_every_statement_of_an_append_touches_one_partition(postgres_url: str, *, analysed: bool) -> None:
    """A conversation's events are in one of eight partitions, and its appends look at no other one.

    That holds before the server knows how many rows there are, too. A fork's parent is in a partition of its own.
    """
    url = with_query(postgres_url, partitions="8")
    touched: dict[str, set[str]] = {}
    async with filled(url) as connection, await PostgresStore.open(postgres_url) as store:
        await connection.execute("SET timeline.tenant TO '0'")
        if analysed:
            await connection.execute("ANALYZE")
        asked = await asked_by_appends(store)
        for statement, given in asked:
            transaction = connection.transaction()
            await transaction.start()
            ((plan,),) = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *given)
            await transaction.rollback()
            touched[statement] = partitions_in(plan)
        ((partitions,),) = await connection.fetch("SELECT count(DISTINCT tableoid) FROM events WHERE conversation = 5")
    assert partitions == 1
    assert {statements.APPEND, statements.APPEND_ONE} <= touched.keys()
    assert statements.PATHS_IN_USE in touched
    assert statements.LINK_AT in touched
    assert max(map(len, touched.values())) == 1, touched


def partitions_in(plan: str) -> set[str]:
    """Return the partitions of the events that a statement looked at."""
    ran = [node for node in nodes(json.loads(plan)[0]["Plan"]) if node["Actual Loops"]]
    names = {node["Relation Name"] for node in ran if "Relation Name" in node}
    return {name for name in names if re.fullmatch(r"events_\d+", name)}


async def test_an_event_of_a_digest_and_of_a_fact_is_looked_for_in_one_partition(postgres_url: str) -> None:
    """Their rows name its conversation, by which the events are spread."""
    asked: list[tuple[str, Sequence[Any]]] = []
    async with (
        filled(with_query(postgres_url, partitions="8")) as connection,
        await PostgresStore.open(postgres_url) as store,
    ):
        await connection.execute("SET timeline.tenant TO '0'; ANALYZE")
        await store.append("a", [block_event("p", "See https://example.org/1"), compaction(1, 1)])
        await store.fact_record("a")
        async with store.database.parts.readers.lend() as reader:  # the one that is lent next as well
            reader.add_query_logger(lambda query: asked.append((query.query, query.args)))
        assert len([digest async for digest in store.digests()]) == 1
        assert len([fact async for fact in store.facts(kind="url")]) == 1
        assert (await store.fact_record("a")).counts["url"] == 1
        joined = [(text, given) for text, given in asked if re.search("FROM compactions|facts AS f", text)]
        touched = {
            text: partitions_in(await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", *given))
            for text, given in joined
        }
    assert GROUPS in touched
    assert [len(partitions) for partitions in touched.values()] == [1, 1, 1], touched


async def test_for_an_append_of_one_event_the_driver_asks_a_new_connection_for_no_types(postgres_url: str) -> None:
    """It asks for those of arrays, by a query over the catalogues that takes longer than the append."""
    async with open_store(postgres_url):
        pass
    connection = await asyncpg.connect(
        without(postgres_url, "schema"), server_settings={"search_path": parse(postgres_url).schema}
    )
    try:
        await connection.prepare(statements.APPEND_ONE)
        asked = [text for (text,) in await connection.fetch("SELECT statement FROM pg_prepared_statements")]
        assert not [text for text in asked if "pg_catalog.pg_type" in text]
    finally:
        await connection.close()


async def test_a_merge_of_facts_compares_no_subject_with_another(postgres_url: str) -> None:
    """Nor before ANALYZE, when the server takes a table for nearly empty: each pair of subjects is too many."""
    async with await PostgresStore.open(postgres_url) as store:
        for number in range(0, 300, 50):
            named = [block_event(f"p{n}", f"See https://example.org/{n}") for n in range(number, number + 50)]
            await store.append("a", named)
        assert (await store.fact_record("a")).counts["url"] == 300
        async with store.database.connection() as connection:
            ((key,),) = await connection.fetch("SELECT key FROM conversations")
            given = [[key], [2**62], [], [1], [1_000], [], "prompt", 8]
            ((plan,),) = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {GROUPS}", *given)
    thrown_away = [node.get("Rows Removed by Join Filter", 0) for node in nodes(json.loads(plan)[0]["Plan"])]
    assert sum(thrown_away) == 0


async def asked_by_appends(store: PostgresStore) -> list[tuple[str, Sequence[Any]]]:
    """Return the statements of appends of all kinds to one conversation."""
    asked: list[tuple[str, Sequence[Any]]] = []
    async with store.database.parts.appenders.lend() as connection:  # the one that is lent next as well
        connection.add_query_logger(lambda query: asked.append((query.query, query.args)))
    first = [block_event("t:1"), *events(2)]
    await store.append("new", first)
    await store.append("new", first)  # the same again, which is found by its ids
    await store.append("new", events(2))
    await store.append("new", events(2), expected=5)
    with suppress(VersionConflict):
        await store.append("new", events(1), expected=2)
    with suppress(PathTaken):
        await store.append("new", [block_event("t:1")])
    await store.append("new", [compaction(1, 2)])
    await store.append("fork", [fork("new", 4), block_event("f:1")])
    return [
        (query, given)
        for query, given in asked
        if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s", query) and "events" in query
    ]


@pytest.mark.parametrize("settings", [{}, {"pgbouncer": "true"}], ids=["directly", "pgbouncer"])
async def test_no_statement_is_compiled_by_the_server(postgres_url: str, settings: dict[str, str]) -> None:
    """To compile a page of the list of conversations takes a second, and to run it ten milliseconds."""
    async with await PostgresStore.open(with_query(postgres_url, **settings)) as store:
        assert await store.database.rows("SELECT current_setting('jit')") == [("off",)]


async def test_the_size_that_an_erasure_compares_is_looked_up_file_by_file(postgres_url: str) -> None:
    """It holds no table against all others of the database, whose number grows with partitions and schemas."""
    url = with_query(postgres_url, partitions="8")
    async with await PostgresStore.open(url) as store, store.database.moment() as connection:
        counted = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {table_files.SIZE_OF_STORE}"
        for _ in range(2):  # the first look fills the session's own copy of the catalogs
            ((plan,),) = await connection.fetch(counted, store.database.address.schema, list(table_files.CONTENT))
        read = json.loads(plan)[0]["Plan"]
        assert read["Shared Hit Blocks"] + read["Shared Read Blocks"] < 1_000
