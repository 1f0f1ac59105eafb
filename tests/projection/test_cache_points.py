"""Cache points on the visible stream (seed 002, cache points after compaction)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import answer, apply, call, compact_fold, exchange, fold_of, prompt, result, turn, window_of
from timeline.blocks import SystemMessage, TurnHeader
from timeline.events import BlocksHidden, Replacement
from timeline.policy.model import CachePointRule
from timeline.projection.cache_points import ShownEntries, cache_points
from timeline.projection.project import Projector

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.window import Window


def points(window: Window, **rule: Any) -> list[tuple[str, str]]:
    """Return the cache points of a window: kind, and the path of the entry that each stands behind."""
    context = Projector().project(window, CachePointRule(**rule))
    return [(p.kind, context.entries[p.index].path) for p in context.cache_points]


# The two figures of seed 002: turns A to E of one round each


def figure() -> Window:
    """Return the seed's example: five turns, the current one is E."""
    return window_of(*[block for name in "ABCDE" for block in (prompt(turn_id=name), answer())])


@pytest.mark.shows("002-42")
def test_figure_1_enough_rounds_for_pre_tail() -> None:
    """Before: pre-tail at the end of turn A (N-4), previous turn at the end of D, tail at the end of E."""
    assert points(figure()) == [
        ("pre_tail", "ar:A.assistant.completion"),
        ("previous_turn", "ar:D.assistant.completion"),
        ("tail", "ar:E.assistant.completion"),
    ]


@pytest.mark.shows("002-43")
def test_figure_2_pre_tail_is_omitted_after_compaction() -> None:
    """After a summary of A to C: previous turn at the end of D, tail at the end of E, too few rounds for pre-tail."""
    fold = fold_of(*[block for name in "ABCDE" for block in (prompt(turn_id=name), answer())])
    compact_fold(fold, 7)
    context = Projector().project(fold.window, CachePointRule())
    assert [e.path for e in context.entries] == [
        "su:c.conv.range.summary",
        "ar:D.user.prompt",
        "ar:D.assistant.completion",
        "ar:E.user.prompt",
        "ar:E.assistant.completion",
    ]
    assert points(fold.window) == [
        ("previous_turn", "ar:D.assistant.completion"),
        ("tail", "ar:E.assistant.completion"),
    ]


@pytest.mark.shows("002-45")
def test_figure_3_a_cut_inside_turn_c() -> None:
    """With the tail of C kept there are still three rounds only, and the same two points."""
    blocks: list[Block] = [block for name in "AB" for block in (prompt(turn_id=name), answer())]
    blocks += [prompt(turn_id="C"), *exchange("x"), answer(), *turn(turn_id="D"), *turn(turn_id="E")]
    fold = fold_of(*blocks)
    compact_fold(fold, 8, carried=(6,), split_turn_id="C")
    assert [i.block.path for i in fold.window.items][:3] == [
        "su:c.conv.range.summary",
        "ar:C.user.prompt",
        "ar:C.assistant.completion",
    ]
    assert points(fold.window) == [
        ("previous_turn", "ar:D.assistant.completion"),
        ("tail", "ar:E.assistant.completion"),
    ]


# The rules one by one


def test_an_empty_stream_has_no_points() -> None:
    """Nothing shown, nothing cached."""
    assert cache_points(ShownEntries(), CachePointRule()) == ()


@pytest.mark.shows("002-40")
def test_a_single_block_is_the_tail() -> None:
    """The first prompt has no turn before it."""
    assert points(window_of(prompt())) == [("tail", "ar:turn_1.user.prompt")]


@pytest.mark.shows("002-38")
def test_the_previous_turn_ends_before_the_current_turns_first_block() -> None:
    """The point stands on the last block before the header of the current turn."""
    window = window_of(*turn(), TurnHeader(text="h"), prompt(), *exchange("a"))
    assert points(window)[0] == ("previous_turn", "ar:turn_1.assistant.completion")


@pytest.mark.shows("002-38")
def test_in_the_first_turn_there_is_no_previous_one() -> None:
    """Nothing stands before its first block."""
    assert points(window_of(prompt(), *exchange("a"))) == [("tail", "tc:turn_1.a.result")]


@pytest.mark.shows("002-37", "002-38")
def test_the_summary_may_be_the_last_block_before_the_current_turn() -> None:
    """When all earlier turns are covered, the previous-turn point stands on the summary."""
    fold = fold_of(*turn(), *turn())
    compact_fold(fold, 3)
    assert points(fold.window) == [
        ("previous_turn", "su:c.conv.range.summary"),
        ("tail", "ar:turn_2.assistant.completion"),
    ]


@pytest.mark.shows("002-37", "002-38")
def test_a_summary_of_the_current_turn_is_still_before_it() -> None:
    """A split turn's summary stands in that turn, and everything behind it is the current turn."""
    fold = fold_of(*turn(), prompt(turn_id="c"), *exchange("a"), *exchange("b"))
    compact_fold(fold, 6, carried=(4,), split_turn_id="c")
    assert points(fold.window) == [("previous_turn", "su:c.conv.range.summary"), ("tail", "tc:c.b.result")]


