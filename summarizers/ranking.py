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
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .text import LINES_REMEMBERED, terms

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
        step: it is an open step of a plan, which may be like its neighbours and still says something else.
    """

    section: Section
    text: str
    order: float
    weight: float = 1.0
    pinned: bool = False
    earlier: bool = False
    step: bool = False


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
            result += [(point, relevance[point]) for point in inside if point.step]
            prose = [point for point in inside if not point.step]
            result += _without_repetition(prose[:_CONSIDERED], words, relevance)
    return result


def _relevance(
    words: dict[Point, tuple[str, ...]], focus: frozenset[str], names: Callable[[str], float]
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
            + 0.1 * _exact_facts(point.text)
            + 0.5 * bool(focus.intersection(own))
            + _NAMES * min(names(point.text), 3.0)
        )
        for point, own in words.items()
    }


@lru_cache(maxsize=LINES_REMEMBERED)
def _exact_facts(line: str) -> int:
    """Return how many exact facts a line holds; more than four are no better."""
    return min(len(FACT.findall(line)), 4)


def _without_repetition(
    points: list[Point], words: dict[Point, tuple[str, ...]], relevance: dict[Point, float]
) -> list[tuple[Point, float]]:
    """Take the most relevant point again and again, each discounted by its likeness to the nearest taken one."""
    own = [(point, frozenset(words[point])) for point in points]
    likeness = dict.fromkeys(points, 0.0)
    # As they stand before anything is taken; a point's is computed again when something like it was.
    standing = {point: (point.pinned, relevance[point]) for point in points}
    chosen: list[tuple[Point, float]] = []
    while own:
        taken = max(range(len(own)), key=lambda n: standing[own[n][0]])
        best, best_words = own.pop(taken)
        chosen.append((best, relevance[best] * (1 - likeness[best])))
        for point, others in own:
            if (like := _jaccard(best_words, others)) > likeness[point]:
                likeness[point] = like
                standing[point] = (point.pinned, relevance[point] * (1 - _REPETITION * like))
    return chosen


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0
