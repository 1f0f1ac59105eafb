"""`Timeline`: the imperative shell around the pure core. It does the I/O, reads the clock and holds nothing else."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

import anyio.to_thread

from timeline.blocks import Block, RangeSummary, parse_block, utc, with_media
from timeline.compaction import Compactor
from timeline.errors import (
    BlockNotFound,
    BudgetImpossible,
    ContextOverflow,
    ConversationNotFound,
    InvalidBlock,
    VersionConflict,
)
from timeline.events import (
    CompactionCompleted,
    ContextRendered,
    ConversationOpened,
    ModelCalled,
    NewEvent,
    appended_block,
    event_id,
    event_ids,
)
from timeline.frozen import canonical_json, compact_json, repair_json, sha256_hex
from timeline.log import Draft, StoredLog
from timeline.planning.budget import FixedPart, account, scaled
from timeline.policy import presets
from timeline.ports import Expected, Hooks, SystemClock
from timeline.projection.context import RenderedContext, context_blocks
from timeline.projection.project import PROJECTION, Projector
from timeline.tokens import get_counter
from timeline.verify import verify

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from pydantic import JsonValue

    from timeline.events import ParentLink, Payload, Usage
    from timeline.fold.window import Window
    from timeline.log import Log
    from timeline.policy.model import Policy
    from timeline.ports import Clock, EventStore, Summarizer, TokenCounter
    from timeline.projection.context import Taken
    from timeline.verify import VerifyReport

Record: TypeAlias = Literal["full", "hash"] | bool
"""How a render is recorded: in full, with hashes in place of prompt, tools and tail, or (False) not at all."""

_THREAD_CHARACTERS: Final = 1_000_000
"""Counting more text than this (a tenth of a second) leaves the event loop for a thread, where it is slower."""
_MOST_KEPT_COUNTS: Final = 200
"""Counts of prompts, tools and tails that are kept from one render to the next."""


class Timeline:
    """One conversation of a store. Open it with `Timeline.open`; several may be open on one store.

    Attributes:
        id: of the conversation.
        policy: in force for renders and compactions.
    """

    def __init__(self, log: StoredLog, store: EventStore, policy: Policy, compactor: Compactor, clock: Clock) -> None:
        self.id = log.fold.conversation
        self.policy = policy
        self._log = log
        self._store = store
        self._compactor = compactor
        self._counter: TokenCounter = compactor.counter
        self._clock = clock
        self._projector = Projector()
        self._fixed_tokens: dict[str, int] = {}

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
            policy: `policies.cut_point()` unless given.
            summarizer: asked first; the extractive one answers when it fails, and when none is given.
            hooks: functions of the application around compactions.
            clock: where ``now`` comes from when a call gives none.
            counter: counts tokens; the policy's own unless given.
            title: of a new conversation.
            parent: where a new conversation comes from.
            source: the format that a new conversation was recorded in.
            now: the moment of a new conversation's first event.
            create: begin the conversation when the store does not hold it.

        Raises:
            ConversationNotFound: ``create`` is False and there is no such conversation.
            StoreError: the store cannot be read or written.
        """
        policy = policy or presets.cut_point()
        clock = clock or SystemClock()
        try:
            log = await StoredLog.load(store, conversation)
        except ConversationNotFound:
            if not create:
                raise
            at = _moment(now, clock)
            opened = ConversationOpened(title=title, parent=parent, source=source)
            event = NewEvent(id=event_id(at), at=at, payload=opened)
            with suppress(VersionConflict):  # somebody else began it first: then it is theirs that is opened
                await store.append(conversation, [event], expected=Expected.NO_STREAM)
            log = await StoredLog.load(store, conversation)
        compactor = Compactor(policy, counter or get_counter(policy.counter), _chain(summarizer), hooks or Hooks())
        return cls(log, store, policy, compactor, clock)

    @property
    def counter(self) -> TokenCounter:
        """The policy's token counter."""
        return self._counter

    @property
    def version(self) -> int:
        """Version of the last event that this timeline knows of."""
        return self._log.fold.version

    @property
    def window(self) -> Window:
        """What the model could see now."""
        return self._log.fold.window

    async def append(self, *blocks: Block | dict[str, Any], now: datetime | None = None) -> list[Block]:
        """Append blocks in one transaction; return them as stored, with turn id, path and time filled in.

        Each block's tokens are counted here, once in its life.

        Raises:
            InvalidBlock: a block does not hold; nothing was written.
            PathTaken: a block brings a path that is in use; nothing was written.
            StoreError: the store refused; nothing was written.
        """
        at = _moment(now, self._clock)
        checked = [parse_block(block) for block in blocks]
        if any(isinstance(block, RangeSummary) for block in checked):
            raise InvalidBlock(
                "type", "a conv.range.summary is what a compaction makes; call compact(), or append a note"
            )
        if not checked:
            return []
        sizes = await self.count(checked)
        ids = event_ids(at, len(checked))
        drafts = [Draft(id_, b.at or at, b, tokens) for id_, b, tokens in zip(ids, checked, sizes, strict=True)]
        return await self._log.append(drafts, counter=self._counter.name)

    async def extend(self, drafts: Sequence[Draft]) -> list[Block]:
        """Append blocks and other events together, with ids of their own: for imports and replays.

        Raises:
            StoreError: the store refused; nothing was written.
        """
        return await self._log.append(drafts, counter=self._counter.name)

    async def decide(
        self, payloads: Sequence[Payload], *, at: datetime, ids: Sequence[UUID], expected: int | None = None
    ) -> None:
        """Append decisions of a recorded client, such as its compactions, and take a snapshot behind them.

        Raises:
            VersionConflict: the log is not at ``expected``.
        """
        await self._log.commit(payloads, at=at, ids=ids, expected=expected, snapshot=True)

    async def count(self, blocks: Sequence[Block]) -> list[int]:
        """Count blocks with the policy's counter; much text is counted off the event loop."""
        texts = [block.countable() for block in blocks]
        if sum(map(len, texts)) > _THREAD_CHARACTERS:
            counts = await anyio.to_thread.run_sync(self._counter.count_many, texts)
        else:
            counts = self._counter.count_many(texts)
        return [with_media(b, n) for n, b in zip(counts, blocks, strict=True)]

    async def record_model_call(
        self,
        usage: Usage | None = None,
        *,
        model: str = "",
        response_id: str | None = None,
        finish_reason: str | None = None,
        started_at: datetime | None = None,
        now: datetime | None = None,
    ) -> None:
        """Record a model call: what it used, how it ended, and (by version) the render it answers: the newest one."""
        fields: dict[str, Any] = {} if usage is None else {"usage": usage}
        started = None if started_at is None else _moment(started_at, self._clock)
        rendered = self.window.rendered
        called = ModelCalled(
            model=model,
            response_id=response_id,
            finish_reason=finish_reason,
            started_at=started,
            answers=None if rendered is None else rendered.version,
            **fields,
        )
        await self._log.commit([called], at=_moment(now, self._clock))

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
            ephemeral: texts for an uncached tail that is kept nowhere.
            now: the time of what is decided and recorded.
            record: ``"full"`` (or True) records the context so that it can be rebuilt byte for byte; ``"hash"`` keeps
                only hashes of prompt, tools and tail; False appends nothing, calls no hook and gives the same bytes.

        Raises:
            ContextOverflow: the context is above the limit and cannot be made smaller.
            BudgetImpossible: system prompt, tools and reserves leave no room at all.
            StoreError: the store refused.
        """
        now = _moment(now, self._clock)
        system, tools, ephemeral = (
            _sendable(n, v) for n, v in (("system", system), ("tools", tools), ("ephemeral", ephemeral))
        )
        fixed = self._fixed(system, tools, ephemeral)
        if self.policy.compacts != "never" and fixed.tokens >= self.policy.trigger_tokens:
            raise BudgetImpossible(account((), fixed, self.policy).facts())
        await self._log.catch_up()
        log: Log = self._log if record else self._log.dry()
        compactor = self._compactor if record else replace(self._compactor, hooks=Hooks())
        decisions = await compactor.relieve(log, fixed, now)
        context = self._project(log.fold.window, fixed, decisions, system=system, tools=tools, ephemeral=ephemeral)
        if context.account.total > self.policy.max_tokens:
            largest = sorted(((b.path, b.tokens) for b in context.blocks), key=lambda row: -row[1])
            raise ContextOverflow(context.account.facts(), largest[:10])
        how: Literal["full", "hash"] = "hash" if record == "hash" else "full"
        known = log.fold.window.rendered
        if record and (
            known is None or known.fingerprint != context.fingerprint or (known.record, how) == ("hash", "full")
        ):
            await self._record(log, context, now, how)
        return context

    async def compact(self, *, instructions: str = "", now: datetime | None = None) -> list[Taken]:
        """Compact now, whatever the size of the context; return what was done.

        Args:
            instructions: what the summary should attend to.
            now: its time.

        Raises:
            CompactionRefused: nothing would be gained; ``reason`` says why.
            CompactionSuperseded: other writers changed the range each time.
            SummarizerFailed: no summarizer gave a usable answer.
        """
        await self._log.catch_up()
        now = _moment(now, self._clock)
        return await self._compactor.compact(
            self._log, FixedPart(reserved=self._reserved), now, reason="forced", instructions=instructions
        )

    async def read(self, path: str) -> Block:
        """Return the block at a path, in full, whatever its state.

        A summary comes with the full digest of what it covered in ``meta["compaction_digest"]``.

        Raises:
            BlockNotFound: the conversation has no such path.
        """
        event = await self._store.find(self.id, path)
        block = None if event is None else appended_block(event.payload)
        if event is None or block is None:
            raise BlockNotFound(self.id, path)
        if isinstance(block, RangeSummary) and isinstance(event.payload, CompactionCompleted):
            digest = event.payload.digest.dump()
            return block.model_copy(update={"meta": {**block.meta, "compaction_digest": digest}})
        return block

    async def verify(self) -> VerifyReport:
        """Check every invariant over the whole log, and rebuild every recorded context."""
        return await verify(self._store, self.id)

    @property
    def _reserved(self) -> int:
        return self.policy.output_reserve + self.policy.safety_buffer

    def _fixed(self, system: JsonValue, tools: Sequence[JsonValue], ephemeral: Sequence[str]) -> FixedPart:
        """Count the fixed part; each text once."""
        return FixedPart(
            system=self._tokens_of(system) if system else 0,
            tools=sum(self._tokens_of(tool) for tool in tools),
            ephemeral=sum(self._tokens_of(text) for text in ephemeral),
            reserved=self._reserved,
        )

    def _tokens_of(self, value: JsonValue) -> int:
        text = value if isinstance(value, str) else canonical_json(value)
        if text not in self._fixed_tokens:
            if len(self._fixed_tokens) >= _MOST_KEPT_COUNTS:
                self._fixed_tokens.clear()
            self._fixed_tokens[text] = scaled(self._counter.count(text), self.policy)
        return self._fixed_tokens[text]

    def _project(
        self,
        window: Window,
        fixed: FixedPart,
        decisions: Sequence[Taken],
        *,
        system: JsonValue,
        tools: Sequence[JsonValue],
        ephemeral: Sequence[str],
    ) -> RenderedContext:
        bill = account(window.items, fixed, self.policy)
        neutral = self._projector.project(
            window, self.policy.cache_points, system=system, tools=tools, ephemeral=ephemeral
        )
        return RenderedContext(
            conversation=self.id,
            version=window.version,
            projection=PROJECTION,
            neutral=neutral,
            blocks=context_blocks(window),
            account=bill,
            decisions=tuple(decisions),
            overflow=bill.over_trigger,
        )

    async def _record(self, log: Log, context: RenderedContext, now: datetime, record: Literal["full", "hash"]) -> None:
        """Append what is needed to build this context again."""
        neutral = context.neutral
        texts = {
            "policy": self.policy.canonical(),
            "system": None if neutral.system is None else compact_json(neutral.system),
            "tools": compact_json(list(neutral.tools)) if neutral.tools else None,
            "ephemeral": compact_json([e.text for e in neutral.ephemeral]) if neutral.ephemeral else None,
        }
        hashes = {name: sha256_hex(text) for name, text in texts.items() if text is not None}
        stored = texts if record == "full" else {"policy": texts["policy"]}
        rendered = ContextRendered(
            version=context.version,
            projection=context.projection,
            fingerprint=context.fingerprint,
            record=record,
            tokens=context.account.sent,
            overflow=context.overflow,
            policy=hashes["policy"],
            system=hashes.get("system"),
            tools=hashes.get("tools"),
            ephemeral=hashes.get("ephemeral"),
        )
        values = {hashes[name]: text for name, text in stored.items() if text is not None}
        await log.commit([rendered], at=now, values=values)


def _moment(now: datetime | None, clock: Clock) -> datetime:
    """Return the moment of a call: the one that it was given, in UTC, or the clock's.

    Raises:
        InvalidBlock: the moment has no time zone.
    """
    try:
        return utc(now) if now is not None else clock.now()
    except ValueError as error:
        raise InvalidBlock("now", str(error)) from None


def _sendable(name: str, value: Any) -> Any:
    """Repair what a caller wants sent beside the log.

    Raises:
        InvalidBlock: it has no form in JSON.
    """
    try:
        return repair_json(value)
    except ValueError as error:
        raise InvalidBlock(name, str(error)) from None


def _chain(summarizer: Summarizer | None) -> Summarizer:
    """Put the extractive summarizer behind the one that is given: it needs no model and always answers."""
    from timeline import summarizers  # noqa: PLC0415 - the lazy re-export: the core does not import the package itself

    extractive = summarizers.ExtractiveSummarizer()
    return extractive if summarizer is None else summarizers.FallbackSummarizer(summarizer, extractive)
