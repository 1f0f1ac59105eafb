"""`Timeline`: the conversation that an application works with: append to it, render it, compact it, look back.

Its methods check their arguments, read the clock and hand over: `timeline.engine` renders and compacts,
`timeline.agent` serves an agent's loop, and the pure functions of `timeline.planning` make the decisions. What only
looks back, in `timeline.audit`, is imported late, by the method that needs it, so that a first render comes early.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, TypeVar

from timeline import checks
from timeline.agent import stages
from timeline.agent.calibration import Calibration, calibration_of
from timeline.agent.going_back import go_back
from timeline.agent.length_stop import CUT_OFF, LengthStop, check_stop, ends_half_said, full_window
from timeline.agent.list_follower import ListFollower
from timeline.agent.measured_calls import MeasuredCalls
from timeline.agent.messages import QUESTION, injected_pair
from timeline.agent.recall import RecallTool
from timeline.agent.recording import answering, append_messages, model_called, record_failure, record_response
from timeline.agent.state import CompactionState, compaction_state, still_used, tools_in_use
from timeline.agent.step_hook import StepHook
from timeline.agent.streaming import StreamRecording
from timeline.agent.whole_history import whole_messages
from timeline.blocks import Block, CustomBlock, RangeSummary, parse_block, refuse_unknown_type
from timeline.checks import given, moment
from timeline.engine.choosing import Chosen, choose_policy, first_policy, with_policy
from timeline.engine.conversation import Conversation, ConversationView
from timeline.engine.due_decisions import take_due_decisions
from timeline.engine.equipment import Equipment, policy_in_force
from timeline.engine.hiding import CompactionProgress, hide_by_step
from timeline.engine.policy_steps import compact_now
from timeline.engine.pressure import Pressure
from timeline.engine.recording import record_context, record_late, record_overflow
from timeline.engine.renderer import prepared
from timeline.engine.retry import (
    call_with_retry,
    compact_for_full_window,
    may_give_way,
    render_smaller,
    warn_of_limit,
)
from timeline.engine.warm import not_sent
from timeline.errors import (
    BlockProtected,
    BudgetImpossible,
    ContextOverflow,
    ContextRefused,
    ConversationNotFound,
    HistoryUnavailable,
    InvalidArgument,
    InvalidBlock,
    UndoUnavailable,
)
from timeline.events import ConversationOpened, ModelCalled, ParentLink
from timeline.events.other_payloads import RetentionSet
from timeline.lifecycle import INTERVAL, follow
from timeline.lifecycle.observer import Observer
from timeline.log.blocks_by_name import find_block, find_readable
from timeline.log.bringing_back import carried_out
from timeline.log.dry_run import DryRunLog
from timeline.log.history import compactions_in_force, fold_past, versions_to_revert
from timeline.log.stored import StoredLog, begin_free
from timeline.log.uncancelled import until_the_end
from timeline.log.undisturbed import undisturbed
from timeline.planning.account import FixedPart
from timeline.planning.manual import HideMode, hide, pin, reveal, unpin
from timeline.planning.tail import tail_from
from timeline.policy.model import Hiding, Policy
from timeline.policy.steps import ClearToolOutputs
from timeline.ports import SUMMARY_TIMEOUT, Hooks, StoppedClock, SystemClock
from timeline.projection.context import RenderedContext
from timeline.retention.setting import RETENTIONS, kept
from timeline.view import TimelineView
from timeline.wire import MESSAGES
from timeline.wire.foreign import with_read_arguments
from timeline.wire.refusals import context_limit
from timeline.wire.refused_parts import refused_parts
from timeline.wire.responses import calls_cut_off, read_response

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime
    from uuid import UUID

    from timeline.agent.messages import MessageWire
    from timeline.agent.recall import RecallWire
    from timeline.audit.calls import Call
    from timeline.audit.verify import VerifyReport
    from timeline.audit.why import Why
    from timeline.events import BlockRedacted, Payload
    from timeline.events.other_payloads import Retention
    from timeline.fold.stages import Stage
    from timeline.fold.window import Item, Window
    from timeline.frozen import JsonInput
    from timeline.lifecycle.events import LifecycleEvent
    from timeline.log.blocks_by_name import FoundBlock
    from timeline.log.protocol import Draft, Log
    from timeline.planning.account import Account
    from timeline.ports import Clock, ErasureReport, EventStore, Summarizer, TokenCounter
    from timeline.projection.diff import ContextDiff
    from timeline.projection.reports import TakenDecision
    from timeline.projection.summary_diff import SummaryDiff
    from timeline.retention.setting import Kept
    from timeline.usage import Usage
    from timeline.wire.refusals import ContextLimit
    from timeline.wire.request import Request
    from timeline.wire.responses import ModelResponse

T = TypeVar("T")
Record: TypeAlias = Literal["full", "hash", "overlapped"] | bool
"""How to record a render: in full, with hashes in place of prompt, tools and tail, in full while the model is called,
or (False) not at all."""
_MOST_RECALLED: Final = 4_000
"""The most tokens of an answer of the recall tool, unless the policy's limit is small."""


