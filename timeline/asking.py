"""Asking for summaries: both parts at the same time, and every answer judged, whoever gave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from timeline.errors import SummarizerFailed
from timeline.events import SummaryParts, total_usage
from timeline.planning.summary import unheaded, written_by
from timeline.ports import name_of, reported_usage
from timeline.refusals import cause_of

if TYPE_CHECKING:
    from timeline.events import Usage, WrittenBy
    from timeline.planning.requests import Requests
    from timeline.policy.steps import SummaryForm
    from timeline.ports import Summarizer, Summary, SummaryRequest


@dataclass(slots=True)
class Asked:
    """What the requests of one compaction came to so far, also for the record of one that is broken off.

    Attributes:
        spent: what all answers that came were reported to have taken, used or not; None where nobody reported any.
        unanswered: how many requests were broken off. A provider may well count them, and tells their usage to nobody:
            it stands in the answer that never came.
    """

    spent: Usage | None = None
    unanswered: int = 0

    def answered(self, usage: Usage | None) -> None:
        """Take in that a request was answered, by an error too."""
        self.spent = total_usage((self.spent, usage))
        self.unanswered -= 1


async def ask(
    summarizer: Summarizer, requests: Requests, form: SummaryForm, asked: Asked
) -> tuple[SummaryParts, WrittenBy]:
    """Ask for the parts of a summary; this is where time passes, and no lock is held.

    Args:
        summarizer: who is asked.
        requests: what about.
        form: puts its heading before the summary, so that a heading in an answer is taken off.
        asked: is told of each request and each answer.

    Raises:
        SummarizerFailed: there is no usable answer to one of them: an error of whatever kind, a text that is empty, or
            one that is longer than it may be.
    """
    answers: dict[str, Summary] = {}

    async def answer(request: SummaryRequest) -> None:
        answers[request.kind] = await _judged(summarizer, request, asked)

    try:
        async with anyio.create_task_group() as group:
            for request in (requests.history, requests.turn_prefix):
                if request is not None:
                    group.start_soon(answer, request)
    except BaseExceptionGroup as errors:
        failed = errors.subgroup(SummarizerFailed)
        if failed is None or len(failed.exceptions) != len(errors.exceptions):
            raise
        failure = next(error for error in failed.exceptions if isinstance(error, SummarizerFailed))
        failure.usage = asked.spent
        raise failure from None
    parts = SummaryParts(
        history=unheaded(answers["history"].text, form) if "history" in answers else requests.kept.history,
        turn_prefix=answers["turn_prefix"].text if "turn_prefix" in answers else requests.kept.turn_prefix,
    )
    return parts, written_by(list(answers.values()))


async def _judged(summarizer: Summarizer, request: SummaryRequest, asked: Asked) -> Summary:
    """Ask a summarizer; what an application's raises, and what it answers, is judged as in a chain of several."""
    asked.unanswered += 1
    try:
        summary = await summarizer.summarize(request)
    except SummarizerFailed as failure:
        asked.answered(failure.usage)
        raise
    except Exception as error:
        asked.answered(None)
        raised = f"{name_of(summarizer)}: {type(error).__name__}: {error}"
        raise SummarizerFailed([raised], cause=cause_of(error)) from error
    usage = reported_usage(summary)
    asked.answered(usage)
    problem = request.problem_with(summary)
    if problem is not None:
        raise SummarizerFailed([f"{name_of(summarizer)}: {problem}"], usage=usage)
    return summary
