"""Templates that came back unfilled in the place of a summary."""

from __future__ import annotations

from typing import Final

import pytest

from tests.summarizers.test_refused import request_of
from timeline.ports import Summary, SummaryRequest
from timeline.summarizers import ExtractiveSummarizer, FallbackSummarizer

UNFILLED: Final = (
    "## Goal\n- (none)\n\n## Progress\n### Done\n- (none)\n### Blocked\n- (none)",
    "## Task\nNone.\n\n## Decisions\nN/A\n\n---\n",
    "**Goal:** none\n**Done:** *None yet.*\n1. Nothing so far",
    "(none)",
)
FILLED: Final = (
    "## Goal\n- Fix the login form\n\n## Blocked\n- (none)",
    "## Done\n- None of the tests passes any more.",
    "Nothing was done.",
    "- None: the default of `timeout`",
)


class _Saying:
    """Answers with one text."""

    name = "saying"

    def __init__(self, text: str) -> None:
        self.text = text

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return it, whatever the request."""
        del request
        return Summary(text=self.text, summarizer=self.name)


@pytest.mark.parametrize("text", UNFILLED)
async def test_a_template_whose_sections_say_none_is_no_summary(text: str) -> None:
    """It would replace all that was covered by nothing."""
    answer = await FallbackSummarizer(_Saying(text), ExtractiveSummarizer()).summarize(request_of("Done."))
    assert answer.fallback_reason == "saying: the answer is empty"
    assert "login form" in answer.text


@pytest.mark.parametrize("text", FILLED)
async def test_one_line_that_says_something_makes_a_summary(text: str) -> None:
    """Most templates have a section with nothing to say."""
    answer = await FallbackSummarizer(_Saying(text), ExtractiveSummarizer()).summarize(request_of("Done."))
    assert (answer.text, answer.fallback_reason) == (text, None)
