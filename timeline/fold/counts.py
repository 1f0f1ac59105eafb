"""Count a window's items by one counter, where they were stored under another.

A block is counted when it is appended, by the counter of the policy in force then, and its count is stored with that
counter's name. A policy that counts otherwise needs other figures: `Recount` makes them of the window's items, and of
no block before the window. It has no I/O, and the same items give the same counts, so that a decision can be derived
again from the log and the name of the policy's counter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.blocks import FORM_KEY, RangeSummary, ToolCall, with_media
from timeline.fold.window import TOMBSTONE_TOKENS, Item
from timeline.frozen import canonical_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.events import Replacement
    from timeline.ports import TokenCounter


class Recount:
    """The items of a window, counted by one counter. Each block is counted once, however often it is asked for.

    Args:
        counter: counts the items that were stored under another name.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._known: dict[int, tuple[Item, Item]] = {}

    def copy(self) -> Recount:
        """Return an independent copy, which knows the counts made so far."""
        twin = Recount(self.counter)
        twin._known = self._known
        return twin

    def items(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """Return the items with this counter's figures; one that has them already is the same object."""
        known = self._known
        self._known = {item.version: (item, self._counted(item, known.get(item.version))) for item in items}
        return tuple(counted for _, counted in self._known.values())

    def is_due(self, item: Item) -> bool:
        """Return whether a figure of an item is another counter's; one whose counter the log does not name stays."""
        own = {self.counter.name, ""}
        return item.counter not in own or (item.replacement is not None and _counter_of_replacement(item) not in own)

    def _counted(self, item: Item, known: tuple[Item, Item] | None) -> Item:
        if known is not None and known[0] is item:
            return known[1]
        if not self.is_due(item):
            return item
        tokens, shown, name = item.tokens, item.replacement, self.counter.name
        if item.counter not in {name, ""}:
            same = known is not None and known[0].block is item.block
            tokens = known[1].tokens if known is not None and same else self._tokens(item)
        if shown is not None and _counter_of_replacement(item) not in {name, ""}:
            same = known is not None and known[0].replacement is shown
            shown = known[1].replacement if known is not None and same else self._replacement(item.block, shown)
        return item._replace(tokens=tokens, counter=name, replacement=shown)

    def _tokens(self, item: Item) -> int:
        if item.redacted:
            return TOMBSTONE_TOKENS
        block, count = item.block, self.counter.count
        if isinstance(block, RangeSummary) and isinstance(form := block.meta.get(FORM_KEY), dict):
            said = (form.get("question"), block.text, form.get("answer"))
            return sum(count(text) for text in said if isinstance(text, str) and text)
        return with_media(block, count(block.countable()))

    def _replacement(self, block: Block, shown: Replacement) -> Replacement:
        if isinstance(block, ToolCall) and shown.arguments is not None:
            text = f"{block.name}{canonical_json(shown.arguments)}"
        else:
            text = shown.text
        return shown.model_copy(update={"tokens": self.counter.count(text)})


def _counter_of_replacement(item: Item) -> str:
    """Return the name of the counter of an item's replacement: the block's own where the decision names none."""
    return (item.hide.counter if item.hide is not None else "") or item.counter
