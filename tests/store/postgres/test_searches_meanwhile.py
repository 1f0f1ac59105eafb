"""A search asks several statements, and others index and erase texts between two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.store.postgres.search import PostgresSearch
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event

if TYPE_CHECKING:
    import pytest


async def hits(store: PostgresStore) -> list[tuple[str, float]]:
    """Return where a word is found, with its ranks."""
    return [(hit.conversation, hit.rank) async for hit in store.search("word")]


async def test_a_search_is_answered_while_others_index_texts_with_its_word(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More texts then hold the word than there were in all when they were counted."""
    async with await PostgresStore.open(postgres_url) as store, await PostgresStore.open(postgres_url) as other:
        await store.append("a", [block_event(text="a word")])
        assert await hits(store)
        holding = PostgresSearch._holding

        async def behind_the_totals(self: PostgresSearch, *told: Any) -> int:
            monkeypatch.setattr(PostgresSearch, "_holding", holding)
            for number in range(5):
                await other.append(f"b{number}", [block_event(text="a word")])
            assert len(await hits(other)) == 6
            return await holding(self, *told)

        monkeypatch.setattr(PostgresSearch, "_holding", behind_the_totals)
        ((id_, rank),) = await hits(store)
        assert id_ == "a"
        assert rank > 0


async def test_a_search_is_answered_while_others_erase_what_it_finds(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No text is left when they are counted."""
    async with await PostgresStore.open(postgres_url) as store, await PostgresStore.open(postgres_url) as other:
        await store.append("a", [block_event(text="a word")])
        assert await hits(store)
        found = PostgresSearch._found

        async def before_the_totals(
            self: PostgresSearch, *told: Any, several: bool
        ) -> dict[int, tuple[int, list[int]]]:
            answer = await found(self, *told, several=several)
            monkeypatch.setattr(PostgresSearch, "_found", found)
            await other.erase("a")
            return answer

        monkeypatch.setattr(PostgresSearch, "_found", before_the_totals)
        assert await hits(store) == []
