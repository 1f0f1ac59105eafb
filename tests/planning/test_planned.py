from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import COUNTER, answer, call, fold_of, grow, prompt, result, words
from timeline import policies
from timeline.planning.account import FixedPart, account_of
from timeline.planning.planned import PlannedSteps
from timeline.policy.steps import KeepLast, KeepTurns, Summarize

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.fold import Fold

POLICY: Final = policies.keep_last(min_progress=0, min_progress_tokens=1)
OTHER: Final = policies.keep_last(min_progress=0, min_progress_tokens=2, message_tokens=9)
STEPS: Final = (Summarize(cut=KeepLast(messages=2)), Summarize(cut=KeepTurns(turns=1)))


def turn(number: int) -> list[Block]:
    """Return a turn with one call."""
    return [prompt(text=f"Task {number}"), call(f"c{number}"), result(f"c{number}", text=words(400)), answer()]


def log() -> Fold:
    """Return the fold of three turns."""
    return fold_of(*turn(1), *turn(2), *turn(3))


def test_a_step_that_was_planned_is_not_planned_again() -> None:
    """A pass asks whether it would be refused, and then for its plan."""
    planned, window = PlannedSteps(), log().window
    first = planned.plan(STEPS[0], window, FixedPart(), POLICY, COUNTER)
    assert planned.plan(STEPS[1], window, FixedPart(), POLICY, COUNTER) != first
    assert planned.plan(STEPS[0], window, FixedPart(), POLICY, COUNTER) is first


@given(
    st.lists(
        st.tuples(
            st.sampled_from(STEPS), st.booleans(), st.sampled_from([0, 7]), st.sampled_from([POLICY, OTHER, None])
        ),
        max_size=8,
    )
)
def test_what_is_remembered_never_shows(asked: list[tuple[Summarize, bool, int, object]]) -> None:
    """Whatever was planned before on other windows, with another fixed part, policy or limit."""
    planned, fold = PlannedSteps(), log()
    for step, grows, tokens, policy in asked:
        if grows:
            grow(fold, *turn(fold.version))
        window, fixed = fold.window, FixedPart(system=tokens)
        under, most = (OTHER, 1) if policy is OTHER else (POLICY, 50 if policy is None else None)
        plan = planned.plan(step, window, fixed, under, COUNTER, most=most)
        assert plan == PlannedSteps().plan(step, window, fixed, under, COUNTER, most=most)
        account = planned.account(window, fixed, under, most=most)
        assert account == account_of(window.items, fixed, under, most=most)
