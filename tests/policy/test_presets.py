"""The published designs as presets: their figures, their order and their triggers are those of their seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.scenes import COUNTER, call, prompt, result, turn, window_of, words
from timeline import policies
from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.planning.account import FixedPart, account_of, fixed_part, limits_of_policy
from timeline.planning.costs import costs
from timeline.policy.files import parse_policy
from timeline.policy.model import Hiding, Overdrawn, OverShare, OverThreshold, OverUtilization, Policy
from timeline.policy.presets import PRESETS
from timeline.policy.steps import (
    ClearToolOutputs,
    CollapseStages,
    CutPoint,
    DropOldest,
    KeepLast,
    KeepRatio,
    KeepTurns,
    Oldest,
    StripChitchat,
    Summarize,
    SummaryForm,
)

if TYPE_CHECKING:
    from timeline.policy.steps import Step

LITERAL: Final = ("priority_chain", "keep_last", "keep_ratio", "prune_then_summarize")
"""The presets that are other people's designs, to the letter."""


def due(policy: Policy, messages: int, fixed: FixedPart | None = None) -> bool:
    """Say whether a context with so many tokens of messages is compacted under a policy."""
    held = fixed or fixed_part(policy, COUNTER.count)
    _, trigger, _ = limits_of_policy(policy, held)
    return held.tokens + messages > trigger


def summarize(policy: Policy) -> Summarize:
    """Return the step of a policy that summarises."""
    [step] = [step for step in policy.steps if isinstance(step, Summarize)]
    return step


def kinds(steps: tuple[Step, ...]) -> list[str]:
    """Return the kinds of steps, in order."""
    return [step.kind for step in steps]


# Seed 000


@pytest.mark.shows("000-6", "000-8", "000-31", "000-33", "R-000-16")
def test_priority_chain_has_the_figures_of_seed_000() -> None:
    """A window of 128,000, characters over four, the oldest 20 messages under the label, a short summary."""
    policy = policies.priority_chain()
    assert (policy.max_tokens, policy.counter, policy.trigger) == (128_000, "chars4", OverShare(share=0.85))
    assert summarize(policy).cut == Oldest(messages=20)
    assert (summarize(policy).prompt, summarize(policy).language) == ("bullets", "Indonesian")
    assert policy.form == SummaryForm(role="system", heading="[RINGKASAN DISKUSI SEBELUMNYA]\n", record=False)
    assert policy.summary_tokens == 200


@pytest.mark.shows("000-11", "000-13", "000-37", "R-000-21")
def test_priority_chain_has_its_steps_in_the_order_of_seed_000() -> None:
    """Chitchat first; the brute prune to 50 messages, which the seed has at 80 %, is the last step of the chain."""
    policy = policies.priority_chain()
    assert policy.steps[0] == StripChitchat()
    assert policy.steps[-1] == DropOldest(keep_last=50)
    assert policy.steps[1] == CollapseStages(which="oldest", recent=3)
    assert policy.steps[3] == CollapseStages(which="recent", recent=3)
    assert kinds(policy.steps)[2::2] == ["summarize", "drop_oldest"]
    assert (policy.on_failure, policy.stop_at) == ("next_step", "trigger")


@pytest.mark.shows("000-9", "R-000-1")
def test_priority_chain_starts_strictly_above_85_percent() -> None:
    """108,800 of 128,000 tokens are left alone, one more is not."""
    policy = policies.priority_chain()
    assert not due(policy, 108_800)
    assert due(policy, 108_801)
    assert not due(policy, 100_800, FixedPart(system=8_000))


# Seed 001


@pytest.mark.shows("001-7", "001-27", "R-001-12")
def test_keep_last_has_the_figures_of_seed_001() -> None:
    """128,000 tokens with three reserves, 80 %, ten messages, summaries of at most 1,000 tokens by the assistant."""
    policy = policies.keep_last()
    assert (policy.max_tokens, policy.output_reserve, policy.safety_buffer) == (128_000, 0, 0)
    assert policy.trigger == OverThreshold(share=0.8, system_reserve=2_000, output_reserve=4_000, safety_buffer=5_000)
    assert (policy.counter, policy.message_tokens, policy.summary_tokens) == ("chars4", 2, 1_000)
    assert summarize(policy).cut == KeepLast(messages=10)
    assert summarize(policy).prompt == "sections"
    assert policy.form == SummaryForm(role="assistant", heading="## Session Summary (Round {round})", record=False)
    assert policy.on_failure == "unchanged"


@pytest.mark.shows("001-8", "001-13", "R-001-5")
def test_keep_last_is_due_at_93600() -> None:
    """The seed's own example: floor((128,000 - 2,000 - 4,000 - 5,000) * 0.80), compared with ``>=``."""
    policy = policies.keep_last()
    assert isinstance(policy.trigger, OverThreshold)
    assert policy.trigger.threshold(policy.max_tokens) == 93_600
    assert not due(policy, 93_599)
    assert due(policy, 93_600)


