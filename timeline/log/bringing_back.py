"""Bring back what never happened for the agent as it was before: what was hidden is hidden again (ADR 0111).

A redo that showed all of it in full would break the prefix that a provider still has in its cache, and send what was
hidden by hand. As blocks that a user asked to see, old output could then be hidden by no later render either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.errors import BlockProtected
from timeline.events import DISOWNED, BlocksHidden, BlocksRevealed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from timeline.events import Payload
    from timeline.fold.window import Item, Window
    from timeline.ports import EventStore


async def carried_out(
    store: EventStore, conversation: str, window: Window, item: Item, decision: Payload
) -> list[Payload]:
    """Return the events of a decision about a live block: a reveal of a disowned one takes back what left with it.

    Raises:
        BlockProtected: a summary covers some of what left with it, which no reveal shows.
        StoreError: the store failed.
    """
    if item.disowned and isinstance(decision, BlocksRevealed):
        await _check_whole(store, conversation, window, item, decision)
        return await as_they_were(store, conversation, window.items, decision.versions)
    return [decision]


async def _check_whole(
    store: EventStore, conversation: str, window: Window, item: Item, decision: BlocksRevealed
) -> None:
    """Refuse to bring back a part of what left: the summary of the rest was written without a word of it.

    Raises:
        BlockProtected: some of it is covered by now.
        StoreError: the store failed.
    """
    live = {other.version for other in window.items}
    left_at = {i.hide.version for i in window.items if i.hide is not None and i.version in decision.versions}
    payloads = [event.payload for event in await store.read_versions(conversation, left_at)]
    left = {block.version for hide in payloads if isinstance(hide, BlocksHidden) for block in hide.blocks}
    if not left <= live:
        raise BlockProtected(
            item.block.path, "a summary covers some of what was taken back with it; undo its compaction first"
        )


async def as_they_were(
    store: EventStore, conversation: str, items: Iterable[Item], versions: Collection[int]
) -> list[Payload]:
    """Return the events that take disowned blocks back, each as it was before it was disowned.

    Args:
        store: holds the conversation.
        conversation: its id.
        items: the live blocks.
        versions: the blocks to take back; one that is not live is revealed, too, for those who ask what happened.

    Raises:
        StoreError: the store failed.
    """
    back = [item for item in items if item.disowned and item.version in versions]
    earlier = {change.version for item in back for change in item.changes}
    events = await store.read_versions(conversation, earlier) if earlier else []
    return brought_back(versions, back, {event.version: event.payload for event in events})


def brought_back(versions: Iterable[int], back: Iterable[Item], decided: Mapping[int, Payload]) -> list[Payload]:
    """Return what reveals blocks, and behind it the decisions that held about them before, taken once more.

    Args:
        versions: the blocks.
        back: those of them that are live.
        decided: the earlier decisions about them, by version. One that was scavenged is not there, and holds no more.
    """
    standing = {item.version: _standing(item, decided) for item in back}
    asked_for = [block for block, at in standing.items() if _is_asked_for(decided.get(at))]
    others = [block for block in versions if block not in asked_for]
    reveals = BlocksRevealed(versions=tuple(others), reason="restored"), BlocksRevealed(versions=tuple(asked_for))
    hides = ((at, decided.get(at)) for at in sorted({*standing.values()}))
    again = [_anew(hide, at, standing) for at, hide in hides if isinstance(hide, BlocksHidden)]
    return [*(reveal for reveal in reveals if reveal.versions), *again]


def _standing(item: Item, decided: Mapping[int, Payload]) -> int:
    """Return the version of the decision that held about a block before it was disowned; 0 without one."""
    for change in reversed(item.changes):
        decision = decided.get(change.version)
        if not isinstance(decision, BlocksHidden) or decision.reason not in DISOWNED:
            return change.version
    return 0


def _is_asked_for(decision: Payload | None) -> bool:
    return isinstance(decision, BlocksRevealed) and decision.reason == "manual"


def _anew(hide: BlocksHidden, at: int, standing: Mapping[int, int]) -> BlocksHidden:
    """Return a hide of those of its blocks about which it held. It is no step of a compaction any more."""
    blocks = tuple(block for block in hide.blocks if standing.get(block.version) == at)
    unsaid = tuple(block.version for block in blocks if block.version in hide.unsaid)
    return hide.model_copy(update={"blocks": blocks, "unsaid": unsaid, "pruned": None})
