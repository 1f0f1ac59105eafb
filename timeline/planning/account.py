"""The account: what a context costs by category, and what it may cost.

Each item of a window costs what is shown of it, and what the wire adds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from timeline.frozen import Frozen, begins_with, canonical_json
from timeline.planning.messages import Starts, role_of
from timeline.policy.model import Reserved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import JsonValue

    from timeline.fold.window import Item
    from timeline.policy.model import Policy
    from timeline.policy.steps import CutPoint


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


_LEAST_PREVIEW: Final = 64
_GROWTH: Final = 0.1
_LEAST_GROWTH: Final = 256


UsageLevel: TypeAlias = Literal["normal", "warning", "critical"]
WARNING_PERCENT: Final = 80
CRITICAL_PERCENT: Final = 95


class FixedPart(Frozen):
    """Tokens that no compaction can free: system prompt, tools, the ephemeral tail, and what the policy reserves."""

    system: int = 0
    tools: int = 0
    ephemeral: int = 0
    reserved: int = 0

    @property
    def tokens(self) -> int:
        """All of it."""
        return self.system + self.tools + self.ephemeral + self.reserved


class Account(Frozen):
    """The token account of a context.

    Attributes:
        limit, trigger, target: of the policy, in tokens.
        fixed: system, tools, ephemeral and reserved tokens.
        messages: tokens of the conversation, as shown.
        by_category: the messages by kind of block.
    """

    limit: int
    trigger: int
    target: int
    fixed: FixedPart = FixedPart()
    messages: int = 0
    by_category: dict[str, int] = {}

    @property
    def total(self) -> int:
        """Everything, reserves included: what is held against the trigger and the limit."""
        return self.fixed.tokens + self.messages

    @property
    def sent(self) -> int:
        """What the request itself counts, without reserves."""
        return self.total - self.fixed.reserved

    @property
    def available(self) -> int:
        """What is left for further messages; negative above the limit."""
        return self.limit - self.total

    @property
    def utilization(self) -> float:
        """Messages over the room for messages; infinite when there is no room."""
        room = self.limit - self.fixed.tokens
        return self.messages / room if room > 0 else math.inf

    @property
    def percent_used(self) -> float:
        """The total in percent of the limit, 0 to 100: what an indicator of usage shows."""
        return min(100.0, 100 * self.total / self.limit) if self.limit else 100.0

    @property
    def level(self) -> UsageLevel:
        """How full the context is: a warning above 80 %, critical above 95 % (seed 004)."""
        used = self.percent_used
        return "critical" if used > CRITICAL_PERCENT else "warning" if used > WARNING_PERCENT else "normal"

    @property
    def over_trigger(self) -> bool:
        """Whether a render compacts: strictly above the trigger (seed 002, when compaction runs)."""
        return self.total > self.trigger

    def facts(self) -> dict[str, int]:
        """Return the account as flat figures, for errors and reports."""
        fixed = self.fixed
        return {
            "limit": self.limit,
            "trigger": self.trigger,
            "target": self.target,
            "total": self.total,
            "fixed": fixed.tokens,
            "system": fixed.system,
            "tools": fixed.tools,
            "ephemeral": fixed.ephemeral,
            "reserved": fixed.reserved,
            "messages": self.messages,
            "available": self.available,
            **self.by_category,
        }


def fixed_part(
    policy: Policy,
    count: Callable[[str], int],
    *,
    system: JsonValue = None,
    tools: Sequence[JsonValue] = (),
    ephemeral: Sequence[str] = (),
) -> FixedPart:
    """Count the fixed part of a context.

    Args:
        policy: says what is reserved.
        count: counts one text, the policy's margin included.
        system: the system prompt, as the provider takes it.
        tools: tool schemas, as the provider takes them.
        ephemeral: texts of the uncached tail.
    """
    return FixedPart(
        system=count(_text(system)) if system else 0,
        tools=sum(count(_text(tool)) for tool in tools),
        ephemeral=sum(count(text) for text in ephemeral),
        reserved=policy.output_reserve + policy.safety_buffer,
    )


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else canonical_json(value)


class Ledger:
    """Draws up the accounts of one conversation's windows; what it remembers saves work and changes nothing.

    A window that begins with the very items of the one before it costs what is new in it.
    """

    def __init__(self) -> None:
        self._items: Sequence[Item] = ()
        self._costs: Costs | None = None

    def account(self, items: Sequence[Item], fixed: FixedPart, policy: Policy) -> Account:
        """Draw up the account of a window, as `account` does."""
        costs = self._costs
        if costs is None or costs.policy is not policy or not begins_with(items, self._items):
            costs, self._items = Costs(policy), ()
        costs.take(items[len(self._items) :])
        self._items, self._costs = items, costs
        return _drawn_up(costs, fixed, lines(policy, fixed))


def account(items: Sequence[Item], fixed: FixedPart, policy: Policy, *, most: int | None = None) -> Account:
    """Draw up the account of a window.

    Args:
        items: of the window.
        fixed: what no compaction can free.
        policy: says what it may cost.
        most: hold it against this figure for once, instead of the policy's limit, trigger and target.
    """
    held_against = lines(policy, fixed) if most is None else (most, most, most)
    return _drawn_up(costs_of(items, policy), fixed, held_against)


def _drawn_up(costs: Costs, fixed: FixedPart, held_against: tuple[int, int, int]) -> Account:
    limit, trigger, target = held_against
    return Account(
        limit=limit,
        trigger=trigger,
        target=target,
        fixed=fixed,
        messages=sum(costs.by_category.values()),
        by_category={**costs.by_category},
    )


def lines(policy: Policy, fixed: FixedPart) -> tuple[int, int, int]:
    """Return limit, trigger and target of a policy, as totals in tokens."""
    held = Reserved(fixed=fixed.tokens, tools=fixed.tools, reserved=fixed.reserved)
    trigger = policy.trigger.line(policy.max_tokens, held)
    target = trigger if policy.stop_at == "trigger" else min(int(policy.target * policy.max_tokens), trigger)
    return policy.max_tokens, trigger, target


def keep_recent(cut: CutPoint, bill: Account) -> int:
    """Return how many tokens stay verbatim behind the cut, before any halving."""
    if cut.keep_recent_tokens is not None:
        return cut.keep_recent_tokens
    return max(1, int(cut.keep_recent * (bill.limit - bill.fixed.tokens)))


def preview_cap(policy: Policy, limit: int) -> int:
    """Return how long a preview may be: the policy's figure, less where the limit itself is small."""
    return max(_LEAST_PREVIEW, min(policy.preview_tokens, limit // 20))


def retry_growth(policy: Policy, visible_tokens: int) -> int:
    """Return by how much the visible tokens must grow after a refusal, before another try (design, invariant 3)."""
    return max(least_progress(policy, visible_tokens), math.ceil(_GROWTH * visible_tokens), _LEAST_GROWTH)


def least_progress(policy: Policy, visible_tokens: int) -> int:
    """Return what a compaction must free at the least (design, invariant 3)."""
    return max(math.ceil(policy.min_progress * visible_tokens), policy.min_progress_tokens)
