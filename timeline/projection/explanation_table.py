"""Write an explanation as a table for people: a line for each block, cache points between, account and decisions.

Without a width the table is as wide as its lines. In a narrow space each reason moves under its block.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Final, TypeAlias

from timeline.events.addresses import Address
from timeline.projection.explain import RULES, WINDOW, counted, figures, spaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from timeline.planning.account import Account
    from timeline.projection.explain import ContextBlock, Explanation
    from timeline.projection.reports import Counts, TakenDecision

Paint: TypeAlias = "Callable[[str, str], str]"
"""Colours a text by the name of a state, or by ``dim``, ``bold``, ``plain`` or ``point``; keeps the text's width."""

_LEFT: Final = 28
"""Columns of address, state and tokens."""
_REASON: Final = 40
"""The fewest columns that a reason needs beside its path."""
_LONG: Final = ", for the provider's long time"


def explanation_lines(
    explanation: Explanation, *, width: int | None = None, paint: Paint = lambda text, _: text
) -> Iterator[str]:
    """Write an explanation line by line.

    Args:
        explanation: what to write.
        width: columns of a line; as many as needed unless given. A path is never cut.
        paint: colours a piece of text.
    """
    longest = max((len(block.path) for block in explanation.blocks), default=4)
    column = longest if width is None or _LEFT + longest + 2 + _REASON <= width else 0
    points = {point.path: point for point in explanation.cache_points}
    yield paint(f"{'address':>7}  {'state':<8}  {'tokens':>7}  {'path':<{column}}  why".rstrip(), "dim")
    fixed = explanation.account.fixed
    if explanation.kept_long != "nothing" and fixed.system + fixed.tools:
        yield from _point_lines("fixed part", f"system prompt and tools{_LONG}", width, paint)
    for block in explanation.blocks:
        yield from _block_lines(block, column, width, paint)
        if block.path in points:
            point = points[block.path]
            long = _LONG if explanation.kept_long == "everything" else ""
            yield from _point_lines(spaced(point.kind), point.reason + long, width, paint)
    if explanation.ephemeral:
        tail = counted(explanation.ephemeral, "ephemeral text", "ephemeral texts")
        yield f"{'':17}  {fixed.tail:>7,}  {tail}, never cached or kept"
    yield ""
    yield from account_lines(explanation.account, explanation.counts)
    if explanation.decisions:
        yield ""
    for taken in explanation.decisions:
        first, *more = _wrapped(decision_in_words(taken), 2, width)
        yield paint(first, "bold")
        yield from (f"  {paint(line, 'bold')}" for line in more)


def _block_lines(block: ContextBlock, column: int, width: int | None, paint: Paint) -> Iterator[str]:
    left = f"{Address(block.version)!s:>7}  {paint(f'{block.state:<8}', block.state)}  {block.shown_tokens:>7,}  "
    if column:
        first, *more = _wrapped(block.reason, _LEFT + column + 2, width)
        yield f"{left}{paint(f'{block.path:<{column}}', 'plain')}  {paint(first, 'dim')}"
    else:
        yield left + paint(block.path, "plain")
        more = [] if block.rule == WINDOW[0] else _wrapped(block.reason, _LEFT + 2, width)
    for line in more:
        yield f"{'':{_LEFT + column + 2}}{paint(line, 'dim')}"


def _point_lines(kind: str, reason: str, width: int | None, paint: Paint) -> Iterator[str]:
    for line in _wrapped(f"^ cache point ({kind}): {reason}", _LEFT, width):
        yield f"{'':{_LEFT}}{paint(line, 'point')}"


def _wrapped(text: str, indent: int, width: int | None) -> list[str]:
    """Return a text as lines that fit behind an indent; a path stays whole."""
    if width is None:
        return [text]
    return wrap(text, max(width - indent, 20), break_on_hyphens=False, break_long_words=False)


def account_lines(account: Account, counts: Counts) -> Iterator[str]:
    """Yield the token account: a line for each category with its share of the limit, then total, bounds and unit."""
    fixed = account.fixed
    rows = {
        "system prompt": fixed.system,
        "tools": fixed.tools,
        "memory digest": fixed.memory_digest,
        "stage data": fixed.stage_data,
        "ephemeral tail": fixed.ephemeral,
        "reserved": fixed.reserved,
        "counted by the provider besides": fixed.provider,
        **dict(sorted(account.by_category.items(), key=lambda row: -row[1])),
    }
    for name, tokens in rows.items():
        if tokens:
            yield f"{tokens:>9,}  {_share(tokens, account)}  {name}"
    if account.unsent:
        yield f"{account.total:>9,}  {_share(account.total, account)}  counted: decisions go by this"
        yield f"{-account.unsent:>9,}  {_share(-account.unsent, account)}  of results: left out, but counted"
    left = f"{account.available:,} left" if account.available >= 0 else f"{-account.available:,} too many"
    yield f"{account.needed:>9,}  {_share(account.needed, account)}  of {account.limit:,}; {left}"
    yield f"{account.trigger:>9,}  {_share(account.trigger, account)}  above this it compacts"
    yield f"{account.target:>9,}  {_share(account.target, account)}  down to this"
    if counts.source != "counter":
        yield f"tokens: {counts.in_words()}"


def _share(tokens: int, account: Account) -> str:
    return f"{100 * tokens / account.limit:>3.0f} %"


def decision_in_words(taken: TakenDecision) -> str:
    """Return a decision in words: its kind, its reason and its figures."""
    why = RULES.get(taken.reason, spaced(taken.reason))
    return f"{taken.kind} ({why}): {', '.join(figures(taken.facts))}".removesuffix(": ")