def test_keep_last_counts_the_system_prompt_among_the_messages_and_the_tools_in_the_reserve() -> None:
    """The seed's first message is the system prompt; for the tools it keeps 2,000 tokens free."""
    policy = policies.keep_last()
    assert due(policy, 92_600, FixedPart(system=1_000, tools=1_900))
    assert not due(policy, 92_599, FixedPart(system=1_000, tools=1_900))


def test_what_a_policy_keeps_free_is_no_second_reserve_under_keep_last() -> None:
    """An answer of 4,000 tokens that the limit holds back is in the design's 9,000 already."""
    policy = policies.keep_last(output_reserve=4_000)
    assert due(policy, 93_600, FixedPart(reserved=4_000))
    assert not due(policy, 93_599, FixedPart(reserved=4_000))


@pytest.mark.shows("001-3", "R-001-3")
def test_a_message_costs_two_tokens_under_keep_last() -> None:
    """A response is one message, each of its results another one."""
    blocks = [prompt(10), call("a", response_id="m"), call("b", response_id="m"), result("a", 10), result("b", 10)]
    items = window_of(*blocks).items
    extra = sum(costs(items, policies.keep_last(results_counted_as="text"))) - sum(item.tokens for item in items)
    assert extra == 4 * 2


@pytest.mark.shows("001-2", "R-001-2")
def test_what_has_no_text_counts_nothing() -> None:
    """An empty text, and a block that has none, are 0 tokens."""
    assert COUNTER.count("") == 0
    items = window_of(UserPrompt(text=""), AssistantCompletion()).items
    assert [item.tokens for item in items] == [0, 0]


# Seed 003


@pytest.mark.shows("003-10", "003-14", "R-003-1")
def test_keep_ratio_has_the_figures_of_seed_003() -> None:
    """200,000 tokens, 16,384 of them for the answer, 80 % utilization, 40 % of the messages."""
    policy = policies.keep_ratio()
    assert (policy.max_tokens, policy.output_reserve, policy.counter) == (200_000, 16_384, "chars4")
    assert policy.trigger == OverUtilization(share=0.8)
    assert summarize(policy).cut == KeepRatio(share=0.4)
    assert policy.form == SummaryForm(heading="[COMPACT SUMMARY]\n", answer="Understood.", record=False)
    assert policy.on_failure == "truncate"


@pytest.mark.shows("003-2")
def test_keep_ratio_is_due_above_a_utilization_of_80_percent() -> None:
    """The messages are held against what system prompt and answer leave of the limit."""
    policy = policies.keep_ratio()
    fixed = FixedPart(system=3_616, reserved=16_384)
    assert not due(policy, 144_000, fixed)
    assert due(policy, 144_001, fixed)


@pytest.mark.shows("003-12", "003-13", "003-15", "003-16", "003-17", "R-003-2")
def test_keep_ratio_counts_as_seed_003_does() -> None:
    """Four characters a token and four tokens a message; available may be negative; utilization leaves out reserves."""
    policy = policies.keep_ratio(max_tokens=20_000)
    items = window_of(*turn(1_000, asked=100)).items
    fixed = fixed_part(policy, COUNTER.count, system=words(500))
    account = account_of(items, fixed, policy)
    assert (account.limit, account.fixed.system, account.messages, account.fixed.reserved) == (
        20_000,
        500,
        1_108,
        16_384,
    )
    assert account.available == 20_000 - 500 - 1_108 - 16_384
    assert account.utilization == pytest.approx(1_108 / (20_000 - 500 - 16_384))
    assert account_of(items, fixed, policies.keep_ratio(max_tokens=17_000)).available == -992


# Seed 004


@pytest.mark.shows("004-9", "004-24", "004-66", "R-004-2", "R-004-10")
def test_prune_then_summarize_has_the_figures_of_seed_004() -> None:
    """40,000 protected, 20,000 at the least, two turns; 16,000 tokens, 4,096 of them for the answer, by default."""
    policy = policies.prune_then_summarize()
    assert (policy.max_tokens, policy.output_reserve) == (16_000, 4_096)
    assert policy.steps[0] == ClearToolOutputs(protect=40_000, minimum=20_000, keep_turns=2)
    assert summarize(policy).cut == KeepTurns(turns=2)
    assert (summarize(policy).prompt, policy.summary_tokens) == ("continuation", 2_000)


@pytest.mark.shows("004-1", "004-98")
def test_prune_then_summarize_has_its_steps_in_the_order_of_seed_004() -> None:
    """What is cheap comes before what is expensive."""
    assert kinds(policies.prune_then_summarize().steps) == ["clear_tool_outputs", "summarize"]


