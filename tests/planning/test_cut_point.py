"""The cut point: seed 002's exact rules one by one, then what makes a cut legal (design, section 6)."""

from __future__ import annotations

import pytest

from tests.scenes import answer, apply, call, compact_fold, exchange, fold_of, prompt, result, turn, window_of
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    Block,
    CustomBlock,
    Note,
    RangeSummary,
    Reasoning,
    StageDigest,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnHeader,
    UserPrompt,
)
from timeline.events import BlocksHidden, Replacement
from timeline.fold.groups import atomic_groups
from timeline.planning.cut_point import choose_cut, legal_cuts, seed_cut
from timeline.planning.messages import is_candidate, is_message, is_turn_start


def legal(*blocks: Block, whole_turns: bool = False) -> list[int]:
    """Return the legal cuts among blocks."""
    items = window_of(*blocks).items
    return legal_cuts(items, atomic_groups(items), whole_turns=whole_turns)


# 1) Candidate cut points


@pytest.mark.shows("002-11", "002-12", "002-13", "002-14", "002-15")
@pytest.mark.parametrize(
    ("block", "candidate"),
    [
        (ToolResult(call_id="c"), False),
        (ToolResult(call_id="c", author="assistant"), False),
        (RangeSummary(), False),
        (RangeSummary(author="assistant"), False),
        (UserPrompt(), True),
        (UserPrompt(author="system"), True),
        (AssistantCompletion(), True),
        (AssistantCompletion(author="system"), True),
        (ToolCall(call_id="c", name="run"), True),
        (ToolCall(call_id="c", name="run", author="tool"), True),
        (TurnHeader(), True),
        (TurnHeader(author="system"), True),
        (Attachment(), True),
        (Reasoning(), True),
        (CustomBlock(type="app.x", author="user"), True),
        (CustomBlock(type="app.x", author="assistant"), True),
        (CustomBlock(type="app.x", author="planner"), True),
        (CustomBlock(type="app.x", author="system"), False),
        (CustomBlock(type="app.x", author="tool"), False),
        (CustomBlock(type="app.x", author=""), False),
        (SystemMessage(), False),
        (SystemMessage(author="planner"), True),
        (Note(), False),
        (StageDigest(), False),
    ],
    ids=lambda value: f"{value.type} by {value.author or 'nobody'}" if isinstance(value, Block) else str(value),
)
def test_candidates_are_told_by_type_then_author(block: Block, candidate: bool) -> None:  # noqa: FBT001 - a table
    """Results and summaries never; prompts, completions, calls and headers always; else who speaks decides."""
    assert is_candidate(block) is candidate


# 2) Message blocks for token accounting


@pytest.mark.shows("002-16")
@pytest.mark.parametrize(
    ("block", "message"),
    [
        (ToolResult(call_id="c"), True),
        (UserPrompt(), True),
        (ToolCall(call_id="c", name="run"), True),
        (RangeSummary(), False),
        (SystemMessage(), False),
        (Note(), False),
    ],
    ids=lambda value: value.type if isinstance(value, Block) else str(value),
)
def test_a_tool_result_is_a_message_although_it_is_no_candidate(block: Block, message: bool) -> None:  # noqa: FBT001 - a table
    """Results count towards the recent tokens; everything else counts if a cut may stand before it."""
    assert is_message(block) is message


# 3) Cut index selection


@pytest.mark.shows("002-18")
def test_the_walk_back_stops_when_enough_has_accumulated() -> None:
    """Message blocks are summed from the newest on; reaching the keep exactly is enough."""
    items = window_of(*turn(10, asked=10), *turn(10, asked=10), *turn(10, asked=10)).items
    assert seed_cut(items, 20) == 4
    assert seed_cut(items, 21) == 3
    assert seed_cut(items, 30) == 3
    assert seed_cut(items, 31) == 2


@pytest.mark.shows("002-17")
def test_blocks_that_are_no_messages_do_not_count_towards_the_keep() -> None:
    """A large system message is not recent conversation."""
    items = window_of(*turn(10, asked=10), SystemMessage(text="x" * 4000), *turn(10, asked=10)).items
    assert seed_cut(items, 25) == 1


@pytest.mark.shows("002-16")
def test_tool_results_count_towards_the_keep() -> None:
    """A result's tokens are recent tokens, though no cut stands before it."""
    items = window_of(prompt(), *exchange("a", 100), answer(10)).items
    assert seed_cut(items, 50) == 3


@pytest.mark.shows("002-7")
def test_a_hidden_block_counts_as_it_is_shown() -> None:
    """The walk sees the already pruned timeline: a replaced result is as small as its replacement."""
    fold = fold_of(*turn(10, asked=10), call("a"), result("a", 500), answer(10))
    assert seed_cut(fold.window.items, 100) == 4
    apply(fold, 7, BlocksHidden(reason="ttl", blocks=(Replacement(version=5, text="gone", tokens=1),)))
    assert seed_cut(fold.window.items, 100) == 0


@pytest.mark.shows("002-19")
def test_the_cut_is_the_first_candidate_at_or_after_the_index() -> None:
    """Where the walk stops at a tool result, the cut moves on to the next candidate, not back to the call."""
    items = window_of(prompt(), call("a"), result("a", 100), call("b"), result("b", 5)).items
    assert seed_cut(items, 60) == 3


def test_without_a_candidate_at_or_after_the_index_there_is_no_cut() -> None:
    """When the newest result alone is more than the keep, the seed's rules name no cut."""
    assert seed_cut(window_of(*turn(), call("a"), result("a", 100)).items, 60) is None


