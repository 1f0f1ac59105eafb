"""What a comparison comes to: where each policy stands at each limit, and which is the cheapest that keeps to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.frozen import Frozen
from timeline.lab.results import Totals, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from timeline.lab.results import RunResult
    from timeline.lab.work import Outcome, Work


class Standing(Frozen):
    """A policy at a limit, over all recordings.

    Attributes:
        policy: what it is called by.
        max_tokens: the limit.
        relative: its cost as a share of the first policy's at the same limit; None where that one costs nothing.
        totals: the sums.
    """

    policy: str
    max_tokens: int
    relative: float | None
    totals: Totals

    @property
    def keeps_to_the_limit(self) -> bool:
        """Whether every call was sent, whole, and below the limit: only then its cost compares with others."""
        totals = self.totals
        return bool(totals.calls) and not (totals.over_limit or totals.refusals or totals.orphans)


def standings(works: Sequence[Work], outcomes: Sequence[Outcome]) -> list[Standing]:
    """Sum the runs of each policy and limit up, in the order of the work.

    Args:
        works: the units that were planned.
        outcomes: what became of each.
    """
    found: dict[tuple[int, str], list[RunResult]] = {}
    for work, outcome in zip(works, outcomes, strict=True):
        found.setdefault((work.policy.max_tokens, work.name), []).extend(outcome.runs)
    stands: list[Standing] = []
    first: dict[int, float] = {}
    for (limit, name), runs in found.items():
        totals = together(run.totals for run in runs)
        base = first.setdefault(limit, totals.units)
        relative = totals.units / base if base else None
        stands.append(Standing(policy=name, max_tokens=limit, relative=relative, totals=totals))
    return stands


def cheapest(stands: Iterable[Standing]) -> Standing | None:
    """Return the one that costs least among those that keep to the limit; the first of equals, None where none does."""
    return min((stand for stand in stands if stand.keeps_to_the_limit), key=lambda s: s.totals.units, default=None)
