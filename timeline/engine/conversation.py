"""An open conversation: its store, log and clock, and the compactor of the policy in force.

A read-only `TimelineView` works on a `ConversationView`; a live `Timeline` and the parts of an agent's loop share a
`Conversation`. Both only hold state; the modules that use them do the work.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

import anyio.to_thread

from timeline.content.media_tokens import with_media
from timeline.engine.equipment import policy_in_force
from timeline.engine.warm import SentContext, not_sent
from timeline.events import PolicyChanged, event_ids
from timeline.log.protocol import Draft
from timeline.ports import FinishingStore
from timeline.ports.clocks import time_of
from timeline.tokens import may_start_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from datetime import datetime
    from uuid import UUID

    from timeline.blocks import Block
    from timeline.engine.choosing import Chosen
    from timeline.engine.compactor import Compactor
    from timeline.engine.equipment import Equipment
    from timeline.engine.warm import WhyAlone
    from timeline.events import ModelCalled
    from timeline.fold.window import Window
    from timeline.log.protocol import Log
    from timeline.log.stored import StoredLog
    from timeline.policy.model import Policy
    from timeline.ports import Clock, EventStore, TokenCounter
    from timeline.projection.context import RenderedContext
    from timeline.wire.request import Request

_THREAD_CHARACTERS: Final = 1_000_000
"""Texts longer than this together are counted in a thread. That is slower, but on the loop they take 0.1 seconds."""


class ConversationView:
    """A conversation to look at, at one version or at the newest.

    Attributes:
        store: holds the conversation.
        log: the log, and the fold of it.
        clock: gives the time of calls without ``now``.
        equipment: the parts that the application brought.
        compactor: compacts under the policy in force.
    """

    def __init__(self, store: EventStore, log: Log, clock: Clock, equipment: Equipment, policy: Policy) -> None:
        self.store = store
        self.log = log
        self.clock = clock
        self.equipment = equipment
        self.compactor = equipment.compactor(policy)

    @property
    def compactor(self) -> Compactor:
        """The compactor of the policy in force. It decides the unit of the window's figures."""
        return self._compactor

    @compactor.setter
    def compactor(self, compactor: Compactor) -> None:
        self._compactor = compactor
        self.log.fold.count_by(compactor.counter, compactor.policy.first_ratio)

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.log.fold.conversation

    @property
    def counter(self) -> TokenCounter:
        """The policy's token counter."""
        return self.compactor.counter

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.compactor.policy

    @property
    def version(self) -> int:
        """Version of the last event that the log has read."""
        return self.log.fold.version

    @property
    def window(self) -> Window:
        """The live blocks."""
        return self.log.fold.window


