"""Go back behind an undone compaction while a whole log is verified: `WaysBack`.

An undo is folded as if its compactions had never been made. A fold that went through them cannot go on, and folding the
log from its first version for each undo would make a verification quadratic. So it keeps a snapshot of its own fold
right before each compaction that is undone later, and goes on from there. It trusts no snapshot that is stored.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

from timeline.fold.snapshot import take_snapshot
from timeline.log.history import fold_history, read_folding, resumed
from timeline.ports import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import CompactionReverted
    from timeline.fold.fold import Fold
    from timeline.ports import EventStore


class WaysBack:
    """The snapshots that one verification keeps.

    Args:
        conversation: id of the log.
        undos: its undos, each with the versions of the compactions that it takes back.
    """

    def __init__(self, conversation: str, undos: Sequence[tuple[int, Sequence[int]]]) -> None:
        self._conversation = conversation
        self._undos = undos
        self._wanted = {min(versions) - 1 for _, versions in undos}
        self._kept: dict[int, bytes] = {}

    def keep(self, fold: Fold) -> None:
        """Keep a snapshot of a fold if the next event is the first compaction that an undo takes back."""
        if fold.version in self._wanted:
            text = json.dumps(take_snapshot(fold).model_dump(mode="json"))
            self._kept[fold.version] = zlib.compress(text.encode(), 1)

    async def without(self, store: EventStore, at: int, reverted: CompactionReverted) -> Fold:
        """Return the fold right before the undo at a version, without the compactions that it takes back.

        Raises:
            HistoryUnavailable: the log does not go back that far.
        """
        kept = self._kept.get(min(reverted.versions) - 1)
        if kept is None:
            return await fold_history(store, self._conversation, until=at - 1, without=reverted.versions)
        known = {version for undo, versions in self._undos if undo < at for version in versions}
        snapshot = Snapshot.model_validate_json(zlib.decompress(kept))
        fold = await resumed(store, self._conversation, snapshot, {*known, *reverted.versions})
        async for _ in read_folding(store, self._conversation, fold, after=fold.version, until=at - 1):
            pass
        return fold
