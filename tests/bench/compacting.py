"""Benchmark of the record of facts that a compaction asks a store for: it costs what came since the one before."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.bench.kinds import EVENTS, Maker, mixed
from tests.bench.rows import cpu, growth
from timeline.events import Covers
from timeline.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row
    from timeline.ports import EventStore

SIZES: Final = (2_000, 4_000, 8_000, 16_000)
"""Events; each third one brings a subject that no other one has."""
BAR: Final = 0.2
"""What is merged anew at each compaction comes to 0.9."""


def rows() -> Iterator[Row]:
    """Yield the row of logs of four sizes, each of which is compacted every 100 events from there on."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        logs = {size: runner.run(_Log.of(Path(folder) / f"{size}.db", size)) for size in SIZES}
        works = {size: partial(_compacted, runner, log) for size, log in logs.items()}
        yield growth("Appends", "the record of a compaction in a stored log, every 100 events", works, BAR)
        for log in logs.values():
            runner.run(log.store.aclose())


class _Log:
    """A log, and how far it is."""

    def __init__(self, store: EventStore) -> None:
        self.store, self._maker, self._version = store, Maker(), 0

    @classmethod
    async def of(cls, file: Path, size: int) -> _Log:
        """Make a log of so many events that was compacted twice."""
        log = cls(await SQLiteStore.open(file, durability="normal"))
        while log._version < size:
            await log.extend()
        for _ in range(2):
            await log.extend()
            await log.record()
        return log

    async def extend(self) -> None:
        """Append what an agent does between two compactions."""
        await self.store.append("bench", mixed(self._maker)[1])
        self._version += EVENTS

    async def record(self) -> None:
        """Ask for the record of all but the newest events."""
        covers = Covers(ranges=((1, self._version - EVENTS // 2),))
        await self.store.fact_record("bench", covers=covers)


def _compacted(runner: asyncio.Runner, log: _Log) -> float:
    runner.run(log.extend())
    return cpu(lambda: runner.run(log.record()))
