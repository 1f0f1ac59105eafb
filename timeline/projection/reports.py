"""What a render did: its decisions, and sums of them as flat figures under the names of seed 004.

All of them follow from the account and the decisions of a context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from timeline.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.planning.account import Account


class Taken(Frozen):
    """A decision that this render took: what, why, and the figures behind it."""

    kind: Literal["hidden", "told", "compacted", "spilled", "held", "refused", "failed"]
    reason: str
    facts: dict[str, int | str] = {}

    @property
    def made_room(self) -> bool:
        """Whether it made the context smaller."""
        return self.kind in {"hidden", "compacted", "spilled"}


class OverflowCheck(Frozen):
    """Whether a context is above what the model takes.

    Attributes:
        is_overflow: nothing is available any more.
        current_tokens: what the request counts: system prompt, tools and messages.
        available_tokens: what is left for further messages; never below 0 here.
        model_limit: the context limit.
        output_reserve: kept free for the answer, and for what the counter misses.
    """

    is_overflow: bool
    current_tokens: int
    available_tokens: int
    model_limit: int
    output_reserve: int


class PruneResult(Frozen):
    """What was cleared of the tools' outputs, and the tokens that this saved."""

    outputs_pruned: int = 0
    tokens_saved: int = 0
    pruned_tools: tuple[str, ...] = ()


class PreparedTokens(Frozen):
    """Tokens of the messages as a render went on; a figure is the one before it where nothing was done."""

    before: int
    after_prune: int
    after_compact: int
    final: int


class Preparation(Frozen):
    """What a render did to a context before it could be sent.

    Attributes:
        tokens: of the messages, step by step.
        was_pruned, was_compacted: which steps did something.
        pruned_outputs: how many tool outputs were cleared.
        compacted_messages: how many messages a summary took the place of.
        removed_tools: the tools whose outputs were cleared.
    """

    tokens: PreparedTokens
    was_pruned: bool
    was_compacted: bool
    pruned_outputs: int
    compacted_messages: int
    removed_tools: tuple[str, ...]


def overflow_check(bill: Account) -> OverflowCheck:
    """Hold an account against the limit."""
    return OverflowCheck(
        is_overflow=bill.available < 0,
        current_tokens=bill.sent,
        available_tokens=max(0, bill.available),
        model_limit=bill.limit,
        output_reserve=bill.fixed.reserved,
    )


def prune_result(decisions: Sequence[Taken]) -> PruneResult:
    """Sum up what was hidden of the tools' outputs."""
    hides = [taken for taken in decisions if taken.kind == "hidden" and taken.facts.get("outputs")]
    tools = (name for taken in hides for name in str(taken.facts.get("tools", "")).split(", ") if name)
    return PruneResult(
        outputs_pruned=sum(_figure(taken, "outputs") for taken in hides),
        tokens_saved=sum(_figure(taken, "freed_tokens") for taken in hides),
        pruned_tools=tuple(dict.fromkeys(tools)),
    )


def preparation(bill: Account, decisions: Sequence[Taken]) -> Preparation:
    """Sum up the decisions of a render."""
    sized = [taken for taken in decisions if "before_tokens" in taken.facts]
    hides = [taken for taken in sized if taken.kind == "hidden"]
    compactions = [taken for taken in sized if taken.kind == "compacted"]
    before = _figure(sized[0], "before_tokens") if sized else bill.messages
    after_prune = _figure(hides[-1], "after_tokens") if hides else before
    pruned = prune_result(decisions)
    return Preparation(
        tokens=PreparedTokens(
            before=before,
            after_prune=after_prune,
            after_compact=_figure(compactions[-1], "after_tokens") if compactions else after_prune,
            final=bill.messages,
        ),
        was_pruned=pruned.outputs_pruned > 0,
        was_compacted=bool(compactions),
        pruned_outputs=pruned.outputs_pruned,
        compacted_messages=sum(_figure(taken, "messages") for taken in compactions),
        removed_tools=pruned.pruned_tools,
    )


def _figure(taken: Taken, name: str) -> int:
    value = taken.facts.get(name, 0)
    return value if isinstance(value, int) else 0
