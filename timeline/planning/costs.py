"""What each item of a window costs: the tokens shown of it, and those that the wire adds to it.

The sum is the messages' part of the account, see `timeline.planning.account`.
"""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolCall, ToolResult
from timeline.content.media_tokens import media_within, with_media
from timeline.content.native import server_part
from timeline.fold.window import unabridged
from timeline.frozen import canonical_json
from timeline.planning.messages import Starts, around, message_role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from timeline.fold.window import Item, Window
    from timeline.policy.model import Policy


CATEGORIES: Final = {
    "user.prompt": "prompts",
    "user.attachment": "prompts",
    "turn.header": "prompts",
    "assistant.completion": "completions",
    "assistant.reasoning": "reasoning",
    "react.tool.call": "calls",
    "react.tool.result": "results",
    "conv.range.summary": "summaries",
}
"""The account's category of each block type; all other types are in ``other``."""
_CALL: Final = "react.tool.call"
_RESULT: Final = "react.tool.result"
INTERRUPTED_TOKENS: Final = 15
"""Tokens of the result that the wire sends for a call without one."""
LOOSE_TOKENS: Final = 40
"""Tokens of the label that the wire puts on a result without its call: two words and a path."""


def scaled(tokens: int, policy: Policy) -> int:
    """Add the policy's margin to a count; calibrated counts are the provider's already."""
    if not _has_margin(policy):
        return tokens
    return tokens + math.ceil(round(tokens * policy.margin, 6))


def _has_margin(policy: Policy) -> bool:
    return bool(policy.margin) and policy.counts != "calibrated"


def as_counted(item: Item, policy: Policy) -> Item:
    """Return an item as the policy counts it: an abridged one is whole, where the policy counts it so."""
    return item if item.replacement is None or policy.abridged_counted_as == "shown" else unabridged(item)


def visible_tokens(window: Window, policy: Policy) -> int:
    """Return the tokens of all items as shown, an abridged one as the policy counts it."""
    if policy.abridged_counted_as == "shown":
        return window.tokens
    return sum(as_counted(item, policy).shown_tokens for item in window.items)


def own_tokens(item: Item, policy: Policy) -> int:
    """Return the tokens that an item costs by itself, without the policy's margin and what the wire adds.

    Where the policy counts results as JSON, a result costs its quotes and escapes besides its text, and the name of a
    call is rounded up by itself. Both corrections count a token for four characters, whatever counts the text: the
    account is drawn up far more often than a text is counted.
    """
    item = as_counted(item, policy)
    whole = item.replacement is None and not item.omitted
    if not item.tokens and whole and server_part(item.block) is not None:
        return with_media(item.block, 0)  # an earlier release sent no such part, and counted nothing
    if policy.results_counted_as == "text" or not whole:
        return item.shown_tokens
    block = item.block
    if type(block) is ToolCall:
        together = block.countable()
        apart = _quarter(block.name) + _quarter(together[len(block.name) :])
        return item.shown_tokens + apart - _quarter(together)
    if type(block) is not ToolResult:
        return item.shown_tokens
    text = block.countable()
    return item.shown_tokens + _quarter(canonical_json(text)) - _quarter(text)


def _quarter(text: str) -> int:
    return math.ceil(len(text) / 4)


