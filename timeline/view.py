"""`TimelineView`: a conversation to look at, as it was or as it is; what a read-only timeline and a live one share.

Rendering here is a dry run: it takes the decisions that a recorded render would take, and appends nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from timeline import arguments
from timeline.blocks import Block, RangeSummary, utc
from timeline.dry import DryLog
from timeline.errors import BlockNotFound, BudgetImpossible, ContextOverflow, InvalidArgument
from timeline.events import BlockRedacted, CompactionCompleted, appended_block
from timeline.fold.window import tombstone
from timeline.frozen import compact_json, repair_json
from timeline.planning.budget import account, fixed_part, scaled
from timeline.ports import Hooks
from timeline.projection.context import RenderedContext
from timeline.projection.project import PROJECTION, Projector
from timeline.relief import relieve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from timeline.compaction import Compactor
    from timeline.fold.window import Window
    from timeline.log import Log
    from timeline.planning.budget import FixedPart
    from timeline.policy.model import Policy
    from timeline.ports import Clock, EventStore, TokenCounter
    from timeline.projection.context import Taken

_MOST_KEPT_COUNTS: Final = 200
"""Counts of prompts, tools and tails that are kept from one render to the next."""


class TimelineView:
    """A conversation at one version, read-only: it renders, reads and explains. `Timeline.at` makes one.

    Attributes:
        id: of the conversation.
        policy: in force for renders and compactions.
    """

    def __init__(self, log: Log, store: EventStore, policy: Policy, compactor: Compactor, clock: Clock) -> None:
        self.id = log.fold.conversation
        self.policy = policy
        self._log = log
        self._store = store
        self._compactor = compactor
        self._clock = clock
        self._projector = Projector()
        self._fixed_tokens: dict[str, int] = {}

    @property
    def counter(self) -> TokenCounter:
        """The policy's token counter."""
        return self._compactor.counter

    @property
    def version(self) -> int:
        """Version of the last event that this timeline knows of."""
        return self._log.fold.version

    @property
    def window(self) -> Window:
        """What the model could see now."""
        return self._log.fold.window

    async def render(
        self,
        *,
        system: JsonValue = None,
        tools: Sequence[JsonValue] = (),
        ephemeral: Sequence[str] = (),
        now: datetime | None = None,
    ) -> RenderedContext:
        """Return what the model would have seen here, and append nothing. See `Timeline.render`.

        Raises:
            ContextOverflow: the context is above the limit and cannot be made smaller.
            BudgetImpossible: system prompt, tools and reserves leave no room at all.
        """
        at = moment(now, self._clock)
        return await self._decide_and_project(
            DryLog(self._store, self._log.fold.copy()),
            replace(self._compactor, hooks=Hooks()),
            system=system,
            tools=tools,
            ephemeral=ephemeral,
            now=at,
        )

    async def read(self, path: str) -> Block:
        """Return the block at a path, in full, whatever its state; of a redacted one, the tombstone.

        A summary comes with the full digest of what it covered in ``meta["compaction_digest"]``.

        Raises:
            BlockNotFound: the conversation has no such path.
        """
        event = await self._store.find(self.id, path)
        block = None if event is None else appended_block(event.payload)
        if event is None or block is None or not self._holds(event.version):
            raise BlockNotFound(self.id, path)
        async for erased in self._store.read(self.id, after=event.version, types=["block.redacted"]):
            if isinstance(erased.payload, BlockRedacted) and erased.payload.version == event.version:
                return tombstone(block, erased.payload.reason)
        if isinstance(block, RangeSummary) and isinstance(event.payload, CompactionCompleted):
            digest = event.payload.digest.dump()
            return block.model_copy(update={"meta": {**block.meta, "compaction_digest": digest}})
        return block

    def _holds(self, version: int) -> bool:
        """Say whether an event of the log is in view."""
        return version <= self.version

    async def _decide_and_project(
        self,
        log: Log,
        compactor: Compactor,
        *,
        system: JsonValue,
        tools: Sequence[JsonValue],
        ephemeral: Sequence[str],
        now: datetime,
    ) -> RenderedContext:
        """Take the decisions that are due, through the log, and project what is left."""
        if system is not None and not isinstance(system, str):
            arguments.listed("system", system)
        arguments.listed("tools", tools)
        arguments.texts("ephemeral", ephemeral)
        system, tools, ephemeral = (
            sendable(n, v) for n, v in (("system", system), ("tools", tools), ("ephemeral", ephemeral))
        )
        fixed = fixed_part(self.policy, self._tokens_of, system=system, tools=tools, ephemeral=ephemeral)
        empty = account((), fixed, self.policy)
        if self.policy.automatic and empty.total >= empty.trigger:
            raise BudgetImpossible(empty.facts())
        decisions = await relieve(compactor, log, fixed, now)
        context = self._project(log.fold.window, fixed, decisions, system=system, tools=tools, ephemeral=ephemeral)
        held = log.fold.window.hold == self.policy.digest()  # undone: reported, and not folded again
        if context.account.total > self.policy.max_tokens and not held:
            largest = sorted(((b.path, b.tokens) for b in context.blocks), key=lambda row: -row[1])
            raise ContextOverflow(context.account.facts(), largest[:10])
        return context

    @property
    def _reserved(self) -> int:
        return self.policy.output_reserve + self.policy.safety_buffer

    def _tokens_of(self, text: str) -> int:
        """Count a text of the fixed part; each one once."""
        if text not in self._fixed_tokens:
            if len(self._fixed_tokens) >= _MOST_KEPT_COUNTS:
                self._fixed_tokens.clear()
            self._fixed_tokens[text] = scaled(self.counter.count(text), self.policy)
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
            window=window,
            policy=self.policy,
            neutral=neutral,
            account=bill,
            decisions=tuple(decisions),
            overflow=bill.over_trigger,
        )


def moment(now: datetime | None, clock: Clock, argument: str = "now") -> datetime:
    """Return the moment of a call: the one that it was given, in UTC, or the clock's.

    Raises:
        InvalidArgument: it is no moment, or has no time zone.
    """
    if now is None:
        return clock.now()
    arguments.of_kind(argument, now, datetime, "is a moment, for example datetime.now(UTC)")
    try:
        return utc(now)
    except ValueError as error:
        raise InvalidArgument(argument, str(error)) from None


def sendable(name: str, value: Any) -> Any:
    """Repair what a caller wants sent beside the log.

    Raises:
        InvalidArgument: it has no form in JSON.
    """
    try:
        repaired = repair_json(value)
        compact_json(repaired)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(name, str(error)) from None
    return repaired
