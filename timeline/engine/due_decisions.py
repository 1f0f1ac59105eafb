"""Decide what a render must do before it can project: hide old output, then compact if the context is still too large.

0. Abridge new results, where the policy says so; show those whole again that refer to a block out of sight.
1. The cache is cold: hide; a policy with ``compact_when_cold`` may compact at once, too.
2. Above the trigger: hide whether the cache is cold or warm, where the policy allows it and it frees enough.
3. Still too large: compact.

Hiding comes first because it needs no model call and may make the summary unnecessary (design: Hiding).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from timeline.blocks import SystemMessage, instant_text
from timeline.engine.hiding import CompactionProgress, describe_hide
from timeline.engine.known import settle
from timeline.engine.lease import end_of_dead, take_turn
from timeline.engine.policy_steps import run_steps
from timeline.engine.pressure import set_back
from timeline.engine.restoring import restore
from timeline.errors import (
    CompactionInProgress,
    CompactionRefused,
    CompactionSuperseded,
    SummarizerFailed,
    VersionConflict,
)
from timeline.events import BlocksHidden
from timeline.log.off_loop import off_loop
from timeline.log.stored import addressed_block
from timeline.planning.abridge import abridgeable, plan_abridged
from timeline.planning.cache_clock import coldness, pays_back, terms_in_force
from timeline.planning.costs import visible_tokens
from timeline.planning.hidden_requests import left_unsaid
from timeline.planning.hide import NOTICE, NOTICE_KEY, needs_notice, plan_hide
from timeline.planning.planned import PlannedSteps
from timeline.planning.plans import HideDecision
from timeline.projection.reports import TakenDecision
from timeline.usage import CACHE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from timeline.engine.known import Known
    from timeline.engine.pressure import Pressure
    from timeline.events import CompactReason, Payload, Replacement
    from timeline.fold.state import Setback
    from timeline.fold.window import Window
    from timeline.planning.account import Account
    from timeline.planning.cache_clock import Cold
    from timeline.planning.costs import Costs
    from timeline.planning.hide import HidePlan
    from timeline.policy.model import Hiding


async def take_due_decisions(pressure: Pressure, known: Known) -> list[TakenDecision]:
    """Hide and compact as far as it is due; return the decisions. Refusals and failures are recorded, not raised.

    Where a compaction leaves the log above the trigger, the next one follows at once, or its refusal is recorded. So
    the next render has nothing left to decide, and keeps the prefix.

    Args:
        pressure: the log to make smaller; its ``reason`` is ignored, each decision sets its own.
        known: what earlier renders left for this one.
    """
    await end_of_dead(pressure.log, pressure.at)
    decisions = _DueDecisions(pressure, known)
    await decisions.abridge()
    if decisions.policy.hiding is not None:
        await decisions.hide(decisions.policy.hiding)
    await decisions.compact()
    while await decisions.restore():
        await decisions.abridge()  # it may repeat another block
        if decisions.policy.abridged_counted_as == "shown":  # else it was counted whole before: no more is due
            await decisions.compact()
    return decisions.taken


def _abridging(reason: str, blocks: tuple[Replacement, ...], tokens: Mapping[int, int], counter: str) -> BlocksHidden:
    """Return the event that shows results shorter from their first context on."""
    freed = sum(tokens[block.version] - block.tokens for block in blocks)
    return BlocksHidden(
        reason=reason, blocks=blocks, facts={"blocks": len(blocks), "freed_tokens": freed}, counter=counter
    )


class _DueDecisions:
    """One pass under way.

    ``pressed``: the pressure batch hid something; `compact` then goes on until the total is within the target.
    """

    def __init__(self, pressure: Pressure, known: Known) -> None:
        self.pressure, self.known, self.accounts = pressure, known, known.accounts
        self.log, self.policy, self.counter = pressure.log, pressure.policy, pressure.compactor.counter
        self.taken: list[TakenDecision] = []
        self.cold: Cold | None = coldness(pressure.window, self.policy, pressure.now)
        self.pressed = False

    @property
    def account(self) -> Account:
        """The account of the window as it is now."""
        return self.accounts.account(self.pressure.window.items, self.pressure.fixed, self.policy)

    @property
    def _above_limit(self) -> bool:
        """Whether the account is above the limit, with all that the policy counts, since all decisions go by that."""
        return self.account.total > self.account.limit

    @property
    def _setback(self) -> Setback | None:
        """The refusal or failure on record, if it is this policy's."""
        return self._setback_of(self.pressure.window)

    def _setback_of(self, window: Window) -> Setback | None:
        setback = window.setback
        return setback if setback is not None and setback.policy == self.policy.hash() else None

    async def _settle(self) -> None:
        """Count the window as it is now, off the loop where that takes long, so that `account` only has to read."""
        await settle(self.accounts, self.pressure.window.items, self.policy)

    async def abridge(self) -> None:
        """Abridge the newest results. This comes before any hide, since it costs no cache."""
        if not abridgeable(self.pressure.window, self.policy):
            return  # a render with nothing to decide never takes the log's lock
        decided: list[BlocksHidden] = []

        async def choose(_: datetime) -> Sequence[Payload]:
            window, passages = self.pressure.window, self.known.passages
            new = abridgeable(window, self.policy)
            compared = new if self.policy.repeats is None else window.items
            plan = partial(plan_abridged, new, window, self.policy, self.counter, passages)
            abridged = await off_loop(len(compared) + passages.unread(compared), plan)
            tokens = {item.version: item.tokens for item in new}
            decided[:] = [
                _abridging(reason, blocks, tokens, self.counter.name) for reason, blocks in abridged.by_reason
            ]
            return decided

        with suppress(VersionConflict):  # then it is left to the next render
            if await self.log.decide(choose, at=self.pressure.at):
                self.taken += [
                    TakenDecision(kind="abridged", reason=hide.reason, facts={**hide.facts}) for hide in decided
                ]

    async def restore(self) -> bool:
        """Show results whole again that leave out a passage of a block which is now out of sight."""
        if not await restore(self.pressure, self.known.references):
            return False
        self.taken.append(TakenDecision(kind="revealed", reason="restored"))
        return True

    async def hide(self, hiding: Hiding) -> None:
        """Hide a batch if the cache is cold, and one if the context is above its trigger; then give an owed notice.

        Cold goes first: the provider rewrites the prefix anyway, so the cold batch costs nothing extra and may make the
        pressure batch unnecessary.
        """
        if self.cold is not None:
            await self._hide(hiding, "cold", hiding.minimum, self.cold.facts())
        await self._settle()
        if hiding.pressure_minimum is not None and self.account.over_trigger:
            self.pressed = await self._hide(hiding, "pressure", hiding.pressure_minimum, {})
        # Check before taking the log's lock: a render with nothing to decide never takes it.
        if self.known.owed.is_due(self.pressure.window):
            await self._append_owed_notice()

    async def _hide(self, hiding: Hiding, reason: str, share: float, facts: dict[str, int]) -> bool:
        least = int(share * self.policy.max_tokens)
        chosen: list[tuple[HideDecision, Window]] = []
        progress = CompactionProgress(replace(self.pressure, reason="cold" if reason == "cold" else "over_trigger"))

        async def choose(time: datetime) -> Sequence[Payload]:
            chosen.clear()
            window = self.pressure.window
            if window.lease is not None and self.pressure.now < window.lease.expires_at:
                return ()  # another writer is summarising these very blocks, and the hide would void its summary
            await self._settle()
            known = self.accounts.costs(window.items, self.policy).copy()
            batch = await off_loop(len(window.items), partial(plan, window, known, above_limit=self._above_limit))
            if batch is None:
                return ()
            freed = {"blocks": len(batch.replacements), "freed_tokens": batch.freed, "least_tokens": least}
            figures = {**facts, **freed}
            blocks = batch.replacements
            unsaid = await off_loop(len(window.items), partial(left_unsaid, window.items, blocks, self.known.prompts))
            hidden = BlocksHidden(reason=reason, blocks=blocks, facts=figures, counter=self.counter.name, unsaid=unsaid)
            hide = await progress.annotated(HideDecision(hidden, batch.before, batch.freed), window)
            chosen.append((hide, window))
            return [hide.event, await self._notice(time)] if needs_notice(window) else [hide.event]

        def plan(window: Window, known: Costs, *, above_limit: bool) -> HidePlan | None:
            batch = plan_hide(
                window,
                self.policy,
                hiding,
                self.counter,
                least=least,
                replacements=self.known.replacements,
                contents=self.known.contents,
                known=known,
            )
            if batch is None or reason == "cold" or above_limit:  # nothing is better than the batch
                return batch
            return batch if self._is_paid_back(batch, hiding, window) else None

        with suppress(VersionConflict):  # then it is left to the next render
            if await self.log.decide(choose, at=self.pressure.at):
                for hide, window in chosen:
                    self.taken.append(await describe_hide(hide, window, self.pressure))
                return True
        return False

    def _is_paid_back(self, plan: HidePlan, hiding: Hiding, window: Window) -> bool:
        """Return whether a batch soon saves what it costs: the provider writes everything behind it anew.

        Where no summary may be written, there is nothing better than the batch.
        """
        if hiding.payback is None or window.is_held or self._setback_of(window) is not None:
            return True
        return pays_back(plan.freed, plan.behind - plan.freed, terms_in_force(window, self.policy), hiding.payback)

    async def _append_owed_notice(self) -> None:
        """Append the notice of an earlier batch that was hidden while a response was in progress."""

        async def choose(time: datetime) -> Sequence[Payload]:
            return [await self._notice(time)] if self.known.owed.is_due(self.pressure.window) else ()

        with suppress(VersionConflict):  # then it is left to the next render
            if await self.log.decide(choose, at=self.pressure.at):
                self.taken.append(TakenDecision(kind="told", reason="hidden"))

    async def _notice(self, time: datetime) -> Payload:
        """Return the notice for the model: content is hidden, and how to read it back."""
        message = SystemMessage(text=NOTICE, meta={NOTICE_KEY: "hidden"})
        return await addressed_block(self.log, message, time, self.counter)

    async def compact(self) -> None:
        """Compact until nothing is due any more, or nothing more can be freed, at most ``policy.attempts`` times.

        Above the limit it first waits for another writer's compaction, since that may leave nothing to do. Other
        writers' appends may bring the context above the limit only later; attempts made before that do not count.
        """
        left = self.policy.attempts
        while left:
            await self._settle()
            reason = self._due()
            if reason is None or self._holds_back():
                return
            if await self._others():
                continue  # another writer's compaction is no attempt of this one
            above, again = self._above_limit, await self._compact(reason)
            await self._settle()
            if self._above_limit and not above and not self.pressure.window.is_held:
                continue
            left -= 1
            if not again:
                return
        await self._settle()
        if self._due() is not None and self._setback is None:
            detail = f"still due after {len(self.taken)} decisions"
            await set_back(self.pressure, "no_progress", detail)

    def _due(self) -> CompactReason | None:
        """Return the reason for a compaction; None if none is due."""
        if not self.policy.automatic:
            return None
        due, share = self.account, self.policy.compact_when_cold
        if due.over_trigger or (self.pressed and due.total > due.target):
            return "over_trigger"
        if (
            self.cold is not None
            and self.cold.idle >= CACHE_SECONDS  # without a cache the context is cold at any time
            and share is not None
            and due.total > share * due.limit
            and not self._compacted_since_last_use()
        ):
            return "cold"
        return None

    def _compacted_since_last_use(self) -> bool:
        """Return whether a summary was written since the cache was last used: one is enough each time it goes cold."""
        summary, touch = self.pressure.window.summary, self.pressure.window.touch
        written = None if summary is None else summary.block.at
        return written is not None and touch is not None and written > touch.at

    def _holds_back(self) -> bool:
        """Return whether an undo, a refusal or a failure on record forbids this policy to compact now.

        An undo holds for every writer, until a compaction is forced or the conversation's policy is changed. A refusal
        or failure holds until the messages grew enough. Above the limit a render fails without a compaction. So there a
        refusal or failure holds only until a block is appended or is shown differently, and a lost race does not hold
        at all, since the next try may win it.
        """
        window, due = self.pressure.window, self.account
        if window.is_held:
            facts: dict[str, int | str] = {"total": due.total, "trigger": due.trigger, "limit": due.limit}
            self.taken.append(TakenDecision(kind="held", reason="undone", facts=facts))
            return True
        setback = self._setback
        if setback is None:
            return False
        if not self._above_limit:
            holds_back = visible_tokens(window, self.policy) < setback.retry_at
        else:
            lost = setback.reason == "superseded"
            holds_back = not lost and all(
                max(item.version, item.changed_at) <= setback.version for item in window.items
            )
        if holds_back:
            self.taken.append(
                TakenDecision(kind="refused", reason=setback.reason, facts={"retry_at": setback.retry_at})
            )
        return holds_back

    async def _others(self) -> bool:
        """Above the limit, wait for another writer's compaction.

        Return True if another writer held the lease and has given it up.
        """
        lease = self.pressure.window.lease
        if lease is None or self.pressure.now >= lease.expires_at or not self._above_limit:
            return False
        try:
            now = await take_turn(self.log, self.pressure.now, self.pressure.at, wait=True)
            await self._settle()
        except CompactionInProgress:  # a hook of that compaction is what renders here: it would wait for itself
            return False
        # If the lease expired, `now` is past its end, so the next attempt does not wait for it again.
        self.pressure = self.pressure.later(now)
        return self.pressure.window.lease is None

    async def _compact(self, reason: CompactReason) -> bool:
        """Run the policy's steps once and take in the decisions; return whether another attempt is worth it.

        Another one is worth it where anything was done, and above the limit where other writers changed the range.
        """
        await self._settle()
        wait, window = self._above_limit, self.pressure.window
        planned = PlannedSteps((window, self.accounts.costs(window.items, self.policy).copy()))
        done = await run_steps(replace(self.pressure, reason=reason, wait=wait, planned=planned))
        self.taken, self.pressure = self.taken + done.taken, done.pressure
        match done.failure:
            case CompactionInProgress() as busy:
                facts: dict[str, int | str] = {"lease": busy.version, "expires_at": instant_text(busy.expires_at)}
                self.taken.append(TakenDecision(kind="refused", reason="in_progress", facts=facts))
            case CompactionRefused() as refusal:
                self.taken.append(TakenDecision(kind="refused", reason=refusal.reason, facts=refusal.facts))
            case CompactionSuperseded() | SummarizerFailed() as failure:
                self.taken.append(TakenDecision(kind="failed", reason=str(failure)))
        return done.done or (wait and isinstance(done.failure, CompactionSuperseded))
