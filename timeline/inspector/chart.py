"""The chart of a conversation: a point for each model call, and a mark for each decision."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from timeline.inspector.shapes import Chart

if TYPE_CHECKING:
    from timeline.inspector.asked import AskedChart
    from timeline.inspector.reader import Reader

MOST_MARKS: Final = 5_000


async def show_chart(reader: Reader, asked: AskedChart) -> Chart:
    """Return how full the context was at each call, and what changed it, as far as the log was read in the given time.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    info = await reader.store.info(asked.id)
    plot = await reader.plots.of(info, asked.wait)
    first = bisect_right(plot.points, asked.after, key=lambda point: point.number)
    page = plot.points[first : first + asked.limit]
    more = first + len(page) < len(plot.points) or plot.fold.version < info.version
    last = page[-1].number if page else asked.after
    return Chart(
        conversation=asked.id,
        points=tuple(page),
        marks=tuple(plot.marks[-MOST_MARKS:]),
        marks_left_out=max(0, len(plot.marks) - MOST_MARKS),
        turn_versions=tuple(plot.turns[-MOST_MARKS:]),
        read_until=plot.fold.version,
        version=info.version,
        next_after=last if more else None,
    )
