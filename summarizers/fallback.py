"""A chain of summarizers: the next one answers when one fails, and the summary says why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from timeline.errors import SummarizerFailed
from timeline.events import total_usage
from timeline.ports import name_of, reported_usage
from timeline.refusals import cause_of

if TYPE_CHECKING:
    from timeline.errors import Cause
    from timeline.events import Usage
    from timeline.ports import Summarizer, Summary, SummaryRequest


class FallbackSummarizer:
    """Asks summarizers in order until one gives a usable answer.

    Args:
        first: the summarizer that is to answer.
        others: those that are asked when it fails, in order.
    """

    def __init__(self, first: Summarizer, *others: Summarizer) -> None:
        self._summarizers = (first, *others)

    @property
    def name(self) -> str:
        """The names of the chain, in order."""
        return ", then ".join(map(name_of, self._summarizers))

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the first usable answer; ``fallback_reason`` says why those before it gave none.

        Its ``usage`` is what all answers took that came, those included that could not be used.

        Raises:
            SummarizerFailed: none gave one; ``problems`` says how each failed. A cancellation is passed on.
        """
        problems: list[str] = []
        causes: list[Cause] = []
        spent: list[Usage | None] = []
        for summarizer in self._summarizers:
            try:
                summary = await summarizer.summarize(request)
            except SummarizerFailed as error:
                problems += error.problems
                causes.append(error.cause)
                spent.append(error.usage)
            except Exception as error:  # noqa: BLE001 - whatever an application's summarizer raises, the next one answers
                problems.append(f"{name_of(summarizer)}: {type(error).__name__}: {error}")
                causes.append(cause_of(error))
            else:
                problem = request.problem_with(summary)
                spent.append(reported_usage(summary))
                if problem is None:
                    reasons = [*problems, summary.fallback_reason] if summary.fallback_reason else problems
                    return replace(summary, fallback_reason="; ".join(reasons) or None, usage=total_usage(spent))
                problems.append(f"{name_of(summarizer)}: {problem}")
                causes.append("error")
        raise SummarizerFailed(problems, cause=causes[0], usage=total_usage(spent))
