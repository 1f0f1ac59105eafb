"""Find the signed reasoning of a window that follows another prefix than the one for which it was signed.

The window alone decides that, and no append changes it. `timeline.wire.providers` decides what each provider is sent of
such reasoning. Blocks that were hidden or omitted, and are shown again, make the prefix what it was. So the reasoning
of a branch that is taken up again is as good as on the day it was signed.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from timeline.blocks import Reasoning, UserPrompt
from timeline.fold.changes import FormChange
from timeline.fold.turns import RESPONSE_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.fold.window import Item

_KNOWS_WHAT_CAME_BACK: Final = 7
"""The first projection number for which a block that is shown again counts as unchanged."""


class Signatures:
    """Finds the signed reasoning of one window whose prefix was rewritten, item by item in order.

    Args:
        items: of the window.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._changed_at = 0
        self._spans: dict[tuple[int, int], int] = {}
        """The spans of versions in which the prefix differed from now, each with the last decision that changed it."""

    def over(self, items: Sequence[Item]) -> Signatures:
        """Return a follower for a window that begins with these items, to go on behind the last item asked about."""
        further = type(self)(items)
        further._changed_at, further._spans = self._changed_at, self._spans.copy()  # noqa: SLF001 - of its own class
        return further

    def rewritten_at(self, item: Item) -> int:
        """Return the version of the decision that last rewrote the prefix of signed reasoning; 0 where none did.

        Call it once for each item, in order. An undo restores the blocks from before the compaction, and with them the
        prefix of the reasoning of that time; it rewrites the prefix of all reasoning since the compaction.
        """
        at = 0 if type(item.block) is not Reasoning else self._rewritten_at(item)
        if item.changed_at:
            self._take(item)
        return at

    def _rewritten_at(self, item: Item) -> int:
        at = max(self._changed_at, item.undone_at)
        spans = (last for (start, end), last in self._spans.items() if start <= item.version < end)
        return max(at if item.version < at else 0, max(spans, default=0))

    def _take(self, item: Item) -> None:
        """Add a block to the prefix of the blocks behind it.

        For nearly all changed blocks one number is enough: up to its last decision, something else was always shown in
        its place. Whether two replacements have the same bytes is not kept, so they count as different.
        """
        if item.form == "replaced":
            self._changed_at = max(self._changed_at, item.changed_at)
            return
        for start, end in _shown_otherwise(item):
            if start == 0 and end == item.changed_at:
                self._changed_at = max(self._changed_at, end)
            else:
                self._spans[start, end] = max(item.changed_at, self._spans.get((start, end), 0))

    def in_loop(self, item: Item, at: int) -> bool:
        """Return whether an item was part of the assistant's newest turn at the decision of version ``at``.

        That turn goes from the newest response back to the prompt before it. Later appends do not change the answer. So
        reasoning that was sent once is sent in each context until the next decision.
        """
        responses, asked = self._versions
        newest = responses[bisect_left(responses, at) - 1]
        prompts = bisect_left(asked, newest)
        return item.version > (asked[prompts - 1] if prompts else 0)

    @cached_property
    def _versions(self) -> tuple[list[int], list[int]]:
        """The versions of the model's response blocks, and of the prompts."""
        responses = sorted(item.version for item in self._items if type(item.block) in RESPONSE_BLOCKS)
        asked = sorted(item.version for item in self._items if type(item.block) is UserPrompt)
        return responses, asked


class SignaturesBefore7(Signatures):
    """Follows the rule of the projections up to 6: each decision about a block rewrites the prefix of what follows."""

    def _take(self, item: Item) -> None:
        self._changed_at = max(self._changed_at, item.changed_at)


def signatures_of(projection: int, items: Sequence[Item] = ()) -> Signatures:
    """Return a follower with the rule of a projection number."""
    return (Signatures if projection >= _KNOWS_WHAT_CAME_BACK else SignaturesBefore7)(items)


def _shown_otherwise(item: Item) -> Iterator[tuple[int, int]]:
    """Return the spans of versions in which the place of an item was sent otherwise than now, oldest first.

    Each span includes its first version, and not its end. Before a summary existed, its place had the blocks that it
    covers. For any other item, reasoning that was signed before it was appended is not behind it.
    """
    if item.is_summary:
        yield 0, item.version
    first = FormChange(item.version if item.is_summary else 0, "whole")
    shown = chain([first], item.changes, [FormChange(item.changed_at, item.form)])
    yield from ((one.version, other.version) for one, other in pairwise(shown) if one.form != item.form)