class Timeline(TimelineView):
    """One conversation of a store. Open it with `Timeline.open`; one store serves many open timelines.

    Every method raises `InvalidArgument` for an argument of the wrong type, and `StoreError` if the store cannot be
    read or refuses; nothing was written then, unless the error is `AppendUncertain`. Each method lists what else it
    raises. ``now`` is the time of what a method decides and appends; by default the clock gives it.

    Attributes:
        id: the conversation's id.

    Example:
        ```python
        from timeline import Timeline, open_store

        store = await open_store("memory://")
        timeline = await Timeline.open(store, "cards")
        await timeline.append_messages([{"role": "user", "content": "Build a flashcard app."}])
        context = await timeline.render(system="You are a coding agent.")
        print(context.to_anthropic())  # the request: {"system": …, "messages": […]}
        ```
    """

    _conversation: Conversation
    _log: StoredLog
    _injected: tuple[str, ...] = ()
    """Injected texts that the next recorded render sends in its tail."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._calls = MeasuredCalls(conversation.clock)

    # Opening, and the policy in force

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
            store: holds the conversation; the caller closes it.
            conversation: id of the conversation.
            policy: when and how to compact; by default the conversation's own. A new conversation records the policy
                given here, or else `policies.balanced()`. If a conversation has another policy already, the one given
                here holds for this handle alone: the log records it as an override, and a warning on the logger
                ``timeline`` names both.
            summarizer: writes the summaries. If it fails, or if none is given, the extractive summarizer writes them.
            hooks: functions of the application to call around compactions.
            clock: gives the time of every call without ``now``, and of each event that such a call appends; by default
                the system's clock. A clock that also has ``monotonic()`` measures durations.
            counter: counts tokens; by default the policy's counter.
            observer: watches renders and compactions, for traces and metrics.
            summary_timeout: seconds that ``summarizer`` has for one request. After them the request is cancelled, and
                the next summarizer of the chain answers. The default is 10 seconds less than the lease of a compaction.
            title: title of a new conversation.
            parent: the conversation that a new one comes from.
            source: format of the recording that a new conversation is imported from. Such a conversation records no
                policy unless one is given here, since nobody chose one for it.
            now: time of a new conversation's first event.
            create: begin the conversation if the store does not hold it.

        Raises:
            ConversationNotFound: ``create`` is False, and the store has no such conversation.
            InvalidPolicy: no policy is given, and the one in force cannot be read.

        Example:
            ```python
            from timeline import Timeline, open_store, policies

            async with open_store("memory://") as store:
                policy = policies.balanced(model="claude-opus-5")
                timeline = await Timeline.open(store, "cards", policy=policy, title="A flashcard app")
                assert (timeline.id, timeline.version) == ("cards", 1)
            ```
        """
        checks.awaited_store(store)
        checks.parts(policy, summarizer, hooks, counter)
        if clock is not None:
            checks.able("clock", clock, "now", "must have a method now, as timeline.ports.SystemClock() has")
        if observer is not None:
            checks.of_kind("observer", observer, Observer, "must be an Observer, such as Telemetry()")
        for name, value in (("conversation", conversation), ("title", title), ("source", source)):
            checks.text(name, value)
        if parent is not None:
            checks.of_kind("parent", parent, ParentLink, "must be a ParentLink(conversation=…)")
        checks.seconds("summary_timeout", summary_timeout)
        clock = clock or SystemClock()
        at, imported = given(now), bool(source)
        equipment = Equipment(summarizer, hooks or Hooks(), counter, observer or Observer(), summary_timeout, clock)
        try:
            log = await StoredLog.load(store, conversation, clock)
        except ConversationNotFound:
            if not create:
                raise
            opened = ConversationOpened(title=equipment.screened_text(title), parent=parent, source=source)
            opened, values = with_policy(opened, first_policy(policy, imported=imported))
            log = await StoredLog.begin(store, conversation, clock, opened, values=values, at=moment(now, clock))
        chosen = await choose_policy(store, log, policy, at, imported=imported)
        opened_conversation = Conversation(store, log, clock, equipment, chosen)
        await opened_conversation.settle_counts()
        return cls(opened_conversation)

    async def use_policy(self, policy: Policy, *, now: datetime | None = None) -> None:
        """Put a policy in force from now on: here, and for everyone who works under the conversation's policy.

        Other handles follow at their next render or decision, unless they were opened with a policy of their own. The
        new policy also tries automatic compactions again that an undo held back, or that were refused.

        Raises:
            StoreError: the store refused; the old policy stays in force.
        """
        checks.of_kind("policy", policy, Policy, checks.A_POLICY)
        await self._conversation.use_policy(policy, given(now))

    async def retention(self) -> Kept:
        """Return how much is kept, by the conversation's own setting or the store's, and whether a hold is on it."""
        return await kept(self._store, self.id)

    async def set_retention(self, retention: Retention | None, *, now: datetime | None = None) -> None:
        """Set how much of the conversation is kept; a legal hold stays as it is.

        This removes nothing; `timeline scavenge`, or `timeline.retention.scavenge`, does, when you run it.

        Args:
            retention: ``"keep"`` keeps everything; ``"window"`` keeps what lies from the window's start on; None takes
                the store's setting, which is ``"keep"`` unless `store.set_retention` changed it.
            now: time of the change.
        """
        if retention is not None:
            checks.choice("retention", retention, RETENTIONS)
        await self._keep(given(now), own=retention)

    async def set_legal_hold(self, *, on: bool, now: datetime | None = None) -> None:
        """Put a legal hold on the conversation, or take it off; while it is on, nothing is removed."""
        checks.choice("on", on, (True, False))
        await self._keep(given(now), legal_hold=on)

    async def _keep(self, at: datetime | None, **changed: Any) -> None:
        known = await self.retention()
        if (wanted := known._replace(**changed)) != known:
            await self._log.commit([RetentionSet(retention=wanted.own, legal_hold=wanted.legal_hold)], at=at)

    async def catch_up(self) -> None:
        """Read what other writers have appended since. Renders and decisions do this by themselves."""
        await self._conversation.catch_up()

    # Looking at it: its past, its proof, its state

    async def at(self, version: int) -> TimelineView:
        """Return the conversation as it was at a version, read-only, with its clock stopped at that version's time.

        The view has the policy that was in force then, unless this handle has one of its own.

        Raises:
            HistoryUnavailable: the log does not hold that version.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            past = await timeline.at(1)
            assert (len(past.window.items), len(timeline.window.items)) == (0, 1)
            ```
        """
        checks.version_number("version", version)
        fold = await undisturbed(self._store, partial(fold_past, self._store, self.id, version), self.id)
        events = await self._store.read_versions(self.id, [version])
        if not events:  # it went while the past was folded
            info = await self._store.info(self.id)
            raise HistoryUnavailable(self.id, version, info.first_version, info.version, scavenged=True)
        [event] = events
        clock = StoppedClock(event.at)
        past = None if self._conversation.overrides else await policy_in_force(self._store, fold.window)
        policy = past or self.policy
        log = DryRunLog(self._store, fold, event.at)
        return TimelineView(ConversationView(self._store, log, clock, self._conversation.equipment, policy))

    async def fork(
        self,
        *,
        at: int | None = None,
        call: int | None = None,
        policy: Policy | None = None,
        conversation: str | None = None,
        title: str = "",
        now: datetime | None = None,
    ) -> Self:
        """Begin a new conversation that shares this one's past up to a version and goes on by itself.

        The fork continues the version numbers and reads its past from this conversation, so paths and summaries stay
        valid. It never shows what happens here later, nor a block that was redacted here before the fork.

        Args:
            at: the last shared version; the newest by default.
            call: number of a model call, instead of ``at``: the fork shares all that the call answers, and goes on as
                if the call had not been made. It leaves out what was decided for that call, and decides again.
            policy: put in force right after the fork began, as `use_policy` does. By default the fork has the policy
                that was in force at the shared version, or else this handle's.
            conversation: id of the fork; ``<id>.fork-<version>`` by default.
            title: title of the fork.
            now: time of its first event.

        Raises:
            HistoryUnavailable: the log does not hold that version, or what lies before that call was scavenged.
            CallNotFound: the conversation has no such call.
            VersionConflict: the store already has a conversation of that id.
            InvalidArgument: both ``at`` and ``call`` are given, or one of them is not a number.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            branch = await timeline.fork()
            await branch.append({"type": "user.prompt", "text": "Build it in Rust instead."})
            assert (branch.id, len(timeline.window.items)) == ("cards.fork-2", 1)
            ```
        """
        from timeline.audit.redacting import Erasures  # noqa: PLC0415 - late, see above

        checks.text("title", title)
        if at is not None:
            checks.version_number("at", at)
        if call is not None:
            checks.whole("call", call)
        if conversation is not None:
            checks.new_id("conversation", conversation)
        if policy is not None:
            checks.of_kind("policy", policy, Policy, checks.A_POLICY)
        version = await self._last_shared(at, call)
        link = ParentLink(conversation=self.id, version=version, relation="fork")

        async def shown() -> list[BlockRedacted]:
            return (await Erasures.of(self._store, [self.id])).still_shown(self.id, version)

        redacted = await shown()  # before the past is read: what is redacted from here on is late
        fold = await fold_past(self._store, self.id, version)
        past = await policy_in_force(self._store, fold.window)
        unnamed = self.policy if past is None else None
        title = self._conversation.equipment.screened_text(title)
        opened, values = with_policy(ConversationOpened(title=title, parent=link), unnamed)
        at_ = given(now)
        log = await begin_free(
            self._store,
            lambda id_: StoredLog.begin_fork(
                self._store, fold, id_, self._clock, opened, redacted=redacted, values=values, at=at_
            ),
            conversation,
            f"{self.id}.fork-{version}",
        )
        if late := [each for each in await shown() if each not in redacted]:  # redacted while the fork was begun
            await log.redact_late(late)
        branch = self._opened(log, past or self.policy)
        if policy is not None:
            await branch.use_policy(policy, now=now)
        return branch

    def _opened(self, log: StoredLog, policy: Policy) -> Self:
        """Open a log with this one's parts, under a policy."""
        equipment = self._conversation.equipment
        return type(self)(Conversation(self._store, log, self._clock, equipment, Chosen(policy)))

    async def _last_shared(self, at: int | None, call: int | None) -> int:
        """Return the last version that a fork shares: a given one, the one before a call, or the newest."""
        from timeline.audit.before_call import last_shared  # noqa: PLC0415 - late, see above

        shared = await last_shared(self._store, self.id, at=at, call=call)
        await self._log.catch_up()  # before the version is read: the newest one may be another writer's
        return self.version if shared is None else shared

    async def hand_over(
        self,
        *,
        conversation: str | None = None,
        title: str = "",
        instructions: str = "",
        now: datetime | None = None,
    ) -> Self:
        """Begin a new conversation with a summary of this one, for when nothing makes the context fit.

        The summary covers all that is in view, including the newest turns and pinned blocks. The new conversation
        begins with it, as the answer to a fixed question, and has the policy and summarizer of this one. This one stays
        as it is.

        Args:
            conversation: id of the new conversation; ``<id>.next`` by default.
            title: its title.
            instructions: what the summary should attend to.
            now: time of its first event.

        Raises:
            SummarizerFailed: no summarizer gave a usable answer; no conversation was begun.
            VersionConflict: the store already has a conversation of that id.
        """
        from timeline.engine.handing_over import handed_over  # noqa: PLC0415 - late: few conversations need it

        for name, value in (("title", title), ("instructions", instructions)):
            checks.text(name, value)
        if conversation is not None:
            checks.new_id("conversation", conversation)
        await self._conversation.catch_up()
        blocks = await handed_over(self._conversation, instructions, await self._log.first_prompt())
        link = ParentLink(conversation=self.id, relation="fork")
        title = self._conversation.equipment.screened_text(title)
        opened, values = with_policy(ConversationOpened(title=title, parent=link), self.policy)
        at = moment(now, self._clock)
        drafts = await self._conversation.drafts(blocks, self._conversation.new_ids(len(blocks), at), at)
        begin = partial(StoredLog.begin_new, values=values, at=at, drafts=drafts, counter=self.counter.name)
        log = await begin_free(
            self._store,
            lambda id_: begin(self._store, id_, self._clock, opened),
            conversation or None,
            f"{self.id}.next",
        )
        return self._opened(log, self.policy)

    async def verify(self) -> VerifyReport:
        """Check every invariant over the whole log, and rebuild every recorded context.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            await timeline.render()
            report = await timeline.verify()
            assert report.ok
            ```
        """
        from timeline.audit.verify import verify  # noqa: PLC0415 - late, see above

        return await verify(self._store, self.id)

    async def diff(
        self, before: str | int = "last~1", after: str | int = "last", *, wires: Sequence[str] = ("anthropic",)
    ) -> ContextDiff:
        """Compare two recorded contexts: which blocks entered, left or changed, and what broke the provider's cache.

        Args:
            before: the older context: the version of its ``context.rendered`` event, ``"#3"`` (the third), ``"last"``,
                ``"last~1"``, or ``"call:84"`` (the context that call 84 was sent).
            after: the newer context, named the same way.
            wires: wire formats whose prefixes are compared, besides the neutral one.

        Raises:
            ContextNotFound: there is no recorded context of one of the names.
            CallNotFound: there is no call of one of the numbers.
            CallUnavailable: the context of one of the calls was not recorded.
            ContextUnavailable: one of the contexts cannot be rebuilt.
            InvalidArgument: there is no such wire format.
        """
        from timeline.audit.differences import Side, diff_sides  # noqa: PLC0415 - late, see above

        checks.texts("wires", wires)
        older, newer = (Side(self.id, str(name)) for name in (before, after))
        found, _ = await diff_sides(self._store, older, newer, wires)
        return found

    async def why(self, path: str, *, at: int | None = None, call: int | None = None) -> Why:
        """Return why a block is shown as it is, or is not there: its state, the first decision that led to it, and why.

        It also says what is shown in the block's place, and what would show it again.

        Args:
            path: the block's path or its address (``@152``).
            at: the version of the log to look at; the newest by default.
            call: number of a model call, instead of ``at``: looks at the context that the call was sent.

        Raises:
            BlockNotFound: the conversation has no such block, not even later.
            CallNotFound: there is no such call.
            CallUnavailable: the context of the call was not recorded.
            HistoryUnavailable: the log does not hold that version, or a scavenge removed what that version is folded
                from.
            InvalidArgument: ``at`` is not a version, ``call`` is not a number from 1 on, or both are given.
        """
        if at is not None:
            checks.version_number("at", at)
        if call is not None:
            checks.positive("call", call)
            if at is not None:
                raise InvalidArgument("call", "names a version by itself: leave out `at`")
        from timeline.audit.why import why  # noqa: PLC0415 - late, see above

        checks.block_name("path", path)
        return await why(self._store, self.id, path, at=at, call=call)

    async def call(self, number: int) -> Call:
        """Return a model call by its number: what was sent, what came back, and what changed before it.

        Calls are numbered from 1, failed ones and retries included; a fork continues its parent's numbers. The request
        is built again from the log. If it is not proved to be what was sent, ``call.unproved`` says why.

        Raises:
            CallNotFound: there is no such call.
        """
        from timeline.audit.calls import read_call  # noqa: PLC0415 - late, see above

        checks.positive("number", number)
        return await read_call(self._store, self.id, number)

    def calls(self) -> AsyncIterator[Call]:
        """Iterate over all model calls, oldest first, as `call` returns them, in one pass over the log."""
        from timeline.audit.calls import read_calls  # noqa: PLC0415 - late, see above

        return read_calls(self._store, self.id)

    async def diff_summaries(self, before: str, after: str) -> SummaryDiff:
        """Compare the summaries of two compactions as text: what the later one dropped, added and changed.

        Each is named by its path or address. `diff` compares the newest summaries of two recorded contexts in the same
        way.

        Raises:
            BlockNotFound: the conversation has no such block.
            HistoryUnavailable: `timeline scavenge` removed the block.
            InvalidArgument: a block is not a summary.
        """
        from timeline.audit.summaries import diff_summaries  # noqa: PLC0415 - late, see above

        for name, value in (("before", before), ("after", after)):
            checks.block_name(name, value)
        return await diff_summaries(self._store, self.id, before, after)

    async def count(self, blocks: Sequence[Block]) -> list[int]:
        """Return the tokens of each block by the policy's counter. Long texts are counted off the event loop."""
        checks.listed("blocks", blocks)
        for block in blocks:
            checks.of_kind("blocks", block, Block, "must be blocks, such as UserPrompt(text='…')")
        return await self._conversation.count(blocks)

    async def calibration(self) -> Calibration:
        """Compare the provider's token counts with ours, by the newest recorded model calls.

        A policy with ``counts="calibrated"`` uses this ratio by itself. ``policy.calibrated(calibration.ratio)``
        returns a policy that uses it from the first call on.
        """
        await self._conversation.catch_up()
        return calibration_of(self.window.reported)

    def compaction_state(self, *, now: datetime | None = None) -> CompactionState:
        """Return how often and when last the conversation was compacted, and whether it is now, by the log as read."""
        return compaction_state(self.window, moment(now, self._clock))

    def tools_in_use(self) -> tuple[str, ...]:
        """Return the names of the tools of which the window still shows a call."""
        return tools_in_use(self.window)

    def still_used(self, tools: Sequence[Any]) -> list[Any]:
        """Return the tools of which the window still shows a call, as in the design prune-then-summarize (004).

        Args:
            tools: tool schemas of Anthropic's, OpenAI's or Bedrock's, or tool names.
        """
        checks.listed("tools", tools)
        return still_used(tools, self.window)

    def lifecycle(self, *, after: int | None = None, interval: float = INTERVAL) -> AsyncIterator[LifecycleEvent]:
        """Follow what happens to the context: compactions that begin, end or fail, overflows, usage.

        The stream is derived from the log, so it includes what other processes do, and a second reading gives the same
        events. It goes on until the stream or the store is closed. See `timeline.lifecycle.follow`.

        Args:
            after: begin after this version; 0 is the beginning of the log. By default the stream begins at the present.
            interval: seconds between two looks at what other processes appended; this process's own appends arrive at
                once.
        """
        return follow(self._store, self.id, after=self.version if after is None else after, interval=interval)

    async def _come_up_to_date(self) -> None:
        await self._conversation.catch_up()

    async def _find(self, name: str) -> FoundBlock:
        return await find_readable(self._store, self.id, name)  # what another writer appended since is in view too

    # Appending: the application's blocks, and what a model said

    async def append(self, *blocks: Block | dict[str, Any], now: datetime | None = None) -> list[Block]:
        """Append blocks in one transaction; return them as stored, with turn id, path and time filled in.

        The tokens of each block are counted here, once in its life. If a call's arguments are the JSON text of an
        object, as OpenAI's SDK gives them, that object is stored.

        Raises:
            InvalidBlock: a block is not valid, or its type is unknown; nothing was written.
            PathTaken: a block comes with a path that is in use; nothing was written.

        Example:
            ```python
            from timeline import Timeline, open_store
            from timeline.blocks import UserPrompt

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            [prompt] = await timeline.append(UserPrompt(text="Build a flashcard app."))
            assert (prompt.path, prompt.turn_id) == ("ar:turn_1.user.prompt", "turn_1")
            ```
        """
        at = given(now)
        for block in blocks:
            checks.block(block)
        checked = [with_read_arguments(parse_block(block)) for block in blocks]
        for block in checked:
            refuse_unknown_type(block)
        if any(type(block) is RangeSummary for block in checked):
            raise InvalidBlock(
                "type", "a conv.range.summary is what a compaction makes; call compact(), or append a note"
            )
        return await self._conversation.append_new(checked, at)

    async def extend(self, drafts: Sequence[Draft]) -> list[Block]:
        """Append blocks and other events in one transaction, under their own ids. For imports and replays.

        A draft without a time gets the time of the append.
        """
        return await self._conversation.extend(drafts)

    async def decide(
        self, payloads: Sequence[Payload], *, at: datetime | None, ids: Sequence[UUID], expected: int | None = None
    ) -> None:
        """Append the decisions of a recorded client, such as its compactions, then take a snapshot. For imports.

        Without ``at`` the decisions get the time of the append.

        Raises:
            VersionConflict: the log is not at ``expected``.
        """
        await self._log.commit(payloads, at=at, ids=ids, expected=expected, snapshot=True)

    async def append_messages(
        self,
        messages: Sequence[Any],
        *,
        wire: MessageWire | None = None,
        keys: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> list[Block]:
        """Append a provider's messages as blocks, in one transaction; return the appended blocks.

        Without ``keys``, every message is new. With ``keys``, a message whose key was appended before is left out, so
        that an application can pass its whole history again after it grew.

        Args:
            messages: Anthropic's messages, OpenAI's chat messages or items of its Responses API, Google's contents, or
                the AI SDK's model or interface messages. The messages, or their contents, may be the SDK's objects.
            wire: form of the messages; by default recognised from their content.
            keys: one key for each message, unique in the conversation; a message keeps its key for ever.
            now: time of the blocks.

        Raises:
            InvalidBlock: a message is not valid; nothing was written.
            InvalidArgument: there is no such form, or there is not one key for each message.
        """
        at = given(now)
        return await append_messages(self._conversation, messages, at, wire=wire, keys=keys)

    async def inject(
        self,
        text: str,
        *,
        keep: Literal["nowhere", "pair"] = "nowhere",
        question: str = QUESTION,
        now: datetime | None = None,
    ) -> list[Block]:
        """Add a text of the application's own to the context, without touching the system prompt.

        A changed system prompt would invalidate the provider's whole cache; a text at the end does not.

        Args:
            text: the text that the model sees.
            keep: ``nowhere``: only the next recorded render sends the text, in its uncached tail. ``pair``: the text is
                appended, as the assistant's answer to a question of the user's.
            question: the user's question of a pair.
            now: time of the pair.

        Returns:
            The appended blocks; none if the text is kept nowhere.

        Raises:
            InvalidArgument: the text or the question is blank, or ``keep`` has another value.
        """
        checks.choice("keep", keep, ("nowhere", "pair"))
        checks.text("text", text)
        checks.text("question", question)
        blocks = injected_pair(text, self.window, question=question)
        if keep == "nowhere":
            self._injected = (*self._injected, text)
            return []
        return await self._conversation.append_new(blocks, given(now))

    async def record(
        self,
        reply: Any,
        *,
        started_at: datetime | None = None,
        duration: float | None = None,
        request: Request | None = None,
        now: datetime | None = None,
    ) -> list[Block]:
        """Append a model's reply in one transaction: its blocks, and the `model.called` event; return the blocks.

        Recording the same reply a second time appends nothing and returns the stored blocks. A reply without an id,
        which some servers send, always counts as a new one.

        Args:
            reply: an Anthropic message, an OpenAI chat completion or a Google content response (if it has several
                choices, the first counts), an OpenAI response, or a Converse response of Bedrock; the SDK's object or
                its dict.
            started_at: time at which the request was sent.
            duration: seconds that the call took; by default what `retry_with_compaction` measured, if it returned the
                reply or is calling the model.
            request: what was sent, as `context.request` returned it: `call` builds its body again, and `verify` checks
                it. By default the last request that was made inside `retry_with_compaction`. Without a request nothing
                proves what was sent.
            now: time of the blocks.

        Raises:
            UnknownResponse: the reply has another shape; nothing was written.
            InvalidArgument: the request is another conversation's; nothing was written.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            choice = {"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
            reply = {"id": "chatcmpl-1", "model": "gpt-4o", "choices": [choice]}  # or the SDK's object
            [answer] = await timeline.record(reply)
            assert answer.text == "Hello."
            ```
        """
        at = given(now)
        response = read_response(reply, unnamed=self._conversation.new_name(at))
        call = self._calls.of(reply)
        if call is not None:
            duration = call.duration() if duration is None else duration
            request = request or call.request
        return await record_response(
            self._conversation, response, at, started_at=started_at, duration=duration, request=request
        )

    def recording(
        self,
        stream: AsyncIterable[Any],
        *,
        started_at: datetime | None = None,
        request: Request | None = None,
        now: datetime | None = None,
    ) -> StreamRecording:
        """Pass a model's stream through, event by event, and record the response when it ends.

        Enter the result with ``async with`` and iterate over it. If the stream breaks, or you leave the loop or are
        cancelled, the events that arrived are recorded as one response. Its completion is marked with
        ``meta["interrupted"]``, which keeps a call whose arguments were cut off. The recorded duration begins with this
        call, or with the request if `retry_with_compaction` opened the stream, and ends with the last event that
        arrived.

        Args:
            stream: Anthropic message events, OpenAI chat chunks, OpenAI response events, Google content chunks or the
                events of Bedrock's ConverseStream.
            started_at: time at which the request was sent.
            request: what was sent, as for `record`.
            now: time of the blocks; the moment of recording by default.

        Raises:
            InvalidArgument: ``stream`` is no stream that ``async for`` reads.
        """
        checks.events(stream)
        return self._recording(stream, started_at=started_at, request=request, now=now)

    def _recording(
        self, stream: Any, *, started_at: datetime | None, request: Request | None, now: datetime | None
    ) -> StreamRecording:
        """Return what `recording` does, of a stream of either kind: `timeline.sync` reads a plain one by itself."""
        at = given(now)
        call = self._calls.of(stream) or self._calls.begin(at)

        async def save(response: ModelResponse, duration: float | None) -> list[Block]:
            sent = request or call.request
            return await record_response(
                self._conversation, response, at, started_at=started_at, duration=duration, request=sent
            )

        return StreamRecording(stream, unnamed=self._conversation.new_name(at), save=save, watch=call.watch)

    async def record_stream(
        self,
        stream: AsyncIterable[Any],
        *,
        on_event: Callable[[Any], object] | None = None,
        started_at: datetime | None = None,
        request: Request | None = None,
        now: datetime | None = None,
    ) -> list[Block]:
        """Read a model's stream to its end and record it; return the blocks. See `recording`.

        ``on_event`` is called with each event as it arrives.

        Raises:
            InvalidArgument: ``async for`` cannot read ``stream``, or ``on_event`` is not a function.
            UnknownResponse: the stream had no event of a model's response.
        """
        if on_event is not None:
            checks.function("on_event", on_event, "must be a function of an event")
        async with self.recording(stream, started_at=started_at, request=request, now=now) as recording:
            async for event in recording:
                if on_event is not None:
                    on_event(event)
        return recording.blocks

    async def record_model_call(
        self,
        usage: Usage | None = None,
        *,
        model: str = "",
        response_id: str | None = None,
        finish_reason: str | None = None,
        started_at: datetime | None = None,
        duration: float | None = None,
        request: Request | None = None,
        error: str = "",
        server_tools: bool = False,
        now: datetime | None = None,
    ) -> None:
        """Record a model call: its usage, how it ended, and the version of the render that it answers.

        If a call was sent another context, as a subagent's is, record it in a conversation of its own.

        Args:
            usage: the reported usage.
            model: id of the model; by default the request's.
            response_id: id of the response.
            finish_reason: why the call ended. ``"error"`` for a failed call, which is the default if ``error`` is
                given.
            started_at: time at which the request was sent.
            duration: seconds that the call took, by a clock that never steps back, such as ``time.monotonic()``.
            request: what was sent, as for `record`. Without it, the call answers the newest render.
            error: what a failed call failed with; its first words are kept.
            server_tools: tools of the provider's server, such as a search, ran within the call. The usage then counts
                the context once for each time that the model read it, so it does not show how the provider counts.
            now: time of the recorded event.
        """
        called = model_called(model, response_id, finish_reason, usage, error, server_tools=server_tools)
        await self._conversation.recorded()
        answered = answering(self._conversation, called, started_at, duration, request)
        await self._log.commit([answered], at=given(now))

    def recall_tool(self, wire: RecallWire, *, max_tokens: int | None = None) -> RecallTool:
        """Return a tool with which the model reads back any path or address that its context prints.

        Args:
            wire: form of the tool's schema: ``anthropic``, ``openai_chat``, ``openai_responses``, ``gemini``,
                ``bedrock_converse`` or ``ai_sdk``.
            max_tokens: the most tokens of one answer; by default 4,000, or a tenth of the policy's limit if that is
                less.

        Raises:
            InvalidArgument: there is no such wire.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            recall = timeline.recall_tool("anthropic")  # recall.schema goes into the request's tools
            answer = await recall.handle({"path": "ar:turn_1.user.prompt"})
            assert answer.endswith("Build a flashcard app.")
            ```
        """
        if max_tokens is not None:
            checks.positive("max_tokens", max_tokens)
        return RecallTool(
            wire,
            read=self._addressed,
            count=self.count,
            counter=self.counter,
            max_tokens=max_tokens or min(_MOST_RECALLED, self.policy.max_tokens // 10),
        )

    # Rendering

    async def render(
        self,
        *,
        system: JsonInput = None,
        tools: Sequence[JsonInput] = (),
        ephemeral: Sequence[str] = (),
        now: datetime | None = None,
        record: Record = "full",
    ) -> RenderedContext:
        """Return the context to send to the model now, compacting first when it is above the trigger.

        Args:
            system: the system prompt, a text or the provider's content parts; sent as it is, or not if it has no word.
            tools: the provider's tool schemas; sent as they are.
            ephemeral: texts for an uncached tail that is stored nowhere; the texts of `inject` come after them.
            now: time of the decisions and of the record.
            record: ``"full"`` (or True) records the context so that it can be rebuilt byte for byte. ``"hash"`` keeps
                only hashes of prompt, tools and tail. False is a dry run: it appends nothing, calls no hook but
                ``on_append``, and returns the same bytes; if it compacts, it asks the summarizer and keeps the answer
                for the next render. Use it for a look and record in a loop: nothing that a dry run decides stays, so
                each one of a loop decides about a longer log. ``"overlapped"`` records in full; if the render decided
                nothing, it returns at once, and the context is recorded while you call the model. `record` and the
                next render wait for that, and raise its error.

        Raises:
            ContextOverflow: the context is above the limit and cannot be made smaller. If an undo or a hook's veto
                forbids to make it smaller, this is not raised: the context is returned with that decision and with
                ``overflow``.
            BudgetImpossible: system prompt, tools and reserves leave no room at all.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            context = await timeline.render(system="You are a coding agent.")
            request = context.to_anthropic()
            assert request["messages"][0]["role"] == "user"
            ```
        """
        checks.choice("record", record, ("full", "hash", "overlapped", True, False))
        checks.texts("ephemeral", ephemeral)
        planned = moment(now, self._clock)
        at = given(now) if record else planned
        await self._conversation.catch_up()  # before the dry log is copied: a dry run must decide on the same log
        log: Log = self._log if record else self._log.dry_run(planned)
        compactor = self._compactor if record else self._compactor.dry_run()
        injected = self._injected
        tail = (*ephemeral, *injected)
        with compactor.observer.rendering(self.id) as report:
            try:
                context = await self._renderer.render(
                    log,
                    compactor,
                    system=system,
                    tools=tools,
                    ephemeral=tail,
                    now=planned,
                    at=at,
                    sent=self._conversation.sent,
                )
            except (ContextOverflow, BudgetImpossible) as refusal:
                if record:
                    await record_overflow(self._conversation, refusal, at)
                raise
            how: Literal["full", "hash"] = "hash" if record == "hash" else "full"
            if record == "overlapped" and not context.decisions:
                context = record_late(self._conversation, context, at)
            elif record:
                self._conversation.rendered = context = await record_context(self._conversation, context, how, at)
            report(context)
        if record and self._injected[: len(injected)] == injected:  # else a concurrent render sent them
            self._injected = self._injected[len(injected) :]
        return context

    async def retry_with_compaction(
        self,
        call: Callable[[RenderedContext], Awaitable[T]],
        *,
        system: JsonInput = None,
        tools: Sequence[JsonInput] = (),
        ephemeral: Sequence[str] = (),
        now: datetime | None = None,
        record: Literal["full", "hash", "overlapped"] = "full",
        refused: Callable[[BaseException], ContextLimit | None] = context_limit,
    ) -> T:
        """Render and call the model; if the model refuses the context for its size, compact and call once more.

        If the model refuses a picture or document, the bytes of the request, or signed reasoning, that part is left out
        instead. A compaction aims at 0.7 of the model's limit, or of the refused size if the error names no limit. A
        refused call is recorded as a failed one. The caller gets any other error.

        Args:
            call: sends a context to the model and returns its reply.
            system: the system prompt, as for `render`.
            tools: the provider's tool schemas.
            ephemeral: texts for an uncached tail that is stored nowhere; the texts of `inject` come after them, both
                times.
            now: time of the decisions and of the record.
            record: how to record both contexts.
            refused: recognises the provider's error; the default knows Anthropic's, OpenAI's and compatible servers'.

        Raises:
            ContextRefused: the model refused the smaller context too, or no smaller one could be made.
            Exception: ``call`` raised another error, or a refusal where nothing may be left out.
            ContextOverflow, BudgetImpossible, InvalidArgument: as `render`.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")


            async def ask(context):  # await client.messages.create(model=…, **context.to_anthropic())
                return f"{len(context.blocks)} blocks were sent"


            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            assert await timeline.retry_with_compaction(ask, system="Be brief.") == "1 blocks were sent"
            ```
        """
        checks.function("call", call, "must be an async function of a context, which asks the model")
        checks.choice("record", record, ("full", "hash", "overlapped"))
        checks.texts("ephemeral", ephemeral)
        injected = self._injected
        injected_again = iter(((), injected))  # the first render uses them up by itself

        async def render() -> RenderedContext:
            tail = (*ephemeral, *next(injected_again))
            return await self.render(system=system, tools=tools, ephemeral=tail, now=now, record=record)

        def pressure(context: RenderedContext) -> Pressure:
            return self._pressure(context.account.fixed, now)

        newest = self._calls.begin(given(now))

        async def measured(context: RenderedContext) -> T:
            nonlocal newest
            newest = self._calls.begin(given(now))
            return await self._calls.make(newest, call, context)

        async def failed(context: RenderedContext, error: BaseException) -> None:
            made, at, took = newest.request, given(now), newest.duration()
            await record_failure(self._conversation, error, at, request=made, context=context, duration=took)

        try:
            return await call_with_retry(measured, render=render, pressure=pressure, refused=refused, failed=failed)
        except BaseException:
            if self._injected[: len(injected)] != injected:  # no model got them: the next render sends them
                self._injected = (*injected, *self._injected)
            raise

    async def after_refusal(
        self,
        context: RenderedContext,
        error: BaseException,
        *,
        earlier: RenderedContext | None = None,
        request: Request | None = None,
        now: datetime | None = None,
    ) -> RenderedContext | None:
        """Return a smaller context after the model refused one for its size or a part of it; None for any other error.

        Use it instead of `retry_with_compaction` where a framework calls the model. System prompt, tools and ephemeral
        tail are those of the refused context. The refused call is recorded as a failed one.

        Args:
            context: the refused context.
            error: the exception that the call raised.
            earlier: the context that was refused first, if ``context`` already replaces one; there is no third attempt.
            request: what was sent, as for `record`.
            now: time of the decisions and of the record.

        Raises:
            ContextRefused: no smaller context could be made, or this was the second refusal.
            ContextOverflow, BudgetImpossible: as `render`.
        """
        checks.of_kind("context", context, RenderedContext, "must be what render(…) returned")
        checks.of_kind("error", error, BaseException, "must be the exception that the call raised")
        refusal, parts = context_limit(error), refused_parts(error)
        pressure = self._pressure(context.account.fixed, now)
        if refusal is None and (parts is None or earlier is not None or not may_give_way(pressure, context, parts)):
            return None
        await record_failure(self._conversation, error, given(now), request=request, context=context, duration=None)
        if earlier is not None and refusal is not None:
            warn_of_limit(context.policy, refusal)
            sent = [earlier.account.sent, context.account.sent]
            raise ContextRefused(sent=sent, limit=refusal.limit, target=refusal.target(sent[0]), tried=()) from error
        neutral = context.neutral
        tail = tail_from(context.window, context.policy, [entry.text for entry in neutral.ephemeral])
        render = partial(self.render, system=neutral.system, tools=neutral.tools, ephemeral=tail.callers, now=now)
        smaller, _ = await render_smaller(context, refusal, parts, pressure=pressure, render=render, cause=error)
        return smaller

    # Decisions of the application

    async def compact(
        self, *, until: str | None = None, instructions: str = "", wait: bool = True, now: datetime | None = None
    ) -> list[TakenDecision]:
        """Compact now, whatever the size of the context; return the decisions that were taken.

        Args:
            until: path or address of the first block that stays, instead of the policy's cut: one summary covers what
                is before it, and nothing else is hidden. A response stays whole, with its calls and results. So do
                pins, and what the user said in a turn that this divides.
            instructions: what the summary should attend to.
            wait: wait while another writer compacts, at most until its lease expires.
            now: time of the decisions.

        Raises:
            CompactionInProgress: another writer is compacting, and ``wait`` is False.
            CompactionRefused: nothing would be gained; ``reason`` says why.
            CompactionSuperseded: other writers changed the range at every attempt.
            SummarizerFailed: no summarizer gave a usable answer.
            BudgetImpossible: the policy's reserves leave no room for a summary.
            BlockNotFound: the conversation has no block ``until``.
            InvalidArgument: a summary covers the block ``until``, or an argument is not a text.

        Example:
            ```python
            from timeline import Timeline, open_store, policies

            store = await open_store("memory://")
            policy = policies.cut_point(max_tokens=4_000)
            timeline = await Timeline.open(store, "cards", policy=policy)
            for number in range(4):
                await timeline.append({"type": "user.prompt", "text": f"Write card {number}. " * 150})
            [compacted] = await timeline.compact(instructions="Keep the names of the cards.")
            assert compacted.kind == "compacted"
            ```
        """
        checks.text("instructions", instructions)
        await self._conversation.catch_up()
        kept = None if until is None else await self._version_in_view(until)
        pressure = self._pressure(FixedPart(), now)  # what the policy reserves is added there
        return await compact_now(replace(pressure, until=kept, instructions=instructions, wait=wait))

    async def _version_in_view(self, until: str) -> int:
        """Return the version of a block of the window."""
        checks.block_name("until", until)
        version = (await find_block(self._store, self.id, until)).event.version
        if all(item.version != version for item in self.window.items):
            raise InvalidArgument("until", f"{until!r} is covered by a summary; name a block that is in view")
        return version

    async def undo_compaction(
        self, version: int | None = None, *, cascade: bool = False, now: datetime | None = None
    ) -> list[int]:
        """Undo a compaction, so that the covered blocks are shown again as they were; return the versions undone.

        Afterwards no render compacts until you call `compact`, or change the policy with `use_policy`; a render above
        the trigger reports that. The undo also removes the compaction's previews; hides, pins and redactions stay.

        Args:
            version: version of the compaction's event; the newest compaction in force by default.
            cascade: also undo the later compactions that cover it, in one append.
            now: time of the undo.

        Raises:
            UndoUnavailable: no such compaction is in force, or its originals are lost.
            HistoryUnavailable: `timeline scavenge` removed its originals.
            CompactionCovered: a later compaction covers it, and ``cascade`` is False.

        Example:
            ```python
            from timeline import Timeline, open_store, policies

            store = await open_store("memory://")
            policy = policies.cut_point(max_tokens=4_000)
            timeline = await Timeline.open(store, "cards", policy=policy)
            for number in range(4):
                await timeline.append({"type": "user.prompt", "text": f"Write card {number}. " * 150})
            await timeline.compact()
            [version] = await timeline.undo_compaction()  # all four prompts are shown again
            ```
        """
        if version is not None:
            checks.version_number("version", version)
        at = given(now)
        await self._conversation.catch_up()

        async def choose() -> list[int]:
            newest = self.window.summary
            if version is None and newest is not None:
                return [newest.version]  # nothing covers it
            in_force = await compactions_in_force(self._store, self.id)
            return versions_to_revert(self.id, in_force, version, cascade=cascade)

        try:
            return await self._log.revert(choose, at=at, policy=self.policy.hash())
        except HistoryUnavailable as gone:
            if gone.scavenged:
                raise
            left = f"the log holds the versions {gone.first_version} to {gone.last_version} only"
            raise UndoUnavailable(self.id, f"its originals are gone: {left}; look in a backup") from gone

    async def go_back(self, path: str | None = None, *, now: datetime | None = None) -> list[Block]:
        """Go back behind a block: it and all that follows leave the history; return what left, in order.

        This is ``/undo``, "rewind to here" and "ask again" for a runtime that keeps no list of messages. What left is
        omitted with the reason ``abandoned``: no model and no summarizer sees it, and `messages` lacks it. A compaction
        that covers any of it is undone in the same append. `reveal` of one of the blocks takes all of them back, and
        what left after them if nothing was appended in between. A message leaves as a whole, and so does a response
        with its results; the result of an earlier call stays, and so does a redacted block. This reads the log from its
        end back to what leaves, and costs as much.

        Args:
            path: path or address of the first block that leaves; by default the newest prompt of the history. If there
                is none, nothing leaves.
            now: time of the decision.

        Raises:
            BlockNotFound: the conversation has no such block.
            BlockProtected: the block is a summary or a stage digest.
            HistoryUnavailable: `timeline scavenge` removed the block, or some of what follows it.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            await timeline.append({"type": "user.prompt", "text": "Delete it."})
            [prompt] = await timeline.go_back()
            assert prompt.text == "Delete it."
            ```
        """
        if path is not None:
            checks.block_name("path", path)
        return await go_back(self._conversation, path, given(now))

    async def hide(
        self, path: str, *, mode: HideMode = "replace", text: str | None = None, now: datetime | None = None
    ) -> None:
        """Hide a block of the window, until `reveal`.

        Args:
            path: path or address (``@152``) of the block.
            mode: ``replace`` shows a short replacement; ``omit`` shows nothing of the block's whole group (calls and
                results).
            text: the replacement; by default it names what the block was, and ends with its address.
            now: time of the decision.

        Raises:
            BlockNotFound: the conversation has no such block.
            BlockProtected: the block is pinned, a summary, redacted, an open call, or covered by a summary.
            InvalidArgument: there is no such mode, or ``omit`` comes with a text.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            [prompt] = await timeline.append({"type": "user.prompt", "text": "Build a flashcard app. " * 50})
            await timeline.hide(prompt.path, text="[a long prompt]")
            assert "[a long prompt]" in str((await timeline.render()).to_anthropic())
            await timeline.reveal(prompt.path)
            ```
        """
        checks.choice("mode", mode, ("replace", "omit"))
        if text is not None:
            checks.text("text", text)
        most = (self.policy.hiding or Hiding()).replacement_tokens
        await self._decide_about(
            path, now, lambda window, item: hide(window, item, mode=mode, text=text, most=most, counter=self.counter)
        )

    async def reveal(self, path: str, *, now: datetime | None = None) -> None:
        """Show a hidden or abridged block in full; from now on no render hides or abridges it.

        An abandoned block comes back together with all that was abandoned with it, or after it with nothing appended in
        between. All of that is then as it was before: what was hidden is hidden, and renders may hide the rest.
        ``path`` is a path or an address.

        Raises:
            BlockNotFound: the conversation has no such block.
            BlockProtected: the block is shown in full, was redacted, or a summary covers it, or some of what was
                abandoned with it.
        """
        await self._decide_about(path, now, reveal)

    async def pin(self, path: str, *, now: datetime | None = None) -> None:
        """Pin a block of the window and its group, by path or address: no compaction covers them, no render hides them.

        Raises:
            BlockNotFound: the conversation has no such block.
            BlockProtected: the block is a summary, or a summary covers it.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            [prompt] = await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            await timeline.pin(prompt.path)
            assert timeline.window.items[0].pinned
            ```
        """
        await self._decide_about(path, now, pin)

    async def unpin(self, path: str, *, now: datetime | None = None) -> None:
        """Remove the pin from a block and its group, by path or address.

        Raises:
            BlockNotFound: the conversation has no such block.
            BlockProtected: the block is not pinned by a decision, or a summary covers it.
        """
        await self._decide_about(path, now, unpin)

    async def redact(
        self, path: str | Sequence[str], reason: str, *, text: str = "", now: datetime | None = None
    ) -> ErasureReport:
        """Erase the content of a block for good, with everything that was made of it; return a report.

        A tombstone replaces the content wherever it is stored, also in forks and earlier versions. Summaries, digests
        and records are made again from what is left, and the store's files are rewritten without the bytes. Earlier
        contexts and calls can no longer be proved. The report lists what no call can reach, such as backups. There is
        no undo. You may repeat the call: after a crash it does what was left to do.

        Args:
            path: path or address of the block; several of them; or other places that `find_subject` lists: the address
                of any other event, or ``value:`` and the sha256 of a stored text.
            reason: kept with the tombstone, and shown to the model.
            text: words to take out of places that are no blocks, and out of all that quotes them.
            now: time of the event.

        Raises:
            BlockNotFound: the conversation has no such place.
            InvalidArgument: a place is no block, and ``text`` is empty; or an argument is not a text.
            UnderLegalHold: a legal hold is on the conversation, or on one that shares the block.
            StoreError: the store refused; nothing was erased.
        """
        from timeline.forgetting import redact  # noqa: PLC0415 - late, see above

        checks.written("reason", reason)
        checks.written("text", text)
        if not isinstance(path, list | tuple):
            checks.block_name("path", path)
        for place in [path] if isinstance(path, str) else path:
            checks.block_name("path", place)
        await self._conversation.catch_up()
        report = await redact(self._store, self.id, path, reason, text=text, now=given(now), clock=self._clock)
        self._conversation.rendered, self._conversation.sent = None, not_sent
        await self._conversation.catch_up()
        return report

    async def _decide_about(self, path: str, now: datetime | None, decide: Callable[[Window, Item], Payload]) -> None:
        """Append a pure function's decision about a live block, taken on the log as it is at the commit."""
        checks.block_name("path", path)

        async def choose(_: datetime) -> list[Payload]:
            window = self.window
            version = (await find_block(self._store, self.id, path)).event.version
            item = next((item for item in window.items if item.version == version), None)
            if item is None:
                raise BlockProtected(path, "a summary covers it, so that it is not shown; undo its compaction first")
            return await carried_out(self._store, self.id, window, item, decide(window, item))

        at = given(now)
        await self._conversation.catch_up()
        await self._log.decide(choose, at=at)

    # Stages of the work

    async def enter_stage(self, stage: str, label: str = "", *, now: datetime | None = None) -> Stage:
        """Begin a stage. The blocks that follow belong to it until you approve it.

        Args:
            stage: name of the stage, unique among the conversation's live stages.
            label: its name for people and models; ``stage`` by default.
            now: time of the decision.

        Raises:
            StageRefused: another stage is unfinished, or this one is approved already.
            InvalidArgument: the name is blank, or an argument is not a text.
        """
        return await stages.enter(self._conversation, stage, label, given(now))

    async def approve_stage(
        self,
        *,
        decision: str,
        short: str = "",
        detailed: str = "",
        references: Sequence[str] = (),
        citations: Sequence[str] = (),
        artifacts: Sequence[str] = (),
        now: datetime | None = None,
    ) -> Stage:
        """Approve the current stage, and put its decision into the memory digest.

        Args:
            decision: the decision, in at most 200 characters; always in view from now on.
            short: the stage's outcome, in at most 280 characters; the decision by default.
            detailed: the outcome in at most 1,000 characters; the short text by default.
            references: works that the stage refers to. The policy's `StageData` limits how many references, citations
                and artifacts a context shows.
            citations: passages that the stage quotes.
            artifacts: texts that the stage produced.
            now: time of the decision.

        Raises:
            StageRefused: there is no unfinished stage.
            InvalidArgument: a text is too long or missing, or an argument is not a list.
        """
        return await stages.approve(
            self._conversation,
            given(now),
            decision=decision,
            short=short,
            detailed=detailed,
            references=references,
            citations=citations,
            artifacts=artifacts,
        )

    async def rewind_stage(self, stage: str, *, now: datetime | None = None) -> Stage:
        """Reopen an approved stage: its decision and those of all later stages no longer hold.

        The messages stay in view. The next approval of the stage covers everything since the stage began.

        Raises:
            StageNotFound: no live stage has that name.
            StageRefused: the stage is not approved yet, so there is no approval to take back.
        """
        return await stages.rewind(self._conversation, stage, given(now))

    # The loop of an agent

    async def messages(self, wire: MessageWire, *, model: str = "") -> list[Any]:
        """Return all that was said, in a provider's form: no summaries, nothing hidden, no cache markers.

        With this, a runtime that keeps its history nowhere else can go on after a restart. Messages that left the
        runtime's list, or that a guardrail rejected, are not included. A call without a result gets one that says so.
        This reads the whole log.

        Args:
            wire: form of the messages.
            model: id of the model that the messages are for, since a provider's models accept different requests.

        Raises:
            InvalidArgument: there is no such form.
        """
        return await whole_messages(self._store, self.id, wire, model=model)

    def step_hook(
        self,
        wire: MessageWire,
        *,
        system: JsonInput = None,
        tools: Sequence[JsonInput] = (),
        model: str | None = None,
    ) -> StepHook:
        """Return an adapter for a loop that calls one function before each step, to get its messages, and one after it.

        Args:
            wire: form of the loop's messages.
            system: the system prompt that the loop sends beside the messages; counted, and recorded with each context.
            tools: the tool schemas that the loop sends; counted and recorded too.
            model: id of the model that the loop calls, since a provider's models accept different requests; by default
                the model of the newest recorded call.

        Raises:
            InvalidArgument: there is no such form, or ``model`` is not a name.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            hook = timeline.step_hook("openai_chat", system="You are a coding agent.")
            step = await hook.prepare_step(messages=[{"role": "user", "content": "Build a flashcard app."}])
            request = step["messages"]  # what the loop sends; then: await hook.on_step_finish(reply)
            assert len(timeline.window.items) == 1
            ```
        """
        checks.choice("wire", wire, tuple(MESSAGES))
        if model is not None:
            checks.text("model", model)
        return StepHook(self._conversation, render=self.render, wire=wire, system=system, tools=tools, model=model)

    def list_follower(self) -> ListFollower:
        """Return a follower that keeps the log in step with a framework's list of messages. For adapters."""
        return ListFollower(self._conversation)

    async def after_length_stop(
        self,
        reply: Any,
        *,
        system: JsonInput = None,
        tools: Sequence[JsonInput] = (),
        started_at: datetime | None = None,
        duration: float | None = None,
        request: Request | None = None,
        now: datetime | None = None,
    ) -> LengthStop:
        """Record a reply that was cut off for want of room, and compact if the context is the reason.

        Sets aside the calls that were cut off, and draws up the account of the next request. If a compaction is due and
        makes room, the loop can go on with another render. So it can if the provider said that the model's window was
        full: then the context is compacted even if the policy allows more. Otherwise the loop has to end, because the
        answer itself is longer than the model may write. If the next request would end with half an answer, a user's
        block is appended that asks the model to go on.

        ``reply`` may also be the blocks of a recorded reply, such as a stream's. ``system`` and ``tools`` are those of
        the next request; the other arguments are those of `record`.

        Raises:
            InvalidArgument: the reply ended for another reason; nothing was written.
            UnknownResponse: ``reply`` is not a reply; nothing was written.
        """
        at = given(now)
        system, tools, _ = prepared(system, tools, ())
        if reply and isinstance(reply, list | tuple) and all(isinstance(block, Block) for block in reply):
            blocks: Sequence[Block] = reply
            called = await self._call_of(blocks)
        else:
            called = read_response(reply, unnamed=self._conversation.new_name(at)).called
            check_stop(called)
            blocks = await self.record(reply, started_at=started_at, duration=duration, request=request, now=now)
        # The reply is stored before anything is compacted: a compaction that fails must not lose it.
        await self._conversation.catch_up()
        account = self._next_request(system, tools)
        decisions: list[TakenDecision] = []
        if account.over_trigger:
            decisions = await take_due_decisions(self._pressure(account.fixed, now), self._renderer.known)
        elif called is not None and (limit := full_window(called)) is not None:
            decisions = await compact_for_full_window(self._pressure(account.fixed, now), limit)
        goes_on = any(taken.made_room for taken in decisions)
        if goes_on and ends_half_said(self.window):
            await self._conversation.append_new([CustomBlock(type="injected.go_on", author="user", text=CUT_OFF)], at)
        return LengthStop(
            exit=None if goes_on else "max_tokens",
            blocks=tuple(blocks),
            discarded=tuple(call for block in blocks for call in calls_cut_off(block)),
            account=self._next_request(system, tools),  # stages may be shown in short by now
            decisions=tuple(decisions),
        )

    def run(self) -> AbstractAsyncContextManager[None]:
        """Enter a run of the agent with ``async with``; when you leave it, even by an error, `end_run` cleans up."""
        return until_the_end(self.end_run)

    async def end_run(self, *, now: datetime | None = None) -> list[TakenDecision]:
        """Clear old tool outputs at the end of a run, if the policy has a `ClearToolOutputs` step.

        This happens also below the trigger and with a warm cache; the step's own figures decide how much stays.

        Returns:
            The decisions; none if the policy has no such step, or too little would be freed.
        """
        await self._conversation.catch_up()
        steps = [step for step in self.policy.steps if isinstance(step, ClearToolOutputs)]
        progress = CompactionProgress(
            replace(self._pressure(FixedPart(reserved=self._reserved), now), reason="run_end")
        )
        hides = [await hide_by_step(step, progress) for step in steps]
        return [taken for hidden in hides for taken in hidden]

    def _pressure(self, fixed: FixedPart, now: datetime | None) -> Pressure:
        compactor = self._compactor.at(self._log.fold)
        return Pressure(compactor, self._log, fixed, moment(now, self._clock), given(now), sent=self._conversation.sent)

    async def _call_of(self, blocks: Sequence[Block]) -> ModelCalled | None:
        """Return the recorded call that brought these blocks of a response; None if there is none."""
        rendered = self.window.rendered
        since = 0 if rendered is None else rendered.version
        events = [event async for event in self._store.read(self.id, after=since, types=["model.called"])]
        calls = [event.payload for event in events if isinstance(event.payload, ModelCalled)]
        ids = {block.response_id for block in blocks}
        return next((call for call in reversed(calls) if call.response_id in ids), None)

    def _next_request(self, system: JsonInput, tools: Sequence[JsonInput]) -> Account:
        """Draw up the account of the next request."""
        return self._renderer.next_account(self._log, self._compactor, system=system, tools=tools)
