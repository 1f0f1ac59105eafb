from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.frontier.points import Point, Replays, answers, frontier, replays
from tests.frontier.settings import (
    DESIGNS_AND_PEERS,
    EVERYTHING,
    LATTICE,
    LONGER,
    LOW,
    PRESETS,
    SETTINGS,
    longer,
    named,
)
from tests.project.recording import write_recording
from timeline.lab.cache_files import Kept
from timeline.policy.files import find_policy

if TYPE_CHECKING:
    from pathlib import Path


LIMITS: Final = (12_000, 20_000)
SESSIONS: Final = {"short": {"Go.": 12}, "long": {"Go.": 12, "Go on.": 30}}


def replayed(files: list[str], folder: Path) -> Replays:
    """Replay recordings under two policies at two limits."""
    makers = {name: named(name) for name in ("none", "balanced")}
    return replays(files, makers, LIMITS, kept=Kept(folder / "kept"), jobs=1)


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


def test_costs_are_told_by_the_first_policy_at_the_same_limit(tmp_path: Path) -> None:
    """Every other policy's cost is a share of what that one costs there, and is found again without a replay."""
    file = str(write_recording(tmp_path))
    found = replayed([file], tmp_path)
    told = [(p.policy, p.limit, p.cost == 1, p.sound) for limit in LIMITS for p in found.points(limit, [file])]
    assert told == [
        ("none", 12_000, True, False),
        ("balanced", 12_000, False, True),
        ("none", 20_000, True, True),
        ("balanced", 20_000, False, True),
    ]
    again = replayed([file], tmp_path)
    assert again.points(12_000, [file]) == found.points(12_000, [file])


def test_points_over_some_recordings_weigh_each_call_the_same(tmp_path: Path) -> None:
    """A longer recording says more; one that is not asked about says nothing."""
    for name in SESSIONS:
        (tmp_path / name).mkdir()
    short, long = [str(write_recording(tmp_path / name, turns)) for name, turns in SESSIONS.items()]
    found = replayed([short, long], tmp_path)
    [_, one], [_, other], [_, both] = (found.points(12_000, files) for files in ([short], [long], [short, long]))
    assert one.visible < both.visible < other.visible
    assert abs(both.visible - other.visible) < abs(both.visible - one.visible)


def test_a_recording_that_cannot_be_replayed_ends_the_search(tmp_path: Path) -> None:
    """Shares of what no policy costs would be too high without it."""
    with pytest.raises(ValueError, match="gone"):
        replayed([str(tmp_path / "gone.jsonl")], tmp_path)


def test_every_setting_and_every_published_default_is_a_policy_at_every_limit() -> None:
    """Names are told apart, and no figure is out of range."""
    ours = (*SETTINGS.values(), *PRESETS.values())
    assert len(ours) == len(LATTICE) + len(LOW) + len(PRESETS)
    for limit in (200_000, 32_000):
        assert len({make(limit) for make in ours}) == len(ours)
        assert {find_policy(name, max_tokens=limit).max_tokens for name in DESIGNS_AND_PEERS} == {limit}


def test_a_published_default_that_asks_for_an_hour_is_otherwise_as_it_is_published() -> None:
    """What it hides, when it compacts and what it keeps stay its own."""
    for name in DESIGNS_AND_PEERS:
        own = find_policy(name, max_tokens=200_000)
        asking = LONGER[name][longer(name, EVERYTHING)](200_000)
        assert asking.cache_points.kept_long == EVERYTHING
        assert asking.model_copy(update={"cache_points": own.cache_points}) == own
