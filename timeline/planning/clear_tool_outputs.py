"""Plan a `clear_tool_outputs` step: replace old tool results by a line; their calls stay.

The rule is the pruning of the prune-then-summarize design [prune_then_summarize]. It walks back from the newest block,
skips the newest turns, and stops at a summary. In between it protects the newest outputs, up to a number of tokens.
Nothing is cleared unless that frees the minimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import CONTINUES_KEY, ToolResult, UserPrompt
from timeline.events import BlocksHidden, Replacement
from timeline.fold.window import replaced
from timeline.planning.costs import changed_tokens
from timeline.planning.hidden_requests import left_unsaid
from timeline.planning.plans import HideDecision

if TYPE_CHECKING:
    from timeline.fold.window import Item, Window
    from timeline.policy.model import Policy
    from timeline.policy.steps import ClearToolOutputs
    from timeline.ports import TokenCounter

REASON: Final = "tool_output"
CLEARED: Final = "[Tool output cleared - see conversation summary]"
"""The text shown for a cleared output, in front of its address: of the design's four such texts, the pruner's."""


def plan_clear(window: Window, policy: Policy, counter: TokenCounter, step: ClearToolOutputs) -> HideDecision | None:
    """Plan to clear the unprotected outputs; None where that frees too little."""
    outputs = old_outputs(window, step)
    if sum(item.tokens for item in outputs) <= step.protect + step.minimum:
        return None
    cleared: list[Replacement] = []
    changed: dict[int, Item] = {}
    seen = 0
    for item in outputs:
        seen += item.tokens
        text = f"{CLEARED} {window.address_of(item)}".rstrip()
        tokens = counter.count(text)
        if seen > step.protect and tokens < item.tokens:
            cleared.append(Replacement(version=item.version, text=text, tokens=tokens))
            changed[item.version] = replaced(item, cleared[-1])
    # The minimum and the protected tokens are in the counter's tokens: only the account adds the policy's margin.
    saved = sum(item.tokens for item in outputs if item.version in changed) - sum(new.tokens for new in cleared)
    if not cleared or saved < step.minimum:
        return None
    before, freed = changed_tokens(changed, window.items, policy)
    facts = {"blocks": len(cleared), "freed_tokens": freed, "least_tokens": step.minimum}
    hidden = tuple(reversed(cleared))
    lost = left_unsaid(window.items, hidden)
    event = BlocksHidden(reason=REASON, blocks=hidden, facts=facts, counter=counter.name, unsaid=lost)
    return HideDecision(event, before, freed)


def old_outputs(window: Window, step: ClearToolOutputs) -> list[Item]:
    """Return the outputs behind the last summary that are older than the kept turns and shown in full, newest first."""
    found: list[Item] = []
    open_versions = {item.version for item in window.open_calls()}
    turns = 0
    for item in reversed(window.items):
        if item.is_summary:
            break
        if turns >= step.keep_turns and _clearable(item) and item.answers not in open_versions:
            found.append(item)
        turns += type(item.block) is UserPrompt and CONTINUES_KEY not in item.block.meta
    return found


def _clearable(item: Item) -> bool:
    shown = item.state in {"visible", "abridged", "carried"}
    return type(item.block) is ToolResult and shown and not item.keeps and not item.revealed
