"""Errors that came as text in the place of a summary."""

from __future__ import annotations

from typing import Final

import pytest

from tests.summarizers.test_refused import SUMMARIES as SUMMARIES_LIKE_REFUSALS
from tests.summarizers.test_refused import request_of
from timeline.errors import SummarizerFailed
from timeline.summarizers import CallableSummarizer
from timeline.summarizers.error_texts import is_error_text

ERRORS: Final = (
    "Error: rate limited",
    "Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-5', 'type': 'tokens'}}",
    "litellm.RateLimitError: RateLimitError: OpenAIException - Too many requests. Please retry after 8 seconds.",
    "API Error: 529 Overloaded",
    "You\u2019ve hit your limit · resets 5am",
    "503 Service Unavailable",
    "Internal Server Error",
    "Error generating summary: 429 Too Many Requests",
    "Connection error.",
    "<!DOCTYPE html>\n<html><head><title>Login form</title></head></html>",
    '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
)
SUMMARIES: Final = (
    *SUMMARIES_LIKE_REFUSALS,
    "ok",
    "Error handling of the login form was added.",
    "Error: the login form has no test.",
    "Error generating the summary page of src/auth.py was found.",
    "An error in src/auth.py was found, and nothing else.",
    "429 lines of src/auth.py were read.",
    '{"goal": "fix the form", "error": "none"}',
)


@pytest.mark.parametrize("text", ERRORS)
def test_an_error_that_came_as_text_is_known(text: str) -> None:
    """Whatever brought it: a function that returns what it caught, or a summarizer of an application's own."""
    assert is_error_text(text, request_of("Done."))


@pytest.mark.parametrize("text", SUMMARIES)
def test_what_tells_of_an_error_or_says_little_is_a_summary(text: str) -> None:
    """A short one may be all that there is to say."""
    assert not is_error_text(text, request_of())


async def test_the_question_repeated_is_no_summary() -> None:
    """It was cut to the cap and shown, under a policy that cuts what is too long."""

    async def repeats(prompt: str) -> str:
        return f" {prompt}\n"

    with pytest.raises(SummarizerFailed, match="repeats the question"):
        await CallableSummarizer(repeats).summarize(request_of("Done."))
