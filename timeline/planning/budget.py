"""The budget: what a context costs by category, and what it may cost (design, section 6, Budget)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from timeline.frozen import Frozen, begins_with, canonical_json
from timeline.planning.costs import Costs, costs_of
from timeline.policy.triggers import Reserved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import JsonValue

    from timeline.fold.window import Item
    from timeline.policy.model import Policy
    from timeline.policy.steps import CutPoint

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
