"""What is searched: a lattice of `policies.balanced`, and the published defaults that it is held against."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.frontier.alike import ALIKE, EVERYTHING, FIXED_PART, SPARED, Alike, Spared
from timeline import policies
from timeline.policy.files import find_policy
from timeline.policy.library import designs
from timeline.policy.model import LineNumbers, Repeats
from timeline.policy.presets import PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from timeline.policy.model import Policy
    from timeline.usage import KeptLong

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


class Line(NamedTuple):
    """Shares of the limit: above which a render compacts, and that a compaction folds down to.

    A tenth of the limit stays free for the answer: a setting that leaves less would not be comparable.
    """

    trigger: float = 0.9
    target: float = 0.6


class Setting(NamedTuple):
    """One point of the lattice: what is kept behind a cut as a share of the room, rounds, the cache's use, the line."""

    keep: float
    rounds: Rounds
    cache: Cache
    line: Line = Line()

    @property
    def name(self) -> str:
        """All of its figures, in short; the line where it is another one than most have."""
        line = "" if self.line == Line() else f"{self.line.trigger:g}>{self.line.target:g} "
        return f"{line}keep {self.keep:g} {self.rounds.name} {self.cache.name}"

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
            trigger=self.line.trigger,
            target=self.line.target,
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
LOW: Final = [
    Setting(0.1, rounds, Cache(0.3), line)
    for rounds, line in product(
        (Rounds(1, 2, 1), Rounds(4, 8, 4), Rounds(8, 12, 8)), (Line(0.7), Line(0.6, target=0.4))
    )
]
"""The same with a lower line, for what published defaults show less of."""
HIGH: Final = [
    Setting(keep, rounds, Cache(0.65), Line(target=0.85))
    for keep, rounds in product((0.5, 0.7), (Rounds(8, 12, 8), Rounds(16, 30, 30), Rounds(24, 240, 96)))
]
"""The same that keep more, for what published defaults show more of."""
BETWEEN: Final = [
    Setting(0.58, Rounds(24, 240, 96), Cache(0.9), Line(target=0.85)),
    Setting(0.7, Rounds(32, 400, 200), Cache(0.65), Line(target=0.85)),
    Setting(0.6, Rounds(32, 400, 200), Cache(0.65), Line(target=0.88)),
    Setting(0.1, Rounds(80, 500, 500), Cache(0.4)),
    Setting(0.1, Rounds(4, 8, 4), Cache(0.3), Line(0.65, target=0.43)),
]
"""Between these: found by trials, against seed-002-first at 32,000 and 100,000 tokens, and gemini-cli at 200,000 and
100,000."""


class Once(NamedTuple):
    """Another setting that leaves out of new results what is in sight, and most numbers of lines (ADRs 0090, 0091).

    No fact goes out of sight by it.
    """

    setting: Setting | Alike | Spared

    @property
    def name(self) -> str:
        """The setting's, and that a passage is shown once."""
        return f"{self.setting.name} once"

    def policy(self, limit: int) -> Policy:
        """Return the policy at a limit."""
        return self.setting.policy(limit).model_copy(update={"repeats": Repeats(), "line_numbers": LineNumbers()})


def named(name: str) -> Callable[[int], Policy]:
    """Return what makes a preset, or a published default, for a limit."""
    return lambda limit: find_policy(name, max_tokens=limit)


_SINGLE: Final[list[Setting | Alike | Spared]] = [*LATTICE, *LOW, *HIGH, *BETWEEN, *ALIKE, *SPARED]
SETTINGS: Final[dict[str, Callable[[int], Policy]]] = {
    **{setting.name: setting.policy for setting in _SINGLE},
    **{once.name: once.policy for once in map(Once, _SINGLE)},
}
"""What is searched."""
FIRST: Final = "none"
"""What costs are shares of."""
OURS: Final = ("balanced", "gentle", "economical", "cut_point")
"""Ours that have a name."""
DESIGNS: Final = (*(name for name in PUBLISHED if name != "cut_point"), "seed-002-first")
"""The five published designs; 002 as it was first shipped."""
DESIGNS_AND_PEERS: Final = tuple(dict.fromkeys((*DESIGNS, *(name for name in designs() if name not in SAME))))
"""They, and what agents and frameworks publish as their defaults."""

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
