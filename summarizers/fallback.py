"""A chain of summarizers: the next one answers when one fails, and the summary says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.answers import Chain

if TYPE_CHECKING:
    from timeline.ports import Summarizer


class FallbackSummarizer(Chain):
    """Asks summarizers in order until one gives a usable answer.

    Each of them may take an equal share of the time that is left: with two, and 110 seconds for a summary, the first
    has 55, and the second whatever is left then.

    Args:
        first: the summarizer that is to answer.
        others: those that are asked when it fails, in order.
    """

    def __init__(self, first: Summarizer, *others: Summarizer) -> None:
        super().__init__((first, *others))
