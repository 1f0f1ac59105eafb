"""Which part of a log is whole after a scavenge: forks keep what they share, so the past of one may be all there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timeline.ports import ConversationInfo, EventStore


async def is_whole(store: EventStore, info: ConversationInfo, until: int) -> bool:
    """Return whether all of a log's own events up to a version are there.

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
