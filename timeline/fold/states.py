"""Find the state of every block of a conversation, covered ones included, from its full log."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from timeline.events import BlockAppended, CompactionCompleted, CompactionReverted, appended_block
from timeline.events.addresses import Address
from timeline.fold.fold import Fold

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.fold.window import State, Window


@dataclass(frozen=True, slots=True)
class BlockState:
    """A block of the log with its one state, and the version of the live summary that covers it.

    Attributes:
        version: of the event that appended it.
        block: the block as it was appended; of a redacted one, its tombstone.
        tokens: its count when shown in full.
        state: None for a hole in the coverage: neither live nor covered. `verify` reports it.
        covered_by: version of the live summary that covers it; None of any other block.
        abandoned: the history went back behind it, so that neither a model nor a summary knows of it. `block_states`
            does not say.
    """

    version: int
    block: Block
    tokens: int
    state: State | None
    covered_by: int | None = None
    abandoned: bool = False

    @property
    def address(self) -> str:
        """The block's address in its conversation: ``@152``."""
        return str(Address(self.version))


def states_of(window: Window, taken_back: Collection[int] = ()) -> Callable[[int], tuple[State | None, int | None]]:
    """Return a function from a block's version to its state and the version of the summary that covers it.

    The summaries of undone compactions (``taken_back``, by version) are omitted: no later summary covers them. The
    state is None for a hole in the coverage, which `verify` reports.
    """
    live = {item.version: item.state for item in window.items}
    versions = {item.block.path: item.version for item in window.items if item.is_summary}
    covering = [(versions[summary.block.path], summary.covers) for summary in window.summaries]

    def state(version: int) -> tuple[State | None, int | None]:
        if version in live:
            return live[version], None
        if version in taken_back:
            return "omitted", None
        by = next((summary for summary, covers in covering if version in covers), None)
        return (None if by is None else "covered"), by

    return state


def block_states(events: Sequence[Event], conversation: str) -> tuple[Window, list[BlockState]]:
    """Fold a whole log and return the window, and every block with its state, in order of version."""
    reverted = (event.payload.versions for event in events if isinstance(event.payload, CompactionReverted))
    taken_back = set(chain.from_iterable(reverted))
    fold = Fold(conversation, taken_back)
    blocks: list[tuple[int, Block, int]] = []
    for event in events:
        fold.apply(event.version, event.at, event.payload)
        block = appended_block(event.payload)
        if block is not None:
            tokens = event.payload.tokens if isinstance(event.payload, BlockAppended | CompactionCompleted) else 0
            blocks.append((event.version, block, tokens))
    state = states_of(fold.window, taken_back)
    return fold.window, [BlockState(version, block, tokens, *state(version)) for version, block, tokens in blocks]
