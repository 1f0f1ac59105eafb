"""Ask a store up to which version it holds a conversation, and whether a scavenge left its past whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.errors import ConversationNotFound

if TYPE_CHECKING:
    from timeline.ports import ConversationInfo, EventStore


async def held_version(store: EventStore, conversation: str) -> int:
    """Return the version that a store has of a conversation; 0 where it has none.

    Raises:
        ConversationErased: the conversation was erased there.
    """
    try:
        return (await store.info(conversation)).version
    except ConversationNotFound:
        return 0


async def is_whole(store: EventStore, info: ConversationInfo, until: int) -> bool:
    """Return whether all of a log's own events up to a version are there. A scavenge keeps those that forks share.

    Args:
        store: holds the conversation.
        info: the conversation.
        until: the last version that is asked for, such as the last one that a fork shares.
    """
    if info.first_version == 1:
        return True
    async for event in store.chained(info.id, after=info.base):
        if event.version > until:
            break
        if not event.checksum:
            return False
    return True
