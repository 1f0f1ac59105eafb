from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import examples
from timeline.ports import Expected, Snapshot
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, fork

if TYPE_CHECKING:
    from timeline.ports import EventStore

Place: TypeAlias = tuple[str, int]
Copies: TypeAlias = dict[str, list[tuple[Place, str]]]
"""Each conversation as a list of its own: who appended each version, where, and at which path."""

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 12), st.integers(1, 3)), max_size=14)
"""Forks and appends: of which conversation, at which version, how many events."""


async def play_forks(store: EventStore, steps: list[tuple[bool, int, int, int]]) -> Copies:
    """Play forks and appends, and copy in lists what forks share."""
    await store.append("0", [block_event("0.1"), block_event("0.2")])
    copies: Copies = {"0": [(("0", 1), "0.1"), (("0", 2), "0.2")]}
    for forks, who, at, count in steps:
        parent = str(who % len(copies))
        name, shared = (str(len(copies)), copies[parent][: at % len(copies[parent]) + 1]) if forks else (parent, [])
        log = copies.setdefault(name, list(shared))
        events = []
        if forks:
            events.append(fork(parent, len(shared)))
            log.append(((name, len(log) + 1), ""))
        for version in range(len(log) + 1, len(log) + 1 + count):
            events.append(block_event(f"{name}.{version}"))
            log.append(((name, version), f"{name}.{version}"))
        await store.append(name, events, expected=Expected.NO_STREAM if forks else Expected.STREAM_EXISTS)
    return copies


async def check_forks(store: EventStore, copies: Copies) -> None:
    """Ask the store for everything that the lists say."""
    stems = [f"{name}." for name in copies]
    for name, log in copies.items():
        places = [place for place, _ in log]
        assert [(e.conversation, e.version) async for e in store.read(name, page=3)] == places
        assert [version for _, version in places] == list(range(1, len(log) + 1))
        half = range(1, len(log) + 1, 2)
        assert [(e.conversation, e.version) for e in await store.read_versions(name, half)] == places[::2]
        assert await store.paths_taken(name, stems) == {path for _, path in log} - {""}
        for place, path in log:
            found = await store.find(name, path)
            assert path == "" or (found is not None and (found.conversation, found.version) == place)
        start = len(log) // 2 + 1
        await store.append(
            name, [block_event("")], snapshot=Snapshot(version=len(log) + 1, window_start=start, blocks=(1,))
        )
        events = (await store.load_window(name)).events
        wanted = ([places[0]] if start > 1 else []) + places[start - 1 :] + [(name, len(log) + 1)]
        assert [(e.conversation, e.version) for e in events] == wanted


@settings(max_examples=examples(40), deadline=None)
@given(STEPS)
def test_a_fork_reads_as_a_copy_of_its_parent_would(steps: list[tuple[bool, int, int, int]]) -> None:
    """Whatever is forked of whatever, in both stores: events, versions, paths and windows are those of a copy."""

    async def play() -> None:
        with TemporaryDirectory() as folder:
            async with await SQLiteStore.open(Path(folder) / "agent.db", durability="normal") as store:
                await check_forks(store, await play_forks(store, steps))
        memory = MemoryStore()
        await check_forks(memory, await play_forks(memory, steps))

    asyncio.run(play())


async def test_a_long_line_of_forks_is_read_as_one_log(tmp_path: Path) -> None:
    """Two hundred forks, each of the one before: the newest reads through to the first."""
    async with await SQLiteStore.open(tmp_path / "agent.db", durability="normal") as store:
        await check_long_line(store)


async def check_long_line(store: EventStore) -> None:
    """Fork the fork of the fork, two hundred times."""
    await store.append("0", [block_event("p0")])
    for number in range(1, 200):
        await store.append(str(number), [fork(str(number - 1), 2 * number - 1), block_event(f"p{number}")])
    assert [e.version async for e in store.read("199")] == list(range(1, 400))
    found = await store.find("199", "p0")
    assert found is not None
    assert found.conversation == "0"
    assert len(await store.paths_taken("199", ["p"])) == 200
