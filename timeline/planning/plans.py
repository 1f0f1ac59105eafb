"""The results of planning as frozen values: plans, refusals and hides. Nothing here acts."""

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
"""Tokens planned for a summary's headings before it is written: the most that they take."""
LEAST_SUMMARY: Final = 64
"""The smallest cap of a part of a summary, in tokens."""
NO_ROOM: Final = 16
"""Room in tokens below which there is none for messages: the cap of a part, a sixteenth of it, would be 0."""


@dataclass(frozen=True, slots=True)
class Caps:
    """Token caps of a summary's parts, and the tokens of its headings and of the messages around it."""

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
    """A planned compaction.

    Attributes:
        version: the window's version that the plan was made from.
        covers: None when nothing is covered and blocks are only previewed.
        covered: the newly covered items in timeline order, without summaries.
        carried: versions inside the range that stay visible.
        ahead: those of the carried versions that are sent in front of the summary.
        collapsed: the stages taken by a step that may take the newest ones, too: from then on all are shown in short.
        cut_version: version of the first kept block.
        turn_id: the turn that the summary's path names: the cut block's.
        split_turn_id: the turn that the cut divides, if it divides one.
        prefix_turn_id: the same turn, where a separate request summarises its beginning, apart from the history.
        previews: recorded together with the compaction.
        caps: of the summary's parts.
        least_progress: tokens that the compaction has to free.
        keep_recent_tokens: tokens that the cut was to keep.
        before_tokens: tokens of the messages before.
        expected_tokens: tokens of the messages afterwards, with a summary as long as its cap.
        account: the account before.
        target_missed: whether the expected tokens are still above the target.
        supersedes: paths of the live summaries inside the range, oldest first.
        written: the summary, where planning writes it itself and no summarizer is asked.
        written_by: name of the author of ``written``.
    """

    version: int
    covers: Covers | None
    covered: tuple[Item, ...]
    carried: tuple[int, ...]
    cut_version: int
    turn_id: str
    split_turn_id: str | None
    prefix_turn_id: str | None
    previews: tuple[Replacement, ...]
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
    ahead: tuple[int, ...] = ()
    collapsed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why no compaction is worth doing now, and its figures (design: Invariants)."""

    reason: RefusalReason
    facts: dict[str, int]


@dataclass(frozen=True, slots=True)
class HideDecision:
    """Planned hides as one event, the tokens of the messages before, and those that the hides free in the account."""

    event: BlocksHidden
    before: int
    freed: int


def as_pruned(pruned: Pruned, blocks: Sequence[Replacement], window: Window, freed: int) -> Pruned:
    """Fill in a render's hidden tool outputs, and the tokens that hiding them freed.

    Before this hide the messages had ``after_tokens``, if an earlier hide set it, else ``before_tokens``.
    """
    tools = tools_of({replacement.version for replacement in blocks}, window)
    before = pruned.after_tokens or pruned.before_tokens
    figures = {"outputs": len(tools), "tools": named(tools), "saved_tokens": freed, "after_tokens": before - freed}
    return pruned.model_copy(update=figures)


def tools_of(versions: set[int], window: Window) -> list[str]:
    """Return the tool's name for each result among some blocks; empty where neither result nor call names it."""
    asked = {item.answers for item in window.items if item.version in versions}
    names = {
        item.version: item.block.name
        for item in window.items
        if item.version in asked and isinstance(item.block, ToolCall)
    }
    return [
        item.block.name or names.get(item.answers or 0, "")
        for item in window.items
        if item.version in versions and isinstance(item.block, ToolResult)
    ]


def named(tools: Sequence[str]) -> tuple[str, ...]:
    """Return the names of tools, each once, without empty ones; the tool of the newest output is first."""
    return tuple(dict.fromkeys(name for name in reversed(tools) if name))
