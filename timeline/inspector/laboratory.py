"""Several policies and limits on one log: run in a thread of its own, call by call, while the page asks how far it is.

The result is what `timeline lab` makes of a log: its figures, and its page. A run that nobody asks about any more ends.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from timeline.errors import InvalidFilter, TimelineError
from timeline.lab.beginnings import Beginnings
from timeline.lab.facts.needs import needs_of
from timeline.lab.replay import replay
from timeline.lab.report.page import page
from timeline.lab.sizes import measure
from timeline.lab.work import Options, Outcome, Work
from timeline.policy.files import by_name
from timeline.portable.stored import stored_conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.inspector.asked import AskedLab
    from timeline.lab.prices import PriceTable
    from timeline.lab.replay import SentCall
    from timeline.lab.sizes import Measured
    from timeline.policy.model import Policy
    from timeline.portable.stored import StoredConversation
    from timeline.ports import EventStore

MOST_EVENTS: Final = 20_000
"""Events of the longest log that is run here; `timeline lab` takes longer ones."""
_LEFT: Final = 15.0
"""Seconds after which a run that nobody asks about is one that nobody waits for."""
_LOOK: Final = 0.05
_MOST_KEPT: Final = 4

Key = tuple[str, int, tuple[str, ...], tuple[int, ...]]


class _Stopped(Exception):
    """Nobody waits for the result any more."""


@dataclass(slots=True)
class Run:
    """The run of a log under some policies and limits, and how far it is.

    Attributes:
        done: calls that were replayed, of ``of``; the latter is 0 until the log was measured.
        asked: when it was asked for last.
        problem: why it ended without a result.
    """

    works: list[Work]
    outcomes: list[Outcome] = field(default_factory=list)
    done: int = 0
    of: int = 0
    asked: float = field(default_factory=monotonic)
    ended: bool = False
    problem: BaseException | None = None
    page: str = ""

    def go(self, stored: StoredConversation, prices: PriceTable) -> None:
        """Run, in the thread that calls."""
        try:
            measured = _measured(stored)
            self.of = len(measured.calls) * len(self.works)
            asyncio.run(self._replayed(measured, prices))
            self.page = page(self.works, self.outcomes)
        except BaseException as problem:  # noqa: BLE001 - it is raised where the result is asked for
            self.problem = problem
        self.ended = True

    async def _replayed(self, measured: Measured, prices: PriceTable) -> None:
        needs, lead = needs_of(measured), Beginnings().lead
        for work in self.works:
            before = self.done
            try:
                run = await replay(
                    measured,
                    work.policy,
                    prices.price_of,
                    name=work.name,
                    file=work.file,
                    needs=needs,
                    watch=self._watch,
                    lead=lead,
                )
                self.outcomes.append(Outcome(runs=(run,)))
            except TimelineError as error:
                self.outcomes.append(Outcome.failed(error))
            self.done = before + len(measured.calls)

    def _watch(self, _sent: SentCall) -> None:
        self.done += 1
        if monotonic() - self.asked > _LEFT:
            raise _Stopped


def _measured(stored: StoredConversation) -> Measured:
    measured = measure(stored.recording)
    if not measured.calls:
        raise InvalidFilter("id", "no model call was recorded, so that there is nothing to compare")
    return measured


class Laboratory:
    """The runs of a store's conversations that were asked for last; one goes on at a time.

    Args:
        store: holds the conversations.
        prices: what tokens cost.
    """

    def __init__(self, store: EventStore, prices: PriceTable) -> None:
        self._store = store
        self._prices = prices
        self._runs: OrderedDict[Key, Run] = OrderedDict()

    async def run(self, asked: AskedLab) -> Run:
        """Return the run that is asked for, which begins with the first question and goes on behind the answer."""
        info = await self._store.info(asked.id)
        key = (asked.id, info.version, asked.names, asked.numbers)
        run = self._runs.get(key)
        if run is None or isinstance(run.problem, _Stopped):
            run = await self._begun(asked, info.version)
            self._runs[key] = run
        self._runs.move_to_end(key)
        while len(self._runs) > _MOST_KEPT:
            self._runs.popitem(last=False)
        end = monotonic() + asked.wait
        while not run.ended and monotonic() < end:
            run.asked = monotonic()
            await anyio.sleep(_LOOK)
        if run.problem is not None and not isinstance(run.problem, _Stopped):
            raise run.problem
        return run

    async def _begun(self, asked: AskedLab, version: int) -> Run:
        if version > MOST_EVENTS:
            cure = "Run it with `timeline lab`, which takes the time that it needs"
            raise InvalidFilter("id", f"this log has {version:,} events; {MOST_EVENTS:,} are run again here. {cure}")
        for going in self._runs.values():
            going.asked = -_LEFT  # what was asked for before is not looked at any more
        works = _works(asked, asked.names, asked.numbers, self._prices)
        stored = await stored_conversation(self._store, asked.id)
        run = Run(works)
        Thread(target=run.go, args=(stored, self._prices), daemon=True, name="timeline-lab").start()
        return run


def _works(asked: AskedLab, names: Sequence[str], limits: Sequence[int], prices: PriceTable) -> list[Work]:
    """Return the units of a comparison, those of a limit together."""
    options = Options(prices=prices, facts=True)
    units: list[tuple[str, Policy]] = [(name, by_name(name, max_tokens=limit)) for limit in limits for name in names]
    return [Work(file=asked.id, policy=policy, name=name, options=options) for name, policy in units]
