"""The outline of a summary: reading one that was written before, and writing one under a hard cap."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .ranking import Point, Section
from .record import classify
from .text import ELLIPSIS, clean, clip, ended, one_line, sentences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.ports import TokenCounter

FIRST: Final = "First: "
NEWEST: Final = "Newest: "
_LABEL: Final = re.compile(rf"^(?:{FIRST}|{NEWEST})")
_HEADING: Final = re.compile(
    r"^\s*(?:#{1,6}\s+(?P<marked>.+?)|\*\*(?P<bold>[^*]+?):?\*\*:?|(?P<plain>[\w ,/()-]{3,40}):)\s*$"
)
_NAMES: Final[tuple[tuple[str, Section], ...]] = (
    (r"next|to-?do|remaining|plan", Section.NEXT),
    (r"question|open|unresolved", Section.QUESTIONS),
    (r"error|problem|fail|issue|bug", Section.ERRORS),
    (r"decision|finding|preference|constraint|reject|technical|learn", Section.DECISIONS),
    (r"file|artifact", Section.FILES),
    (r"task|goal|request|objective|intent|prompt", Section.TASK),
    (r"done|accomplish|progress|state|complet|action|work", Section.DONE),
)
_TITLES: Final = {section.value: section for section in Section}
_EARLIER_LENGTH: Final = 220
_EARLIER_FACT: Final = 700
"""Errors and files hold paths that must stay whole, and the task is shortened by tokens."""
_PROSE: Final = (Section.DECISIONS, Section.DONE, Section.QUESTIONS, Section.NEXT)
_PRIORITY: Final = (
    *(Section.TASK, Section.ERRORS, Section.DECISIONS, Section.DONE),
    *(Section.NEXT, Section.QUESTIONS, Section.FILES),
)


def read_outline(summary: str) -> list[Point]:
    """Make points of an earlier summary, its order kept; text under no known heading is sorted by its wording."""
    points: list[Point] = []
    section: Section | None = None
    lines = clean(summary).splitlines()
    for number, line in enumerate(lines):
        order = number - len(lines)
        heading = _HEADING.match(line)
        if heading:
            section = _section_of(next(filter(None, heading.groups())))
        elif section is not None and line.lstrip()[:2] in {"- ", "* "}:
            text = clip(one_line(line), _EARLIER_LENGTH if section in _PROSE else _EARLIER_FACT)
            points.append(Point(section, text, order, 1.5 if section is Section.ERRORS else 1.0, earlier=True))
        else:
            found = [(section or classify(s)[0], s) for s in sentences(line)]
            points += [Point(s, clip(text, _EARLIER_LENGTH), order, earlier=True) for s, text in found]
    return points


def task_text(point: Point) -> str:
    """Return a task's own words, without the label that told first and newest apart."""
    return _LABEL.sub("", point.text)


def _section_of(heading: str) -> Section | None:
    if heading in _TITLES:
        return _TITLES[heading]
    return next((section for words, section in _NAMES if re.search(words, heading, re.IGNORECASE)), None)


class Draft:
    """A summary in the making: takes points as long as they fit, and writes them in their sections' order.

    Args:
        counter: counts what is written.
        max_tokens: hard cap of the finished text.
    """

    def __init__(self, counter: TokenCounter, max_tokens: int) -> None:
        self._counter = counter
        self._max_tokens = max_tokens
        self._chosen: dict[Section, list[Point]] = {section: [] for section in Section}
        self._spent: dict[Section, int] = dict.fromkeys(Section, 0)

    def fill(self, ranked: Sequence[tuple[Point, float]], shares: Mapping[Section, float], *, least: float) -> None:
        """Take points, best first: each section up to its share of the cap, then what is worth the room that is left.

        Args:
            ranked: points with their values, best first within a section.
            shares: part of the cap that a section may claim before the others had theirs; prose of the earlier summary
                gets half of it.
            least: points of a smaller value are taken only where their section would be empty.
        """
        queues = {s: [(p, value) for p, value in ranked if p.section is s] for s in _PRIORITY}
        left: list[tuple[float, Point]] = []
        for section, queue in queues.items():
            share = int(shares[section] * self._max_tokens)
            earlier = 0
            for point, value in queue:
                cost = self._cost(point)
                claim = earlier + cost if point.earlier and section in _PROSE else 0
                if (
                    (value < least and self._chosen[section])
                    or claim > share // 2
                    or not self._take(point, cost, share)
                ):
                    left.append((value, point))
                else:
                    earlier += cost if point.earlier else 0
        for value, point in sorted(left, key=lambda vp: -vp[0]):
            if value >= least:
                self._take(point, self._cost(point), self._max_tokens)

    def text(self) -> str:
        """Write the summary; it never counts more than the cap, and is empty only where nothing fits."""
        while True:
            text = self._write()
            if self._counter.count(text) <= self._max_tokens:
                return text
            longest = max(_PRIORITY[1:], key=lambda s: len(self._chosen[s]))
            if not self._chosen[longest]:
                return self._counter.truncate(text, self._max_tokens)
            self._chosen[longest].pop()

    def _take(self, point: Point, cost: int, share: int) -> bool:
        room = min(share - self._spent[point.section], self._max_tokens - sum(self._spent.values()))
        if not self._chosen[point.section]:
            cost += self._counter.count(f"## {point.section}\n\n")
        if cost > room:
            return False
        self._chosen[point.section].append(point)
        self._spent[point.section] += cost
        return True

    def _cost(self, point: Point) -> int:
        return self._counter.count(f"- {point.text}\n")

    def _write(self) -> str:
        parts = [
            f"## {section}\n" + "\n".join(f"- {p.text}" for p in sorted(points, key=lambda p: p.order))
            for section, points in self._chosen.items()
            if points
        ]
        return "\n\n".join(parts)


def fitted(text: str, tokens: int, counter: TokenCounter) -> str:
    """Shorten a line to so many tokens, after a word, and say so with an ellipsis; empty where nothing fits."""
    if counter.count(text) <= tokens:
        return text
    cut = counter.truncate(text, max(tokens - counter.count(ELLIPSIS), 0))
    return ended(cut) if cut else ""
