"""Fold a whole log through its undos in one pass: `WaysBack`.

An undo is folded as if its compactions had never been made, so a fold that applied them cannot go on. To fold the log
anew for each undo would make a verification quadratic. So a second fold starts right before a compaction that is undone
later, skips it, and takes the place of the first fold at the undo. No stored snapshot is trusted.
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
        """By the version behind which a fold starts: the undo for which it is made, and the compactions it skips."""
        self._folds: dict[int, Fold] = {}
        known: set[int] = set()
        for number, (at, versions) in enumerate(undos):
            known.update(versions)
            start = _first_affected(min(versions), undos[:number]) - 1
            self._begin.setdefault(start, []).append((at, frozenset(known)))

    async def behind(self, store: EventStore, fold: Fold, event: Event) -> Fold:
        """Apply the next event of the log to a fold; return the fold to go on with, which at an undo is another one.

        Raises:
            HistoryUnavailable: the log does not go back to what an undo shows again.
        """
        for undo, without in self._begin.pop(fold.version, ()):
            self._folds[undo] = fold.passing_over(without)
        going_on = self._folds.pop(event.version, fold)
        if going_on is fold and isinstance(event.payload, CompactionReverted):
            # No fold was started: the log was not read from there, or the undo names no compaction before it.
            going_on = await fold_history(
                store, self._conversation, until=event.version - 1, without=event.payload.versions
            )
        for beside in (*self._folds.values(), going_on):
            beside.apply(event.version, event.at, event.payload)
        return going_on


def _first_affected(compaction: int, before: Sequence[tuple[int, Sequence[int]]]) -> int:
    """Return the first compaction that a fold has to skip to get behind an undo.

    If an earlier undo lies in between, the fold has to skip the compactions of that one, too.
    """
    first = compaction
    for at, versions in reversed(before):
        if min(versions) < first < at:
            first = min(versions)
    return first
