"""Compacting a log: plan from a window, summarise outside any lock, commit against the events since the plan.

The decisions are the planner's; this file asks the summarizers and the hooks, and appends what came of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio

from timeline.blocks import RangeSummary
from timeline.errors import CompactionRefused, CompactionSuperseded, SummarizerFailed, VersionConflict
from timeline.events import (
    BlockAppended,
    BlocksHidden,
    CompactionCompleted,
    CompactionFailed,
    ContextRendered,
    HookFailed,
    ModelCalled,
    SummaryParts,
)
from timeline.fold.window import Setback
from timeline.paths import stem
from timeline.planning.budget import account, least_progress
from timeline.planning.planner import Plan, plan_compaction
from timeline.planning.summary import compaction_event, summary_requests, written_by
from timeline.projection.context import Taken

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.events import CompactReason, FailureReason, Payload, WrittenBy
    from timeline.log import Log
    from timeline.planning.budget import FixedPart
    from timeline.planning.summary import Requests
    from timeline.policy.model import Policy
    from timeline.ports import Hook, Hooks, Summarizer, Summary, SummaryRequest, TokenCounter

_PLANS: Final = 2
"""A plan whose range changed meanwhile is made once again (design, section 4)."""
_HARMLESS = (BlockAppended, ContextRendered, ModelCalled, HookFailed)
"""Events that leave a plan valid: they stand behind its range, or change nothing in it."""


@dataclass(frozen=True, slots=True)
class Compactor:
    """All that compacting needs besides the log."""

    policy: Policy
    counter: TokenCounter
    summarizer: Summarizer
    hooks: Hooks

    async def relieve(self, log: Log, fixed: FixedPart, now: datetime) -> list[Taken]:
        """Compact a log that is above the trigger; a refusal or failure is recorded and returned, not raised.

        A compaction that leaves the log above the trigger is followed by another one, or by its refusal, at once: the
        next render then has nothing left to decide.
        """
        taken: list[Taken] = []
        for _ in range(self.policy.attempts):
            window = log.fold.window
            due = account(window.items, fixed, self.policy)
            if self.policy.compacts == "never" or not due.over_trigger:
                break
            setback = window.setback
            waits = setback is not None and window.tokens < setback.retry_at
            if setback is not None and waits and due.total <= due.limit and setback.policy == self.policy.digest():
                taken.append(Taken(kind="refused", reason=setback.reason, facts={"retry_at": setback.retry_at}))
                break
            try:
                taken += await self.compact(log, fixed, now, reason="over_trigger")
            except CompactionRefused as refusal:
                taken.append(Taken(kind="refused", reason=refusal.reason, facts=refusal.facts))
                break
            except (CompactionSuperseded, SummarizerFailed) as failure:
                taken.append(Taken(kind="failed", reason=str(failure)))
                break
        else:
            if account(log.fold.window.items, fixed, self.policy).over_trigger:
                await self._set_back(log, now, "no_progress", f"above the trigger after {len(taken)} decisions", 0)
        return taken

    async def compact(
        self, log: Log, fixed: FixedPart, now: datetime, *, reason: CompactReason, instructions: str = ""
    ) -> list[Taken]:
        """Compact a log.

        Raises:
            CompactionRefused: nothing would be gained.
            CompactionSuperseded: the planned range changed each time while the summary was written.
            SummarizerFailed: no summarizer gave a usable answer.
        """
        decision = await self._plan(log, fixed, now)
        await self._call(log, "on_before_compaction", {"before_tokens": decision.before_tokens}, now)
        for number in range(_PLANS):
            if number:
                decision = await self._plan(log, fixed, now)
            payloads = await self._carry_out(log, decision, now, reason, instructions)
            if await self._commit(log, decision, payloads, now):
                return await self._report(log, payloads, now)
        await self._set_back(log, now, "superseded", "the range changed while its summary was written", 0)
        raise CompactionSuperseded(
            "The log changed inside the planned range twice while the summary was written. "
            "Nothing was covered; compact again when the conversation is quiet."
        )

    async def _plan(self, log: Log, fixed: FixedPart, now: datetime) -> Plan:
        """Plan, or record the refusal and raise it."""
        decision = plan_compaction(log.fold.window, fixed, self.policy, self.counter)
        if isinstance(decision, Plan):
            return decision
        await self._set_back(log, now, decision.reason, str(decision.facts), decision.retry_after)
        raise CompactionRefused(decision.reason, decision.facts)

    async def _carry_out(
        self, log: Log, plan: Plan, now: datetime, reason: CompactReason, instructions: str
    ) -> list[Payload]:
        """Turn a plan into the events that will carry it out."""
        payloads: list[Payload] = []
        if plan.covers is not None:
            window = log.fold.window
            requests = summary_requests(window, plan, self.counter, instructions)
            parts, who = await self._summarise(log, requests, now)
            payloads.append(
                compaction_event(
                    window,
                    plan,
                    parts=parts,
                    written_by=who,
                    reason=reason,
                    taken_paths=await log.paths_taken([stem(RangeSummary(turn_id=plan.turn_id))]),
                    policy=self.policy,
                    counter=self.counter,
                    now=now,
                )
            )
        if plan.spills:
            payloads.append(BlocksHidden(reason="spill", blocks=plan.spills))
        return payloads

    async def _summarise(self, log: Log, requests: Requests, now: datetime) -> tuple[SummaryParts, WrittenBy]:
        """Ask for both parts at the same time; this is where time passes, and no lock is held."""
        answers: dict[str, Summary] = {}
        try:
            async with anyio.create_task_group() as group:
                for request in (requests.history, requests.turn_prefix):
                    if request is not None:
                        group.start_soon(self._ask, request, answers)
        except BaseExceptionGroup as errors:
            failed = errors.subgroup(SummarizerFailed)
            if failed is None or len(failed.exceptions) != len(errors.exceptions):
                raise
            failure = failed.exceptions[0]
            await self._set_back(log, now, "summarizer", str(failure), 0)
            raise failure from None
        parts = SummaryParts(
            history=answers["history"].text if "history" in answers else requests.kept.history,
            turn_prefix=answers["turn_prefix"].text if "turn_prefix" in answers else requests.kept.turn_prefix,
        )
        return parts, written_by(list(answers.values()))

    async def _ask(self, request: SummaryRequest, answers: dict[str, Summary]) -> None:
        answers[request.kind] = await self.summarizer.summarize(request)

    async def _commit(self, log: Log, plan: Plan, payloads: Sequence[Payload], now: datetime) -> bool:
        """Append at the log's end when nothing since the plan touched its range; else say no."""
        for _ in range(self.policy.attempts):
            version = log.fold.version
            if not await _still_valid(log, plan):
                return False
            try:
                await log.commit(payloads, at=now, expected=version, snapshot=plan.covers is not None)
            except VersionConflict:
                await log.catch_up()
                continue
            return True
        return False

    async def _report(self, log: Log, payloads: Sequence[Payload], now: datetime) -> list[Taken]:
        """Call the hook and say what was done."""
        taken: list[Taken] = []
        for payload in payloads:
            if isinstance(payload, CompactionCompleted):
                facts = {
                    "before_tokens": payload.before_tokens,
                    "after_tokens": payload.after_tokens,
                    "compacted_tokens": payload.compacted_tokens,
                }
                await self._call(log, "on_after_compaction", dict(facts), now)
                detail: dict[str, int | str] = {"round": payload.round, **facts, "summary": payload.block.path}
                if payload.split_turn_id is not None:
                    detail["split_turn_id"] = payload.split_turn_id
                taken.append(Taken(kind="compacted", reason=payload.reason, facts=detail))
            elif isinstance(payload, BlocksHidden):
                taken.append(Taken(kind="spilled", reason=payload.reason, facts={"blocks": len(payload.blocks)}))
        return taken

    async def _call(self, log: Log, name: str, facts: dict[str, Any], now: datetime) -> None:
        """Await a hook of the application; an error in it is recorded, never fatal (seed 002, hooks)."""
        hook: Hook | None = getattr(self.hooks, name)
        if hook is None:
            return
        try:
            await hook(facts)
        except Exception as error:  # noqa: BLE001 - an application's hook may raise anything
            await log.commit([HookFailed(hook=name, error=f"{type(error).__name__}: {error}")], at=now)

    async def _set_back(self, log: Log, now: datetime, reason: FailureReason, detail: str, retry_after: int) -> None:
        """Record a refusal or failure, unless it is the very one that is on record."""
        window = log.fold.window
        growth = retry_after or least_progress(self.policy, window.tokens)
        policy = self.policy.digest()
        if window.setback == Setback(reason, window.tokens + growth, policy):
            return
        failed = CompactionFailed(
            reason=reason, detail=detail, policy=policy, visible_tokens=window.tokens, retry_after=growth
        )
        await log.commit([failed], at=now)


async def _still_valid(log: Log, plan: Plan) -> bool:
    """Say whether everything since the plan stands behind its range: appends do, unless they answer a covered call."""
    if log.fold.version == plan.version:
        return True
    if any(not isinstance(event.payload, _HARMLESS) for event in await log.since(plan.version)):
        return False
    covered = {item.version for item in plan.covered}
    return not any(item.answers in covered for item in log.fold.window.items if item.version > plan.version)
