"""Benchmarks of export and import, in megabytes of the file a second, and against `json` alone over the same lines."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.bench.logs import POLICY, START, recorded_text, sized_blocks
from tests.bench.rows import Measured, Row, cpu, ratios
from timeline.portable.exporting import export_log
from timeline.portable.importing import import_copy
from timeline.portable.reading import read_copies
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCKS: Final = 6_000
TOGETHER: Final = 500
SHARE: Final = 3.0
"""Bar of a slower machine, as a share of what json alone takes."""
EXPORTED: Final = 60.0
IMPORTED: Final = 35.0


def rows() -> Iterator[Row]:
    """Measure all rows here."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        file = Path(folder) / "export.jsonl"
        store = runner.run(SQLiteStore.open(Path(folder) / "bench.db", durability="normal"))
        runner.run(_written(store))
        lines = runner.run(_exported(store))
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        values = [json.loads(line) for line in lines]

        def parsed() -> None:
            for line in file.read_bytes().splitlines():
                json.loads(line)

        size = file.stat().st_size / 1e6
        exporting = partial(cpu, lambda: runner.run(_exported(store)))
        writing = partial(cpu, lambda: [json.dumps(value, separators=(",", ":")) for value in values])
        yield from _rows("export", size, EXPORTED, exporting, writing)
        importing = partial(_imported, runner, file, Path(folder), count())
        yield from _rows("import", size, IMPORTED, importing, partial(cpu, parsed))
        runner.run(store.aclose())


def _rows(what: str, size: float, rate: float, ours: Callable[[], float], alone: Callable[[], float]) -> Iterator[Row]:
    """Measure work twice: one of the two bars is to be kept, the other one applies only where it is kept."""
    taken: list[float] = []

    def timed() -> float:
        taken.append(ours())
        return taken[-1]

    share = Measured.of(ratios(timed, alone, SHARE, most=21))
    speed = Measured.of([size / seconds for seconds in taken[1:]])
    fast, near = speed.median >= rate, share.median <= SHARE
    yield Row("Files", what, "`json` alone over the same lines", share, SHARE, applies=near or not fast)
    yield Row(
        "Files", f"{what}, of a {size:.0f} MB file", "", speed, rate, "MB/s", least=True, applies=fast or not near
    )


async def _exported(store: SQLiteStore) -> list[str]:
    return [line async for line in export_log(store, ["bench"])]


def _imported(runner: asyncio.Runner, file: Path, folder: Path, numbers: Iterator[int]) -> float:
    """Read a file and import it into a new database."""
    database = folder / f"import {next(numbers)}.db"

    async def taken(store: SQLiteStore) -> None:
        for copy in read_copies(file) or ():
            await import_copy(store, copy)

    store = runner.run(SQLiteStore.open(database, durability="normal"))
    seconds = cpu(lambda: runner.run(taken(store)))
    runner.run(store.aclose())
    with suppress(OSError):
        database.unlink()
    return seconds


async def _written(store: SQLiteStore) -> None:
    timeline = await Timeline.open(store, "bench", policy=POLICY, now=START)
    text = recorded_text(400_000)
    for first in range(0, BLOCKS, TOGETHER):
        await timeline.append(*sized_blocks(TOGETHER, first=first, text=text), now=START)
        await timeline.render(system="You are an agent.", now=START)
