"""What is searched: a lattice of `policies.balanced`, and the published defaults that it is held against."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline import policies
from timeline.policy.files import find_policy
from timeline.policy.library import designs
from timeline.policy.presets import PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from timeline.policy.model import Policy
    from timeline.usage import KeptLong

FIXED_PART: Final = "fixed_part"
EVERYTHING: Final = "everything"
SAME: Final = frozenset({"goose"})
"""Defaults that are another one's under a second name: crush's."""


class Rounds(NamedTuple):
    """For how long content stays: see `Hiding`; ``warm`` is the least share that is hidden at once above the trigger.

    Without it nothing is hidden while the cache is warm.
    """

    intact: int
    files: int
    old: int
    warm: float | None = 0.05

    @property
    def name(self) -> str:
        """The three figures; with a dash where nothing is hidden while the cache is warm."""
        return f"{self.intact}/{self.files}/{self.old}" + ("" if self.warm else " cold only")


class Cache(NamedTuple):
    """How the cache is used: above which share of the limit a cold one brings a compaction; what is kept for long."""

    cold: float
    kept_long: KeptLong = FIXED_PART

    @property
    def name(self) -> str:
        """The share, and whether messages are kept for an hour, too."""
        return f"cold {self.cold:g}" + (" for an hour" if self.kept_long == EVERYTHING else "")


class Setting(NamedTuple):
    """One point of the lattice: what is kept behind a cut as a share of the room, rounds, the cache's use.

    A tenth of the limit stays free for the answer: a setting that leaves less would not be comparable.
    """

    keep: float
    rounds: Rounds
    cache: Cache

    @property
    def name(self) -> str:
        """All of its figures, in short."""
        return f"keep {self.keep:g} {self.rounds.name} {self.cache.name}"

    def policy(self, limit: int) -> Policy:
        """Return the policy at a limit."""
        hiding = policies.balanced().model_dump()["hiding"] | {
            "intact": self.rounds.intact,
            "files": self.rounds.files,
            "old": self.rounds.old,
            "pressure_minimum": self.rounds.warm,
        }
        return policies.balanced(
            max_tokens=limit,
            keep_recent=self.keep,
            compact_when_cold=self.cache.cold,
            trigger=0.9,
            target=0.6,
            hiding=hiding,
            cache_points={"kept_long": self.cache.kept_long},
        )


LATTICE: Final = [
    Setting(*axes)
    for axes in product(
        (0.1, 0.5),
        (
            Rounds(4, 8, 4),
            Rounds(8, 12, 8),
            Rounds(16, 30, 30),
            Rounds(24, 240, 96),
            Rounds(64, 400, 400),
            Rounds(8, 240, 48, warm=None),
        ),
        (Cache(0.3), Cache(0.9, EVERYTHING)),
    )
]
"""Every combination of a few round figures, out of the ranges that earlier searches had come to (ADR 0025)."""


def named(name: str) -> Callable[[int], Policy]:
    """Return what makes a preset, or a published default, for a limit."""
    return lambda limit: find_policy(name, max_tokens=limit)


FIRST: Final = "none"
"""What costs are shares of."""
OURS: Final = ("balanced", "gentle", "economical", "cut_point")
"""Ours that have a name."""
DESIGNS: Final = (*(name for name in PUBLISHED if name != "cut_point"), "seed-002-first")
"""The five published designs; 002 as it was first shipped."""
DESIGNS_AND_PEERS: Final = tuple(dict.fromkeys((*DESIGNS, *(name for name in designs() if name not in SAME))))
"""They, and what agents and frameworks publish as their defaults."""

LEAN: Final = {f"lean-{name}": named(f"lean-{name}") for name in DESIGNS_AND_PEERS}
"""Each of them with all of its decisions, which sends less (ADR 0105)."""
SETTINGS: Final[dict[str, Callable[[int], Policy]]] = {
    **{setting.name: setting.policy for setting in LATTICE},
    **LEAN,
}
"""What is searched."""

NAMED: Final = {name: named(name) for name in (FIRST, *OURS, *DESIGNS_AND_PEERS)}
"""What is looked at by its name, on both halves."""

UNDER_CACHES: Final = {name: NAMED[name] for name in (FIRST, *OURS, "cline")}
"""What is measured under each kind of cache."""
CACHES_LIMIT: Final = 100_000
"""Where that is, in tokens."""


def at_limits(makers: Mapping[str, Callable[[int], Policy]], limits: Iterable[int]) -> list[tuple[str, Policy]]:
    """Return every policy at every limit (in tokens), by its name."""
    return [(name, make(limit)) for limit in limits for name, make in makers.items()]


def of_answers(found: Mapping[int, Mapping[str, str]]) -> list[tuple[str, Policy]]:
    """Return the settings that answer published defaults at the limit where they do; a preset is named anyway."""
    return [
        (name, SETTINGS[name](limit))
        for limit, answers in found.items()
        for name in dict.fromkeys(answers.values())
        if name in SETTINGS
    ]
