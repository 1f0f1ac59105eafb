"""Fold a whole log through its undos in one pass: `WaysBack`.

An undo is folded as if its compactions had never been made, and a fold that went through them cannot go on. Folding the
log anew for each undo would make a verification quadratic. So a second fold sets out right before a compaction that is
undone later, passes over it, and takes the place of the first one at the undo. No stored snapshot is trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.events import CompactionReverted
from timeline.log.history import fold_history

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import Event
    from timeline.fold.fold import Fold
    from timeline.ports import EventStore


class WaysBack:
    """The folds beside the one of a verification.

    Args:
        conversation: id of the log.
        undos: its undos, oldest first, each with the versions of the compactions that it takes back.
    """

    def __init__(self, conversation: str, undos: Sequence[tuple[int, Sequence[int]]]) -> None:
        self._conversation = conversation
        self._begin: dict[int, list[tuple[int, frozenset[int]]]] = {}
        """By the version behind which a fold sets out: the undo that it is for, and what it passes over."""
        self._folds: dict[int, Fold] = {}
        known: set[int] = set()
        for number, (at, versions) in enumerate(undos):
            known.update(versions)
            start = _first_affected(min(versions), undos[:number]) - 1
            self._begin.setdefault(start, []).append((at, frozenset(known)))

    async def behind(self, store: EventStore, fold: Fold, event: Event) -> Fold:
        """Apply the next event of the log to a fold, and return the fold that goes on: at an undo it is another one.

        Raises:
            HistoryUnavailable: the log does not go back to what an undo shows again.
        """
        for undo, without in self._begin.pop(fold.version, ()):
            self._folds[undo] = fold.passing_over(without)
        going_on = self._folds.pop(event.version, fold)
        if going_on is fold and isinstance(event.payload, CompactionReverted):
            # None set out: the log is not read from there, or names what is no compaction before it.
            going_on = await fold_history(
                store, self._conversation, until=event.version - 1, without=event.payload.versions
            )
        for beside in (*self._folds.values(), going_on):
            beside.apply(event.version, event.at, event.payload)
        return going_on


def _first_affected(compaction: int, before: Sequence[tuple[int, Sequence[int]]]) -> int:
    """Return the first compaction that a fold has to pass over to get behind an undo.

    An earlier undo may lie between: then the fold has to pass over what that one takes back, too.
    """
    first = compaction
    for at, versions in reversed(before):
        if min(versions) < first < at:
            first = min(versions)
    return first
