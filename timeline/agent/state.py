"""Report the state of a conversation to a runtime: its compactions, one under way, tools still in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from timeline.blocks import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.fold.window import Window


@dataclass(frozen=True, slots=True)
class CompactionState:
    """How often a conversation was compacted, and whether it is being compacted now.

    Attributes:
        count: compactions in force, superseded ones included.
        last_at: time of the newest compaction; None before the first.
        last_duration: seconds that it took; None where that was not measured.
        compacting: a writer holds the lease and is compacting.
        until: the moment at which that lease expires; None if nobody is compacting.
    """

    count: int
    last_at: datetime | None
    compacting: bool
    until: datetime | None
    last_duration: float | None = None


def compaction_state(window: Window, now: datetime) -> CompactionState:
    """Return a window's compaction state at a moment."""
    lease, newest, done = window.lease, window.summary, window.compaction
    compacting = lease is not None and now < lease.expires_at
    return CompactionState(
        count=window.compactions,
        last_at=None if newest is None else newest.block.at,
        compacting=compacting,
        until=lease.expires_at if lease is not None and compacting else None,
        last_duration=None if done is None else done.duration,
    )


def tools_in_use(window: Window) -> tuple[str, ...]:
    """Return the names of the tools that the window still shows a call of, in the order of their first calls."""
    calls = (i.block for i in window.items if isinstance(i.block, ToolCall) and not i.omitted)
    return tuple(dict.fromkeys(call.name for call in calls))


def still_used(tools: Sequence[Any], window: Window) -> list[Any]:
    """Return the tool schemas whose tool the window still shows a call of."""
    used = {*tools_in_use(window)}
    return [tool for tool in tools if _name(tool) in used]


def _name(tool: Any) -> str:
    """Return the tool's name in a schema of Anthropic's, OpenAI's or Bedrock's, or the name itself."""
    if isinstance(tool, str):
        return tool
    schema = tool if isinstance(tool, dict) else {}
    inner = schema.get("function", schema.get("toolSpec"))
    return str((inner if isinstance(inner, dict) else schema).get("name", ""))
