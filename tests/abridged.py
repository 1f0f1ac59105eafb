"""A conversation in which a new result is abridged: it is sent without most numbers of its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline import Timeline, policies
from timeline.blocks import ToolCall, ToolResult

if TYPE_CHECKING:
    from timeline.ports import EventStore

PRINTED = "\n".join(f"{number:6}\tline {number} of the file that is read" for number in range(1, 80))
"""A file as a tool prints it."""


async def read_numbered(store: EventStore, conversation: str = "c") -> Timeline:
    """Read a file, as version 3 of a conversation, and render: version 4 abridges it."""
    timeline = await Timeline.open(store, conversation, policy=policies.none(line_numbers={}))
    await timeline.append(ToolCall(call_id="a", name="read"), ToolResult(call_id="a", text=PRINTED))
    await timeline.render()
    return timeline
