from __future__ import annotations

from typing import TYPE_CHECKING

from tests.frontier.points import Point, answers, carried, frontier, points
from tests.frontier.settings import PUBLISHED, SETTINGS, named
from tests.project.recording import write_recording
from timeline.lab.keeping import Kept
from timeline.lab.library import lab_policy

if TYPE_CHECKING:
    from pathlib import Path


def _point(name: str, cost: float, visible: float, need: float, *, sound: bool = True) -> Point:
    return Point(name, 32_000, cost, visible, need, sound)


def test_a_point_that_shows_less_hides_more_and_costs_more_is_not_on_the_frontier() -> None:
    """What one point betters in all three is left out; what is better in one of them stays."""
    cheap, dear = _point("cheap", 0.4, 20_000, 0.1), _point("dear", 0.6, 40_000, 0.2)
    careful, bettered = _point("careful", 0.5, 10_000, 0.0), _point("bettered", 0.5, 20_000, 0.1)
    assert frontier([dear, bettered, careful, cheap]) == [cheap, careful, dear]


def test_a_point_that_refuses_is_neither_on_the_frontier_nor_an_answer() -> None:
    """A policy that refuses a call pays for fewer of them."""
    refusing, sound = _point("refusing", 0.1, 90_000, 0.0, sound=False), _point("sound", 0.6, 40_000, 0.0)
    published = _point("published", 0.8, 30_000, 0.1)
    assert frontier([refusing, sound]) == [sound]
    [answer] = answers([published, refusing], [refusing, sound])
    assert (answer.published, answer.ours, answer.ratio) == (published, sound, 0.6 / 0.8)


def test_a_published_default_that_shows_more_than_any_of_ours_has_no_answer() -> None:
    """It is told as such, and not compared with one that shows less."""
    [answer] = answers([_point("published", 0.8, 50_000, 0.1)], [_point("ours", 0.5, 40_000, 0.0)])
    assert answer.ours is None
    assert answer.ratio is None


def test_a_setting_carries_where_it_answers_on_the_other_recordings_too() -> None:
    """One that answers there alone was not found; one that shows too little or costs too much there does not carry."""
    published, ours = _point("published", 0.8, 30_000, 0.1), {"sure", "lucky", "late"}
    found = [published, _point("sure", 0.6, 40_000, 0.1), _point("lucky", 0.6, 40_000, 0.1), _point("late", 0.9, 0, 0)]
    others = [_point("lucky", 0.5, 29_000, 0), _point("late", 0.1, 90_000, 0)]
    sure, dear = _point("sure", 0.7, 30_000, 0.1), _point("sure", 0.77, 30_000, 0.1)
    assert carried(found, [published, sure, *others], ours, 0.95) == (1, 1)
    assert carried(found, [published, dear, *others], ours, 0.95) == (0, 1)
    assert carried(found, [published._replace(sound=False), sure, *others], ours, 0.95) == (0, 0)


def test_costs_are_told_by_the_first_policy_at_the_same_limit(tmp_path: Path) -> None:
    """Every other policy's cost is a share of what that one costs there, and is found again without a replay."""
    file = str(write_recording(tmp_path))
    makers = {name: named(name) for name in ("none", "balanced")}
    kept = Kept(tmp_path / "kept")
    found = points([file], makers, (12_000, 20_000), kept=kept, jobs=1)
    assert [(point.policy, point.limit, point.cost == 1) for point in found] == [
        ("none", 12_000, True),
        ("balanced", 12_000, False),
        ("none", 20_000, True),
        ("balanced", 20_000, False),
    ]
    assert points([file], makers, (12_000, 20_000), kept=kept, jobs=1) == found


def test_every_setting_and_every_published_default_is_a_policy_at_every_limit() -> None:
    """Names are told apart, and no figure is out of range."""
    for limit in (200_000, 32_000):
        assert {make(limit).max_tokens for make in SETTINGS.values()} == {limit}
        assert {lab_policy(name, max_tokens=limit).max_tokens for name in PUBLISHED} == {limit}
