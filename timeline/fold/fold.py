"""The fold: events in, window out. Incremental, without clock, I/O or randomness.

`Fold` accumulates; `Fold.window` is the frozen value. Applying an event costs its own size, save for a compaction,
which costs the window's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.blocks import Reasoning, StageDigest
from timeline.errors import InvalidBlock
from timeline.events import (
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    BlocksUnpinned,
    CompactionCompleted,
    CompactionReverted,
    UnknownPayload,
    appended_block,
)
from timeline.fold.state import NOTHING_YET
from timeline.fold.turns import Turns
from timeline.fold.window import Hide, Item, Window, redacted, revealed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.fold.state import FoldState


class HistoryNeeded(Exception):
    """A compaction is taken back, and what it covered is not in this fold: fold the log anew, without it."""


class Fold:
    """Accumulates the events of one conversation into a window.

    A compaction that is taken back was never made: the log is folded without it. Its version has to be known
    beforehand, since a fold does not keep what a compaction covers; `timeline.log.history` looks it up.

    Args:
        conversation: id of the log.
        without: versions of compactions that are taken back later in the log.

    Attributes:
        conversation: id of the log.
        version: of the last event applied; 0 before the first.
    """

    def __init__(self, conversation: str, without: Iterable[int] = ()) -> None:
        self.conversation = conversation
        self.version = 0
        self._without = frozenset(without)
        self._items: list[Item] = []
        self._index: dict[int, int] = {}
        self._paths: dict[str, int] = {}
        self._turns = Turns()
        self._summaries: list[CompactionCompleted] = []
        self._state = NOTHING_YET
        self._window: Window | None = None

    @property
    def turns(self) -> Turns:
        """Where the conversation stands."""
        return self._turns

    def resume(
        self,
        version: int,
        *,
        items: Sequence[Item],
        turns: Turns,
        summaries: Sequence[CompactionCompleted],
        state: FoldState,
    ) -> None:
        """Take over a state: a snapshot's, or another fold's."""
        self.version = version
        self._rebuild(items)
        self._turns = turns
        self._summaries = list(summaries)
        self._state = state
        self._window = None

    def copy(self, conversation: str | None = None) -> Fold:
        """Return an independent copy, for a dry run; or for another conversation, a fork."""
        twin = Fold(conversation or self.conversation, self._without)
        twin.resume(
            self.version,
            items=self._items,
            turns=self._turns.copy(),
            summaries=self._summaries,
            state=self._state,
        )
        return twin

    def apply(self, version: int, at: datetime, payload: Payload) -> None:  # noqa: C901, PLR0912 - one case an event type
        """Take in the next event of the log.

        Raises:
            HistoryNeeded: it takes back a compaction that this fold went through; the fold is as it was.
        """
        if type(payload) is CompactionReverted and not self._without.issuperset(payload.versions):
            raise HistoryNeeded
        self.version = version
        self._window = None
        match payload:
            case BlockAppended():
                self._append(version, payload.block, payload.tokens)
            case CompactionCompleted():
                self._state = self._state.without_lease(payload.lease)
                if version not in self._without:
                    self._compact(version, payload)
            case CompactionReverted():
                self._state = self._state.reverted(payload)
                self._undo(version, since=min(payload.versions))
            case BlocksHidden():
                # The previews that a compaction brought stand right behind it, and go with it.
                if payload.reason != "spill" or version - 1 not in self._without:
                    self._hide(version, payload)
            case BlocksRevealed():
                self._change(payload.versions, lambda item: revealed(item, version))
            case BlocksPinned():
                self._change(payload.versions, lambda item: item._replace(pinned=True))
            case BlocksUnpinned():
                self._change(payload.versions, lambda item: item._replace(pinned=False))
            case BlockRedacted():
                self._change((payload.version,), lambda item: redacted(item, version))
            case UnknownPayload():
                if (block := appended_block(payload)) is not None:
                    tokens = payload.data.get("tokens")
                    self._append(version, block, tokens if isinstance(tokens, int) else 0)
            case _:
                self._state = self._state.after(version, at, payload)

    @property
    def window(self) -> Window:
        """The window as of the last event."""
        if self._window is None:
            self._window = Window(
                conversation=self.conversation,
                version=self.version,
                items=tuple(self._items),
                summaries=tuple(self._summaries),
                turn_id=self._turns.turn_id,
                response=self._turns.response,
                state=self._state,
            )
        return self._window

    def live(self, version: int) -> Item | None:
        """Return the live item that an event of this version appended; None where there is none, or not any more."""
        position = self._index.get(version)
        return None if position is None else self._items[position]

    def address(self, blocks: Iterable[tuple[Block, datetime]], *, avoid: Collection[str] = ()) -> list[Block]:
        """Fill in turn ids, paths and times of blocks that are about to be appended, in order.

        The new paths are free as far as the window knows, and none is in ``avoid``: a path of covered history may be in
        the way, and only the store can say so. Each block comes with the time that it gets when it brings none.

        Raises:
            InvalidBlock: two of the blocks bring the same path of their own.
        """
        turns = self._turns.copy()
        addressed: dict[str, Block] = {}
        by_version: dict[int, str] = {}
        drafts = list(blocks)
        brought = {block.path for block, _ in drafts}

        def taken(path: str) -> bool:
            return path in addressed or path in self._paths or path in brought or path in avoid

        for version, (block, at) in enumerate(drafts, start=self.version + 1):
            turn_id = turns.turn_for(block)
            _, answers = turns.advance(block, turn_id, version)
            path = block.path
            if not path:
                call_path = by_version.get(answers) or self._path_of(answers) if answers is not None else None
                path = turns.path_for(block, turn_id, call_path=call_path, taken=taken)
            elif path in addressed:
                raise InvalidBlock("path", f"{path!r} is given twice in one append")
            addressed[path] = block.placed(turn_id=turn_id, path=path, at=block.at or at)
            by_version[version] = path
        return list(addressed.values())

    def release(self) -> None:
        """Forget about anybody else's compaction: for a dry run."""
        self._state, self._window = self._state.released(), None

    def _path_of(self, version: int) -> str | None:
        position = self._index.get(version)
        return None if position is None else self._items[position].block.path

    def _append(self, version: int, block: Block, tokens: int) -> None:
        response, answers = self._turns.advance(block, block.turn_id, version)
        if answers is not None and answers not in self._index:
            # The call was covered meanwhile: its result stands alone.
            response, answers = 0, None
        if type(block) is StageDigest:
            self._supersede_digests()
        self._put(Item(version, version, block, tokens, response, answers))

    def _supersede_digests(self) -> None:
        """Note that a newer stage digest takes the place of those that are live: compactions may cover them now."""
        for position, item in enumerate(self._items):
            if type(item.block) is StageDigest:
                self._items[position] = item._replace(superseded=True)

    def _put(self, item: Item) -> None:
        self._index[item.version] = len(self._items)
        self._paths[item.block.path] = item.version
        self._items.append(item)

    def _compact(self, version: int, payload: CompactionCompleted) -> None:
        """Replace what a compaction covers by its summary; carried items stay, behind it."""
        covers, carried = payload.covers, set(payload.carried)
        place = covers.ranges[0][0] if covers.ranges else version
        live = [i._replace(carried=True) if i.version in carried else i for i in self._items]
        kept = [i for i in live if i.version in carried or i.version not in covers]
        superseded = {i.block.path for i in self._items if i.version in covers.summaries}
        self._summaries = [s for s in self._summaries if s.block.path not in superseded]
        self._state = self._state.compacted(payload)
        kept.append(Item(version, place, payload.block, payload.tokens, changed_at=version))
        self._rebuild(sorted(kept, key=lambda item: item.order))
        at = {path: self._items[self._index[live]].order for path, live in self._paths.items()}
        self._summaries = sorted([*self._summaries, payload], key=lambda made: at[made.block.path])

    def _undo(self, version: int, *, since: int) -> None:
        """Note of the reasoning that came since a compaction that its summary, behind which it was thought, is gone."""
        for position, item in enumerate(self._items):
            if type(item.block) is Reasoning and item.version > since:
                self._items[position] = item._replace(undone_at=version)

    def _rebuild(self, items: Sequence[Item]) -> None:
        self._items, self._index, self._paths = [], {}, {}
        for item in items:
            self._put(item)

    def _hide(self, version: int, payload: BlocksHidden) -> None:
        stand_ins = {stand_in.version: stand_in for stand_in in payload.blocks}
        omitted = payload.mode == "omit"
        why = Hide(version, payload.reason, payload.facts)

        def hide(item: Item) -> Item:
            if item.redacted:
                return item
            shown = None if omitted else stand_ins[item.version]
            return item._replace(omitted=omitted, replacement=shown, revealed=False, hide=why, changed_at=version)

        self._change(stand_ins, hide)

    def _change(self, versions: Iterable[int], change: Callable[[Item], Item]) -> None:
        """Change live items; a version that is covered or unknown is left alone: the decision came too late for it."""
        for version in versions:
            if (position := self._index.get(version)) is not None:
                self._items[position] = change(self._items[position])
