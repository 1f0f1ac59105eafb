"""Replay one recording under one policy: the engine decides and projects as usual, and each call is priced.

The recorded answers and results are replayed unchanged; what the agent would have done differently is not modelled.
Compactions of the recorded client are left out. The log is a fold in memory: nothing is stored, and the contexts equal
those that a store would give.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import ToolCall
from timeline.engine.equipment import Equipment
from timeline.engine.known import Known
from timeline.engine.renderer import Renderer
from timeline.engine.warm import SentContext, not_sent
from timeline.errors import BudgetError
from timeline.events import ABRIDGED, BlockAppended, BlocksHidden, CallRequest, CompactionCompleted, ModelCalled
from timeline.importers.builder import UNKNOWN_TIME
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.lab.alike import Alike
from timeline.lab.cache import CacheRequest, PromptCache, Segment
from timeline.lab.due import is_full, may_decide
from timeline.lab.facts.sight import FactSight, counted
from timeline.lab.facts.summaries import Judged, SummaryJudge
from timeline.lab.lifetimes import kept_by
from timeline.lab.replay_log import FIXED_PART, ProviderCounter, ReplayLog, UnhashedProjector
from timeline.lab.results import RunResult, call_row, totals_of
from timeline.lab.segments import SYSTEM, Segmenter
from timeline.lab.shown import ShownContext, shown_by
from timeline.lab.sizes import VOCABULARY, block_of
from timeline.lab.summaries import Metered, Spent
from timeline.lab.visibility import Sight
from timeline.planning.account import limits_of_policy
from timeline.policy.model import Never
from timeline.portable.stored import is_in_recording
from timeline.tokens import get_counter
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.engine.compactor import Compactor
    from timeline.engine.warm import WhyAlone
    from timeline.events import Payload
    from timeline.fold.window import Window
    from timeline.importers.recording import RecordedEvent
    from timeline.lab.cache import Change, Charge
    from timeline.lab.facts.needs import Needs
    from timeline.lab.prices import Price
    from timeline.lab.results import ReplayedCallRow
    from timeline.lab.sizes import Measured, ReplayedCall
    from timeline.planning.account import FixedPart
    from timeline.policy.model import Policy
    from timeline.ports import Summarizer
    from timeline.projection.context import RenderedContext
    from timeline.usage import KeptLong

UNLIMITED: Final = 10**9
"""The limit of a policy that never makes room: all is sent, and the calls above the policy's own limit are counted."""
MOST_FIXED: Final = 2
"""A fixed part above the limit divided by this leaves no room for a conversation."""
CAPPED_FIXED: Final = 8
"""Such a one is replayed as the limit divided by this: figures at that limit compare with each other alone."""

ROUND_OUTPUT: Final = 100
"""Tokens that a model writes to read something back: a call with a path, and a few words."""


@dataclass(frozen=True, slots=True)
class SentCall:
    """What the policy sends for a recorded call, or the type of the error that refused it."""

    call: ReplayedCall
    shown: ShownContext | None
    refused: str = ""

    @property
    def context(self) -> RenderedContext | None:
        """The context with its fingerprint, which a replay leaves out; each access makes it anew."""
        if self.shown is None:
            return None
        context = self.shown.context()
        return context.model_copy(update={"fingerprint": context.neutral.fingerprint()})


async def replay(
    measured: Measured,
    policy: Policy,
    price_of: Callable[[str], Price],
    *,
    name: str = "",
    file: str = "",
    summarizer: Summarizer | None = None,
    watch: Callable[[SentCall], None] | None = None,
    needs: Needs | None = None,
    reserve: int | None = None,
    lead: Callable[[Run], Awaitable[None]] | None = None,
    alike: Alike | None = None,
) -> RunResult:
    """Replay a recording under a policy, and price each call.

    Args:
        measured: the recording, with its sizes.
        policy: the policy, its limit included. One that never makes room is replayed without a limit.
        price_of: returns the price of a model.
        name: the policy's name.
        file: the file of the recording.
        summarizer: writes the summaries; the extractive one unless given.
        watch: called with what is sent for each call, for checks; its context is made when they ask for it.
        needs: what the recorded answers need, to be found in each context; None finds nothing.
        reserve: tokens of the limit that stay free for the answer, instead of what the policy keeps free; None leaves
            it to the policy.
        lead: brings the run near its first decision, see `timeline.lab.beginnings`; then ``watch`` sees no context
            before that.
        alike: what other replays of the recording made alike, to be taken over and added to.
    """
    began, price_of = perf_counter(), cache(price_of)
    run = Run(measured, policy, price_of, summarizer, needs=needs, reserve=reserve, alike=alike)
    if lead is not None:
        await lead(run)
    await run.through(watch)
    priced = all(price_of(call.model).known for call in measured.calls)
    return RunResult(
        file=file,
        conversation=measured.recording.id,
        subagent=measured.recording.parent is not None,
        policy=name or policy.name,
        policy_hash=policy.hash(),
        max_tokens=policy.max_tokens,
        fixed=run.fixed,
        measured_fixed=measured.fixed,
        unrecorded=measured.unrecorded,
        ratio=measured.ratio,
        lifetime=run.lifetime,
        totals=totals_of(run.rows, priced=priced, seconds=round(perf_counter() - began, 3)),
        rows=tuple(run.rows),
    )


