"""No context is larger than the limit as the provider counts, and counting so costs no further rewriting."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import DEPTH, sampled
from tests.lab.talks import work
from tests.lab.true_sizes import play
from tests.recorded import needs_recordings, swept
from timeline import policies
from timeline.importers import read_recording
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import replay
from timeline.lab.sizes import measure

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.importers.recording import Recording
    from timeline.policy.model import Policy

OURS: Final = ("balanced", "economical", "gentle")
RATIOS: Final = (1.0, 1.13, 1.33, 1.66, 1.95)
"""How providers may count; those of Claude on recordings are 1.13 to 1.66."""
SOME_RATIOS: Final = RATIOS[:: DEPTH.step]
PAUSES: Final = {9: 400.0, 20: 700.0, 33: 4_000.0, 60: 400.0}
MODEL: Final = "claude-opus-4-6"
LIMIT: Final = 24_000


@cache
def talk(ratio: float) -> Recording:
    """Return an agent's work of 80 rounds, with pauses, as a provider reports it that counts by a ratio."""
    return work(80, pauses=PAUSES, ratio=ratio).recording()


def policy(name: str, limit: int, *, model: str | None = MODEL) -> Policy:
    """Return a preset for a limit."""
    return policies.by_name(name, max_tokens=limit, model=model)


@sampled
@pytest.mark.parametrize("ratio", SOME_RATIOS)
@pytest.mark.parametrize("name", OURS)
async def test_no_context_is_above_the_limit_as_the_provider_counts(name: str, ratio: float) -> None:
    """However the provider counts; each context counts here within 5 % of what it counts there."""
    played = await play(talk(ratio), policy(name, LIMIT))
    assert (played.above, played.refused) == (0, 0)
    assert played.rewrites > 0
    assert played.measured == pytest.approx(ratio, rel=0.03)
    assert all(0.95 <= error <= 1.05 for error in played.errors[5:])


async def test_a_limit_is_used_whatever_its_provider_counts() -> None:
    """`gentle` rewrites above 0.9 of the limit: a count that is too high would rewrite sooner."""
    for ratio in (1.33, 1.95):
        assert 0.8 < (await play(talk(ratio), policy("gentle", LIMIT))).largest <= 0.95


@pytest.mark.parametrize("ratio", [0.75, 1.33, 1.95])
@pytest.mark.parametrize("name", OURS)
async def test_without_a_model_the_first_calls_are_enough_to_know(name: str, ratio: float) -> None:
    """A policy that knows no model's tokenizer begins with the counter's tokens."""
    played = await play(talk(ratio), policy(name, LIMIT, model=None))
    assert (played.above, played.refused) == (0, 0)
    assert played.measured == pytest.approx(ratio, rel=0.03)


@pytest.mark.parametrize("name", OURS)
async def test_a_prompt_that_only_the_provider_knows_is_counted(name: str) -> None:
    """Its own text for tools, say: the first call reports it."""
    played = await play(talk(1.33), policy(name, LIMIT), hidden=3_000)
    assert (played.above, played.refused) == (0, 0)


async def test_a_counter_with_a_margin_sends_contexts_above_the_limit() -> None:
    """The yardstick measures: a tenth more is less than what the provider counts."""
    literal = policy("balanced", LIMIT).model_copy(update={"counts": "counter", "margin": 0.1})
    assert (await play(talk(1.66), literal)).above > 0


@sampled
@pytest.mark.parametrize("ratio", SOME_RATIOS)
@pytest.mark.parametrize("name", OURS)
async def test_a_ratio_that_is_still_being_measured_rewrites_no_more_than_one_that_is_known(
    name: str, ratio: float
) -> None:
    """The lab's replay knows every size from the start; measuring costs at most one compaction besides."""
    tried = policy(name, LIMIT)
    played = await play(talk(ratio), tried)
    known = await replay(measure(talk(ratio)), tried, packaged_prices().price_of)
    assert played.compactions <= known.totals.compactions + 1


@needs_recordings
@sampled
@pytest.mark.parametrize("limit", [200_000, 100_000, 32_000])
@pytest.mark.parametrize("file", swept("claude-code/*.jsonl"), ids=lambda file: file.stem)
async def test_no_context_of_a_recording_is_above_the_limit(file: Path, limit: int) -> None:
    """By the usage that its provider reported."""
    for recording in read_recording(file):
        if any(call.context for call in measure(recording).calls):
            played = await play(recording, policy("balanced", limit))
            assert played.above == 0
