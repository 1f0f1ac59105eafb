"""The contract of a database that several stores share, that is opened again, or that is restored from a backup."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from timeline.errors import DuplicateEvent, PathTaken, VersionConflict
from timeline.frozen import sha256_hex
from timeline.ports import Expected, Snapshot

from .base import ContractBase
from .samples import block_event, events, versions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from timeline.events import Event
    from timeline.ports import EventStore

WRITERS, APPENDS, CONVERSATIONS = 12, 12, 4
_PATIENCE = 60.0


class SharingContract(ContractBase):
    """Tails while others write, two stores on one database, and what a backup is restored to."""

    async def test_a_tail_sees_each_event_once_while_others_write(self, store: EventStore, tmp_path: Path) -> None:
        """Positions are taken and committed in one order: what is behind a checkpoint was not before it.

        Half of the writers have another store on the same database, where there is one.
        """
        async with _beside(await self.open_again(tmp_path), store) as other:
            stores = (store, other)
            writing = [
                asyncio.create_task(_write(stores[n % 2], f"conversation {n % CONVERSATIONS}", str(n)))
                for n in range(WRITERS)
            ]
            seen = [event async for event in _tail(store, writing)]
        assert sum(event.version == 1 for event in seen) == CONVERSATIONS
        assert len({event.id for event in seen}) == len(seen) == await _written(writing)
        assert all(one.position < two.position for one, two in itertools.pairwise(seen))
        for number in range(CONVERSATIONS):
            own = [event.version for event in seen if event.conversation == f"conversation {number}"]
            assert own == list(range(1, len(own) + 1))
        assert [event.id async for event in store.read_all()] == [event.id for event in seen]

    async def test_two_stores_on_one_database_see_one_another(self, store: EventStore, tmp_path: Path) -> None:
        """What one has acknowledged, the other reads: events, values, the window and the end of the log."""
        async with self._second(tmp_path) as other:
            snapshot = Snapshot(version=3, window_start=3, blocks=(1,))
            text = {sha256_hex("text"): "text"}
            await store.append("a", [block_event("a.1"), *events(2)], values=text, snapshot=snapshot)
            assert await versions(other, "a") == [1, 2, 3]
            assert await other.load_window("a") == await store.load_window("a")
            assert await other.values(text) == text
            appended = await other.append("b", events(1))
            # The writer's own first: it waits for what others write on the same server, in whichever database.
            assert await other.head() == appended.position
            assert await store.head() == appended.position
            assert [info.id async for info in store.conversations()] == ["a", "b"]
            assert [e.id async for e in store.read_all()] == [e.id async for e in other.read_all()]
            assert await store.chain_head("b") == await other.chain_head("b")

    async def test_two_stores_take_turns_in_one_conversation(self, store: EventStore, tmp_path: Path) -> None:
        """Neither writes by what it remembers of the log: versions go on from the last append, also another store's."""
        async with self._second(tmp_path) as other:
            for number, one in enumerate([store, other, other, store, store, other]):
                assert (await one.append("a", events(2))).version == 2 * number + 2
            assert (await store.append("a", events(1), expected=12)).version == 13
            with pytest.raises(VersionConflict) as conflict:
                await other.append("a", events(1), expected=12)
            assert conflict.value.actual == 13
            assert await versions(store, "a") == list(range(1, 14))

    async def test_what_one_store_took_is_taken_in_the_other(self, store: EventStore, tmp_path: Path) -> None:
        """Paths and event ids are the database's, and an append that both repeat is written once."""
        async with self._second(tmp_path) as other:
            written = [block_event("a.1"), block_event("a.2")]
            first = await store.append("a", written)
            again = await other.append("a", written)
            assert (again.repeated, again.first_version, again.version) == (True, first.first_version, first.version)
            with pytest.raises(PathTaken):
                await other.append("a", [block_event("a.1")])
            with pytest.raises(DuplicateEvent):
                await other.append("a", [written[1], block_event("a.3")])
            assert await versions(other, "a") == [1, 2]

    async def test_of_two_stores_that_expect_the_same_version_one_wins(self, store: EventStore, tmp_path: Path) -> None:
        """Of concurrent appends at one exact version, through both, one is written and each other gets a conflict."""
        async with self._second(tmp_path) as other:
            for version in range(0, 12, 2):
                attempts = [one.append("a", events(2), expected=version) for one in (store, other) * 3]
                results = await asyncio.gather(*attempts, return_exceptions=True)
                assert sum(isinstance(result, VersionConflict) for result in results) == 5
                assert (await other.info("a")).version == (await store.info("a")).version == version + 2

    async def test_a_closed_store_opens_again_as_it_was(self, store: EventStore, tmp_path: Path) -> None:
        """Everything acknowledged is there, and appends go on behind it."""
        snapshot = Snapshot(version=2, window_start=2)
        await store.append("a", [block_event("a.1"), *events(1)], snapshot=snapshot)
        before = [e async for e in store.read_all()]
        await store.aclose()
        async with self._second(tmp_path) as again:
            assert [e async for e in again.read_all()] == before
            assert (await again.load_window("a")).snapshot == snapshot
            assert await again.head() == before[-1].position
            assert (await again.append("a", events(1), expected=2)).position > before[-1].position

    async def test_a_restored_store_goes_on_behind_what_was_saved(self, store: EventStore, tmp_path: Path) -> None:
        """It has the events at their positions, and the next one comes behind all of them: checkpoints still hold."""
        for number in range(6):
            await store.append("ab"[number % 2], [block_event(f"{number}"), *events(2)])
        saved = [e async for e in store.read_all()]
        folder = tmp_path / "restored"
        folder.mkdir()
        restored = await self.restore(tmp_path, folder)
        if restored is None:
            pytest.skip("this store has no backup of its own")
        async with _closing(restored):
            await store.append("a", events(1))
            assert [e async for e in restored.read_all()] == saved
            assert await restored.head() == saved[-1].position
            appended = await restored.append("b", events(2), expected=9)
            assert (appended.first_version, appended.version) == (10, 11)
            assert [e.version async for e in restored.read_all(after=saved[-1].position)] == [10, 11]
            assert await restored.chain_head("a") == (await _link(restored, "a", 9))
            with pytest.raises(PathTaken):
                await restored.append("a", [block_event("0")])
            await restored.append("c", events(1), expected=Expected.NO_STREAM)
        assert await versions(store, "b") == list(range(1, 10))

    @asynccontextmanager
    async def _second(self, folder: Path) -> AsyncIterator[EventStore]:
        other = await self.open_again(folder)
        if other is None:
            pytest.skip("stores of this kind share no database")
        async with _closing(other):
            yield other


