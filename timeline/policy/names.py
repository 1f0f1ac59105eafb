"""Names of models: which entry of a table a name is meant by, whatever provider or variant stands around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_AHEAD: Final = re.compile(r"(?:.*/)?(?:ft:)?(?:[a-z-]+\.)*(?=[a-z])")
"""What may stand in front of a model's name: ``openai/``, ``openrouter/anthropic/``, ``us.anthropic.``, ``ft:``."""
_AFTER: Final = ("", "-", "@", ":", "[")
"""What may follow a beginning of a name: nothing, or a variant of the same model."""


def fit(model: str, starts: Iterable[str]) -> int:
    """Return the length of the longest of some beginnings that a model's name has; 0 where it has none of them."""
    names = {model.lower(), _AHEAD.sub("", model.lower(), count=1)}
    return max((len(start) for start in starts if any(_begins(name, start.lower()) for name in names)), default=0)


def _begins(name: str, start: str) -> bool:
    return name.startswith(start) and name[len(start) : len(start) + 1] in _AFTER
