"""Plans: what planning decides about a context that is too large, as frozen values. Nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import BlocksHidden, Covers, Pruned, Replacement, SummaryParts
    from timeline.events.other_payloads import RefusalReason
    from timeline.fold.window import Item, Window
    from timeline.planning.account import Account


LABEL_TOKENS: Final = 120
"""What a summary's own headings take at the most, as long as it is not written."""
LEAST_SUMMARY: Final = 64
"""The least that a part of a summary gets, in tokens."""


@dataclass(frozen=True, slots=True)
class Caps:
    """Token caps of a summary's parts, and what its headings and the lines around it take."""

    history: int
    turn_prefix: int
    digest: int
    labels: int = LABEL_TOKENS

    @property
    def tokens(self) -> int:
        """The whole summary's cap, headings included."""
        return self.history + self.turn_prefix + self.digest + self.labels


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about a context that is too large.

    Attributes:
        version: the window's version that the plan was made from.
        covers: None when nothing is covered and blocks are only spilled.
        covered: the items that become covered: new ones only, in timeline order, summaries left out.
        carried: versions inside the range that stay visible.
        cut_version: version of the first kept block.
        turn_id: the turn that the summary's path names: the cut block's.
        split_turn_id: the turn that the cut divides, if it divides one.
        prefix_turn_id: the same, where its beginning is summarised by a request of its own, not with the history.
        spills: previews, recorded together with the compaction.
        caps: of the summary's parts.
        least_progress: what the compaction has to free.
        keep_recent_tokens: the keep that this plan was made with.
        before_tokens: messages before.
        expected_tokens: messages afterwards, with a summary as long as its cap.
        account: the account before.
        target_missed: even so the target is not met.
        supersedes: paths of the live summaries inside the range, oldest first.
        written: the summary, where planning knows it already; ``written_by`` says whose it is.
    """

    version: int
    covers: Covers | None
    covered: tuple[Item, ...]
    carried: tuple[int, ...]
    cut_version: int
    turn_id: str
    split_turn_id: str | None
    prefix_turn_id: str | None
    spills: tuple[Replacement, ...]
    caps: Caps
    least_progress: int
    keep_recent_tokens: int
    before_tokens: int
    expected_tokens: int
    account: Account
    target_missed: bool
    supersedes: tuple[str, ...] = ()
    written: SummaryParts | None = None
    written_by: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no compaction is worth doing now (design, invariant 3), and the figures behind that."""

    reason: RefusalReason
    facts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Hides:
    """Blocks to hide, as one event, and the tokens that this frees in the account."""

    event: BlocksHidden
    freed: int


def as_pruned(pruned: Pruned, blocks: Sequence[Replacement], window: Window, freed: int) -> Pruned:
    """Fill in what was hidden of the tools' outputs, and the tokens that it freed of the window's.

    ``after_tokens`` is what the messages were before this hide; they began with ``before_tokens``.
    """
    tools = tools_of({stand_in.version for stand_in in blocks}, window)
    before = pruned.after_tokens or pruned.before_tokens
    figures = {"outputs": len(tools), "tools": named(tools), "saved_tokens": freed, "after_tokens": before - freed}
    return pruned.model_copy(update=figures)


def tools_of(versions: set[int], window: Window) -> list[str]:
    """Return the name of each result's tool among some blocks; an empty one where no call says it."""
    names = {item.version: item.block.name for item in window.items if isinstance(item.block, ToolCall)}
    return [
        item.block.name or names.get(item.answers or 0, "")
        for item in window.items
        if item.version in versions and isinstance(item.block, ToolResult)
    ]


def named(tools: Sequence[str]) -> tuple[str, ...]:
    """Return the names among tools, each once."""
    return tuple(dict.fromkeys(name for name in tools if name))
