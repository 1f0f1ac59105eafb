from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest

from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.ports import SummaryRequest
from timeline.summarizers import ExtractiveSummarizer
from timeline.summarizers.remembered import Remembered
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class Counting:
    """A counter that knows how many texts it counted."""

    name: str = "chars4"
    texts: int = 0

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        self.texts += 1
        return get_counter(self.name).count(text)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count many texts."""
        return [self.count(text) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """Return the beginning of a text."""
        return get_counter(self.name).truncate(text, tokens)


def request(counter: Counting | None = None) -> SummaryRequest:
    """Return a request about two blocks."""
    blocks = (UserPrompt(text="Mend the gate."), AssistantCompletion(text="I replaced the hinge of the gate."))
    return SummaryRequest("history", blocks, None, None, 200, counter or Counting())


async def test_the_same_request_is_summarised_once() -> None:
    """The second answer counts no text."""
    summarizer, counter = ExtractiveSummarizer(), Counting()
    asked = request(counter)
    first = await summarizer.summarize(asked)
    counted = counter.texts
    assert counted
    assert await summarizer.summarize(replace(asked)) == first
    assert counter.texts == counted


@pytest.mark.parametrize(
    "other",
    [
        {"max_tokens": 100},
        {"previous": "## Task\n\n- Paint the gate."},
        {"instructions": "Attend to the hinge."},
        {"blocks": request().blocks},
        {"blocks": request().blocks[:1]},
    ],
)
def test_another_request_is_answered_anew(other: dict[str, Any]) -> None:
    """Also one whose blocks only say the same: they are compared as objects, which is quick."""
    made: list[SummaryRequest] = []

    def make(wanted: SummaryRequest, _: str) -> int:
        made.append(wanted)
        return len(made)

    remembered, asked = Remembered(make), request()
    for wanted in (asked, replace(asked, **other), asked):
        remembered(wanted)
    assert made == [asked, replace(asked, **other)]


def test_blocks_of_a_remembered_request_are_not_kept() -> None:
    """A window that was compacted is free, however large it was."""
    remembered, asked = Remembered(lambda wanted, _: len(wanted.blocks)), request()
    assert remembered(asked) == 2
    block = ref(asked.blocks[0])
    del asked
    assert block() is None
