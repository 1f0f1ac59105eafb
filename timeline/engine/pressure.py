"""A log that is to become smaller: by what means, down to which figure, and what is recorded where that fails."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from timeline.engine.summarizing import NO_OUTLAY
from timeline.engine.warm import not_sent
from timeline.events.other_payloads import CompactionFailed
from timeline.log.off_loop import off_loop
from timeline.planning.account import retry_growth
from timeline.planning.costs import visible_tokens
from timeline.planning.originals import CutBlocks
from timeline.planning.planned import PlannedSteps
from timeline.ports import StoppedClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from timeline.engine.compactor import Compactor
    from timeline.engine.summarizing import Outlay
    from timeline.engine.warm import SentContext, WhyAlone
    from timeline.errors import Cause
    from timeline.events import CompactReason
    from timeline.events.other_payloads import FailureReason
    from timeline.fold.window import Window
    from timeline.log.protocol import Log
    from timeline.planning.account import Account, FixedPart
    from timeline.planning.plans import Plan, Refusal
    from timeline.policy.model import Policy
    from timeline.policy.steps import CoveringStep
    from timeline.ports import Clock


@dataclass(frozen=True, slots=True)
class Pressure:
    """A log to make smaller: by what means, down to which figure, and why.

    Attributes:
        compactor: the policy and everything that carries it out.
        log: the log of the conversation.
        fixed: the tokens that no compaction can free.
        now: the one time that all decisions of the pass are planned by, however long it takes.
        at: the time of the appended events, where the application gives one; None for the time of each append.
        reason: why the log is compacted; a forced pass covers something, however small the context is.
        most: the total to come down to, in tokens, instead of the policy's target.
        until: version of the first block that is to stay, instead of the cut of the policy.
        instructions: what a summary should attend to.
        wait: wait for another writer's compaction, instead of raising `CompactionInProgress`.
        sent: returns the context of the newest model call, to ask for a summary in; or why there is none to ask in.
        cut: keeps what was cut for the summaries of earlier passes.
        planned: plans the steps of the policy.
    """

    compactor: Compactor
    log: Log
    fixed: FixedPart
    now: datetime
    at: datetime | None
    reason: CompactReason = "over_trigger"
    most: int | None = None
    until: int | None = None
    instructions: str = ""
    wait: bool = True
    sent: Callable[[], SentContext | WhyAlone] = not_sent
    cut: CutBlocks = field(default_factory=CutBlocks)
    planned: PlannedSteps = field(default_factory=PlannedSteps)

    @property
    def clock(self) -> Clock:
        """The clock that measures the pass; where the application gives the time, a pass takes no time."""
        return self.compactor.clock if self.at is None else StoppedClock(self.at)

    def later(self, now: datetime) -> Pressure:
        """Return the same at a later time, once the pass has waited for another writer."""
        return replace(self, now=now, at=None if self.at is None else now)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.compactor.policy

    @property
    def window(self) -> Window:
        """The window of the log as it is now."""
        return self.log.fold.window

    @property
    def limit(self) -> int:
        """The limit of the context, in tokens: ``most`` where that is given, else the policy's."""
        return self.policy.max_tokens if self.most is None else self.most

    async def account(self) -> Account:
        """Draw up the account of the window as it is now, with ``most`` as its limit where that is given."""
        window = self.window
        work = partial(self.planned.account, window, self.fixed, self.policy, most=self.most)
        return await off_loop(len(window.items), work)

    async def plan(self, step: CoveringStep) -> Plan | Refusal:
        """Plan a covering step from the window as it is now."""
        window, counter = self.window, self.compactor.counter
        figures = {"most": self.most, "until": self.until}
        work = partial(self.planned.plan, step, window, self.fixed, self.policy, counter, **figures)
        return await off_loop(len(window.items), work)


async def set_back(
    pressure: Pressure,
    reason: FailureReason,
    detail: str,
    *,
    lease: int | None = None,
    cause: Cause | None = None,
    outlay: Outlay = NO_OUTLAY,
) -> None:
    """Record a refusal or failure. One that is recorded already is recorded again only if it ends a lease.

    The next try waits until the visible tokens grew by as much as a compaction has to free. So a conversation that
    cannot be compacted is not planned again at every render (design: Invariants, 3).
    """
    window, policy = pressure.window, pressure.policy
    visible = visible_tokens(window, policy)
    growth = retry_growth(policy, visible)
    known = window.setback
    repeated = known is not None and (known.reason, known.retry_at, known.policy) == (
        reason,
        visible + growth,
        policy.hash(),
    )
    if repeated and lease is None:
        return
    account = await off_loop(len(window.items), partial(pressure.planned.account, window, pressure.fixed, policy))
    failed = CompactionFailed(
        reason=reason,
        detail=detail,
        policy=policy.hash(),
        visible_tokens=visible,
        retry_after=growth,
        over_limit=account.available < 0,
        lease=lease,
        cause=cause,
        usage=outlay.usage,
        unanswered=outlay.unanswered,
        duration=outlay.duration,
    )
    await pressure.log.commit([failed], at=pressure.at)
