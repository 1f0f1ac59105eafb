"""Fold events into a window, one event at a time, without clock, I/O or randomness.

`Fold` takes the events in; `Fold.window` is the frozen result. An event costs time by its own size; only a compaction
costs time by the size of the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.blocks import Reasoning, StageDigest, ToolCall
from timeline.errors import InvalidBlock
from timeline.events import (
    ABANDONED,
    ABRIDGED,
    DISOWNED,
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
from timeline.events.addresses import SIGN
from timeline.fold.counts import Recount, in_unit
from timeline.fold.state import NOTHING_YET
from timeline.fold.turns import Turns
from timeline.fold.window import Hide, Item, Window, redacted, restored, revealed
from timeline.frozen import Grown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.fold.state import FoldState
    from timeline.ports import TokenCounter


class HistoryNeeded(Exception):
    """An undo takes back a compaction whose covered blocks this fold no longer has: fold the log anew, without it."""


class Fold:
    """Folds the events of one conversation into a window.

    The log is folded without the compactions that an undo takes back, as if they had never run. Their versions have to
    be known beforehand, since a fold does not keep covered blocks; `timeline.log.history` looks them up.

    Args:
        conversation: id of the log.
        without: versions of the compactions that are taken back later in the log.
        readable: whether its blocks can be read back, so that their addresses may be printed.

    Attributes:
        conversation: id of the log.
        version: of the last event applied; 0 before the first.
        at: time of the last event applied; None before the first.
        recount: makes the window's figures; None leaves them as they were stored.
        start: the ratio of the figures before the provider reported any usage; None never scales them.
        restored_from: version of the snapshot that it was restored from; 0 without one.
    """

    def __init__(self, conversation: str, without: Iterable[int] = (), *, readable: bool = True) -> None:
        self.conversation = conversation
        self._readable = readable
        self.version: int = 0
        self.at: datetime | None = None
        self._without = frozenset(without)
        self._items: list[Item] = []
        """Windows share this list, which may only get longer. Any other change is made to a copy."""
        self._index: dict[int, int] = {}
        self._paths: dict[str, int] = {}
        self._turns = Turns()
        self._summaries: list[CompactionCompleted] = []
        self._state = NOTHING_YET
        self._window: Window | None = None
        self.recount: Recount | None = None
        self.start: float | None = None
        self.restored_from: int = 0
        self._is_mixed = False
        self._shown: list[Item] | None = None
        """The items with the window's figures; None where they have to be made anew."""

    @property
    def is_mixed(self) -> bool:
        """Whether the window may hold a block that has to be counted anew."""
        return self._is_mixed

    def count_by(self, counter: TokenCounter | None, start: float | None = None) -> None:
        """Show the figures of one counter from now on, whichever one the blocks were stored under.

        Args:
            counter: the counter; None shows the stored figures.
            start: the conversation's ratio until the provider's usage gives one; None scales no figure.
        """
        self.start = start
        self.recount = None if counter is None else Recount(counter, self.ratio)
        self._is_mixed = any(map(self._is_foreign, self._items))
        self._window = self._shown = None

    def count_as(self, other: Fold) -> None:
        """Show figures as another fold does."""
        self.count_by(None if other.recount is None else other.recount.counter, other.start)

    def counts_as(self, other: Fold) -> bool:
        """Return whether it shows figures as another fold does."""
        mine, its = self.recount, other.recount
        return self.start == other.start and (mine and mine.counter) is (its and its.counter)

    @property
    def ratio(self) -> float:
        """What the counter's tokens are multiplied by: the conversation's ratio where that is asked for, else 1."""
        return self._state.reported.ratio_from(self.start)

    @property
    def counter(self) -> TokenCounter | None:
        """Counts in the unit of the window's figures; None where these are as they were stored."""
        return None if self.recount is None else in_unit(self.recount.counter, self.ratio)

    @property
    def turns(self) -> Turns:
        """The running state of turns and responses."""
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
        """Continue from the contents of a snapshot or of another fold."""
        self.version = version
        self._rebuild(items)
        self._turns = turns
        self._summaries = list(summaries)
        self._state = state
        self._window = None

    def copy(self, conversation: str | None = None) -> Fold:
        """Return an independent copy: for a dry run, or for a fork under another conversation id."""
        twin = Fold(conversation or self.conversation, self._without, readable=self._readable)
        twin.resume(
            self.version,
            items=self._items,
            turns=self._turns.copy(),
            summaries=self._summaries,
            state=self._state,
        )
        twin.at = self.at
        twin.recount, twin.start, twin._is_mixed = self.recount and self.recount.copy(), self.start, self._is_mixed
        return twin

    def passing_over(self, versions: Collection[int]) -> Fold:
        """Return an independent copy that skips the compactions of these versions, which are taken back later."""
        twin = self.copy()
        twin._without = self._without.union(versions)  # noqa: SLF001 - of its own class
        return twin

    def apply(self, version: int, at: datetime, payload: Payload) -> None:  # noqa: C901, PLR0912 - one case an event type
        """Apply the next event of the log.

        Raises:
            HistoryNeeded: the event takes back a compaction that this fold has applied; the fold is unchanged.
        """
        if type(payload) is CompactionReverted and not self._without.issuperset(payload.versions):
            raise HistoryNeeded
        self.version, self.at = version, at
        self._window = None
        match payload:
            case BlockAppended():
                self._append(version, payload.block, payload.tokens, payload.counter)
            case CompactionCompleted():
                # Even a compaction that is taken back later ends its lease: its writer is done, and another may begin.
                self._state = self._state.without_lease(payload.lease).rewritten()
                if version not in self._without:
                    self._compact(version, payload)
            case CompactionReverted():
                self._state = self._state.reverted(payload).rewritten()
                self._undo(version, since=min(payload.versions))
            case BlocksHidden():
                if payload.reason not in ABRIDGED:
                    self._state = self._state.rewritten()
                # A compaction's previews are the event right behind it: without the compaction they do not apply.
                if payload.reason != "spill" or version - 1 not in self._without:
                    self._hide(version, payload)
            case BlocksRevealed():
                self._state = self._state.rewritten()
                self._reveal(version, payload)
            case BlocksPinned():
                self._change(payload.versions, lambda item: item._replace(pinned=True))
            case BlocksUnpinned():
                self._change(payload.versions, lambda item: item._replace(pinned=False))
            case BlockRedacted():
                self._state = self._state.rewritten()
                self._change((payload.version,), lambda item: redacted(item, version))
            case UnknownPayload():
                if (block := appended_block(payload)) is not None:
                    self._append(version, block, *count_of_unknown(payload))
            case _:
                self._state = self._state.after(version, at, payload)

    @property
    def window(self) -> Window:
        """The window as of the last event."""
        if self._window is None:
            self._window = Window(
                conversation=self.conversation,
                version=self.version,
                items=self._counted(),
                summaries=tuple(self._summaries),
                turn_id=self._turns.turn_id,
                response=self._turns.waited_for,
                state=self._state,
                readable=self._readable,
            )
        return self._window

    @property
    def stored(self) -> Sequence[Item]:
        """The window's items with the figures of the log, which a snapshot keeps."""
        return Grown(self._items)

    def _change_items(self) -> list[Item]:
        """Return a new list of the items, to be changed in place; windows made so far keep the old list."""
        self._items, self._shown = [*self._items], None
        return self._items

    def _counted(self) -> Sequence[Item]:
        recount, ratio = self.recount, self.ratio
        if recount is None or (ratio == 1 and not self._is_mixed):
            return self.stored
        if recount.ratio != ratio:
            self.recount = recount = recount.at(ratio)
            self._shown = None
        if self._shown is None:
            self._shown = list(recount.items(self._items))
        return Grown(self._shown)

    def _is_foreign(self, item: Item) -> bool:
        return self.recount is not None and self.recount.is_foreign(item)

    def live(self, version: int) -> Item | None:
        """Return the live item of this version; None for a version that appended no block, or one covered meanwhile."""
        position = self._index.get(version)
        return None if position is None else self._items[position]

    def address(self, blocks: Iterable[tuple[Block, datetime]], *, avoid: Collection[str] = ()) -> list[Block]:
        """Fill in turn ids, paths and times of blocks that are about to be appended, in order.

        The new paths are unused in the window and not in ``avoid``. A covered block may still have one of them: only
        the store knows, and the caller passes its answer as ``avoid``.

        Args:
            blocks: each with the time that it gets where it has none.
            avoid: paths that the store reported as taken.

        Raises:
            InvalidBlock: the caller gave two of the blocks the same path, or a path that reads as an address; or a
                response grows endlessly while its calls wait.
        """
        turns = self._turns.copy()
        addressed: dict[str, Block] = {}
        by_version: dict[int, str] = {}
        reached: dict[str, int] = {}
        drafts = list(blocks)
        brought = {block.path for block, _ in drafts}

        def taken(path: str) -> bool:
            return path in addressed or path in self._paths or path in brought or path in avoid

        for version, (block, at) in enumerate(drafts, start=self.version + 1):
            turn_id = turns.turn_for(block)
            _, answers = turns.advance(block, turn_id, version)
            turns.refuse_endless(block, version, answers)
            path = block.path
            if not path:
                call_path = by_version.get(answers) or self._path_of(answers) if answers is not None else None
                path = turns.path_for(block, turn_id, call_path=call_path, taken=taken, reached=reached)
            elif path in addressed:
                raise InvalidBlock("path", f"{path!r} is given twice in one append")
            elif path.startswith(SIGN):
                raise InvalidBlock("path", f"{path!r} begins with {SIGN}, as an address does; choose another beginning")
            addressed[path] = block.placed(turn_id=turn_id, path=path, at=block.at or at)
            by_version[version] = path
        return list(addressed.values())

    def release(self) -> None:
        """Drop the lease of a running compaction, so that a dry run can plan its own."""
        self._state, self._window = self._state.released(), None

    def _path_of(self, version: int) -> str | None:
        position = self._index.get(version)
        return None if position is None else self._items[position].block.path

    def _append(self, version: int, block: Block, tokens: int, counter: str) -> None:
        response, answers = self._turns.advance(block, block.turn_id, version)
        if answers is not None and answers not in self._index:
            # The call was covered meanwhile: its result is sent as text, and belongs to no response's group.
            response, answers = 0, None
        item = Item(version, version, block, tokens, response, answers, counter=counter)
        if type(block) is StageDigest:
            self._supersede_digests(item)
        self._put(item)

    def _supersede_digests(self, newest: Item) -> None:
        """Mark the live stage digests as superseded by a newer one: from now on compactions may cover them.

        A stage digest that an application appends does not supersede the one that is shown in the tail.
        """
        older = [
            (position, item)
            for position, item in enumerate(self._items)
            if type(item.block) is StageDigest and (newest.in_tail or not item.in_tail)
        ]
        items = self._change_items() if older else []
        for position, item in older:
            items[position] = item._replace(superseded=True)

    def _put(self, item: Item) -> None:
        self._index[item.version] = len(self._items)
        self._paths[item.block.path] = item.version
        self._items.append(item)
        self._is_mixed = self._is_mixed or self._is_foreign(item)
        if self._shown is not None and self.recount is not None:
            self._shown.append(self.recount.item(item))

    def _compact(self, version: int, payload: CompactionCompleted) -> None:
        """Replace the covered items by their summary; carried items stay, behind it."""
        covers, carried = payload.covers, set(payload.carried)
        place = covers.ranges[0][0] if covers.ranges else version
        live = [i._replace(carried=True) if i.version in carried else i for i in self._items]
        kept = [i for i in live if i.version in carried or i.version not in covers]
        staying = {i.block.path for i in kept if i.version not in covers.summaries}
        self._summaries = [s for s in self._summaries if s.block.path in staying]
        self._state = self._state.compacted(payload)
        kept.append(Item(version, place, payload.block, payload.tokens, changed_at=version, counter=payload.counter))
        # Rebuild before the summaries are sorted: their order is that of their blocks' new positions.
        self._rebuild(sorted(kept, key=lambda item: item.order))
        at = {path: self._items[self._index[live]].order for path, live in self._paths.items()}
        self._summaries = sorted([*self._summaries, payload], key=lambda made: at[made.block.path])

    def _undo(self, version: int, *, since: int) -> None:
        """Mark the reasoning since an undone compaction: the summary that preceded it is no longer in the context."""
        items = self._change_items()
        for position, item in enumerate(items):
            if type(item.block) is Reasoning and item.version > since:
                items[position] = item._replace(undone_at=version)

    def _rebuild(self, items: Sequence[Item]) -> None:
        self._items = list(items)
        self._index = {item.version: place for place, item in enumerate(self._items)}
        self._paths = {item.block.path: item.version for item in self._items}
        self._is_mixed = self.recount is not None and any(map(self._is_foreign, self._items))
        self._shown = None

    def _hide(self, version: int, payload: BlocksHidden) -> None:
        replacements = {replacement.version: replacement for replacement in payload.blocks}
        omitted = payload.mode == "omit"
        why = Hide(version, payload.reason, payload.facts, payload.counter)

        def hide(item: Item) -> Item:
            if item.redacted:
                return item
            shown, changes = None if omitted else replacements[item.version], item.changes_so_far
            hidden = item._replace(omitted=omitted, replacement=shown, revealed=False, hide=why)
            return hidden._replace(changed_at=version, changes=changes)

        self._change(replacements, hide)
        if omitted and payload.reason in DISOWNED:
            self._turns.disown(replacements)
        if omitted and payload.reason == ABANDONED:
            self._go_on_from_what_is_shown()

    def _reveal(self, version: int, payload: BlocksRevealed) -> None:
        before = [self._items[place] for v in payload.versions if (place := self._index.get(v)) is not None]
        show = restored if payload.reason == "restored" else revealed
        self._change(payload.versions, lambda item: show(item, version))
        if any(item.omitted and item.hide is not None and item.hide.reason == ABANDONED for item in before):
            self._go_on_from_what_is_shown()

    def _go_on_from_what_is_shown(self) -> None:
        """Go on from the newest block that is shown: new blocks belong to its turn, and may answer the open calls."""
        shown = [item for item in self._items if not item.omitted]
        newest = max((item.response for item in shown), default=0)
        answered = {item.answers for item in shown}
        waiting = [
            (item.version, item.response, item.block)
            for item in shown
            if isinstance(item.block, ToolCall)
            and item.version not in answered
            and (item.response == newest or item.block.pending)
        ]
        self._turns.go_back(shown[-1].block.turn_id if shown else "", waiting)

    def _change(self, versions: Iterable[int], change: Callable[[Item], Item]) -> None:
        """Change live items. A covered or unknown version is skipped: the decision came too late for it."""
        items = self._change_items()
        for version in versions:
            if (position := self._index.get(version)) is not None:
                items[position] = item = change(items[position])
                self._is_mixed = self._is_mixed or self._is_foreign(item)


def count_of_unknown(payload: UnknownPayload) -> tuple[int, str]:
    """Return the stored count of a block that a later version of this library appended, and its counter's name."""
    tokens, counter = payload.data.get("tokens"), payload.data.get("counter")
    return tokens if isinstance(tokens, int) else 0, counter if isinstance(counter, str) else ""
