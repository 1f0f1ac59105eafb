"""Names of models, with the provider or variant that may be written around them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_AHEAD: Final = tuple(re.compile(rf"(?:.*/)?{more}(?:[a-z-]++\.)*(?=[a-z])") for more in ("", "(?:[a-z_-]++:)+"))
"""Prefixes that a model's name may have: ``openrouter/anthropic/``, ``us.anthropic.``; and those with a colon,
``anthropic:``, ``openai:ft:``, which looks as the one of a variant does in ``deepseek-chat:free``."""
_DOT: Final = re.compile(r"(?<=\d)\.(?=\d)")
"""The dot in a version: gateways write ``claude-opus-4.5`` for what its maker names ``claude-opus-4-5``."""
_AFTER: Final = ("", "-", "@", ":", "[")
"""Suffixes that still name the same model: none, or a variant."""
_BETWEEN: Final = re.compile(r"[/:.]")
"""What parts providers from a model's name: ``groq/…``, ``openai:…``, ``us.anthropic.…``."""


def fit(model: str, starts: Iterable[str]) -> int:
    """Return the length of the longest of ``starts`` that a model's name begins with; 0 where it begins with none."""
    name = model.lower()
    names = {name, *(name[ahead.end() :] for pattern in _AHEAD if (ahead := pattern.match(name)) is not None)}
    return max((len(start) for start in starts if any(_begins(name, start.lower()) for name in names)), default=0)


def ahead_of(model: str) -> list[str]:
    """Return what is written ahead of a model's name, outermost first: ``openrouter/openai/gpt-5`` has two of them."""
    return _BETWEEN.split(model.lower())[:-1]


def _begins(name: str, start: str) -> bool:
    begun, behind = name[: len(start)], name[len(start) : len(start) + 1]
    return start in {begun, _DOT.sub("-", begun)} and behind in _AFTER
