"""The tokens of a model call as its provider reported them, and how long the provider caches its prompt."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from timeline.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable


class Usage(Frozen):
    """Tokens of one model call as its provider reported them; ``input_tokens`` excludes cache reads and writes."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0

    @property
    def sent_tokens(self) -> int:
        """The tokens of the request, those read from the cache and written to it included."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def cache_write_tokens(self) -> int:
        """The tokens that were written to the cache, for the short and for the long time."""
        return self.cache_write_5m_tokens + self.cache_write_1h_tokens

    def plus(self, other: Usage) -> Usage:
        """Return the sum of two calls' usage."""
        return Usage(**{name: value + getattr(other, name) for name, value in self})


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """Return the sum of several calls' usage, None where no usage was reported."""
    return reduce(Usage.plus, reported) if (reported := [usage for usage in usages if usage is not None]) else None


KeptLong: TypeAlias = Literal["nothing", "fixed_part", "everything"]
"""The part of a request that the provider is asked to cache for its long time; later parts are never kept longer."""
CacheKind: TypeAlias = Literal["5m", "1h", "automatic", "none"]
"""How a provider keeps prompts: what is in front of a marker for five minutes or an hour, all by itself, or nothing."""
CACHE_SECONDS: Final = 300
"""How long Anthropic keeps a prompt cache unless asked for longer; other providers keep theirs for minutes, too."""
LONG_CACHE_SECONDS: Final = 3_600
"""The longer choice (Anthropic's ``ttl: "1h"``)."""


class CacheTerms(NamedTuple):
    """What a provider's cache does for a conversation; prices are shares of a token of plain input.

    Attributes:
        seconds: how long it keeps the messages after their last use; 0 for no cache.
        read: price of a token that it answers.
        write: price of a token that it takes in, or that is sent anew.
    """

    seconds: int
    read: float
    write: float

    @property
    def rewrite(self) -> float:
        """What a token costs once more when something in front of it changes while the cache is warm."""
        return self.write - self.read


TERMS: Final[dict[CacheKind, CacheTerms]] = {
    "5m": CacheTerms(CACHE_SECONDS, 0.1, 1.25),
    "1h": CacheTerms(LONG_CACHE_SECONDS, 0.1, 2.0),
    "automatic": CacheTerms(CACHE_SECONDS, 0.1, 1.0),
    "none": CacheTerms(0, 1.0, 1.0),
}
"""The commonest prices and times of each kind, see `timeline/lab/caches.toml`: decisions need no exact figures."""


def asked_seconds(kept_long: KeptLong) -> int:
    """Return for how many seconds the provider is asked to cache the messages."""
    return LONG_CACHE_SECONDS if kept_long == "everything" else CACHE_SECONDS


def reported_seconds(usage: Usage) -> int | None:
    """Return how many seconds the provider caches a call's messages; None where the call wrote nothing to the cache.

    Where a call wrote for both times, its messages have the short one: the long time is always the beginning of a
    request, which is the fixed part.
    """
    if usage.cache_write_5m_tokens:
        return CACHE_SECONDS
    return LONG_CACHE_SECONDS if usage.cache_write_1h_tokens else None
