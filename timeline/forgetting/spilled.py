"""Find the other half of a large result: whole in a conversation of its own, and as a preview in the session's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.blocks import ToolCall, ToolResult
from timeline.errors import ConversationErased, ConversationNotFound
from timeline.events import appended_block
from timeline.events.addresses import Address
from timeline.fold.window import TOMBSTONE
from timeline.forgetting.callers import callers_of
from timeline.log.in_turns import in_turns
from timeline.log.spilled import spilled_id

if TYPE_CHECKING:
    from collections.abc import Collection

    from timeline.blocks import Block
    from timeline.ports import EventStore


async def other_halves(store: EventStore, removed: Collection[Address]) -> list[Address]:
    """Return the calls and results that say in another conversation what is removed here.

    Args:
        store: holds all of them.
        removed: what is redacted or written anew, with its conversation.
    """
    found: list[Address] = []
    for conversation in sorted({address.conversation for address in removed}):
        versions = sorted(address.version for address in removed if address.conversation == conversation)
        callers = await callers_of(store, [conversation])  # a session keeps the large results of its subagents, too
        whole = [spilled_id(session) for session in (conversation, *callers)]
        previews = [session for session in callers if spilled_id(session) == conversation]
        for other in (*whole, *previews):
            found += await _of_same_calls(store, conversation, versions, other)
    return found


async def _of_same_calls(store: EventStore, conversation: str, versions: list[int], other: str) -> list[Address]:
    try:
        await store.info(other)
    except (ConversationNotFound, ConversationErased):
        return []
    blocks = [appended_block(event.payload) for event in await store.read_versions(conversation, versions)]
    calls = {half for block in blocks if (half := _half(block)) is not None}
    if not calls:
        return []
    return [
        Address(event.version, other)
        async for event in in_turns(store.read(other, types=["block.appended"]))
        if (block := appended_block(event.payload)) is not None and block.text != TOMBSTONE and _half(block) in calls
    ]


def _half(block: Block | None) -> tuple[str, str] | None:
    """Return what a call or a result has in common with its other half."""
    return (block.type, block.call_id) if isinstance(block, ToolCall | ToolResult) else None
