"""Draw up the token account of a context: what it costs by category, against limit, trigger and target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from timeline.fold.reported import NO_REPORTS
from timeline.frozen import Frozen, begins_with, canonical_json
from timeline.planning.costs import costs_of
from timeline.policy.model import OverThreshold, Reserved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import JsonValue

    from timeline.fold.reported import Reported
    from timeline.fold.window import Item
    from timeline.planning.costs import Costs
    from timeline.policy.model import Policy
    from timeline.policy.steps import CutPoint


_LEAST_PREVIEW: Final = 64


UsageLevel: TypeAlias = Literal["normal", "warning", "critical"]
WARNING_PERCENT: Final = 80
CRITICAL_PERCENT: Final = 95


class FixedPart(Frozen):
    """Tokens that no compaction can free: system prompt, tools, the uncached tail, and the policy's reserves.

    The tail has three components: the memory digest and the stage data of staged work, and the caller's texts. With
    calibrated counts ``provider`` is what the provider counts besides, such as its own prompt for tools. It is negative
    where the provider counts fewer tokens of system prompt and tools than we do.
    """

    system: int = 0
    tools: int = 0
    memory_digest: int = 0
    stage_data: int = 0
    ephemeral: int = 0
    reserved: int = 0
    provider: int = 0

    @property
    def tail(self) -> int:
        """Tokens of the uncached tail."""
        return self.memory_digest + self.stage_data + self.ephemeral

    @property
    def tokens(self) -> int:
        """The sum of all of them."""
        return self.system + self.tools + self.tail + self.reserved + self.provider


class Tail(NamedTuple):
    """The texts of a context's uncached tail, see `timeline.planning.tail`; an empty one is not sent.

    Attributes:
        memory_digest: what the approved stages decided.
        stage_data: what else is shown of them.
        callers: texts of the render's caller.
    """

    memory_digest: str = ""
    stage_data: str = ""
    callers: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """Return the texts that are sent, in order."""
        return [text for text in (self.memory_digest, self.stage_data) if text] + list(self.callers)


NO_TAIL: Final = Tail()


class Account(Frozen):
    """The token account of a context.

    Attributes:
        limit, trigger, target: of the policy, in tokens.
        fixed: system, tools, tail and reserved tokens.
        messages: tokens of the conversation, as the policy counts what is shown.
        by_category: the messages by kind of block.
        media: tokens of the messages' pictures and documents, which no counter counts.
        unsent: tokens that are counted and not sent: of abridged results, where the policy counts them whole.
    """

    limit: int
    trigger: int
    target: int
    fixed: FixedPart = FixedPart()
    messages: int = 0
    by_category: dict[str, int] = {}
    media: int = 0
    unsent: int = 0

    @property
    def total(self) -> int:
        """All tokens, reserves included. The trigger applies to this figure."""
        return self.fixed.tokens + self.messages

    @property
    def needed(self) -> int:
        """Tokens of the request and its reserves. The limit applies to this figure."""
        return self.total - self.unsent

    @property
    def sent(self) -> int:
        """Tokens of the request itself, without reserves."""
        return self.needed - self.fixed.reserved

    @property
    def available(self) -> int:
        """Tokens left for further messages; negative above the limit."""
        return self.limit - self.needed

    @property
    def utilization(self) -> float:
        """Tokens of the messages divided by the room for messages; infinite when there is no room."""
        room = self.limit - self.fixed.tokens
        return self.messages / room if room > 0 else math.inf

    @property
    def percent_used(self) -> float:
        """What is needed in percent of the limit, 0 to 100, for an indicator of usage."""
        return min(100.0, 100 * self.needed / self.limit) if self.limit else 100.0

    @property
    def level(self) -> UsageLevel:
        """How full the context is: a warning above 80 %, critical above 95 %, as in [prune_then_summarize]."""
        used = self.percent_used
        return "critical" if used > CRITICAL_PERCENT else "warning" if used > WARNING_PERCENT else "normal"

    @property
    def over_trigger(self) -> bool:
        """Whether a render compacts: strictly above the trigger, as in the cut-point design [cut_point]."""
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
            "memory_digest": fixed.memory_digest,
            "stage_data": fixed.stage_data,
            "ephemeral": fixed.ephemeral,
            "reserved": fixed.reserved,
            **({"provider": fixed.provider} if fixed.provider else {}),
            "messages": self.messages,
            **({"unsent": self.unsent} if self.unsent else {}),
            "available": self.available,
            **self.by_category,
        }


def fixed_part(
    policy: Policy,
    count: Callable[[str], int],
    *,
    system: JsonValue = None,
    tools: Sequence[JsonValue] = (),
    tail: Tail = NO_TAIL,
    reported: Reported = NO_REPORTS,
) -> FixedPart:
    """Count the fixed part of a context.

    Under the keep-last design's trigger the system prompt is one of the messages, so it costs a message's tokens too.

    Args:
        policy: its output reserve and safety buffer, and its tokens a message.
        count: counts one text, the policy's margin included.
        system: the system prompt, as the provider takes it.
        tools: tool schemas, as the provider takes them.
        tail: the uncached tail.
        reported: how the provider counts; its offset is part of calibrated counts only. An offset above the policy's
            limit is ignored, or it would refuse each call that could correct it.
    """
    of_message = policy.message_tokens if isinstance(policy.trigger, OverThreshold) else 0
    system_tokens, schemas = (
        count(_text(system)) + of_message if system else 0,
        sum(count(_text(tool)) for tool in tools),
    )
    start = policy.first_ratio
    offset = 0 if start is None else reported.offset(reported.ratio_from(start))
    return FixedPart(
        system=system_tokens,
        tools=schemas,
        provider=max(-system_tokens - schemas, offset) if offset <= policy.max_tokens else 0,
        memory_digest=count(tail.memory_digest),
        stage_data=count(tail.stage_data),
        ephemeral=sum(count(text) for text in tail.callers),
        reserved=policy.output_reserve + policy.safety_buffer,
    )


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else canonical_json(value)


class AccountCache:
    """Draws up the accounts of one conversation's windows, and remembers costs to save work.

    For a window that begins with the same item objects as an earlier one, only the new items are counted. The result is
    that of `account_of`. Two windows are remembered, since a dry run decides anew each time from the log's own window.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Sequence[Item], Costs]] = []

    def begin(self, items: Sequence[Item], policy: Policy) -> None:
        """Begin with a log's own window: forget the costs of windows that it does not continue."""
        place = self._place(items, policy)
        self._known = [] if place is None else [self._known[place]]

    def account(self, items: Sequence[Item], fixed: FixedPart, policy: Policy) -> Account:
        """Draw up the account of a window, with the same result as `account_of`."""
        return _drawn_up(self.costs(items, policy), fixed, limits_of_policy(policy, fixed))

    def costs(self, items: Sequence[Item], policy: Policy) -> Costs:
        """Return the costs of a window's items, with the same result as `costs_of`."""
        place = self._place(items, policy)
        if place is None:
            made = costs_of(items, policy)
            self.adopt(items, made)
            return made
        known, costs = self._known[place]
        costs.take(items[len(known) :])
        self._known[place] = items, costs
        return costs

    def unknown(self, items: Sequence[Item], policy: Policy) -> int:
        """Return how many of a window's items have to be counted for its account."""
        place = self._place(items, policy)
        return len(items) if place is None else len(items) - len(self._known[place][0])

    def adopt(self, items: Sequence[Item], costs: Costs) -> None:
        """Remember the costs of a window's items, as `costs_of` made them, for the windows that continue it."""
        self._known[1:] = [(items, costs)]  # the first is the log's own window

    def _place(self, items: Sequence[Item], policy: Policy) -> int | None:
        """Return the place of the remembered costs that a window continues; None where all have to be counted."""
        for place in reversed(range(len(self._known))):
            known, costs = self._known[place]
            if costs.policy is policy and begins_with(items, known):
                return place
        return None


