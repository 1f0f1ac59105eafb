"""Benchmarks of `Timeline`: what grows with the window, and what must not grow with the history."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING

from tests.bench.logs import POLICY, START, blocks, conversation, recorded_text, sized_blocks
from tests.bench.rows import LEAST_PAIRS, against, cpu, growth
from timeline import policies
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.bench.rows import Row
    from timeline.ports import EventStore

LOOP = 140
"""Blocks of a loop of renders, many times its limit."""
DRY = 8.0
"""A dry run in a loop hides and compacts anew what all before it did; a recorded one finds it decided."""
SEEN = 9
"""One in so many dry runs of a loop is measured beside the recorded render of the same log: that is what it shows."""
_TEXT = 200_000
"""Characters that blocks of recorded sizes are cut from."""


def rows() -> Iterator[Row]:
    """Measure all rows here."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        store = runner.run(SQLiteStore.open(Path(folder) / "bench.db"))
        for part in (_history, _window, _verify, _dry_runs, _previews):
            yield from part(runner, store)
        runner.run(store.aclose())


def _history(runner: asyncio.Runner, store: EventStore) -> Iterator[Row]:
    """Rendering and opening behind a long history against behind a short one, with the same window."""
    long = runner.run(conversation(store, "long", history=200_000, window=400))
    short = runner.run(conversation(store, "short", history=2_000, window=400))
    steps = (partial(_step, runner, long), partial(_step, runner, short))
    yield against("A step", "append and render behind 200,000 events of history", "behind 2,000", steps, 1.5)
    openings = (partial(_open, runner, store, "long"), partial(_open, runner, store, "short"))
    yield against("Opening", "opening behind 200,000 events of history", "behind 2,000", openings, 1.5)


def _window(runner: asyncio.Runner, store: EventStore) -> Iterator[Row]:
    sizes = (1_000, 2_500, 5_000, 10_000)
    timelines = {size: runner.run(conversation(store, f"window {size}", history=0, window=size)) for size in sizes}
    steps = {size: partial(_step, runner, timeline) for size, timeline in timelines.items()}
    yield growth("A step", "append and render, by the blocks of the window", steps, 1.0)


def _verify(runner: asyncio.Runner, store: EventStore) -> Iterator[Row]:
    rounds = (40, 80, 160, 320)
    for size in rounds:
        runner.run(_recorded(store, f"verify {size}", size))
    works = {10 * size: partial(_timed, runner, partial(_verified, store, f"verify {size}")) for size in rounds}
    yield growth("Looking back", "`verify`, by the blocks appended", works, 1.2)


def _dry_runs(runner: asyncio.Runner, store: EventStore) -> Iterator[Row]:
    """A loop of dry runs, far beyond the trigger: each plans from the whole log, where a recorded render goes on."""
    names = count()

    def loop(record: bool) -> float:  # noqa: FBT001 - what the application gives
        return _timed(runner, partial(_rendered, store, f"loop {next(names)}", record))

    works = (partial(loop, False), partial(loop, True))
    what, limit = f"{LOOP} appends, each with a dry run", "with a recorded render"
    yield against("A step", what, limit, works, DRY, most=LEAST_PAIRS)


def _previews(runner: asyncio.Runner, store: EventStore) -> Iterator[Row]:
    """Dry runs of a loop against the renders that they show: of the same log, which records for the first time."""
    names = count()

    def looked() -> float:
        return runner.run(_looked_ahead(store, f"ahead {next(names)}"))

    def recorded() -> float:
        return runner.run(_recorded_there(store, f"there {next(names)}"))

    what = f"{LOOP // SEEN} dry runs of such a loop"
    yield against("A step", what, "the recorded renders of the same logs", (looked, recorded), 1.0, most=LEAST_PAIRS)


async def _looked_ahead(store: EventStore, id_: str) -> float:
    """Return the seconds of one in `SEEN` dry runs of a loop."""
    timeline, seconds = await _under_pressure(store, id_), 0.0
    for number, block in enumerate(sized_blocks(LOOP, first=0, text=recorded_text(_TEXT)), start=1):
        await timeline.append(block, now=START)
        began = process_time()
        await timeline.render(now=START, record=False)
        seconds += process_time() - began if number % SEEN == 0 else 0.0
    return seconds


async def _recorded_there(store: EventStore, id_: str) -> float:
    """Return the seconds of a recorded render of each of these logs, which nothing was rendered of before."""
    made, seconds = sized_blocks(LOOP, first=0, text=recorded_text(_TEXT)), 0.0
    for number in range(SEEN, LOOP + 1, SEEN):
        await (await _under_pressure(store, f"{id_}.{number}")).append(*made[:number], now=START)
        timeline = await _under_pressure(store, f"{id_}.{number}")
        began = process_time()
        await timeline.render(now=START)
        seconds += process_time() - began
    return seconds


async def _under_pressure(store: EventStore, id_: str) -> Timeline:
    return await Timeline.open(store, id_, policy=policies.balanced(max_tokens=8_000), now=START)


async def _rendered(store: EventStore, id_: str, record: bool) -> None:  # noqa: FBT001 - see above
    timeline = await _under_pressure(store, id_)
    text = recorded_text(_TEXT)
    for block in sized_blocks(LOOP, first=0, text=text):
        await timeline.append(block, now=START)
        await timeline.render(now=START, record=record)


async def _recorded(store: EventStore, id_: str, rounds: int) -> None:
    policy = policies.cut_point(max_tokens=16_000, counter="chars4")
    timeline = await Timeline.open(store, id_, policy=policy, now=START)
    for number in range(rounds):
        await timeline.append(*blocks(10, first=10 * number), now=START)
        await timeline.render(now=START)


async def _verified(store: EventStore, id_: str) -> None:
    timeline = await Timeline.open(store, id_, policy=POLICY)
    report = await timeline.verify()
    if not report.ok:
        raise AssertionError(report.problems)


def _step(runner: asyncio.Runner, timeline: Timeline) -> float:
    async def step() -> None:
        await timeline.append(*blocks(1, first=2 * timeline.version + 1), now=START)
        await timeline.render(system="You are an agent.", now=START)

    return _timed(runner, step)


def _open(runner: asyncio.Runner, store: EventStore, id_: str) -> float:
    return _timed(runner, lambda: Timeline.open(store, id_, policy=POLICY))


def _timed(runner: asyncio.Runner, work: Callable[[], Awaitable[object]]) -> float:
    async def done() -> None:
        await work()

    return cpu(lambda: runner.run(done()))
