"""A conversation at a version: how full its window is, of what, and in which states its blocks are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.audit.replay import recorded_policy
from timeline.blocks import instant_text
from timeline.events.addresses import Address
from timeline.inspector.shapes import Counted, State
from timeline.log.history import check_version
from timeline.planning.account import FixedPart, limits_of_policy

if TYPE_CHECKING:
    from timeline.inspector.asked import AskedState
    from timeline.inspector.reader import Reader

_MOST_OPEN = 100


async def show_state(reader: Reader, asked: AskedState) -> State:
    """Return a conversation at a version: its account, and the states of its blocks."""
    info = await reader.store.info(asked.id)
    version = info.version if asked.at is None else asked.at
    await check_version(reader.store, asked.id, version)
    figures = await reader.moments.figures(asked.id, version)
    state = figures.state
    policy = await recorded_policy(reader.store, state.policy)
    limit, trigger, target = (None, None, None) if policy is None else limits_of_policy(policy, FixedPart())
    return State(
        conversation=asked.id,
        at_version=version,
        version=info.version,
        at=instant_text(figures.at or info.created_at),
        tokens=sum(figures.by_role.values()),
        ratio=state.reported.ratio_from(None if policy is None else policy.first_ratio),
        by_role={kind: count for kind, count in figures.by_role.items() if count},
        states={
            name: Counted(blocks=count, tokens=figures.tokens.get(name, 0))
            for name, count in figures.blocks.items()
            if count
        },
        window_start=version + 1 if figures.window_start is None else figures.window_start,
        turn_id=figures.turn_id,
        calls=state.calls,
        compactions=state.compactions,
        limit=limit,
        trigger=trigger,
        target=target,
        context=None if state.rendered is None else state.rendered.version,
        summary_address=str(Address(figures.summary)) if figures.summary else None,
        open_calls=tuple(str(Address(call)) for call in figures.open_calls[:_MOST_OPEN]),
        held=bool(state.hold),
    )
