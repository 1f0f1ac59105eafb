"""Clocks: they give the time, and measure durations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Protocol, runtime_checkable

from timeline.blocks import utc
from timeline.errors import InvalidArgument


class Clock(Protocol):
    """The source of the time of calls without ``now``; of durations too, if it is a `MeasuringClock`."""

    def now(self) -> datetime:
        """Return the present moment, in UTC. It may step back; the times of a handle's events do not."""
        ...


@runtime_checkable
class MeasuringClock(Clock, Protocol):
    """A clock that also measures durations, as tests need it. With any other clock, the computer measures them."""

    def monotonic(self) -> float:
        """Return the seconds since some fixed moment, never less than before."""
        ...


class SystemClock:
    """The computer's clock."""

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds since some fixed moment, whatever the wall clock is set to."""
        return perf_counter()


@dataclass(frozen=True, slots=True)
class StoppedClock:
    """A clock that always shows the same moment, for views of the past and replays: nothing has a duration by it."""

    at: datetime

    def now(self) -> datetime:
        """Return that moment."""
        return self.at

    def monotonic(self) -> float:
        """Return the same reading each time."""
        return 0.0


def time_of(clock: Clock) -> datetime:
    """Return a clock's time, in UTC.

    Raises:
        InvalidArgument: the clock, which the application gave, returns no moment, or one without a time zone.
    """
    at = clock.now()
    if not isinstance(at, datetime):
        raise InvalidArgument(
            "clock", f"must give a moment, such as datetime.now(UTC), not an object of type {type(at).__name__}"
        )
    try:
        return utc(at)
    except ValueError as error:
        raise InvalidArgument("clock", f"gives a moment that {error}") from None
