"""Find the ids most like an unknown one: those of recordings are long, and often typed in part."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from timeline.ports import EventStore

_MOST_NEAR: Final = 3
_MOST_LISTED: Final = 20_000
"""Conversations that are looked at: an unknown id is answered within a second in a store of any size."""
_MOST_COMPARED: Final = 1_000
"""Ids that are compared letter by letter, which takes long."""


async def near_ids(store: EventStore, unknown: str) -> list[str]:
    """Return ids that begin with an unknown one, or else those that are most like it; the likeliest first."""
    begun: list[str] = []
    ids: list[str] = []
    async for info in store.conversations():
        if len(ids) == _MOST_LISTED or len(begun) == _MOST_NEAR:
            break
        ids.append(info.id)
        if unknown and info.id.startswith(unknown):
            begun.append(info.id)
    return begun or get_close_matches(unknown, ids[:_MOST_COMPARED], n=_MOST_NEAR, cutoff=0.75)
