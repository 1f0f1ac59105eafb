"""What a removal costs the server, and those who append meanwhile: by the statements that it runs, and their plans."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import asyncpg
import pytest

from tests.postgres import schema_of, without
from timeline import Timeline
from timeline.blocks import UserPrompt
from timeline.forgetting import redact
from timeline.store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

MARK: Final = "jane@example.org"
_WAITING: Final = "SELECT count(*) FROM pg_locks WHERE NOT granted"


async def prompted(store: PostgresStore, conversation: str, prompts: int, *, system: str = "") -> Timeline:
    """Write a conversation of that many prompts with the mark, with a recorded context behind every tenth."""
    timeline = await Timeline.open(store, conversation)
    for number in range(prompts):
        await timeline.append(UserPrompt(text=f"Write to {MARK}, {number}"))
        if number % 10 == 0:
            await timeline.render(system=system or f"You work for {conversation}.")
    return timeline


@asynccontextmanager
async def asked(store: PostgresStore) -> AsyncIterator[list[tuple[str, Sequence[Any]]]]:
    """Collect the statements of the store's next call."""
    found: list[tuple[str, Sequence[Any]]] = []
    pools = [store.database.parts.readers, store.database.parts.writers]
    for pool in pools:
        async with pool.lend() as connection:  # the one that is lent next as well
            connection.add_query_logger(lambda query: found.append((query.query, query.args)))
    yield found


@asynccontextmanager
async def beside(url: str) -> AsyncIterator[Any]:
    """Open a connection past the store, on its schema."""
    settings = {"search_path": schema_of(url)}
    connection: Any = await asyncpg.connect(without(url, "schema"), server_settings=settings)
    try:
        yield connection
    finally:
        await connection.close()


async def waiting(connection: Any, number: int) -> None:
    """Wait until that many transactions wait for a lock."""
    while await connection.fetchval(_WAITING) < number:  # noqa: ASYNC110 - the server has no event to wait for
        await asyncio.sleep(0.01)


async def test_many_places_are_redacted_by_as_many_statements_as_few(postgres_url: str) -> None:
    """Of a fork as well, which shares them."""
    times = []
    async with await PostgresStore.open(postgres_url) as store:
        for conversation, places in (("few", 5), ("many", 60)):
            timeline = await prompted(store, conversation, 60)
            await timeline.fork(conversation=f"fork of {conversation}")
            assert [hit async for hit in store.search("write")]
            blocks = [item.block.path for item in timeline.window.items][:places]
            addresses = [f"@{item.version}" for item in timeline.window.items][:places]
            assert blocks
            async with asked(store) as statements:
                report = await redact(store, conversation, addresses, "asked for", text=MARK)
            assert report.reached["payloads"] == places
            times.append(len(statements))
    assert times[1] <= times[0], times


async def test_the_words_of_many_redacted_blocks_leave_the_index_by_one_statement(postgres_url: str) -> None:
    """Where the index comes by their redactions later than by the blocks."""
    async with await PostgresStore.open(postgres_url) as store:
        timeline = await prompted(store, "c", 40)
        await redact(store, "c", [f"@{item.version}" for item in timeline.window.items], "asked for")
        async with asked(store) as statements:
            assert not [hit async for hit in store.search("write")]
    assert len([text for text, _ in statements if text.startswith("DELETE FROM search_index")]) <= 2


@pytest.mark.parametrize("what", ["erase", "redact"])
async def test_appends_that_store_a_text_wait_for_no_reading_of_the_log(postgres_url: str, what: str) -> None:
    """The lock of the texts holds up those of all tenants: what is behind it reads what came since alone."""
    system = f"You write to {MARK}."
    async with await PostgresStore.open(postgres_url) as store, beside(postgres_url) as other:
        await prompted(store, "other", 300)
        await prompted(store, "c", 20, system=system)
        async with asked(store) as statements:
            if what == "erase":
                await store.erase("c", reason="asked for")
            else:
                await redact(store, "c", ["@2"], "asked for", text=MARK)
        locked = next(number for number, (text, _) in enumerate(statements) if text.startswith("LOCK TABLE stored"))
        behind = [(text, given) for text, given in statements[locked:] if "regexp_matches" in text]
        assert behind
        for text, given in behind:
            async with other.transaction():
                await other.execute(
                    "INSERT INTO stored_values (hash, text) SELECT unnest($1::text[]), '' ON CONFLICT DO NOTHING",
                    given[1],
                )
                plan = json.loads(await other.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", *given))[0]["Plan"]
            assert rows_read(plan) < 20, text
        assert not await other.fetchval("SELECT count(*) FROM stored_values WHERE text LIKE '%jane%'")


def rows_read(plan: dict[str, Any]) -> int:
    """Return how many rows a plan read of the events."""
    own = plan.get("Relation Name", "").startswith("events")
    seen = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"] if own else 0
    return int(seen) + sum(map(rows_read, plan.get("Plans", ())))


async def test_a_text_that_is_named_while_an_erasure_waits_stays(postgres_url: str) -> None:
    """The log was read before: what came since is looked at, too."""
    async with await PostgresStore.open(postgres_url) as store, beside(postgres_url) as other:
        await prompted(store, "c", 1, system="You write cards.")
        late = await prompted(store, "late", 1, system="Another one.")
        async with other.transaction():
            await other.execute("SELECT FROM conversations WHERE id = 'c' FOR UPDATE")
            erasing = asyncio.create_task(store.erase("c", reason="asked for"))
            async with beside(postgres_url) as looking:
                await waiting(looking, 1)
            await late.render(system="You write cards.")
        await erasing
        assert await other.fetchval("SELECT count(*) FROM stored_values WHERE text LIKE '%write cards%'") == 1
        assert (await late.verify()).ok


async def test_a_redaction_and_an_erasure_do_not_wait_for_each_other(postgres_url: str) -> None:
    """Both take the lock of what is made of the log, and the turn, in one order: the server ends neither."""
    async with await PostgresStore.open(postgres_url) as store, beside(postgres_url) as other:
        await prompted(store, "a", 2)
        await prompted(store, "b", 2)
        assert [hit async for hit in store.search("write")]
        async with beside(postgres_url) as looking:
            async with other.transaction():
                await other.execute("LOCK TABLE settings IN EXCLUSIVE MODE")
                redacting = asyncio.create_task(redact(store, "a", "@2", "asked for"))
                await waiting(looking, 1)
                erasing = asyncio.create_task(store.erase("b", reason="asked for"))
                await waiting(looking, 2)
            while not await looking.fetchval("SELECT count(*) = 0 FROM pg_locks WHERE NOT granted"):
                blocked = await looking.fetch("SELECT pid, pg_blocking_pids(pid) FROM pg_locks WHERE NOT granted")
                circle = {pid: set(by) for pid, by in blocked}
                assert not [pid for pid, by in circle.items() if any(pid in circle.get(each, ()) for each in by)]
        await asyncio.gather(redacting, erasing)
