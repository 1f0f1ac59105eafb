"""The summarizers of a replay, and what their summaries would have cost as model calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from timeline.importers.recording import ImportedCompaction
from timeline.ports import ABRIDGED_KEY, CUT_KEY, HIDDEN_KEY, Summary, name_of, window_of

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.importers.recording import Recording
    from timeline.ports import Summarizer, SummaryRequest, TokenCounter


class Spent(NamedTuple):
    """Tokens that a summarizer read, and wrote.

    Attributes:
        read: of requests of their own, all uncached.
        written: of all answers.
        questions: of each question that was asked in the cached context.
    """

    read: int = 0
    written: int = 0
    questions: tuple[int, ...] = ()


class Metered:
    """Measures another summarizer's requests, and the answers: prompt, tasks, earlier summary and blocks as sent.

    A request is a call of its own, so all of its input is uncached; or a question in the context that the provider has
    in its cache, where the policy has it so and question and answer fit behind it. For every summarizer the
    price is that of a model that gets the prompt of the request's shape.

    Args:
        inner: writes the summaries.
        counter: counts prompts, summaries, replacements and what was cut, which have no measured size.
        limit: the model's window.

    Attributes:
        sizes: tokens of each block, by path.
    """

    def __init__(self, inner: Summarizer, counter: TokenCounter, limit: int) -> None:
        self._inner, self._counter, self._limit = inner, counter, limit
        self._spent: list[Spent] = []
        self.sizes: dict[str, int] = {}

    @property
    def name(self) -> str:
        """The name of the inner summarizer."""
        return name_of(self._inner)

    @property
    def window_tokens(self) -> int | None:
        """The window of the inner summarizer."""
        return window_of(self._inner)

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer a request, and measure both."""
        answer = await self._inner.summarize(request)
        written = self._counter.count(answer.text)
        question = None if request.warm is None else self._counter.count(_question(request))
        if request.warm is not None and question is not None:
            room = int(request.answer_room * request.max_tokens)
            if request.warm.tokens + question + room <= self._limit:
                self._spent.append(Spent(0, written, (question,)))
                return replace(answer, asked="in_cache", alone_because=None)
            answer = replace(answer, alone_because="window")
        read = self._counter.count(_frame(request)) + sum(self._size(block) for block in request.blocks)
        self._spent.append(Spent(read, written))
        return answer

    def _size(self, block: Block) -> int:
        """Return the tokens of a block as a request has it: as measured, unless it is not there as it was said."""
        changed = not {HIDDEN_KEY, ABRIDGED_KEY, CUT_KEY}.isdisjoint(block.meta)
        measured = None if changed else self.sizes.get(block.path)
        return self._counter.count(block.countable()) if measured is None else measured

    def spent(self) -> Spent | None:
        """Return the tokens spent since it was asked last; None where nothing was asked of the summarizer."""
        if not self._spent:
            return None
        spent, self._spent = self._spent, []
        questions = tuple(question for one in spent for question in one.questions)
        return Spent(sum(one.read for one in spent), sum(one.written for one in spent), questions)


def _frame(request: SummaryRequest) -> str:
    from timeline import summarizers  # noqa: PLC0415 - the lazy re-export: the core does not import the package

    return summarizers.frame_of(request)


def _question(request: SummaryRequest) -> str:
    from timeline import summarizers  # noqa: PLC0415 - the same

    return summarizers.question_in_cache(request)


class RecordedSummaries:
    """Answers with the recorded client's own summaries, in order; when they are used up, with another summarizer's.

    Args:
        recording: the recording with the summaries.
        otherwise: answers once they are used up, and for the prefix of a split turn.
    """

    def __init__(self, recording: Recording, otherwise: Summarizer) -> None:
        payloads = (e.payload for e in recording.events)
        self._texts = [payload.summary for payload in payloads if isinstance(payload, ImportedCompaction)][::-1]
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
