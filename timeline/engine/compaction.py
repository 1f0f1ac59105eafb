"""Compact a log: plan from its window, write the summary outside any lock, commit if the plan is still valid.

The planner decides; this module asks the hooks and the summarizers, and appends the result. Appends may go on while the
summary is written: a plan stays valid as long as the events since then leave its range alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from timeline.blocks import RangeSummary, stem
from timeline.engine.hooks import BEFORE, CompactionHooks, call_hook
from timeline.engine.lease import begin, holds, release, take_turn, within
from timeline.engine.pressure import set_back
from timeline.engine.summarizing import SummaryRequestLog, request_summary
from timeline.engine.warm import why_alone
from timeline.errors import CompactionRefused, CompactionSuperseded, SummarizerFailed, VersionConflict
from timeline.events import (
    FORCED,
    BlockAppended,
    BlocksHidden,
    CompactionCompleted,
    ContextRendered,
    ModelCalled,
    Pruned,
    SummaryParts,
    WrittenBy,
)
from timeline.events.other_payloads import (
    CompactionBoundary,
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    HookFailed,
    PrefixChanged,
    ToolsChanged,
)
from timeline.frozen import repair_text, shows
from timeline.log.off_loop import in_thread, off_loop
from timeline.log.stopwatch import Stopwatch
from timeline.planning.drop_oldest import NOTICE_BY, notice_for_summary
from timeline.planning.hidden_requests import left_unsaid
from timeline.planning.messages import messages
from timeline.planning.plans import Plan, as_pruned
from timeline.planning.summary_block import WrittenSummary, compaction_event, unheaded
from timeline.planning.summary_requests import Wanted, summary_requests
from timeline.policy.steps import Summarize
from timeline.ports import NO_MARK, Skip, window_of
from timeline.projection.reports import TakenDecision
from timeline.queries import FactRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from timeline.engine.compactor import Compactor
    from timeline.engine.pressure import Pressure
    from timeline.engine.warm import SentContext
    from timeline.errors import Cause
    from timeline.events import Payload
    from timeline.events.other_payloads import FailureReason
    from timeline.fold.window import Window
    from timeline.log.protocol import Log
    from timeline.policy.steps import CoveringStep
    from timeline.ports import LeaseMark


_PLANS: Final = 2
"""Most plans that are tried: a second one if the first plan's range changed before the commit (design: Commit)."""


async def compact(pressure: Pressure, step: CoveringStep, *, begun_with: int | None = None) -> list[TakenDecision]:
    """Carry out one covering step of the policy: usually, replace the oldest blocks by a summary.

    Args:
        pressure: the log, and how far it is to come down.
        step: the step.
        begun_with: the messages' tokens before the hiding step that ran first; None if no step hid anything since the
            last covering one.

    Raises:
        CompactionInProgress: another writer compacts, and ``pressure.wait`` is False.
        CompactionRefused: nothing would be gained.
        CompactionSuperseded: the planned range changed each time while the summary was written.
        SummarizerFailed: no summarizer gave a usable answer.
    """
    conversation = pressure.log.fold.conversation
    with pressure.compactor.observer.compacting(conversation, pressure.reason, step) as observed:
        return await _Compaction(pressure, step, observed, begun_with).run()


