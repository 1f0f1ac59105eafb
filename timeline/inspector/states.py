"""A conversation at a version: how full its window is, of what, and in which states its blocks are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from timeline.audit.replay import recorded_policy
from timeline.blocks import instant_text
from timeline.events.addresses import Address
from timeline.inspector.kinds import by_role
from timeline.inspector.shapes import Counted, State
from timeline.log.history import check_version
from timeline.planning.account import FixedPart, limits_of_policy

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.inspector.asked import AskedState
    from timeline.inspector.reader import Reader

_MOST_OPEN = 100


async def show_state(reader: Reader, asked: AskedState) -> State:
    """Return a conversation at a version: its account, and the states of its blocks.

    Raises:
        ConversationNotFound: there is no such conversation.
        HistoryUnavailable: it does not have that version.
    """
    info = await reader.store.info(asked.id)
    version = info.version if asked.at is None else asked.at
    await check_version(reader.store, asked.id, version)
    fold = await reader.moments.fold(asked.id, version)
    window = fold.window
    policy = await recorded_policy(reader.store, window.policy)
    limit, trigger, target = (None, None, None) if policy is None else limits_of_policy(policy, FixedPart())
    return State(
        conversation=asked.id,
        version=version,
        newest=info.version,
        at=instant_text(fold.at or info.created_at),
        tokens=window.tokens,
        by_role=by_role(window.items),
        states=_states(window),
        window_start=window.window_start,
        turn_id=window.turn_id,
        calls=window.calls,
        compactions=window.rounds,
        limit=limit,
        trigger=trigger,
        target=target,
        context=None if window.rendered is None else window.rendered.version,
        summary=None if window.summary is None else str(Address(window.summary.version)),
        open_calls=tuple(str(Address(item.version)) for item in window.open_calls()[:_MOST_OPEN]),
        held=window.is_held,
    )


def _states(window: Window) -> dict[str, Counted]:
    blocks: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for item in window.items:
        blocks[item.state] += 1
        tokens[item.state] += item.tokens
    for made in window.summaries:
        blocks["covered"] += made.covered_blocks
        tokens["covered"] += made.covered_tokens
    return {state: Counted(blocks=count, tokens=tokens[state]) for state, count in blocks.items()}
