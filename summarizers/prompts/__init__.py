"""The prompts for summarizing models: versioned text files, so that a stored summary says which one made it.

A changed prompt gets a new file with the next number; old files stay as long as stored summaries name them.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from timeline.ports import SummaryKind

PROMPT_VERSIONS: Final[dict[SummaryKind, str]] = {"history": "history.v1", "turn_prefix": "turn_prefix.v1"}
"""The prompt in use for each kind of request."""


@cache
def load_prompt(version: str) -> str:
    """Return a prompt's text, with its fields in braces."""
    return resources.files(__package__).joinpath(f"{version}.txt").read_text(encoding="utf-8")