def as_replayed(policy: Policy, lifetime: str = "") -> Policy:
    """Return a policy as the lab runs it: it counts in the provider's tokens, so that it needs no margin for them.

    Its options say what no usage reports: that the provider has no cache, or keeps prompts by itself.
    """
    never = isinstance(policy.trigger, Never) and policy.hiding is None
    cache = lifetime if policy.cache is None and lifetime in {"automatic", "none"} else policy.cache
    limit = {"max_tokens": UNLIMITED} if never else {}
    return policy.model_copy(update={"counts": "counter", "margin": 0.0, "cache": cache, **limit})


def reserving(policy: Policy, reserve: int | None) -> Policy:
    """Return a policy whose requests leave as much of its limit free as any other's.

    Its own reserves stay, since its trigger may be worked out with them; the limit is moved by the difference.
    """
    if reserve is None:
        return policy
    own = policy.output_reserve + policy.safety_buffer
    return policy.model_copy(update={"max_tokens": policy.max_tokens - reserve + own})


def fixed_part(measured: int, limit: int) -> int:
    """Return the fixed part to replay with: as measured, if that leaves room in the limit."""
    return measured if measured * MOST_FIXED <= limit else limit // CAPPED_FIXED


class _Decided(NamedTuple):
    """The decisions between two calls."""

    hidden: int
    compactions: tuple[CompactionCompleted, ...]

    @property
    def changes(self) -> frozenset[Change]:
        compacted: set[Change] = {"compaction"} if self.compactions else set()
        hidden: set[Change] = {"hide"} if self.hidden else set()
        return frozenset(compacted | hidden)


def _decided(payloads: Sequence[Payload]) -> _Decided:
    hides = (payload for payload in payloads if isinstance(payload, BlocksHidden) and payload.reason not in ABRIDGED)
    hidden = sum(len(payload.blocks) for payload in hides)
    return _Decided(hidden, tuple(payload for payload in payloads if isinstance(payload, CompactionCompleted)))


