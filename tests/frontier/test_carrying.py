from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import pytest

from tests.frontier.carrying import Carried, Share, carried, halves, held, share
from tests.frontier.points import Point

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN: Final = {"published": ("short", "long")}


def point(name: str, cost: float, visible: float, need: float = 0.1, *, sound: bool = True) -> Point:
    """Return a point at some limit."""
    return Point(name, 32_000, cost, visible, need, sound)


PUBLISHED: Final = point("published", 0.8, 30_000)
FORMS: Final = (point("short", 0.78, 30_000), point("long", 0.7, 30_000))
SURE: Final = point("sure", 0.6, 40_000)


def search(searched: Sequence[Point], others: Sequence[Point]) -> Carried:
    """Search one side for what answers the published default, beside its own two forms."""
    settings = {one.policy for one in searched}
    return carried([PUBLISHED, *FORMS, *searched], [PUBLISHED, *FORMS, *others], settings, OWN, 0.95)


def test_a_setting_carries_where_it_answers_on_the_other_side() -> None:
    """One that shows too little there does not, nor one that hides or costs too much."""
    assert search([SURE], [SURE]) == Carried(1, 1, 1, 1)
    for there in (SURE._replace(visible=29_000), SURE._replace(cost=0.77), SURE._replace(need=0.2)):
        assert search([SURE], [there]).by_found == 0


def test_what_another_setting_betters_where_it_was_searched_is_not_looked_at_any_more() -> None:
    """Though it would have answered on the other side."""
    lucky, there = point("lucky", 0.5, 29_000), point("lucky", 0.5, 31_000)
    assert search([lucky], [there]) == Carried(1, 1, 1, 1)
    assert search([lucky, SURE._replace(cost=0.4)], [there, SURE._replace(visible=0)]) == Carried(1, 0, 1, 1)


def test_of_its_own_forms_the_one_that_was_cheaper_where_it_was_searched_counts() -> None:
    """What it costs on the other side is not known when it is chosen."""
    dear = FORMS[1]._replace(cost=0.79)
    there = [PUBLISHED, FORMS[0]._replace(cost=0.5), dear]
    assert carried([PUBLISHED, *FORMS], there, (), OWN, 0.95).by_own == 0
    assert carried([PUBLISHED, FORMS[0], dear], there, (), OWN, 0.95).by_own == 1


def test_what_is_not_sound_on_either_side_does_not_count() -> None:
    """A default that refuses calls compares with nothing, and a setting that does answers nothing."""
    sound, refusing = [PUBLISHED, *FORMS, SURE], [PUBLISHED._replace(sound=False), *FORMS, SURE]
    for one, other in ((sound, refusing), (refusing, sound)):
        assert carried(one, other, ["sure"], OWN, 0.95).published == 0
        assert held(one, other, ["sure"], ["published"]) == []
    assert search([SURE], [SURE._replace(sound=False)]).by_found == 0


def test_a_setting_holds_at_the_larger_of_both_ratios() -> None:
    """The best of them; one that shows too little on either side is none."""
    dear, cheap = point("dear", 0.72, 30_000), point("cheap", 0.4, 30_000)
    one, other = [PUBLISHED, dear, cheap], [PUBLISHED, dear._replace(cost=0.64), cheap._replace(visible=1)]
    assert held(one, other, ["dear", "cheap"], ["published"]) == [pytest.approx(0.9)]
    assert held(one, other, ["cheap"], ["published"]) == [inf]


def test_every_half_is_searched_once() -> None:
    """Of four recordings there are six pairs, each with the two that are left."""
    ways = [*halves("abcd")]
    assert len(ways) == 6
    assert all(sorted([*one, *other]) == [*"abcd"] for one, other in ways)
    assert len({tuple(one) for one, _ in ways}) == 6


def test_shares_are_told_in_the_mean() -> None:
    """A way without any sound default is left out."""
    assert share([(2, 2), (1, 2), (0, 0)]) == Share(0.75, 1)
    assert share([]) == Share(0.0, 0)