def account_of(items: Sequence[Item], fixed: FixedPart, policy: Policy, *, most: int | None = None) -> Account:
    """Draw up the account of a window.

    Args:
        items: of the window.
        fixed: the tokens that no compaction can free.
        policy: gives limit, trigger and target.
        most: use this figure for all three instead, for this one account.
    """
    return account_from(costs_of(items, policy), fixed, most=most)


def account_from(costs: Costs, fixed: FixedPart, *, most: int | None = None) -> Account:
    """Draw up the account of a window whose costs are known, as `account_of` does."""
    held_against = limits_of_policy(costs.policy, fixed) if most is None else (most, most, most)
    return _drawn_up(costs, fixed, held_against)


def _drawn_up(costs: Costs, fixed: FixedPart, held_against: tuple[int, int, int]) -> Account:
    limit, trigger, target = held_against
    return Account(
        limit=limit,
        trigger=trigger,
        target=target,
        fixed=fixed,
        messages=costs.total,
        by_category={**costs.by_category},
        media=costs.media,
        unsent=costs.unsent,
    )


def limits_of_policy(policy: Policy, fixed: FixedPart) -> tuple[int, int, int]:
    """Return limit, trigger and target of a policy, as totals in tokens."""
    held = Reserved(fixed=fixed.tokens, tools=fixed.tools, reserved=fixed.reserved)
    trigger = policy.trigger.line(policy.max_tokens, held)
    target = trigger if policy.stop_at == "trigger" else min(int(policy.target * policy.max_tokens), trigger)
    return policy.max_tokens, trigger, target


