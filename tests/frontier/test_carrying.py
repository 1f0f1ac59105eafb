from __future__ import annotations

from typing import Final

from tests.frontier.carrying import Carried, Halves, carried, halves, over_halves
from tests.frontier.points import Point

OURS: Final = {"sure", "lucky", "dear"}


def point(name: str, cost: float, visible: float, need: float = 0.0, *, sound: bool = True) -> Point:
    """Return a point at some limit."""
    return Point(name, 32_000, cost, visible, need, sound)


PUBLISHED: Final = point("published", 0.8, 30_000, 0.1)
SURE: Final = point("sure", 0.6, 40_000, 0.1)


def test_a_setting_carries_where_it_answers_on_both_sides() -> None:
    """One that shows too little on the other side does not, nor one that costs too much on either."""
    assert carried([PUBLISHED, SURE], [PUBLISHED, SURE], OURS, 0.95) == Carried(1, 1, 1)
    for there in (SURE._replace(visible=29_000), SURE._replace(cost=0.77), SURE._replace(need=0.2)):
        assert carried([PUBLISHED, SURE], [PUBLISHED, there], OURS, 0.95) == Carried(0, 0, 1)


def test_a_setting_that_answers_on_the_other_side_alone_is_luck_unless_it_was_on_the_frontier() -> None:
    """What another setting betters where it was searched is not looked at any more."""
    cheap, there = point("lucky", 0.5, 29_000), point("lucky", 0.5, 31_000)
    assert carried([PUBLISHED, cheap], [PUBLISHED, there], OURS, 0.95) == Carried(1, 0, 1)
    bettered, better = point("lucky", 0.7, 20_000), point("dear", 0.6, 25_000)
    found = carried([PUBLISHED, bettered, better], [PUBLISHED, there, point("dear", 0.6, 25_000)], OURS, 0.95)
    assert found == Carried(0, 0, 1)


def test_what_is_not_sound_on_either_side_does_not_count() -> None:
    """A default that refuses calls compares with nothing, and a setting that does answers nothing."""
    refusing = PUBLISHED._replace(sound=False)
    assert carried([refusing, SURE], [PUBLISHED, SURE], OURS, 0.95) == Carried(0, 0, 0)
    assert carried([PUBLISHED, SURE], [refusing, SURE], OURS, 0.95) == Carried(0, 0, 0)
    assert carried([PUBLISHED, SURE], [PUBLISHED, SURE._replace(sound=False)], OURS, 0.95) == Carried(0, 0, 1)


def test_every_half_is_searched_once() -> None:
    """Of four recordings there are six pairs, each with the two that are left."""
    ways = [*halves("abcd")]
    assert len(ways) == 6
    assert all(sorted([*one, *other]) == [*"abcd"] for one, other in ways)
    assert len({tuple(one) for one, _ in ways}) == 6


def test_halves_are_told_in_the_mean() -> None:
    """A way without any sound default is left out."""
    found = [Carried(2, 1, 2), Carried(1, 1, 2), Carried(0, 0, 0)]
    assert over_halves(found) == Halves(2, 0.75, 0.5, 1, 0)
