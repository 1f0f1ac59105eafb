from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.frontier.hand import LIMIT, figures, replays_of
from tests.frontier.points import Known, replays
from tests.frontier.settings import DESIGNS_AND_PEERS, NAMED, SETTINGS, at_limits, named
from tests.project.recording import write_recording
from timeline.lab.cache_files import OutcomeFolder
from timeline.policy.files import find_policy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.frontier.points import Replays

LIMITS: Final = (12_000, 20_000)
SESSIONS: Final = {"short": {"Go.": 12}, "long": {"Go.": 12, "Go on.": 30}}


def replayed(files: list[str], folder: Path) -> Replays:
    """Replay recordings under two policies at two limits."""
    makers = {name: named(name) for name in ("none", "balanced")}
    return replays(files, at_limits(makers, LIMITS), kept=OutcomeFolder(folder / "kept"), jobs=1)


@pytest.mark.parametrize(
    ("other", "better"),
    [
        ({}, True),
        ({"visible": 9_000}, False),
        ({"seen_far": 5}, False),
        ({"reachable_far": 7}, False),
        ({"over_limit": True}, False),
    ],
)
def test_what_is_better_shows_no_less_and_leaves_no_fewer_facts_one_read_away(
    other: dict[str, int], *, better: bool
) -> None:
    """What refuses, or sends more than the limit, betters nothing."""
    found = replays_of({"none": figures(100), "ours": figures(90, **other)}, ["a-1h"])
    ours, theirs = (found.point(LIMIT, name, found.files) for name in ("ours", "none"))
    assert ours.betters(theirs) is better


def test_facts_are_shares_of_those_that_are_needed() -> None:
    """By distance, and all of them; where none is needed, nothing is missing."""
    found = replays_of({"none": figures(100, facts_near=10, seen_near=10, reachable_near=10)}, ["a-1h", "b-5m"])
    point = found.point(LIMIT, "none", found.files)
    assert (point.seen, point.one_read) == (Known(0.8, 1.0, 1.0, 0.6), Known(0.9, 1.0, 1.0, 0.8))


def test_identifiers_out_of_sight_are_counted() -> None:
    """Paths and numbers are not among them."""
    by = {"far/name/file": (5, 3, 4), "near/name/user": (1, 1, 1), "far/path/file": (9, 0, 0)}
    found = replays_of({"none": figures(100, facts_by=by)}, ["a-1h"])
    assert found.point(LIMIT, "none", found.files).names == 2


def test_costs_are_shares_of_what_the_first_policy_costs_there(tmp_path: Path) -> None:
    """What was replayed once is found again without a replay."""
    file = str(write_recording(tmp_path))
    found = replayed([file], tmp_path)
    points = [found.point(limit, name, [file]) for limit in LIMITS for name in found.names(limit)]
    assert [(p.policy, p.limit, p.cost == 1, p.sound) for p in points] == [
        ("none", 12_000, True, False),
        ("balanced", 12_000, False, True),
        ("none", 20_000, True, True),
        ("balanced", 20_000, False, True),
    ]
    again = replayed([file], tmp_path)
    assert again.point(12_000, "balanced", [file]) == found.point(12_000, "balanced", [file])


def test_points_over_some_recordings_weigh_each_call_the_same(tmp_path: Path) -> None:
    """A longer recording says more; one that is not asked about says nothing."""
    for name in SESSIONS:
        (tmp_path / name).mkdir()
    short, long = [str(write_recording(tmp_path / name, turns)) for name, turns in SESSIONS.items()]
    found = replayed([short, long], tmp_path)
    one, other, both = (found.point(12_000, "balanced", files) for files in ([short], [long], [short, long]))
    assert one.visible < both.visible < other.visible
    assert abs(both.visible - other.visible) < abs(both.visible - one.visible)


def test_a_recording_of_which_a_policy_rewrites_nothing_is_left_out_of_what_it_rewrote(tmp_path: Path) -> None:
    """There it sends what no policy sends."""
    file = str(write_recording(tmp_path))
    found = replayed([file], tmp_path)
    assert found.rewritten(12_000, "none", [file]) == []
    assert found.rewritten(12_000, "balanced", [file]) == [file]


def test_a_recording_that_cannot_be_replayed_ends_the_search(tmp_path: Path) -> None:
    """Shares of what no policy costs would be too high without it."""
    with pytest.raises(ValueError, match="gone"):
        replayed([str(tmp_path / "gone.jsonl")], tmp_path)


def test_every_setting_and_every_published_default_is_a_policy_of_its_own_at_every_limit() -> None:
    """No two names mean the same policy, and no figure is out of range."""
    for limit in (200_000, 32_000):
        made = [make(limit).model_copy(update={"name": ""}) for make in (*NAMED.values(), *SETTINGS.values())]
        assert len({policy.hash() for policy in made}) == len(made)
        assert {find_policy(name, max_tokens=limit).max_tokens for name in DESIGNS_AND_PEERS} == {limit}
