"""Explaining a context in plain text: one line a block, then the account."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timeline.projection.context import RenderedContext


def explain_text(context: RenderedContext) -> str:
    """Return a table of the context's blocks, its cache points, its decisions and its account."""
    shown = [entry.path for entry in context.neutral.entries]
    points = {shown[point.index]: point.kind for point in context.cache_points}
    width = max((len(block.path) for block in context.blocks), default=4)
    lines = [
        f"{b.version:>7}  {b.path:<{width}}  {b.state:<8}  {b.tokens:>7}  {b.reason}"
        + (f"  <- cache point: {points[b.path]}" if b.path in points else "")
        for b in context.blocks
    ]
    header = f"{'version':>7}  {'path':<{width}}  {'state':<8}  {'tokens':>7}  why"
    account = context.account
    lines += [
        "",
        f"{account.sent} of {account.limit} tokens: {account.fixed.tokens} fixed, {account.messages} messages ("
        + ", ".join(f"{tokens} {name}" for name, tokens in sorted(account.by_category.items()))
        + f"); compaction above {account.trigger}",
    ]
    for decision in context.decisions:
        facts = ", ".join(f"{name} {value}" for name, value in decision.facts.items())
        lines.append(f"{decision.kind}: {decision.reason}" + (f" ({facts})" if facts else ""))
    return "\n".join([header, *lines])
