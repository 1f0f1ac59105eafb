"""The state of every block of a conversation, covered ones included, from its full log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from timeline.events import BlockAppended, CompactionCompleted, appended_block
from timeline.fold.fold import Fold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.fold.window import State, Window


@dataclass(frozen=True, slots=True)
class BlockState:
    """A block of the log: its one state, and the version of the live summary that covers it.

    ``state`` is None for a block that no state fits: a hole in the coverage, which `verify` reports.
    """

    version: int
    block: Block
    tokens: int
    state: State | None
    covered_by: int | None = None


def block_states(events: Iterable[Event], conversation: str) -> tuple[Window, list[BlockState]]:
    """Fold a whole log; return the window, and every block with its state, by version."""
    fold = Fold(conversation)
    blocks: list[tuple[int, Block, int]] = []
    completed: dict[str, int] = {}
    for event in events:
        fold.apply(event.version, event.payload)
        block = appended_block(event.payload)
        if block is not None:
            tokens = event.payload.tokens if isinstance(event.payload, BlockAppended | CompactionCompleted) else 0
            blocks.append((event.version, block, tokens))
        if isinstance(event.payload, CompactionCompleted):
            completed[event.payload.block.path] = event.version
    window = fold.window
    live = {item.version: item.state for item in window.items}
    covering = [(completed[s.block.path], s.covers) for s in window.summaries]
    states: list[BlockState] = []
    for version, block, tokens in blocks:
        state = live.get(version)
        by = None if state is not None else next((v for v, covers in covering if version in covers), None)
        states.append(BlockState(version, block, tokens, "covered" if by is not None else state, by))
    return window, states
