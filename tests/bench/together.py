"""Appending together: what 64 tasks append to one store, or timeline, against one task that appends alone."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from tests.bench.logs import POLICY
from tests.bench.rows import against
from tests.bench.tool_results import event
from timeline.blocks import UserPrompt
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.bench.rows import Row

TASKS = 64
APPENDS = 10 * TASKS
BAR = 6.0
BAR_APART = 3.0
"""For conversations of their own, each of which has its own pages of the indexes to write."""
NO_BAR_ABOVE = 15_000
"""Syncs a second above which a disk, or its cache, leaves nothing to share: then the processor is what is measured."""
PAIRS = 31
TEXT = "What a tool said, or a model: a line or two of it. " * 4


def rows() -> Iterator[Row]:
    """Measure how many times faster 64 tasks append, to a timeline, to a conversation, and each to its own."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        store = runner.run(SQLiteStore.open(Path(folder) / "bench.db", durability="full"))
        numbers, before = count(1), syncs(Path(folder))
        alone = partial(_append, runner, store, numbers, 1, lambda _: "alone")
        shared = partial(_append, runner, store, numbers, TASKS, lambda _: "shared")
        own = partial(_append, runner, store, numbers, TASKS, lambda task: f"task {task}")
        blocks, block = (partial(_append_blocks, runner, store, numbers, tasks) for tasks in (TASKS, 1))
        made = [
            _row(f"{TASKS} tasks that append to one timeline", blocks, block, BAR),
            _row(f"{TASKS} tasks that append to one conversation", shared, alone, BAR),
            _row(f"{TASKS} tasks, each with a conversation of its own", own, alone, BAR_APART),
        ]
        each = (before + syncs(Path(folder))) / 2
        runner.run(store.aclose())
    yield from (row._replace(applies=each <= NO_BAR_ABOVE) for row in made)


def _row(what: str, together: Callable[[], float], alone: Callable[[], float], bar: float) -> Row:
    what = f"{what}, single events, full durability, speed"
    return against("Appends", what, "one task", (together, alone), bar, least=True, most=PAIRS)


def _append(
    runner: asyncio.Runner, store: SQLiteStore, numbers: Iterator[int], tasks: int, name: Callable[[int], str]
) -> float:
    """Append as many events whatever the number of tasks; return the seconds."""
    made = [[event(next(numbers), TEXT) for _ in range(APPENDS // tasks)] for _ in range(tasks)]

    async def work(task: int) -> None:
        for each in made[task]:
            await store.append(name(task), [each])

    async def all_tasks() -> float:
        start = perf_counter()
        await asyncio.gather(*map(work, range(tasks)))
        return perf_counter() - start

    return runner.run(all_tasks())


def _append_blocks(runner: asyncio.Runner, store: SQLiteStore, numbers: Iterator[int], tasks: int) -> float:
    """Append as many blocks to a new timeline whatever the number of tasks; return the seconds."""

    async def all_tasks() -> float:
        timeline = await Timeline.open(store, f"timeline {next(numbers)}", policy=POLICY)

        async def work(task: int) -> None:
            for number in range(APPENDS // tasks):
                await timeline.append(UserPrompt(text=f"{task} {number} {TEXT}"))

        start = perf_counter()
        await asyncio.gather(*map(work, range(tasks)))
        return perf_counter() - start

    return runner.run(all_tasks())


def syncs(folder: Path) -> float:
    """Return how often a second a page can be written and made sure of, in a file that has its size."""
    file = os.open(folder / "syncs", os.O_CREAT | os.O_RDWR)
    try:
        page = os.urandom(4096)
        os.write(file, page * 256)
        os.fsync(file)
        start, done = perf_counter(), 0
        while (taken := perf_counter() - start) < 0.3:
            os.pwrite(file, page, 4096 * (done % 256))
            os.fdatasync(file)
            done += 1
    finally:
        os.close(file)
    return done / taken
