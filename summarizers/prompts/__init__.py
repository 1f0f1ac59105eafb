"""The prompts for summarizing models: versioned text files, so that a stored summary says which one made it.

A changed prompt gets a new file with the next number; old files stay as long as stored summaries name them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from ..scripts import BY_BLOCK, CONTINUATION, NUMBERED

if TYPE_CHECKING:
    from timeline.ports import PromptName, SummaryRequest

    from ..scripts import Script


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, and what its design says about using it.

    Attributes:
        version: of the text, which is the file of that name.
        script: how the record is written out in it.
        asked_share: part of the cap that the model is asked to keep to, so that it seldom meets the cap.
        temperature: to call the model with; its own default where a design names none. The function that calls the
            model decides, since only it knows its client.
        nothing: what stands for an earlier summary, or a task, where there is none.
    """

    version: str
    script: Script
    asked_share: float = 1.0
    temperature: float | None = None
    nothing: str = "(none)"


TURN_PREFIX: Final = Prompt("turn_prefix.v1", BY_BLOCK)
"""For the prefix of a turn that goes on, whatever shape the history has."""
PROMPTS: Final[dict[PromptName, Prompt]] = {
    "generic": Prompt("history.v1", BY_BLOCK),
    "sections": Prompt(
        "sections.v1",
        NUMBERED,
        asked_share=0.8,  # 800 tokens of 1,000
        temperature=0.3,
        nothing="None - this is the first compaction round.",
    ),
    "continuation": Prompt("continuation.v1", CONTINUATION),
    "bullets": Prompt("bullets.v1", NUMBERED),
}
"""For finished history, by what a policy asks for."""


def prompt_for(request: SummaryRequest) -> Prompt:
    """Return the prompt that answers a request."""
    return TURN_PREFIX if request.kind == "turn_prefix" else PROMPTS[request.prompt]


@cache
def load_prompt(version: str) -> str:
    """Return a prompt's text, with its fields in braces."""
    return resources.files(__package__).joinpath(f"{version}.txt").read_text(encoding="utf-8")
