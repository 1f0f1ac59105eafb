"""Undo: which compactions are taken back, newest first (design, section 4).

A compaction whose summary a later one covers cannot go alone: what it brings back would lie inside a covered range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.errors import CompactionCovered, UndoUnavailable
from timeline.events import CompactionCompleted, Covers
from timeline.log.history import reverted_versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from timeline.ports import EventStore


async def standing_compactions(store: EventStore, conversation: str) -> dict[int, Covers]:
    """Return what each compaction that was not taken back covers, by its version, oldest first."""
    reverted = await reverted_versions(store, conversation)
    return {
        event.version: event.payload.covers
        async for event in store.read(conversation, types=["compaction.completed"])
        if isinstance(event.payload, CompactionCompleted) and event.version not in reverted
    }


def versions_to_revert(
    conversation: str, standing: Mapping[int, Covers], version: int | None, *, cascade: bool
) -> list[int]:
    """Return the compactions to take back, newest first: the newest one, or the one that is named.

    Args:
        conversation: for the messages.
        standing: what each compaction that stands covers, oldest first.
        version: of the compaction; the newest unless given.
        cascade: take the later ones that cover it back too.

    Raises:
        UndoUnavailable: there is no such compaction, or it was taken back already.
        CompactionCovered: a later one covers it, and ``cascade`` is False.
    """
    if not standing:
        raise UndoUnavailable(conversation, "none stands; `timeline show` lists what happened")
    newest = max(standing)
    wanted = newest if version is None else version
    if wanted not in standing:
        raise UndoUnavailable(
            conversation,
            f"none that stands is at version {wanted}; those that do are at {', '.join(map(str, standing))}",
        )
    chain = {wanted}
    for later, covers in standing.items():
        if later > wanted and chain.intersection(covers.summaries):
            chain.add(later)
    if len(chain) > 1 and not cascade:
        raise CompactionCovered(wanted, min(chain - {wanted}))
    return sorted(chain, reverse=True)
