"""What the lab says that recordings cost, beside what the calculation says."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.independent.calculation import cost
from tests.independent.items import Settings
from tests.independent.recordings import read
from timeline import policies
from timeline.lab.runner import plan, run
from timeline.lab.work import Options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

LIMITS: Final = (200_000, 100_000, 32_000)


class Tried(NamedTuple):
    """A policy at a limit: no policy, or a cut point that keeps a share of the room."""

    limit: int
    keep: float | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return "none" if self.keep is None else f"cut_point, keeps {self.keep:.0%}"


class Agreement(NamedTuple):
    """What a recording costs under a policy, in base tokens."""

    tried: Tried
    recording: str
    lab: float
    calculated: float

    @property
    def off(self) -> float:
        """By which share of the lab's cost the calculation is above it."""
        return self.calculated / self.lab - 1


def agreements(files: Sequence[Path], tried: Sequence[Tried]) -> list[Agreement]:
    """Return both costs of each recording under each policy, a recording's own together."""
    by_name = {f"{one.name} at {one.limit}": one for one in tried}
    made = [
        (name, policies.none(max_tokens=one.limit))
        if one.keep is None
        else (name, policies.cut_point(max_tokens=one.limit, keep_recent=one.keep))
        for name, one in by_name.items()
    ]
    labs: dict[tuple[str, str], float] = defaultdict(float)
    for outcome in run(plan([str(file) for file in files], made, Options()), jobs=1):
        for result in outcome.runs:
            labs[result.file, result.policy] += result.totals.units
    found = []
    for file in files:
        conversations = read(file)
        for name, one in by_name.items():
            settings = Settings(one.limit) if one.keep is None else Settings(one.limit, one.keep)
            calculated = cost(conversations, settings, cuts=one.keep is not None)
            found.append(Agreement(one, file.name, labs[str(file), name], calculated))
    return found


def together(found: Iterable[Agreement]) -> list[Agreement]:
    """Return the sums over all recordings, one for each policy."""
    sums: dict[Tried, list[Agreement]] = defaultdict(list)
    for one in found:
        sums[one.tried].append(one)
    return [
        Agreement(tried, "together", sum(one.lab for one in ones), sum(one.calculated for one in ones))
        for tried, ones in sums.items()
    ]