@pytest.mark.shows("002-39")
def test_the_pre_tail_is_the_last_block_of_round_n_minus_4() -> None:
    """A round ends with its last result, or with a completion."""
    window = window_of(prompt(), *[b for c in "abcdef" for b in exchange(c)])
    assert points(window) == [("pre_tail", "tc:turn_1.b.result"), ("tail", "tc:turn_1.f.result")]
    window = window_of(prompt(), answer(), prompt(), answer(), prompt(), *[b for c in "abc" for b in exchange(c)])
    assert points(window)[0] == ("pre_tail", "ar:turn_1.assistant.completion")


@pytest.mark.shows("002-44", "R-002-5")
def test_the_pre_tail_needs_at_least_five_rounds() -> None:
    """With four rounds there is none."""
    assert points(window_of(prompt(), *[b for c in "abcd" for b in exchange(c)])) == [("tail", "tc:turn_1.d.result")]
    assert points(window_of(prompt(), *[b for c in "abcde" for b in exchange(c)]))[0] == (
        "pre_tail",
        "tc:turn_1.a.result",
    )


@pytest.mark.shows("002-39", "002-44", "R-002-5")
def test_offset_and_minimum_are_the_policys() -> None:
    """The first implementation used an offset of two."""
    window = window_of(prompt(), *[b for c in "abc" for b in exchange(c)])
    assert points(window, offset_rounds=2, min_rounds=3)[0] == ("pre_tail", "tc:turn_1.a.result")
    assert points(window, offset_rounds=4, min_rounds=1) == [("tail", "tc:turn_1.c.result")]
    assert points(window, offset_rounds=2, min_rounds=4) == [("tail", "tc:turn_1.c.result")]


def test_two_points_on_one_block_are_one() -> None:
    """Where pre-tail and previous turn fall together, one marker is set."""
    window = window_of(prompt(), answer(), prompt(), *[b for c in "abcd" for b in exchange(c)])
    assert ShownEntries(window.items).round_ends[-5] == 1
    assert points(window) == [("previous_turn", "ar:turn_1.assistant.completion"), ("tail", "tc:turn_2.d.result")]


@pytest.mark.shows("002-63")
def test_points_stand_in_order_and_are_three_at_most() -> None:
    """One of a provider's four markers stays for the system prompt."""
    window = window_of(*[b for _ in range(40) for b in (*turn(), *exchange("x"))])
    context = Projector().project(window, CachePointRule())
    indices = [p.index for p in context.cache_points]
    assert indices == sorted(set(indices))
    assert len(indices) == 3


def test_a_long_way_to_the_tail_gets_a_lagging_point_while_a_marker_is_free() -> None:
    """The provider looks back 20 blocks only; the point in between stands within its reach."""
    rounds = [b for n in range(15) for b in exchange(f"c{n}")]
    window = window_of(*turn(), prompt(), *rounds)
    assert [kind for kind, _ in points(window)] == ["previous_turn", "pre_tail", "tail"]
    found = points(window, min_rounds=100)
    assert [kind for kind, _ in found] == ["previous_turn", "lagging", "tail"]
    context = Projector().project(window, CachePointRule(min_rounds=100))
    _, lagging, tail = context.cache_points
    assert tail.index - lagging.index == 20


def test_a_short_way_gets_none() -> None:
    """At a distance of 20 blocks the provider finds the point before by itself; at 21 it does not."""
    near = [SystemMessage(text="s") for _ in range(18)]
    assert [kind for kind, _ in points(window_of(*turn(), prompt(), *near, answer()))] == ["previous_turn", "tail"]
    far = [*near, SystemMessage(text="s")]
    assert [kind for kind, _ in points(window_of(*turn(), prompt(), *far, answer()))][1] == "lagging"


def test_a_first_turn_gets_a_lagging_point_once_it_is_longer_than_the_way_back() -> None:
    """Nothing was kept before its first block, which is 20 blocks before the tail."""
    near = [SystemMessage(text="s") for _ in range(18)]
    assert [kind for kind, _ in points(window_of(prompt(), *near, answer()))] == ["tail"]
    window = window_of(prompt(), *near, answer(), answer())
    assert points(window)[0] == ("lagging", window.items[0].block.path)


def test_rounds_are_counted_in_responses_with_their_results() -> None:
    """Parallel calls and a late result of the same response are one round; prompts and orphans are none."""
    window = window_of(
        prompt(), call("a"), call("b"), result("b"), result("a"), answer(), result("lost"), prompt(), answer()
    )
    assert ShownEntries(window.items).round_ends == [4, 5, 8]


@pytest.mark.shows("002-10")
def test_points_are_placed_after_replacement_and_omission() -> None:
    """An omitted block carries no point: the one before it does."""
    fold = fold_of(*turn(), prompt(), answer())
    apply(fold, 6, BlocksHidden(mode="omit", reason="ttl", blocks=(Replacement(version=3), Replacement(version=5))))
    assert points(fold.window) == [("previous_turn", "ar:turn_1.user.prompt"), ("tail", "ar:turn_2.user.prompt")]


def test_a_render_without_a_decision_moves_the_tail_only() -> None:
    """After one more round the entries before the previous tail are what they were."""
    window = window_of(*turn(), prompt(), *exchange("a"))
    longer = window_of(*turn(), prompt(), *exchange("a"), *exchange("b"))
    before, after = (Projector().project(w, CachePointRule()) for w in (window, longer))
    assert after.entries[: len(before.entries)] == before.entries
    assert before.cache_points[0] == after.cache_points[0]
