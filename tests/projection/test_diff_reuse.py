"""What one request's cache answers of the next one (seed 004, cache savings example)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import AT, COUNTER, Scribe, answer, exchange, fold_of, grow, opened, prompt, small_policy, turn, words
from timeline import policies
from timeline.events import BlocksHidden, Replacement
from timeline.frozen import canonical_json
from timeline.planning.account import account_of, fixed_part
from timeline.projection.context import RenderedContext
from timeline.projection.diff import Reuse, reuse
from timeline.projection.project import PROJECTION, Projector
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.fold.fold import Fold

POLICY = small_policy()
SYSTEM: Final = words(2_000)


def tool_of(tokens: int) -> dict[str, Any]:
    """Return a tool's schema of exactly that many tokens."""
    bare = {"name": "run", "description": "", "input_schema": {"type": "object"}}
    return {**bare, "description": "x" * (4 * tokens - len(canonical_json(bare)))}


TOOLS: Final = [tool_of(8_000)]
FIXED: Final[dict[str, Any]] = {"system": SYSTEM, "tools": TOOLS}


def seen(fold: Fold, **changes: Any) -> RenderedContext:
    """Render what a fold shows."""
    fixed = {**FIXED, **changes}
    neutral = Projector().project(fold.window, POLICY.cache_points, **fixed)
    return RenderedContext(
        conversation="c",
        version=fold.version,
        projection=PROJECTION,
        fingerprint=neutral.fingerprint(),
        window=fold.window,
        policy=POLICY,
        neutral=neutral,
        account=account_of(fold.window.items, fixed_part(POLICY, COUNTER.count, **fixed), POLICY),
    )


@pytest.mark.shows("004-91", "R-004-33")
async def test_the_example_of_seed_004() -> None:
    """2,000 tokens of system prompt, 8,000 of tools, 500 of summary, 1,000 of messages.

    With the summary in the system prompt all 11,500 are processed anew; told as a pair it leaves 10,000 in the cache.
    """
    policy = policies.prune_then_summarize(counter="chars4", message_tokens=0, response_tokens=0, max_tokens=60_000)
    question = COUNTER.count(policy.form.question)
    store = MemoryStore()
    timeline = await opened(store, policy=policy, summarizer=Scribe(answers=[words(500 - question)]))
    await timeline.append(*turn(15_000, asked=1_000), *turn(400, asked=100), *turn(400, asked=100))
    before = await timeline.render(**FIXED)
    await timeline.compact()
    pair = await timeline.render(**FIXED)
    assert (pair.account.fixed.system, pair.account.fixed.tools, pair.account.messages) == (2_000, 8_000, 1_500)
    assert reuse(before, pair) == Reuse(cached=10_000, processed=1_500)

    bare = await opened(store, "bare", policy=policy)
    await bare.append(*turn(400, asked=100), *turn(400, asked=100))
    injected = await bare.render(system=SYSTEM + words(500), tools=TOOLS)
    assert reuse(before, injected) == Reuse(cached=0, processed=11_500)


async def test_a_diff_of_recorded_contexts_says_it() -> None:
    """`Timeline.diff` compares any two renders, and its dump has the figures."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(*turn(300, asked=100))
    await timeline.render(**FIXED)
    await timeline.append(*turn(50, asked=10))
    await timeline.render(**FIXED)
    assert (await timeline.diff()).dump()["reuse"] == {"cached": 10_400, "processed": 60}


def test_appended_blocks_are_all_that_is_processed() -> None:
    """Up to the tail of the request before, the cache answers."""
    fold = fold_of(*turn(300, asked=100))
    before = seen(fold)
    grow(fold, *turn(50, asked=10))
    assert reuse(before, seen(fold)) == Reuse(cached=10_400, processed=60)


def test_of_several_points_in_the_cache_the_last_one_is_read() -> None:
    """Each turn of the request before ended at a point of its own."""
    fold = fold_of(*turn(300, asked=100), *turn(200, asked=50), *turn(30, asked=20))
    before = seen(fold)
    grow(fold, *turn(50, asked=10))
    assert len(before.cache_points) > 1
    assert reuse(before, seen(fold)) == Reuse(cached=10_700, processed=60)


def test_a_request_that_is_repeated_is_read_whole() -> None:
    """The tail is a cache point, too."""
    fold = fold_of(*turn(300, asked=100))
    assert reuse(seen(fold), seen(fold)) == Reuse(cached=10_400, processed=0)


@pytest.mark.shows("004-113")
def test_other_tools_leave_nothing() -> None:
    """Tools stand in front of everything."""
    fold = fold_of(*turn(300, asked=100))
    assert reuse(seen(fold), seen(fold, tools=[tool_of(7_000)])) == Reuse(cached=0, processed=9_400)


def test_behind_a_change_in_the_middle_nothing_is_read() -> None:
    """What is read ends at the last cache point in front of the change: here the end of the turn before."""
    fold = fold_of(*turn(300, asked=100), prompt(10), *exchange("a", 200), answer(20))
    before = seen(fold)
    fold.apply(
        fold.version + 1, AT, BlocksHidden(reason="cold", blocks=(Replacement(version=6, text="gone", tokens=1),))
    )
    after = seen(fold)
    assert reuse(before, after) == Reuse(cached=10_400, processed=after.account.messages - 400)


def test_what_stands_too_far_behind_every_marker_is_not_found() -> None:
    """A provider looks back 20 blocks from a marker; with more than that appended it finds the system prompt only."""
    fold = fold_of(prompt(100))
    before = seen(fold)
    rounds = [block for n in range(30) for block in exchange(f"c{n}", 10)]
    grow(fold, *rounds)
    after = seen(fold)
    assert min(point.index for point in after.cache_points) > 20
    assert reuse(before, after).cached == 10_000


def test_an_earlier_context_reads_what_both_begin_with() -> None:
    """After an undo or in a fork the shorter context finds the entry that was written at its own end."""
    fold = fold_of(*turn(300, asked=100))
    shorter = seen(fold)
    grow(fold, *turn(50, asked=10))
    assert reuse(seen(fold), shorter) == Reuse(cached=10_400, processed=0)
