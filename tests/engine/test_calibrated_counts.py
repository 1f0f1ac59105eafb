"""Calibrated counts in renders: what compacts, what is refused, and in which unit a summarizer is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import Scribe, answer, opened, payloads_of, prompt, small_policy, turn, words
from timeline import policies
from timeline.errors import BudgetImpossible, ContextOverflow
from timeline.ports import ratio_of
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline.policy.model import Policy


def policy(name: str, limit: int, start: float = 1.66) -> Policy:
    """Return a preset with calibrated counts that begin with a ratio."""
    return policies.by_name(name, max_tokens=limit, counts="calibrated", margin=round(start - 1, 4))


async def test_a_guess_refuses_no_fixed_part_and_a_report_does() -> None:
    """A ratio that no call has confirmed would refuse each call that could correct it."""
    timeline = await opened(MemoryStore(), policy=policy("balanced", 2_000))
    await timeline.append(prompt(20))
    context = await timeline.render(system=words(1_200))
    assert context.account.total > 1_800
    await timeline.record_model_call(Usage(input_tokens=1_500), model="m")
    assert (await timeline.render(system=words(1_200))).account.total == 1_500
    await timeline.record_model_call(Usage(input_tokens=1_950), model="m")
    with pytest.raises(BudgetImpossible):
        await timeline.render(system=words(1_200))


async def test_a_guess_refuses_no_context_and_a_report_does() -> None:
    """What cannot be made smaller is sent where the counter's own tokens leave room for it."""
    timeline = await opened(MemoryStore(), policy=policy("none", 2_000))
    await timeline.append(prompt(1_500))
    assert (await timeline.render()).account.total > 2_000
    await timeline.record_model_call(Usage(input_tokens=2_400), model="m")
    with pytest.raises(ContextOverflow):
        await timeline.render()


async def test_a_figure_that_is_of_no_request_refuses_nothing() -> None:
    """A gateway that adds up a session reports more than any model takes, and no call would come to correct it."""
    timeline = await opened(MemoryStore(), policy=policy("balanced", 2_000))
    for _ in range(3):
        await timeline.append(prompt(20))
        context = await timeline.render(system=words(200))
        assert context.account.total < 500
        await timeline.record_model_call(Usage(input_tokens=4_280_000), model="m")


async def test_above_the_limit_by_its_own_tokens_nothing_is_sent() -> None:
    """A guess on the safe side is never less than what the counter counts."""
    timeline = await opened(MemoryStore(), policy=policy("none", 2_000))
    await timeline.append(prompt(2_100))
    with pytest.raises(ContextOverflow):
        await timeline.render()


async def test_a_context_that_the_guess_alone_puts_above_the_trigger_is_made_smaller() -> None:
    """Where something can be covered, the first call already is within the limit however the provider counts."""
    timeline = await opened(MemoryStore(), policy=policy("balanced", 2_000), summarizer=Scribe())
    for _ in range(6):
        await timeline.append(*turn(180, asked=20))
    context = await timeline.render()
    assert context.account.sent <= 1_800
    assert "compacted" in [taken.kind for taken in context.decisions]


async def test_a_summarizer_is_asked_in_the_providers_tokens() -> None:
    """The cap of a summary and what counts it are in one unit, which the block's name says."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=policy("balanced", 2_000, 1.5), summarizer=scribe)
    for _ in range(6):
        await timeline.append(*turn(180, asked=20))
    await timeline.render()
    assert [ratio_of(request.counter) for request in scribe.asked] == [1.5] * len(scribe.asked) != []
    [summary] = [item for item in timeline.window.items if item.is_summary]
    assert summary.counter == "o200k_base*1.5"


@pytest.mark.parametrize("ratio", [1.1, 1.4, 1.9])
async def test_a_ratio_that_changes_hides_and_covers_nothing_by_itself(ratio: float) -> None:
    """Below the trigger as the provider counts, a measurement rewrites no prefix."""
    timeline = await opened(MemoryStore(), policy=policy("balanced", 20_000), summarizer=Scribe())
    for number in range(12):
        await timeline.append(prompt(500), answer(200, response_id=f"r{number}"))
        counted = sum(item.tokens for item in timeline.window.items)
        context = await timeline.render()
        assert not context.decisions
        plain = round(counted / context.counts.ratio)
        await timeline.record_model_call(Usage(input_tokens=round(plain * ratio)), model="m")
    assert (await timeline.calibration()).ratio == pytest.approx(ratio, abs=0.03)


@pytest.mark.parametrize("margin", [0.0, 0.25])
async def test_a_record_has_the_counters_own_tokens_whatever_the_margin_is(margin: float) -> None:
    """What a provider reports is compared with these, under whichever policy comes next."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=4_000, margin=margin))
    await timeline.append(*turn(400, asked=300))
    context = await timeline.render(system=words(100))
    [rendered] = await payloads_of(store, "context.rendered")
    own = sum(item.tokens for item in timeline.window.items) + 100
    assert abs(context.account.sent - own * (1 + margin)) <= 3
    assert abs(rendered.counted - own) <= 3
