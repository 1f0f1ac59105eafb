"""Place the cache points: the positions up to which the provider may keep a prefix.

As in the cut-point design [cut_point], the points are the last block before the current turn, the last block of round
N - offset, and the last block of all. They are found among the blocks as shown, after replacement. They are in order
and without repeats. There are at most three, since one of a provider's four markers is for the system prompt.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from timeline.wire.neutral import CachePoint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.fold.window import Item
    from timeline.policy.model import CachePointRule

MOST_POINTS: Final = 3


class ShownEntries:
    """The shown entries in order; a cache point's index is a position among them. To add one does not scan the rest.

    Args:
        items: for each entry, the item that it shows.

    Attributes:
        items: the same.
        round_ends: the last position of each round (a response with its calls and their results), oldest first.
    """

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.items: list[Item] = []
        self.round_ends: list[int] = []
        self._end_of: dict[int, int] = {}
        self._start_of: dict[str, int] = {}
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        """Add an entry of an item."""
        position = len(self.items)
        self.items.append(item)
        if not item.is_summary:
            self._start_of.setdefault(item.block.turn_id, position)
        if item.response:
            if (before := self._end_of.get(item.response)) is not None:
                del self.round_ends[bisect_left(self.round_ends, before)]
            self._end_of[item.response] = position
            self.round_ends.append(position)

    @property
    def current_turn(self) -> int:
        """Position where the turn of the last entry begins; 0 where a summary is the turn's only entry."""
        return self._start_of.get(self.items[-1].block.turn_id, 0)


def cache_points(shown: ShownEntries, rule: CachePointRule) -> tuple[CachePoint, ...]:
    """Place the cache points.

    Args:
        shown: the entries of the context.
        rule: the policy's figures.
    """
    if not shown.items:
        return ()
    tail = len(shown.items) - 1
    points: dict[int, CachePoint] = {}
    start = shown.current_turn
    if start > 0:
        points[start - 1] = CachePoint(kind="previous_turn", index=start - 1)
    ends = shown.round_ends
    if len(ends) >= rule.min_rounds and len(ends) > rule.offset_rounds:
        index = ends[-1 - rule.offset_rounds]
        points.setdefault(index, CachePoint(kind="pre_tail", index=index))
    points.setdefault(tail, CachePoint(kind="tail", index=tail))
    if len(points) < MOST_POINTS:
        _add_lagging(points, rule.lookback_blocks)
    return tuple(points[index] for index in sorted(points))


def _add_lagging(points: dict[int, CachePoint], lookback: int) -> None:
    """Add a point before the tail, if the provider would not look back from the tail as far as the point before it."""
    places = sorted(points)
    before = places[-2] if len(places) > 1 else -1
    if places[-1] - before > lookback:
        index = places[-1] - lookback
        points.setdefault(index, CachePoint(kind="lagging", index=index))
