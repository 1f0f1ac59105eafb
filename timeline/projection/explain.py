"""Explaining a context: the rule and the figures behind each block, each cache point and each decision, as values.

Nothing is read for it: a context holds the window that it was projected from. `table` writes it down for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.planning.budget import Account
    from timeline.policy.model import CachePointRule
    from timeline.projection.reports import Taken
    from timeline.projection.rules import ContextBlock, Facts
    from timeline.usage import KeptLong
    from timeline.wire.neutral import Entry, NeutralContext

_POINTS: Final = {
    "previous_turn": "the last block before the current turn {turn_id}",
    "pre_tail": "the last block of round {round} of {rounds}, {offset_rounds} before the newest; from {min_rounds} on",
    "tail": "the last block",
    "lagging": "{lookback_blocks} blocks before the tail: a provider looks back no further to the point before",
}
"""What placed a cache point, by kind (seed 002, cache points after compaction)."""


@dataclass(frozen=True, slots=True)
class ExplainedPoint:
    """A cache point: the path of the block that it stands behind, its kind, and what placed it."""

    kind: str
    path: str
    facts: Facts
    reason: str

    def dump(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"kind": self.kind, "path": self.path, "facts": self.facts, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a context is what it is.

    Attributes:
        conversation, version: the log and the version that the context was projected from.
        fingerprint: of the context.
        policy: the policy's name.
        blocks: every live block in order, with its state, its rule and the figures behind it.
        kept_long: what the provider is asked to keep for its long time.
        cache_points: in order, each with the rule that placed it.
        ephemeral: how many texts the uncached tail holds; the account has their tokens.
        account: tokens by category against limit, trigger and target.
        decisions: taken or refused by the render, with their figures.
        overflow: above the trigger still.
    """

    conversation: str
    version: int
    fingerprint: str
    policy: str
    blocks: tuple[ContextBlock, ...]
    kept_long: KeptLong
    cache_points: tuple[ExplainedPoint, ...]
    ephemeral: int
    account: Account
    decisions: tuple[Taken, ...]
    overflow: bool

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of `timeline render --explain --json`."""
        return {
            "conversation": self.conversation,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "policy": self.policy,
            "blocks": [block.model_dump() for block in self.blocks],
            "kept_long": self.kept_long,
            "cache_points": [point.dump() for point in self.cache_points],
            "ephemeral": self.ephemeral,
            "account": self.account.facts(),
            "decisions": [taken.model_dump() for taken in self.decisions],
            "overflow": self.overflow,
        }


def explained_points(
    neutral: NeutralContext, blocks: Sequence[ContextBlock], rule: CachePointRule
) -> tuple[ExplainedPoint, ...]:
    """Say of each cache point of a context what placed it.

    Args:
        neutral: the context.
        blocks: its live blocks.
        rule: the policy's.
    """
    return tuple(
        ExplainedPoint(point.kind, neutral.entries[point.index].path, facts, _POINTS[point.kind].format(**facts))
        for point in neutral.cache_points
        for facts in [_point_facts(neutral.entries, blocks, rule, point.kind)]
    )


def _point_facts(entries: Sequence[Entry], blocks: Sequence[ContextBlock], rule: CachePointRule, kind: str) -> Facts:
    """Return the figures of the rule that placed a point; rounds are counted among what is shown."""
    if kind == "previous_turn":
        turns = {block.path: block.turn_id for block in blocks}
        return {"turn_id": turns[entries[-1].path]}
    if kind == "pre_tail":
        rounds = len({entry.group for entry in entries if entry.group})
        back = {"offset_rounds": rule.offset_rounds, "min_rounds": rule.min_rounds}
        return {"round": rounds - rule.offset_rounds, "rounds": rounds, **back}
    return {"lookback_blocks": rule.lookback_blocks} if kind == "lagging" else {}
