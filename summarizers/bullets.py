"""Summarise a discussion in three to five bullet points, labelled in the language of the request.

The shape is that of the priority-chain design.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .layouts import BULLETS
from .outline import fitted
from .ranking import Point, Section, ranked
from .shapes import Shape, asked, fixed
from .text import clean, clip, one_line, terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.ports import SummaryRequest

    from .record import Gathered

LEAST: Final = 3
MOST: Final = 5
_TELLING: Final = 0.7
"""Least weight of a point beyond the first three."""
_ENGLISH: Final[dict[Section, str]] = {
    Section.TASK: "Topic: ",
    Section.DECISIONS: "Decided: ",
    Section.DONE: "Done: ",
    Section.ERRORS: "Problem: ",
    Section.FILES: "File: ",
    Section.QUESTIONS: "Open: ",
    Section.NEXT: "Next: ",
}
_INDONESIAN: Final[dict[Section, str]] = {
    Section.TASK: "Topik: ",
    Section.DECISIONS: "Keputusan: ",
    Section.DONE: "Hasil: ",
    Section.ERRORS: "Kendala: ",
    Section.FILES: "Berkas: ",
    Section.QUESTIONS: "Pertanyaan terbuka: ",
    Section.NEXT: "Selanjutnya: ",
}
LABELS: Final[dict[str, Mapping[Section, str]]] = {"english": _ENGLISH, "indonesian": _INDONESIAN}
"""The labels by language; the text behind a label keeps the discussion's words."""
_FIRST: Final = (Section.TASK, Section.DECISIONS, Section.DONE, Section.NEXT, Section.ERRORS)
"""The kinds that get one point each, before the best of the rest."""


def labels_for(request: SummaryRequest) -> Mapping[Section, str]:
    """Return the labels in a request's language; English ones where there are none."""
    return LABELS.get(request.language.strip().lower(), _ENGLISH)


def _read(summary: str) -> list[Point]:
    lines = [one_line(line) for line in clean(summary).splitlines() if line.lstrip()[:2] in {"- ", "* ", "• "}]
    known = [(section, label) for labels in LABELS.values() for section, label in labels.items()]
    points: list[Point] = []
    for n, line in enumerate(lines):
        section, label = next(((s, label) for s, label in known if line.startswith(label)), (Section.DONE, ""))
        points.append(Point(section, line.removeprefix(label), n - len(lines), 1.5, earlier=True))
    return points


def _points(request: SummaryRequest, found: Gathered, earlier: Sequence[Point]) -> list[Point]:
    """Choose three to five points: one of each kind that there is, then the best of the rest."""
    tasks = [Point(Section.TASK, text, n, 2.0) for n, text in enumerate(asked(request, found, ())) if terms(text)]
    known = {p.text.casefold(): p for p in [*earlier, *tasks, *found.points] if p.text}
    best = [point for point, _ in ranked(list(known.values()), terms(request.instructions))]
    first = [next((p for p in best if p.section is section), None) for section in _FIRST]
    chosen = [p for p in first if p is not None]
    for point in sorted((p for p in best if p not in chosen), key=lambda p: (not p.earlier, -p.weight, -p.order)):
        if len(chosen) < LEAST or (len(chosen) < MOST and point.weight >= _TELLING):
            chosen.append(point)
    labels, room = labels_for(request), request.max_tokens // MOST - 4
    return [_bullet(p, labels[p.section], room, request) for p in chosen]


def _bullet(point: Point, label: str, room: int, request: SummaryRequest) -> Point:
    text = fitted(label + clip(point.text, 4 * max(room, 1)), room, request.counter)
    return replace(point, text=text, weight=3.0, pinned=True)


SHAPE: Final = Shape(fixed(BULLETS), _read, _points)
