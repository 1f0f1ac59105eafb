"""Print the calls at which a policy differs most from the first one, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from timeline.blocks import instant_text
from timeline.cli import output
from timeline.cli.output import say, write
from timeline.lab.comparison import cost_of_call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.lab.comparison import CostIn
    from timeline.lab.differences import CallDifference
    from timeline.lab.results import ReplayedCallRow

MOST_CALLS: Final = 20
"""Calls that are listed for each pair of policies."""

_WORDS: Final = {
    "refused": "the other refuses",
    "summary": "summary written",
    "cold": "less was cached",
    "size": "longer context",
    "gap": "cache expired",
    "model": "another model",
    "lookback": "marker too far",
    "tools": "tools changed",
    "system": "system prompt changed",
    "hide": "blocks hidden",
    "below_minimum": "below the minimum",
    "other": "other rewrite",
}
"""What people read for a reason or a cause; `compaction` and `undo` are words already."""


def in_words(reason: str) -> str:
    """Return a reason, or the cause of a lost prefix, as people read it."""
    return _WORDS.get(reason, reason)


def print_differences(found: Mapping[tuple[int, str], Sequence[CallDifference]], cost_in: CostIn) -> None:
    """Print a table for each policy and limit: its largest differences from the first policy, with the reason.

    Args:
        found: differences by limit and policy, the largest first.
        cost_in: the unit of the costs.
    """
    for (limit, policy), several in found.items():
        write()
        if not several:
            say(f"{policy} at {limit:,}: the same cost at every call.")
            continue
        first, second = several[0].policies
        total = sum(one.cost(cost_in) for one in several)
        amount = f"{abs(total):,.4f} dollars" if cost_in == "money" else f"{abs(total):,.0f} base tokens"
        than = f"{amount} {'more' if total > 0 else 'less'} than {first}"
        say(f"{second} at {limit:,}: {than} over {len(several):,} calls that cost differently")
        output.table(_heads(first, second), [_cells(one, cost_in) for one in several[:MOST_CALLS]], keys=2)
        if len(several) > MOST_CALLS:
            write(f"… and {len(several) - MOST_CALLS:,} more")


def _heads(first: str, second: str) -> tuple[str, ...]:
    of_each = [f"{part} {name}" for name in (first, second) for part in ("read", "written", "uncached", "cost")]
    return ("recording", "call", "at", *of_each, "difference", "why the dearer call costs more")


def _cells(one: CallDifference, cost_in: CostIn) -> tuple[object, ...]:
    figures = [figure for row in one.rows for figure in _figures(row, cost_in)]
    at = instant_text(one.at)[:19].replace("T", " ")
    cost = _cost(one.cost(cost_in), cost_in, "+")
    return (Path(one.file).name, one.number, at, *figures, cost, in_words(one.reason))


def _figures(row: ReplayedCallRow, cost_in: CostIn) -> tuple[object, ...]:
    cost = _cost(cost_of_call(row, cost_in), cost_in)
    return (row.refused, "", "", cost) if row.refused else (row.read, row.written, row.uncached, cost)


def _cost(cost: float, cost_in: CostIn, sign: str = "") -> str:
    return f"{cost:{sign},.4f}" if cost_in == "money" else f"{cost:{sign},.0f}"
