"""Notice that what was read of a log is no longer what the log says: a redaction writes earlier events anew.

A summary, a replacement or an error gets another text, and another size. The redaction is an event of each conversation
that shares the block, so what was kept of a log holds until one comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timeline.ports import ConversationInfo, EventStore


async def redacted_since(store: EventStore, info: ConversationInfo, version: int) -> bool:
    """Return whether a conversation was redacted behind a version of its log, up to the one that ``info`` is of."""
    if version >= info.version:
        return False
    async for _ in store.read(info.id, after=version, until=info.version, types=["block.redacted"]):
        return True
    return False
