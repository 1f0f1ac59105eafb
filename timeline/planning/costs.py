"""Costs: what each item of a window costs as shown, what the wire adds to it included."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from timeline.planning.messages import Starts, role_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.fold.window import Item
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
"""The account's line of each block type; every other type is in ``other``."""

_CALL: Final = "react.tool.call"
_RESULT: Final = "react.tool.result"

INTERRUPTED_TOKENS: Final = 15
"""What the wire's stand-in for a missing result costs."""
LOOSE_TOKENS: Final = 40
"""What the wire's label of a result without its call costs: two words and a path."""


def scaled(tokens: int, policy: Policy) -> int:
    """Add the policy's margin to a count."""
    if not policy.margin:
        return tokens
    return tokens + math.ceil(round(tokens * policy.margin, 6))


class Costs:
    """What the items of a window cost as shown: their own tokens, and those of what the wire adds to them.

    Items are taken in by and by. One that is appended may answer a call, whose stand-in is not sent any more: that is
    taken back, so that the figures are those of all items at once.

    Args:
        policy: says what is added to a count, and to a message.

    Attributes:
        policy: that the figures hold under.
        tokens: of each item, in order.
        by_category: their sums by kind of block, see `CATEGORIES`.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.tokens: list[int] = []
        self.by_category: dict[str, int] = {}
        self._calls: dict[int, tuple[int, Item]] = {}
        self._answered: set[int] = set()
        self._gone: set[int] = set()
        self._starts = Starts() if policy.message_tokens or policy.response_tokens else None

    def take(self, items: Sequence[Item]) -> None:
        """Take in the items that follow."""
        tokens, by_category, starts = self.tokens, self.by_category, self._starts
        for item in items:
            if item.answers is not None:
                self._answer(item.answers, omitted=item.omitted)
        for position, item in enumerate(items, start=len(tokens)):
            cost = self._own(item)
            if item.block.type == _CALL:
                self._calls[item.version] = (position, item)
            if starts is not None and not item.omitted and starts.at(item, position):
                cost += self._of_message(item)
            tokens.append(cost)
            category = _category(item)
            by_category[category] = by_category.get(category, 0) + cost

    def _own(self, item: Item) -> int:
        """Return what an item costs by itself, as far as it is known what answers it."""
        own = 0 if item.version in self._gone else item.shown_tokens
        kind = item.block.type
        if kind == _CALL and item.version not in self._answered and not item.omitted:
            own += INTERRUPTED_TOKENS
        elif kind == _RESULT and item.answers is None and not item.omitted:
            own += LOOSE_TOKENS
        return scaled(own, self.policy)

    def _of_message(self, first: Item) -> int:
        """Return what a message costs beside its items, by the first of them."""
        return self.policy.message_tokens + (self.policy.response_tokens if role_of(first.block) == "assistant" else 0)

    def _answer(self, version: int, *, omitted: bool) -> None:
        """Note that a call is answered; one whose result is omitted goes with it."""
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
        self.by_category[_category(item)] += tokens


def _category(item: Item) -> str:
    return "hidden" if item.replacement is not None else CATEGORIES.get(item.block.type, "other")


def costs_of(items: Sequence[Item], policy: Policy) -> Costs:
    """Return what all items of a window cost."""
    made = Costs(policy)
    made.take(items)
    return made


def costs(items: Sequence[Item], policy: Policy) -> list[int]:
    """Return what each item costs as shown: its own tokens, and those of the label or stand-in that the wire adds."""
    return costs_of(items, policy).tokens


def freed_by(changed: Mapping[int, Item], items: Sequence[Item], policy: Policy) -> int:
    """Return what showing some items otherwise frees in the account; ``changed`` holds them, by version."""
    after = [changed.get(item.version, item) for item in items]
    return sum(costs(items, policy)) - sum(costs(after, policy))
