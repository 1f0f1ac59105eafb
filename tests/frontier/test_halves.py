from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Final

from tests.frontier.halves import EVERY, by_lifetime, draws, halves, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

FILES: Final = [f"{number}-{kept}" for number in range(5) for kept in ("1h", "5m")]


def lifetime(file: str) -> str:
    """Return the lifetime that a file's name ends with."""
    return file.partition("-")[2]


def number(file: str) -> float:
    """Return the number that a file's name begins with."""
    return float(file.partition("-")[0])


def test_every_other_recording_of_each_lifetime_is_searched() -> None:
    """No recording is on both sides, and none is left out."""
    split = halves(FILES, lifetime)
    assert split.searched == {"1h": ["0-1h", "2-1h", "4-1h"], "5m": ["0-5m", "2-5m", "4-5m"]}
    assert split.unseen == {"1h": ["1-1h", "3-1h"], "5m": ["1-5m", "3-5m"]}


def test_a_half_is_looked_at_as_a_whole_and_by_lifetime() -> None:
    """The whole comes first."""
    split = halves(FILES, lifetime)
    assert [(kept, len(files)) for kept, files in by_lifetime(split.unseen)] == [(EVERY, 4), ("1h", 2), ("5m", 2)]


def test_recordings_are_drawn_again_in_the_same_way_each_time() -> None:
    """As many as there are, each put back."""
    drawn = [*draws(FILES)]
    assert drawn == [*draws(FILES)]
    assert {len(files) for files in drawn} == {len(FILES)}
    assert any(len({*files}) < len(FILES) for files in drawn)


def test_a_decile_is_on_the_worse_side_of_what_was_measured() -> None:
    """Below it where more is better, above it where less is; a tenth of the draws is worse still."""

    def figure(files: Sequence[str]) -> float:
        return mean(number(file) for file in files)

    more, less = (spread(figure, FILES, best=best) for best in (max, min))
    assert more.decile < more.measured == less.measured == 2.0 < less.decile
    worse = sum(figure(files) < more.decile for files in draws(FILES))
    assert worse <= len([*draws(FILES)]) // 10
