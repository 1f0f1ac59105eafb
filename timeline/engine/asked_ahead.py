"""Keep the answers that the application's summarizer gave to dry runs: the render that follows asks the same.

A dry run returns the bytes that the render will send. But a model gives another answer each time it is asked, and costs
money each time. So its newest answers are kept, for the next dry runs of the same log and for the render that commits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.ports import Summary, name_of, window_of

if TYPE_CHECKING:
    from timeline.ports import Summarizer, SummaryRequest

_OF_ONE: Final = 4
"""The most requests of one compaction: about the history and about the beginning of a turn, each asked once more where
its answer invents names."""


class _Answer(NamedTuple):
    """A request of a dry run, without the context to ask in, and the answer."""

    request: SummaryRequest
    summary: Summary


class AskedAhead:
    """A summarizer in two forms: one for dry runs, one for renders that are recorded.

    Args:
        summarizer: the application's.
        compactions: the most that one render makes; the answers of so many are kept.

    Attributes:
        by_dry_runs: keeps the answers, and asks only for what it has no answer to.
        by_renders: takes each kept answer once. So an undo and another compaction get another summary.
    """

    def __init__(self, summarizer: Summarizer, compactions: int) -> None:
        kept: deque[_Answer] = deque(maxlen=_OF_ONE * compactions)
        self.by_dry_runs: Summarizer = _ByDryRuns(summarizer, kept)
        self.by_renders: Summarizer = _ByRenders(summarizer, kept)


class _Asking:
    """A summarizer with the answers that are kept."""

    def __init__(self, summarizer: Summarizer, kept: deque[_Answer]) -> None:
        self._summarizer, self._kept = summarizer, kept

    @property
    def name(self) -> str:
        """The summarizer's name."""
        return name_of(self._summarizer)

    @property
    def window_tokens(self) -> int | None:
        """The summarizer's window."""
        return window_of(self._summarizer)

    def _known(self, request: SummaryRequest) -> _Answer | None:
        asked = _comparable(request)
        return next((answer for answer in self._kept if answer.request == asked), None)


class _ByDryRuns(_Asking):
    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the kept answer, or ask, and keep it."""
        if (known := self._known(request)) is not None:
            return known.summary
        summary = await self._summarizer.summarize(request)
        if isinstance(summary, Summary):  # no type checker sees an application's summarizer
            self._kept.append(_Answer(_comparable(request), summary))
        return summary


class _ByRenders(_Asking):
    async def summarize(self, request: SummaryRequest) -> Summary:
        """Take the kept answer; or ask, and forget those of the request's kind: the log has changed since they came."""
        if (known := self._known(request)) is None:
            for other in [answer for answer in self._kept if answer.request.kind == request.kind]:
                self._kept.remove(other)
            return await self._summarizer.summarize(request)
        self._kept.remove(known)
        return known.summary


def _comparable(request: SummaryRequest) -> SummaryRequest:
    """Return a request without the context to ask in, since that does not change the question."""
    return replace(request, warm=None)
