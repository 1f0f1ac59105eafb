"""The states of blocks at any version, from the decisions alone: no block is read, and nothing is folded.

The result is that of the fold, which a test holds at every version of a log. Of a log whose past was scavenged,
decisions are gone: its states come from the fold of the snapshot that was kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.blocks import IN_TAIL, StageDigest
from timeline.events import BlockRedacted, BlocksHidden, BlocksRevealed, CompactionCompleted, CompactionReverted
from timeline.fold.counts import plain_tokens, plainly
from timeline.fold.states import states_of
from timeline.fold.window import TOMBSTONE_TOKENS
from timeline.inspector.another_log import is_another_log
from timeline.inspector.moments import lightened

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.events import Covers, Payload
    from timeline.fold.window import State, Window
    from timeline.ports import ConversationInfo, EventStore

TYPES: Final = ("block.redacted", "blocks.hidden", "blocks.revealed", "compaction.completed", "compaction.reverted")
_MOST: Final = 64
"""Conversations whose decisions are kept."""


class _Decision(NamedTuple):
    version: int
    payload: Payload


@dataclass(slots=True)
class _Kept:
    first_version: int
    version: int = 0
    decisions: list[_Decision] = field(default_factory=list)


class Decisions:
    """The decisions of a store's conversations, without their texts."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def at(self, info: ConversationInfo, version: int) -> DecidedStates:
        """Return the states of a conversation's blocks at a version."""
        kept = self._kept.pop(info.id, None)
        if kept is None or await self._is_other(info, kept):
            kept = _Kept(info.first_version)
        if kept.version < info.version:
            found = [
                _Decision(event.version, lightened(event.payload))
                async for event in self._store.read(info.id, after=kept.version, until=info.version, types=TYPES)
            ]
            kept = _Kept(kept.first_version, info.version, [*kept.decisions, *found])
        self._kept[info.id] = kept
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return DecidedStates(kept.decisions[: bisect_right(kept.decisions, version, key=lambda one: one.version)])

    async def _is_other(self, info: ConversationInfo, kept: _Kept) -> bool:
        """Return whether the log is no longer the one that was read."""
        return await is_another_log(
            self._store, info, first_version=kept.first_version, reached=kept.version, seen=kept.version
        )


class DecidedStates:
    """The states of blocks by the decisions up to a version."""

    def __init__(self, decisions: list[_Decision]) -> None:
        self._undone: set[int] = set()
        for _, payload in decisions:
            if isinstance(payload, CompactionReverted):
                self._undone.update(payload.versions)
        self._made: list[tuple[int, Covers, frozenset[int]]] = []
        self._carried: set[int] = set()
        self._hidden: dict[int, tuple[State, int]] = {}
        self._redacted: dict[int, str] = {}
        for decision in decisions:
            self._take(decision)
        superseded = {version for _, covers, _ in self._made for version in covers.summaries}
        self._standing = [(version, covers) for version, covers, _ in self._made if version not in superseded]

    def _take(self, decision: _Decision) -> None:
        version, payload = decision
        match payload:
            case CompactionCompleted():
                if version not in self._undone:
                    self._made.append((version, payload.covers, frozenset(payload.carried)))
                    self._carried.update(payload.carried)
            case BlocksHidden():
                # A compaction's previews are the event right behind it: without the compaction they do not apply.
                if payload.reason != "spill" or version - 1 not in self._undone:
                    self._hidden |= {
                        one.version: (payload.state, plain_tokens(one.tokens, payload.counter))
                        for one in payload.blocks
                    }
            case BlocksRevealed():
                for shown in payload.versions:
                    self._hidden.pop(shown, None)
            case BlockRedacted():
                self._redacted[payload.version] = payload.reason

    def of(self, version: int) -> tuple[State | None, int | None]:
        """Return the state of a block, and the version of the summary that covers it."""
        if version in self._undone:
            return "omitted", None
        if any(made > version and version in covers and version not in kept for made, covers, kept in self._made):
            by = next((made for made, covers in self._standing if version in covers), None)
            return (None if by is None else "covered"), by
        if version in self._redacted:
            return "redacted", None
        if version in self._hidden:
            return self._hidden[version][0], None
        return ("carried" if version in self._carried else "visible"), None

    def replaced(self, version: int) -> int:
        """Return the tokens of what the newest decision about a hidden or abridged block shows instead of it."""
        return self._hidden[version][1] if version in self._hidden else 0

    def covering(self, version: int) -> int | None:
        """Return the version of the compaction that covered a block; later ones may have integrated its summary."""
        covered = (made for made, covers, kept in self._made if version in covers and version not in kept)
        return next((made for made in covered if made > version), None)

    def shown(self, version: int, block: Block, tokens: int) -> int:
        """Return the tokens that are sent of a block at its place."""
        match self.of(version)[0]:
            case "redacted":
                return TOMBSTONE_TOKENS
            case "hidden" | "abridged":
                return self.replaced(version)
            case "visible" | "carried":
                return 0 if isinstance(block, StageDigest) and IN_TAIL in block.meta else tokens
            case _:
                return 0


class FoldedStates:
    """The states of blocks by the fold of a version."""

    def __init__(self, window: Window, taken_back: set[int]) -> None:
        self._of = states_of(window, taken_back)
        self._live = {item.version: plainly(item) for item in window.items}

    def of(self, version: int) -> tuple[State | None, int | None]:
        """Return the state of a block, and the version of the summary that covers it."""
        return self._of(version)

    def covering(self, version: int) -> int | None:
        """Return the version of the compaction whose summary covers a block: of earlier ones nothing is known."""
        return self._of(version)[1]

    def shown(self, version: int, block: Block, tokens: int) -> int:
        """Return the tokens that are sent of a block at its place."""
        del block, tokens  # the fold has them
        item = self._live.get(version)
        return 0 if item is None else item.shown_tokens
