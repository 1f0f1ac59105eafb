"""How long a provider keeps what it cached: what a policy asks for, and what a call's usage says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from timeline.events import Usage

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
