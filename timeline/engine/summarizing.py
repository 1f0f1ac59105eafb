"""Ask for the summary of one compaction: both of its parts at the same time, one answer each.

No lock is held here. This is where a compaction spends its time, and appends go on meanwhile.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio

from timeline.errors import SummarizerFailed
from timeline.events import SummaryParts
from timeline.log.stopwatch import Stopwatch
from timeline.planning.summary_block import written_by
from timeline.ports import SIGNALS
from timeline.usage import total_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.events import WrittenBy
    from timeline.planning.summary_requests import Requests
    from timeline.ports import Clock, Summarizer, Summary, SummaryRequest
    from timeline.usage import Usage


class Outlay(NamedTuple):
    """What a compaction that came to nothing has cost.

    Attributes:
        usage: of the answers that came; None if none reported any.
        unanswered: how many requests were broken off.
        duration: seconds that the compaction took; None if it was not measured.
    """

    usage: Usage | None = None
    unanswered: int = 0
    duration: float | None = None


NO_OUTLAY: Final = Outlay()


@dataclass(slots=True)
class SummaryRequestLog:
    """The usage and time of one compaction's requests so far. A compaction that breaks off records the usage, too.

    Attributes:
        spent: the usage of all answers that came, used or not; None if none reported any.
        unanswered: how many requests were broken off. A provider may well charge for them, but reports usage only with
            the answer, which never came.
        duration: seconds that the summarizers took; None if no request was measured.
    """

    spent: Usage | None = None
    unanswered: int = 0
    duration: float | None = None

    def answered(self, usage: Usage | None) -> None:
        """Count an answer, also an error, with its usage."""
        self.spent = total_usage((self.spent, usage))
        self.unanswered -= 1

    @contextmanager
    def measured(self, clock: Clock) -> Iterator[None]:
        """Measure the time of the requests in this block, however it ends. Time of parallel requests counts once."""
        watch = Stopwatch(clock)
        try:
            yield
        finally:
            took = watch.duration()
            self.duration = self.duration if took is None else round((self.duration or 0.0) + took, 3)

    def outlay(self, duration: float | None) -> Outlay:
        """Return the outlay so far of a compaction that took this long."""
        return Outlay(self.spent, self.unanswered, duration)

    def figures(self) -> dict[str, Any]:
        """Return usage and duration as the fields of a `WrittenBy`."""
        return {"usage": self.spent, "duration": self.duration}


async def request_summary(
    summarizer: Summarizer, requests: Requests, asked: SummaryRequestLog, clock: Clock
) -> tuple[SummaryParts, WrittenBy]:
    """Ask for the parts of a summary; return them with their author.

    Args:
        summarizer: gets the requests; it judges its own answers, as `FallbackSummarizer` does.
        requests: the requests for the history, the turn's prefix, or both.
        asked: counts each request and each answer, and how long they took.
        clock: measures that.

    Raises:
        SummarizerFailed: a request has no usable answer. The other request is cancelled.
        BaseException: one of `SIGNALS`, which end the program; raised by itself, not in an exception group.
    """
    due = [request for request in (requests.history, requests.turn_prefix) if request is not None]
    answers: dict[str, Summary] = {}
    failures: list[BaseException] = []

    async def answer(request: SummaryRequest) -> None:
        asked.unanswered += 1
        try:
            summary = await summarizer.summarize(request)
        except (SummarizerFailed, *SIGNALS) as failure:
            asked.answered(failure.usage if isinstance(failure, SummarizerFailed) else None)
            failures.append(failure)
            group.cancel_scope.cancel()
        else:
            asked.answered(summary.usage)
            answers[request.kind] = summary

    with asked.measured(clock) if due else nullcontext():
        async with anyio.create_task_group() as group:
            for request in due:
                group.start_soon(answer, request)
    if failures:
        if isinstance(failures[0], SummarizerFailed):
            failures[0].usage = asked.spent
        del failures[1:]
        # Raise it without a name: a frame that holds its own error keeps the requests until a full collection.
        raise failures.pop()
    if missing := [request.kind for request in due if request.kind not in answers]:
        raise SummarizerFailed([f"no answer about the {' and the '.join(missing)}"], usage=asked.spent)
    parts = SummaryParts(
        history=answers["history"].text if "history" in answers else requests.kept.history,
        turn_prefix=answers["turn_prefix"].text if "turn_prefix" in answers else requests.kept.turn_prefix,
    )
    return parts, written_by(list(answers.values()))
