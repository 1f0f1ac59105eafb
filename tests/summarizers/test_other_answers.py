"""Answers that are something else in the place of a summary: no summarizer of the library lets them through."""

from __future__ import annotations

import pytest

from tests.summarizers.test_call_texts import CALLS
from tests.summarizers.test_error_texts import ERRORS
from tests.summarizers.test_refused import REFUSALS, request_of
from timeline.errors import SummarizerFailed
from timeline.ports import Summary, SummaryRequest
from timeline.summarizers import CallableSummarizer, ExtractiveSummarizer, FallbackSummarizer

OTHERS = [
    *((text, "error", "the answer is a call of a tool that came as text") for text in CALLS),
    *((text, "error", "the answer is an error that came as text") for text in ERRORS),
    *((text, "refused", "the model declined to answer, in words of its own") for text in REFUSALS),
]


class Answering:
    """A summarizer of an application's own that answers as it is told."""

    name = "own"

    def __init__(self, text: str) -> None:
        self.text = text

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer, whatever is asked."""
        del request
        return Summary(text=self.text, summarizer=self.name)


@pytest.mark.parametrize(("text", "cause", "problem"), OTHERS)
async def test_the_next_summarizer_answers_in_the_place_of_one_that_says_something_else(
    text: str, cause: str, problem: str
) -> None:
    """Whatever the first one is made of; without a next one it is a failure with its cause."""
    answer = await FallbackSummarizer(Answering(text), ExtractiveSummarizer()).summarize(request_of("Done."))
    assert "login form" in answer.text
    assert answer.fallback_reason == f"own: {problem}"
    with pytest.raises(SummarizerFailed) as failed:
        await FallbackSummarizer(Answering(text)).summarize(request_of("Done."))
    assert failed.value.cause == cause


@pytest.mark.parametrize(("text", "cause", "problem"), OTHERS)
async def test_a_model_that_says_something_else_gave_no_summary(text: str, cause: str, problem: str) -> None:
    """Also where it is asked in parts: the first such answer ends it."""

    async def answers(prompt: str) -> str:
        del prompt
        return text

    with pytest.raises(SummarizerFailed, match=problem) as failed:
        await CallableSummarizer(answers).summarize(request_of("Done."))
    assert failed.value.cause == cause
