"""Report a render: its decisions, and their sums as flat figures under the names of [prune_then_summarize].

All figures follow from the account and the decisions of a context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from timeline.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.reported import Reported
    from timeline.planning.account import Account
    from timeline.policy.model import Policy


class TakenDecision(Frozen):
    """A decision of this render: its kind, its reason and its figures."""

    kind: Literal["abridged", "hidden", "revealed", "told", "compacted", "previewed", "held", "refused", "failed"]
    reason: str
    facts: dict[str, int | str] = {}

    @property
    def made_room(self) -> bool:
        """Whether it made the context smaller."""
        return self.kind in {"abridged", "hidden", "compacted", "previewed"}


class Counts(Frozen):
    """The unit of a context's figures: a counter's tokens, or a provider's.

    Attributes:
        counter: the counter.
        ratio: what its tokens are multiplied by.
        source: where the ratio is from: the counter's own tokens, the policy's ``margin``, the ``start`` of calibrated
            counts, or usage that calls ``reported``.
        calls: how many calls of the model reported usage.
        model: the model that was called last.
    """

    counter: str
    ratio: float = 1.0
    source: Literal["counter", "margin", "start", "reported"] = "counter"
    calls: int = 0
    model: str = ""

    def in_words(self) -> str:
        """Return the unit in words."""
        each = f"{self.ratio:g} for each of {self.counter}'s"
        calls = f"{self.calls:,} {'call' if self.calls == 1 else 'calls'} of {self.model or 'a model'}"
        match self.source:
            case "reported":
                return f"the provider's, {each}, as {calls} reported"
            case "start":
                return f"the provider's, at most {each}, until calls report more"
            case "margin":
                return f"{each}, by the policy's margin"
            case "counter":
                return self.counter


def counts_of(policy: Policy, reported: Reported) -> Counts:
    """Return the unit of the figures of a context under a policy."""
    start = policy.first_ratio
    if start is None:
        source: Literal["counter", "margin"] = "margin" if policy.margin else "counter"
        return Counts(counter=policy.counter, ratio=round(1 + policy.margin, 4), source=source)
    return Counts(
        counter=policy.counter,
        ratio=round(reported.ratio_from(start), 4),
        source="reported" if reported.ratio else "start",
        calls=reported.calls,
        model=reported.model,
    )


class OverflowCheck(Frozen):
    """Whether a context is above the model's limit.

    Attributes:
        is_overflow: whether the total is above the limit.
        current_tokens: tokens of the request: system prompt, tools and messages.
        available_tokens: tokens left for further messages; never below 0 here.
        model_limit: the context limit.
        output_reserve: tokens kept free for the answer and for the counter's error.
    """

    is_overflow: bool
    current_tokens: int
    available_tokens: int
    model_limit: int
    output_reserve: int


class PruneResult(Frozen):
    """The cleared tool outputs, and the tokens that clearing them saved."""

    outputs_pruned: int = 0
    tokens_saved: int = 0
    pruned_tools: tuple[str, ...] = ()


class PreparedTokens(Frozen):
    """Tokens of the messages after each step of a render; a step without effect repeats the figure before it."""

    before: int
    after_prune: int
    after_compact: int
    final: int


class Preparation(Frozen):
    """The steps of a render before its context could be sent.

    Attributes:
        tokens: of the messages, step by step.
        was_pruned, was_compacted: whether these steps had an effect.
        pruned_outputs: number of cleared tool outputs.
        compacted_messages: number of messages that a summary replaced.
        removed_tools: the tools whose outputs were cleared.
    """

    tokens: PreparedTokens
    was_pruned: bool
    was_compacted: bool
    pruned_outputs: int
    compacted_messages: int
    removed_tools: tuple[str, ...]


def overflow_check(account: Account) -> OverflowCheck:
    """Compare an account with the limit."""
    return OverflowCheck(
        is_overflow=account.available < 0,
        current_tokens=account.sent,
        available_tokens=max(0, account.available),
        model_limit=account.limit,
        output_reserve=account.fixed.reserved,
    )


def prune_result(decisions: Sequence[TakenDecision]) -> PruneResult:
    """Sum up the hides of tool outputs."""
    hides = [taken for taken in decisions if taken.kind == "hidden" and taken.facts.get("outputs")]
    tools = (name for taken in hides for name in str(taken.facts.get("tools", "")).split(", ") if name)
    return PruneResult(
        outputs_pruned=sum(_figure(taken, "outputs") for taken in hides),
        tokens_saved=sum(_figure(taken, "freed_tokens") for taken in hides),
        pruned_tools=tuple(dict.fromkeys(tools)),
    )


def preparation(account: Account, decisions: Sequence[TakenDecision]) -> Preparation:
    """Sum up the decisions of a render."""
    sized = [taken for taken in decisions if "before_tokens" in taken.facts]
    hides = [taken for taken in sized if taken.kind == "hidden"]
    compactions = [taken for taken in sized if taken.kind == "compacted"]
    before = _figure(sized[0], "before_tokens") if sized else account.messages
    after_prune = _figure(hides[-1], "after_tokens") if hides else before
    pruned = prune_result(decisions)
    return Preparation(
        tokens=PreparedTokens(
            before=before,
            after_prune=after_prune,
            after_compact=_figure(compactions[-1], "after_tokens") if compactions else after_prune,
            final=account.messages,
        ),
        was_pruned=pruned.outputs_pruned > 0,
        was_compacted=bool(compactions),
        pruned_outputs=pruned.outputs_pruned,
        compacted_messages=sum(_figure(taken, "messages") for taken in compactions),
        removed_tools=pruned.pruned_tools,
    )


def _figure(taken: TakenDecision, name: str) -> int:
    value = taken.facts.get(name, 0)
    return value if isinstance(value, int) else 0
