"""What a policy costs, shows and hides over some recordings; which points no other one betters; what answers which."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.lab.results import together
from timeline.lab.runner import plan, run
from timeline.lab.work import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from timeline.lab.cache_files import Kept
    from timeline.lab.work import Outcome, Work
    from timeline.policy.model import Policy


class Point(NamedTuple):
    """A policy at a limit over a set of recordings.

    Attributes:
        cost: of all input and summaries in base tokens, as a share of what the first policy costs there.
        visible: tokens that are shown in full, mean over the calls.
        need: share of the files that a call names again which are out of sight.
        sound: nothing was refused, over the limit or orphaned; what is not sound compares with nothing.
    """

    policy: str
    limit: int
    cost: float
    visible: float
    need: float
    sound: bool

    def betters(self, other: Point) -> bool:
        """Say whether this one shows no less and hides no more than another."""
        return self.sound and self.visible >= other.visible and self.need <= other.need

    def answers(self, other: Point, most: float) -> bool:
        """Say whether this one betters another at no more than a share of its cost."""
        return self.betters(other) and self.cost <= most * other.cost


class Answer(NamedTuple):
    """The cheapest of our settings that shows no less and hides no more than a published default."""

    published: Point
    ours: Point | None

    @property
    def ratio(self) -> float | None:
        """Our cost as a share of the published one; None where no setting shows as much."""
        return None if self.ours is None else self.ours.cost / self.published.cost


class _Sums(NamedTuple):
    """What a policy comes to on one recording; sums of them tell a point."""

    units: float
    visible: int
    sent: int
    hidden: int
    needs: int
    faults: int


class Replays:
    """All policies at all limits on all recordings, to be summed up over any of the recordings.

    Args:
        works: the units that were planned; the first policy is what costs are told by.
        outcomes: what became of each.

    Raises:
        ValueError: a recording could not be replayed.
    """

    def __init__(self, works: Sequence[Work], outcomes: Sequence[Outcome]) -> None:
        self._sums: dict[int, dict[str, dict[str, _Sums]]] = {}
        for work, outcome in zip(works, outcomes, strict=True):
            if outcome.failure is not None:
                raise ValueError(f"{work.file}, {work.name}: {outcome.failure.message}")
            at_limit = self._sums.setdefault(work.policy.max_tokens, {})
            at_limit.setdefault(work.name, {})[work.file] = _sums(outcome)

    def points(self, limit: int, files: Sequence[str]) -> list[Point]:
        """Return what each policy comes to over some of the recordings."""
        whole = {
            name: _Sums(*map(sum, zip(*(sums[file] for file in files), strict=True)))
            for name, sums in self._sums[limit].items()
        }
        first = next(iter(whole.values())).units
        return [
            Point(
                name,
                limit,
                sums.units / first,
                sums.visible / max(1, sums.sent),
                sums.hidden / max(1, sums.needs),
                not sums.faults,
            )
            for name, sums in whole.items()
        ]


def _sums(outcome: Outcome) -> _Sums:
    totals = together(run.totals for run in outcome.runs)
    faults = totals.refusals + totals.over_limit + totals.orphans
    sent = totals.calls - totals.refusals
    return _Sums(totals.units, totals.visible, sent, totals.hidden_needs, totals.needs, faults)


def replays(
    files: Sequence[str],
    makers: Mapping[str, Callable[[int], Policy]],
    limits: Sequence[int],
    *,
    kept: Kept,
    jobs: int | None = None,
    on_done: Callable[[int], None] = lambda _: None,
) -> Replays:
    """Replay recordings under policies at limits. The first policy is what costs are told by.

    Args:
        files: recordings.
        makers: of policies, by name.
        limits: of the context, in tokens.
        kept: outcomes of earlier runs, which are not carried out again.
        jobs: processes at a time; one a core unless given.
        on_done: called with the number of replays that are done.
    """
    works = plan(files, [(name, make(limit)) for limit in limits for name, make in makers.items()], Options())
    return Replays(works, run(works, jobs=jobs, kept=kept, on_done=on_done))


def frontier(tried: Iterable[Point]) -> list[Point]:
    """Return the points that no other betters at no more cost, cheapest first."""
    found: list[Point] = []
    for point in sorted((p for p in tried if p.sound), key=lambda p: (p.cost, -p.visible, p.need)):
        if not any(cheaper.betters(point) for cheaper in found):
            found.append(point)
    return found


def answers(published: Iterable[Point], ours: Sequence[Point]) -> list[Answer]:
    """Return the answer to each published default that is sound."""
    return [Answer(theirs, _cheapest(theirs, ours)) for theirs in published if theirs.sound]


def _cheapest(theirs: Point, ours: Iterable[Point]) -> Point | None:
    same = (point for point in ours if point.limit == theirs.limit and point.betters(theirs))
    return min(same, key=lambda point: point.cost, default=None)
