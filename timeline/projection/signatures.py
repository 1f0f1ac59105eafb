"""Signed reasoning: what of it stands behind a prefix that was rewritten since it was signed, and in whose turn.

Whether a signature still holds there, and whether the provider demands the part back nevertheless, is the provider's
own rule (`timeline.wire.providers`); here it is only told from the window, and from nothing that an append can change.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING

from timeline.blocks import Reasoning, UserPrompt
from timeline.fold.turns import RESPONSE_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item


class Signatures:
    """Follows the items of one window, in their order.

    Args:
        items: of the window.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._changed_at = 0

    def over(self, items: Sequence[Item]) -> Signatures:
        """Return what follows the items of a window that begins with these, and goes on where this one stands."""
        further = Signatures(items)
        further._changed_at = self._changed_at
        return further

    def rewritten_at(self, item: Item) -> int:
        """Return the version of the decision that last rewrote the prefix of signed reasoning; 0 where none did.

        Asked once for each item, in order. An undo gives the blocks back that were there before the compaction, and
        with them the prefix of what was said then; it takes away the prefix of what was said since.
        """
        before, self._changed_at = self._changed_at, max(self._changed_at, item.changed_at)
        if type(item.block) is not Reasoning:
            return 0
        at = max(before, item.undone_at)
        return at if item.version < at else 0

    def in_loop(self, item: Item, at: int) -> bool:
        """Say whether an item was part of the assistant's newest turn when a decision of version ``at`` was taken.

        That turn reaches from the newest response back to the prompt before it. What is appended later begins other
        turns and changes nothing of it, so that a part which was sent once goes on being sent until the next decision.
        """
        said, asked = self._versions
        newest = said[bisect_left(said, at) - 1]
        prompts = bisect_left(asked, newest)
        return item.version > (asked[prompts - 1] if prompts else 0)

    @cached_property
    def _versions(self) -> tuple[list[int], list[int]]:
        """The versions of what the model said, and of what it was asked."""
        said = sorted(item.version for item in self._items if type(item.block) in RESPONSE_BLOCKS)
        asked = sorted(item.version for item in self._items if type(item.block) is UserPrompt)
        return said, asked