@pytest.mark.shows("004-4", "004-36", "004-77", "R-004-5")
def test_prune_then_summarize_is_due_when_nothing_is_available() -> None:
    """Available is the limit less the reserve less what is used; 0 is enough."""
    policy = policies.prune_then_summarize()
    assert policy.trigger == Overdrawn()
    assert not due(policy, 11_904)
    assert due(policy, 11_905)


@pytest.mark.shows("004-29", "004-31", "R-004-3")
def test_a_message_costs_four_tokens_and_a_step_four_more_under_prune_then_summarize() -> None:
    """A response begins a step; prompts and results do not."""
    blocks = [prompt(10), call("a", response_id="m"), result("a", 10)]
    items = window_of(*blocks).items
    extra = sum(costs(items, policies.prune_then_summarize())) - sum(item.tokens for item in items)
    assert extra == 3 * 4 + 4


# All of them


@pytest.mark.shows("000-10", "004-95", "R-000-4", "R-004-21")
def test_every_figure_of_a_preset_can_be_changed() -> None:
    """A literal preset is where one begins: limits, thresholds, steps and texts are parameters."""
    assert policies.priority_chain(max_tokens=1_000_000, trigger=0.7).trigger == OverShare(share=0.7)
    assert summarize(policies.keep_last(messages=4, max_tokens=8_192)).cut == KeepLast(messages=4)
    assert summarize(policies.keep_ratio(share=0.5)).cut == KeepRatio(share=0.5)
    policy = policies.prune_then_summarize(protect=1, minimum=2, keep_turns=3, form={"question": "Where are we?"})
    assert policy.steps[0] == ClearToolOutputs(protect=1, minimum=2, keep_turns=3)
    assert summarize(policy).cut == KeepTurns(turns=3)
    assert policy.form.question == "Where are we?"


@pytest.mark.shows("004-95", "R-004-21")
def test_a_table_changes_single_fields_of_a_presets_part() -> None:
    """As it does in a file: a form, a trigger, and a part that is the library's default; a value replaces the part."""
    policy = policies.prune_then_summarize(form={"question": "Where are we?"})
    assert policy.form == policies.prune_then_summarize().form.model_copy(update={"question": "Where are we?"})
    assert policy == parse_policy('preset = "prune_then_summarize"\nform = { question = "Where are we?" }')
    assert policies.keep_last(trigger={"share": 0.7}).trigger == OverThreshold(
        share=0.7, output_reserve=4_000, safety_buffer=5_000
    )
    assert policies.keep_last(trigger={"kind": "over_share", "share": 0.7}).trigger == OverShare(share=0.7)
    assert policies.keep_last(form=SummaryForm(heading="x")).form == SummaryForm(heading="x")
    assert policies.cut_point(hiding={"ttl": 60}).hiding == Hiding(ttl=60)
    design, warmer = (policies.by_name("clear-tool-uses", **changes) for changes in ({}, {"hiding": {"grace": 5}}))
    assert design.hiding is not None
    assert warmer.hiding == design.hiding.model_copy(update={"grace": 5}) != Hiding(grace=5)
    assert Policy.parse(policy.canonical()) == policy


@pytest.mark.parametrize("name", LITERAL)
def test_a_literal_design_compacts_once_and_down_to_its_own_trigger(name: str) -> None:
    """The published designs try once and stop as soon as they are not due; the digest's lines are ours."""
    policy = PRESETS[name]()
    assert (policy.name, policy.stop_at, policy.attempts) == (name, "trigger", 1)
    assert (policy.form.record, policy.digest_tokens, policy.hiding) == (False, 0, None)


@pytest.mark.shows("R-002-8")
def test_seed_002_as_first_shipped_is_a_matter_of_parameters() -> None:
    """0.7 of the budget kept; cold after 300 s less 10; ten turns visible, of which two are intact."""
    hiding = {"unit": "turns", "intact": 2, "files": 2, "old": 10, "ttl": 300, "grace": -10}
    policy = policies.cut_point(keep_recent=0.7, hiding=hiding)
    assert summarize(policy).cut == CutPoint(keep_recent=0.7)
    assert policy.hiding == Hiding(unit="turns", intact=2, files=2, old=10, ttl=300, grace=-10)
    assert Policy.parse(policy.canonical()) == policy


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_our_own_policies_alone_ask_for_a_fixed_part_that_is_cached_for_long(name: str) -> None:
    """The published designs know one time for everything (ADR 0023)."""
    own = {"gentle", "balanced", "economical"}
    assert PRESETS[name]().cache_points.kept_long == ("fixed_part" if name in own else "nothing")
