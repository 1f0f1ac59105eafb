"""Costs and the cache of accounts: what the wire adds to an item, and what later items change of it."""

from __future__ import annotations

from tests.scenes import apply, call, compact_fold, exchange, fold_of, grow, prompt, result, small_policy, turn
from timeline.events import BlocksHidden, Replacement
from timeline.planning.account import (
    INTERRUPTED_TOKENS,
    LOOSE_TOKENS,
    AccountCache,
    Costs,
    FixedPart,
    account_of,
    costs,
    costs_of,
)

POLICY = small_policy()


def test_a_call_without_a_result_costs_its_stand_in_and_a_result_without_a_call_its_label() -> None:
    """That is what the wire sends with them."""
    items = fold_of(prompt(5), call("a"), result("lost", 5)).window.items
    assert costs(items, POLICY) == [5, items[1].tokens + INTERRUPTED_TOKENS, 5 + LOOSE_TOKENS]


def test_a_call_goes_with_its_omitted_result() -> None:
    """Neither is sent, so neither costs anything."""
    fold = fold_of(prompt(5), *exchange("a"))
    apply(fold, 5, BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=4),)))
    assert costs(fold.window.items, POLICY) == [5, 0, 0]


def test_an_answer_that_is_taken_in_later_takes_the_stand_in_back() -> None:
    """The figures are those of all items at once, in whatever pieces they came."""
    fold = fold_of(prompt(5), *exchange("a"), call("b"), call("c"), result("c", 5), result("b", 5))
    apply(fold, 9, BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=7),)))
    items = fold.window.items
    for policy in (POLICY, small_policy(margin=0.1), small_policy(message_tokens=2, response_tokens=3)):
        for pieces in range(1, len(items)):
            carried_on = Costs(policy)
            for start in range(0, len(items), pieces):
                carried_on.take(items[start : start + pieces])
            assert carried_on.tokens == costs(items, policy)
            assert sum(carried_on.by_category.values()) == sum(carried_on.tokens)


def test_an_account_cache_costs_only_what_is_new_in_a_window_that_goes_on() -> None:
    """The first account takes in all of it, the next one the blocks behind."""
    fold, accounts = fold_of(*turn(), *exchange("a")), AccountCache()
    before = accounts.account(fold.window.items, FixedPart(), POLICY)
    kept = accounts.costs(fold.window.items, POLICY)
    grow(fold, *turn())
    after = accounts.account(fold.window.items, FixedPart(), POLICY)
    assert accounts.costs(fold.window.items, POLICY) is kept
    assert after.messages == before.messages + 10
    assert after == account_of(fold.window.items, FixedPart(), POLICY)


def test_an_account_cache_keeps_the_costs_of_the_logs_own_window_while_a_dry_run_decides() -> None:
    """Each dry run hides and compacts anew, from a window that has a few blocks more than the last time."""
    fold, accounts = fold_of(*turn(), *exchange("a")), AccountCache()
    own = accounts.costs(fold.window.items, POLICY)
    for _ in range(2):
        dry = fold.copy()
        apply(dry, dry.version + 1, BlocksHidden(reason="ttl", blocks=(Replacement(version=3, text="x", tokens=1),)))
        hidden = dry.window.items
        assert accounts.account(hidden, FixedPart(), POLICY) == account_of(hidden, FixedPart(), POLICY)
        grow(fold, *turn())
        accounts.begin(fold.window.items, POLICY)
        assert accounts.costs(fold.window.items, POLICY) is own
        assert accounts.unknown(hidden, POLICY) == len(hidden)
    assert own.tokens == costs(fold.window.items, POLICY)


def test_replacements_free_what_the_account_is_less_with_them() -> None:
    """Each changes its own block alone, in whatever way the policy counts."""
    fold = fold_of(*turn(), *exchange("a"), call("b"), call("c"), result("c", 5), result("lost", 7), *turn())
    apply(fold, fold.version + 1, BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=4),)))
    items = fold.window.items
    for policy in (POLICY, small_policy(margin=0.1), small_policy(message_tokens=2, response_tokens=3)):
        known = costs_of(items, policy)
        for chosen in (items[:1], items[2:5], items):
            short = {item.version: Replacement(version=item.version, text="x", tokens=1) for item in chosen}
            made = {item.version: item._replace(replacement=short[item.version]) for item in chosen}
            after = costs([made.get(item.version, item) for item in items], policy)
            assert known.copy().freed([(item, made[item.version]) for item in chosen]) == sum(known.tokens) - sum(after)


def test_an_account_cache_begins_anew_where_the_window_does_or_the_policy_is_another() -> None:
    """A hide, a summary, an earlier window and another margin are each costed by themselves."""
    fold, accounts = fold_of(*turn(), *turn(), *exchange("a")), AccountCache()
    earlier = fold.window.items
    accounts.account(earlier, FixedPart(), POLICY)
    apply(fold, 8, BlocksHidden(reason="ttl", blocks=(Replacement(version=3, text="x", tokens=1),)))
    hidden = fold.window.items
    compact_fold(fold, 5)
    for items in (hidden, fold.window.items, earlier, earlier[:3]):
        for policy in (POLICY, small_policy(margin=0.1)):
            fixed = FixedPart(system=3)
            assert accounts.account(items, fixed, policy) == account_of(items, fixed, policy)
