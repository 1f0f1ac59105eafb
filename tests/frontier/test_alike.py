from __future__ import annotations

import pytest

from tests.frontier.alike import EVERYTHING, FIXED_PART, Alike, Spared, Words
from timeline import policies
from timeline.planning.account import FixedPart, account_of
from timeline.policy.steps import Summarize

FIXED = FixedPart(system=30_000, tools=10_000)


@pytest.mark.parametrize("limit", [200_000, 100_000, 32_000])
@pytest.mark.parametrize("design", ["anthropic-compact", "claude-code", "cline", "crush", "deepagents", "pi"])
def test_what_is_like_a_design_compacts_where_it_does_and_cuts_as_it_does(design: str, limit: int) -> None:
    """Then what it shows differs by the length of summaries alone."""
    theirs, ours = policies.by_name(design, max_tokens=limit), Alike(design).policy(limit)
    lines = [account_of((), FIXED, policy).trigger for policy in (theirs, ours)]
    cuts = [
        step.cut.model_dump(include={"kind", "keep_recent", "keep_recent_tokens"})
        for policy in (theirs, ours)
        for step in policy.steps
        if isinstance(step, Summarize)
    ]
    assert lines[0] == lines[1]
    assert cuts[0] == cuts[1]
    assert (ours.hiding, ours.cache_points.kept_long) == (None, EVERYTHING)


def test_what_is_spared_in_the_designs_own_batches_is_the_design_with_another_lifetime() -> None:
    """Whatever it hides is hidden when the design hides it."""
    theirs = policies.by_name("seed-002-first", max_tokens=100_000).model_dump()
    ours = Spared("seed-002-first", None, FIXED_PART).policy(100_000).model_dump()
    assert ours == {**theirs, "cache_points": {**theirs["cache_points"], "kept_long": FIXED_PART}}


@pytest.mark.parametrize(("design", "least"), [("clear-tool-uses", "pressure_minimum"), ("seed-002-first", "minimum")])
def test_what_is_spared_is_the_design_with_larger_batches_and_another_lifetime(design: str, least: str) -> None:
    """So it shows what the design shows, and what waits for a batch."""
    theirs = policies.by_name(design, max_tokens=200_000).model_dump()
    ours = Spared(design, 0.05, EVERYTHING).policy(200_000).model_dump()
    assert ours == {
        **theirs,
        "hiding": {**theirs["hiding"], least: 0.05},
        "cache_points": {**theirs["cache_points"], "kept_long": EVERYTHING},
    }


def test_its_name_says_what_is_different() -> None:
    """A setting is found by its name."""
    assert Alike("pi", keep=23_000).name == "as pi keep 23,000 for an hour"
    assert Alike("cline", keep=0.5, trigger=0.8).name == "as cline above 0.8 keep 0.5 for an hour"
    assert Alike("crush", words=Words(600, 400), kept_long=FIXED_PART).name == "as crush in 600+400"
    assert Spared("seed-002-first", 0.03, FIXED_PART).name == "seed-002-first in batches of 0.03"
    assert Spared("seed-002-first", None, FIXED_PART).name == "seed-002-first in its own batches"
