"""The budget: what a context costs, and what it may cost (design, section 6, Budget)."""

from __future__ import annotations

import math

import pytest

from tests.scenes import apply, call, compact_fold, fold_of, prompt, result, small_policy, turn, window_of
from timeline.blocks import Attachment, Note, Reasoning, TurnHeader
from timeline.events import BlocksHidden, Replacement
from timeline.fold.reported import NO_REPORTS
from timeline.planning.account import (
    Account,
    FixedPart,
    account_of,
    certain_total,
    keep_recent,
    least_progress,
    preview_cap,
)
from timeline.planning.costs import scaled
from timeline.policy.steps import CutPoint


@pytest.mark.shows("000-7", "001-4", "001-6", "004-25", "004-28", "004-32", "004-38", "R-000-5")
def test_the_account_sums_what_is_shown_by_category() -> None:
    """Prompts, completions, reasoning, calls, results, summaries, hidden and other."""
    fold = fold_of(
        *turn(10),
        TurnHeader(text="abcd" * 2),
        prompt(5),
        Attachment(text="abcd" * 3),
        Reasoning(text="abcd" * 4),
        call("a", "tool"),
        result("a", 100),
        Note(text="abcd" * 6),
        call("b", "tool"),
        result("b", 100),
    )
    compact_fold(fold, 3, tokens=7)
    apply(fold, fold.version + 1, BlocksHidden(reason="ttl", blocks=(Replacement(version=12, text="x", tokens=2),)))
    account = account_of(fold.window.items, FixedPart(), small_policy())
    assert account.by_category == {
        "summaries": 7,
        "prompts": 2 + 5 + 3,
        "reasoning": 4,
        "calls": 2 + 2,
        "results": 100,
        "other": 10,
        "hidden": 2,
    }
    assert account.messages == sum(account.by_category.values()) == fold.window.tokens


@pytest.mark.shows("004-34")
def test_reserves_count_towards_the_trigger_and_not_towards_the_request() -> None:
    """What is kept free for the answer is held against the trigger; the request itself does not hold it."""
    account = account_of(
        window_of(prompt(100)).items, FixedPart(system=10, tools=20, ephemeral=3, reserved=50), small_policy()
    )
    assert (account.total, account.sent, account.available) == (183, 133, 80_000 - 183)


@pytest.mark.shows("003-15", "004-34", "R-003-3")
def test_available_may_be_negative() -> None:
    """A context above the limit says by how much."""
    account = Account(limit=1_000, trigger=900, target=700, fixed=FixedPart(system=200), messages=900)
    assert account.available == -100
    assert account.utilization == 900 / 800


def test_utilization_is_infinite_without_room() -> None:
    """No division by nothing."""
    account = Account(limit=1_000, trigger=900, target=700, fixed=FixedPart(system=1_000), messages=1)
    assert account.utilization == math.inf


@pytest.mark.shows("002-3")
@pytest.mark.parametrize(("messages", "over"), [(71_900, False), (71_990, False), (71_991, True)])
def test_compaction_is_due_strictly_above_the_trigger(messages: int, over: bool) -> None:  # noqa: FBT001 - a table
    """``system + blocks > 0.9 * max_tokens`` (seed 002)."""
    account = account_of(window_of(prompt(messages)).items, FixedPart(system=10), small_policy())
    assert account.over_trigger is over


def test_a_calibrated_policy_counts_as_the_provider_does() -> None:
    """The measured ratio is of the counter's tokens, in place of any margin, and never below 0.7 or above 2."""
    assert scaled(1_000, small_policy().calibrated(1.25)) == 1_250
    assert scaled(1_000, small_policy().calibrated(0.8)) == 800
    assert scaled(1_000, small_policy(margin=0.1).calibrated(1.2)) == 1_200
    assert small_policy().calibrated(2.5).margin == 1.0
    assert small_policy().calibrated(0.6).margin == -0.3


def test_calibrated_counts_have_no_margin_on_top() -> None:
    """They are the provider's tokens already; the margin is the ratio that they begin with."""
    policy = small_policy(counts="calibrated", margin=0.66)
    assert (scaled(1_000, policy), policy.first_ratio) == (1_000, 1.66)
    assert small_policy(margin=0.6).first_ratio is None


@pytest.mark.parametrize(
    ("margin", "calls", "total"),
    [(0.25, 0, 50 + 88), (0.25, 1, 160), (0.0, 0, 160), (-0.2, 0, 160)],
    ids=["guess", "reported", "no-guess", "less-than-counted"],
)
def test_a_refusal_goes_by_the_counters_own_tokens_where_a_guess_is_above_them(
    margin: float, calls: int, total: int
) -> None:
    """The reserve is no guess. Of 110 tokens that a guess made a quarter more, the counter counted 88."""
    account = Account(limit=1_000, trigger=900, target=700, fixed=FixedPart(system=10, reserved=50), messages=100)
    policy = small_policy(counts="calibrated", margin=margin)
    assert certain_total(account, policy, NO_REPORTS._replace(calls=calls)) == total


@pytest.mark.shows("004-109", "R-004-4")
def test_the_margin_is_added_to_every_count_and_rounded_up() -> None:
    """A policy for a model with another tokenizer adds its tenth to each block."""
    policy = small_policy(margin=0.1)
    assert [scaled(n, policy) for n in (0, 1, 10, 15)] == [0, 2, 11, 17]
    assert account_of(window_of(*turn(15, asked=10)).items, FixedPart(), policy).messages == 11 + 17
    assert scaled(15, small_policy()) == 15


def test_the_keep_is_a_fifth_of_what_the_fixed_part_leaves() -> None:
    """0.2 of (max_tokens - fixed part), or the tokens that the policy names."""
    account = account_of((), FixedPart(system=9_000, tools=1_000), small_policy())
    assert keep_recent(CutPoint(), account) == 14_000
    assert keep_recent(CutPoint(keep_recent_tokens=5_000), account) == 5_000


def test_the_least_progress_is_a_tenth_or_256() -> None:
    """The larger of both (design, invariant 3)."""
    policy = small_policy()
    assert [least_progress(policy, n) for n in (0, 2_560, 2_561, 10_001)] == [256, 256, 257, 1_001]


def test_the_facts_are_flat_figures() -> None:
    """Errors and reports show the account as one mapping of numbers."""
    facts = account_of(window_of(prompt(100)).items, FixedPart(system=10, reserved=5), small_policy()).facts()
    assert facts == {
        "limit": 80_000,
        "trigger": 72_000,
        "target": 56_000,
        "total": 115,
        "fixed": 15,
        "system": 10,
        "tools": 0,
        "memory_digest": 0,
        "stage_data": 0,
        "ephemeral": 0,
        "reserved": 5,
        "messages": 100,
        "available": 79_885,
        "prompts": 100,
    }


def test_a_preview_is_a_twentieth_of_a_small_limit() -> None:
    """The policy's 400 tokens, less where the limit is small, and never under 64."""
    assert preview_cap(small_policy(), 80_000) == 400
    assert preview_cap(small_policy(preview_tokens=100), 80_000) == 100
    assert [preview_cap(small_policy(), n) for n in (8_000, 4_000, 1_000)] == [400, 200, 64]
