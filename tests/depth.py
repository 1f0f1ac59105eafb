"""How deep the tests go: one dial, which every search, sweep and set of pages reads.

    quick    the default: an answer within minutes. Searches play a tenth of their examples, sweeps an eighth of
             their cases, and of the documents those run whose files changed.
    full     in CI, where the environment sets ``CI``: everything that docs/guarantees.md promises; an eighth of the
             examples of searches, the same ones in each run, and of the cases of sweeps, so that an answer comes well
             within half an hour on a slow machine, too.
    night    ``make night``: twenty times the examples, sweeps whole, and every recording under every preset.

``TIMELINE_TEST_DEPTH`` names another one for a run. What is not played at a depth is deselected, never skipped, and a
deeper run selects everything that a shallower one does.

The part of a sweep that runs at ``quick`` is fixed, not drawn anew: a failure comes back with the same command, and two
commits are compared by the same tests. Only the examples of searches are new in each run outside of CI; Hypothesis
keeps those that fail.
"""

from __future__ import annotations

import os
from enum import IntEnum
from math import ceil
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "TIMELINE_TEST_DEPTH"
FEWEST: Final = 3
"""The first example of a search is the smallest there is: fewer than three would look at next to nothing."""


class Depth(IntEnum):
    """How deep a run goes; each depth holds those before it."""

    QUICK = 0
    FULL = 1
    NIGHT = 2

    @property
    def label(self) -> str:
        """Its name in the environment."""
        return self.name.lower()

    @property
    def step(self) -> int:
        """How far apart the cases of a sweep are that a run of this depth plays; a deeper run plays them, too."""
        return {Depth.QUICK: 8, Depth.FULL: 8, Depth.NIGHT: 1}[self]

    def examples(self, count: int) -> int:
        """Return how many examples a search plays whose whole is ``count``."""
        share = {Depth.QUICK: 0.1, Depth.FULL: 0.125, Depth.NIGHT: 20}[self]
        return max(ceil(share * count), min(FEWEST, count))


def depth_in(environment: Mapping[str, str]) -> Depth:
    """Return the depth that an environment asks for."""
    asked = environment.get(VARIABLE) or ("full" if environment.get("CI") else "quick")
    named = {depth.label: depth for depth in Depth}
    if asked not in named:
        raise ValueError(f"{VARIABLE} is {asked!r}; it has to be one of {', '.join(named)}")
    return named[asked]


DEPTH: Final = depth_in(os.environ)
"""The depth of this run."""

full_depth: Final = pytest.mark.from_depth(Depth.FULL)
"""Marks a test, or one of its cases, that a run selects in CI and at night only."""
at_night: Final = pytest.mark.from_depth(Depth.NIGHT)
"""Marks a test, or one of its cases, that a run selects at night only."""
sampled: Final = pytest.mark.sampled
"""Marks a test of which a quick run and CI play a part; docs/guarantees.md says so by this mark."""


def examples(count: int) -> int:
    """Return how many examples a search plays in this run whose whole is ``count``."""
    return DEPTH.examples(count)


def selects(depth: Depth, item: pytest.Item) -> bool:
    """Return whether a run of a depth plays a test."""
    return all(depth >= mark.args[0] for mark in item.iter_markers("from_depth"))


def register_searches() -> None:
    """Set how Hypothesis searches where a test sets nothing else.

    No deadline anywhere: a machine that does other work too is not a bug. In CI the same examples run every time, and
    none are kept; elsewhere, and at night, each run looks at new ones.
    """
    count = examples(settings.get_profile("default").max_examples)
    settings.register_profile("new", max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("same", settings.get_profile("new"), derandomize=True, database=None, print_blob=True)
    settings.load_profile("same" if os.environ.get("CI") and DEPTH is not Depth.NIGHT else "new")
