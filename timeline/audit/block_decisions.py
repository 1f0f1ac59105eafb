"""Find the decision that first led to a block's state in the fold: `Decisions`.

Undone compactions are left out, as the fold leaves them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.events import (
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    CompactionCompleted,
    CompactionReverted,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import Event
    from timeline.fold.window import State

TYPES: Final = (
    "compaction.completed",
    "compaction.reverted",
    "blocks.hidden",
    "blocks.revealed",
    "blocks.pinned",
    "block.redacted",
)
"""Types of the events that decide about blocks, without unpinning, which leads to no state of its own."""


class Compaction(NamedTuple):
    """A compaction in force, with its event."""

    event: Event
    payload: CompactionCompleted


class Decisions:
    """The decisions of a conversation up to a version.

    Args:
        events: the events of `TYPES`, by version.

    Attributes:
        undone: versions of the compactions that were undone.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self.undone: dict[int, Event] = {}
        for event in events:
            if isinstance(event.payload, CompactionReverted):
                self.undone |= dict.fromkeys(event.payload.versions, event)
        self._compactions = [
            Compaction(event, event.payload)
            for event in events
            if isinstance(event.payload, CompactionCompleted) and event.version not in self.undone
        ]

    def covering(self, version: int) -> list[Compaction]:
        """Return the compactions in force that took a block out of the context, the first one first.

        Every later one integrates the summary of the one before it.
        """
        return [
            one
            for one in self._compactions
            if version < one.event.version and version in one.payload.covers and version not in one.payload.carried
        ]

    def carrying(self, version: int) -> list[Compaction]:
        """Return the compactions in force that kept a block inside their range, the first one first."""
        return [one for one in self._compactions if version in one.payload.carried]

    def chain(self, version: int) -> list[int]:
        """Return the compactions that have to be undone to undo one, newest first: those that cover its summary."""
        chain = {version}
        for one in self._compactions:
            if one.event.version > version and chain.intersection(one.payload.covers.summaries):
                chain.add(one.event.version)
        return sorted(chain, reverse=True)

    def hiding(self, version: int, state: State) -> Event | None:
        """Return the event since which a block has been hidden, abridged or omitted without a break."""
        since: Event | None = None
        for event in self._events:
            match event.payload:
                case BlocksHidden(reason="spill") if event.version - 1 in self.undone:
                    pass  # the previews of an undone compaction, which the undo takes back, too
                case BlocksHidden() as hidden if any(shown.version == version for shown in hidden.blocks):
                    since = (since or event) if hidden.state == state else None
                case BlocksRevealed() as revealed if version in revealed.versions:
                    since = None
        return since

    def redacting(self, version: int) -> Event | None:
        """Return the event that erased a block's content first."""
        return next(
            (e for e in self._events if isinstance(e.payload, BlockRedacted) and e.payload.version == version), None
        )

    def pinning(self, version: int) -> Event | None:
        """Return the newest event that pinned a block."""
        return next(
            (
                e
                for e in reversed(self._events)
                if isinstance(e.payload, BlocksPinned) and version in e.payload.versions
            ),
            None,
        )

    def returning(self, version: int) -> Event | None:
        """Return the newest event that showed a block again: a reveal, or the undo of a compaction that covered it."""
        newest: Event | None = None
        covered: set[int] = set()
        for event in self._events:
            match event.payload:
                case CompactionCompleted() as made if version in made.covers and version not in made.carried:
                    covered.add(event.version)
                case CompactionReverted() as undo if version not in undo.versions and covered.intersection(
                    undo.versions
                ):
                    newest = event
                case BlocksRevealed() as revealed if version in revealed.versions:
                    newest = event
        return newest
