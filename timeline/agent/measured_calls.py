"""`MeasuredCalls`: how long the model calls took that this library makes or wraps, for the record that comes later.

A call is measured where it is made, and recorded where the application passes the reply on. The two are brought
together by the reply itself, or by the task that records inside the call.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from timeline.log.stopwatch import Stopwatch
from timeline.ports import StoppedClock

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from datetime import datetime

    from timeline.ports import Clock

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Call:
    """A call under way, or returned: then ``reply`` is what it returned, after ``duration`` seconds."""

    watch: Stopwatch
    reply: Any = None
    duration: float | None = None


_UNDER_WAY: Final[ContextVar[tuple[MeasuredCalls, _Call] | None]] = ContextVar("_UNDER_WAY", default=None)
"""The call that the current task runs in, as the function of `Timeline.retry_with_compaction` does."""


class MeasuredCalls:
    """The calls of one timeline: the one under way in a task, and the last one that returned.

    Args:
        clock: measures them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._returned: _Call | None = None

    async def measure(self, call: Awaitable[T]) -> T:
        """Await a model call and measure it."""
        under_way = _Call(Stopwatch(self._clock))
        token = _UNDER_WAY.set((self, under_way))
        try:
            under_way.reply = reply = await call
        finally:
            _UNDER_WAY.reset(token)
        under_way.duration = under_way.watch.duration()
        self._returned = under_way
        return reply

    def duration_of(self, reply: Any) -> float | None:
        """Return how long the call of a reply took, in seconds; of one that is under way, so far. None if unknown."""
        call = self._call_of(reply)
        if call is None:
            return None
        return call.watch.duration() if call.duration is None else call.duration

    def watch_of(self, stream: Any, at: datetime | None) -> Stopwatch:
        """Return what measures the call of a stream: from its request on if that was measured, or else from now on.

        With a time that the application gives, it measures nothing unless the request was measured.
        """
        call = self._call_of(stream)
        if call is not None:
            return call.watch
        return Stopwatch(self._clock if at is None else StoppedClock(at))

    def _call_of(self, reply: Any) -> _Call | None:
        if self._returned is not None and self._returned.reply is reply:
            call, self._returned = self._returned, None  # once: it holds the reply no longer than it has to
            return call
        under_way = _UNDER_WAY.get()
        return under_way[1] if under_way is not None and under_way[0] is self else None
