from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.postgres import without
from timeline.errors import HistoryUnavailable
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events
from timeline.store.testing.samples import fork

WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


async def test_a_fork_that_opens_during_a_removal_is_refused_what_it_took(postgres_url: str) -> None:
    """The opener that looked at its parent before a removal waits for it, and does not share what is gone."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(6))
        remover = await asyncpg.connect(without(postgres_url, "schema"))
        try:
            await remover.execute(f"SET search_path TO {postgres_url.rpartition('schema=')[2]}")
            async with remover.transaction():
                await remover.execute("SELECT FROM conversations WHERE id = 'a' FOR UPDATE")
                opening = asyncio.create_task(store.append("b", [fork("a", 4)]))
                while not await remover.fetchval(WAITS):  # noqa: ASYNC110 - the server has no event to wait for
                    await asyncio.sleep(0.01)
                await remover.execute("UPDATE conversations SET first_version = 3 WHERE id = 'a'")
                await remover.execute("UPDATE events SET checksum = '', payload = '' WHERE version = 2")
            with pytest.raises(HistoryUnavailable):
                await asyncio.wait_for(opening, 10)
            assert not await remover.fetchval("SELECT count(*) FROM conversations WHERE id = 'b'")
        finally:
            await remover.close()
