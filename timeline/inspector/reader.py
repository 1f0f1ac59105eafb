"""A store as the inspector reads it, with what it keeps between requests.

What is kept is named by the version of its conversation: whatever is appended, also an undo or a redaction, makes it
anew. A scavenge appends nothing; it moves the first version.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import anyio

from timeline.audit.calls import read_call
from timeline.inspector.decided import Decisions
from timeline.inspector.laboratory import Laboratory
from timeline.inspector.moments import Moments
from timeline.inspector.plots import Plots
from timeline.inspector.tally import Tallies
from timeline.lab.prices import read_prices

if TYPE_CHECKING:
    from collections.abc import Collection

    from timeline.audit.calls import Call
    from timeline.inspector.asked import Decision
    from timeline.lab.prices import PriceTable
    from timeline.ports import EventStore

_MOST_CALLS: Final = 8
"""Calls that are kept: the pieces of one body are asked for one after the other."""


class Reader:
    """A store, its conversations' figures, and their folds at past versions.

    Args:
        store: the store; nothing is written to it but by decisions.
        prices: what tokens cost; the packaged table unless given.
        allow: the decisions that may be taken.

    Attributes:
        laboratory: the comparisons of policies that were asked for.
        trying: lets one run of a log under another policy go on at a time.
    """

    def __init__(self, store: EventStore, prices: PriceTable | None = None, allow: Collection[Decision] = ()) -> None:
        self.store = store
        self.allow: frozenset[Decision] = frozenset(allow)
        self.prices: PriceTable = read_prices() if prices is None else prices
        self.tallies: Tallies = Tallies(store, self.prices)
        self.decisions: Decisions = Decisions(store)
        self.moments: Moments = Moments(store)
        self.plots: Plots = Plots(store, self.prices, self.moments)
        self.laboratory: Laboratory = Laboratory(store, self.prices)
        self.trying: anyio.CapacityLimiter = anyio.CapacityLimiter(1)
        self._calls: OrderedDict[tuple[str, int, int, int], Call] = OrderedDict()

    async def call(self, conversation: str, number: int) -> Call:
        """Return a model call, built again from the log."""
        info = await self.store.info(conversation)
        key = (conversation, info.version, info.first_version, number)
        call = self._calls.pop(key, None) or await read_call(self.store, conversation, number)
        self._calls[key] = call
        while len(self._calls) > _MOST_CALLS:
            self._calls.popitem(last=False)
        return call
