"""Summarise for a model that continues the work: five headings, the user's wishes and refusals in the user's words.

The shape is that of the prune-then-summarize design.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from timeline.blocks import UserPrompt

from .layouts import CONTINUATION
from .ranking import Point, Section
from .shapes import Shape, asked, fixed, reader, state
from .text import clip, sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.ports import SummaryRequest

    from .record import Gathered

_WISH: Final = re.compile(
    r"\b(?:i(?:'d| would)? (?:want|like|prefer|need|hate)|make (?:it|the|them|this|that|sure)|prefer|please|use|keep"
    r"|must|should|always|only|style|colou?r|tone|mau|ingin|pakai|tolong|harus)\b",
    re.IGNORECASE,
)
_REFUSAL: Final = re.compile(
    r"^no\b|,\s*not\b|\b(?:do(?:n't| not)|never|without|avoid|instead of|rather than|reject\w*|hate"
    r"|jangan|bukan|tanpa)\b",
    re.IGNORECASE,
)
_REFUSAL_LENGTH: Final = 160
"""Longest sentence that a ``not`` makes a refusal; in a longer one it says little about the whole."""
REJECTED: Final = "Rejected: "
FILE: Final = "File: "
ERROR: Final = "Error: "
_LABELS: Final = {Section.FILES: FILE, Section.ERRORS: ERROR}
"""The labels that separate the points of one heading when the summary is read back."""
_WISH_LENGTH: Final = 240
_EMPTY: Final = {part.empty.removeprefix("- ") for part in CONTINUATION.parts}
_read: Final = reader(CONTINUATION)


def _read_continuation(summary: str) -> list[Point]:
    return [_unlabelled(point) for point in _read(summary) if point.text not in _EMPTY]


def _unlabelled(point: Point) -> Point:
    """Remove a point's label, which gives the point its section."""
    for section, label in _LABELS.items():
        if point.text.startswith(label):
            return replace(point, section=section, text=point.text.removeprefix(label))
    return point


def _points(request: SummaryRequest, found: Gathered, earlier: Sequence[Point]) -> list[Point]:
    """Make the points under all headings; the user's wishes keep the user's words."""
    known = [p for p in [*earlier, *found.points] if p.section is not Section.TASK]
    return [
        *state(request, found, earlier),
        *_goal(request, found, earlier),
        *_wishes(request.blocks),
        *(replace(p, text=_LABELS.get(p.section, "") + p.text) for p in known),
    ]


def _goal(request: SummaryRequest, found: Gathered, earlier: Sequence[Point]) -> list[Point]:
    """Return the user's goal, unless the newest prompt asks for the same."""
    tasks = asked(request, found, earlier)
    if len(tasks) < 2:
        return []
    return [Point(Section.STATE, f"The user's goal: {clip(tasks[0], _WISH_LENGTH)}", -1, 3.0, pinned=True)]


def _wishes(blocks: Sequence[Block]) -> list[Point]:
    wishes = [
        (order, sentence)
        for order, block in enumerate(blocks)
        if isinstance(block, UserPrompt)
        for sentence in sentences(block.text)
    ]
    return [
        Point(Section.PREFERENCES, label + clip(sentence, _WISH_LENGTH), order, 1.5)
        for order, sentence in wishes
        if (label := _label(sentence)) or _WISH.search(sentence)
    ]


def _label(sentence: str) -> str:
    return REJECTED if len(sentence) <= _REFUSAL_LENGTH and _REFUSAL.search(sentence) else ""


SHAPE: Final = Shape(fixed(CONTINUATION), _read_continuation, _points)
