"""How long something took: by a monotonic clock, in seconds, and nothing where none was measured."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.scenes import AT, Still
from timeline.log.stopwatch import Stopwatch, spelled, with_duration
from timeline.ports import MeasuringClock, StoppedClock, SystemClock


class Counting:
    """A clock whose readings are known, and whose wall steps back a day at each look."""

    def __init__(self, *readings: float) -> None:
        self._readings = iter(readings)
        self._at = AT

    def now(self) -> datetime:
        """Return a day before the last time."""
        self._at -= timedelta(days=1)
        return self._at

    def monotonic(self) -> float:
        """Return the next reading."""
        return next(self._readings)


def test_a_duration_is_the_difference_of_two_readings_to_the_millisecond() -> None:
    """The wall clock has no part in it."""
    watch = Stopwatch(Counting(100.0, 101.23456, 160.0))
    assert (watch.duration(), watch.duration()) == (1.235, 60.0)


def test_by_a_clock_that_does_not_move_nothing_has_a_duration() -> None:
    """A view of the past, and a replay, measure nothing: 0.0 would be a lie."""
    assert Stopwatch(StoppedClock(AT)).duration() is None


def test_a_clock_with_a_wall_time_alone_leaves_measuring_to_the_computer() -> None:
    """An application's own clock need not measure."""
    assert not isinstance(Still(), MeasuringClock)
    assert isinstance(SystemClock(), MeasuringClock)
    duration = Stopwatch(Still()).duration()
    assert duration is not None
    assert 0 <= duration < 60


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (None, ""),
        (0.0, ""),
        (0.04, ""),
        (0.1, "0.1 s"),
        (1.249, "1.2 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (125.4, "2 min 5 s"),
        (3_600.0, "60 min"),
    ],
)
def test_a_duration_is_written_for_people(duration: float | None, text: str) -> None:
    """Milliseconds are not worth their attention."""
    assert spelled(duration) == text
    assert with_duration("done", duration) == (f"done, in {text}" if text else "done")
