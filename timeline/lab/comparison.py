"""Rank the policies of a comparison at each limit, and find the cheapest that keeps to the limit.

Costs are compared in dollars if every model of the comparison has a price, else in base tokens, which any model has.
The two disagree when calls go to models of different prices; `CostIn` is the unit in use.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from timeline.frozen import Frozen
from timeline.lab.results import Totals, together
from timeline.policy.library import designs
from timeline.policy.presets import PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from timeline.lab.results import ReplayedCallRow, RunResult
    from timeline.lab.work import Outcome, Work

CostIn: TypeAlias = Literal["money", "units"]
"""The unit of compared costs: dollars or base tokens, by their names in the results."""


class Standing(Frozen):
    """A policy at a limit, over all recordings.

    Attributes:
        policy: its name.
        max_tokens: the limit.
        cost_in: the unit of the costs; the same throughout a comparison.
        relative: its cost as a share of the first policy's cost at the same limit, over the calls that neither refused;
            None if the first policy costs nothing.
        relative_with_reads: the same, with the cost of fetching the facts that were out of sight.
        failed_recordings: those that could be replayed under another policy, but not under this one.
        same_as: an earlier policy that sent the same at every call, so that this is another name of it; empty for none.
        lifetime: how the provider keeps what is sent, see `RunResult`; empty for all recordings together.
        of_published: its cost as a share of the cheapest published design that keeps to the limit, among the policies
            of the comparison; None without one, or if it refuses calls itself.
        totals: the sums.
    """

    policy: str
    max_tokens: int
    cost_in: CostIn
    relative: float | None
    relative_with_reads: float | None = None
    failed_recordings: int = 0
    same_as: str = ""
    lifetime: str = ""
    of_published: float | None = None
    totals: Totals

    @property
    def cost(self) -> float:
        """Its cost, in the unit ``cost_in``."""
        return cost_of(self.totals, self.cost_in)

    @property
    def adjusted(self) -> float:
        """Its cost with that of fetching the facts that were out of sight, in the unit ``cost_in``."""
        return self.totals.adjusted_money if self.cost_in == "money" else self.totals.adjusted_units

    @property
    def keeps_to_the_limit(self) -> bool:
        """Whether every call was sent whole and within the limit; only then can its cost be compared with others."""
        totals = self.totals
        broken = totals.over_limit or totals.refusals or totals.orphans or self.failed_recordings
        return bool(totals.calls) and not broken

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of a row of `timeline lab --json`."""
        return {**self.model_dump(exclude={"totals"}), **self.totals.dump()}


def cost_of(totals: Totals, cost_in: CostIn) -> float:
    """Return a cost in dollars or in base tokens."""
    return totals.money if cost_in == "money" else totals.units


def cost_of_call(row: ReplayedCallRow, cost_in: CostIn) -> float:
    """Return what a call costs with the summaries before it, in dollars or in base tokens."""
    return row.money + row.summary_money if cost_in == "money" else row.units + row.summary_units


def _cost_with_reads(row: ReplayedCallRow, cost_in: CostIn) -> float:
    """Return the same with what fetching the facts costs that the call did not have in sight."""
    return cost_of_call(row, cost_in) + (row.fetch_money if cost_in == "money" else row.fetch_units)


def comparable(runs: Iterable[RunResult]) -> CostIn:
    """Return the unit for the costs of some runs: dollars if all of their models have a price."""
    return "money" if all(run.totals.priced for run in runs) else "units"


def standings(works: Sequence[Work], outcomes: Sequence[Outcome]) -> list[Standing]:
    """Sum the runs of each policy and limit, in the order of the work.

    Args:
        works: the planned units.
        outcomes: the outcome of each.
    """
    return _standings(works, outcomes, comparable(run for outcome in outcomes for run in outcome.runs), "")


