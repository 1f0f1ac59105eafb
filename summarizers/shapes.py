"""Shapes: how the extractive summarizer lays out a record for each prompt; `extractive` has the generic shape.

A shape reads back the summaries that it wrote, and adds points of its own to those that every record gives.
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
"""Most characters of a line about the current work."""
ACCOMPLISHED: Final = 1.0
"""Least weight of a sentence that reports finished work."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape of summary.

    Attributes:
        layout: returns its headings, for a request.
        read: makes points of a summary of this shape, or of another author's.
        points: makes a request's points from those of the record and of the summary before.
        ending: a line that ends the summary; empty for none.
    """

    layout: Callable[[SummaryRequest], Layout]
    read: Callable[[str], list[Point]]
    points: Callable[[SummaryRequest, Gathered, Sequence[Point]], list[Point]]
    ending: Callable[[SummaryRequest], str] = lambda _: ""


def fixed(layout: Layout) -> Callable[[SummaryRequest], Layout]:
    """Return a function that gives every request the same layout."""
    return lambda _: layout


def reader(layout: Layout) -> Callable[[str], list[Point]]:
    """Return a function that reads a layout's own summaries back, without the current state.

    The next summary states the current state anew.
    """
    titles = layout.titles()

    def read(summary: str) -> list[Point]:
        return [point for point in read_outline(summary, titles) if point.section is not Section.STATE]

    return read


def accomplished(points: Sequence[Point]) -> list[Point]:
    """Return the points about finished work."""
    return [point for point in points if point.section is Section.DONE and point.weight >= ACCOMPLISHED]


def asked(request: SummaryRequest, found: Gathered, earlier: Sequence[Point]) -> list[str]:
    """List the user's requests, oldest first: the task of the whole conversation, then those in the record."""
    requests = [one_line(request.original_task or ""), *(task_text(p) for p in earlier if p.section is Section.TASK)]
    requests += [text for _, text in found.prompts] + [one_line(request.task or "")]
    return list(dict.fromkeys(text for text in requests if text))


def state(request: SummaryRequest, found: Gathered, earlier: Sequence[Point]) -> list[Point]:
    """Report the state of the work: the newest prompt's request, and the last finished work."""
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
