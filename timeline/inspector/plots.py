"""The calls of a conversation as points: how full its context was at each model call, and which decisions changed it.

The log is read once, and goes on where the last question ended: the tokens by kind are kept up to date with each block
and counted anew only behind a decision. A long log is answered in slices, as far as it was read; what is folded on the
way is left to `Moments` as keyframes, so that the log is not read again for a state of its past.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from time import monotonic
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
from timeline.fold.counts import plainly
from timeline.inspector.another_log import is_another_log
from timeline.inspector.figures import Figures, Growing
from timeline.inspector.kinds import by_role
from timeline.inspector.moments import light_base, lightened
from timeline.inspector.shapes import ChartPoint, Mark
from timeline.inspector.tally import cost_of
from timeline.log.history import reverted_versions
from timeline.log.in_turns import in_turns
from timeline.planning.account import FixedPart, limits_of_policy
from timeline.planning.costs import category_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from timeline.events import Event
    from timeline.fold.fold import Fold
    from timeline.inspector.moments import Moments
    from timeline.lab.prices import PriceTable
    from timeline.ports import ConversationInfo, EventStore

_MOST_KEPT: Final = 16
_GLANCE: Final = 100
"""Events between two looks at the clock."""
_CHANGING: Final = (CompactionCompleted, BlocksHidden, BlocksRevealed, BlockRedacted)
"""Events behind which the tokens by kind are counted anew."""


class Plot:
    """The calls and decisions of a conversation up to a version.

    Attributes:
        first_version: of the log when it was read.
        seen: the newest version of the log when it was last asked for: no redaction up to it came since it was begun.
        fold: the fold of the last event that was read, without texts.
        points: a point for each call.
        marks: what changed the context.
        turns: versions at which turns begin.
    """

    def __init__(self, info: ConversationInfo, fold: Fold, calls: int, taken_back: Collection[int] = ()) -> None:
        self.first_version: int = info.first_version
        self.seen: int = info.version
        self.fold: Fold = fold
        self.points: list[ChartPoint] = []
        self.marks: list[Mark] = []
        self.turns: list[int] = []
        self._turn = fold.turns.turn_id
        self._calls = calls
        self._taken_back = frozenset(taken_back)
        self._growing: Growing | None = Growing(Figures.of(fold))
        self._blocks = 0
        self._roles = _plain_roles(fold)
        self._contexts: dict[int, tuple[ContextRendered, dict[str, int]]] = {}
        self._lines: dict[str, tuple[int, int, int] | None] = {}

    def take_block(self, source: Plots, event: Event) -> bool:
        """Take up the next event if it appends a block, as most do: that waits for nothing."""
        if type(event.payload) is not BlockAppended:
            return False
        self._blocks += 1
        self._fold(source, event)
        if (turn := event.payload.block.turn_id) != self._turn:
            self._turn = turn
            self.turns.append(event.version)
        return True

    async def take(self, source: Plots, event: Event) -> None:
        """Take up the next event."""
        payload = event.payload
        if isinstance(payload, CompactionReverted):
            self._taken_back |= frozenset(payload.versions)
            self._growing = None
            self.fold = await source.moments.fold(self.fold.conversation, event.version)
            self._roles = _plain_roles(self.fold)
        else:
            self._fold(source, event)
        if isinstance(payload, ContextRendered):
            self._contexts[event.version] = (payload, dict(self._roles))
        elif isinstance(payload, ModelCalled):
            self.points.append(await self._point(source, event, payload))
        elif isinstance(payload, (*DECISIONS, ContextOverflowed)):
            self._mark(event)

    def _mark(self, event: Event) -> None:
        """Mark a decision, unless it only says how new blocks are sent: nothing that was sent before is changed."""
        decided = decision_of(event)
        if not decided.keeps_prefix:
            at = instant_text(event.at)
            self.marks.append(Mark(version=event.version, at=at, type=event.type, text=decided.text))

    def _fold(self, source: Plots, event: Event) -> None:
        """Fold an event, count it, and leave a keyframe where one belongs."""
        self.fold.apply(event.version, event.at, lightened(event.payload))
        self._count(event)
        if self._growing is not None and not self._growing.take(event):
            self._growing = None
        if event.version % source.moments.every == 0:
            figures = Figures.of(self.fold) if self._growing is None else self._growing.figures(self.fold.turns)
            self._growing = Growing(figures)
            about = {"first_version": self.first_version, "seen": self.seen, "blocks": self._blocks}
            source.moments.offer(self.fold, self._taken_back, figures, **about)
            self._blocks = 0

    def _count(self, event: Event) -> None:
        payload = event.payload
        if isinstance(payload, _CHANGING) or (
            isinstance(payload, BlockAppended) and isinstance(payload.block, StageDigest)
        ):
            self._roles = _plain_roles(self.fold)
        elif (item := self.fold.live(event.version)) is not None:
            self._roles[category_of(item)] += plainly(item).shown_tokens

    async def _point(self, source: Plots, event: Event, called: ModelCalled) -> ChartPoint:
        self._calls += 1
        rendered, roles = self._contexts.pop(called.answers or 0, (None, dict(self._roles)))
        # A context that no call answered is not asked for again once a later one is.
        self._contexts = {v: kept for v, kept in self._contexts.items() if v > (called.answers or event.version)}
        line = None if rendered is None else await self._line(source, rendered.policy)
        used = called.usage
        return ChartPoint(
            number=self._calls,
            version=event.version,
            at=instant_text(event.at),
            context=called.answers,
            sent_tokens=used.sent_tokens,
            cache_read_tokens=used.cache_read_tokens,
            cache_write_tokens=used.cache_write_tokens,
            output_tokens=used.output_tokens,
            cost=cost_of(called.model, used, source.prices),
            total=None if rendered is None else rendered.total or rendered.tokens,
            limit=None if rendered is None else rendered.limit or (line[0] if line is not None else None),
            trigger=None if line is None else line[1],
            target=None if line is None else line[2],
            by_role={kind: tokens for kind, tokens in roles.items() if tokens},
            ratio=1.0 if rendered is None else rendered.ratio,
            failed=called.finish_reason == "error" or bool(called.error),
        )

    async def _line(self, source: Plots, hash_: str) -> tuple[int, int, int] | None:
        if hash_ not in self._lines:
            policy = await recorded_policy(source.store, hash_)
            self._lines[hash_] = None if policy is None else limits_of_policy(policy, FixedPart())
        return self._lines[hash_]


def _plain_roles(fold: Fold) -> Counter[str]:
    """Return the tokens by kind in the counter's own: what a decision wrote is stored in the provider's."""
    return Counter(by_role(map(plainly, fold.window.items)))


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
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def of(self, info: ConversationInfo, seconds: float) -> Plot:
        """Return the plot of a conversation up to its newest event, or as far as it was read in so many seconds."""
        kept = self._kept.setdefault(info.id, _Kept())
        self._kept.move_to_end(info.id)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        async with kept.reading:
            plot = kept.plot
            if plot is None or await self._is_other(info, plot):
                plot = kept.plot = await self._begun(info)
            plot.seen = max(plot.seen, info.version)
            await self._read(plot, info, monotonic() + seconds)
            return plot

    async def _is_other(self, info: ConversationInfo, plot: Plot) -> bool:
        """Return whether the log is no longer the one that was read."""
        return await is_another_log(
            self.store, info, first_version=plot.first_version, reached=plot.fold.version, seen=plot.seen
        )

    async def _begun(self, info: ConversationInfo) -> Plot:
        """Return a plot of nothing yet: what was scavenged is not in it."""
        scavenged = (await self.store.scavenged(info.id)).get("model.called", 0)
        fold = await light_base(self.store, info.id, info.version)
        return Plot(info, fold, scavenged, await reverted_versions(self.store, info.id, fold.version))

    async def _read(self, plot: Plot, info: ConversationInfo, end: float) -> None:
        async for event in in_turns(self.store.read(info.id, after=plot.fold.version, until=info.version)):
            if not plot.take_block(self, event):
                with anyio.CancelScope(shield=True):  # an event is taken up whole: the next question goes on behind it
                    await plot.take(self, event)
            if event.version % _GLANCE == 0 and monotonic() > end:
                return


@dataclass(slots=True)
class _Kept:
    """The plot of a conversation, which one question at a time takes further."""

    plot: Plot | None = None
    reading: anyio.Lock = field(default_factory=anyio.Lock)
