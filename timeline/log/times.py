"""The time of an event: the application's own, or the clock's at the append, and never before the newest known event.

A call may take long and append several events, while other tasks append theirs. So the clock is read for each append,
and not for each call. A clock that steps back does not take a log's times back with it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from timeline.blocks import utc
from timeline.ports.clocks import time_of

if TYPE_CHECKING:
    from datetime import timedelta

    from timeline.ports import Clock

_LAST: Final = datetime.max.replace(tzinfo=UTC)
"""The last possible moment; applications use it for what has no end, or no time."""


def time_of_append(clock: Clock, given: datetime | None, *earlier: datetime | None) -> datetime:
    """Return the time of an event that is about to be appended, in UTC.

    Args:
        clock: read unless a time is given.
        given: the application's time of the event, which is taken as it is.
        earlier: times that the event must not be before, such as that of the newest event; None names none.
    """
    if given is not None:
        return utc(given)
    return max([time_of(clock), *(at for at in earlier if at is not None)])


def after(at: datetime, span: timedelta) -> datetime:
    """Return the moment that is so much later, or the last one that there is."""
    return _LAST if span > _LAST - at else at + span
