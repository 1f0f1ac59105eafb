from __future__ import annotations

import asyncpg

from tests.postgres import direct_url, without
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events


async def _as_if_restored(postgres_url: str) -> None:
    """Give what is stored the positions of a server that has counted a million transactions more than this one."""
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    connection = await asyncpg.connect(without(direct_url(), "schema"), server_settings={"search_path": schema})
    try:
        await connection.execute("UPDATE events SET position = position + (1000000::bigint << 20)")
    finally:
        await connection.close()


async def test_a_store_that_is_restored_into_another_server_goes_on_behind_its_events(postgres_url: str) -> None:
    """The transactions of a new server begin at a low number; positions rise all the same, for tails too."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(3))
    await _as_if_restored(postgres_url)
    async with await PostgresStore.open(postgres_url) as store:
        before = await store.head()
        assert [event.version async for event in store.read_all()] == [1, 2, 3]
        appended = await store.append("a", events(2), expected=3)
        assert appended.position > before
        assert await store.head() == appended.position
        assert [event.version async for event in store.read_all(after=before)] == [4, 5]
    async with await PostgresStore.open(postgres_url) as store:
        assert (await store.append("b", events(1))).position > appended.position
