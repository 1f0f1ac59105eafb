"""Plan a compaction up to a block that the caller chose, instead of the cut of the policy.

The chosen block stays, and all that is newer. Where no legal cut is right before it, the latest one before it is taken:
a cut divides no atomic group, and lies behind the last summary and what that carries.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from timeline.planning.cut_point import legal_cuts
from timeline.planning.message_cuts import plan_before
from timeline.planning.plans import Plan, Refusal
from timeline.policy.steps import CutPoint

if TYPE_CHECKING:
    from timeline.planning.ranges import Ranges
    from timeline.policy.steps import Cut


def plan_until(ranges: Ranges, cut: Cut, version: int) -> Plan | Refusal:
    """Plan one summary of what is before a block. The facts of a refusal name the block.

    Args:
        ranges: the window as it is now.
        cut: of the policy; it says how a turn is split, and which first message stays.
        version: of the block.
    """
    chosen = next((position for position, item in enumerate(ranges.items) if item.version == version), 0)
    whole_turns = isinstance(cut, CutPoint) and cut.on_split == "whole_turn"
    legal = legal_cuts(ranges.items, ranges.groups, whole_turns=whole_turns)
    index = bisect_right(legal, chosen)
    plan = _plan_before(ranges, cut, legal[index - 1]) if index else None
    if isinstance(plan, Plan):
        return plan
    refusal = plan or Refusal("nothing_to_cover", {"messages": ranges.before.messages})
    return Refusal(refusal.reason, refusal.facts | {"until": version})


def _plan_before(ranges: Ranges, cut: Cut, end: int) -> Plan | Refusal | None:
    if not isinstance(cut, CutPoint):
        return plan_before(ranges, cut, 0, end)
    taken = ranges.before_cut(end, cut.on_split)
    return ranges.judged(ranges.plan(taken, ranges.preview_carried(taken)))
