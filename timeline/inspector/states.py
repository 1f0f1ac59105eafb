"""A conversation at a version: how full its window is, of what, and in which states its blocks are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from timeline.audit.replay import recorded_policy
from timeline.blocks import RangeSummary, StageDigest, ToolCall, ToolResult, instant_text
from timeline.events.addresses import Address
from timeline.inspector.kinds import kind_of
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
    figures = _Figures(window)
    return State(
        conversation=asked.id,
        version=version,
        newest=info.version,
        at=instant_text(fold.at or info.created_at),
        tokens=sum(figures.by_role.values()),
        by_role=figures.by_role,
        states=figures.states,
        window_start=figures.window_start,
        turn_id=window.turn_id,
        calls=window.calls,
        compactions=window.rounds,
        limit=limit,
        trigger=trigger,
        target=target,
        context=None if window.rendered is None else window.rendered.version,
        summary=str(Address(figures.summary)) if figures.summary else None,
        open_calls=tuple(str(Address(version)) for version in figures.open_calls[:_MOST_OPEN]),
        held=window.is_held,
    )


class _Figures:
    """What a window adds up to, in one pass: it may have a hundred thousand items.

    Attributes:
        by_role: tokens as shown, by kind of block.
        states: blocks and their own tokens, by state; what live summaries stand for is ``covered``.
        window_start: as `Window.window_start`.
        summary: version of the newest live summary.
        open_calls: versions of the calls that may still get a result, as `Window.open_calls`.
    """

    def __init__(self, window: Window) -> None:
        kinds, blocks, tokens = Counter[str](), Counter[str](), Counter[str]()
        self.window_start = window.version + 1
        self.summary = 0
        waiting, answered = list[int](), set[int | None]()
        for item in window.items:
            state, block = item.state, item.block
            kind = type(block)
            blocks[state] += 1
            tokens[state] += item.tokens
            plain = state == "visible" and kind is not StageDigest
            kinds[kind_of(item)] += item.tokens if plain else item.shown_tokens
            if isinstance(block, ToolCall):
                if (item.response == window.response or block.pending) and not item.disowned:
                    waiting.append(item.version)
            elif kind is ToolResult:
                answered.add(item.answers)
            if kind is RangeSummary:
                self.summary = max(self.summary, item.version)
            elif item.version < self.window_start and not item.carried:
                self.window_start = item.version
        for made in window.summaries:
            blocks["covered"] += made.covered_blocks
            tokens["covered"] += made.covered_tokens
        self.by_role = {kind: count for kind, count in kinds.items() if count}
        self.states = {state: Counted(blocks=count, tokens=tokens[state]) for state, count in blocks.items()}
        self.open_calls = [version for version in waiting if version not in answered]
