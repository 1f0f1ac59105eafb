"""How far a search carries: what was found on some recordings, looked at on others."""

from __future__ import annotations

from itertools import combinations
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from tests.frontier.points import frontier

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from tests.frontier.points import Point


class Carried(NamedTuple):
    """Of so many published defaults that are sound on both sides, those that are answered on the side not searched.

    Attributes:
        found: settings that no other betters on the side that was searched.
        by_found: answered by one of those.
        by_own: answered by their own figures for an hour, in the form that was the cheaper on the searched side.
        published: how many there are.
    """

    found: int
    by_found: int
    by_own: int
    published: int


class Share(NamedTuple):
    """Over many ways to search: the share that is answered, in the mean, and in how many ways all are."""

    share: float
    whole: int


def carried(
    searched: Sequence[Point],
    others: Sequence[Point],
    settings: Collection[str],
    own: Mapping[str, Collection[str]],
    most: float,
) -> Carried:
    """Search one side, and look at the other with what was found.

    Args:
        searched: all points of a limit on the recordings that are searched.
        others: the same policies on the others.
        settings: names of those that are searched.
        own: for each published default, the names of what it is with something kept for an hour.
        most: what may be paid of what a published default costs.
    """
    here, there = ({point.policy: point for point in side} for side in (searched, others))
    found = [there[point.policy] for point in frontier(here[name] for name in settings)]
    published = [name for name in own if here[name].sound and there[name].sound]
    by_found = sum(any(one.answers(there[name], most) for one in found) for name in published)
    cheaper = {name: min(own[name], key=lambda form: here[form].cost) for name in published}
    by_own = sum(there[form].answers(there[name], most) for name, form in cheaper.items())
    return Carried(len(found), by_found, by_own, len(published))


def held(one: Sequence[Point], other: Sequence[Point], ours: Collection[str], published: Iterable[str]) -> list[float]:
    """Return what it takes at the least to better each published default on two sides with one setting.

    Which setting that is, only a look at both sides tells: it says what there is, and not what a search finds.

    Args:
        one: all points of a limit on one side.
        other: the same policies on the other.
        ours: names of our settings.
        published: names of the published defaults; those that are not sound on both sides are left out.

    Returns:
        For each of the rest the larger ratio of costs of the best setting; infinite where none shows as much on both.
    """
    here, there = ({point.policy: point for point in side} for side in (one, other))
    sound = [name for name in published if here[name].sound and there[name].sound]
    return [
        min(
            (
                max(here[name].cost / here[theirs].cost, there[name].cost / there[theirs].cost)
                for name in ours
                if here[name].betters(here[theirs]) and there[name].betters(there[theirs])
            ),
            default=float("inf"),
        )
        for theirs in sound
    ]


def halves(files: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Go through each way to take half of the recordings, with the rest."""
    for chosen in combinations(files, len(files) // 2):
        yield [*chosen], [file for file in files if file not in chosen]


def share(answered: Iterable[tuple[int, int]]) -> Share:
    """Sum up how many were answered of how many; what was asked about none says nothing."""
    told = [(count, of) for count, of in answered if of]
    return Share(mean(count / of for count, of in told) if told else 0.0, sum(count == of for count, of in told))
