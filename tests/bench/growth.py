"""Benchmarks of growth: how verifying grows with a log, and what its past costs, beside opening it.

``TIMELINE_GROWTH`` is the number of events of the longest log; a million takes two minutes to write.
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.bench.logs import POLICY, START, blocks, extend, recorded_text, sized_blocks
from tests.bench.rows import against, cpu, figure, growth
from timeline import policies
from timeline.blocks import RangeSummary
from timeline.events import CompactionCompleted, SummaryParts, WrittenBy, event_id
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.bench.rows import Row, Timed
    from timeline.ports import EventStore

PART: Final = "Looking back"
SIZES: Final = (1_000, 2_000, 4_000, 8_000)
COMPACTED: Final = (250, 500, 1_000, 2_000)
"""Blocks of conversations of which one is redacted."""
SHORT: Final = 1_000
LONG: Final = int(os.environ.get("TIMELINE_GROWTH", "40000"))
CYCLE, KEPT = 600, 400
"""Blocks from one compaction to the next, and those that each leaves."""
TIMES: Final = 9


def rows() -> Iterator[Row]:
    """Yield the rows of all benchmarks here."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        yield _verified(runner, "`verify` of a log with a render every 10 events and no compaction", uncompacted)
        yield _verified(runner, "`verify` of a log with an undo every 500 events", with_undos)
        yield _redacted(runner)
        plain, undone = (runner.run(with_undos(SIZES[-1], undos=undos)) for undos in (0, 20))
        works = (partial(_verifying, runner, undone), partial(_verifying, runner, plain))
        yield against(PART, f"`verify` of {SIZES[-1]:,} events with 20 undos", "without", works, 1.2)
        yield from _of_the_past(runner, Path(folder))


def _verified(runner: asyncio.Runner, what: str, make: Callable[[int], Awaitable[Timeline]]) -> Row:
    timelines = [runner.run(_made(make, size)) for size in SIZES]
    works = {timeline.version: partial(_verifying, runner, timeline) for timeline in timelines}
    return growth(PART, what, works, 1.2)


def _redacted(runner: asyncio.Runner) -> Row:
    """Time redactions in the middle of logs: each writes anew half of the summaries, which have a record of the log."""
    works: dict[int, Timed] = {}
    for size in COMPACTED:
        timeline, paths = runner.run(compacted(size))
        works[timeline.version] = partial(_redacting, runner, timeline, iter(paths[size // 2 :: 10]))
    return growth(PART, "`redact` of a block in the middle of a log, with its summaries", works, 1.2)


def _redacting(runner: asyncio.Runner, timeline: Timeline, paths: Iterator[str]) -> float:
    return cpu(lambda: runner.run(_done(partial(timeline.redact, next(paths), "a secret"))))


async def _made(make: Callable[[int], Awaitable[Timeline]], size: int) -> Timeline:
    return await make(size)


async def uncompacted(events: int, *, store: EventStore | None = None) -> Timeline:
    """Make a conversation that is rendered and recorded every ten blocks, and never compacted."""
    timeline = await Timeline.open(store or MemoryStore(), "grows", policy=POLICY, now=START)
    for first in range(0, events, 10):
        await timeline.append(*blocks(10, first=first), now=START)
        await timeline.render(system="You are an agent.", now=START)
    return timeline


async def compacted(blocks_: int) -> tuple[Timeline, list[str]]:
    """Make a conversation that compacts again and again; return it with the paths of its blocks."""
    timeline = await Timeline.open(MemoryStore(), "full", policy=policies.balanced(max_tokens=8_000), now=START)
    text, paths = recorded_text(100_000), list[str]()
    for first in range(0, blocks_, 10):
        paths += [block.path for block in await timeline.append(*sized_blocks(10, first=first, text=text), now=START)]
        await timeline.render(now=START)
    return timeline, paths


async def with_undos(events: int, *, undos: int | None = None, store: EventStore | None = None) -> Timeline:
    """Make a conversation that is compacted every so many blocks; each compaction is undone, and made again."""
    count = events // 500 if undos is None else undos
    timeline = await Timeline.open(store or MemoryStore(), "undone", policy=POLICY, now=START)
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
        round=window.compactions + 1,
        written_by=WrittenBy(summarizer="bench"),
    )
    await timeline.decide([completed], at=START, ids=[event_id(START)])


def _verifying(runner: asyncio.Runner, timeline: Timeline) -> float:
    """Return the CPU time of a verification."""
    gc.freeze()  # what was there before is not walked by the collections that come meanwhile
    try:
        return cpu(lambda: runner.run(_verified_whole(timeline)))
    finally:
        gc.unfreeze()


async def _verified_whole(timeline: Timeline) -> None:
    report = await timeline.verify()
    if not report.ok:
        raise ValueError(report.problems)


def _of_the_past(runner: asyncio.Runner, folder: Path) -> Iterator[Row]:
    """Time what looks back, at versions over the whole log, beside opening it; each in a file of its own."""
    stores = {size: runner.run(SQLiteStore.open(folder / f"{size}.db")) for size in (SHORT, LONG)}
    timelines = {size: runner.run(cycles(store, "c", size)) for size, store in stores.items()}

    def timed(work: Callable[[], Awaitable[object]]) -> float:
        return cpu(lambda: runner.run(_done(work)))

    def opened(size: int) -> float:
        return timed(lambda: Timeline.open(stores[size], "c", policy=POLICY))

    long = timelines[LONG]
    works = (partial(opened, LONG), partial(opened, SHORT))
    yield against("Opening", f"opening a log of {LONG:,} events", f"one of {SHORT:,}", works, 1.2)
    versions = [1, *(long.version * part // TIMES for part in range(1, TIMES)), long.version - 1]
    for what, look in (("`at`", long.at), ("`fork`", lambda version: long.fork(at=version))):
        slowest = max(versions, key=lambda version: timed(partial(look, version)))
        works = (partial(timed, partial(look, slowest)), partial(opened, LONG))
        yield against(
            PART, f"{what}, the slowest of {len(versions)} versions of {LONG:,} events", "opening it", works, 3
        )
    undone = [timed(long.undo_compaction) / statistics.median(opened(LONG) for _ in range(TIMES))]
    yield figure(PART, f"undo of the newest compaction of {LONG:,} events, of opening it", "times", undone, 3)
    for store in stores.values():
        runner.run(store.aclose())


async def _done(work: Callable[[], Awaitable[object]]) -> None:
    await work()
