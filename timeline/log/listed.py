"""List the conversations of a store, also of one that is damaged: `listed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.errors import StoreCorrupt

if TYPE_CHECKING:
    from timeline.ports import ConversationInfo, EventStore


async def listed(store: EventStore) -> tuple[list[ConversationInfo], StoreCorrupt | None]:
    """Return all conversations that can be listed, and the error that says which cannot, or of which only the row."""
    infos = []
    try:
        async for info in store.conversations():
            infos.append(info)  # noqa: PERF401 - kept when a later one cannot be read
        await store.check_listed()
    except StoreCorrupt as error:
        return infos, error
    return infos, None
