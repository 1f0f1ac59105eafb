from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from timeline.errors import ConversationErased, VersionConflict
from timeline.ports import Appended, Expected
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event, events, fork

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

import pytest


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    """Open a store in a schema of its own."""
    async with await PostgresStore.open(postgres_url) as store:
        yield store


async def test_many_conversations_are_opened_by_one_transaction(store: PostgresStore) -> None:
    """They are listed in the order in which they came, and each continues."""
    names = [f"c{number}" for number in range(100)]
    placed = await asyncio.gather(*(store.append(name, events(2), expected=Expected.NO_STREAM) for name in names))
    assert [(each.first_version, each.version) for each in placed] == [(1, 2)] * 100
    assert store.figures.groups <= 3
    assert [info.id async for info in store.conversations()] == names
    assert [event.conversation async for event in store.read_all()] == [name for name in names for _ in range(2)]
    assert (await store.append("c7", events(1), expected=2)).version == 3


async def test_of_those_that_are_opened_together_each_is_accepted_or_refused_for_itself(store: PostgresStore) -> None:
    """One exists, one was erased, one comes twice, one is a fork of another that comes before it."""
    await store.append("there", events(1))
    await store.append("gone", events(1))
    await store.erase("gone")
    outcomes = await asyncio.gather(
        store.append("new", events(2), expected=0),
        store.append("there", events(1), expected=Expected.NO_STREAM),
        store.append("gone", events(1)),
        store.append("twice", events(1), expected=Expected.NO_STREAM),
        store.append("twice", events(1), expected=Expected.NO_STREAM),
        store.append("fork", [fork("there", 1), block_event()]),
        store.append("nobody", events(1), expected=Expected.STREAM_EXISTS),
        return_exceptions=True,
    )
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds[:4] == [Appended, VersionConflict, ConversationErased, Appended]
    assert kinds[4:] == [VersionConflict, Appended, VersionConflict]
    held = {info.id: info.version async for info in store.conversations()}
    assert held == {"there": 1, "new": 2, "twice": 1, "fork": 3}


async def test_two_stores_that_open_the_same_conversations_open_each_once(
    store: PostgresStore, postgres_url: str
) -> None:
    """One of them is first for each; the other's append is refused, or comes behind."""
    names = [f"c{number}" for number in range(40)]
    async with await PostgresStore.open(postgres_url) as other:
        done = await asyncio.gather(
            *(each.append(name, events(1), expected=Expected.NO_STREAM) for name in names for each in (store, other)),
            return_exceptions=True,
        )
    assert sum(isinstance(outcome, Appended) for outcome in done) == 40
    assert sum(isinstance(outcome, VersionConflict) for outcome in done) == 40
    assert [info.version async for info in store.conversations()] == [1] * 40
