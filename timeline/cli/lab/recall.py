"""Print which facts of the recorded answers a policy leaves in sight, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.cli import output
from timeline.cli.output import say, write
from timeline.lab.results import DISTANCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.lab.comparison import Standing
    from timeline.lab.results import FactState

_HEADS: Final = (
    "policy",
    "limit",
    "facts near / middle / far",
    "in sight",
    "one read away",
    "two away",
    "gone",
    "stale",
    "stale as -1",
    "held by summaries",
    "by 100 tokens",
    "invented",
    "reads",
    "cost with reads",
    "base tokens with reads",
)


def print_recall(stands: Sequence[Standing]) -> None:
    """Print a line for each policy and limit: where the facts are that the answers used, and what fetching them costs.

    Args:
        stands: the policies, the first one of each limit first.
    """
    write()
    output.table(_HEADS, [_cells(stand) for stand in stands], keys=2)
    write()
    say("in sight, one read away, two away (a search, and a read of a hit): share of the facts that the answers used;")
    say(
        "each includes the one before. stale as -1: one read away, where a fact shown by a stale value alone counts -1."
    )
    say("held by summaries: facts of their ranges that later answers used, and how many for each 100 tokens of them,")
    say("with the record / without it. invented: names and numbers of summaries that nothing in their range holds.")
    say("cost with reads: adds a read for each fact out of sight, and the tokens that first brought what is gone.")
    if any(stand.totals.refused for stand in stands):
        say("The facts of a refused call are not counted: it has no context in which to look for them.")


def _cells(stand: Standing) -> tuple[object, ...]:
    totals = stand.totals
    needed = [getattr(totals, f"facts_{distance}") for distance in DISTANCES]
    gone = sum(needed) - sum(getattr(totals, f"found_{distance}") for distance in DISTANCES)
    return (
        stand.policy,
        stand.max_tokens,
        " / ".join(f"{count:,}" for count in needed),
        _shares(stand, "seen"),
        _shares(stand, "reachable"),
        _shares(stand, "found"),
        gone,
        totals.stale,
        _shares(stand, "scored"),
        f"{totals.summary_held} of {totals.summary_facts}",
        " / ".join("-" if rate is None else f"{rate:.2f}" for rate in (totals.held_per_100, totals.said_per_100)),
        totals.summary_invented,
        totals.reads,
        "-" if stand.relative_with_reads is None else f"{stand.relative_with_reads:.3f}",
        round(totals.adjusted_units),
    )


def _shares(stand: Standing, state: FactState) -> str:
    shares = (stand.totals.recall(state, distance) for distance in DISTANCES)
    return " / ".join("-" if share is None else f"{share:.3f}" for share in shares)
