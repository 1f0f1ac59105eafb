"""The same log under another policy: run in a thread of its own on a store in memory, so that nothing waits for it."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from timeline import open_store
from timeline.audit.replay import recorded_policy
from timeline.errors import InvalidFilter
from timeline.frozen import compact_json
from timeline.inspector.asked import AskedChart
from timeline.inspector.chart import show_chart
from timeline.inspector.shapes import ReplayedCall, WhatIf
from timeline.lab.facts.needs import needs_of
from timeline.lab.replay import replay
from timeline.lab.simulate import simulate
from timeline.lab.sizes import measure
from timeline.policy.files import by_name
from timeline.policy.model import Policy
from timeline.portable.stored import stored_conversation

if TYPE_CHECKING:
    from timeline.inspector.asked import AskedWhatIf
    from timeline.inspector.reader import Reader
    from timeline.inspector.shapes import Chart
    from timeline.lab.prices import PriceTable
    from timeline.lab.replay import SentCall
    from timeline.lab.results import ReplayedCallRow as LabRow
    from timeline.lab.results import RunResult
    from timeline.portable.stored import StoredConversation
    from timeline.ports import ConversationInfo

MOST_EVENTS: Final = 20_000
"""Events of the longest log that is run again while a user waits."""
MOST_PRICED: Final = 5_000
"""Events of the longest one that is priced too: each call's context is built, and searched for what was used of it."""


async def show_what_if(reader: Reader, asked: AskedWhatIf) -> WhatIf:
    """Run a log again from its beginning under another policy or limit; nothing of it is written.

    Raises:
        InvalidFilter: the log is too long, or names no policy where none is asked for.
    """
    info = await reader.store.info(asked.id)
    if info.version > MOST_EVENTS:
        cure = "Run it with `timeline simulate`, which takes the time that it needs"
        raise InvalidFilter("id", f"this log has {info.version:,} events; {MOST_EVENTS:,} are run again here. {cure}")
    policy = await _policy(reader, asked, info)
    stored = await stored_conversation(reader.store, asked.id)
    stopped = Event()
    try:
        async with reader.trying:
            dumped = await anyio.to_thread.run_sync(_simulated, stored, policy, stopped, abandon_on_cancel=True)
            run = await anyio.to_thread.run_sync(
                _priced, stored, policy, reader.prices, stopped, abandon_on_cancel=True
            )
    finally:
        stopped.set()
    recorded = await show_chart(reader, AskedChart(id=asked.id, limit=5_000))
    calls = () if run is None else tuple(map(_call, run.rows))
    return WhatIf(
        conversation=asked.id,
        policy=policy.name,
        max_tokens=policy.max_tokens,
        simulation=dumped,
        recorded=_recorded(recorded),
        priced=None if run is None else run.dump(),
        not_priced="" if run is not None else _not_priced(stored),
        calls=calls,
    )


async def _policy(reader: Reader, asked: AskedWhatIf, info: ConversationInfo) -> Policy:
    """Return the policy that is asked for; where none is, that of the log, with the limit that is asked for."""
    limit = {} if asked.max_tokens is None else {"max_tokens": asked.max_tokens}
    if asked.policy:
        return by_name(asked.policy, **limit)
    own = await recorded_policy(reader.store, (await reader.tallies.of(info)).policy)
    if own is None:
        raise InvalidFilter("policy", "the log names no policy. Name one, such as balanced")
    return Policy.parse(compact_json({**own.model_dump(mode="json"), **limit}))


class _Stopped(Exception):
    """Nobody waits for the answer any more."""


def _simulated(stored: StoredConversation, policy: Policy, stopped: Event) -> dict[str, Any]:
    """Run a log in this thread, in an event loop of its own, until nobody waits for it."""

    def go_on(_events: int) -> None:
        if stopped.is_set():
            raise _Stopped

    async def run() -> dict[str, Any]:
        async with open_store("memory://") as store:
            return (await simulate(store, stored.recording, policy, on_progress=go_on)).dump()

    return asyncio.run(run())


def _priced(stored: StoredConversation, policy: Policy, prices: PriceTable, stopped: Event) -> RunResult | None:
    """Price a log under a policy in this thread, and find the facts that its answers used; None where it has no calls.

    Its figures are those of `timeline lab --facts`.
    """
    if len(stored.events) > MOST_PRICED:
        return None
    measured = measure(stored.recording)
    if not measured.calls:
        return None

    def go_on(_sent: SentCall) -> None:
        if stopped.is_set():
            raise _Stopped

    return asyncio.run(replay(measured, policy, prices.price_of, needs=needs_of(measured), watch=go_on))


def _not_priced(stored: StoredConversation) -> str:
    if len(stored.events) > MOST_PRICED:
        return f"logs of more than {MOST_PRICED:,} events are priced by `timeline lab`"
    return "no model call was recorded, so that there is nothing to price"


def _call(row: LabRow) -> ReplayedCall:
    return ReplayedCall(
        number=row.number,
        tokens=row.tokens,
        cost=round(row.money + row.summary_money, 6),
        compactions=row.compactions,
    )


def _recorded(chart: Chart) -> dict[str, Any]:
    """Return the figures of the log as it is, as far as it has them."""
    done = [mark for mark in chart.marks if mark.type == "compaction.completed"]
    costs = [point.cost for point in chart.points]
    return {
        "renders": sum(point.context is not None for point in chart.points),
        "compactions": len(done),
        "largest": max((point.total or point.sent_tokens for point in chart.points), default=0),
        "over_limit": sum((point.total or 0) > (point.limit or point.total or 0) for point in chart.points),
        "cost": None if None in costs else round(sum(cost or 0 for cost in costs), 6),
    }