class Conversation(ConversationView):
    """A conversation to append to, which follows other writers and the policy that they put in force.

    Attributes:
        overrides: whether it works under a policy of its own, whichever one others put in force.
        rendered: the newest recorded context.
        sent: returns the context of the newest model call, to ask for a summary in; or why there is none to ask in.
    """

    log: StoredLog

    def __init__(self, store: EventStore, log: StoredLog, clock: Clock, equipment: Equipment, chosen: Chosen) -> None:
        super().__init__(store, log, clock, equipment, chosen.policy)
        log.screen = equipment.screened
        self.overrides: bool = chosen.own
        self.rendered: RenderedContext | None = None
        self.sent: Callable[[], SentContext | WhyAlone] = not_sent
        self._known_policy = log.fold.window.policy
        self._late: list[asyncio.Task[None]] = []
        self._unfinished: set[asyncio.Task[None]] = store.late_writes if isinstance(store, FinishingStore) else set()

    def record_late(self, record: Coroutine[None, None, None]) -> None:
        """Write the record of a context while the model is called. `recorded` waits for it, and the store's close."""
        late = asyncio.create_task(self._written(record))
        self._late.append(late)
        self._unfinished.add(late)

    async def _written(self, record: Coroutine[None, None, None]) -> None:
        await record
        self._unfinished.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def recorded(self) -> None:
        """Wait until the records of all rendered contexts are written. To cancel the wait does not stop the writing.

        Raises:
            StoreError: the store refused one of them; that context is not recorded.
        """
        while self._late:
            late = self._late[0]
            await asyncio.wait([late])
            if late in self._late:  # another task may have waited for it and removed it
                self._late.remove(late)
                self._unfinished.discard(late)
                late.result()

    async def catch_up(self) -> None:
        """Read what other writers appended; without a policy of its own, use the one that is in force now."""
        await self.recorded()
        await self.log.catch_up()
        known = self.window.policy
        if known == self._known_policy:
            return
        # A policy of its own stays, even if it was the conversation's for a while: the policy of a handle must not
        # depend on when the handle looked.
        if not self.overrides and (policy := await policy_in_force(self.store, self.window)) is not None:
            self.compactor = self.equipment.compactor(policy)
        self._known_policy = known

    def note_call(self, called: ModelCalled, request: Request | None) -> None:
        """Note the context of the newest model call; a failed call leaves none in the provider's cache."""
        if called.finish_reason == "error":
            return
        context = self.rendered
        known = request is not None and context is not None and context.answered_as == request.answers
        if request is None or context is None or not known:
            self.sent = not_sent
        else:
            sent = SentContext(context, request.recorded(), called.usage)
            self.sent = lambda: sent

    async def settle_counts(self) -> None:
        """Count the window anew off the event loop, if another counter made its figures; a reader would do it on it."""
        if self.log.fold.is_mixed:
            await anyio.to_thread.run_sync(lambda: self.log.fold.window)

    async def use_policy(self, policy: Policy, at: datetime | None) -> None:
        """Put a policy in force for everybody and record it, unless it is the one in force already."""
        await self.catch_up()
        hash_ = policy.hash()
        known = self._known_policy
        if known != hash_ and (known is None or self.overrides or policy != self.policy):
            self.log.adopt(None, {})
            changed = PolicyChanged(policy=hash_, origin=policy.origin)
            await self.log.commit([changed], at=at, values={hash_: policy.canonical()})
        # Only after the append: if the store refuses it, the old policy stays in force.
        self._known_policy, self.overrides = hash_, False
        self.compactor = self.equipment.compactor(policy)

    async def count(self, blocks: Sequence[Block]) -> list[int]:
        """Return the tokens of each block by the policy's counter.

        Long texts are counted off the event loop, and so is any text while the count may have to start an engine.

        Raises:
            ForkedProcess: this process is a fork of the conversation's own.
            WrongEventLoop: another event loop runs here than its own.
        """
        self.log.check_home()  # a thread waits for the running loop, and a forked process has none
        texts = [block.countable() for block in blocks]
        if sum(map(len, texts)) > _THREAD_CHARACTERS or may_start_engine(self.counter):
            counts = await anyio.to_thread.run_sync(self.counter.count_many, texts)
        else:
            counts = self.counter.count_many(texts)
        return [with_media(b, n) for n, b in zip(counts, blocks, strict=True)]

    def new_ids(self, count: int, at: datetime | None) -> list[UUID]:
        """Return ids for events that are about to be appended at a time; without one, now."""
        return event_ids(at or time_of(self.clock), count)

    def new_name(self, at: datetime | None) -> str:
        """Return a name for something that brings none, such as the reply of a server without ids."""
        [name] = self.new_ids(1, at)
        return str(name)

    def new_names(self, count: int, at: datetime | None) -> list[str]:
        """Return names for the messages of a list."""
        batch = self.new_name(at)
        return [f"{batch}_{number}" for number in range(count)]

    async def drafts(self, blocks: Sequence[Block], ids: Sequence[UUID], at: datetime | None) -> list[Draft]:
        """Count blocks and return them as drafts to append, under these ids; a block's own time comes before ``at``.

        The application's hook sees each block first; the drafts hold what it leaves of the blocks.
        """
        blocks = self.equipment.let_in(blocks)
        sizes = await self.count(blocks)
        return [Draft(id_, b.at or at, b, tokens) for id_, b, tokens in zip(ids, blocks, sizes, strict=True)]

    async def append_new(
        self, blocks: Sequence[Block], at: datetime | None, *, ids: Sequence[UUID] = ()
    ) -> list[Block]:
        """Count blocks and append them in one transaction, under ``ids`` if given; do nothing without blocks."""
        if not blocks:
            return []
        drafts = await self.drafts(blocks, ids or self.new_ids(len(blocks), at), at)
        return await self.log.append(drafts, counter=self.counter.name)

    async def extend(self, drafts: Sequence[Draft]) -> list[Block]:
        """Append drafts that are counted already in one transaction."""
        if self.equipment.hooks.on_append is not None:
            drafts = [await self._let_in(draft) for draft in drafts]
        return await self.log.append(drafts, counter=self.counter.name)

    async def _let_in(self, draft: Draft) -> Draft:
        """Return a draft with what the application's hook leaves of its block, counted again."""
        if draft.block is None:
            return draft
        [block] = self.equipment.let_in([draft.block])
        if block == draft.block:
            return draft
        [tokens] = await self.count([block])
        return draft._replace(block=block, tokens=tokens)
