"""Count a window's items in one unit, where they were stored in another.

A block is counted when it is appended, by the counter of the policy in force then, and its count is stored with that
counter's name. A policy with another counter needs other figures. `Recount` makes them, for the window's items alone.
It has no I/O, and the same items give the same counts, so that a decision can be derived again from the log and the
name of the policy's counter.

A unit is a counter, or a counter times a ratio: `o200k_base*1.33` are the tokens of a provider that counts 1.33 where
``o200k_base`` counts one. A decision stores its figures in the unit of its time, with the unit's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolCall, form_of
from timeline.content.media_tokens import media_tokens, media_within, with_media
from timeline.fold.window import TOMBSTONE_TOKENS, Item
from timeline.frozen import canonical_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.events import Replacement
    from timeline.ports import TokenCounter


_SCALED: Final = "*"
"""In the name of a unit, before its ratio."""


class ScaledCounter:
    """Counts in a provider's tokens: ``ratio`` of them for each token of a counter.

    Args:
        plain: the counter.
        ratio: the provider's tokens for one of the counter's.
    """

    def __init__(self, plain: TokenCounter, ratio: float) -> None:
        self.plain: TokenCounter = plain
        self.ratio: float = ratio

    @property
    def name(self) -> str:
        """The name of the unit."""
        return unit_name(self.plain.name, self.ratio)

    def scaled(self, tokens: int) -> int:
        """Return a count of the plain counter in this unit."""
        return round(tokens * self.ratio)

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        return self.scaled(self.plain.count(text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count many texts."""
        return [self.scaled(tokens) for tokens in self.plain.count_many(texts)]

    def truncate(self, text: str, tokens: int) -> str:
        """Return the longest prefix of a text with at most ``tokens`` tokens."""
        return self.plain.truncate(text, int(tokens / self.ratio))


def in_unit(counter: TokenCounter, ratio: float) -> TokenCounter:
    """Return a counter that counts in another unit; the counter itself at a ratio of one."""
    return counter if ratio == 1 else ScaledCounter(counter, ratio)


def unit_name(counter: str, ratio: float) -> str:
    """Return the name of a unit."""
    return counter if ratio == 1 else f"{counter}{_SCALED}{ratio:g}"


def parts_of_unit(name: str) -> tuple[str, float]:
    """Return the counter and the ratio of a unit by its name; an application's counter may have any name."""
    counter, sign, ratio = name.rpartition(_SCALED)
    try:
        return (counter, float(ratio)) if sign else (name, 1.0)
    except ValueError:
        return name, 1.0


def plain_tokens(tokens: int, unit: str) -> int:
    """Return a figure in the tokens of its unit's counter, without the ratio."""
    _, ratio = parts_of_unit(unit)
    return round(tokens / ratio)


def plainly(item: Item) -> Item:
    """Return an item with its figures in counters' tokens, without a ratio.

    Readers of the log list it beside covered blocks, whose figures are in counters' tokens, too.
    """
    shown = item.replacement
    if _SCALED not in item.counter and (shown is None or _SCALED not in _unit_of_replacement(item)):
        return item  # as nearly all of a window are
    if shown is not None:
        shown = shown.model_copy(update={"tokens": plain_tokens(shown.tokens, _unit_of_replacement(item))})
    return item._replace(tokens=plain_tokens(item.tokens, item.counter), replacement=shown)