async def _write(store: EventStore, conversation: str, name: str) -> int:
    for number in range(APPENDS):
        await store.append(conversation, events(1 + number % 3, text=name))
        await asyncio.sleep(0)
    return sum(1 + number % 3 for number in range(APPENDS))


async def _written(writing: Sequence[asyncio.Task[int]]) -> int:
    return sum(await asyncio.gather(*writing))


async def _tail(store: EventStore, writing: Sequence[asyncio.Task[int]]) -> AsyncIterator[Event]:
    """Read behind the last event again and again, until the writers have ended and all that they wrote was there."""
    after = count = 0
    async with asyncio.timeout(_PATIENCE):
        while True:
            end = sum(task.result() for task in writing) if all(task.done() for task in writing) else None
            async for event in store.read_all(after=after, page=7):
                yield event
                after, count = event.position, count + 1
            if end is not None and count >= end:
                return
            await asyncio.sleep(0)


async def _link(store: EventStore, conversation: str, version: int) -> bytes | None:
    chained = store.chained(conversation, after=version - 1)
    return (await anext(aiter(chained))).link


@asynccontextmanager
async def _closing(store: EventStore) -> AsyncIterator[EventStore]:
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def _beside(other: EventStore | None, store: EventStore) -> AsyncIterator[EventStore]:
    """Give the other store, closed afterwards; the same one where there is no other."""
    if other is None:
        yield store
        return
    async with _closing(other):
        yield other
