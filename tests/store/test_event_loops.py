"""A store used from another event loop than its own, and `timeline.sync` from any thread."""

from __future__ import annotations

import asyncio
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from timeline import Timeline, sync
from timeline.blocks import UserPrompt
from timeline.errors import WrongEventLoop
from timeline.ports import EventStore
from timeline.store import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

CALLS: dict[str, Callable[[Any], Any]] = {
    "append": lambda store: store.append("a", events(1)),
    "read": lambda store: _all(store.read("a")),
    "read_versions": lambda store: store.read_versions("a", [1]),
    "find": lambda store: store.find("a", "p1"),
    "paths_taken": lambda store: store.paths_taken("a", ["p"]),
    "known_ids": lambda store: store.known_ids("a", []),
    "load_window": lambda store: store.load_window("a"),
    "info": lambda store: store.info("a"),
    "conversations": lambda store: _all(store.conversations()),
    "recent_conversations": lambda store: _all(store.recent_conversations()),
    "conversation_count": lambda store: store.conversation_count(),
    "read_all": lambda store: _all(store.read_all()),
    "head": lambda store: store.head(),
    "values": lambda store: store.values([]),
    "digests": lambda store: _all(store.digests()),
    "facts": lambda store: _all(store.facts()),
    "fact_record": lambda store: store.fact_record("a"),
    "fact_reach": lambda store: store.fact_reach(),
    "search": lambda store: _all(store.search("word")),
    "retention": lambda store: store.retention(),
    "set_retention": lambda store: store.set_retention("window"),
    "remove": lambda store: store.remove("a"),
    "remove_values": lambda store: store.remove_values(),
    "shrink": lambda store: store.shrink(),
    "forks": lambda store: store.forks("a"),
    "rewrite": lambda store: store.rewrite([]),
    "erase": lambda store: store.erase("a"),
    "rehearse": lambda store: store.rehearse(["a"]),
    "take_lease": lambda store: store.take_lease("runner", datetime.now(UTC), datetime.now(UTC)),
    "scavenged": lambda store: store.scavenged("a"),
    "load_base": lambda store: store.load_base("a"),
    "chain_head": lambda store: store.chain_head("a"),
    "check_listed": lambda store: store.check_listed(),
    "chained": lambda store: _all(store.chained("a")),
    "read_written": lambda store: _all(store.read_written("a")),
    "examine": lambda store: store.examine(),
    "mend": lambda store: store.mend(),
    "load_waypoint": lambda store: store.load_waypoint("a", 1),
    "waypoints": lambda store: store.waypoints("a"),
    "replace_waypoints": lambda store: store.replace_waypoints("a", []),
    "replace_snapshot": lambda store: store.replace_snapshot("a", None),
    "aclose": lambda store: store.aclose(),
}
"""Every method of a store."""


async def _all(items: Any) -> list[Any]:
    return [item async for item in items]


def _elsewhere(work: Callable[[], Awaitable[Any]]) -> Any:
    """Run work in an event loop of another thread, and wait for it, not for ever."""

    async def run() -> Any:
        return await asyncio.wait_for(work(), 10)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run()).result(20)


def test_every_method_of_a_store_is_tried() -> None:
    """What is added to the protocol is added to the table."""
    methods = {name for name, _ in inspect.getmembers(EventStore, inspect.isfunction) if not name.startswith("_")}
    assert methods == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["sqlite", "memory"])
async def test_a_store_refuses_another_event_loop_at_once(tmp_path: Path, kind: str, name: str) -> None:
    """Every method raises and says the cure; in its own loop the store goes on."""
    store = MemoryStore() if kind == "memory" else await SQLiteStore.open(tmp_path / "agent.db")
    async with store:
        await store.append("a", events(1))
        with pytest.raises(WrongEventLoop, match=r"another event loop.*Open a store in each.*timeline\.sync"):
            await asyncio.to_thread(_elsewhere, lambda: CALLS[name](store))
        assert (await store.append("a", events(1))).version == 2


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
async def test_a_conversation_refuses_another_event_loop_while_its_own_appends(tmp_path: Path, kind: str) -> None:
    """Appends of two loops to one timeline waited for each other for ever."""
    store = MemoryStore() if kind == "memory" else await SQLiteStore.open(tmp_path / "agent.db")
    async with store:
        timeline = await Timeline.open(store, "c")
        follower = timeline.list_follower()
        await follower.take([])

        async def crowd() -> None:
            await asyncio.gather(*(timeline.append(UserPrompt(text=f"{n}")) for n in range(100)))

        calls: list[Callable[[], Awaitable[Any]]] = [
            crowd,
            timeline.render,
            timeline.catch_up,
            timeline.compact,
            lambda: follower.take([]),
            lambda: _all(timeline.lifecycle(after=0)),
        ]
        for call in calls:
            own = asyncio.create_task(crowd())
            with pytest.raises(WrongEventLoop):
                await asyncio.to_thread(_elsewhere, call)
            await own
        assert len(timeline.window.items) == 100 * len(calls)


def test_a_store_in_memory_goes_on_in_the_next_event_loop() -> None:
    """Nothing in it waits: when a loop is closed, another may have it."""
    store = MemoryStore()
    for version in (1, 2):
        assert asyncio.run(store.append("a", events(1))).version == version


def test_a_blocking_store_works_from_any_thread(tmp_path: Path) -> None:
    """From threads of all kinds at the same time, and after the one that opened it has ended."""
    opened: list[Any] = []
    entering = sync.open_store(tmp_path / "agent.db")
    maker = threading.Thread(target=lambda: opened.append(entering.__enter__()))
    maker.start()
    maker.join()
    [store] = opened
    timeline = sync.Timeline.open(store, "c")

    def work(name: str) -> None:
        for number in range(20):
            timeline.append(UserPrompt(text=f"{name} {number}"))

    async def inside_a_loop() -> None:
        work("loop")

    threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, [f"pool {n}" for n in range(4)]))
    asyncio.run(inside_a_loop())
    for thread in threads:
        thread.join()
    assert len(timeline.window.items) == 9 * 20
    assert [event.version for event in store.read("c")] == list(range(1, 182))
    entering.__exit__(None, None, None)
