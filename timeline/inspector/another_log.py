"""Notice that what was read of a log is no longer what the log says.

A redaction writes earlier events anew: a summary, a replacement or an error gets another text, and another size. It is
an event of each conversation that shares the block, so what was kept of a log holds until one comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timeline.ports import ConversationInfo, EventStore


async def is_another_log(
    store: EventStore, info: ConversationInfo, *, first_version: int, reached: int, seen: int
) -> bool:
    """Return whether a log is no longer the one that was read: scavenged, shorter, or redacted.

    Args:
        store: holds the log.
        info: what it says of the conversation now.
        first_version: of the log that was read.
        reached: the last version that was read.
        seen: the version up to which no redaction came since it was read.
    """
    if first_version != info.first_version or reached > info.version:
        return True
    if seen >= info.version:
        return False
    async for _ in store.read(info.id, after=seen, until=info.version, types=["block.redacted"]):
        return True
    return False