class Recount:
    """The items of a window, counted in one unit. Each block is counted once, however often it is asked for.

    Args:
        counter: counts the items that were stored under another name.
        ratio: what the counts are multiplied by.
    """

    def __init__(self, counter: TokenCounter, ratio: float = 1.0) -> None:
        self.counter: TokenCounter = counter
        self.ratio: float = ratio
        self._name = unit_name(counter.name, ratio)
        self._known: dict[int, tuple[Item, Item]] = {}
        self._texts: dict[int, tuple[Block, int]] = {}
        """Counts of blocks that were stored under another counter: the only ones that need the block's text."""

    def copy(self) -> Recount:
        """Return an independent copy, which knows the counts made so far."""
        twin = self.at(self.ratio)
        twin._known.update(self._known)  # noqa: SLF001 - of its own class
        return twin

    def at(self, ratio: float) -> Recount:
        """Return the same at another ratio; no text is counted again."""
        twin = Recount(self.counter, ratio)
        twin._texts.update(self._texts)
        return twin

    def items(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """Return the items with this unit's figures; an item that has them already is returned as it is."""
        known = self._known
        self._known = {}
        for item in items:
            self._known[item.version] = (item, self._counted(item, known.get(item.version)))
        self._texts = {version: text for version, text in self._texts.items() if version in self._known}
        return tuple(counted for _, counted in self._known.values())

    def item(self, item: Item) -> Item:
        """Return one more item of the window with this unit's figures."""
        counted = self._counted(item, None)
        self._known[item.version] = (item, counted)
        return counted

    def is_foreign(self, item: Item) -> bool:
        """Return whether a figure of an item is not in the plain counter's tokens; without a counter's name it is."""
        own = {self.counter.name, ""}
        return item.counter not in own or (item.replacement is not None and _unit_of_replacement(item) not in own)

    def is_due(self, item: Item) -> bool:
        """Return whether a figure of an item is in another unit; one without a unit's name is the plain counter's."""
        plain, own = self.counter.name, self._name
        return (item.counter or plain) != own or (
            item.replacement is not None and (_unit_of_replacement(item) or plain) != own
        )

    def _counted(self, item: Item, known: tuple[Item, Item] | None) -> Item:
        if known is not None and known[0] is item:
            return known[1]
        if not self.is_due(item):
            return item
        shown = item.replacement
        if shown is not None:
            unit = _unit_of_replacement(item)
            same = known is not None and known[0].replacement is shown
            shown = known[1].replacement if known is not None and same else self._replacement(item.block, shown, unit)
        return item._replace(tokens=self._tokens(item), counter=self._name, replacement=shown)

    def _tokens(self, item: Item) -> int:
        """Return an item's tokens in this unit. The ratio applies to its text, and not to its media."""
        if item.counter == self._name:
            return item.tokens
        if item.redacted:
            return TOMBSTONE_TOKENS
        counter, ratio = parts_of_unit(item.counter or self.counter.name)
        if counter == self.counter.name:
            media = media_within(item.block, item.tokens)
            return round((item.tokens - media) / ratio * self.ratio) + media
        media = media_tokens(item.block)
        return round((self._text(item) - media) * self.ratio) + media

    def _text(self, item: Item) -> int:
        """Count a block that was stored under another counter."""
        known = self._texts.get(item.version)
        if known is None or known[0] is not item.block:
            known = self._texts[item.version] = (item.block, _counted_block(item.block, self.counter))
        return known[1]

    def _replacement(self, block: Block, shown: Replacement, unit: str) -> Replacement:
        counter, ratio = parts_of_unit(unit or self.counter.name)
        if counter == self.counter.name:
            tokens = shown.tokens / ratio
        elif isinstance(block, ToolCall) and shown.arguments is not None:
            tokens = replaced_call_tokens(block, shown.arguments, self.counter)
        else:
            tokens = self.counter.count(shown.text)
        return shown.model_copy(update={"tokens": round(tokens * self.ratio)})


def replaced_call_tokens(call: ToolCall, arguments: dict[str, JsonValue], counter: TokenCounter) -> int:
    """Return the tokens of a call that is shown with other arguments than its own."""
    return counter.count(f"{call.name}{canonical_json(arguments)}")


def _counted_block(block: Block, counter: TokenCounter) -> int:
    count = counter.count
    if (form := form_of(block)) is not None:
        texts = (form.get("question"), block.text, form.get("answer"))
        return sum(count(text) for text in texts if isinstance(text, str) and text)
    return with_media(block, count(block.countable()))


def _unit_of_replacement(item: Item) -> str:
    """Return the name of the unit of an item's replacement: the block's own where the decision names none."""
    return (item.hide.counter if item.hide is not None else "") or item.counter
