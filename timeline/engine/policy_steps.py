"""Run a policy's steps, one after another, until the context is small enough (design: Steps).

The order is the policy's, cheapest first: hiding loses least and asks no model, while a summary costs a call. Each step
is planned from the window that the earlier steps left, and runs only if that window is still too large.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from timeline.engine.compaction import compact
from timeline.engine.hiding import CompactionProgress, hide_by_step
from timeline.engine.pressure import set_back
from timeline.errors import (
    BudgetImpossible,
    CompactionError,
    CompactionInProgress,
    CompactionRefused,
    CompactionSuperseded,
    SummarizerFailed,
)
from timeline.events import FORCED
from timeline.planning.account import FixedPart, account_of, has_room
from timeline.planning.collapse_stages import stage_data
from timeline.planning.costs import scaled, visible_tokens
from timeline.planning.plans import Refusal
from timeline.policy.steps import ClearToolOutputs, CollapseStages, CoveringStep, StripChitchat, Summarize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.engine.pressure import Pressure
    from timeline.policy.steps import Step
    from timeline.projection.reports import TakenDecision


@dataclass(slots=True)
class StepsOutcome:
    """The result of one pass: the decisions, and the error that kept the last step from doing anything.

    Attributes:
        pressure: for what follows. Its fixed part is smaller once stages were collapsed: their data is then short.
        taken: the decisions, in order.
        failure: the refusal or failure of the last step that ran; None if it did its work.
    """

    pressure: Pressure
    taken: list[TakenDecision] = field(default_factory=list)
    failure: CompactionError | None = None

    @property
    def done(self) -> bool:
        """Whether anything was done."""
        return bool(self.taken)

    def raise_failure(self) -> None:
        """Raise the failure, if there is one, and drop the reference to it.

        The error holds the frames through which it is raised. If these held the error, too, their windows would stay in
        memory until a full garbage collection.
        """
        if self.failure is None:
            return
        failure, self.failure = self.failure, None
        try:
            raise failure
        finally:
            del failure


async def run_steps(pressure: Pressure) -> StepsOutcome:
    """Go through the policy's steps until the context is small enough.

    Where a step can do nothing, the next one runs; if none did anything, the last refusal is recorded. A compaction
    that is forced under a policy without steps summarises as the cut-point design does [cut_point].
    """
    return await _Run(StepsOutcome(pressure), CompactionProgress(pressure)).run()


async def compact_now(pressure: Pressure) -> list[TakenDecision]:
    """Compact a log whatever its size; its policy's reserves are the whole fixed part. Return the decisions.

    Where the pressure names the first block that is to stay, all before it is summarised, and nothing is hidden.

    Raises:
        CompactionError: the last step that ran did nothing.
        BudgetImpossible: the policy's reserves leave no room for a summary.
    """
    policy = pressure.policy
    fixed = FixedPart(reserved=policy.output_reserve + policy.safety_buffer)
    empty = account_of((), fixed, policy)
    if policy.automatic and not has_room(empty):
        raise BudgetImpossible(empty.facts())
    forced = replace(pressure, fixed=fixed, reason="forced")
    if pressure.until is not None:
        return await _compact_until(forced)
    done = await run_steps(forced)
    if not done.done:
        done.raise_failure()
    return done.taken


async def _compact_until(pressure: Pressure) -> list[TakenDecision]:
    """Summarise all before a chosen block, with the settings of the policy's first step that summarises.

    A refusal is not recorded: it says that this cut is not worth making, and automatic compactions choose their own.
    """
    steps = pressure.policy.steps
    step = next((step for step in steps if isinstance(step, Summarize)), Summarize())
    decision = await pressure.plan(step)
    if isinstance(decision, Refusal):
        raise CompactionRefused(decision.reason, decision.facts)
    return await compact(pressure, step)


@dataclass(slots=True)
class _Run:
    """One pass under way; ``covered`` says whether a step covered something, as a forced pass must."""

    done: StepsOutcome
    progress: CompactionProgress
    covered: bool = False

    @property
    def pressure(self) -> Pressure:
        return self.done.pressure

    async def run(self) -> StepsOutcome:
        steps = self.pressure.policy.steps or (Summarize(),)
        refusal: Refusal | None = None
        for number, step in enumerate(steps, start=1):
            if not await self._wanted():
                return self.done
            if isinstance(step, StripChitchat | ClearToolOutputs):
                more = partial(self._goes_on, steps[number:])
                self.done.taken += await hide_by_step(step, self.progress, goes_on=more)
                continue
            # Where another step follows, plan first: a refusal is recorded only if no step did anything.
            refused = await self._refusal_of(step) if number < len(steps) else None
            if refused is not None:
                refusal = refused
            elif await self._cover(step) or (isinstance(step, CollapseStages) and await self._cover_more(step)):
                return self.done
        if not self.done.done and self.done.failure is None:
            await self._refuse(refusal)
        return self.done

    async def _cover_more(self, step: CollapseStages) -> bool:
        """Repeat a step, which covers one run of stages at a time, while it finds more; return if the pass ends."""
        while await self._wanted() and await self._refusal_of(step) is None:
            if await self._cover(step):
                return True
            if self.done.failure is not None:
                break
        return False

    async def _wanted(self) -> bool:
        """Return whether the next step is to run: nothing was done yet, or the context is still too large."""
        if not (self.covered if self.pressure.reason in FORCED else self.done.done):
            return True
        return await self._too_large()

    async def _goes_on(self, later: Sequence[Step], freed: int) -> bool:
        """Return whether a covering step follows a batch that frees so many tokens: both are then one compaction."""
        follows = any(isinstance(step, CoveringStep) for step in later)
        return follows and ((self.pressure.reason in FORCED and not self.covered) or await self._too_large(freed))

    async def _too_large(self, freed: int = 0) -> bool:
        left = await self.pressure.account()
        return left.total - freed > left.target

    async def _refusal_of(self, step: CoveringStep) -> Refusal | None:
        decision = await self.pressure.plan(step)
        return decision if isinstance(decision, Refusal) else None

    async def _cover(self, step: CoveringStep) -> bool:
        """Carry out a covering step; return whether the pass ends with it.

        A veto ends it, since the application wants no compaction. So does a lost race, since the other writer works on
        the log.
        """
        try:
            self.done.taken += await compact(self.pressure, step, begun_with=self.progress.begun_with)
        except CompactionRefused as refused:
            self._failed(refused)
            return refused.reason == "vetoed"
        except SummarizerFailed as failed:
            self._failed(failed)
            return self.pressure.policy.on_failure != "next_step"
        except (CompactionInProgress, CompactionSuperseded) as failed:
            self._failed(failed)
            return True
        self.covered, self.done.failure, self.progress.begun_with = True, None, None
        left = min(self.pressure.fixed.stage_data, self._stage_data_tokens())
        fixed = self.pressure.fixed.model_copy(update={"stage_data": left})
        self.done.pressure = replace(self.pressure, fixed=fixed)
        return False

    def _failed(self, error: CompactionError) -> None:
        # Drop the error's frames, which hold this pass: the cycle would keep its windows until a full collection.
        self.done.failure = error.with_traceback(None)

    def _stage_data_tokens(self) -> int:
        """Count the stage data in the tail. It is short once a recent stage was collapsed (000, [priority_chain])."""
        policy, counter = self.pressure.policy, self.pressure.compactor.counter
        return scaled(counter.count(stage_data(self.pressure.window, policy.stage_data)), policy)

    async def _refuse(self, refusal: Refusal | None) -> None:
        """Record that no step could do anything."""
        if refusal is None:
            refusal = Refusal(
                "nothing_to_cover", {"messages": visible_tokens(self.pressure.window, self.pressure.policy)}
            )
        await set_back(self.pressure, refusal.reason, str(refusal.facts))
        self.done.failure = CompactionRefused(refusal.reason, refusal.facts)
