"""Find the stored texts that a conversation names: system prompts, tools and tails of its recorded contexts.

Where contexts were scavenged, the kept snapshots still name their prompts and tools, since the provider's counts are
compared by these. So their texts are still in the store.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from timeline.events import ContextRendered
from timeline.frozen import compact_json

if TYPE_CHECKING:
    from collections.abc import Collection

    from timeline.events import Payload
    from timeline.ports import ConversationInfo, EventStore

_HASHES: Final = re.compile("(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
"""Matches what may be the hash of a text; only the store knows whether it is one."""


def texts_named(payload: Payload) -> set[str]:
    """Return the hashes of the texts that a recorded context names; none for another event."""
    if not isinstance(payload, ContextRendered):
        return set()
    return {hash_ for hash_ in (payload.system, payload.tools, payload.ephemeral) if hash_ is not None}


async def texts_of(store: EventStore, info: ConversationInfo, *, after: int = 0) -> set[str]:
    """Return the hashes of the texts that the contexts of a conversation name, or named, behind a version."""
    found: set[str] = set()
    async for event in store.read(info.id, after=after, types=["context.rendered"]):
        found |= texts_named(event.payload)
    return found | await texts_left(store, info, after=after)


async def texts_left(store: EventStore, info: ConversationInfo, *, after: int = 0) -> set[str]:
    """Return the hashes of prompts and tools that the snapshots kept by a scavenge name, behind a version."""
    found: set[str] = set()
    until: int | None = None
    while info.first_version > 1 and (base := await store.load_base(info.id, until)) is not None:
        if base.snapshot is None or base.snapshot.version <= after:
            break
        # Other parts of the state name only the policy, whose text is the library's own.
        found.update(_HASHES.findall(compact_json(base.snapshot.state.get("reported"))))
        until = base.snapshot.version - 1
    return found


async def named_by_others(store: EventStore, texts: Collection[str], conversations: Collection[str]) -> set[str]:
    """Return those of some texts that other conversations than these name. It stops reading once all are found."""
    left = set(texts)
    others = [info async for info in store.conversations() if info.id not in conversations] if left else []
    for info in others:
        if not left:
            break
        left -= await texts_of(store, info, after=info.base)
    return set(texts) - left
