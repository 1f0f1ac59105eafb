"""The result objects of seed 004: what a render did, as flat figures."""

from __future__ import annotations

import pytest

from tests.scenes import AT, Scribe, answer, call, opened, prompt, result
from timeline import policies
from timeline.planning.account import Account, FixedPart
from timeline.projection.reports import PruneResult, overflow_check
from timeline.store.memory import MemoryStore


@pytest.mark.shows("004-20", "004-22", "004-49", "R-004-8", "R-004-9")
async def test_pruning_that_is_enough_is_all_that_is_done() -> None:
    """Before and after, the outputs that were cleared and the tools that they were of."""
    policy = policies.prune_then_summarize(max_tokens=16_000, counter="chars4", protect=2_000, minimum=1_000)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    for number in range(12):
        tool = "read" if number % 2 else "bash"
        await timeline.append(prompt(), call(f"c{number}", tool), result(f"c{number}", 1_000, name=tool), answer())
    context = await timeline.render(now=AT)
    done = context.preparation
    assert (done.was_pruned, done.was_compacted) == (True, False)
    assert done.tokens.before > done.tokens.after_prune == done.tokens.after_compact == done.tokens.final
    assert done.pruned_outputs == context.pruned.outputs_pruned == 8
    assert done.removed_tools == context.pruned.pruned_tools == ("read", "bash")  # the newest cleared is of "read"
    assert context.pruned.tokens_saved == done.tokens.before - done.tokens.after_prune
    assert not context.overflow_check.is_overflow


@pytest.mark.shows("004-21", "004-22", "004-71", "R-004-9")
async def test_what_pruning_leaves_is_summarised() -> None:
    """The figures go down step by step, and the last one is the account's."""
    policy = policies.prune_then_summarize(max_tokens=16_000, counter="chars4", protect=500, minimum=500)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    for number in range(14):
        await timeline.append(prompt(), call(f"c{number}", "bash"), result(f"c{number}", 200), answer(800))
    context = await timeline.render(now=AT)
    done = context.preparation
    assert (done.was_pruned, done.was_compacted) == (True, True)
    assert done.tokens.before > done.tokens.after_prune > done.tokens.after_compact == done.tokens.final
    assert done.tokens.final == context.account.messages
    assert done.compacted_messages == 48  # four of each of twelve turns


@pytest.mark.shows("004-22", "R-004-9")
async def test_a_summary_alone_is_no_pruning() -> None:
    """Where no output can be cleared, nothing was pruned: the figure after it is the one before."""
    policy = policies.prune_then_summarize(max_tokens=16_000, counter="chars4")
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await timeline.append(*(block for _ in range(14) for block in (prompt(), answer(900))))
    done = (await timeline.render(now=AT)).preparation
    assert (done.was_pruned, done.was_compacted, done.pruned_outputs) == (False, True, 0)
    assert done.tokens.before == done.tokens.after_prune > done.tokens.after_compact == done.tokens.final


@pytest.mark.shows("004-49", "R-004-9")
async def test_a_tool_is_named_once_where_a_render_clears_twice() -> None:
    """Two steps clear outputs of both tools: the older ones first, then all but the newest."""
    steps = [{"kind": "clear_tool_outputs", "protect": protect, "minimum": 1_000} for protect in (8_000, 2_000)]
    policy = policies.prune_then_summarize(max_tokens=9_000, counter="chars4", steps=steps)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    for number in range(12):
        tool = "read" if number % 2 else "bash"
        await timeline.append(prompt(), call(f"c{number}", tool), result(f"c{number}", 1_000, name=tool), answer())
    context = await timeline.render(now=AT)
    assert [taken.kind for taken in context.decisions] == ["hidden", "hidden"]
    assert context.pruned.outputs_pruned == 8
    assert context.preparation.removed_tools == context.pruned.pruned_tools == ("read", "bash")


@pytest.mark.shows("004-22", "R-004-9")
async def test_a_render_that_did_nothing_says_so() -> None:
    """All four figures are the same."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(100))
    context = await timeline.render()
    done = context.preparation
    assert {*done.tokens.model_dump().values()} == {context.account.messages}
    assert not done.was_pruned
    assert not done.was_compacted
    assert context.pruned == PruneResult()


@pytest.mark.shows("004-19", "004-40", "004-78", "R-004-7")
def test_an_overflow_check_is_never_below_zero() -> None:
    """What is missing is the account's to say."""
    account = Account(limit=1_000, trigger=1_000, target=1_000, fixed=FixedPart(system=100, reserved=200), messages=900)
    check = overflow_check(account)
    assert check.model_dump() == {
        "is_overflow": True,
        "current_tokens": 1_000,
        "available_tokens": 0,
        "model_limit": 1_000,
        "output_reserve": 200,
    }
    assert account.available == -200


@pytest.mark.shows("004-126", "R-004-6")
@pytest.mark.parametrize(
    ("messages", "percent", "level"),
    [
        (800, 80.0, "normal"),
        (801, 80.1, "warning"),
        (950, 95.0, "warning"),
        (951, 95.1, "critical"),
        (3_000, 100.0, "critical"),
    ],
)
def test_the_usage_has_two_marks(messages: int, percent: float, level: str) -> None:
    """A warning above 80 %, critical above 95 %, and never more than 100 % to show."""
    account = Account(limit=1_000, trigger=900, target=700, messages=messages)
    assert account.percent_used == pytest.approx(percent)
    assert account.level == level
