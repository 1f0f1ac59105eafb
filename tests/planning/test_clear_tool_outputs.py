"""Clearing old tool outputs (seed 004, tool output pruning)."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import AT, COUNTER, answer, apply, call, exchange, fold_of, grow, prompt, window_of
from timeline import policies
from timeline.blocks import RangeSummary, ToolCall, ToolResult
from timeline.events import (
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    CompactionCompleted,
    Covers,
    Replacement,
    WrittenBy,
)
from timeline.planning.clear_tool_outputs import CLEARED, old_outputs, plan_clear
from timeline.planning.costs import costs
from timeline.policy.steps import ClearToolOutputs

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.window import Window
    from timeline.planning.plans import HideDecision

POLICY: Final = policies.prune_then_summarize(counter="chars4")
STEP: Final = ClearToolOutputs(protect=400, minimum=200, keep_turns=2)


def turns(*outputs: int, last: int = 2) -> list[Block]:
    """Return a turn for each output of that size, then so many turns without any."""
    worked = [block for n, size in enumerate(outputs) for block in (prompt(), *exchange(f"c{n}", size))]
    return [*worked, *(block for _ in range(last) for block in (prompt(), answer()))]


def cleared(window: Window, step: ClearToolOutputs = STEP) -> HideDecision | None:
    """Plan one step."""
    return plan_clear(window, POLICY, COUNTER, step)


def calls_cleared(window: Window, step: ClearToolOutputs = STEP) -> list[str]:
    """Return the ids of the calls whose results are cleared, oldest first."""
    hide = cleared(window, step)
    by_version = {item.version: item.block.call_id for item in window.items}
    return [] if hide is None else [str(by_version[replacement.version]) for replacement in hide.event.blocks]


@pytest.mark.shows("004-41", "004-51", "004-52")
def test_outputs_behind_what_is_protected_are_cleared() -> None:
    """Backwards: the newest 400 tokens stay, and so does the call of what is cleared."""
    window = window_of(*turns(300, 300, 200, 200))
    assert calls_cleared(window) == ["c0", "c1"]


@pytest.mark.shows("004-44")
def test_the_output_that_crosses_the_line_is_cleared() -> None:
    """Its own tokens count before it is judged, as in the seed."""
    assert calls_cleared(window_of(*turns(500, 300, 300))) == ["c0", "c1"]
    assert calls_cleared(window_of(*turns(500, 200, 200))) == ["c0"]


@pytest.mark.shows("004-5", "004-42", "R-004-10")
def test_the_newest_two_turns_are_untouched() -> None:
    """However large their outputs are."""
    window = window_of(*turns(900, 900, last=0))
    assert old_outputs(window, STEP) == []
    older = window_of(*turns(900, 900, 900, last=0))
    assert [item.block.call_id for item in old_outputs(older, STEP)] == ["c0"]


@pytest.mark.shows("004-43", "R-004-10")
def test_the_search_ends_at_a_summary() -> None:
    """Whatever stands before it is not looked at."""
    fold = fold_of(*turns(900, 900))
    first, middle = fold.window.items[:3], fold.window.items[3:6]
    apply(
        fold,
        fold.version + 1,
        CompactionCompleted(
            block=RangeSummary(turn_id="c", path="su:c.conv.range.summary", text="They went on.", at=AT),
            tokens=4,
            counter=COUNTER.name,
            covers=Covers(ranges=((middle[0].version, middle[-1].version),)),
            written_by=WrittenBy(summarizer="hand"),
        ),
    )
    grow(fold, *turns(500, 500))
    assert first[2] in fold.window.items
    assert [item.version > middle[-1].version for item in old_outputs(fold.window, STEP)] == [True, True]


@pytest.mark.shows("004-50", "R-004-10")
@pytest.mark.parametrize(("sizes", "is_due"), [((300, 300), False), ((301, 300), True)])
def test_nothing_is_cleared_unless_more_is_there_than_protected_and_minimum(sizes: list[int], *, is_due: bool) -> None:
    """Strictly more than 400 + 200."""
    assert (cleared(window_of(*turns(*sizes))) is not None) == is_due


@pytest.mark.shows("004-48", "R-004-13")
def test_nothing_is_cleared_where_that_frees_less_than_the_minimum() -> None:
    """Ruling: outputs below the minimum stay, although there are more than protected and minimum."""
    assert cleared(window_of(*turns(*[100] * 7))) is not None
    dear = ClearToolOutputs(protect=400, minimum=799, keep_turns=2)  # 800 are past what is protected
    assert cleared(window_of(*turns(*[200] * 6)), dear) is None


def test_an_output_that_is_shorter_than_its_placeholder_stays() -> None:
    """Clearing it would cost tokens."""
    window = window_of(prompt(), *exchange("tiny", 3), *turns(500, 300))
    assert calls_cleared(window) == ["c0"]


@pytest.mark.shows("R-004-12")
def test_there_is_one_placeholder_and_it_says_the_address() -> None:
    """Of the seed's four texts one; the full output can be read back."""
    window = window_of(*turns(900, 300))
    hide = cleared(window)
    assert hide is not None
    assert [replacement.text for replacement in hide.event.blocks] == [f"{CLEARED} @4"]
    assert CLEARED == "[Tool output cleared - see conversation summary]"


