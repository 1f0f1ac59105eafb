"""A conversation whose blocks were counted by one counter, under a policy that counts by another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import AT, after, call, prompt, result, small_policy
from timeline import Timeline, open_store
from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.events import BlocksHidden
from timeline.log.stored import StoredLog
from timeline.policy.model import Hiding
from timeline.ports import SystemClock
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext

DIGITS = " ".join("0123456789" * 40)
"""799 characters: a digit is a token of each vocabulary, so that a quarter of the characters is half of them."""
ROUNDS = 12


@pytest.fixture
async def store() -> AsyncIterator[EventStore]:
    """Give an empty store."""
    async with open_store("memory://") as opened:
        yield opened


def exact(**changes: Any) -> Policy:
    """Return a policy that counts by o200k_base."""
    return small_policy(counter="o200k_base", **changes)


async def record(store: EventStore, policy: Policy, *, rounds: int = ROUNDS, compacts: bool = False) -> Timeline:
    """Record a conversation of long rows of digits under a policy."""
    timeline = await Timeline.open(store, "work", policy=policy, now=AT)
    await timeline.append(UserPrompt(text="Add up the digits."), now=AT)
    for number in range(rounds):
        id_ = f"add_{number}"
        asked = call(id_, arguments={"digits": number})
        await timeline.append(asked, result(id_).model_copy(update={"text": DIGITS}), now=after(number))
        if compacts:
            await timeline.render(now=after(number))
    return timeline


def counted(timeline: Timeline) -> list[int]:
    """Return the tokens of each block of the window, counted anew by its policy's counter."""
    counter = timeline.counter
    return [counter.count(item.block.countable()) for item in timeline.window.items]


def compacted(context: RenderedContext) -> bool:
    """Return whether a render wrote a summary."""
    return any(taken.kind == "compacted" for taken in context.decisions)


async def test_the_account_of_a_render_is_in_the_tokens_of_its_policy(store: EventStore) -> None:
    """Whatever the blocks were counted by when they were appended."""
    await record(store, small_policy())
    timeline = await Timeline.open(store, "work", policy=exact())
    context = await timeline.render(now=after(99))
    assert [block.shown_tokens for block in context.blocks] == counted(timeline)
    assert context.account.messages == sum(counted(timeline))


async def test_a_context_that_is_too_large_by_the_policys_counter_is_compacted(store: EventStore) -> None:
    """By the stored quarters it would fit, and the model would refuse it."""
    await record(store, small_policy())
    stored = sum(item.tokens for item in (await Timeline.open(store, "work", policy=small_policy())).window.items)
    limit = int(stored * 1.4)
    timeline = await Timeline.open(store, "work", policy=exact(max_tokens=limit))
    assert stored < 0.8 * limit < sum(counted(timeline))
    context = await timeline.render(now=after(99))
    assert compacted(context)
    assert sum(counted(timeline)) <= limit


async def test_a_context_that_fits_by_the_policys_counter_is_left_alone(store: EventStore) -> None:
    """By the stored tokens it would be compacted far too early."""
    timeline = await record(store, exact())
    limit = int(sum(counted(timeline)) * 0.7)
    again = await Timeline.open(store, "work", policy=small_policy(max_tokens=limit))
    assert not compacted(await again.render(now=after(99)))


async def test_summaries_and_replacements_are_counted_anew_too(store: EventStore) -> None:
    """A summary with the words around it, a replaced call with its name and arguments."""
    hiding = Hiding(intact=2, old=3, minimum=0)
    policy = small_policy(max_tokens=1_500, hiding=hiding)
    timeline = await record(store, policy, compacts=True)
    await timeline.hide(timeline.window.items[-1].block.path, now=after(50))
    await timeline.render(now=after(4_000))
    shown = {item.version: item for item in timeline.window.items}
    assert any(item.is_summary for item in shown.values())
    assert any(item.replacement for item in shown.values())
    other = await Timeline.open(store, "work", policy=exact(max_tokens=1_500, hiding=hiding))
    exactly = get_counter("o200k_base")
    for item in other.window.items:
        if item.replacement is not None and item.replacement.text:
            assert item.replacement.tokens == exactly.count(item.replacement.text)
        assert item.tokens == exactly.count(item.block.countable())
    assert [item.version for item in other.window.items] == list(shown)


