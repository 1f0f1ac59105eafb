"""`MeasuredCalls`: the model calls that this library makes or wraps, for the record that comes later.

How long a call took, and what was requested, is known where the call is made. It is recorded where the application
passes the reply on. The reply itself connects the two, or the task, where it records inside the call.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from timeline import checks
from timeline.log.stopwatch import Stopwatch
from timeline.ports import StoppedClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from timeline.ports import Clock
    from timeline.projection.context import RenderedContext
    from timeline.wire.request import Request

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class MeasuredCall:
    """A call under way, or returned: then ``reply`` is what it returned, after ``took`` seconds.

    ``request`` is what was made of its context last; None if nothing was.
    """

    watch: Stopwatch
    reply: Any = None
    took: float | None = None
    request: Request | None = None

    def duration(self) -> float | None:
        """Return how many seconds the call took, or has taken so far; None if unknown."""
        return self.watch.duration() if self.took is None else self.took

    def note(self, request: Request) -> None:
        """Keep a request that was made of the call's context."""
        self.request = request


_UNDER_WAY: Final[ContextVar[tuple[MeasuredCalls, MeasuredCall] | None]] = ContextVar("_UNDER_WAY", default=None)
"""The call that the current task runs in, as the function of `Timeline.retry_with_compaction` does."""


class MeasuredCalls:
    """The calls of one timeline: the one under way in a task, and the last one that returned.

    Args:
        clock: measures them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._returned: MeasuredCall | None = None

    def begin(self, at: datetime | None) -> MeasuredCall:
        """Return a call that begins now; with a time that the application gives, it measures nothing."""
        return MeasuredCall(Stopwatch(self._clock if at is None else StoppedClock(at)))

    async def make(
        self, under_way: MeasuredCall, call: Callable[[RenderedContext], Awaitable[T]], context: RenderedContext
    ) -> T:
        """Call a model, measure it, and note what is requested of the context."""
        token = _UNDER_WAY.set((self, under_way))
        try:
            reply: T = await checks.awaitable(call(context.noting(under_way.note)))
        finally:
            _UNDER_WAY.reset(token)
        under_way.reply = reply
        under_way.took = under_way.watch.duration()
        self._returned = under_way
        return reply

    def of(self, reply: Any) -> MeasuredCall | None:
        """Return the call of a reply or a stream, or the one that this task runs in; None if `make` made neither."""
        if self._returned is not None and self._returned.reply is reply:
            call, self._returned = self._returned, None  # given only once, so that the reply is not kept for longer
            return call
        under_way = _UNDER_WAY.get()
        return under_way[1] if under_way is not None and under_way[0] is self else None
