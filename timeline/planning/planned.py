"""Plan steps of a policy, and remember what was planned on the newest window.

A pass asks whether a step would be refused before it carries the step out, and may ask about the next step on the same
window. So the plans, and what the steps share, are remembered for that window. A window never changes: one with other
items is another object, for which everything is planned anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.planning.account import account_from
from timeline.planning.costs import costs_of
from timeline.planning.plan_step import plan_step
from timeline.planning.ranges import Ranges

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.planning.account import Account, FixedPart
    from timeline.planning.costs import Costs
    from timeline.planning.plans import Plan, Refusal
    from timeline.policy.model import Policy
    from timeline.policy.steps import CoveringStep
    from timeline.ports import TokenCounter


class PlannedSteps:
    """The plans of one pass. Ask it for one at a time.

    Args:
        counted: a window with the costs of its items, where they are known; no one else may add items to these costs.
    """

    def __init__(self, counted: tuple[Window, Costs] | None = None) -> None:
        self._counted = counted
        self._ranges: tuple[Ranges, int | None] | None = None
        self._plans: list[tuple[CoveringStep, int | None, Plan | Refusal]] = []

    def account(self, window: Window, fixed: FixedPart, policy: Policy, *, most: int | None = None) -> Account:
        """Draw up the account of a window, as `timeline.planning.account.account_of` does."""
        return account_from(self._costs(window, policy), fixed, most=most)

    def plan(
        self,
        step: CoveringStep,
        window: Window,
        fixed: FixedPart,
        policy: Policy,
        counter: TokenCounter,
        *,
        most: int | None = None,
        until: int | None = None,
    ) -> Plan | Refusal:
        """Plan the compaction of a step that covers items of a window, with `timeline.planning.plan_step.plan_step`.

        Args:
            step: one of the policy's.
            window: as the earlier steps left it.
            fixed: the tokens that no compaction can free.
            policy: gives budget, caps and least progress.
            counter: counts the texts that planning writes.
            most: bring the total down to this figure, instead of the policy's target.
            until: version of the first block that is to stay, instead of the step's cut.
        """
        ranges = self._known(window, fixed, policy, counter, most) or self._begun(window, fixed, policy, counter, most)
        for planned, cut, plan in self._plans:
            if planned is step and cut == until:
                return plan
        plan = plan_step(step, ranges, until)
        self._plans.append((step, until, plan))
        return plan

    def _costs(self, window: Window, policy: Policy) -> Costs:
        if self._counted is None or self._counted[0] is not window or self._counted[1].policy is not policy:
            self._counted = window, costs_of(window.items, policy)
        return self._counted[1]

    def _known(
        self, window: Window, fixed: FixedPart, policy: Policy, counter: TokenCounter, most: int | None
    ) -> Ranges | None:
        """Return what the steps of a window share, if the last plan was for the same window and figures."""
        if self._ranges is None:
            return None
        ranges, known_most = self._ranges
        same = ranges.window is window and ranges.policy is policy and ranges.counter is counter and known_most == most
        return ranges if same and ranges.before.fixed == fixed else None

    def _begun(
        self, window: Window, fixed: FixedPart, policy: Policy, counter: TokenCounter, most: int | None
    ) -> Ranges:
        costs = self._costs(window, policy)
        ranges = Ranges(window, account_from(costs, fixed, most=most), costs, counter)
        self._ranges, self._plans = (ranges, most), []
        return ranges
