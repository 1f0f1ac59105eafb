"""What the server's own statistics, `pg_stat_statements`, keep of a store's statements."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg

from tests.postgres import with_query
from tests.store.postgres.test_contract_elsewhere import MAKE_ROLE, ROLE
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from tests.postgres_server import Server

    Connection = asyncpg.Connection[asyncpg.Record]

STATEMENTS = "SELECT count(*) FROM pg_stat_statements AS s JOIN pg_roles AS r ON r.oid = s.userid WHERE r.rolname = $1"
WOKEN = "SELECT sum(calls) FROM pg_stat_statements WHERE query ~* 'NOTIFY'"


async def append_as(url: str, tenant: int, server: Connection) -> int:
    """Append for a tenant, and wait until others were notified of it; return the number of statements that are kept."""
    before = await server.fetchval(WOKEN) or 0
    async with await PostgresStore.open(with_query(url, tenant=str(tenant), pgbouncer="true")) as store:
        await store.append(f"conversation {tenant}", events(1))
        assert [info.version async for info in store.conversations()] == [1]
        while (await server.fetchval(WOKEN) or 0) == before:  # noqa: ASYNC110 - the server has no event of that
            await asyncio.sleep(0.01)
    return int(await server.fetchval(STATEMENTS, ROLE))


async def test_as_many_statements_are_kept_for_many_conversations_and_tenants_as_for_one(own_postgres: Server) -> None:
    """They are a few thousand for all programs of a server: one for each text would drive out those of all others."""
    own_postgres.stop()
    own_postgres.start(shared_preload_libraries="pg_stat_statements")
    server = await asyncpg.connect(own_postgres.url())
    try:
        await server.execute(f"CREATE EXTENSION pg_stat_statements; {MAKE_ROLE}")
        url = own_postgres.url(user=ROLE)
        kept = [await append_as(url, tenant, server) for tenant in (1, 2, 3, 4)]
    finally:
        await server.close()
    assert kept[1:] == [kept[1]] * 3
