"""The summarizers of a replay, and what their summaries would have cost as model calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.importers.recording import ImportedCompaction
from timeline.ports import HIDDEN_KEY, Summary, name_of

if TYPE_CHECKING:
    from timeline.importers.recording import Recording
    from timeline.ports import Summarizer, SummaryRequest, TokenCounter


class Spent(NamedTuple):
    """Tokens that a summarizer read, and wrote."""

    read: int = 0
    written: int = 0


class Metered:
    """Measures another summarizer's requests: the blocks to summarise, the previous summary, and the answer.

    A request is a call of its own, so all of its input is uncached.

    Args:
        inner: writes the summaries.
        counter: counts replacements and summaries, which have no measured size.

    Attributes:
        sizes: tokens of each block, by path.
    """

    def __init__(self, inner: Summarizer, counter: TokenCounter) -> None:
        self._inner, self._counter = inner, counter
        self._spent: list[Spent] = []
        self.sizes: dict[str, int] = {}

    @property
    def name(self) -> str:
        """The name of the inner summarizer."""
        return name_of(self._inner)

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer a request, and measure both."""
        answer = await self._inner.summarize(request)
        read = sum(
            self._counter.count(block.countable())
            if HIDDEN_KEY in block.meta or block.path not in self.sizes
            else self.sizes[block.path]
            for block in request.blocks
        )
        read += self._counter.count(request.previous or "")
        self._spent.append(Spent(read, self._counter.count(answer.text)))
        return answer

    def spent(self) -> Spent:
        """Return the tokens spent since the last call."""
        spent, self._spent = self._spent, []
        return Spent(sum(one.read for one in spent), sum(one.written for one in spent))


class RecordedSummaries:
    """Answers with the recorded client's own summaries, in order; when they are used up, with another summarizer's.

    Args:
        recording: the recording with the summaries.
        otherwise: answers once they are used up, and for the prefix of a split turn.
    """

    def __init__(self, recording: Recording, otherwise: Summarizer) -> None:
        told = (e.payload for e in recording.events)
        self._texts = [payload.summary for payload in told if isinstance(payload, ImportedCompaction)][::-1]
        self._otherwise = otherwise

    @property
    def name(self) -> str:
        """Always ``recorded``."""
        return "recorded"

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer a request with the next recorded summary, cut to the cap."""
        if request.kind != "history" or not self._texts:
            return await self._otherwise.summarize(request)
        text = request.counter.truncate(self._texts.pop(), request.max_tokens)
        return Summary(text=text, summarizer=self.name) if text.strip() else await self._otherwise.summarize(request)