@pytest.mark.shows("002-20")
def test_the_cut_goes_back_over_blocks_that_are_no_messages() -> None:
    """A system message or note directly before the cut stays with what it introduces."""
    items = window_of(*turn(10, asked=10), SystemMessage(text="s"), Note(text="n"), prompt(10), answer(10)).items
    assert seed_cut(items, 20) == 2


@pytest.mark.shows("002-20")
def test_the_cut_goes_back_to_just_after_a_summary_and_no_further() -> None:
    """The summary is a boundary: what stands behind it may be kept, the summary itself is not walked over."""
    fold = fold_of(*turn(), SystemMessage(text="s"), *turn(10, asked=10))
    compact_fold(fold, 3)
    items = fold.window.items
    assert [i.block.type for i in items][:2] == ["conv.range.summary", "system.message"]
    assert seed_cut(items, 20) == 1


def test_only_what_stands_behind_the_last_summary_is_walked() -> None:
    """With too little behind the summary the cut is the first block after it."""
    fold = fold_of(*turn(100), *turn(10))
    compact_fold(fold, 3)
    assert seed_cut(fold.window.items, 10_000) == 1


# 4) Turn boundary and split turns


@pytest.mark.shows("002-21")
@pytest.mark.parametrize(
    ("block", "start"),
    [
        (TurnHeader(), True),
        (UserPrompt(), True),
        (UserPrompt(author="alice"), True),
        (CustomBlock(type="app.x", author="user"), True),
        (Attachment(), True),
        (AssistantCompletion(), False),
        (ToolCall(call_id="c", name="run"), False),
        (Reasoning(), False),
        (CustomBlock(type="app.x", author="planner"), False),
    ],
    ids=lambda value: f"{value.type} by {value.author}" if isinstance(value, Block) else str(value),
)
def test_a_turn_starts_at_a_header_a_prompt_or_the_user(block: Block, start: bool) -> None:  # noqa: FBT001 - a table
    """Any other cut is a split-turn cut."""
    assert is_turn_start(block) is start


# What makes a cut legal


def test_a_legal_cut_stands_at_the_start_of_an_atomic_group() -> None:
    """Neither a turn's opening nor a response with its results is divided."""
    assert legal(TurnHeader(), prompt(), Attachment(), call("a"), call("b"), result("a"), result("b"), answer()) == [
        3,
        7,
    ]


def test_parallel_calls_leave_no_cut_between_them() -> None:
    """``call call call call`` and their results are one batch: no cut orphans the first result."""
    calls, results = [call(f"c{n}") for n in range(4)], [result(f"c{n}") for n in range(4)]
    assert legal(prompt(), *calls, *results, *turn()) == [1, 9, 10]


def test_a_legal_cut_covers_something() -> None:
    """The first position is no cut."""
    assert legal(prompt()) == []
    assert legal(prompt(), answer()) == [1]


def test_a_legal_cut_stands_behind_the_last_summary_and_what_it_carried() -> None:
    """Cutting among carried blocks would cover nothing new."""
    fold = fold_of(prompt(), answer(), answer(response_id="m2"), *turn())
    compact_fold(fold, 3, carried=(2,))
    items = fold.window.items
    assert [i.state for i in items] == ["visible", "carried", "visible", "visible", "visible"]
    assert legal_cuts(items, atomic_groups(items), whole_turns=False) == [3, 4]


def test_a_legal_cut_is_followed_by_a_candidate() -> None:
    """An orphan result is a group of its own, and still no cut stands before it."""
    assert legal(prompt(), result("lost"), answer()) == [2]


def test_a_legal_cut_may_stand_before_a_system_message_that_introduces_a_candidate() -> None:
    """The first message block at or after the cut is what has to be a candidate."""
    assert legal(prompt(), answer(), SystemMessage(text="s"), prompt()) == [1, 2, 3]
    assert legal(prompt(), SystemMessage(text="s"), result("lost"), answer()) == [3]


def test_where_no_candidate_follows_the_start_of_the_newest_group_is_the_cut_that_is_left() -> None:
    """A flood of results without calls can still be covered, all but the newest."""
    assert legal(prompt(), result("lost"), result("lost too")) == [2]
    assert legal(prompt(), SystemMessage(text="s"), SystemMessage(text="t")) == [2]


def test_whole_turns_are_cut_at_their_start_only() -> None:
    """With ``on_split = "whole_turn"`` a cut inside a turn is not legal."""
    assert legal(prompt(), *exchange("a"), answer(), *turn(), whole_turns=True) == [4]


# The repairs, in the design's order


def test_a_seed_cut_that_is_legal_is_taken() -> None:
    """Where the seed's rules give a legal cut, ours is the same cut."""
    assert choose_cut(4, [2, 4, 6], 8, fits=lambda _: False) == 4


def test_an_illegal_cut_moves_back_to_the_latest_legal_one_whose_kept_part_fits() -> None:
    """Keeping a little more is the first choice."""
    assert choose_cut(5, [2, 4, 6], 8, fits=lambda _: True) == 4


def test_an_illegal_cut_moves_on_where_the_one_before_keeps_too_much() -> None:
    """Then the earliest legal cut after it."""
    assert choose_cut(5, [2, 4, 6, 7], 8, fits=lambda _: False) == 6


def test_without_a_legal_cut_after_it_the_newest_group_is_what_is_kept() -> None:
    """The last resort is the latest legal cut, whether it fits or not."""
    assert choose_cut(7, [2, 4, 6], 8, fits=lambda _: False) == 6
    assert choose_cut(None, [2, 4, 6], 8, fits=lambda _: False) == 6


def test_without_any_legal_cut_there_is_none() -> None:
    """A single group cannot be cut."""
    assert choose_cut(0, [], 1, fits=lambda _: True) is None
