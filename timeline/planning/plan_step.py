"""Plan one step of a policy on a window (design: Steps). Each kind of step has a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.planning.clear_tool_outputs import plan_clear
from timeline.planning.collapse_stages import plan_collapse
from timeline.planning.cut_point import plan_cut_point
from timeline.planning.cut_until import plan_until
from timeline.planning.drop_oldest import plan_drop
from timeline.planning.message_cuts import plan_message_cut
from timeline.planning.plans import Refusal
from timeline.planning.strip_chitchat import plan_chitchat
from timeline.policy.steps import ClearToolOutputs, CollapseStages, CutPoint, DropOldest, StripChitchat, Summarize

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.planning.plans import HideDecision, Plan
    from timeline.planning.ranges import Ranges
    from timeline.policy.model import Policy
    from timeline.policy.steps import CoveringStep, HidingStep
    from timeline.ports import TokenCounter


def plan_step(step: CoveringStep, ranges: Ranges, until: int | None = None) -> Plan | Refusal:
    """Plan the compaction of a step that covers items of a window.

    Args:
        step: one of the policy's.
        ranges: the window as the earlier steps left it, with what all steps share: `timeline.planning.planned`.
        until: version of the first block that is to stay, instead of the cut of a step that summarises.
    """
    return _plan(step, ranges, until) or Refusal("nothing_to_cover", {"messages": ranges.before.messages})


def _plan(step: CoveringStep, ranges: Ranges, until: int | None) -> Plan | Refusal | None:
    match step:
        case Summarize() if until is not None:
            return plan_until(ranges, step.cut, until)
        case Summarize():
            cut = step.cut
            return plan_cut_point(ranges, cut) if isinstance(cut, CutPoint) else plan_message_cut(ranges, cut)
        case CollapseStages():
            return plan_collapse(ranges, step)
        case DropOldest():
            return plan_drop(ranges, step)


def plan_hides(step: HidingStep, window: Window, policy: Policy, counter: TokenCounter) -> HideDecision | None:
    """Plan the hides of a step; None where there are none. The step's own figures decide when they free enough."""
    match step:
        case StripChitchat():
            return plan_chitchat(window, policy, step)
        case ClearToolOutputs():
            return plan_clear(window, policy, counter, step)
