"""Benchmarks of the memory of an open conversation: what a block takes beside its text, opened and rendered."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.bench.logs import POLICY, START, recorded_text, sized_blocks
from tests.bench.rows import figure
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row

BLOCKS: Final = 10_000
TOGETHER: Final = 500
TAKES: Final = 3
BESIDE: Final = 1_000
"""Bytes of a block beside twice its text."""


def rows() -> Iterator[Row]:
    """Measure all rows here."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        file = Path(folder) / "bench.db"
        runner.run(_written(file))
        runner.run(_taken(file))  # what a process takes once is not a block's
        # Nor is the interpreter's table of interned names: where it doubles meanwhile, that take has 2 MB more.
        opened, rendered, (text, *_) = zip(*(runner.run(_taken(file)) for _ in range(TAKES)), strict=True)
    limit = 2 * text + BESIDE
    what = f"memory of a block, of {BLOCKS:,} of {text:,.0f} characters"
    yield figure("Memory", f"{what}, opened", "B", opened, limit)
    yield figure("Memory", f"{what}, opened and rendered", "B", rendered, limit)


async def _taken(file: Path) -> tuple[float, float, float]:
    """Return the bytes that a block takes once its conversation is open, and rendered, and its characters."""
    async with await SQLiteStore.open(file) as store:
        gc.collect()
        tracemalloc.start()
        try:
            timeline = await Timeline.open(store, "bench", policy=POLICY)
            gc.collect()
            opened, _ = tracemalloc.get_traced_memory()
            context = await timeline.render(now=START)
            gc.collect()
            rendered, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        characters = sum(len(item.block.countable()) for item in timeline.window.items)
        count = len(context.blocks)
        return opened / count, rendered / count, characters / count


async def _written(file: Path) -> None:
    text = recorded_text(400_000)
    async with await SQLiteStore.open(file, durability="normal") as store:
        timeline = await Timeline.open(store, "bench", policy=POLICY, now=START)
        for first in range(0, BLOCKS, TOGETHER):
            await timeline.append(*sized_blocks(TOGETHER, first=first, text=text), now=START)
        await timeline.render(now=START)
