"""The default summarizer: extract the most informative lines of a record, without a model or a network.

It is deterministic and fast (some 50 ms for 60,000 tokens), and always gives an answer, so every other summarizer falls
back to it. It understands blocks, not meaning: kind of block and wording separate tasks, decisions, finished work,
errors and open points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio.to_thread

from timeline.ports import Summary

from . import bullets, continuation, sections
from .layouts import plain
from .outline import FIRST, NEWEST, SummaryDraft, fitted, read_outline, task_text
from .ranking import Point, Section, ranked
from .record import gather
from .remembered import Remembered
from .shapes import Shape
from .text import one_line, terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.ports import PromptName, SummaryRequest

    from .layouts import Layout
    from .record import Gathered

_SHARES: Final = {
    "history": {
        Section.TASK: 0.24,
        Section.DECISIONS: 0.18,
        Section.DONE: 0.24,
        Section.FILES: 0.10,
        Section.ERRORS: 0.14,
        Section.QUESTIONS: 0.05,
        Section.NEXT: 0.07,
    },
    # A split turn's prompt is carried verbatim beside the summary, so it gets less room here.
    "turn_prefix": {
        Section.TASK: 0.16,
        Section.DECISIONS: 0.20,
        Section.DONE: 0.30,
        Section.FILES: 0.10,
        Section.ERRORS: 0.15,
        Section.QUESTIONS: 0.04,
        Section.NEXT: 0.07,
    },
}
_LEAST: Final = 0.3
"""Least value of a point that is worth its tokens where there is room."""
_LONG: Final = 20_000
"""Characters from which on a request is read off the event loop: five milliseconds' worth."""
_TASK_TOKENS: Final = 60
"""Tokens of a small cap that the task takes before the other sections."""
NOTHING_SAID: Final = "Nothing that can be put in words was said."


class ExtractiveSummarizer:
    """Summarises by extraction: labelled sections of short lines, taken from the blocks and the previous summary."""

    def __init__(self) -> None:
        self._extract = Remembered(lambda request, _: extract(request))

    @property
    def name(self) -> str:
        """Always ``extractive``."""
        return "extractive"

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise a request; the same request always gets the same text, and no request fails."""
        size = sum(len(block.text) for block in request.blocks)
        text = self._extract(request) if size < _LONG else await anyio.to_thread.run_sync(self._extract, request)
        return Summary(text=text, summarizer=self.name)


def extract(request: SummaryRequest) -> str:
    """Return the summary's text, at most ``request.max_tokens`` by the request's counter."""
    shape, found = _shape(request), gather(request.blocks)
    earlier = [
        point
        for point in shape.read(request.previous or "")
        if not (point.section is Section.ERRORS and found.settles(point.text))
    ]
    points = shape.points(request, found, earlier)
    if len(found.prompts) > 1 or found.plan[1] or any(p.section is Section.NEXT for p in found.points):
        # Drop what was open before: a newer plan overtook it, or a second prompt that does not come back to it. A plan
        # of which every step is done leaves nothing open.
        points = [p for p in points if not (p.earlier and p.section in {Section.NEXT, Section.QUESTIONS})]
    unique = {(p.section, _subject(p)): p for p in points if p.text}
    best = ranked(list(unique.values()), terms(request.instructions), found.names.weight)
    ending = shape.ending(request)
    room = request.max_tokens - request.counter.count(f"\n\n{ending}") if ending else request.max_tokens
    draft = SummaryDraft(request.counter, max(room, 0), shape.layout(request))
    draft.fill(best, least=_LEAST)
    text = draft.text() or _shortest(best, request)
    ended = f"{text}\n\n{ending}" if ending else text
    return ended if request.counter.count(ended) <= request.max_tokens else text


def _subject(point: Point) -> str:
    """Return what a point is about: of two lines about one changed file, the newer one stays."""
    text = point.text.casefold()
    return text.partition(": `")[0] if point.section is Section.FILES else text


def _shape(request: SummaryRequest) -> Shape:
    return _GENERIC if request.kind == "turn_prefix" else _SHAPES[request.prompt]


def _layout(request: SummaryRequest) -> Layout:
    """Divide the cap among the sections; a small cap goes mostly to the task."""
    shares = dict(_SHARES[request.kind])
    shares[Section.TASK] = max(shares[Section.TASK], min(0.6, _TASK_TOKENS / max(request.max_tokens, 1)))
    return plain(shares)


def _points(request: SummaryRequest, found: Gathered, earlier: Sequence[Point]) -> list[Point]:
    tasks = _tasks(request, found.prompts, [p for p in earlier if p.section is Section.TASK])
    return [p for p in earlier if p.section is not Section.TASK] + tasks + found.points


def _tasks(request: SummaryRequest, prompts: list[tuple[int, str]], earlier: list[Point]) -> list[Point]:
    """Pin the first and the newest task, each with a part of the section's room; the others compete, newest first."""
    asked = [(p.order, task_text(p)) for p in earlier] + [p for p in prompts if p[1]]
    newest = one_line(request.task or "")
    if newest and (not asked or asked[-1][1][:60] != newest[:60]):
        asked.append((len(request.blocks), newest))
    asked = list({text.casefold(): (order, text) for order, text in asked}.values())  # repeated: asked last
    room = int(_layout(request).parts[0].share * request.max_tokens) - 8
    if len(asked) < 2 or room < _TASK_TOKENS // 2:
        return [
            Point(Section.TASK, fitted(text, room, request.counter), order, 3.0, pinned=True)
            for order, text in asked[-1:]
        ]
    ends = ((FIRST, asked[0]), (NEWEST, asked[-1]))
    return [
        Point(Section.TASK, fitted(label + text, room * 2 // 5, request.counter), order, 3.0, pinned=True)
        for label, (order, text) in ends
    ] + [
        Point(Section.TASK, fitted(text, room // 6, request.counter), order, _worth(text) + 0.5 * i / len(asked))
        for i, (order, text) in enumerate(asked[1:-1])
    ]


def _worth(prompt: str) -> float:
    """Weigh an older prompt: a word of assent has no weight once it is answered."""
    return 0.7 if len(terms(prompt)) > 2 else 0.0


def _shortest(best: list[tuple[Point, float]], request: SummaryRequest) -> str:
    """Answer where no whole line fits the cap: return the beginning of the best line, or a fixed text."""
    counter, cap = request.counter, request.max_tokens
    text = next((point.text for point, _ in best), "")
    return fitted(text, cap, counter) or counter.truncate(NOTHING_SAID, cap)


_GENERIC: Final = Shape(_layout, read_outline, _points)
_SHAPES: Final[dict[PromptName, Shape]] = {
    "generic": _GENERIC,
    "sections": sections.SHAPE,
    "continuation": continuation.SHAPE,
    "bullets": bullets.SHAPE,
}
