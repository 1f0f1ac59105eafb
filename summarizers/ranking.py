"""Rank a conversation's points: TF-IDF centroid for weight, maximal marginal relevance against repetition.

A point's value is its weight by the block rules, raised by how many of its words are those of the whole conversation
(Radev's centroid method, which needs one pass where TextRank needs all pairs), and by the exact facts it holds.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from .text import terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

FACT: Final = re.compile(
    r"`[^`]+`|\S+/\S+|\b\w+\.\w{1,5}\b|\b\d[\d.,:]*\b|\b[0-9a-f]{7,40}\b|\b\w+_\w+\b|#\d+|\b[A-Z]{2,}-\d+\b"
)
_CONSIDERED: Final = 80
"""Most points of one section that compete; the search for repetition compares each pair of them."""
_REPETITION: Final = 0.7
_NAMES: Final = 0.3
"""Value of a name that many calls and prompts name, against 1 for an ordinary sentence."""


class Section(StrEnum):
    """The kinds of points, named as the generic summary names them; a layout gives each one its place."""

    TASK = "Task"
    DECISIONS = "Decisions and findings"
    DONE = "Done"
    FILES = "Files changed"
    ERRORS = "Errors"
    QUESTIONS = "Open questions"
    NEXT = "Next steps"
    STATE = "Current state"
    PREFERENCES = "User preferences"


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One line that may go into a summary.

    Attributes:
        section: its kind.
        text: a clean single line.
        order: its place in the record; points of the previous summary come before all others.
        weight: its weight by the block rules, 1 being an ordinary sentence.
        pinned: it goes into every summary, shortened where it must be.
        earlier: it comes from the previous summary.
    """

    section: Section
    text: str
    order: int
    weight: float = 1.0
    pinned: bool = False
    earlier: bool = False


def ranked(
    points: Sequence[Point], focus: Iterable[str] = (), names: Callable[[str], float] = lambda _: 0.0
) -> list[tuple[Point, float]]:
    """Order points, with their values, by what each adds to those before it; near-repetitions come last.

    Args:
        points: points of any sections.
        focus: terms that the caller wants to be in the summary.
        names: weighs the names in a line, by how much of the work is about them.
    """
    words = {point: terms(point.text) for point in points}
    relevance = _relevance(words, frozenset(focus), names)
    result: list[tuple[Point, float]] = []
    for section in Section:
        inside = [point for point in words if point.section is section]
        inside.sort(key=lambda p: (not p.pinned, -relevance[p], -p.order))
        if section in {Section.FILES, Section.ERRORS}:  # these may be alike and still say different things
            result += [(point, relevance[point]) for point in inside]
        else:
            result += _without_repetition(inside[:_CONSIDERED], words, relevance)
    return result


def _relevance(
    words: dict[Point, list[str]], focus: frozenset[str], names: Callable[[str], float]
) -> dict[Point, float]:
    frequency = Counter(term for own in words.values() for term in own)
    total = len(words)
    centroid = {term: n * math.log(1 + total / n) for term, n in frequency.items() if n > 1}
    sums = {point: sum(centroid.get(term, 0.0) for term in own) / (8 + len(own)) for point, own in words.items()}
    most = max(sums.values(), default=0.0) or 1.0
    return {
        point: point.weight
        * (
            1
            + sums[point] / most
            + 0.1 * min(len(FACT.findall(point.text)), 4)
            + 0.5 * bool(focus.intersection(own))
            + _NAMES * min(names(point.text), 3.0)
        )
        for point, own in words.items()
    }


def _without_repetition(
    points: list[Point], words: dict[Point, list[str]], relevance: dict[Point, float]
) -> list[tuple[Point, float]]:
    """Take the most relevant point again and again, each discounted by its likeness to the nearest taken one."""
    likeness = dict.fromkeys(points, 0.0)
    chosen: list[tuple[Point, float]] = []
    left = list(points)
    while left:
        best = max(left, key=lambda p: (p.pinned, relevance[p] * (1 - _REPETITION * likeness[p])))
        left.remove(best)
        chosen.append((best, relevance[best] * (1 - likeness[best])))
        own = frozenset(words[best])
        for point in left:
            likeness[point] = max(likeness[point], _jaccard(own, words[point]))
    return chosen


def _jaccard(one: frozenset[str], other: list[str]) -> float:
    shared = len(one.intersection(other))
    return shared / (len(one) + len(other) - shared) if shared else 0.0
