"""List the conversations of a store, even of a damaged one: `listed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.errors import StoreCorrupt

if TYPE_CHECKING:
    from timeline.ports import ConversationInfo, EventStore


async def listed(store: EventStore) -> tuple[list[ConversationInfo], StoreCorrupt | None]:
    """Return all conversations that can be listed, and the error about those that cannot, or only by their row."""
    infos = []
    try:
        async for info in store.conversations():
            infos.append(info)  # noqa: PERF401 - kept when a later one cannot be read
        await store.check_listed()
    except StoreCorrupt as error:
        return infos, error
    return infos, None
