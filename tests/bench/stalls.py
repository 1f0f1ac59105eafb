"""How long the event loop waits while one conversation of a million tokens hides or compacts, and single steps.

All in CPU time of the process: on a machine that does other work, wall time is that work's. A loop that waits for a
thread which holds the interpreter spends no time itself, but the thread does.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any, Final

from tests.bench.logs import START, recorded_text, sized_blocks
from tests.bench.timelines import row
from timeline import policies
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from timeline.ports import EventStore

BLOCKS: Final = 4_300
"""Blocks of a million tokens."""
STEPS: Final = 200
REPEATS: Final = 3
COLD: Final = START + timedelta(hours=2)
MOST_STALL: Final = 0.020
MOST_STEP: Final = 0.015
_SYSTEM: Final = "You are an agent. " * 400


def run() -> list[dict[str, Any]]:
    """Return the rows: the longest stall of a hide and of a compaction, and the 99th percentile of a step."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        return runner.run(_rows(Path(folder) / "bench.db"))


async def _rows(file: Path) -> list[dict[str, Any]]:
    store = await SQLiteStore.open(file)
    hides, compactions = [], []
    for number in range(REPEATS):
        hidden = await _conversation(store, f"hide {number}")
        hides.append(await _longest_stall(hidden.render(system=_SYSTEM, now=COLD)))
        compacted = await _conversation(store, f"compact {number}")
        compactions.append(await _longest_stall(compacted.compact(now=START)))
    steps = sorted([taken async for taken in _steps(await _conversation(store, "steps"))])
    await store.aclose()
    return [
        row("longest stall of the loop in a hide at 1M tokens, CPU seconds", min(hides), MOST_STALL),
        row("longest stall of the loop in a compaction at 1M tokens, CPU seconds", min(compactions), MOST_STALL),
        row("step at 1M tokens, 99th percentile, CPU seconds", steps[-len(steps) // 100], MOST_STEP),
    ]


async def _conversation(store: EventStore, id_: str) -> Timeline:
    policy = policies.cut_point(max_tokens=3_000_000)
    timeline = await Timeline.open(store, id_, policy=policy, now=START)
    text = recorded_text(100_000)
    for first in range(0, BLOCKS, 100):
        await timeline.append(*sized_blocks(100, first=first, text=text), now=START)
    (await timeline.render(system=_SYSTEM, now=START)).to_anthropic()
    return timeline


async def _longest_stall(work: Awaitable[object]) -> float:
    """Return the most CPU time that passed between two turns of the loop while some work was done."""
    gaps: list[float] = []

    async def tick() -> None:
        while True:
            start = process_time()
            await asyncio.sleep(0.001)
            gaps.append(process_time() - start)

    gc.collect()
    ticking = asyncio.create_task(tick())
    await work
    ticking.cancel()
    with suppress(asyncio.CancelledError):
        await ticking
    return max(gaps)


async def _steps(timeline: Timeline) -> AsyncIterator[float]:
    text = recorded_text(100_000)
    for number in range(BLOCKS, BLOCKS + 2 * STEPS, 2):
        start = process_time()
        await timeline.append(*sized_blocks(2, first=number, text=text), now=START)
        (await timeline.render(system=_SYSTEM, now=START)).to_anthropic()
        yield process_time() - start
