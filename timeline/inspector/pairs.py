"""Calls and their results: which block answers which, and which has nothing on the other side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolCall, ToolResult
from timeline.errors import HistoryUnavailable
from timeline.events import appended_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.ports import EventStore

_CALL: Final = ".call"
_RESULT: Final = ".result"


async def partner_of(store: EventStore, conversation: str, block: Block) -> int | None:
    """Return the version of a call's result, or of the call that a result answers, as their paths say it.

    None where there is none, and 0 where it was scavenged.
    """
    path = _other_path(block)
    if path is None:
        return None
    try:
        event = await store.find(conversation, path)
    except HistoryUnavailable:
        return 0
    found = None if event is None else appended_block(event.payload)
    if event is None or found is None or found.call_id != block.call_id:
        return None
    return event.version


def _other_path(block: Block) -> str | None:
    if isinstance(block, ToolCall) and block.path.endswith(_CALL):
        return block.path.removesuffix(_CALL) + _RESULT
    if isinstance(block, ToolResult) and block.path.endswith(_RESULT):
        return block.path.removesuffix(_RESULT) + _CALL
    return None


async def without_partner(store: EventStore, conversation: str, events: Sequence[Event]) -> set[int]:
    """Return the versions of the calls without a result, and of the results without a call, among some events.

    Most have theirs beside them; only for the others the log is asked.
    """
    blocks = {event.version: appended_block(event.payload) for event in events}
    paths = {block.path for block in blocks.values() if block is not None}
    alone: set[int] = set()
    for version, block in blocks.items():
        other = None if block is None else _other_path(block)
        if block is None or other is None or other in paths:
            continue
        if await partner_of(store, conversation, block) is None:
            alone.add(version)
    return alone
