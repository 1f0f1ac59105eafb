"""Print what policies cost in each class of cache, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.cli import output
from timeline.cli.output import say, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.lab.comparison import Standing

_HEADS: Final = (
    "cache",
    "policy",
    "limit",
    "cost",
    "of published",
    "base tokens",
    "written",
    "visible",
    "needs hidden",
    "over limit",
    "refused",
)


def print_classes(stands: Sequence[Standing]) -> None:
    """Print a line for each class, policy and limit; nothing where all recordings are of one class.

    Args:
        stands: see `timeline.lab.comparison.by_lifetime`.
    """
    if not stands:
        return
    write()
    output.table(_HEADS, [_cells(stand) for stand in stands], keys=3)
    write()
    say("cache: how long the provider keeps the messages; automatic: it finds prefixes by itself.")
    if any(stand.of_published for stand in stands):
        say("of published: cost as a share of the cheapest published design above that keeps to the limit.")


def _cells(stand: Standing) -> tuple[object, ...]:
    totals = stand.totals
    return (
        stand.lifetime,
        stand.policy,
        stand.max_tokens,
        _share(stand.relative),
        _share(stand.of_published),
        round(totals.units),
        f"{totals.write_share:.1%}",
        round(totals.mean_visible),
        f"{totals.hidden_needs} of {totals.needs}",
        totals.over_limit,
        totals.refusals,
    )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.3f}"
