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

    from timeline.policy.model import Policy
    from timeline.usage import CacheKind

LIMITS: Final = (200_000, 100_000, 32_000)


class Tried(NamedTuple):
    """A policy at a limit, no policy or a cut point that keeps a share of the room, and the cache (`--cache`)."""

    limit: int
    keep: float | None = None
    cache: CacheKind | None = None

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
    by_name = {f"{one.name} at {one.limit}, {one.cache}": one for one in tried}
    works = [
        work
        for name, one in by_name.items()
        for work in plan([str(file) for file in files], [_made(name, one)], Options(cache=one.cache))
    ]
    labs: dict[tuple[str, str], float] = defaultdict(float)
    for outcome in run(works, jobs=1):
        for result in outcome.runs:
            labs[result.file, result.policy] += result.totals.units
    found = []
    for file in files:
        conversations = read(file)
        for name, one in by_name.items():
            settings = Settings(one.limit) if one.keep is None else Settings(one.limit, one.keep)
            calculated = cost(conversations, settings, cuts=one.keep is not None, kept=one.cache or "")
            found.append(Agreement(one, file.name, labs[str(file), name], calculated))
    return found


def _made(name: str, tried: Tried) -> tuple[str, Policy]:
    """Return the policy that is tried, with its name in the comparison."""
    if tried.keep is None:
        return name, policies.none(max_tokens=tried.limit)
    return name, policies.cut_point(max_tokens=tried.limit, keep_recent=tried.keep)


def together(found: Iterable[Agreement]) -> list[Agreement]:
    """Return the sums over all recordings, one for each policy."""
    sums: dict[Tried, list[Agreement]] = defaultdict(list)
    for one in found:
        sums[one.tried].append(one)
    return [
        Agreement(tried, "together", sum(one.lab for one in ones), sum(one.calculated for one in ones))
        for tried, ones in sums.items()
    ]
