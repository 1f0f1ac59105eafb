"""Hiding as one decision: append a batch that was planned, and say what it was, with all figures of it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from timeline.blocks import ToolCall, ToolResult
from timeline.errors import VersionConflict
from timeline.planning.budget import costs
from timeline.planning.steps import plan_hides
from timeline.projection.context import Taken

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.compaction import Compactor
    from timeline.events import Payload
    from timeline.fold.window import Window
    from timeline.log import Log
    from timeline.planning.plans import Hides
    from timeline.policy.model import Policy
    from timeline.policy.steps import HidingStep


async def hide_by_step(compactor: Compactor, log: Log, now: datetime, step: HidingStep) -> list[Taken]:
    """Carry out a step that hides blocks; return what was done, nothing where nothing is to hide.

    Args:
        compactor: of the policy.
        log: of the conversation.
        now: its time.
        step: which one.
    """
    chosen: list[tuple[Hides, Window]] = []

    async def choose() -> Sequence[Payload]:
        chosen.clear()
        window = log.fold.window
        hides = plan_hides(step, window, compactor.policy, compactor.counter)
        if hides is None:
            return ()
        chosen.append((hides, window))
        return [hides.event]

    with suppress(VersionConflict):  # then it is left to the next pass
        if await log.decide(choose, at=now):
            return [hidden_by(hides, window, compactor.policy) for hides, window in chosen]
    return []


def hidden_by(hides: Hides, window: Window, policy: Policy) -> Taken:
    """Tell a decision to hide: the event's own figures, the messages' tokens before and after, the tools' outputs.

    Args:
        hides: what was appended.
        window: what it was planned from.
        policy: that it was planned under.
    """
    event = hides.event
    chosen = {stand_in.version for stand_in in event.blocks}
    names = {item.version: item.block.name for item in window.items if isinstance(item.block, ToolCall)}
    tools = [
        item.block.name or names.get(item.answers or 0, "")
        for item in window.items
        if item.version in chosen and isinstance(item.block, ToolResult)
    ]
    before = sum(costs(window.items, policy))
    facts: dict[str, int | str] = {
        **event.facts,
        "before_tokens": before,
        "after_tokens": before - hides.freed,
    }
    if tools:
        facts["outputs"] = len(tools)
    if told := ", ".join(dict.fromkeys(name for name in tools if name)):
        facts["tools"] = told
    return Taken(kind="hidden", reason=event.reason, facts=facts)
