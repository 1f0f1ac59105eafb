"""Copy a stored conversation into another store, so that it can be tried out without writing to its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.errors import HistoryUnavailable
from timeline.events import NewEvent
from timeline.portable.lines import values_of

if TYPE_CHECKING:
    from timeline.ports import EventStore

_BATCH: Final = 500
"""Events in one append."""


async def copy_conversation(store: EventStore, conversation: str, into: EventStore) -> None:
    """Copy a conversation, after the shared part of those that it was forked from, under the same ids and versions.

    Args:
        store: holds the conversation.
        conversation: its id.
        into: a store that has none of them yet, such as ``memory://``.

    Raises:
        ConversationNotFound: there is no such conversation.
        HistoryUnavailable: `timeline scavenge` removed a part of it.
    """
    info = await store.info(conversation)
    line = [(info, info.version)]
    while info.base and info.parent is not None:
        base, info = info.base, await store.info(info.parent.conversation)
        line.append((info, base))
    for ancestor, until in reversed(line):
        if ancestor.first_version > 1:
            raise HistoryUnavailable(ancestor.id, 1, ancestor.first_version, ancestor.version, scavenged=True)
        batch: list[NewEvent] = []
        async for event in store.read(ancestor.id, after=ancestor.base, until=until):
            batch.append(NewEvent(id=event.id, at=event.at, payload=event.payload))
            if len(batch) == _BATCH:
                await _append(store, ancestor.id, batch, into)
                batch = []
        await _append(store, ancestor.id, batch, into)


async def _append(store: EventStore, conversation: str, batch: list[NewEvent], into: EventStore) -> None:
    hashes = {hash_ for event in batch for hash_ in values_of(event.payload)}
    await into.append(conversation, batch, values=await store.values(hashes))