def no_room_from(policy: Policy, account: Account) -> int:
    """Return the total from which on a fixed part leaves no room for messages.

    That is the trigger, since above it each render would compact. Under the keep-last design's condition the fixed part
    alone may be above the trigger, as in a window smaller than its reserves: there it is the limit.
    """
    return account.limit if isinstance(policy.trigger, OverThreshold) else account.trigger


def has_room(account: Account) -> bool:
    """Return whether a fixed part leaves room for a summary, which takes an eighth of the room at most."""
    return account.limit - account.fixed.tokens >= 8


def certain_total(account: Account, policy: Policy, reported: Reported) -> int:
    """Return the tokens that a refusal goes by, reserves included.

    Until a call reported usage, a ratio above one is a guess on the safe side. It makes a context smaller where that is
    possible, but refuses none for which the counter's own tokens leave room: only a call can correct the guess.
    """
    start = policy.first_ratio
    if start is None or start <= 1 or reported.calls:
        return account.needed
    return account.fixed.reserved + math.ceil(account.sent / start)


def keep_recent(cut: CutPoint, account: Account) -> int:
    """Return how many tokens stay verbatim behind a cut, before any halving."""
    if cut.keep_recent_tokens is not None:
        return cut.keep_recent_tokens
    return max(1, int(cut.keep_recent * (account.limit - account.fixed.tokens)))


def preview_cap(policy: Policy, limit: int) -> int:
    """Return the cap of a preview in tokens: the policy's figure, but less where the limit itself is small."""
    return max(_LEAST_PREVIEW, min(policy.preview_tokens, limit // 20))


def retry_growth(policy: Policy, visible_tokens: int) -> int:
    """Return by how many tokens the visible ones must grow after a refusal before the next try (design: Invariants).

    They must grow by as much as a compaction has to free. A policy without a least progress tries again as soon as
    anything was appended, as [priority_chain], [keep_ratio] and [prune_then_summarize] do before each model call.
    """
    return max(1, least_progress(policy, visible_tokens))


def least_progress(policy: Policy, visible_tokens: int) -> int:
    """Return how many tokens a compaction must free at least (design: Invariants)."""
    return max(math.ceil(policy.min_progress * visible_tokens), policy.min_progress_tokens)