@dataclass(slots=True)
class _Compaction:
    """One compaction under way.

    Attributes:
        pressure, step: as `compact` got them.
        observed: reports the committed compaction to the observer.
        begun_with: as `compact` got it.
        lease: the version of its own ``compaction.started``; None unless a summary is to be written.
        own_summary: the summary that the application's hook wrote instead of the summarizer.
        committed: the version of its first event, once that is in the log.
        before: the window that the commit found.
        asked: the usage of all summary requests so far.
        watch: measures it from its turn on, without the time that it waited for another writer.
        counted: the plan whose messages were counted last, and how many it covers.
        mark: shows other processes that this one, which holds the lease, runs.
    """

    pressure: Pressure
    step: CoveringStep
    observed: Callable[[CompactionCompleted, Window, Window], None]
    begun_with: int | None
    lease: int | None = None
    own_summary: str = ""
    committed: int = 0
    before: Window | None = None
    asked: SummaryRequestLog = field(default_factory=SummaryRequestLog)
    watch: Stopwatch | None = None
    counted: tuple[Plan, int] | None = None
    mark: LeaseMark = NO_MARK

    @property
    def log(self) -> Log:
        return self.pressure.log

    @property
    def compactor(self) -> Compactor:
        return self.pressure.compactor

    async def run(self) -> list[TakenDecision]:
        """Plan, summarise, commit; once more where the range changed meanwhile and a compaction is still wanted.

        The lease is taken before the hook and the summary, which take time, so that no other writer pays for a second
        summary of the same range.
        """
        try:
            return await self._run()
        finally:  # only after the event that ends the lease: without the mark, another process would end the lease, too
            self.mark.close()

    async def _run(self) -> list[TakenDecision]:
        plan = await self._begin()
        try:
            with within(self.log, self.lease):
                taken = await self._tried(plan)
            if taken is None:
                await self._set_back("superseded", "the range changed while its summary was written")
        except BaseException as error:  # release the lease on every error, or other writers wait until it expires
            outlay = self.asked.outlay(self._duration())
            await release(self.log, self.lease, error, self.pressure.at, outlay=outlay)
            raise
        if taken is None:
            raise CompactionSuperseded(
                "The log changed inside the planned range while the summary was written. "
                "Nothing was covered; compact again when the conversation is quiet."
            )
        return taken

    async def _tried(self, plan: Plan) -> list[TakenDecision] | None:
        """Commit the plan, or a second one; return None if the range changed each time or the compaction is off."""
        if self.compactor.hooks.on_before_compaction is not None:
            await self._ask_application(plan)
            await self.log.catch_up()  # the hook may have pinned or appended, even through another handle
            plan = await self._plan()
        for number in range(_PLANS):
            if number:  # the range changed: plan anew from the log's end, unless the compaction is called off
                await self.log.catch_up()
                if self._is_called_off():
                    return None
                plan = await self._plan()
            if committed := await self._commit(plan, await self._events(plan)):
                return await self._report(committed)
        return None

    def _is_called_off(self) -> bool:
        """Return whether to stop: the lease is lost, or an undo made meanwhile forbids it."""
        held = self.pressure.window.is_held
        return not holds(self.log, self.lease) or (held and self.pressure.reason not in FORCED)

    async def _begin(self) -> Plan:
        """Plan, and take the lease if a summary is to be written; start over where another writer took it first.

        Each try plans anew, since the other writer's compaction may have covered the range.
        """
        while True:
            least = await take_turn(self.log, self.pressure.now, self.pressure.at, wait=self.pressure.wait)
            self.watch = Stopwatch(self.pressure.clock)
            plan = await self._plan()
            if plan.covers is None:
                return plan
            count = await self._messages(plan)
            self.mark = self.log.mark_lease()
            started = partial(self._started, plan, count)
            self.lease = await begin(self.log, self.mark, least, self.pressure.at, started)
            if self.lease is not None:
                return plan
            self.mark.close()

    def _started(self, plan: Plan, count: int, expires_at: datetime) -> CompactionStarted:
        return CompactionStarted(
            expires_at=expires_at,
            reason=self.pressure.reason,
            before_tokens=plan.before_tokens if self.begun_with is None else self.begun_with,
            limit=self.pressure.limit,
            messages=count,
            continues=self.begun_with is not None,
        )

    def _freed_before(self, plan: Plan) -> int:
        """Return the tokens that hiding freed earlier in the same compaction."""
        return 0 if self.begun_with is None else max(0, self.begun_with - plan.before_tokens)

    async def _plan(self) -> Plan:
        """Plan, or record the refusal and raise it."""
        decision = await self.pressure.plan(self.step)
        if isinstance(decision, Plan):
            return decision
        await self._set_back(decision.reason, str(decision.facts))
        raise CompactionRefused(decision.reason, decision.facts)

    async def _set_back(self, reason: FailureReason, detail: str, *, cause: Cause | None = None) -> None:
        outlay = self.asked.outlay(None if self.lease is None else self._duration())
        await set_back(self.pressure, reason, detail, lease=self.lease, cause=cause, outlay=outlay)

    def _duration(self) -> float | None:
        return None if self.watch is None else self.watch.duration()

    async def _ask_application(self, plan: Plan) -> None:
        """Let the application forbid the compaction, or write its summary.

        Raises:
            CompactionRefused: the application forbade it.
        """
        hook = self.compactor.hooks.on_before_compaction
        answer = await call_hook(hook, BEFORE, {"before_tokens": plan.before_tokens}, self.log, self.pressure.at)
        if answer is Skip or isinstance(answer, Skip):
            detail = repair_text(str(answer.reason)) if isinstance(answer, Skip) else ""
            await self._set_back("vetoed", detail)
            raise CompactionRefused("vetoed", {"before_tokens": plan.before_tokens, "by": detail or BEFORE})
        if isinstance(answer, str):
            self.own_summary = repair_text(answer).strip() if shows(answer) else ""

    def _written(self, plan: Plan) -> WrittenSummary | None:
        """Return the summary of the planner, or of the application's hook cut to the plan's caps, if any."""
        number = self.pressure.window.compactions + 1
        if plan.written is not None:
            return WrittenSummary(plan.written, WrittenBy(summarizer=plan.written_by), number)
        own = unheaded(self.own_summary, self.pressure.policy.form)
        text = self.compactor.counter.truncate(own, plan.caps.history + plan.caps.turn_prefix)
        return WrittenSummary(SummaryParts(history=text), WrittenBy(summarizer=BEFORE), number) if text else None

    async def _events(self, plan: Plan) -> list[Payload]:
        """Return the events of a plan, with a summary that is asked for where none is written yet."""
        payloads: list[Payload] = []
        if plan.covers is not None:
            window = self.pressure.window
            write = partial(
                compaction_event,
                window,
                plan,
                self._written(plan) or await self._summarise(plan),
                record=await self._record(plan),
                reason=self.pressure.reason,
                taken_paths=await self.log.paths_taken([stem(RangeSummary(turn_id=plan.turn_id))]),
                policy=self.pressure.policy,
                counter=self.compactor.counter,
                now=self.pressure.now,
            )
            completed = await off_loop(len(window.items), write)
            own = {"lease": self.lease, "messages": await self._messages(plan)}
            payloads.append(completed.model_copy(update=own | {"pruned_tokens": self._freed_before(plan)}))
        elif self.lease is not None:
            # The new plan covers nothing. Record a failure, which ends our lease: otherwise other writers would wait
            # for a summary that never comes.
            detail = "only previews were left to make"
            failed = CompactionFailed(reason="nothing_to_cover", detail=detail, lease=self.lease)
            payloads.append(failed.model_copy(update={"duration": self._duration()}))
        if plan.previews:
            pruned = None if plan.covers is not None else self._previews(plan)
            counter = self.compactor.counter.name
            lost = left_unsaid(self.pressure.window.items, plan.previews)
            payloads.append(
                BlocksHidden(reason="spill", blocks=plan.previews, pruned=pruned, counter=counter, unsaid=lost)
            )
        return payloads

    async def _messages(self, plan: Plan) -> int:
        """Return how many messages a plan covers, which the start and the end of a compaction report."""
        if self.counted is None or self.counted[0] is not plan:
            self.counted = plan, len(await off_loop(len(plan.covered), partial(messages, plan.covered)))
        return self.counted[1]

    async def _record(self, plan: Plan) -> FactRecord:
        """Return the record of all that a plan covers, what was covered earlier included.

        Where the policy shows no record, it has only the user's requests: the compaction reports which of them are
        unsaid.
        """
        if plan.covers is None:
            return FactRecord()
        return await (self.log.fact_record(plan.covers) if plan.caps.digest else self.log.asked(plan.covers))

    def _previews(self, plan: Plan) -> Pruned:
        """Return the figures of previews without a summary; those of a summary include its previews already."""
        pruned = Pruned(
            reason=self.pressure.reason,
            before_tokens=plan.before_tokens,
            limit=self.pressure.limit,
            duration=self._duration(),
        )
        return as_pruned(pruned, plan.previews, self.pressure.window, plan.before_tokens - plan.expected_tokens)

    async def _summarise(self, plan: Plan) -> WrittenSummary:
        """Ask for a plan's summary; with ``on_failure="truncate"`` return a notice where none can be written."""
        policy, counter = self.pressure.policy, self.compactor.counter
        await in_thread(self.compactor.chain)  # the first call in a process imports modules, which takes time
        window, wanted = self.pressure.window, await self._wanted()
        requests = await off_loop(
            len(window.items), partial(summary_requests, window, plan, counter, wanted, self.pressure.cut)
        )
        warm = self._warm(plan)
        if not isinstance(warm, str):
            requests = requests.asked_in(warm)
        try:
            parts, who = await request_summary(self.compactor.summarizer, requests, self.asked, self.pressure.clock)
        except SummarizerFailed as failure:
            if policy.on_failure == "truncate":
                why = f"No summary: {'; '.join(failure.problems)}"
                self._warn(f"{why}. A notice takes the messages' place (on_failure=truncate)")
                notice = notice_for_summary(plan.covered, requests.kept, plan.caps.history, counter)
                who = WrittenBy(summarizer=NOTICE_BY, fallback_reason=why)
                return WrittenSummary(notice, who.model_copy(update=self.asked.figures()), requests.compaction_number)
            self._warn(f"{failure} (on_failure={policy.on_failure})")
            await self._set_back("summarizer", str(failure), cause=failure.cause)
            raise
        if who.fallback_reason is not None:
            self._warn(f"summary by {who.summarizer}: {who.fallback_reason}")
        who = _with_reason(who, warm)
        return WrittenSummary(parts, who.model_copy(update=self.asked.figures()), requests.compaction_number)

    def _warm(self, plan: Plan) -> SentContext | str:
        """Return the context to ask for the summary in, or why there is none; empty if the policy wants none."""
        if not isinstance(self.step, Summarize) or self.step.asked == "alone":
            return ""
        pressure, sent = self.pressure, self.pressure.sent()
        if isinstance(sent, str):
            return sent
        why = why_alone(sent, pressure.window, plan.covered, step=self.step, policy=pressure.policy, now=pressure.now)
        return why or sent

    def _warn(self, problem: str) -> None:
        self.compactor.logger.warning("conversation %s: %s", self.log.fold.conversation, problem)

    async def _wanted(self) -> Wanted:
        """Return the step's prompt, language and original task, with the caller's instructions."""
        if not isinstance(self.step, Summarize):
            return Wanted(instructions=self.pressure.instructions)
        # The beginning of a long answer says more than a notice, or the next step, would.
        less = self.pressure.policy.on_failure in {"truncate", "next_step"}
        return Wanted(
            prompt=self.step.prompt,
            language=self.step.language,
            original_task=await self.log.first_prompt(),
            instructions=self.pressure.instructions,
            temperature=self.step.temperature,
            answer_room=self.step.answer_room,
            too_long="cut" if less else "refuse",
            invented=self.step.invented,
            source=self.step.source,
            window=window_of(self.compactor.summarizer)
            or self.pressure.policy.max_tokens - self.pressure.fixed.reserved,
        )

    async def _commit(self, plan: Plan, payloads: Sequence[Payload]) -> Sequence[Payload]:
        """Append the events if the lease still counts and the plan is still valid; return those that were appended.

        Both are checked under the log's lock, right before the append, when everything is known that was appended
        while the summary was written.
        """
        dated: Sequence[Payload] = ()

        async def still_wanted(time: datetime) -> Sequence[Payload]:
            nonlocal dated
            self.committed, self.before = self.log.fold.version + 1, self.pressure.window
            wanted = holds(self.log, self.lease) and await still_valid(self.log, plan)
            dated = [self._dated(payload, time) for payload in payloads] if wanted else ()
            return dated

        try:
            await self.log.decide(still_wanted, at=self.pressure.at, snapshot=plan.covers is not None)
        except VersionConflict:
            return ()
        return dated

    def _dated(self, payload: Payload, time: datetime) -> Payload:
        """Return a compaction with its time and duration, known only at the append; any other event as it is."""
        if not isinstance(payload, CompactionCompleted):
            return payload
        block = payload.block.model_copy(update={"at": time})
        return payload.model_copy(update={"block": block, "duration": self._duration()})

    async def _report(self, payloads: Sequence[Payload]) -> list[TakenDecision]:
        """Report the committed events to the observer and the hooks; return them as decisions."""
        taken: list[TakenDecision] = []
        for payload in payloads:
            if isinstance(payload, CompactionCompleted):
                if self.before is not None:
                    self.observed(payload, self.before, self.pressure.window)
                taken.append(await self._announce(payload))
            elif isinstance(payload, BlocksHidden):
                if payload.pruned is not None:  # else the figures of the summary that comes with them include theirs
                    self.compactor.observer.pruned(self.log.fold.conversation, payload.pruned)
                taken.append(
                    TakenDecision(kind="previewed", reason=payload.reason, facts={"blocks": len(payload.blocks)})
                )
        return taken

    async def _announce(self, done: CompactionCompleted) -> TakenDecision:
        """Log a line, call the hooks, then append the boundary event where the policy wants one."""
        self.compactor.logger.info(
            "conversation %s: compaction %d: %d -> %d tokens (%d messages summarised)",
            *(self.log.fold.conversation, done.round, done.before_tokens, done.after_tokens, done.messages),
        )
        announced = CompactionHooks(done, self.committed, self.log, self.pressure.at)
        await announced.call(self.compactor.hooks)
        boundary = await announced.append_boundary() if self.pressure.policy.boundary else None
        return announced.decision(boundary)


