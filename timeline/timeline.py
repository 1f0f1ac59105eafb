"""`Timeline`: the imperative shell around the pure core. It does the I/O, reads the clock and holds nothing else."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar

from timeline import checks
from timeline.answers import SUMMARY_TIMEOUT
from timeline.audit.replay import find_context, rebuild_contexts, recorded_contexts
from timeline.audit.verify import verify
from timeline.blocks import Block, RangeSummary, parse_block
from timeline.checks import moment
from timeline.engine.equipment import Equipment, policy_in_force
from timeline.engine.recording import context_events, overflow_event
from timeline.engine.retry import call_with_retry, compact_to
from timeline.errors import (
    BudgetImpossible,
    ContextOverflow,
    ContextRefused,
    ConversationNotFound,
    InvalidBlock,
    VersionConflict,
)
from timeline.events import ConversationOpened, NewEvent, ParentLink, event_id
from timeline.lifecycle.observer import Observer
from timeline.log.dry_run import DryLog
from timeline.log.history import fold_past
from timeline.log.stored import StoredLog, free_id
from timeline.looping import Looping
from timeline.policy.ours import balanced
from timeline.ports import Expected, Hooks, StoppedClock, SystemClock
from timeline.projection.diff import diff
from timeline.view import TimelineView
from timeline.wire.refusals import context_limit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from pydantic import JsonValue

    from timeline.audit.verify import VerifyReport
    from timeline.events import Payload
    from timeline.log.protocol import Draft, Log
    from timeline.policy.model import Policy
    from timeline.ports import Clock, EventStore, Summarizer, TokenCounter
    from timeline.projection.context import RenderedContext
    from timeline.projection.diff import ContextDiff
    from timeline.wire.refusals import ContextLimit

T = TypeVar("T")

Record: TypeAlias = Literal["full", "hash"] | bool
"""How a render is recorded: in full, with hashes in place of prompt, tools and tail, or (False) not at all."""


class Timeline(Looping):
    """One conversation of a store. Open it with `Timeline.open`; several may be open on one store.

    Attributes:
        id: of the conversation.
    """

    @classmethod
    async def open(
        cls,
        store: EventStore,
        conversation: str,
        *,
        policy: Policy | None = None,
        summarizer: Summarizer | None = None,
        hooks: Hooks | None = None,
        clock: Clock | None = None,
        counter: TokenCounter | None = None,
        observer: Observer | None = None,
        summary_timeout: float = SUMMARY_TIMEOUT,
        title: str = "",
        parent: ParentLink | None = None,
        source: str = "",
        now: datetime | None = None,
        create: bool = True,
    ) -> Self:
        """Open a conversation, or begin it.

        Args:
            store: where it lives; the caller closes it.
            conversation: its id.
            policy: the one that `use_policy` put in force here unless given, or else `policies.balanced()`.
            summarizer: asked first; the extractive one answers when it fails, and when none is given.
            hooks: functions of the application around compactions.
            clock: where ``now`` comes from when a call gives none.
            counter: counts tokens; the policy's own unless given.
            observer: watches renders and compactions, for traces and metrics.
            summary_timeout: seconds that ``summarizer`` has for one request. At its end the request is cancelled, and
                the next of the chain answers; the default is 10 seconds less than the lease of a compaction.
            title: of a new conversation.
            parent: where a new conversation comes from.
            source: the format that a new conversation was recorded in.
            now: the moment of a new conversation's first event.
            create: begin the conversation when the store does not hold it.

        Raises:
            ConversationNotFound: ``create`` is False and there is no such conversation.
            InvalidPolicy: none is given, and the one in force cannot be read.
            InvalidArgument: one of them is something else than it should be, such as a path instead of a store.
            StoreError: the store cannot be read or written.
        """
        checks.parts(store, policy, summarizer, hooks, counter)
        if observer is not None:
            checks.of_kind("observer", observer, Observer, "is an Observer, such as Telemetry()")
        for name, told in (("conversation", conversation), ("title", title), ("source", source)):
            checks.text(name, told)
        if parent is not None:
            checks.of_kind("parent", parent, ParentLink, "is a ParentLink(conversation=…)")
        checks.seconds("summary_timeout", summary_timeout)
        clock = clock or SystemClock()
        try:
            log = await StoredLog.load(store, conversation)
        except ConversationNotFound:
            if not create:
                raise
            opened = ConversationOpened(title=title, parent=parent, source=source)
            log = await _begun(store, conversation, opened, moment(now, clock))
        policy = policy or await policy_in_force(store, log.fold.window.policy) or balanced()
        equipment = Equipment(summarizer, hooks or Hooks(), counter, observer or Observer(), summary_timeout)
        return cls(log, store, clock, equipment, policy)

    async def append(self, *blocks: Block | dict[str, Any], now: datetime | None = None) -> list[Block]:
        """Append blocks in one transaction; return them as stored, with turn id, path and time filled in.

        Each block's tokens are counted here, once in its life.

        Raises:
            InvalidBlock: a block does not hold; nothing was written.
            PathTaken: a block brings a path that is in use; nothing was written.
            StoreError: the store refused; nothing was written.
        """
        at = moment(now, self._clock)
        checked = [parse_block(block) for block in blocks]
        if any(type(block) is RangeSummary for block in checked):
            raise InvalidBlock(
                "type", "a conv.range.summary is what a compaction makes; call compact(), or append a note"
            )
        return await self._append_new(checked, at)

    async def extend(self, drafts: Sequence[Draft]) -> list[Block]:
        """Append blocks and other events together, with ids of their own: for imports and replays.

        Raises:
            StoreError: the store refused; nothing was written.
        """
        return await self._log.append(drafts, counter=self.counter.name)

    async def decide(
        self, payloads: Sequence[Payload], *, at: datetime, ids: Sequence[UUID], expected: int | None = None
    ) -> None:
        """Append decisions of a recorded client, such as its compactions, and take a snapshot behind them.

        Raises:
            VersionConflict: the log is not at ``expected``.
        """
        await self._log.commit(payloads, at=at, ids=ids, expected=expected, snapshot=True)

    async def render(
        self,
        *,
        system: JsonValue = None,
        tools: Sequence[JsonValue] = (),
        ephemeral: Sequence[str] = (),
        now: datetime | None = None,
        record: Record = "full",
    ) -> RenderedContext:
        """Return what the model should see now, compacting first when the context is above the trigger.

        Args:
            system: the system prompt, a text or the provider's content parts; sent as it is.
            tools: the provider's tool schemas; sent as they are.
            ephemeral: texts for an uncached tail that is kept nowhere; those of `inject` follow them.
            now: the time of what is decided and recorded.
            record: ``"full"`` (or True) records the context so that it can be rebuilt byte for byte; ``"hash"`` keeps
                only hashes of prompt, tools and tail; False appends nothing, calls no hook and gives the same bytes.

        Raises:
            ContextOverflow: the context is above the limit and cannot be made smaller.
            BudgetImpossible: system prompt, tools and reserves leave no room at all.
            InvalidArgument: one of the arguments is something else, or has no form in JSON.
            StoreError: the store refused.
        """
        checks.choice("record", record, ("full", "hash", True, False))
        checks.texts("ephemeral", ephemeral)
        now = moment(now, self._clock)
        await self._catch_up()
        log: Log = self._log if record else self._log.dry()
        compactor = self._compactor if record else self._compactor.dry()
        injected = self._injected
        tail = (*ephemeral, *injected)
        with compactor.observer.rendering(self.id) as tell:
            try:
                context = await self._renderer.render(
                    log, compactor, system=system, tools=tools, ephemeral=tail, now=now
                )
            except (ContextOverflow, BudgetImpossible) as refusal:
                if record:
                    await self._tell_overflow(refusal, now)
                raise
            how: Literal["full", "hash"] = "hash" if record == "hash" else "full"
            known = log.fold.window.rendered
            if record and (
                known is None or known.fingerprint != context.fingerprint or (known.record, how) == ("hash", "full")
            ):
                payloads, values = context_events(context, known, how)
                await log.commit(payloads, at=now, values=values)
            tell(context)
        if record and self._injected[: len(injected)] == injected:  # else a render at the same time said them
            self._injected = self._injected[len(injected) :]
        return context

    async def _tell_overflow(self, refusal: ContextOverflow | BudgetImpossible, now: datetime) -> None:
        """Record a refused render for whoever follows the log, unless it is what the log ends with."""
        told = overflow_event(refusal)
        newest = await self._store.read_versions(self.id, [self.version])
        if [event.payload for event in newest] != [told]:
            await self._log.commit([told], at=now)

    async def retry_with_compaction(
        self,
        call: Callable[[RenderedContext], Awaitable[T]],
        *,
        system: JsonValue = None,
        tools: Sequence[JsonValue] = (),
        ephemeral: Sequence[str] = (),
        now: datetime | None = None,
        record: Literal["full", "hash"] = "full",
        refused: Callable[[BaseException], ContextLimit | None] = context_limit,
    ) -> T:
        """Render and call the model; when it refuses the context for its size, compact and call once more.

        The context is compacted to 0.7 of what the model takes, or where it does not say, of what it refused; in our
        tokens, told by how much it counted. Any other error goes on to the caller.

        Args:
            call: sends a context to the model and returns its reply.
            system: the system prompt, as for `render`.
            tools: the provider's tool schemas.
            ephemeral: texts for an uncached tail that is kept nowhere; those of `inject` follow them, both times.
            now: the time of what is decided and recorded.
            record: how both contexts are recorded.
            refused: recognises the provider's error; knows Anthropic's and OpenAI's, and servers like them.

        Raises:
            ContextRefused: the smaller context was refused too, or none could be made.
            ContextOverflow, BudgetImpossible, InvalidArgument: as `render`.
        """
        checks.choice("record", record, ("full", "hash"))
        checks.texts("ephemeral", ephemeral)
        injected = self._injected
        injected_again = iter(((), injected))  # the first render uses them up by itself

        async def render() -> RenderedContext:
            tail = (*ephemeral, *next(injected_again))
            return await self.render(system=system, tools=tools, ephemeral=tail, now=now, record=record)

        async def shrink(context: RenderedContext, target: int) -> list[str]:
            return await compact_to(self._compactor, self._log, context.account.fixed, target, moment(now, self._clock))

        try:
            return await call_with_retry(call, render=render, shrink=shrink, refused=refused)
        except BaseException:
            if self._injected[: len(injected)] != injected:  # nobody heard them: the next render says them
                self._injected = (*injected, *self._injected)
            raise

    async def after_refusal(
        self,
        context: RenderedContext,
        error: BaseException,
        *,
        earlier: RenderedContext | None = None,
        now: datetime | None = None,
    ) -> RenderedContext | None:
        """Return a smaller context in the place of one that the model refused for its size; None for any other error.

        This is `retry_with_compaction` for a loop whose calls are made by somebody else, such as a framework. System
        prompt, tools and ephemeral tail are those of the refused context.

        Args:
            context: the refused one.
            error: what the call raised.
            earlier: the context in whose place the refused one came: there is no third.
            now: the time of what is decided and recorded.

        Raises:
            ContextRefused: no smaller context could be made, or it was the second one that was refused.
            ContextOverflow, BudgetImpossible: as `render`.
            StoreError: the store refused.
        """
        refusal = context_limit(error)
        if refusal is None:
            return None
        sent = [one.account.sent for one in (earlier, context) if one is not None]
        target = refusal.target(sent[0])
        if earlier is not None:
            raise ContextRefused(sent=sent, limit=refusal.limit, target=target, tried=()) from error
        now = moment(now, self._clock)
        tried = await compact_to(self._compactor, self._log, context.account.fixed, target, now)
        told = context.neutral
        smaller = await self.render(
            system=told.system, tools=told.tools, ephemeral=[entry.text for entry in told.ephemeral], now=now
        )
        if smaller.account.sent >= sent[0]:
            raise ContextRefused(sent=sent, limit=refusal.limit, target=target, tried=tried) from error
        return smaller

    async def at(self, version: int) -> TimelineView:
        """Return the conversation as it was at a version, read-only; its clock stands at the time of that version.

        The cost is that of reading the log up to there.

        Raises:
            HistoryUnavailable: the log does not hold that version.
            InvalidArgument: it is no version.
        """
        checks.version_number("version", version)
        fold = await fold_past(self._store, self.id, version)
        [event] = await self._store.read_versions(self.id, [version])
        clock = StoppedClock(event.at)
        policy = await policy_in_force(self._store, fold.window.policy) or self.policy
        return TimelineView(DryLog(self._store, fold), self._store, self._equipment.under(policy), clock)

    async def fork(
        self, *, at: int | None = None, conversation: str | None = None, title: str = "", now: datetime | None = None
    ) -> Self:
        """Begin a conversation that goes on from this one at a version, and shares its past.

        The fork's own events continue the version numbers, and its past is read from this conversation: paths and
        summaries stay valid, and nothing that happens here later shows there.

        Args:
            at: the last version that both share; the newest unless given.
            conversation: id of the fork; ``<id>.fork-<version>`` unless given.
            title: of the fork.
            now: its time.

        Raises:
            HistoryUnavailable: the log does not hold that version.
            VersionConflict: there is a conversation of that id.
            InvalidArgument: ``at`` is no version, or the id no text.
        """
        checks.text("title", title)
        if at is not None:
            checks.version_number("at", at)
        if conversation is not None:
            checks.text("conversation", conversation)
        await self._log.catch_up()
        version = self.version if at is None else at
        fold = await fold_past(self._store, self.id, version)
        link = ParentLink(conversation=self.id, version=version, relation="fork")
        opened, moment_ = ConversationOpened(title=title, parent=link), moment(now, self._clock)
        while True:
            id_ = conversation or await free_id(self._store, f"{self.id}.fork-{version}")
            try:
                log = await StoredLog.begin_fork(self._store, fold, id_, opened, moment_)
            except VersionConflict:
                if conversation is not None:
                    raise
                continue  # somebody else took the free id just now
            return type(self)(log, self._store, self._clock, self._equipment, self.policy)

    def _holds(self, version: int) -> bool:
        del version  # what another writer appended since is in view too
        return True

    async def verify(self) -> VerifyReport:
        """Check every invariant over the whole log, and rebuild every recorded context."""
        return await verify(self._store, self.id)

    async def diff(
        self, before: str | int = "last~1", after: str | int = "last", *, wires: Sequence[str] = ("anthropic",)
    ) -> ContextDiff:
        """Compare two recorded contexts: what entered, left and changed, and what broke the provider's cache.

        Args:
            before: the version of its ``context.rendered`` event, ``"#3"`` (the third one), ``"last"``, ``"last~1"``.
            after: the same.
            wires: wire formats whose prefixes are compared beside the neutral one.

        Raises:
            ContextNotFound: there is no recorded context of one of the names.
            ContextUnavailable: one of them cannot be built again.
            InvalidPolicy: there is no such wire format.
            InvalidArgument: ``wires`` is no list.
        """
        checks.texts("wires", wires)
        recorded = await recorded_contexts(self._store, self.id)
        chosen = [find_context(recorded, str(name)) for name in (before, after)]
        return diff(*await rebuild_contexts(self._store, self.id, chosen), wires=wires)


async def _begun(store: EventStore, conversation: str, opened: ConversationOpened, at: datetime) -> StoredLog:
    """Begin a conversation; where somebody else began it first, it is theirs that is opened."""
    event = NewEvent(id=event_id(at), at=at, payload=opened)
    with suppress(VersionConflict):
        await store.append(conversation, [event], expected=Expected.NO_STREAM)
    return await StoredLog.load(store, conversation)
