"""The tokens of a window by kind of block, as the inspector draws them."""

from __future__ import annotations

import pytest

from tests.scenes import AT, COUNTER, answer, exchange, fold_of, prompt, small_policy
from timeline.events import NUMBERED, BlocksHidden, Replacement
from timeline.inspector.kinds import by_role
from timeline.planning.account import account_of, fixed_part


@pytest.mark.parametrize("reason", [NUMBERED, "cold"])
def test_the_kinds_are_those_of_the_account(reason: str) -> None:
    """An abridged result is a result, a hidden one a replacement."""
    fold = fold_of(prompt(5), *exchange("a", 40), answer(6))
    fold.apply(6, AT, BlocksHidden(reason=reason, blocks=(Replacement(version=4, text="1: one", tokens=3),)))
    policy = small_policy()
    account = account_of(fold.window.items, fixed_part(policy, COUNTER.count), policy)
    assert by_role(fold.window.items) == account.by_category
