"""Several processes on one file: what four full of tasks append, against one, and how evenly they share the time."""

from __future__ import annotations

import statistics
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests import newest_sqlite
from tests.crowd import TASKS, Crowd

PROCESSES: Final = 4
SECONDS: Final = 4.0
CROWDS: Final = 5
BAR_RATE: Final = 1.0
BAR_FAIR: Final = 1 / 1.5
"""The slowest process as a share of the fastest."""


def run() -> list[dict[str, Any]]:
    """Return two rows for the machine's SQLite and two for the newest, medians of crowds of four processes."""
    kinds = ["machine", "newest"] if newest_sqlite.THERE else ["machine"]
    return [row for kind in kinds for row in _rows(kind)]


def _rows(sqlite: str) -> list[dict[str, Any]]:
    # Each crowd is measured against what one process did before it and after it: other work on the machine comes and
    # goes meanwhile.
    ones, fours = _counts(sqlite, 1), []
    for _ in range(CROWDS):
        fours.append(_counts(sqlite, PROCESSES))
        ones += _counts(sqlite, 1)
    around = [(before + after) / 2 for before, after in pairwise(ones)]
    rate = statistics.median(sum(four) / one for one, four in zip(around, fours, strict=True))
    fair = statistics.median(min(four) / max(four) for four in fours)
    each = [statistics.median(sorted(four)[place] for four in fours) for place in range(PROCESSES)]
    one, four = (round(statistics.median(counts) / SECONDS) for counts in (ones, [sum(four) for four in fours]))
    rates = ", ".join(f"{round(count / SECONDS):,}" for count in each)
    where = f"{TASKS} tasks each, full durability, {sqlite} SQLite"
    return [
        _row(f"{PROCESSES} processes / one, {where} ({four:,}/s and {one:,}/s)", rate, BAR_RATE),
        _row(f"slowest / fastest of {PROCESSES} processes, {where} ({rates}/s)", fair, BAR_FAIR),
    ]


def _row(name: str, ratio: float, bar: float) -> dict[str, Any]:
    return {"name": name, "ratio": round(ratio, 3), "bar": round(bar, 3), "ok": ratio >= bar}


def _counts(sqlite: str, processes: int) -> list[int]:
    with TemporaryDirectory() as folder:
        return Crowd(Path(folder) / "bench.db", sqlite).play(processes, SECONDS)


if __name__ == "__main__":
    for row in run():
        sys.stdout.write(f"{row}\n")
