"""Appends do not wait for an examination, a repair or a rehearsal, and many writers of one conversation all come in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.postgres import without
from timeline import open_store
from timeline.ports import Snapshot
from timeline.store.testing.samples import block_event, compaction, events

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.ports import EventStore

asyncpg = pytest.importorskip("asyncpg")

LONG: Final[dict[str, Callable[[EventStore], Awaitable[Any]]]] = {
    "examine": lambda store: store.examine(),
    "mend": lambda store: store.mend(),
    "rehearse": lambda store: store.rehearse(["a"]),
}
_WAITING: Final = "SELECT count(*) FROM pg_locks WHERE relation = 'facts_progress'::regclass AND NOT granted"


async def _waits(other: Any) -> None:
    while not await other.fetchval(_WAITING):  # noqa: ASYNC110 - it is the server that knows
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("what", LONG)
async def test_an_append_goes_on_in_the_midst_of(postgres_url: str, what: str) -> None:
    """It is halted where it reads a table that no append touches; an append is acknowledged, and then it goes on."""
    other: Any = await asyncpg.connect(without(postgres_url, "schema"))
    async with open_store(postgres_url) as store:
        await store.append("a", [block_event(f"a.{number}") for number in range(10)])
        await store.append("a", [compaction(1, 7)], snapshot=Snapshot(version=11, window_start=8))
        [fact async for fact in store.facts()]
        await other.execute(f"SET search_path TO {postgres_url.rpartition('schema=')[2]}")
        async with other.transaction():
            await other.execute("LOCK TABLE facts_progress IN ACCESS EXCLUSIVE MODE")
            under_way = asyncio.ensure_future(LONG[what](store))
            await _waits(other)
            for number in range(3):
                await asyncio.wait_for(store.append("a", events(1)), 5)
                await asyncio.wait_for(store.append(f"new {number}", events(1)), 5)
            assert (await store.info("a")).version == 14
            assert not under_way.done()
        found = await under_way
        assert what == "rehearse" or found == []
    await other.close()


async def test_none_of_many_writers_of_one_conversation_is_refused(postgres_url: str) -> None:
    """Who came second takes turns with the others that did: by luck alone some lose each time, and are refused."""
    stores = await asyncio.gather(*(open_store(postgres_url) for _ in range(12)))
    for conversation in ("a", "b", "c"):
        await asyncio.gather(*(store.append(conversation, events(1)) for store in stores for _ in range(8)))
        assert (await stores[0].info(conversation)).version == 12 * 8
    for store in stores:
        await store.aclose()
