"""Read the outline of an earlier summary, and write one under a hard cap."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .ranking import Point, Section
from .record import classify, is_open_step
from .text import ELLIPSIS, clean, clip, ended, one_line, sentences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.ports import TokenCounter

    from .layouts import Layout, LayoutPart

FIRST: Final = "First: "
NEWEST: Final = "Newest: "
_LABEL: Final = re.compile(rf"^(?:{FIRST}|{NEWEST})")
_HEADING: Final = re.compile(
    r"^\s*(?:#{1,6}\s+(?P<marked>.+?)|\*\*(?P<bold>[^*]+?):?\*\*:?|(?P<plain>[\w ,/()-]{3,40}):)\s*$"
)
_NAMES: Final[tuple[tuple[str, Section], ...]] = (
    (r"next|to-?do|remaining|pending|plan", Section.NEXT),
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
"""Sections that are not clipped by characters: errors and files hold whole paths, the task is cut by tokens."""
_PLAN_SHARE: Final = 0.2
"""Share of the cap that the open steps of a plan may take: a part of it is a plan that nobody made."""
_PROSE: Final = (Section.DECISIONS, Section.DONE, Section.QUESTIONS, Section.NEXT)


def read_outline(summary: str, titles: Mapping[str, Section] = _TITLES) -> list[Point]:
    """Make points of an earlier summary, in its order; text under no known heading is classified by its wording.

    Args:
        summary: a summary by any author, untrusted.
        titles: the sections of the headings of the summary's own shape.
    """
    points: list[Point] = []
    section: Section | None = None
    lines = clean(summary).splitlines()
    for number, line in enumerate(lines):
        order = number - len(lines)
        heading = _HEADING.match(line)
        if heading:
            section = _section_of(next(filter(None, heading.groups())), titles)
        elif section is not None and line.lstrip()[:2] in {"- ", "* "}:
            text = clip(one_line(line), _EARLIER_LENGTH if section in _PROSE else _EARLIER_FACT)
            step = section is Section.NEXT and is_open_step(text)
            weight = 2.0 if step else 1.5 if section is Section.ERRORS else 1.0
            points.append(Point(section, text, order, weight, earlier=True, step=step))
        else:
            found = [(section or classify(s)[0], s) for s in sentences(line)]
            points += [Point(s, clip(text, _EARLIER_LENGTH), order, earlier=True) for s, text in found]
    return points


def task_text(point: Point) -> str:
    """Return a task's own words, without the label that separates first and newest task."""
    return _LABEL.sub("", point.text)


def _section_of(heading: str, titles: Mapping[str, Section]) -> Section | None:
    if heading in titles:
        return titles[heading]
    return next((section for words, section in _NAMES if re.search(words, heading, re.IGNORECASE)), None)


class SummaryDraft:
    """A summary in the making: takes points as long as they fit, and writes them under their headings.

    Args:
        counter: counts the text.
        max_tokens: hard cap of the finished text.
        layout: the headings.
    """

    def __init__(self, counter: TokenCounter, max_tokens: int, layout: Layout) -> None:
        self._counter = counter
        self._max_tokens = max_tokens
        self._layout = layout
        self._chosen: dict[LayoutPart, list[Point]] = {part: [] for part in layout.parts}
        self._spent = {part: self._standing(part) for part in layout.parts}

    def fill(self, ranked: Sequence[tuple[Point, float]], *, least: float) -> None:
        """Take points, best first: each part up to its share of the cap, then the best points that fit the rest.

        Prose of the earlier summary gets half of a share.

        Args:
            ranked: points with their values, best first within a section.
            least: points of a smaller value are taken only to keep their part from being empty.
        """
        left: list[tuple[float, LayoutPart, Point]] = []
        for part in self._layout.by_priority():
            queue = [(point, value) for point, value in ranked if point.section in part.sections]
            if len(part.sections) > 1:
                queue.sort(key=lambda ranked_point: (not ranked_point[0].pinned, -ranked_point[1]))
            share = int(part.share * self._max_tokens)
            earlier = 0
            for point, value in queue:
                cost = self._cost(part, point)
                claim = earlier + cost if point.earlier and point.section in _PROSE and not point.step else 0
                most = max(share, int(_PLAN_SHARE * self._max_tokens)) if point.step else share
                if (
                    (value < least and self._chosen[part])
                    or claim > share // 2
                    or not self._take(part, point, cost, most)
                ):
                    left.append((value, part, point))
                else:
                    earlier += cost if point.earlier and not point.step else 0
        # Only after every part had its share: a rich part may not take the room of the parts behind it.
        for value, part, point in sorted(left, key=lambda kept: -kept[0]):
            if value >= least:
                self._take(part, point, self._cost(part, point), self._max_tokens)

    def text(self) -> str:
        """Write the summary; it never counts more than the cap, and is empty only where no point fits."""
        parts = self._layout.parts
        text = self._write(parts)
        if self._counter.count(text) > self._max_tokens:  # drop headings without points first
            parts = tuple(part for part in parts if self._chosen[part])
        while True:
            text = self._write(parts)
            if self._counter.count(text) <= self._max_tokens:
                return text
            longest = max(self._layout.by_priority()[1:] or parts, key=lambda p: len(self._chosen[p]))
            if not self._chosen[longest]:
                return fitted(text, self._max_tokens, self._counter)
            self._chosen[longest].pop()

    def _take(self, part: LayoutPart, point: Point, cost: int, share: int) -> bool:
        room = min(share - self._spent[part], self._max_tokens - sum(self._spent.values()))
        if not self._spent[part]:
            cost += self._counter.count(f"{part.heading}\n\n")
        if cost > room:
            return False
        self._chosen[part].append(point)
        self._spent[part] += cost
        return True

    def _standing(self, part: LayoutPart) -> int:
        return self._counter.count(f"{part.heading}\n{part.empty}\n") if part.empty else 0

    def _cost(self, part: LayoutPart, point: Point) -> int:
        return self._counter.count(f"{part.mark}{point.text}\n")

    def _write(self, parts: Sequence[LayoutPart]) -> str:
        written: list[str] = []
        for part in parts:
            points = sorted(self._chosen[part], key=lambda p: p.order)
            lines = [f"{part.mark}{point.text}" for point in points] or [part.empty]
            if any(lines):
                written.append("\n".join(filter(None, [part.heading, *lines])))
        return "\n\n".join(written)


def fitted(text: str, tokens: int, counter: TokenCounter) -> str:
    """Shorten a line to ``tokens`` tokens, after a word, with an ellipsis; empty where no word fits."""
    if counter.count(text) <= tokens:
        return text
    cut = counter.truncate(text, max(tokens - counter.count(ELLIPSIS), 0))
    return ended(cut) if cut else ""