def test_the_event_says_how_many_and_how_much() -> None:
    """The figures are those of the account."""
    fold = fold_of(*turns(900, 300, 300))
    before = sum(costs(fold.window.items, POLICY))
    hide = cleared(fold.window)
    assert hide is not None
    assert hide.event.reason == "tool_output"
    assert hide.event.facts == {"blocks": 2, "freed_tokens": hide.freed, "least_tokens": 200}
    apply(fold, fold.version + 1, hide.event)
    assert before - sum(costs(fold.window.items, POLICY)) == hide.freed
    assert cleared(fold.window) is None


@pytest.mark.shows("004-44")
def test_pinned_revealed_and_cleared_outputs_are_left_alone() -> None:
    """Decisions of the application stand, and nothing is cleared twice."""
    fold = fold_of(*turns(900, 900, 900, 300))
    apply(fold, fold.version + 1, BlocksPinned(versions=(4,)))
    replacement = Replacement(version=7, text="[x]", tokens=1)
    apply(fold, fold.version + 1, BlocksHidden(reason="application", blocks=(replacement,)))
    apply(fold, fold.version + 1, BlocksRevealed(versions=(7,)))
    assert calls_cleared(fold.window) == ["c2"]


def test_the_result_of_an_open_call_is_left_alone() -> None:
    """Only what the model has gone on from is old."""
    blocks = [prompt(), call("p", pending=True, response_id="m1"), *turns(500, 500)]
    assert "p" not in calls_cleared(window_of(*blocks))


@pytest.mark.shows("R-004-10")
@given(
    sizes=st.lists(st.integers(1, 400), max_size=12),
    protect=st.integers(0, 800),
    minimum=st.integers(0, 600),
    keep=st.integers(0, 3),
)
def test_whatever_is_cleared_frees_the_minimum_and_keeps_what_is_protected(
    sizes: list[int], protect: int, minimum: int, keep: int
) -> None:
    """The newest outputs behind the kept turns stay up to the protected figure, and every call stays."""
    step = ClearToolOutputs(protect=protect, minimum=minimum, keep_turns=keep)
    window = window_of(*turns(*sizes, last=1))
    hide = cleared(window, step)
    if hide is None:
        return
    gone = {replacement.version for replacement in hide.event.blocks}
    assert hide.freed >= minimum
    assert {type(item.block) for item in window.items if item.version in gone} == {ToolResult}
    assert not gone & {item.version for item in window.items if isinstance(item.block, ToolCall)}
    outputs = old_outputs(window, step)
    sums = accumulate(item.tokens for item in outputs)
    past = {item.version for item, seen in zip(outputs, sums, strict=True) if seen > protect}
    assert gone <= past
    assert all(item.tokens < 25 for item in outputs if item.version in past - gone)
