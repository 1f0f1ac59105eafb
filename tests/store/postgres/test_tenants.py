from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.postgres import direct_url, with_query, without
from tests.store.postgres.test_contract_elsewhere import MAKE_ROLE, ROLE
from timeline.errors import ConversationNotFound, StoreError
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event, compaction, events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


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
