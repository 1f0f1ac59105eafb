"""Costs and the cache of accounts: what the wire adds to an item, and what later items change of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenes import (
    AT,
    Scribe,
    apply,
    call,
    compact_fold,
    exchange,
    fold_of,
    grow,
    opened,
    prompt,
    result,
    small_policy,
    turn,
)
from tests.wire.entries import GOOGLE_FILE, GOOGLE_FOUND, SERVER_RESULT
from timeline.blocks import CustomBlock
from timeline.content.media_tokens import with_media
from timeline.events import BlockAppended, BlocksHidden, Replacement, event_id
from timeline.log.protocol import Draft
from timeline.planning.account import AccountCache, FixedPart, account_of
from timeline.planning.costs import INTERRUPTED_TOKENS, LOOSE_TOKENS, Costs, costs, costs_of
from timeline.store.memory import MemoryStore

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


@pytest.mark.parametrize("data", [GOOGLE_FILE, GOOGLE_FOUND, SERVER_RESULT])
def test_a_part_of_a_server_that_an_earlier_release_counted_as_nothing_costs_what_it_is_sent_with(data: Any) -> None:
    """It was in no request then, and the log keeps the count of its append."""
    block = CustomBlock(type="assistant.part", author="assistant", data=data)
    fold = fold_of(prompt(5))
    [addressed] = fold.address([(block, AT)])
    apply(fold, 2, BlockAppended(block=addressed, tokens=0, counter="chars4"))
    items = fold.window.items
    assert costs(items, POLICY) == [5, with_media(block, 0)]
    apply(fold, 3, BlocksHidden(mode="replace", reason="manual", blocks=(Replacement(version=2, text="x", tokens=1),)))
    assert costs(fold.window.items, POLICY) == [5, 1]


async def test_a_log_of_an_earlier_release_keeps_to_the_limit_with_the_pictures_that_its_model_drew() -> None:
    """Each of them is sent now, and none was counted."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=20_000, keep_recent_tokens=100), summarizer=Scribe())
    await timeline.append(*turn(100))
    drawn = CustomBlock(type="assistant.part", author="assistant", data=GOOGLE_FILE)
    for _ in range(20):
        await timeline.extend([Draft(event_id(AT), None, drawn, tokens=0)])
        await timeline.append(*turn(100))
    context = await timeline.render(now=AT)
    assert [taken.kind for taken in context.decisions] == ["compacted"]
    sent = sum(with_media(drawn, 0) for block in context.blocks if block.type == "assistant.part")
    assert sent <= context.account.messages <= context.account.limit
    assert (await timeline.verify()).ok


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
