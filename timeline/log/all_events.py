"""Read the events that conversations hold themselves, with nothing left out.

`EventStore.read_all` is made for followers: it ends where an older transaction of the server still writes, in any of
its databases, so that nothing appears behind them later. So events may be stored that it does not return yet.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from timeline.errors import ConversationErased, ConversationNotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from timeline.events import Event
    from timeline.ports import EventStore

_PAUSES: Final = (0.0, 0.01, 0.02, 0.04, 0.08)
"""Seconds between two checks whether other writers have ended: most of them end within milliseconds."""


async def own_events(
    store: EventStore, conversation: str, types: Collection[str] | None = None
) -> AsyncIterator[Event]:
    """Iterate over a conversation's events by version, without those that it shares with what it was forked from.

    One that was erased in the meantime holds none.
    """
    # Its base is read now: it is 0 as soon as the conversation that it was forked from is erased.
    with suppress(ConversationNotFound, ConversationErased):
        base = (await store.info(conversation)).base
        async for event in store.read(conversation, after=base, types=types):
            yield event


async def all_events(store: EventStore, types: Collection[str]) -> AsyncIterator[Event]:
    """Iterate over the events of some types of all conversations: those of each by version.

    One read returns them all, if it reaches everything that was appended before. Where a transaction holds it up, each
    conversation is read by itself, which takes a look-up or two for each.
    """
    if await _is_reached(store):
        async for event in store.read_all(types=types):
            yield event
        return
    for conversation in [info.id async for info in store.conversations()]:
        async for event in own_events(store, conversation, types):
            yield event


async def _is_reached(store: EventStore) -> bool:
    """Return whether a read of all conversations reaches the newest event that the store has now."""
    newest = (await store.fact_reach()).newest_position
    for pause in _PAUSES:
        await asyncio.sleep(pause)
        if await store.head() >= newest:
            return True
    return False
