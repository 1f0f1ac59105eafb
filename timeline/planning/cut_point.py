"""Choose the cut of a `cut_point` summary, and plan the compaction before it (design: Cut point).

First come the four rules of the cut-point design [cut_point] to the letter, then the repairs that make every cut legal.
Positions are indices into ``window.items``; a cut at position p covers the items before p and keeps the rest. A cut is
legal when it divides no atomic group, is behind the last summary, covers at least one item, and the first message block
at or after it is a candidate. Where the four rules give a legal cut, that one is chosen.

The planner tries that cut, then a legal cut near it, then half of the kept tokens, up to four times, and at last
previews inside the newest group. If all of this frees too little, the result is a refusal with a typed reason. Nothing
is summarised or written here.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from timeline.fold.groups import boundaries
from timeline.planning.account import keep_recent
from timeline.planning.costs import as_counted
from timeline.planning.messages import is_candidate, is_message, is_turn_start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.blocks import Block
    from timeline.events import Replacement
    from timeline.fold.groups import Group
    from timeline.fold.window import Item
    from timeline.planning.plans import Plan, Refusal
    from timeline.planning.ranges import Range, Ranges
    from timeline.policy.steps import CutPoint


def first_free(items: Sequence[Item]) -> int:
    """Return the position of the first item behind the last summary and the items that it carries."""
    last_summary = max((p for p, item in enumerate(items) if item.is_summary), default=-1)
    position = last_summary + 1
    while position < len(items) and items[position].carried:
        position += 1
    return position


def seed_cut(items: Sequence[Item], keep_recent_tokens: int) -> int | None:
    """Choose the cut by the four rules of the cut-point design [cut_point] alone.

    Returns None when there is no candidate at or after the index where enough recent tokens have accumulated.
    """
    floor = max((p + 1 for p, item in enumerate(items) if item.is_summary), default=0)
    accumulated, start = 0, floor
    for position in range(len(items) - 1, floor - 1, -1):
        if is_message(items[position].block):
            accumulated += items[position].shown_tokens
            if accumulated >= keep_recent_tokens:
                start = position
                break
    candidate = next((p for p in range(start, len(items)) if is_candidate(items[p].block)), None)
    if candidate is None:
        return None
    while candidate > floor and not is_message(items[candidate - 1].block):
        candidate -= 1
    return candidate


def legal_cuts(items: Sequence[Item], groups: Sequence[Group], *, whole_turns: bool) -> list[int]:
    """Return all legal cuts, oldest first; with ``whole_turns`` only those at the start of a turn.

    Where no boundary has a candidate behind it, the start of the newest group is the only cut.
    """
    undivided = boundaries(items, groups)
    floor = first_free(items)
    legal: list[int] = []
    message: Block | None = None
    starts_group = {group.first for group in groups}
    for position in range(len(items) - 1, floor, -1):
        block = items[position].block
        if is_message(block):
            message = block
        if message is None or not undivided[position] or position not in starts_group:
            continue
        if is_candidate(message) and (not whole_turns or is_turn_start(message)):
            legal.append(position)
    if not legal and not whole_turns:
        return [p for p in sorted(starts_group) if p > floor and undivided[p]][-1:]
    return legal[::-1]


def choose_cut(cut: int | None, legal: Sequence[int], end: int, fits: Callable[[int], bool]) -> int | None:
    """Return the legal cut for a cut: itself; else the latest one before it, if that fits; else the next one after it.

    ``fits`` returns whether the kept part of a cut meets the target. An earlier cut keeps more, so only the latest one
    is tried. Returns None when there is no legal cut at all; the last resort is the start of the newest group.
    """
    if not legal:
        return None
    line = end if cut is None else cut
    index = bisect_right(legal, line)
    if index and legal[index - 1] == cut:
        return cut
    if index and fits(legal[index - 1]):
        return legal[index - 1]
    return legal[index] if index < len(legal) else legal[-1]


def plan_cut_point(ranges: Ranges, cut: CutPoint) -> Plan | Refusal:
    """Plan to bring a window below the target by a cut of the cut-point design [cut_point]."""
    planner = _CutPoint(ranges, cut)
    return ranges.judged(planner.plan(*planner.best_cut(keep_recent(cut, ranges.before))))


class _CutPoint:
    """One search for the cut; the range of each position is computed once."""

    def __init__(self, ranges: Ranges, cut: CutPoint) -> None:
        self.ranges, self.cut, self.before = ranges, cut, ranges.before
        self.items = ranges.items
        self.counted = [as_counted(item, ranges.policy) for item in self.items]
        self.legal = legal_cuts(self.items, ranges.groups, whole_turns=cut.on_split == "whole_turn")
        self.tried: dict[int, Range] = {}

    def best_cut(self, keep: int) -> tuple[Range | None, int]:
        """Return the first cut that meets the target, halving ``keep`` as needed; else the cut that leaves least."""
        best: Range | None = None
        best_keep = keep
        for halving in range(self.cut.halvings + 1):
            tokens = max(1, keep >> halving)
            position = choose_cut(seed_cut(self.counted, tokens), self.legal, len(self.items), self._fits)
            if position is None:
                continue
            cut = self._range(position)
            if cut.covered and (best is None or cut.after < best.after):
                best, best_keep = cut, tokens
            if cut.covered and self._meets_target(cut.after) and self.ranges.frees_enough(cut.after):
                return cut, tokens
        if self.legal and (best is None or self.ranges.total(best.after) > self.before.trigger):
            newest = self._range(self.legal[-1])
            if newest.covered and (best is None or newest.after < best.after):
                best = newest
        return best, best_keep

    def plan(self, cut: Range | None, keep: int) -> Plan:
        """Return the plan of a cut, with the previews that it needs."""
        ranges = self.ranges
        after = cut.after if cut is not None else self.before.messages
        # Preview carried blocks first, since their share has a cap; then the kept ones, if that does not free enough.
        previews = ranges.preview_carried(cut)
        after -= ranges.saved(previews)
        vain = self.before.over_trigger and not ranges.frees_enough(after)
        if vain or ranges.total(after) > self.before.trigger:
            previews += self._preview_kept(cut.end if cut is not None else 0, after)
        return ranges.plan(cut, previews, keep=keep)

    def _preview_kept(self, position: int, after: int) -> tuple[Replacement, ...]:
        """Preview the largest of the kept blocks until the target is met and enough is freed."""
        over, due = self.ranges.total(after) - self.before.target, self.ranges.least - (self.before.messages - after)
        return self.ranges.preview(range(position, len(self.items)), max(over, due))

    def _meets_target(self, after: int) -> bool:
        return self.ranges.total(after) <= self.before.target

    def _fits(self, position: int) -> bool:
        return self._meets_target(self._range(position).after)

    def _range(self, position: int) -> Range:
        if position not in self.tried:
            self.tried[position] = self.ranges.before_cut(position, self.cut.on_split)
        return self.tried[position]
