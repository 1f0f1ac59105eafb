"""Cache points: where the provider may keep a prefix (seed 002, cache points after compaction).

Computed on the visible stream, after replacement: the last block before the current turn, the last block of round
N - offset, the last block. In order, without repeats, at most three: one of a provider's four markers stays for the
system prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.wire.neutral import CachePoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item
    from timeline.policy.model import CachePointRule

MOST_POINTS: Final = 3


def cache_points(shown: Sequence[Item], rule: CachePointRule) -> tuple[CachePoint, ...]:
    """Place the cache points.

    Args:
        shown: the items that have an entry, in order; a point's index is a position in it.
        rule: the policy's figures.
    """
    if not shown:
        return ()
    tail = len(shown) - 1
    points: dict[int, CachePoint] = {}
    current = shown[tail].block.turn_id
    start = next((p for p, item in enumerate(shown) if item.block.turn_id == current and not item.is_summary), 0)
    if start > 0:
        points[start - 1] = CachePoint(kind="previous_turn", index=start - 1)
    ends = round_ends(shown)
    if len(ends) >= rule.min_rounds and len(ends) > rule.offset_rounds:
        index = ends[-1 - rule.offset_rounds]
        points.setdefault(index, CachePoint(kind="pre_tail", index=index))
    points.setdefault(tail, CachePoint(kind="tail", index=tail))
    if len(points) < MOST_POINTS:
        _add_lagging(points, rule.lookback_blocks)
    return tuple(points[index] for index in sorted(points))[-MOST_POINTS:]


def round_ends(shown: Sequence[Item]) -> list[int]:
    """Return the last position of each round: a response with its calls and their results, oldest first."""
    last: dict[int, int] = {}
    for position, item in enumerate(shown):
        if item.response:
            last[item.response] = position
    return sorted(last.values())


def _add_lagging(points: dict[int, CachePoint], lookback: int) -> None:
    """Where the provider would not look back far enough from the tail to the point before it, add one in between."""
    places = sorted(points)
    before = places[-2] if len(places) > 1 else -1
    if places[-1] - before > lookback:
        index = places[-1] - lookback
        points.setdefault(index, CachePoint(kind="lagging", index=index))