class Costs:
    """The costs of a window's items as shown: their own tokens, and those that the wire adds.

    Items are added batch by batch. An appended result may answer an earlier call. The wire then no longer sends a text
    in place of the missing result, so the call's cost is corrected: the figures equal those of all items at once.

    Args:
        policy: its margin, and its tokens a message and a response.

    Attributes:
        policy: the policy of the figures.
        tokens: the tokens of each item, in order.
        by_category: their sums by category, see `CATEGORIES`.
        media: tokens of the pictures and documents among them, which no counter counts.
        unsent: tokens among them that are not sent: of abridged results, where the policy counts them whole.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.tokens: list[int] = []
        self.media: int = 0
        self.unsent: int = 0
        self.by_category: dict[str, int] = {}
        self._calls: dict[int, tuple[int, Item]] = {}
        self._answered: set[int] = set()
        self._gone: set[int] = set()
        self._starts = Starts() if policy.message_tokens or policy.response_tokens else None
        self._counts_whole = policy.abridged_counted_as == "whole"
        as_shown = policy.results_counted_as == "text" and not self._counts_whole
        self._counts_plainly = as_shown and not _has_margin(policy)

    @property
    def total(self) -> int:
        """The tokens of all items."""
        return sum(self.by_category.values())

    def take(self, items: Sequence[Item]) -> None:
        """Add the items that follow the ones added so far."""
        tokens, by_category, starts = self.tokens, self.by_category, self._starts
        # All answers first: a call is charged for a missing result only where no item of the batch answers it.
        for item in items:
            if item.answers is not None:
                self._answer(item.answers, omitted=item.omitted)
        plain = self._counts_plainly
        for position, item in enumerate(items, start=len(tokens)):
            block, sent = item.block, not item.unsent
            kind = block.type
            if kind == _CALL:
                self._calls[item.version] = (position, item)
            if plain and item.tokens and kind != _CALL and (kind != _RESULT or item.answers is not None):
                cost = item.shown_tokens  # what `_own` gives for it, in a tenth of the time
            else:
                cost = self._own(item)
                if self._counts_whole:
                    self.unsent += self._unsent_of(item, cost)
            if starts is not None and sent and starts.at(item, position):
                cost += self._of_message(item)
            tokens.append(cost)
            shown = item.replacement is None or item.state == "abridged"
            category = CATEGORIES.get(kind, "other") if shown else "hidden"
            by_category[category] = by_category.get(category, 0) + cost
            if block.data is not None and sent and item.replacement is None and not item.redacted:
                self.media += media_within(block, item.tokens)

    def freed(self, changed: Iterable[tuple[Item, Item]]) -> int:
        """Return the tokens that replacements free, from pairs of an item as it is and with its replacement.

        A replacement only changes what an item costs by itself: answers and messages stay what they are.
        """
        return sum([self._own(item) - self._own(replaced) for item, replaced in changed])

    def copy(self) -> Costs:
        """Return a copy for a thread; these costs may grow while the thread reads it."""
        copied = copy(self)
        vars(copied).update(tokens=[*self.tokens], _answered={*self._answered}, _gone={*self._gone})
        return copied

    def _own(self, item: Item) -> int:
        """Return the cost of an item by itself, given the answers known so far."""
        own = 0 if item.version in self._gone else own_tokens(item, self.policy)
        kind = item.block.type
        if kind == _CALL and item.version not in self._answered and not item.omitted:
            own += INTERRUPTED_TOKENS
        elif kind == _RESULT and item.answers is None and not item.omitted:
            own += LOOSE_TOKENS
        return scaled(own, self.policy)

    def _unsent_of(self, item: Item, cost: int) -> int:
        """Return how many tokens of an item's cost are not sent."""
        if as_counted(item, self.policy) is item:
            return 0
        of_label = LOOSE_TOKENS if item.answers is None else 0
        return cost - scaled(item.shown_tokens + of_label, self.policy)

    def _of_message(self, first: Item) -> int:
        """Return the tokens that a message costs besides its items. Its first item decides whose message it is."""
        by_response = self.policy.response_tokens if message_role(first.block) == "assistant" else 0
        return self.policy.message_tokens * (1 + around(first.block)) + by_response

    def _answer(self, version: int, *, omitted: bool) -> None:
        """Mark a call as answered, and as not sent where its result is omitted; correct its cost."""
        known = self._calls.get(version)
        if known is not None:
            self._add(*known, -self._own(known[1]))
        self._answered.add(version)
        if omitted:
            self._gone.add(version)
        if known is not None:
            self._add(*known, self._own(known[1]))

    def _add(self, position: int, item: Item, tokens: int) -> None:
        self.tokens[position] += tokens
        self.by_category[category_of(item)] += tokens


def category_of(item: Item) -> str:
    """Return the account's category of an item; ``hidden`` for one that is shown as its replacement."""
    shown = item.replacement is None or item.state == "abridged"
    return CATEGORIES.get(item.block.type, "other") if shown else "hidden"


def costs_of(items: Sequence[Item], policy: Policy) -> Costs:
    """Return the costs of all items of a window."""
    made = Costs(policy)
    made.take(items)
    return made


def costs(items: Sequence[Item], policy: Policy) -> list[int]:
    """Return the tokens of each item as shown, with the label or missing result that the wire adds."""
    return costs_of(items, policy).tokens


def changed_tokens(changed: Mapping[int, Item], items: Sequence[Item], policy: Policy) -> tuple[int, int]:
    """Return the tokens of items, and how many of them a change of some items frees in the account.

    Args:
        changed: the new items by version.
        items: as they are.
        policy: of the figures.
    """
    after = [changed.get(item.version, item) for item in items]
    before = sum(costs(items, policy))
    return before, before - sum(costs(after, policy))
