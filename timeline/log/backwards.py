"""Iterate over the blocks of a whole log from the newest one back, each with its state: `blocks_backwards`.

A decision about a block comes behind it: read backwards, a log gives all decisions about a block before the block
itself. So a part of the list costs what that part of the log costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.events import (
    ABANDONED,
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    BlocksRevealed,
    CompactionCompleted,
    CompactionReverted,
    appended_block,
)
from timeline.fold.counts import plain_tokens
from timeline.fold.states import BlockState, states_of
from timeline.fold.window import tombstone

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection

    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.fold.window import Window
    from timeline.ports import EventStore

_DECIDING: Final = ("blocks.hidden", "blocks.revealed", "block.redacted", "compaction.reverted")


async def blocks_backwards(
    store: EventStore, window: Window, *, types: Collection[str] | None, before: int | None, page: int
) -> AsyncGenerator[BlockState]:
    """Iterate over the blocks up to a window's version, the newest first. See `TimelineView.history`."""
    end = window.version + 1 if before is None else min(before, window.version + 1)
    walk = _Backwards(window)
    if end <= window.version:
        read = store.read(window.conversation, after=end - 1, until=window.version, types=_DECIDING)
        for event in reversed([event async for event in read]):
            walk.take(event)
    while end > 1:
        after = max(0, end - 1 - page)
        events = [event async for event in store.read(window.conversation, after=after, until=end - 1, page=page)]
        for event in reversed(events):
            walk.take(event)
            block = appended_block(event.payload)
            if block is not None and (types is None or block.type in types):
                yield walk.state_of(event, block)
        end = after + 1


class _Backwards:
    """What the events behind a place in the log say of the blocks before it."""

    def __init__(self, window: Window) -> None:
        self._abandoned: dict[int, bool] = {}
        self._redacted: dict[int, str] = {}
        self._taken_back: set[int] = set()
        self._state = states_of(window, self._taken_back)

    def take(self, event: Event) -> None:
        """Keep what the next older event decided, unless a newer one decided otherwise."""
        match event.payload:
            case BlocksHidden(reason=reason, blocks=blocks):
                for hidden in blocks:
                    self._abandoned.setdefault(hidden.version, reason == ABANDONED)
            case BlocksRevealed(versions=versions):
                for version in versions:
                    self._abandoned.setdefault(version, False)
            case BlockRedacted(version=version, reason=reason):
                self._redacted.setdefault(version, reason)
            case CompactionReverted(versions=versions):
                self._taken_back.update(versions)
            case _:
                pass

    def state_of(self, event: Event, block: Block) -> BlockState:
        """Return the row of a block that an event appended."""
        version, payload = event.version, event.payload
        if version in self._redacted:
            block = tombstone(block, self._redacted[version])
        counted = payload if isinstance(payload, BlockAppended | CompactionCompleted) else None
        tokens = 0 if counted is None else plain_tokens(counted.tokens, counted.counter)
        state, by = self._state(version)
        return BlockState(version, block, tokens, state, by, abandoned=self._abandoned.get(version, False))
