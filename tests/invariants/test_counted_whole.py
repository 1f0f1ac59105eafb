"""A policy that counts abridged results whole decides what it decides where nothing is abridged, and sends less."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.reading import STEPS, Agent
from tests.scenes import AT, COUNTER
from timeline import Timeline, policies
from timeline.blocks import UserPrompt
from timeline.errors import ContextOverflow
from timeline.planning.account import FixedPart, account_of
from timeline.planning.clear_tool_outputs import plan_clear
from timeline.planning.costs import as_counted, costs, visible_tokens
from timeline.planning.hide import plan_hide
from timeline.planning.planned import PlannedSteps
from timeline.planning.plans import Plan
from timeline.policy.model import Hiding, LineNumbers, Repeats
from timeline.policy.steps import ClearToolOutputs, CoveringStep
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.policy.model import Policy

HIDING: Final = Hiding(intact=1, old=1, files=1, minimum=0, pressure_minimum=0)
COUNTED: Final[dict[str, Any]] = {
    "counter": "chars4",
    "repeats": Repeats(lines=1, characters=1, minimum=1),
    "line_numbers": LineNumbers(every=5, minimum=1),
    "abridged_counted_as": "whole",
}
POLICIES: Final[list[Policy]] = [
    policies.cut_point(max_tokens=3_000, hiding=HIDING, **COUNTED),
    policies.cut_point(
        name="previewing", max_tokens=1_500, margin=0.1, min_progress=0.0, preview_tokens=150, **COUNTED
    ),
    policies.keep_last(max_tokens=4_000, **COUNTED),
    policies.keep_ratio(max_tokens=4_000, output_reserve=0, **COUNTED),
    policies.priority_chain(max_tokens=4_000, **COUNTED),
    policies.prune_then_summarize(max_tokens=5_000, output_reserve=500, **COUNTED),
]


def plain(window: Window, policy: Policy) -> tuple[Window, Policy]:
    """Return a window in which nothing is abridged, and a policy that counts what is shown."""
    whole = replace(window, items=tuple(as_counted(item, policy) for item in window.items))
    return whole, policy.model_copy(update={"abridged_counted_as": "shown"})


def unlike(plan: object) -> object:
    """Return a plan without the account, which says how much of it is sent."""
    return replace(plan, account=account_of((), FixedPart(), policies.none())) if isinstance(plan, Plan) else plan


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(steps=st.lists(STEPS, min_size=2, max_size=14))
async def test_every_plan_is_the_one_for_whole_results(policy: Policy, steps: list[tuple[Any, ...]]) -> None:
    """What is hidden, covered, carried and previewed, and what a summarizer is given; and the account by which."""
    store = MemoryStore()
    agent = Agent(store, await Timeline.open(store, "c", policy=policy, now=AT))
    await agent.timeline.append(UserPrompt(text="Read the files."), now=AT)
    for step in steps:
        with suppress(ContextOverflow):  # one file is larger than the limit
            await agent.take(step)
        window = agent.timeline.window
        for share in (0.02, 0.8):
            check(window, policy, FixedPart(system=int(share * policy.max_tokens)))


def check(window: Window, policy: Policy, fixed: FixedPart) -> None:
    """Draw up the account and plan every step, for a window and for the one in which nothing is abridged."""
    whole, counts_shown = plain(window, policy)
    account, of_whole = account_of(window.items, fixed, policy), account_of(whole.items, fixed, counts_shown)
    assert (account.total, account.by_category) == (of_whole.total, of_whole.by_category)
    assert account.sent == account_of(window.items, fixed, counts_shown).sent
    assert costs(window.items, policy) == costs(whole.items, counts_shown)
    assert visible_tokens(window, policy) == whole.tokens
    both = ((window, policy), (whole, counts_shown))
    for taken in policy.steps:
        if isinstance(taken, CoveringStep):
            plan, whole_plan = (PlannedSteps().plan(taken, there, fixed, by, COUNTER) for there, by in both)
            assert unlike(plan) == unlike(whole_plan)
        elif isinstance(taken, ClearToolOutputs):
            clear = taken.model_copy(update={"protect": 10, "minimum": 10, "keep_turns": 0})
            cleared, whole_cleared = (plan_clear(there, by, COUNTER, clear) for there, by in both)
            assert cleared == whole_cleared
    hidden, whole_hidden = (plan_hide(there, by, HIDING, COUNTER, least=1) for there, by in both)
    assert hidden == whole_hidden
