"""`Stopwatch`: how long something took, by a clock that never steps back.

Two readings of a wall clock do not say how long something took: the clock may be set between them.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

from timeline.ports import MeasuringClock

if TYPE_CHECKING:
    from timeline.ports import Clock

_DIGITS: Final = 3
"""Durations are recorded in milliseconds: a summary takes seconds."""
_MINUTE: Final = 60
_TENTH: Final = 0.1


class Stopwatch:
    """Measures the time since its creation, by the clock's ``monotonic()``, or by the computer's if it has none."""

    def __init__(self, clock: Clock) -> None:
        self._read = clock.monotonic if isinstance(clock, MeasuringClock) else perf_counter
        self._began = self._read()

    def duration(self) -> float | None:
        """Return the seconds since its creation, to the millisecond; None if the clock did not move."""
        took = self._read() - self._began
        return round(took, _DIGITS) if took > 0 else None


def spelled(duration: float | None) -> str:
    """Write a duration for people: ``1.2 s``, ``2 min 5 s``; nothing for None, and for less than a tenth of a second.

    A summary without a model takes milliseconds. They are in the log, and say nothing to a reader.
    """
    if duration is None or duration < _TENTH:
        return ""
    if round(duration, 1) < _MINUTE:
        return f"{duration:.1f} s"
    minutes, seconds = divmod(round(duration), _MINUTE)
    return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"


def with_duration(text: str, duration: float | None) -> str:
    """Return a text with its duration behind it: ``3,600 -> 1,200 tokens, in 1.2 s``."""
    took = spelled(duration)
    return f"{text}, in {took}" if took else text
