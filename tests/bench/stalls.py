"""How long the event loop waits while one conversation of a million tokens hides or compacts, and single steps.

Steps are in CPU time of the process: on a machine that does other work, wall time is that work's. A loop that waits for
a thread which holds the interpreter spends no time itself, but the thread does; so a stall is the CPU time of all
threads between two turns of the loop, or the wall time where that is less: a thread may work beside the loop, too.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final

from tests.bench.logs import START, recorded_text, sized_blocks
from tests.bench.rows import come_to_rest, figure, percentile
from timeline import policies
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator

    from tests.bench.rows import Row
    from timeline.ports import EventStore

BLOCKS: Final = 4_300
"""Blocks of a million tokens."""
STEPS: Final = 200
REPEATS: Final = 3
COLD: Final = START + timedelta(hours=2)
MOST_STALL: Final = 20
"""Milliseconds, as the next two."""
MEDIAN_STEP: Final = 6
MOST_STEP: Final = 15
_SYSTEM: Final = "You are an agent. " * 400


def rows() -> Iterator[Row]:
    """Measure the longest stall of a hide, of a compaction and of an opening, and the 99th percentile of a step."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        hides, compactions, openings, steps = runner.run(_measured(Path(folder) / "bench.db"))
    longest = "longest stall of the loop while another conversation of 1M tokens"
    yield figure("Decisions", f"{longest} hides", "ms", hides, MOST_STALL)
    yield figure("Decisions", f"{longest} compacts", "ms", compactions, MOST_STALL)
    yield figure("Decisions", f"{longest} is opened", "ms", openings, MOST_STALL)
    yield figure("A step", "a step at 1M tokens, CPU", "ms", [1_000 * step for step in steps], MEDIAN_STEP)
    yield percentile("A step", "a step at 1M tokens, CPU", steps, MOST_STEP)


async def _measured(file: Path) -> tuple[list[float], list[float], list[float], list[float]]:
    store = await SQLiteStore.open(file)
    hides, compactions, openings = [], [], []
    for number in range(REPEATS):
        hidden = await _conversation(store, f"hide {number}")
        hides.append(await _longest_stall(hidden.render(system=_SYSTEM, now=COLD)))
        openings.append(await _longest_stall(Timeline.open(store, hidden.id, policy=hidden.policy, now=COLD)))
        compacted = await _conversation(store, f"compact {number}")
        compactions.append(await _longest_stall(compacted.compact(now=START)))
    steps = [taken async for taken in _steps(await _conversation(store, "steps"))]
    await store.aclose()
    return hides, compactions, openings, steps


async def _conversation(store: EventStore, id_: str) -> Timeline:
    policy = policies.cut_point(max_tokens=3_000_000)
    timeline = await Timeline.open(store, id_, policy=policy, now=START)
    text = recorded_text(100_000)
    for first in range(0, BLOCKS, 100):
        await timeline.append(*sized_blocks(100, first=first, text=text), now=START)
    (await timeline.render(system=_SYSTEM, now=START)).to_anthropic()
    come_to_rest()
    return timeline


async def _longest_stall(work: Awaitable[object]) -> float:
    """Return the longest stall of the loop while some work was done, in milliseconds."""
    gaps: list[float] = []

    async def tick() -> None:
        while True:
            start, begin = process_time(), perf_counter()
            await asyncio.sleep(0.001)
            gaps.append(min(process_time() - start, perf_counter() - begin))

    gc.collect()
    ticking = asyncio.create_task(tick())
    await work
    ticking.cancel()
    with suppress(asyncio.CancelledError):
        await ticking
    return 1_000 * max(gaps)


async def _steps(timeline: Timeline) -> AsyncIterator[float]:
    text = recorded_text(100_000)
    for number in range(BLOCKS, BLOCKS + 2 * STEPS, 2):
        start = process_time()
        await timeline.append(*sized_blocks(2, first=number, text=text), now=START)
        (await timeline.render(system=_SYSTEM, now=START)).to_anthropic()
        yield process_time() - start
