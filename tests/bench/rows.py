"""The one table of the benchmarks: rows of work, limit, measured value and bar, and the ways to measure one.

A row is measured until a quiet and a busy machine agree on it: pairs are added until the interval in which the median
lies, at 95 %, is on one side of the bar, or is narrow.
"""

from __future__ import annotations

import gc
import math
import statistics
from time import monotonic, process_time, sleep
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Timed = Callable[[], float]
    """Does its work once and returns the seconds that count, so that preparation stays out."""

LEAST_PAIRS: Final = 7
MOST_PAIRS: Final = 61
MOST_SECONDS: Final = 60.0
"""Of one row; what it has by then is what it says."""
NARROW: Final = 0.02
"""An interval of the median that is narrower than this share of it needs no more pairs."""
_QUIET: Final = 0.2
"""Seconds in which a process that is at rest takes next to no CPU time."""


class Measured(NamedTuple):
    """A median, the interval that holds it at 95 %, and of how many values it is."""

    median: float
    low: float
    high: float
    values: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Measured:
        """Return the median of values, with the order statistics around it that hold it at 95 %."""
        ordered, out = sorted(values), _left_out(len(values))
        return cls(statistics.median(ordered), ordered[out], ordered[-1 - out], len(ordered))


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        part: the heading of the page that it comes under.
        what: the work that is measured.
        limit: what it is measured against, in the same run; empty for a plain figure.
        measured: the value.
        bar: what the value has to keep to.
        unit: of the value and of the bar, as they are written behind a figure; "times" of a limit.
        least: the bar is a floor, else a ceiling.
        applies: whether the bar holds on this machine.
        points: sizes and values, of a row that measures growth.
    """

    part: str
    what: str
    limit: str
    measured: Measured
    bar: float
    unit: str = "times"
    least: bool = False
    applies: bool = True
    points: tuple[tuple[float, float], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the median keeps to the bar."""
        kept = self.measured.median >= self.bar if self.least else self.measured.median <= self.bar
        return kept or not self.applies

    def as_json(self) -> dict[str, Any]:
        """Return the row as it is printed and kept; `from_json` reads it."""
        figures = {name: _short(value) for name, value in self.measured._asdict().items()}
        points = [[size, _short(value)] for size, value in self.points]
        return {**self._asdict(), "measured": figures, "points": points, "ok": self.ok}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Row:
        """Read a row that `as_json` made."""
        given = {name: kept[name] for name in cls._fields}
        points = tuple((size, value) for size, value in kept["points"])
        return cls(**{**given, "measured": Measured(**kept["measured"]), "points": points})


def against(
    part: str,
    what: str,
    limit: str,
    works: tuple[Timed, Timed],
    bar: float,
    *,
    least: bool = False,
    most: int = MOST_PAIRS,
) -> Row:
    """Measure work against a limit: the median of ours / limit, or with ``least`` of the speed, limit / ours.

    Args:
        part: see `Row`, also for the next two.
        what: the work.
        limit: what it is measured against.
        works: our work, and the limit's.
        bar: a ceiling, or with ``least`` a floor.
        least: whether the bar is one of speed.
        most: the most pairs that are measured.
    """
    ours, alone = works
    pairs = (alone, ours) if least else (ours, alone)
    return Row(part, what, limit, Measured.of(ratios(*pairs, bar, most=most)), bar, least=least)


def figure(part: str, what: str, unit: str, values: Sequence[float], bar: float, *, least: bool = False) -> Row:
    """Make the row of a plain figure: the median of its values."""
    return Row(part, what, "", Measured.of(values), bar, unit, least=least)


def percentile(part: str, what: str, seconds: Sequence[float], bar: float, share: float = 0.99) -> Row:
    """Make the row of a percentile, in milliseconds: of the seconds of many steps, in the order they were taken.

    The steps are cut into five runs. The row's value is the median of the runs' percentiles: one pause of the machine
    does not decide it, while a pause of our own that comes again and again does.
    """
    each, name = max(1, len(seconds) // 5), f"p{100 * share:g}"
    runs = [sorted(seconds[first : first + each]) for first in range(0, each * 5, each)]
    worst = [1_000 * run[min(len(run) - 1, math.ceil(share * len(run)) - 1)] for run in runs if run]
    return Row(part, f"{what}, {name}", "", Measured.of(worst), bar, "ms")


def growth(part: str, what: str, works: Mapping[int, Timed], bar: float, rounds: int = 5) -> Row:
    """Measure how work grows with its size: the exponent of a fit over all sizes, 1 for what is linear, 0 for constant.

    Each round runs all sizes once; the row is the median of the rounds' exponents.
    """
    come_to_rest()
    taken: list[list[float]] = []
    for number in range(rounds + 1):
        times = [_collected(work) for work in works.values()]
        if number:
            taken.append(times)
    exponents = [exponent(list(works), times) for times in taken]
    points = tuple((size, statistics.median(times[n] for times in taken)) for n, size in enumerate(works))
    return Row(part, what, "", Measured.of(exponents), bar, "exponent", points=points)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of the straight line through the logarithms of sizes and values."""
    return statistics.linear_regression(list(map(math.log, sizes)), list(map(math.log, values))).slope


def ratios(ours: Timed, alone: Timed, bar: float, *, least: int = LEAST_PAIRS, most: int = MOST_PAIRS) -> list[float]:
    """Return ``ours / alone`` of pairs that run one right after the other, as many as it takes to say which side it is.

    One pair runs before to warm up. The order within a pair alternates, and the collector is emptied before each run:
    a drift of the machine then meets both sides alike.
    """
    come_to_rest()
    found: list[float] = []
    begun = monotonic()
    for number in range(most + 1):
        first, second = (ours, alone) if number % 2 else (alone, ours)
        times = {first: _collected(first), second: _collected(second)}
        if number:
            found.append(times[ours] / times[alone])
        if len(found) >= least and (_clear(Measured.of(found), bar) or monotonic() - begun > MOST_SECONDS):
            break
    return found


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU time that a piece of work takes in all threads of the process.

    Other work on the machine is left out of it, and waiting for the disk.
    """
    start = process_time()
    work()
    return process_time() - start


def come_to_rest() -> None:
    """Wait until no thread of the process works any more.

    What is appended in bulk leaves a store's writer work for later: packing 60,000 events takes seconds, which are none
    of the steps that are measured meanwhile.
    """
    while cpu(lambda: sleep(_QUIET)) > _QUIET / 10:
        pass


def _clear(measured: Measured, bar: float) -> bool:
    return not measured.low <= bar <= measured.high or measured.high - measured.low <= NARROW * measured.median


def _left_out(count: int) -> int:
    """Return how many values at each end are outside the interval that holds the median at 95 %."""
    below, out = 0.5**count, 0
    while below <= 0.025 and out < (count - 1) // 2:
        out += 1
        below += math.comb(count, out) * 0.5**count
    return max(0, out)


def _short(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.4g}")


def _collected(run: Timed) -> float:
    gc.collect()
    return run()
