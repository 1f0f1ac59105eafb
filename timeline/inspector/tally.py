"""The figures of a conversation that its row shows, taken up from the log as it grows: no fold, no text."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from timeline.audit.replay import recorded_policy
from timeline.events import (
    BlocksHidden,
    CompactionCompleted,
    CompactionReverted,
    ContextRendered,
    ConversationOpened,
    ModelCalled,
    PolicyChanged,
    appended_block,
)
from timeline.events.other_payloads import CompactionFailed
from timeline.fold.turns import turn_number
from timeline.inspector.another_log import is_another_log
from timeline.lifecycle.live import moved_by

if TYPE_CHECKING:
    from timeline.events import Event, PolicyOrigin
    from timeline.lab.prices import PriceTable
    from timeline.ports import ConversationInfo, EventStore
    from timeline.usage import Usage

TYPES: Final = (
    "blocks.hidden",
    "compaction.completed",
    "compaction.failed",
    "compaction.reverted",
    "context.rendered",
    "conversation.opened",
    "model.called",
    "policy.changed",
)
_MOST: Final = 5_000
"""Conversations whose figures are kept."""
_TAIL: Final = 50
"""Events at the end of a log that are looked at for its newest turn."""


@dataclass(slots=True)
class Tally:
    """The figures of a conversation up to a version.

    Attributes:
        version: the last version that is in the figures; ``first_version`` that of the log at that time.
        policy: hash of the policy in force, and its origin.
        calls: the number of recorded calls; ``newest_call`` is the version of the newest one.
        cost: of calls and summaries, in US dollars; ``unpriced`` are models without a price.
        sent: what the newest request sent, and its answer; None before the first.
        grown: what came behind that request, in the counter's tokens; ``ratio`` are the request's for one of these.
        limit: of the newest recorded context.
        in_force: versions of the compactions in force, each with the tokens by which it moved the context.
        setback: the newest compaction that failed or was refused since the last one that did not, and its version.
        held: version of an undo behind which no automatic compaction follows.
        failed: the newest call, if it failed, as its version and its error.
    """

    version: int = 0
    first_version: int = 1
    policy: str | None = None
    origin: PolicyOrigin | None = None
    calls: int = 0
    newest_call: int | None = None
    model: str = ""
    cost: float = 0.0
    unpriced: set[str] = field(default_factory=set)
    sent: int | None = None
    grown: int = 0
    ratio: float = 1.0
    limit: int | None = None
    in_force: dict[int, int] = field(default_factory=dict)
    setback: tuple[int, str, str] | None = None
    held: int | None = None
    failed: tuple[int, str] | None = None
    rendered: int | None = None
    turns: int | None = None

    @property
    def tokens(self) -> int | None:
        """What the next request would send, as far as the log says."""
        return None if self.sent is None else max(0, self.sent + round(self.grown * self.ratio))

    def take(self, event: Event, prices: PriceTable) -> None:
        """Take up the next event."""
        payload = event.payload
        match payload:
            case ConversationOpened() | PolicyChanged():
                if payload.policy is not None:
                    self.policy, self.origin, self.held = payload.policy, payload.origin, None
            case ModelCalled():
                self._called(event.version, payload, prices)
            case ContextRendered():
                self.sent, self.grown, self.rendered = payload.total or payload.tokens, 0, event.version
                self.ratio = payload.ratio
                self.limit = payload.limit or self.limit
            case CompactionCompleted():
                self.in_force[event.version] = moved_by(payload)
                self.setback = None
                self.held = None if payload.reason in {"forced", "refused"} else self.held
                self.grown += moved_by(payload)
                if payload.written_by.usage is not None:
                    self._pay(payload.written_by.model or "", payload.written_by.usage, prices)
            case CompactionReverted():
                self.held = event.version
                self.grown -= sum(self.in_force.pop(version, 0) for version in payload.versions)
            case CompactionFailed():
                self.setback = (event.version, payload.reason, payload.detail)
            case BlocksHidden():
                self.grown += moved_by(payload)

    def _called(self, version: int, called: ModelCalled, prices: PriceTable) -> None:
        self.calls += 1
        self.newest_call, self.model = version, called.model or self.model
        ended = called.finish_reason == "error" or called.error
        self.failed = (version, called.error) if ended else None
        self._pay(called.model, called.usage, prices)
        if called.answers is None and called.usage.sent_tokens:
            self.sent, self.grown, self.rendered = called.usage.sent_tokens, 0, version
            self.ratio = 1.0

    def _pay(self, model: str, usage: Usage, prices: PriceTable) -> None:
        if (cost := cost_of(model, usage, prices)) is None:
            self.unpriced.add(model)
        else:
            self.cost += cost


def cost_of(model: str, usage: Usage | None, prices: PriceTable) -> float | None:
    """Return the price of a call in US dollars; None where the model has no known price, 0 without any usage."""
    if usage is None or not (usage.sent_tokens or usage.output_tokens):
        return 0.0
    price = prices.price_of(model)
    return price.money(price.units_of(usage)) if price.known else None


class Tallies:
    """The figures of the conversations of a store, those that were asked for last."""

    def __init__(self, store: EventStore, prices: PriceTable) -> None:
        self._store = store
        self._prices = prices
        self._kept: OrderedDict[str, Tally] = OrderedDict()

    async def of(self, info: ConversationInfo) -> Tally:
        """Return the figures of a conversation as of its newest event."""
        tally = self._kept.pop(info.id, None)
        if tally is None or await self._is_other(info, tally):
            tally = Tally(first_version=info.first_version)
        if tally.version < info.version:
            await self._read(info, tally)
        self._kept[info.id] = tally
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return tally

    async def _is_other(self, info: ConversationInfo, tally: Tally) -> bool:
        """Return whether the log is no longer the one that was read."""
        return await is_another_log(
            self._store, info, first_version=tally.first_version, reached=tally.version, seen=tally.version
        )

    async def _read(self, info: ConversationInfo, tally: Tally) -> None:
        """Take up the events behind a tally, up to the version that the conversation had when it was asked for."""
        store, since, until = self._store, tally.version, info.version
        if since == 0:
            tally.calls = (await store.scavenged(info.id)).get("model.called", 0)
        async for event in store.read(info.id, after=since, until=until, types=TYPES):
            tally.take(event, self._prices)
        if tally.limit is None and (policy := await recorded_policy(store, tally.policy)) is not None:
            tally.limit = policy.max_tokens
        behind = max(since, tally.rendered or 0)
        if tally.sent is not None:
            async for event in store.read(info.id, after=behind, until=until, types=["block.appended"]):
                tally.grown += moved_by(event.payload)
        async for event in store.read(info.id, after=max(since, until - _TAIL), until=until):
            block = appended_block(event.payload)
            if block is not None and (number := turn_number(block.turn_id)) is not None:
                tally.turns = max(tally.turns or 0, number)
        tally.version = until
