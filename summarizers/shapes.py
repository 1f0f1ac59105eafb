"""Shapes: what the extractive summarizer makes of a record for each prompt; the generic one stands in `extractive`.

A shape reads back the summaries that it wrote, and says which points the next one has besides what every record gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .outline import fitted, read_outline, task_text
from .ranking import Point, Section
from .text import clip, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.ports import SummaryRequest

    from .layouts import Layout
    from .record import Gathered

NEWEST_LENGTH: Final = 300
"""Characters of a line about what is being worked on."""
ACCOMPLISHED: Final = 1.0
"""Weight from which a sentence says that something was done."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape of summary.

    Attributes:
        layout: its headings, for a request.
        read: makes points of a summary of this shape, or of another hand's.
        points: makes the points of a request out of those of the record and of the summary before.
        ending: a line that ends the summary; empty for none.
    """

    layout: Callable[[SummaryRequest], Layout]
    read: Callable[[str], list[Point]]
    points: Callable[[SummaryRequest, Gathered, Sequence[Point]], list[Point]]
    ending: Callable[[SummaryRequest], str] = lambda _: ""


def fixed(layout: Layout) -> Callable[[SummaryRequest], Layout]:
    """Return what gives every request the same layout."""
    return lambda _: layout


def reader(layout: Layout) -> Callable[[str], list[Point]]:
    """Return what reads a layout's own summaries back; what is said about the moment is not: the next one says it."""
    titles = layout.titles()

    def read(summary: str) -> list[Point]:
        return [point for point in read_outline(summary, titles) if point.section is not Section.STATE]

    return read


def accomplished(points: Sequence[Point]) -> list[Point]:
    """Return the points that say that something was done."""
    return [point for point in points if point.section is Section.DONE and point.weight >= ACCOMPLISHED]


def asked(request: SummaryRequest, found: Gathered, earlier: Sequence[Point]) -> list[str]:
    """List what the user asked for, oldest first: the task of the whole conversation, then what the record knows."""
    told = [one_line(request.original_task or ""), *(task_text(p) for p in earlier if p.section is Section.TASK)]
    told += [text for _, text in found.prompts] + [one_line(request.task or "")]
    return list(dict.fromkeys(text for text in told if text))


def state(request: SummaryRequest, found: Gathered, earlier: Sequence[Point]) -> list[Point]:
    """Say where the work stands: what the newest prompt asks for, and what was accomplished last."""
    tasks = asked(request, found, earlier)
    done = accomplished(found.points) or [p for p in earlier if p.section is Section.DONE]
    room = request.max_tokens // 8
    lines = {
        "Working on": one_line(request.task or "") or (tasks[-1] if tasks else ""),
        "Last completed": max(done, key=lambda p: p.order).text if done else "",
    }
    return [
        Point(
            Section.STATE, fitted(f"{label}: {clip(text, NEWEST_LENGTH)}", room, request.counter), n, 3.0, pinned=True
        )
        for n, (label, text) in enumerate(lines.items())
        if text
    ]