class Run:
    """A running replay.

    Attributes:
        position: of the recording's next event.
        rows: of the calls so far.
    """

    def __init__(
        self,
        measured: Measured,
        policy: Policy,
        price_of: Callable[[str], Price],
        summarizer: Summarizer | None,
        *,
        needs: Needs | None = None,
        reserve: int | None = None,
        fixed: int | None = None,
        alike: Alike | None = None,
    ) -> None:
        self.measured: Measured = measured
        self.limit: int = policy.max_tokens - (reserve or 0)
        self.fixed: int = fixed_part(measured.fixed, policy.max_tokens) if fixed is None else fixed
        self.rows: list[ReplayedCallRow] = []
        self.price_of = price_of
        self.kept_long: KeptLong = "everything" if measured.long else policy.cache_points.kept_long
        self.counter: ProviderCounter = ProviderCounter(get_counter(VOCABULARY), measured.ratio, self.fixed)
        self.lifetime: str = kept_by(price_of(measured.calls[0].model if measured.calls else ""), long=measured.long)
        replayed = as_replayed(reserving(policy, reserve), self.lifetime)
        compactor = Equipment(summarizer, counter=self.counter).compactor(replayed)
        metered = Metered(compactor.summarizer, self.counter, policy.max_tokens)
        self.metered: Metered = metered
        # Not the run itself, which would hold itself then: its log would wait for a whole collection to be gone.
        self.compactor: Compactor = replace(compactor, chain=lambda: metered)
        self.alike: Alike = Alike() if alike is None else alike
        known = Known(replacements=self.alike.replacements, cut=self.alike.cut)
        self.renderer: Renderer = Renderer(UnhashedProjector(self.alike), known)
        self.segmenter: Segmenter = Segmenter(self.alike.hashes, self.alike.thoughts)
        self.fixed_part: FixedPart = self.renderer.fixed(self.compactor, system=FIXED_PART)
        limit, trigger, _ = limits_of_policy(replayed, self.fixed_part)
        self.line: int = min(limit, trigger)
        self.cache: PromptCache = PromptCache(price_of)
        self.sight: Sight = Sight(self.alike.thoughts)
        self.sent: Callable[[], SentContext | WhyAlone] = not_sent
        self.paid_last: CacheRequest | None = None
        self.changes: set[Change] = set()
        self.decided: bool = False
        self.calls_before: int = 0
        self.ended: float | None = None
        events = measured.recording.events
        self.position: int = 0
        self._calls = {call.position: call for call in measured.calls}
        self._reported = any(isinstance(event.payload, ModelCalled) for event in events)
        self._answers = _answers(events, self._calls)
        self.log: ReplayLog = ReplayLog(measured.recording.id, events[0].at if events else UNKNOWN_TIME, self.alike)
        sight = None if needs is None else FactSight(needs, measured.tokens, self.log, self.counter)
        self.facts: FactSight | None = sight
        self.judge: SummaryJudge | None = None if needs is None else SummaryJudge(needs, self.counter)

    def adopt(self, other: Run) -> None:
        """Go on from where another run is, which decided nothing so far."""
        self.log, self.segmenter = other.log.copy(), other.segmenter.copy()
        self.cache, self.sight = other.cache.copy(), other.sight.copy()
        self.sent, self.paid_last, self.ended = other.sent, other.paid_last, other.ended
        self.metered.sizes = {**other.metered.sizes}
        self.position, self.rows = other.position, [*other.rows]

    async def through(self, watch: Callable[[SentCall], None] | None = None) -> None:
        """Append the recording's events; before each model call, render and price the context."""
        if self.measured.past is not None:
            self.position = await self._past()
        while (sent := await self.next_call()) is not None:
            if watch is not None:
                watch(sent)

    async def next_call(self) -> SentCall | None:
        """Go on behind the next model call; return what was sent for it, None at the recording's end."""
        events, sent = self.measured.recording.events, None
        while sent is None and self.position < len(events):
            position, self.position = self.position, self.position + 1
            if (call := self._calls.get(position)) is not None:
                sent = await self._called(call)
            event = events[position]
            block = block_of(event)
            if block is not None:
                self._append(block, event.at, position)
            elif not isinstance(event.payload, ImportedCompaction | ImportedHide):
                self.log.note(event.payload, event.at)
        return sent

    async def _called(self, call: ReplayedCall) -> SentCall:
        sent = await self._send(call)
        row = self._row(sent, self._answers[call.position])
        self.rows.append(row if sent.shown is None else await self._with_facts(row, call, sent.shown))
        if not self._reported:
            self.log.note(ModelCalled(started_at=call.start), call.end)
        return sent

    async def _past(self) -> int:
        """Take the log's past as it was, and leave the cache as its last call left it; return where the replay begins.

        Nothing of it is in the result: those calls were paid for before.
        """
        past, calls = self.measured.past, self._calls
        if past is None:
            return 0
        sizes = iter(self.measured.tokens)
        last = max((position for position in calls if position < past.position), default=None)
        position = 0
        for event in past.events[1:]:  # the log of a replay begins with an opening of its own
            payload, counter = event.payload, self.counter.name
            if position == last and isinstance(payload, BlockAppended):
                await self._warm(calls[position])
                last = None
            if is_in_recording(payload):
                position, tokens = position + 1, next(sizes)
                if isinstance(payload, BlockAppended | CompactionCompleted):
                    payload = payload.model_copy(update={"tokens": tokens, "counter": counter})
            if isinstance(payload, BlockAppended):
                self.metered.sizes[payload.block.path] = payload.tokens
            self.log.past(payload, event.at)
            self.sight.take(self.log.fold)
            if self.facts is not None:
                self.facts.decided([payload])
                if isinstance(payload, BlockAppended):
                    self._take_fact(position - 1, payload.block)
        self.calls_before = sum(position < past.position for position in calls)
        self.decided = True
        return past.position

    async def _warm(self, call: ReplayedCall) -> None:
        """Charge a call of the past to the cache: the context as it is, without any decision of the policy."""
        policy = self.compactor.policy
        idle = policy.model_copy(update={"trigger": Never(), "steps": (), "hiding": None, "max_tokens": UNLIMITED})
        context = await self.renderer.render(
            self.log,
            replace(self.compactor, policy=idle),
            system=FIXED_PART,
            tools=(),
            ephemeral=(),
            now=call.start,
            at=call.start,
        )
        self._paid(call, shown_by(context))
        self.ended = call.end.timestamp()

    def _append(self, block: Block, at: datetime, position: int) -> None:
        tokens = self.measured.tokens[position]
        addressed = self.log.append(position, block, at, tokens, self.counter.name)
        self.metered.sizes[addressed.path] = tokens
        self.sight.take(self.log.fold)
        self._take_fact(position, addressed)

    def _take_fact(self, position: int, block: Block) -> None:
        if self.facts is not None and self.judge is not None:
            self.facts.take(position, self.log.fold.version, block)
            self.judge.take(position, self.log.fold.version, block)

    def _judged(self, sent: SentCall, compactions: Sequence[CompactionCompleted]) -> dict[str, Any]:
        """Return what the new summaries that a call is sent are worth, as fields of its row.

        A summary that the next one took further before anything was sent is shown to nobody.
        """
        judge = self.judge
        shown = () if sent.shown is None else sent.shown.window.summaries
        new = [done for done in compactions if any(done.block.path == one.block.path for one in shown)]
        judged = [] if judge is None else [judge.judge(done, sent.call.position)._asdict() for done in new]
        return {name: sum(one[name] for one in judged) for name in Judged._fields}

    async def _send(self, call: ReplayedCall) -> SentCall:
        window, policy, known = self.log.fold.window, self.compactor.policy, self.renderer.known
        # Before the costs: of a result that is to be abridged, the render would have to count them again.
        if may_decide(window, policy, call.start) or known.owed.is_due(window):
            return await self._render(call)
        costs = known.accounts.costs(window.items, policy)
        if is_full(window, self.fixed_part.tokens + costs.total, self.line):
            return await self._render(call)
        shown = self._undecided(window, policy, costs.total - costs.unsent)
        self.log.record(shown, call.start)
        return SentCall(call, shown)

    def _undecided(self, window: Window, policy: Policy, messages: int) -> ShownContext:
        renderer, fixed = self.renderer, self.fixed_part
        projected = renderer.undecided(window, policy)
        context = partial(renderer.undecided_context, projected, window, policy, fixed, system=FIXED_PART)
        return ShownContext(window, projected.entries, projected.cache_points, messages, fixed, context)

    async def _render(self, call: ReplayedCall) -> SentCall:
        """Render as the engine does, with every decision that is due."""
        try:
            context = await self.renderer.render(
                self.log,
                self.compactor,
                system=FIXED_PART,
                tools=(),
                ephemeral=(),
                now=call.start,
                at=call.start,
                sent=self.sent,
            )
        except BudgetError as error:
            return SentCall(call, None, type(error).__name__)
        shown = shown_by(context)
        self.log.record(shown, call.start)
        return SentCall(call, shown)

    def _row(self, sent: SentCall, answer: Sequence[ToolCall]) -> ReplayedCallRow:
        """Return the row of a call: the decisions before it, and its cost."""
        call, shown = sent.call, sent.shown
        start, end = call.start.timestamp(), call.end.timestamp()
        idle, self.ended = 0.0 if self.ended is None else start - self.ended, end
        fields: dict[str, Any] = {
            "number": self.calls_before + len(self.rows) + 1,
            "at": call.start,
            "idle_seconds": idle,
            "model": call.model,
            "recorded": call.context,
            "refused": sent.refused,
        }
        payloads, spent = self.log.decided(), self.metered.spent()
        if payloads or spent is not None:
            fields |= self._decisions(sent, payloads, spent or Spent())
        if shown is None:
            return call_row(fields)
        seen = self.sight.look(shown, self.log.fold, answer, decided=self.decided)
        over_limit, self.decided = shown.sent > self.limit, False
        return call_row({**fields, **self._paid(call, shown), **seen._asdict(), "over_limit": over_limit})

    def _decisions(self, sent: SentCall, payloads: Sequence[Payload], spent: Spent) -> dict[str, Any]:
        """Note the decisions before a call; return what they did and what summaries cost, as fields of its row."""
        decided = _decided(payloads)
        if self.facts is not None:
            self.facts.decided(payloads)
        self.changes |= decided.changes
        self.decided = self.decided or bool(payloads)
        price = self.price_of(sent.call.model)
        cached, asked = self._asked_in_cache(spent.questions, sent.call)
        units = price.units(uncached=spent.read, output=spent.written) + asked
        return {
            "hidden": decided.hidden,
            "compactions": len(decided.compactions),
            "splits": sum(done.split_turn_id is not None for done in decided.compactions),
            "covered_tokens": sum(done.compacted_tokens for done in decided.compactions),
            "summary_read": spent.read,
            "summary_cached": cached,
            "summary_written": spent.written,
            "summary_units": units,
            "summary_money": price.money(units),
            **self._judged(sent, decided.compactions),
        }

    async def _with_facts(self, row: ReplayedCallRow, call: ReplayedCall, shown: ShownContext) -> ReplayedCallRow:
        """Return a row with where the facts are that the answer needs, and what fetching the others costs.

        A read is a round of its own: the prefix is read from the cache once more, the answer written behind it.
        """
        if self.facts is None:
            return row
        looked = await self.facts.look(call.position, shown.context())
        price, long = self.price_of(call.model), self.kept_long == "everything"
        units = sum(
            price.units(read=row.tokens, written=tokens, written_long=tokens if long else 0, output=ROUND_OUTPUT)
            for tokens in looked.reads
        )
        fetched = {"reads": len(looked.reads), "fetch_units": units, "fetch_money": price.money(units)}
        return row.model_copy(update={**counted(looked.found), **fetched})

    def _paid(self, call: ReplayedCall, shown: ShownContext) -> dict[str, Any]:
        """Return the cost of a context, as fields of its row."""
        segments, markers = self.segmenter.segments(shown)
        changes, self.changes = frozenset(self.changes), set()
        start, end = call.start.timestamp(), call.end.timestamp()
        long = {"nothing": 0, "fixed_part": 1, "everything": len(markers)}[self.kept_long]
        known = self._left_by_others(call, compacted=bool(changes))
        request = CacheRequest(start, end, call.model, segments, 0, SYSTEM, markers, long, changes, known)
        charge = self.cache.call(request)
        self.paid_last = request
        self.sent = partial(_as_sent, shown, call.model, charge)
        return {**charge._asdict(), "tokens": charge.read + charge.written + charge.uncached}

    def _asked_in_cache(self, questions: Sequence[int], call: ReplayedCall) -> tuple[int, float]:
        """Charge the questions that were asked behind the last context; return the tokens read so, and the cost.

        The context is read from the cache as far as it is there, and so stays in it; the question is written nowhere.
        """
        read, units, last = 0, 0.0, self.paid_last
        for number, tokens in enumerate(questions):
            if last is None:
                raise ValueError("a question behind no context")
            question = Segment(hash(("question", call.position, number)), tokens)
            start = call.start.timestamp()
            asked = last._replace(start=start, end=start, segments=(*last.segments, question), known=0)
            charge = self.cache.call(asked)
            read, units = read + charge.read, units + charge.units
        return read, units

    def _left_by_others(self, call: ReplayedCall, *, compacted: bool) -> int:
        """Return how many tokens in front a conversation's first call read, which others had left in the cache.

        Where the fixed part is replayed smaller than it is, so is what was read of it. Behind a rewritten beginning
        the fixed part alone is what they had left.
        """
        if call is not self.measured.calls[0] or call.usage is None:
            return 0
        read = call.usage.cache_read_tokens
        of_fixed = min(read, self.measured.fixed)
        shown = of_fixed * self.fixed // max(1, self.measured.fixed)
        return shown if compacted else shown + read - of_fixed


def _as_sent(shown: ShownContext, model: str, charge: Charge) -> SentContext:
    """Return a context as the newest model call was sent it, with what the cache would have reported."""
    usage = Usage(input_tokens=charge.uncached, cache_read_tokens=charge.read, cache_write_5m_tokens=charge.written)
    return SentContext(shown.context(), CallRequest(wire="anthropic", encoder=0, model=model, sha256=""), usage)


def _answers(events: Sequence[RecordedEvent], calls: Mapping[int, ReplayedCall]) -> dict[int, list[ToolCall]]:
    """Return the tool calls of each response, by the position of its call."""
    found: dict[int, list[ToolCall]] = {position: [] for position in calls}
    position_of: dict[str, int] = {}
    for position, event in enumerate(events):
        block = block_of(event)
        if position in calls and block is not None:
            position_of[block.response_id or event.key] = position
        if isinstance(block, ToolCall) and (asked := position_of.get(block.response_id or event.key)) is not None:
            found[asked].append(block)
    return found
