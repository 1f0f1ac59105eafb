"""How far a search carries: what was found on some recordings, looked at on others."""

from __future__ import annotations

from itertools import combinations
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from tests.frontier.points import frontier

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tests.frontier.points import Point


class Carried(NamedTuple):
    """Of so many published defaults that are sound on both sides, those that are answered on the side not searched.

    Attributes:
        frontier: by one of the settings that no other bettered on the side that was searched.
        same: by a setting that answers them on the side that was searched, too.
        published: how many there are.
    """

    frontier: int
    same: int
    published: int


class Halves(NamedTuple):
    """The same over each way to search a half of the recordings: shares in the mean, and how often all are answered."""

    ways: int
    frontier: float
    same: float
    all_by_frontier: int
    all_by_same: int


def carried(searched: Sequence[Point], others: Sequence[Point], ours: Collection[str], most: float) -> Carried:
    """Search one side, and look at the other with what was found.

    Args:
        searched: all points of a limit on the recordings that are searched.
        others: the same policies on the others.
        ours: names of our settings; what is published is all else.
        most: what a setting may cost of a published default.
    """
    there = {point.policy: point for point in others}
    settings = [point for point in searched if point.policy in ours]
    published = [p for p in searched if p.policy not in ours and p.sound and there[p.policy].sound]
    kept = [there[point.policy] for point in frontier(settings)]
    by_frontier = sum(any(one.answers(there[p.policy], most) for one in kept) for p in published)
    same = sum(
        any(one.answers(p, most) and there[one.policy].answers(there[p.policy], most) for one in settings)
        for p in published
    )
    return Carried(by_frontier, same, len(published))


def halves(files: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Go through each way to take half of the recordings, with the rest."""
    for chosen in combinations(files, len(files) // 2):
        yield [*chosen], [file for file in files if file not in chosen]


def over_halves(found: Sequence[Carried]) -> Halves:
    """Sum up what became of each way; one that leaves no sound default says nothing."""
    told = [one for one in found if one.published]
    return Halves(
        len(told),
        mean(one.frontier / one.published for one in told),
        mean(one.same / one.published for one in told),
        sum(one.frontier == one.published for one in told),
        sum(one.same == one.published for one in told),
    )
