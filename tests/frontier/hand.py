"""Replays whose figures are written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.frontier.points import Replays
from tests.lab.rows import row, run_of
from timeline import policies
from timeline.lab.work import Outcome, Work

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LIMIT = 32_000


def replays_of(figures: Mapping[str, Mapping[str, Any]], files: Iterable[str]) -> Replays:
    """Return the same figures of each policy for all recordings; a file's name ends with its lifetime.

    Args:
        figures: by policy; those of `CallRow`. The first policy is what costs are shares of.
        files: names of recordings.
    """
    works, outcomes = [], []
    for file in files:
        for name, told in figures.items():
            works.append(Work(file=file, policy=policies.none(max_tokens=LIMIT), name=name))
            run = run_of(name, row(1, **told), limit=LIMIT, file=file)
            outcomes.append(Outcome(runs=(run.model_copy(update={"lifetime": file.partition("-")[2]}),)))
    return Replays(works, outcomes)


def figures(units: float, **told: Any) -> dict[str, Any]:
    """Return the figures of a policy that hides something, shows 10,000 tokens and knows 8 of 10 far facts."""
    plain = {"hidden": 1, "visible": 10_000, "facts_far": 10, "seen_far": 6, "reachable_far": 8}
    return {"units": units, **plain, **told}
