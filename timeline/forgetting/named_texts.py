"""Find the stored texts that recorded contexts name: system prompts, tools and tails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.events import ContextRendered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from timeline.ports import EventStore


async def texts_of(store: EventStore, conversation: str, *, after: int = 0) -> AsyncIterator[str]:
    """Yield the hashes of the texts that a conversation's contexts behind a version name."""
    async for event in store.read(conversation, after=after, types=["context.rendered"]):
        context = event.payload
        if isinstance(context, ContextRendered):
            for hash_ in (context.system, context.tools, context.ephemeral):
                if hash_ is not None:
                    yield hash_


async def named_by_others(store: EventStore, texts: Collection[str], conversations: Collection[str]) -> set[str]:
    """Return those of some texts that other conversations than these name; it reads no further than it has to."""
    left = set(texts)
    others = [info async for info in store.conversations() if info.id not in conversations] if left else []
    for info in others:
        if not left:
            break
        left.difference_update([hash_ async for hash_ in texts_of(store, info.id, after=info.base)])
    return set(texts) - left
