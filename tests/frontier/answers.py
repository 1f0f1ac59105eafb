"""Which setting of ours answers which published default: chosen where a search may look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tests.frontier.halves import draws
from tests.frontier.settings import DESIGNS_AND_PEERS, FIRST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.frontier.points import Replays

BAR: Final = 0.95
"""What a setting of ours may cost of a published default, to count as better."""
SLACK: Final = 0.05
"""What a setting has to keep more where it is chosen, so that it keeps as much where nobody looked."""


class Answer(NamedTuple):
    """A setting of ours beside a published default, on the recordings of which the default rewrites something.

    Attributes:
        published: the default's name.
        setting: ours.
        recordings: how many recordings that are.
        ratio: our cost as a share of the default's.
        keeps: no less is in sight, and no fewer facts are one read away.
        surely: that with some slack.
    """

    published: str
    setting: str
    recordings: int
    ratio: float
    keeps: bool
    surely: bool

    @property
    def answered(self) -> bool:
        """Whether ours keeps as much for at most 0.95 of the cost."""
        return self.keeps and self.ratio <= BAR


def answer(replays: Replays, limit: int, published: str, setting: str, files: Sequence[str]) -> Answer | None:
    """Hold a setting against a published default; None where the default is not sound, or rewrites nothing."""
    changed = replays.rewritten(limit, published, files)
    if not changed:
        return None
    theirs, ours = (replays.point(limit, name, changed) for name in (published, setting))
    if not theirs.sound:
        return None
    kept = (ours.betters(theirs, slack=slack) for slack in (0.0, SLACK))
    return Answer(published, setting, len({*changed}), ours.units / theirs.units, *kept)


def chosen(replays: Replays, limit: int) -> dict[str, str]:
    """Return for each published default the setting that answers it most surely: on most draws of the recordings.

    Of equally sure settings it is the cheapest one that comes nearest. Defaults without an answer to look for (those
    that refuse a call, or rewrite nothing) are left out.

    Args:
        replays: of the recordings that may be searched, under every setting.
        limit: of the context, in tokens.
    """
    names = [name for name in replays.names(limit) if name != FIRST]
    ours = [name for name in names if name not in DESIGNS_AND_PEERS]
    return {
        published: max(ours, key=lambda setting: _surety(replays, limit, published, setting))
        for published in names
        if published in DESIGNS_AND_PEERS and answer(replays, limit, published, published, replays.files) is not None
    }


def _surety(replays: Replays, limit: int, published: str, setting: str) -> tuple[int, int, float]:
    drawn = (answer(replays, limit, published, setting, files) for files in draws(replays.files))
    found = [one for one in drawn if one is not None]
    answered = sum(one.answered + (one.answered and one.surely) for one in found)
    return answered, sum(one.keeps for one in found), -sum(one.ratio for one in found)
