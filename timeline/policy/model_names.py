"""Names of models, with the provider or variant that may be written around them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_AHEAD: Final = re.compile(r"(?:.*/)?(?:ft:)?(?:[a-z-]++\.)*(?=[a-z])")
"""Prefixes that a model's name may have: ``openai/``, ``openrouter/anthropic/``, ``us.anthropic.``, ``ft:``."""
_AFTER: Final = ("", "-", "@", ":", "[")
"""Suffixes that still name the same model: none, or a variant."""
_BETWEEN: Final = re.compile(r"[/:.]")
"""What parts providers from a model's name: ``groq/…``, ``openai:…``, ``us.anthropic.…``."""


def fit(model: str, starts: Iterable[str]) -> int:
    """Return the length of the longest of ``starts`` that a model's name begins with; 0 where it begins with none."""
    name = model.lower()
    ahead = _AHEAD.match(name)
    names = {name, name if ahead is None else name[ahead.end() :]}
    return max((len(start) for start in starts if any(_begins(name, start.lower()) for name in names)), default=0)


def ahead_of(model: str) -> list[str]:
    """Return what is written ahead of a model's name, outermost first: ``openrouter/openai/gpt-5`` has two of them."""
    return _BETWEEN.split(model.lower())[:-1]


def _begins(name: str, start: str) -> bool:
    return name.startswith(start) and name[len(start) : len(start) + 1] in _AFTER
