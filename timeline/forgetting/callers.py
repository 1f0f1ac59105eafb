"""Find where the callers of a subagent read its blocks back: their own logs repeat what is redacted in its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.blocks import ToolResult
from timeline.errors import ConversationErased, ConversationNotFound
from timeline.events import appended_block
from timeline.events.addresses import Address
from timeline.log.in_turns import in_turns
from timeline.log.recall_form import repeated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from collections.abc import Set as AbstractSet

    from timeline.events import Event
    from timeline.ports import EventStore


async def answers_to_callers(store: EventStore, removed: AbstractSet[Address]) -> list[Address]:
    """Return the answers of the recall tool in which the callers of subagents were given something back.

    Args:
        store: holds all of them.
        removed: what they may have been given back, with the subagents' conversations.
    """
    found: list[Address] = []
    for caller in await callers_of(store, {address.conversation for address in removed}):
        blocks = in_turns(store.read(caller, types=["block.appended"]))
        found += [
            Address(event.version, caller) async for event in blocks if not removed.isdisjoint(_given_back(event))
        ]
    return found


def _given_back(event: Event) -> Iterator[Address]:
    block = appended_block(event.payload)
    if isinstance(block, ToolResult):
        yield from (address for address in repeated(block.text) if address.conversation)


async def callers_of(store: EventStore, conversations: Collection[str]) -> list[str]:
    """Return the conversations that called these as subagents, directly or through others."""
    found: dict[str, None] = {}
    waiting = sorted(conversations)
    for conversation in waiting:
        try:
            parent = (await store.info(conversation)).parent
        except (ConversationNotFound, ConversationErased):
            continue
        if parent is not None and parent.relation == "subagent" and parent.conversation not in found:
            found[parent.conversation] = None
            waiting.append(parent.conversation)
    return [caller for caller in found if caller not in conversations]