def _with_reason(who: WrittenBy, warm: SentContext | str) -> WrittenBy:
    """Return an author with the reason why no model was asked in the cached context, where the policy wants that.

    A summarizer that asks a model and gives no reason of its own cannot be asked in a context. One that asks no model
    needs no reason.
    """
    reason = warm if isinstance(warm, str) else "summarizer"
    no_model = who.model is None and who.prompt_version is None
    if who.asked == "in_cache" or who.alone_because is not None or no_model or not reason:
        return who
    return who.model_copy(update={"alone_because": reason})


_HARMLESS: Final = (
    BlockAppended,
    CompactionBoundary,
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    ContextRendered,
    HookFailed,
    ModelCalled,
    PrefixChanged,
    ToolsChanged,
)
"""Events that leave a plan valid. Each appends after the plan's range, or changes nothing inside it."""


async def still_valid(log: Log, plan: Plan) -> bool:
    """Return whether a plan may still be committed: nothing since then changed its range.

    Appended blocks come behind the range and leave it alone, unless one of them answers a covered call. Hides of these
    blocks leave it alone, too, such as one that leaves out the line numbers of a new result.
    """
    if log.fold.version == plan.version:
        return True
    if not all(_leaves_alone(event.payload, plan.version) for event in await log.since(plan.version)):
        return False
    covered = {item.version for item in plan.covered}
    return not any(item.answers in covered for item in log.fold.window.items if item.version > plan.version)


def _leaves_alone(payload: Payload, version: int) -> bool:
    """Return whether an event changes nothing of the log as it was at a version."""
    if isinstance(payload, BlocksHidden):
        return all(hidden.version > version for hidden in payload.blocks)
    return isinstance(payload, _HARMLESS)