async def test_use_policy_counts_the_window_anew_and_back_again(store: EventStore) -> None:
    """The figures follow the policy in force, in this handle and in each other one."""
    timeline = await record(store, small_policy())
    follower = await Timeline.open(store, "work")
    before = [item.tokens for item in timeline.window.items]
    await timeline.use_policy(exact(), now=after(50))
    await follower.catch_up()
    assert [item.tokens for item in timeline.window.items] == counted(timeline) != before
    assert [item.tokens for item in follower.window.items] == counted(timeline)
    await timeline.use_policy(small_policy(), now=after(51))
    assert [item.tokens for item in timeline.window.items] == before


async def test_what_another_policys_writer_appends_is_counted_when_it_is_followed(store: EventStore) -> None:
    """Two handles with different counters: each has its own figures of the same blocks."""
    quarters = await record(store, small_policy(), rounds=1)
    tokens = await Timeline.open(store, "work", policy=exact())
    for number, timeline in enumerate((tokens, quarters, tokens)):
        await timeline.append(AssistantCompletion(text=DIGITS), now=after(60 + number))
    for timeline in (tokens, quarters):
        await timeline.catch_up()
        assert [item.tokens for item in timeline.window.items] == counted(timeline)


async def test_an_undone_compaction_comes_back_in_the_policys_tokens(store: EventStore) -> None:
    """The fold is made anew from the history, and counts as before."""
    await record(store, small_policy())
    timeline = await Timeline.open(store, "work", policy=exact(max_tokens=3_000))
    assert compacted(await timeline.render(now=after(99)))
    await timeline.undo_compaction(now=after(100))
    assert [item.tokens for item in timeline.window.items] == counted(timeline)


async def test_contexts_and_decisions_under_two_counters_are_verified(store: EventStore) -> None:
    """What was sent does not depend on the figures that a later reader has of it."""
    timeline = await record(store, small_policy(max_tokens=1_500), compacts=True)
    other = await Timeline.open(store, "work", policy=exact(max_tokens=1_500))
    for number in range(5):
        await other.append(prompt(30), AssistantCompletion(text=DIGITS), now=after(200 + number))
        await other.render(now=after(200 + number))
    report = await timeline.verify()
    assert report.ok, report.problems
    assert report.renders > ROUNDS


async def test_a_snapshot_keeps_the_counts_of_the_log(store: EventStore) -> None:
    """A handle that counts otherwise takes the snapshots, too; the next reader's figures do not depend on it."""
    await record(store, small_policy())
    timeline = await Timeline.open(store, "work", policy=exact(max_tokens=3_000))
    assert compacted(await timeline.render(now=after(99)))  # takes a snapshot with its compaction
    again = await Timeline.open(store, "work", policy=small_policy(max_tokens=3_000))
    assert [item.tokens for item in again.window.items] == counted(again)
    stored = (await StoredLog.load(store, "work", SystemClock())).fold.window
    assert {item.counter for item in stored.items} == {"chars4", "o200k_base"}


async def test_a_hide_names_the_counter_of_its_replacements(store: EventStore) -> None:
    """So that a reader under another policy knows that they are not its own."""
    timeline = await record(store, exact())
    await timeline.hide(timeline.window.items[-1].block.path, now=after(50))
    *_, hidden = [e.payload async for e in store.read("work", types=["blocks.hidden"])]
    assert isinstance(hidden, BlocksHidden)
    assert hidden.counter == "o200k_base"


class Tally:
    """Counts words, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def name(self) -> str:
        """A name of its own."""
        return "tally"

    def count(self, text: str) -> int:
        """Count one text."""
        self.asked.append(text)
        return len(text.split())

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count many texts."""
        return [self.count(text) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """Return the first words."""
        return " ".join(text.split()[:tokens])


async def test_only_the_window_is_counted_and_once(store: EventStore) -> None:
    """Opening costs by the window, however long the history is; renders count nothing a second time."""
    timeline = await record(store, small_policy(max_tokens=1_500), rounds=40, compacts=True)
    window = {item.block.countable() for item in timeline.window.items}
    tally = Tally()
    other = await Timeline.open(store, "work", policy=small_policy(max_tokens=50_000), counter=tally)
    assert len(other.window.items) == len(timeline.window.items) < 40
    assert set(tally.asked) <= window
    tally.asked.clear()
    await other.render(now=after(5_000), record=False)
    await other.append(prompt(3), now=after(5_001))
    await other.render(now=after(5_002), record=False)
    assert not window.intersection(tally.asked)
