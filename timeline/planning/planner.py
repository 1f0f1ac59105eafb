"""Seed 002's summary plan: the cut point with its repairs, in the design's order.

The seed's cut, a legal cut near it, half of the keep up to four times, previews inside the newest group; what remains
is refused with a typed reason. Pure; nothing is summarised or written here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.planning.budget import keep_recent
from timeline.planning.cut_point import choose_cut, legal_cuts, seed_cut

if TYPE_CHECKING:
    from timeline.events import Replacement
    from timeline.planning.plans import Plan, Refusal
    from timeline.planning.ranges import Range, Ranges
    from timeline.policy.steps import CutPoint


def plan_cut_point(ranges: Ranges, cut: CutPoint) -> Plan | Refusal:
    """Decide how to bring a window below the target by seed 002's cut."""
    planner = _CutPoint(ranges, cut)
    return ranges.judged(planner.plan(*planner.best_cut(keep_recent(cut, ranges.before))))


class _CutPoint:
    """One search for the cut; each position is worked out once."""

    def __init__(self, ranges: Ranges, cut: CutPoint) -> None:
        self.ranges, self.cut, self.before = ranges, cut, ranges.before
        self.items = ranges.items
        self.legal = legal_cuts(self.items, ranges.groups, whole_turns=cut.on_split == "whole_turn")
        self.tried: dict[int, Range] = {}

    def best_cut(self, keep: int) -> tuple[Range | None, int]:
        """Find the cut that meets the target, halving the keep where needed; else the one that keeps least."""
        best: Range | None = None
        best_keep = keep
        for halving in range(self.cut.halvings + 1):
            tokens = max(1, keep >> halving)
            position = choose_cut(seed_cut(self.items, tokens), self.legal, len(self.items), self._fits)
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
        """Write a cut out as a plan, with the previews that it needs."""
        ranges = self.ranges
        after = cut.after if cut is not None else self.before.messages
        spills = ranges.spill_carried(cut)
        after -= ranges.saved(spills)
        vain = self.before.over_trigger and not ranges.frees_enough(after)
        if vain or ranges.total(after) > self.before.trigger:
            spills += self._spill_kept(cut.end if cut is not None else 0, after)
        return ranges.plan(cut, spills, keep=keep)

    def _spill_kept(self, position: int, after: int) -> tuple[Replacement, ...]:
        """Preview the largest blocks of what is kept until the target is met and enough is freed."""
        over, due = self.ranges.total(after) - self.before.target, self.ranges.least - (self.before.messages - after)
        return self.ranges.spill(range(position, len(self.items)), max(over, due))

    def _meets_target(self, after: int) -> bool:
        return self.ranges.total(after) <= self.before.target

    def _fits(self, position: int) -> bool:
        return self._meets_target(self._range(position).after)

    def _range(self, position: int) -> Range:
        if position not in self.tried:
            self.tried[position] = self.ranges.before_cut(position)
        return self.tried[position]
