"""The default summarizer: takes the telling lines out of a record, without a model or a network.

Deterministic and fast (some 50 ms for 60,000 tokens), and always able to answer, so that it stands behind every
other summarizer. It understands blocks, not meaning: tasks, decisions, what was done, errors and what is open are told
apart by kind of block and wording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.ports import Summary

from .outline import FIRST, NEWEST, Draft, fitted, read_outline, task_text
from .ranking import Point, Section, ranked
from .record import gather
from .text import one_line, terms

if TYPE_CHECKING:
    from timeline.ports import SummaryRequest

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
    # The prompt of a split turn is carried verbatim beside the summary, so it gets less room here.
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
_LEAST: Final = 0.6
"""Value under which a point is not worth the tokens, although there is room."""
_TASK_TOKENS: Final = 60
"""What the task takes of a small cap before the other sections, in tokens."""
NOTHING_SAID: Final = "Nothing that can be put in words was said."


class ExtractiveSummarizer:
    """Summarises by extraction: labelled sections of short lines, taken from the blocks and the previous summary."""

    @property
    def name(self) -> str:
        """Always ``extractive``."""
        return "extractive"

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer a request; the same request always gets the same text, and none fails."""
        return Summary(text=extract(request), summarizer=self.name)


def extract(request: SummaryRequest) -> str:
    """Return the summary's text, at most ``request.max_tokens`` by the request's counter."""
    found = gather(request.blocks)
    earlier = [
        point
        for point in read_outline(request.previous or "")
        if not (point.section is Section.ERRORS and found.settles(point.text))
    ]
    tasks = _tasks(request, found.prompts, [p for p in earlier if p.section is Section.TASK])
    points = [p for p in earlier if p.section is not Section.TASK] + tasks + found.points
    if len(found.prompts) > 1 or any(p.section is Section.NEXT for p in found.points):
        # What was open before is overtaken, by a newer plan or by the second prompt that does not come back to it.
        points = [p for p in points if not (p.earlier and p.section in {Section.NEXT, Section.QUESTIONS})]
    unique = {(p.section, p.text.casefold()): p for p in points if p.text}
    best = ranked(list(unique.values()), terms(request.instructions))
    draft = Draft(request.counter, request.max_tokens)
    draft.fill(best, _shares(request), least=_LEAST)
    return draft.text() or _shortest(best, request)


def _shares(request: SummaryRequest) -> dict[Section, float]:
    """Return each section's share of the cap; under a small cap the task gets most of it."""
    shares = dict(_SHARES[request.kind])
    shares[Section.TASK] = max(shares[Section.TASK], min(0.6, _TASK_TOKENS / max(request.max_tokens, 1)))
    return shares


def _tasks(request: SummaryRequest, prompts: list[tuple[int, str]], earlier: list[Point]) -> list[Point]:
    """Pin the first and the newest task, each with a part of the section's room; the others compete, newest first."""
    asked = [(p.order, task_text(p)) for p in earlier] + [p for p in prompts if p[1]]
    newest = one_line(request.task or "")
    if newest and (not asked or asked[-1][1][:60] != newest[:60]):
        asked.append((len(request.blocks), newest))
    room = int(_shares(request)[Section.TASK] * request.max_tokens) - 8
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
    """Weigh an older prompt: a word of assent says nothing once it is answered."""
    return 0.7 if len(terms(prompt)) > 2 else 0.0


def _shortest(best: list[tuple[Point, float]], request: SummaryRequest) -> str:
    """Answer where no whole line fits the cap: with the beginning of the best one, or with a fixed text."""
    counter, cap = request.counter, request.max_tokens
    text = next((point.text for point, _ in best), "")
    return fitted(text, cap, counter) or counter.truncate(text, cap) or counter.truncate(NOTHING_SAID, cap)
