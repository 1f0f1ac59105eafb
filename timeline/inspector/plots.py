"""The calls of a conversation as points: how full its context was at each model call, and which decisions changed it.

The log is read once, and goes on where the last question ended: the tokens by kind are kept up to date with each block
and counted anew only behind a decision.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

import anyio

from timeline.audit.decisions import DECISIONS, decision_of
from timeline.audit.replay import recorded_policy
from timeline.blocks import StageDigest, instant_text
from timeline.events import (
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    BlocksRevealed,
    CompactionCompleted,
    CompactionReverted,
    ContextRendered,
    ModelCalled,
)
from timeline.events.other_payloads import ContextOverflowed
from timeline.inspector.kinds import by_role, kind_of
from timeline.inspector.moments import light_base, lightened
from timeline.inspector.shapes import ChartPoint, Mark
from timeline.inspector.tally import cost_of
from timeline.planning.account import FixedPart, limits_of_policy

if TYPE_CHECKING:
    from timeline.events import Event
    from timeline.fold.fold import Fold
    from timeline.inspector.moments import Moments
    from timeline.lab.prices import PriceTable
    from timeline.ports import ConversationInfo, EventStore

_MOST_KEPT: Final = 16
_CHANGING: Final = (CompactionCompleted, BlocksHidden, BlocksRevealed, BlockRedacted)
"""Events behind which the tokens by kind are counted anew."""


class Plot:
    """The calls and decisions of a conversation up to a version.

    Attributes:
        first_version: of the log when it was read.
        fold: the fold of the last event that was read, without texts.
        points: a point for each call.
        marks: what changed the context.
    """

    def __init__(self, first_version: int, fold: Fold, calls: int) -> None:
        self.first_version = first_version
        self.fold = fold
        self.points: list[ChartPoint] = []
        self.marks: list[Mark] = []
        self._calls = calls
        self._roles = Counter(by_role(fold.window.items))
        self._contexts: dict[int, tuple[ContextRendered, dict[str, int]]] = {}
        self._lines: dict[str, tuple[int, int, int] | None] = {}

    async def take(self, source: Plots, event: Event) -> None:
        """Take up the next event."""
        payload = event.payload
        if isinstance(payload, CompactionReverted):
            self.fold = await source.moments.fold(self.fold.conversation, event.version)
            self._roles = Counter(by_role(self.fold.window.items))
        else:
            self.fold.apply(event.version, event.at, lightened(payload))
            self._count(event)
        if isinstance(payload, ContextRendered):
            self._contexts[event.version] = (payload, dict(self._roles))
        elif isinstance(payload, ModelCalled):
            self.points.append(await self._point(source, event, payload))
        elif isinstance(payload, (*DECISIONS, ContextOverflowed)):
            decided = decision_of(event)
            self.marks.append(
                Mark(version=event.version, at=instant_text(event.at), type=event.type, text=decided.text)
            )

    def _count(self, event: Event) -> None:
        payload = event.payload
        if isinstance(payload, _CHANGING) or (
            isinstance(payload, BlockAppended) and isinstance(payload.block, StageDigest)
        ):
            self._roles = Counter(by_role(self.fold.window.items))
        elif (item := self.fold.live(event.version)) is not None:
            self._roles[kind_of(item)] += item.shown_tokens

    async def _point(self, source: Plots, event: Event, called: ModelCalled) -> ChartPoint:
        self._calls += 1
        rendered, roles = self._contexts.pop(called.answers or 0, (None, dict(self._roles)))
        # A context that no call answered is not asked for again once a later one is.
        self._contexts = {v: kept for v, kept in self._contexts.items() if v > (called.answers or event.version)}
        line = None if rendered is None else await self._line(source, rendered.policy)
        used = called.usage
        return ChartPoint(
            n=self._calls,
            version=event.version,
            at=instant_text(event.at),
            context=called.answers,
            tokens=used.sent_tokens,
            cached=used.cache_read_tokens,
            written=used.cache_write_5m_tokens + used.cache_write_1h_tokens,
            output=used.output_tokens,
            cost=cost_of(called.model, used, source.prices),
            total=None if rendered is None else rendered.total or rendered.tokens,
            limit=None if rendered is None else rendered.limit or (line[0] if line is not None else None),
            trigger=None if line is None else line[1],
            target=None if line is None else line[2],
            by_role={kind: tokens for kind, tokens in roles.items() if tokens},
            error=called.finish_reason == "error" or bool(called.error),
        )

    async def _line(self, source: Plots, hash_: str) -> tuple[int, int, int] | None:
        if hash_ not in self._lines:
            policy = await recorded_policy(source.store, hash_)
            self._lines[hash_] = None if policy is None else limits_of_policy(policy, FixedPart())
        return self._lines[hash_]


class Plots:
    """The plots of the conversations that were asked for last.

    Args:
        store: holds the conversations.
        prices: what tokens cost.
        moments: their folds at past versions.
    """

    def __init__(self, store: EventStore, prices: PriceTable, moments: Moments) -> None:
        self.store = store
        self.prices = prices
        self.moments = moments
        self._kept: OrderedDict[str, Plot] = OrderedDict()

    async def of(self, info: ConversationInfo) -> Plot:
        """Return the plot of a conversation up to its newest event.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        plot = self._kept.pop(info.id, None)
        if plot is None or plot.first_version != info.first_version or plot.fold.version > info.version:
            scavenged = (await self.store.scavenged(info.id)).get("model.called", 0)
            plot = Plot(info.first_version, await light_base(self.store, info.id, info.version), scavenged)
        try:
            async for event in self.store.read(info.id, after=plot.fold.version, until=info.version):
                with anyio.CancelScope(shield=True):  # an event is taken up whole: the next question goes on behind it
                    await plot.take(self, event)
        finally:
            self._kept[info.id] = plot
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return plot
