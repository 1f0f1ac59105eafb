"""The contract of closing and of cancellation: an append is never half written, a store never unusable."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from timeline.errors import StoreClosed, VersionConflict
from timeline.frozen import sha256_hex
from timeline.ports import Expected, Snapshot

from .base import ContractBase
from .cancelling import cancelled_at
from .samples import START, block_event, events, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from timeline.ports import EventStore


async def _finished(call: Coroutine[Any, Any, Any], suspension: int) -> bool:
    """Cancel a call at a suspension, in a task of its own; return whether it ended before that."""

    async def run() -> None:
        await cancelled_at(call, suspension)

    (result,) = await asyncio.gather(asyncio.create_task(run()), return_exceptions=True)
    if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
        raise result
    return result is None


async def _all(store: EventStore) -> None:
    await versions(store, "a", page=1)
    _ = [e async for e in store.read_all(page=1)]
    _ = [info async for info in store.conversations(page=1)]
    await store.load_window("a")
    await store.find("a", "p")
    await store.read_versions("a", [1, 2])
    await store.known_ids("a", [block_event().id])
    await store.paths_taken("a", ["p"])
    await store.values([sha256_hex("x")])
    await _digests(store)
    await _found(store)


class FaultContract(ContractBase):
    """Cancelled calls, concurrent calls, and calls on a closed store."""

    async def test_an_append_cancelled_anywhere_is_whole_or_not_there(self, store: EventStore) -> None:
        """For every n: cancelled at its n-th suspension, the append wrote all or nothing, and the store still works."""
        size = 0
        for suspension in count(1, self.every):
            written = [block_event(f"{suspension}.{number}") for number in range(5)]
            done = await _finished(store.append("a", written), suspension)
            again = await store.append("a", written)
            assert (again.first_version, again.version) == (size + 1, size + 5)
            size += 5
            assert await versions(store, "a") == list(range(1, size + 1))
            if done:
                return

    async def test_a_read_cancelled_anywhere_leaves_a_usable_store(self, store: EventStore) -> None:
        """For every n: a read cancelled at its n-th suspension blocks no append and no other read."""
        snapshot = Snapshot(version=2, window_start=2, blocks=(1,))
        await store.append("a", [block_event("p"), block_event("q")], snapshot=snapshot)
        other = events(1)
        for suspension in count(1, self.every):
            done = await _finished(_all(store), suspension)
            assert (await store.append("b", other)).version == 1
            assert await versions(store, "a") == [1, 2]
            if done:
                return

    async def test_scavenging_cancelled_anywhere_leaves_a_usable_store(self, store: EventStore) -> None:
        """For every n: cancelled at its n-th suspension, what is left is readable, and a later run ends it."""
        for suspension in count(1, self.every_of_scavenging):
            name = str(suspension)
            written = [block_event(f"{name}.{number}", "x" * 3_000) for number in range(5)]
            await store.append(name, written, snapshot=Snapshot(version=5, window_start=5, blocks=(2,)))
            done = await _finished(_scavenged(store, name), suspension)
            assert [e.version for e in (await store.load_window(name)).events] == [2, 5]
            await _scavenged(store, name)
            assert await versions(store, name) == [2, 5]
            if done:
                return

    async def test_a_close_cancelled_anywhere_still_closes(self, tmp_path: Path) -> None:
        """For every n: a close that was cancelled and called again closes the store."""
        for suspension in count(1, self.every):
            folder = tmp_path / str(suspension)
            folder.mkdir()
            store = await self.make_store(folder)
            await store.append("a", events(1))
            done = await _finished(store.aclose(), suspension)
            await store.aclose()
            with pytest.raises(StoreClosed):
                await store.info("a")
            if done:
                return

    async def test_of_many_who_expect_the_same_version_one_wins(self, store: EventStore) -> None:
        """Of concurrent appends at one exact version one is written, each other gets a conflict."""
        for version in range(0, 10, 2):
            attempts = [store.append("a", events(2), expected=version) for _ in range(8)]
            results = await asyncio.gather(*attempts, return_exceptions=True)
            assert sum(isinstance(result, VersionConflict) for result in results) == 7
            assert (await store.info("a")).version == version + 2

    async def test_concurrent_appends_do_not_mix(self, store: EventStore) -> None:
        """Appends without an expected version are all written, each in one piece."""
        batches = [events(7, text=str(number)) for number in range(12)]
        places = await asyncio.gather(*(store.append("a", batch, expected=Expected.ANY) for batch in batches))
        read = [e async for e in store.read("a")]
        assert [e.version for e in read] == list(range(1, 7 * 12 + 1))
        for batch, place in zip(batches, places, strict=True):
            assert [e.id for e in read[place.first_version - 1 : place.version]] == [e.id for e in batch]

    async def test_a_closed_store_says_that_it_is_closed(self, store: EventStore) -> None:
        """Every call but another close raises `StoreClosed`."""
        await store.append("a", events(3))
        reading = store.read("a", page=1)
        await anext(reading)
        await store.aclose()
        await store.aclose()
        calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
            lambda: store.append("a", events(1)),
            lambda: versions(store, "a"),
            lambda: store.read_versions("a", [1]),
            lambda: store.find("a", "p"),
            lambda: store.paths_taken("a", ["p"]),
            lambda: store.known_ids("a", [block_event().id]),
            lambda: store.load_window("a"),
            lambda: store.info("a"),
            lambda: store.values(["0" * 64]),
            lambda: store.remove("a"),
            store.remove_values,
            store.shrink,
            lambda: store.rehearse(["a"]),
            lambda: store.scavenged("a"),
            lambda: store.load_base("a"),
            lambda: store.forks("a"),
            lambda: store.rewrite([]),
            lambda: store.erase("a"),
            store.retention,
            lambda: store.set_retention("window"),
            lambda: store.take_lease("x", START, START),
            lambda: _collect_all(store),
            lambda: _collect_conversations(store),
            lambda: _digests(store),
            lambda: _found(store),
            reading.__anext__,  # type: ignore[list-item] # an awaitable is all that is needed
        ]
        for call in calls:
            with pytest.raises(StoreClosed):
                await call()

    async def test_closing_finishes_what_was_begun(self, tmp_path: Path) -> None:
        """An append that is under way when the store is closed is written and answered."""
        store = await self.make_store(tmp_path)
        append = asyncio.create_task(store.append("a", events(50)))
        await asyncio.sleep(0)
        await store.aclose()
        assert (await append).version == 50


async def _scavenged(store: EventStore, conversation: str) -> None:
    await store.rehearse([conversation])
    await store.remove(conversation, most=2)
    await store.remove(conversation)
    await store.remove_values()
    await store.shrink()


async def _collect_all(store: EventStore) -> None:
    _ = [e async for e in store.read_all()]


async def _collect_conversations(store: EventStore) -> None:
    _ = [info async for info in store.conversations()]


async def _digests(store: EventStore) -> None:
    _ = [digest async for digest in store.digests(page=1)]


async def _found(store: EventStore) -> None:
    _ = [found async for found in store.search("hello", page=1)]
