"""Benchmarks of growth: how verifying grows with a log, and what its past costs, as a multiple of opening it.

A slope is that of the straight line through four sizes, in the logarithms of size and CPU time: 1 is linear, 2 is
quadratic. ``TIMELINE_GROWTH`` is the number of events of the longest log; a million takes two minutes to write.
"""

from __future__ import annotations

import asyncio
import gc
import math
import os
import statistics
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any, Final

from tests.bench.logs import POLICY, START, blocks, extend
from tests.bench.pairs import median_ratio
from tests.bench.timelines import row
from timeline.blocks import RangeSummary
from timeline.events import CompactionCompleted, SummaryParts, WrittenBy, event_id
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from timeline.ports import EventStore

SIZES: Final = (1_000, 2_000, 4_000, 8_000)
SHORT: Final = 1_000
LONG: Final = int(os.environ.get("TIMELINE_GROWTH", "40000"))
CYCLE, KEPT = 600, 400
"""Blocks from one compaction to the next, and those that each leaves."""
TIMES: Final = 9


def run() -> list[dict[str, Any]]:
    """Return the rows of all benchmarks here."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        return [
            row("slope of verify, a render every 10 events and no compaction", runner.run(slope(uncompacted)), 1.2),
            row("slope of verify, an undo every 500 events", runner.run(slope(with_undos)), 1.2),
            row("verify with 20 undos / without", runner.run(_of_20_undos()), 1.2),
            *_of_the_past(runner, Path(folder)),
        ]


async def slope(make: Callable[[int], Awaitable[Timeline]], sizes: Sequence[int] = SIZES) -> float:
    """Return how the CPU time of `verify` grows with the size of a log."""
    points = []
    for size in sizes:
        timeline = await make(size)
        points.append((math.log(timeline.version), math.log(min([await _verifying(timeline) for _ in range(2)]))))
    return statistics.linear_regression(*zip(*points, strict=True)).slope


async def uncompacted(events: int) -> Timeline:
    """Make a conversation that is rendered and recorded every ten blocks, and never compacted."""
    timeline = await Timeline.open(MemoryStore(), "grows", policy=POLICY, now=START)
    for first in range(0, events, 10):
        await timeline.append(*blocks(10, first=first), now=START)
        await timeline.render(system="You are an agent.", now=START)
    return timeline


async def with_undos(events: int, *, undos: int | None = None) -> Timeline:
    """Make a conversation that is compacted every so many blocks; each compaction is undone, and made again."""
    count = events // 500 if undos is None else undos
    timeline = await Timeline.open(MemoryStore(), "undone", policy=POLICY, now=START)
    rounds = count or 20
    for number in range(rounds):
        await extend(timeline, events // rounds, first=number * (events // rounds))
        if count:
            await compact(timeline, f"su:undone.{number}", keep=20)
            await timeline.undo_compaction(now=START)
        await compact(timeline, f"su:made.{number}", keep=20)
    return timeline


async def cycles(store: EventStore, id_: str, events: int) -> Timeline:
    """Make a conversation of so many events that is compacted again and again, and has gone on since the last time."""
    timeline = await Timeline.open(store, id_, policy=POLICY, now=START)
    first = 0
    while timeline.version + KEPT < events:
        await extend(timeline, CYCLE, first=first)
        await compact(timeline, f"su:{id_}.{first}", keep=KEPT)
        first += CYCLE
    await extend(timeline, KEPT, first=first)
    return timeline


async def compact(timeline: Timeline, path: str, *, keep: int) -> None:
    """Compact all but the newest items, whatever these are."""
    window = timeline.window
    summary = RangeSummary(path=path, turn_id="turn_1", text="What was said before.", at=START)
    completed = CompactionCompleted(
        block=summary,
        tokens=5,
        counter="chars4",
        covers=window.covers_between(0, len(window.items) - keep),
        parts=SummaryParts(history=summary.text),
        before_tokens=100_000,
        after_tokens=5,
        round=window.rounds + 1,
        written_by=WrittenBy(summarizer="bench"),
    )
    await timeline.decide([completed], at=START, ids=[event_id(START)])


async def _verifying(timeline: Timeline) -> float:
    gc.collect()
    gc.freeze()  # what was there before is not walked by the collections that come meanwhile
    start = process_time()
    report = await timeline.verify()
    took = process_time() - start
    gc.unfreeze()
    if not report.ok:
        raise ValueError(report.problems)
    return took


async def _of_20_undos() -> float:
    plain, undone = await with_undos(SIZES[-1], undos=0), await with_undos(SIZES[-1], undos=20)
    ratios = [await _verifying(undone) / await _verifying(plain) for _ in range(3)]
    return statistics.median(ratios) * plain.version / undone.version


def _of_the_past(runner: asyncio.Runner, folder: Path) -> list[dict[str, Any]]:
    """Time what looks back, at versions over the whole log, beside opening it; each in a file of its own."""
    stores = {size: runner.run(SQLiteStore.open(folder / f"{size}.db")) for size in (SHORT, LONG)}
    timelines = {size: runner.run(cycles(store, "c", size)) for size, store in stores.items()}

    def timed(work: Callable[[], Awaitable[object]]) -> float:
        start = process_time()
        runner.run(_done(work))
        return process_time() - start

    def opened(size: int) -> float:
        return timed(lambda: Timeline.open(stores[size], "c", policy=POLICY))

    long = timelines[LONG]
    opening = statistics.median(opened(LONG) for _ in range(TIMES))
    versions = [1, *(long.version * part // TIMES for part in range(1, TIMES)), long.version - 1]
    at = [timed(partial(long.at, version)) / opening for version in versions]
    forks = [timed(partial(long.fork, at=version)) / opening for version in versions]
    rows = [
        row(
            f"opening {LONG:,} events / opening {SHORT:,}",
            median_ratio(partial(opened, LONG), partial(opened, SHORT), TIMES),
            1.2,
        ),
        row(f"at of the slowest of {len(at)} versions of {LONG:,} events / opening", max(at), 3),
        row(f"fork at the slowest of {len(forks)} versions of {LONG:,} events / opening", max(forks), 3),
        row(f"undo of the newest compaction of {LONG:,} events / opening", timed(long.undo_compaction) / opening, 3),
    ]
    for store in stores.values():
        runner.run(store.aclose())
    return rows


async def _done(work: Callable[[], Awaitable[object]]) -> None:
    await work()
