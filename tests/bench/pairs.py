"""Interleaved pairs: the one way in which the benchmarks compare two things on a machine that does other work too."""

from __future__ import annotations

import gc
import statistics
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def median_ratio(ours: Callable[[], float], baseline: Callable[[], float], pairs: int = 7) -> float:
    """Return the median of ``ours / baseline`` over pairs that run one right after the other.

    Both functions do their work once and return the seconds that count (see `seconds`), so that preparation stays out.
    One pair runs before to warm up. The order within a pair alternates, and the collector is emptied before each run:
    a drift of the machine then meets both sides alike.
    """
    ratios = []
    for number in range(pairs + 1):
        first, second = (ours, baseline) if number % 2 else (baseline, ours)
        times = {first: _collected(first), second: _collected(second)}
        if number:
            ratios.append(times[ours] / times[baseline])
    return statistics.median(ratios)


def seconds(work: Callable[[], object]) -> float:
    """Return how long a piece of work takes, by the monotonic clock."""
    start = perf_counter()
    work()
    return perf_counter() - start


def _collected(run: Callable[[], float]) -> float:
    gc.collect()
    return run()
