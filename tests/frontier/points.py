"""What a policy costs, shows and hides over some recordings; which points no other one betters; what answers which."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.lab.comparison import standings
from timeline.lab.runner import plan, run
from timeline.lab.work import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from timeline.lab.keeping import Kept
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


class Answer(NamedTuple):
    """The cheapest of our settings that shows no less and hides no more than a published default."""

    published: Point
    ours: Point | None

    @property
    def ratio(self) -> float | None:
        """Our cost as a share of the published one; None where no setting shows as much."""
        return None if self.ours is None else self.ours.cost / self.published.cost


def points(
    files: Sequence[str],
    makers: Mapping[str, Callable[[int], Policy]],
    limits: Sequence[int],
    *,
    kept: Kept,
    jobs: int | None = None,
    on_done: Callable[[int], None] = lambda _: None,
) -> list[Point]:
    """Replay recordings under policies at limits. The first policy is what costs are told by.

    Args:
        files: recordings.
        makers: of policies, by name.
        limits: of the context, in tokens.
        kept: outcomes of earlier runs, which are not carried out again.
        jobs: processes at a time; one a core unless given.
        on_done: called with the number of replays that are done.
    """
    tried = [(name, make(limit)) for limit in limits for name, make in makers.items()]
    works = plan(files, tried, Options())
    stands = standings(works, run(works, jobs=jobs, kept=kept, on_done=on_done))
    first = {limit: next(stand.totals.units for stand in stands if stand.max_tokens == limit) for limit in limits}
    return [
        Point(
            stand.policy,
            stand.max_tokens,
            stand.totals.units / first[stand.max_tokens],
            stand.totals.mean_visible,
            stand.totals.hidden_need_share,
            stand.keeps_to_the_limit,
        )
        for stand in stands
    ]


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


def carried(found: Sequence[Point], looked_at: Sequence[Point], ours: Collection[str], most: float) -> tuple[int, int]:
    """Count the published defaults that a setting answers on some recordings which was found on others.

    A setting is found where it answers a default at no more than a share of its cost, and carries where it does so on
    the recordings that are looked at, too.

    Args:
        found: all points of a limit on the recordings that settings are found on.
        looked_at: the same policies on the others.
        ours: names of the settings.
        most: what a setting may cost of a published default.

    Returns:
        Those that are answered, of those that are sound on both.
    """
    there = {point.policy: point for point in looked_at}
    published = [p for p in found if p.policy not in ours and p.sound and there[p.policy].sound]
    settings = [point for point in found if point.policy in ours]
    answered = sum(
        any(_answers(p, theirs, most) and _answers(there[p.policy], there[theirs.policy], most) for p in settings)
        for theirs in published
    )
    return answered, len(published)


def _answers(ours: Point, theirs: Point, most: float) -> bool:
    return ours.betters(theirs) and ours.cost <= most * theirs.cost


def _cheapest(theirs: Point, ours: Iterable[Point]) -> Point | None:
    same = (point for point in ours if point.limit == theirs.limit and point.betters(theirs))
    return min(same, key=lambda point: point.cost, default=None)
