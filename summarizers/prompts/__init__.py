"""The prompts for summarizing models: versioned text files, so that a stored summary names the prompt that made it.

A changed prompt gets a new file with the next number; old files stay as long as stored summaries name them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from ..scripts import BY_BLOCK, CONTINUATION, NUMBERED, WHOLE

if TYPE_CHECKING:
    from timeline.ports import PromptName, SummaryRequest

    from ..scripts import Script


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, and its design's rules for using it.

    Attributes:
        version: the text's version, which is its file's name.
        script: the form of the record in it.
        asked_share: share of the cap that the prompt asks the model to keep to, so that it seldom meets the cap.
        nothing: the text in place of a missing earlier summary, or a missing task.
    """

    version: str
    script: Script
    asked_share: float = 1.0
    nothing: str = "(none)"


TURN_PREFIX: Final = Prompt("turn_prefix.v2", BY_BLOCK)
"""The prompt for the prefix of a split turn, with any shape of history."""
PROMPTS: Final[dict[PromptName, Prompt]] = {
    "generic": Prompt("history.v2", BY_BLOCK),
    "sections": Prompt(
        "sections.v1",
        NUMBERED,
        asked_share=0.8,  # 800 tokens of 1,000
        nothing="None - this is the first compaction round.",
    ),
    "continuation": Prompt("continuation.v1", CONTINUATION),
    "bullets": Prompt("bullets.v1", WHOLE, asked_share=0.625),  # 125 tokens of 200
}
"""The prompts for finished history, by the policy's ``prompt``."""


def prompt_for(request: SummaryRequest) -> Prompt:
    """Return the prompt that answers a request."""
    return TURN_PREFIX if request.kind == "turn_prefix" else PROMPTS[request.prompt]


@cache
def load_prompt(version: str) -> str:
    """Return a prompt's text, with its fields in braces."""
    return resources.files(__package__).joinpath(f"{version}.txt").read_text(encoding="utf-8")
