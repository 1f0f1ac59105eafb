"""What the cache that one request left behind answers of the next one, in tokens (seed 004, cache savings example).

A provider keeps what stands in front of a marker: tools and system prompt, and everything up to each cache point. The
longest of these prefixes that the next request begins with is read, the rest is processed. Providers that match
prefixes by themselves do no worse; where the beginning changed, they read as little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from timeline.planning.costs import costs

if TYPE_CHECKING:
    from timeline.projection.context import RenderedContext


@dataclass(frozen=True, slots=True)
class Reuse:
    """What of a request is read from the cache, and what is processed; together what it sends."""

    cached: int
    processed: int


def reuse(before: RenderedContext, after: RenderedContext) -> Reuse:
    """Work out what of a context the cache of the one before it answers, while that is warm.

    An entry is found from a marker of the new request that stands no further behind it than a provider looks back.
    """
    old, new = before.neutral, after.neutral
    if (old.tools, old.system) != (new.tools, new.system):
        return Reuse(0, after.account.sent)
    pairs = zip(old.entries, new.entries, strict=False)
    shorter = min(len(old.entries), len(new.entries))
    same = next((n for n, (a, b) in enumerate(pairs) if a.canonical != b.canonical), shorter)
    lookback = after.policy.cache_points.lookback_blocks
    read = [
        point.index + 1
        for point in before.cache_points
        if point.index < same and any(0 <= p.index - point.index <= lookback for p in after.cache_points)
    ]
    fixed = after.account.fixed
    cached = fixed.tools + fixed.system + _tokens(after, max(read, default=0))
    return Reuse(cached, after.account.sent - cached)


def _tokens(context: RenderedContext, entries: int) -> int:
    """Count the messages' tokens up to a number of entries, as the account does."""
    items = context.window.items
    spent = dict(zip((item.block.path for item in items), costs(items, context.policy), strict=True))
    return sum(spent[path] for path in dict.fromkeys(entry.path for entry in context.neutral.entries[:entries]))
