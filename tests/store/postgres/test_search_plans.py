"""How words are found: through the GIN index, whoever asks, and never in another tenant's texts."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import asyncpg
import pytest

from tests.postgres import with_query, without
from tests.store.postgres.test_statements import as_tenant, nodes
from tests.store.postgres.test_tenants import member_url, tenants  # noqa: F401 - fixtures
from timeline import open_store
from timeline.store.postgres.address import parse
from timeline.store.postgres.erasing import DROP_WORDS_WITHIN
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    Connection = asyncpg.Connection[asyncpg.Record]

FILL: Final = """
INSERT INTO search_index (position, part, conversation, words, several, found)
    SELECT n, 0, n / 10, 2, false, format('wcommon:1 wn%s:2', n % 1000)::tsvector
    FROM generate_series({first}, {first} + 9999) AS n;
"""
MOST_UNSORTED: Final = 64
"""Pages of a list of 512 kB."""
ASKED: Final = "SELECT f.position FROM search_found('wn7'::tsquery) AS f"
SCANS: Final = (
    "SELECT pg_stat_get_xact_numscans('search_index_words'::regclass),"
    " pg_stat_get_xact_tuples_returned('search_index'::regclass)"
)
"""What the session's transactions did that are not in the server's statistics yet."""


@asynccontextmanager
async def filled(url: str) -> AsyncIterator[Connection]:
    """Open a connection to a store with 10,000 texts of tenant 7, and as many of tenant 8."""
    async with open_store(url):
        pass
    settings = {"search_path": parse(url).schema}
    connection = await asyncpg.connect(without(url, "schema", "tenant"), server_settings=settings)
    try:
        for tenant, first in ((7, 0), (8, 10_000)):
            await connection.execute(f"SET timeline.tenant TO '{tenant}'; {FILL.format(first=first)}")
        await connection.execute("SET timeline.tenant TO '7'; ANALYZE search_index")
        yield connection
    finally:
        await connection.close()


async def looked_up(connection: Connection) -> tuple[list[int], int, int]:
    """Return what is found, how often the index was asked, and how many rows of the table were walked."""
    async with connection.transaction():
        before = await connection.fetchrow(SCANS) or ()
        found = [position for (position,) in await connection.fetch(ASKED)]
        scans, walked = (b - a for a, b in zip(before, await connection.fetchrow(SCANS) or (), strict=True))
    return sorted(found), scans, walked


async def test_words_are_found_by_their_index_for_whoever_asks(postgres_url: str) -> None:
    """For a superuser, and for a tenant's role, which policies bind; neither finds another tenant's text."""
    own = list(range(7, 10_000, 1_000))
    async with filled(postgres_url) as connection:
        assert await looked_up(connection) == (own, 1, 0)
        async with as_tenant(connection, parse(postgres_url).schema):
            assert await looked_up(connection) == (own, 1, 0)
            # Without the function the policy keeps the index out of use.
            plan = await explained(connection, "SELECT position FROM search_index WHERE found @@ 'wn7'::tsquery")
            assert "search_index_words" not in plan


async def test_words_are_found_by_their_index_for_an_owner_who_is_no_superuser(member_url: str) -> None:  # noqa: F811
    """The role that made the store finds words as a tenant of it."""
    async with filled(with_query(member_url, tenant="7")) as connection:
        assert await looked_up(connection) == (list(range(7, 10_000, 1_000)), 1, 0)


async def test_the_words_of_a_conversation_are_looked_up_by_it(postgres_url: str) -> None:
    """A search in one conversation, and its erasure, read no other one's words."""
    asked = "SELECT position FROM search_index WHERE conversation = 5 AND found @@ 'wn7'::tsquery"
    async with filled(postgres_url) as connection, as_tenant(connection, parse(postgres_url).schema):
        assert "search_index_within" in await explained(connection, asked)
        assert "search_index_within" in await explained(connection, DROP_WORDS_WITHIN, 5)


async def test_few_words_of_a_fresh_index_are_left_unsorted(postgres_url: str) -> None:
    """Every search reads those from end to end, until autovacuum comes by."""
    texts = [" ".join(f"w{text}x{number}" for number in range(2_000)) for text in range(40)]
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", [block_event(f"p{number}", text) for number, text in enumerate(texts)])
        assert len([found async for found in store.search("w7x7")]) == 1
        ((unsorted,),) = await store.database.rows("SELECT gin_clean_pending_list('search_index_words')")
    assert unsorted <= MOST_UNSORTED


async def explained(connection: Connection, statement: str, *given: Any) -> set[str]:
    """Return the indexes of a plan."""
    ((plan,),) = await connection.fetch(f"EXPLAIN (FORMAT JSON) {statement}", *given)
    return {node["Index Name"] for node in nodes(json.loads(plan)[0]["Plan"]) if "Index Name" in node}


async def test_a_tenant_finds_its_own_words_alone(tenants: tuple[PostgresStore, PostgresStore]) -> None:  # noqa: F811
    """Both say the same word; each is answered with its own, also where it asks the server itself."""
    one, two = tenants
    await one.append("a", [block_event("p", "a common word of one")])
    await two.append("b", [block_event("p", "a common word of two"), block_event("q", "only here")])
    assert [(found.conversation, found.version) async for found in one.search("common")] == [("a", 1)]
    assert [(found.conversation, found.version) async for found in two.search("common")] == [("b", 1)]
    own = [event.position async for event in one.read("a")]
    assert [row[0] for row in await one.database.rows("SELECT position FROM search_found('wcommon')")] == own
    assert await one.database.rows("SELECT position FROM search_found('wonly')") == []


async def test_who_was_not_let_in_cannot_ask_for_words(postgres_url: str) -> None:
    """The function reads for its owner: nobody else may call it unless an administrator says so."""
    schema = parse(postgres_url).schema
    async with filled(postgres_url) as connection, as_tenant(connection, schema):
        await connection.execute(f"RESET ROLE; REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM tenant_{schema};")
        await connection.execute(f"SET ROLE tenant_{schema}")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch(ASKED)
