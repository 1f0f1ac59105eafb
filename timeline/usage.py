"""Usage: the tokens of a model call as its provider reported them, and how long the provider keeps what it cached."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from timeline.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable


class Usage(Frozen):
    """Tokens of one model call as the provider reported them; ``input_tokens`` counts what no cache answered."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0

    def plus(self, other: Usage) -> Usage:
        """Return what both calls took together."""
        return Usage(**{name: value + getattr(other, name) for name, value in self})


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """Return what several calls took together, None where nobody reported any."""
    return reduce(Usage.plus, told) if (told := [usage for usage in usages if usage is not None]) else None


KeptLong: TypeAlias = Literal["nothing", "fixed_part", "everything"]
"""What the provider is asked to keep for its long time; what stands further back in a request is never kept longer."""
CACHE_SECONDS: Final = 300
"""How long Anthropic keeps a prompt cache unless asked for longer; other providers keep theirs for minutes, too."""
LONG_CACHE_SECONDS: Final = 3_600
"""The longer choice (Anthropic's ``ttl: "1h"``)."""


def asked_seconds(kept_long: KeptLong) -> int:
    """Return how long the provider is asked to keep messages."""
    return LONG_CACHE_SECONDS if kept_long == "everything" else CACHE_SECONDS


def reported_seconds(usage: Usage) -> int | None:
    """Return how long the provider keeps the messages of a call; None where the call wrote nothing.

    A call that wrote for both times has them in the cache for the short one: what is kept for long stands first in a
    request, which is the fixed part.
    """
    if usage.cache_write_5m_tokens:
        return CACHE_SECONDS
    return LONG_CACHE_SECONDS if usage.cache_write_1h_tokens else None
