"""Texts that were written to make a pattern try every way to match them: without a bound, each takes hours."""

from __future__ import annotations

from typing import Final

import pytest

from tests.summarizers.test_invented import request_of
from timeline.errors import SummarizerFailed
from timeline.ports import Summary, SummaryRequest
from timeline.summarizers import FallbackSummarizer
from timeline.summarizers.invented import invented_names
from timeline.summarizers.naming import Names
from timeline.summarizers.text import sentences

LONG: Final = 500_000


def test_blanks_behind_the_beginning_of_a_tag_take_no_time() -> None:
    """A prompt of a pasted page may hold them."""
    assert sentences("<" + " " * LONG + "The limit stays as it is.") == ("The limit stays as it is.",)


def test_a_name_of_many_humps_takes_no_time() -> None:
    """A model that reads what an attacker wrote may put it into its summary."""
    assert invented_names("Renamed it to " + "aB" * 40 + "é.", request_of()) == []


def test_a_name_of_many_underscores_takes_no_time() -> None:
    """It ends with one, so that it is none."""
    assert Names().weight("a_" * LONG) == 0


async def test_a_heading_behind_many_blanks_takes_no_time() -> None:
    """An answer that is nothing but headings is refused as empty."""
    with pytest.raises(SummarizerFailed, match="the answer is empty"):
        await FallbackSummarizer(_Heading()).summarize(request_of(max_tokens=LONG))


class _Heading:
    """Answers with a heading alone."""

    name = "heading"

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return it, whatever the request."""
        del request
        return Summary(text="#" + "\t" * LONG + "x", summarizer="heading")
