"""Several processes on one file: what four full of tasks append, against one, and how evenly they share the time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests import newest_sqlite
from tests.bench.rows import Measured, Row
from tests.crowd import TASKS, Crowd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROCESSES: Final = 4
SECONDS: Final = 4.0
CROWDS: Final = 5
BAR_RATE: Final = 1.0
BAR_FAIR: Final = 1 / 1.5
"""The slowest process as a share of the fastest."""


def rows() -> Iterator[Row]:
    """Measure two rows for the machine's SQLite and two for the newest, medians of crowds of four processes."""
    for kind in ["machine", "newest"] if newest_sqlite.THERE else ["machine"]:
        yield from _rows(kind)


def _rows(sqlite: str) -> Iterator[Row]:
    # Each crowd is measured against what one process did before it and after it: other work on the machine comes and
    # goes meanwhile.
    ones, fours = _counts(sqlite, 1), []
    for _ in range(CROWDS):
        fours.append(_counts(sqlite, PROCESSES))
        ones += _counts(sqlite, 1)
    around = [(before + after) / 2 for before, after in pairwise(ones)]
    rates = [sum(four) / one for one, four in zip(around, fours, strict=True)]
    fair = [min(four) / max(four) for four in fours]
    where = f"{TASKS} tasks each, full durability, {sqlite} SQLite"
    yield _row(f"appends of {PROCESSES} processes, {where}", "one process", rates, BAR_RATE)
    yield _row(f"appends of the slowest of {PROCESSES} processes, {where}", "the fastest", fair, BAR_FAIR)


def _row(what: str, limit: str, ratios: Sequence[float], bar: float) -> Row:
    return Row("Appends", what, limit, Measured.of(ratios), round(bar, 3), least=True)


def _counts(sqlite: str, processes: int) -> list[int]:
    with TemporaryDirectory() as folder:
        return Crowd(Path(folder) / "bench.db", sqlite).play(processes, SECONDS)
