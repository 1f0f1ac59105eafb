"""Accounts: what is carried on from the window before is what all items at once come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.places import new_store
from tests.invariants.playing import AT, play, run, search
from tests.invariants.strategies import LOGS, Step, small
from timeline.planning.account import AccountCache, FixedPart
from timeline.planning.costs import CATEGORIES, INTERRUPTED_TOKENS, LOOSE_TOKENS, costs, scaled
from timeline.planning.messages import messages
from timeline.projection.cache_points import ShownEntries, cache_points
from timeline.projection.project import Projector
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item
    from timeline.policy.model import Policy

PRICED: Final = st.builds(
    small,
    st.sampled_from([1_000, 4_000]),
    margin=st.sampled_from([0.0, 0.1]),
    message_tokens=st.sampled_from([0, 2]),
    response_tokens=st.sampled_from([0, 3]),
)
"""Policies that differ in what they add to a count."""


def reference_costs(items: Sequence[Item], policy: Policy) -> list[int]:
    """Return what each item costs, told from all of them at once."""
    answered = {item.answers for item in items}
    gone = {item.answers for item in items if item.omitted}
    tokens: list[int] = []
    for item in items:
        interrupted = item.block.type == "react.tool.call" and item.version not in answered
        loose = item.block.type == "react.tool.result" and item.answers is None
        own = 0 if item.version in gone else item.shown_tokens
        added = 0 if item.omitted else INTERRUPTED_TOKENS * interrupted + LOOSE_TOKENS * loose
        tokens.append(scaled(own + added, policy))
    for message in messages(items):
        tokens[message.indices[0]] += policy.message_tokens + policy.response_tokens * (message.role == "assistant")
    return tokens


def reference_categories(items: Sequence[Item], tokens: Sequence[int]) -> dict[str, int]:
    """Return the sums by kind of block, in the order in which the kinds come."""
    kinds = ["hidden" if item.replacement else CATEGORIES.get(item.block.type, "other") for item in items]
    return {kind: sum(n for n, k in zip(tokens, kinds, strict=True) if k == kind) for kind in dict.fromkeys(kinds)}


@search(40)
@given(LOGS, PRICED, st.lists(st.booleans(), min_size=1, max_size=7))
def test_an_account_that_is_carried_on_is_that_of_the_whole_window(
    steps: list[Step], policy: Policy, looks: list[bool]
) -> None:
    """Whatever is appended, hidden, covered or taken back since, and whenever somebody looked."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=policy, now=AT)
        accounts, now = AccountCache(), AT
        for number, step in enumerate(steps):
            now = await play(timeline, store, [step], now)
            if not looks[number % len(looks)]:
                continue
            items = timeline.window.items
            account = accounts.account(items, FixedPart(system=7), policy)
            expected = reference_costs(items, policy)
            assert costs(items, policy) == expected
            assert [*account.by_category.items()] == [*reference_categories(items, expected).items()]
            assert account.messages == sum(expected)

    run(story())


@search(25)
@given(LOGS)
def test_a_projection_that_is_carried_on_has_the_cache_points_of_the_whole_one(steps: list[Step]) -> None:
    """Where a projector goes on from its last window, the points stand where a new one places them."""

    async def story() -> None:
        store, policy = await new_store(), small()
        timeline = await Timeline.open(store, "c", policy=policy, now=AT)
        projector, now = Projector(), AT
        for step in steps:
            now = await play(timeline, store, [step], now)
            carried_on = projector.project(timeline.window, policy.cache_points)
            entries, shown = Projector().entries(timeline.window)
            assert carried_on.entries == tuple(entries)
            assert carried_on.cache_points == cache_points(ShownEntries(shown), policy.cache_points)
            ends = {item.response: place for place, item in enumerate(shown) if item.response}
            assert ShownEntries(shown).round_ends == sorted(ends.values())

    run(story())