def by_lifetime(works: Sequence[Work], outcomes: Sequence[Outcome]) -> list[Standing]:
    """Sum the runs of each policy and limit for each class of cache, the largest class first; none if all are of one.

    A class consists of conversations, since a subagent may be cached for another time than its session.
    """
    runs = [run for outcome in outcomes for run in outcome.runs]
    classes = Counter(run.lifetime for run in runs)
    if len(classes) < 2:
        return []
    cost_in = comparable(runs)
    found: list[Standing] = []
    for lifetime, _ in classes.most_common():
        of_class = [
            outcome.model_copy(update={"runs": tuple(run for run in outcome.runs if run.lifetime == lifetime)})
            for outcome in outcomes
        ]
        found += _standings(works, of_class, cost_in, lifetime)
    return found


def _standings(works: Sequence[Work], outcomes: Sequence[Outcome], cost_in: CostIn, lifetime: str) -> list[Standing]:
    found: dict[tuple[int, str], list[RunResult]] = {}
    failed: dict[tuple[int, str], set[str]] = {}
    for work, outcome in zip(works, outcomes, strict=True):
        key = (work.policy.max_tokens, work.name)
        found.setdefault(key, []).extend(outcome.runs)
        failed.setdefault(key, set()).update({work.file} if outcome.failure else ())
    unread = set.intersection(*failed.values()) if failed else set()
    stands: list[Standing] = []
    first: dict[int, list[RunResult]] = {}
    sent: dict[tuple[int, tuple[_Call, ...]], str] = {}
    for (limit, name), runs in found.items():
        totals = together(run.totals for run in runs)
        beside = first.setdefault(limit, runs)
        same_as = sent.setdefault((limit, _calls(runs)), name)
        stands.append(
            Standing(
                policy=name,
                max_tokens=limit,
                cost_in=cost_in,
                relative=_share_of(runs, beside, partial(cost_of_call, cost_in=cost_in)),
                relative_with_reads=_share_of(runs, beside, partial(_cost_with_reads, cost_in=cost_in)),
                failed_recordings=len(failed[limit, name] - unread),
                same_as=same_as if same_as != name and runs else "",
                lifetime=lifetime,
                totals=totals,
            )
        )
    return [_beside_published(stand, stands) for stand in stands]


def _beside_published(stand: Standing, stands: Sequence[Standing]) -> Standing:
    """Return a standing with its cost as a share of the cheapest published design's at the same limit."""
    at_limit = [one for one in stands if one.max_tokens == stand.max_tokens and is_published(one.policy)]
    best = cheapest(at_limit)
    if best is None or not best.cost or stand.totals.refusals:
        return stand
    return stand.model_copy(update={"of_published": stand.cost / best.cost})


def is_published(name: str) -> bool:
    """Return whether a policy is one that others published, by its name."""
    return name in PUBLISHED or name in designs()


_Call: TypeAlias = tuple[str, str, int, int, int, int, float, str]


def _calls(runs: Sequence[RunResult]) -> tuple[_Call, ...]:
    """Return what a policy sent at each call, so that the same policy under another name is known by it."""
    return tuple(
        (run.file, run.conversation, row.number, row.tokens, row.visible, row.read, row.summary_units, row.refused)
        for run in runs
        for row in run.rows
    )


def _share_of(
    runs: Sequence[RunResult], first: Sequence[RunResult], cost: Callable[[ReplayedCallRow], float]
) -> float | None:
    """Return what a policy costs as a share of the first one's cost, over the calls that neither refused."""
    refused = {_call_of(run, row) for one in (runs, first) for run in one for row in run.rows if row.refused}
    own, base = (
        sum(cost(row) for run in one for row in run.rows if _call_of(run, row) not in refused) for one in (runs, first)
    )
    return own / base if base else None


def _call_of(run: RunResult, row: ReplayedCallRow) -> tuple[str, str, int]:
    return run.file, run.conversation, row.number


def cheapest(stands: Iterable[Standing]) -> Standing | None:
    """Return the cheapest policy that keeps to the limit, the first of equals, or None if none does."""
    return min((stand for stand in stands if stand.keeps_to_the_limit), key=lambda stand: stand.cost, default=None)
