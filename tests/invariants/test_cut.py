from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.invariants import reference, seed_rules
from tests.invariants.places import new_store
from tests.invariants.playing import AT, play, read_log, run, search
from tests.invariants.strategies import LOGS, Step, small
from tests.scenes import first_step, turn, window_of
from timeline.blocks import ToolCall
from timeline.errors import CompactionRefused
from timeline.fold.groups import atomic_groups
from timeline.planning.account import FixedPart
from timeline.planning.cut_point import choose_cut, legal_cuts, seed_cut
from timeline.planning.messages import is_candidate, is_message, is_turn_start
from timeline.planning.planned import PlannedSteps
from timeline.planning.plans import Plan
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from tests.invariants.reference import LogLine

KEEPS = (1, 30, 200, 1_000, 4_000)


async def _played(steps: list[Step]) -> tuple[Timeline, list[LogLine]]:
    store = await new_store()
    timeline = await Timeline.open(store, "c", policy=small(halvings=0, target=0.9), now=AT)
    await play(timeline, store, steps)
    return timeline, reference.standing(await read_log(store, "c"))


@pytest.mark.shows("R-002-1")
@search(40)
@given(LOGS, st.sampled_from(KEEPS))
def test_the_seeds_cut_is_what_its_four_rules_say(steps: list[Step], keep: int) -> None:
    """Candidates, message blocks, turn starts and the cut itself agree with the rules written out once more."""
    timeline, _ = run(_played(steps))
    items = timeline.window.items
    blocks = [item.block for item in items]
    assert [is_candidate(b) for b in blocks] == [seed_rules.is_cut_point_block(b) for b in blocks]
    assert [is_message(b) for b in blocks] == [seed_rules.is_message_block(b) for b in blocks]
    assert [is_turn_start(b) for b in blocks] == [seed_rules.is_turn_start(b) for b in blocks]
    assert seed_cut(items, keep) == seed_rules.find_cut(blocks, [item.shown_tokens for item in items], keep)


@pytest.mark.shows("R-002-1")
@pytest.mark.parametrize("keep", [99, 100, 101, 200, 201, 205, 206])
def test_at_the_very_line_the_cut_agrees_as_well(keep: int) -> None:
    """Recent tokens that are exactly as many as are to be kept, one fewer, and one more."""
    items = window_of(*turn(100), *turn(100), *turn(100)).items
    blocks = [item.block for item in items]
    assert seed_cut(items, keep) == seed_rules.find_cut(blocks, [item.shown_tokens for item in items], keep)


@search(40)
@given(LOGS)
def test_the_legal_cuts_are_those_of_the_design(steps: list[Step]) -> None:
    """A cut is legal where it begins a group, divides none, stands behind the last summary and covers something."""
    timeline, log = run(_played(steps))
    items = timeline.window.items
    legal = legal_cuts(items, atomic_groups(items), whole_turns=False)
    assert legal == seed_rules.legal_cuts(log)


@pytest.mark.shows("R-002-1")
@search(40)
@given(LOGS, st.sampled_from(KEEPS), st.booleans())
def test_where_the_seeds_cut_is_legal_it_is_the_cut(steps: list[Step], keep: int, fits: bool) -> None:  # noqa: FBT001 - drawn
    """No repair moves a legal cut, whether or not what it keeps fits."""
    timeline, log = run(_played(steps))
    items = timeline.window.items
    seed = seed_cut(items, keep)
    if seed in seed_rules.legal_cuts(log):
        legal = legal_cuts(items, atomic_groups(items), whole_turns=False)
        assert choose_cut(seed, legal, len(items), lambda _: fits) == seed


@search(40)
@given(LOGS, st.sampled_from(KEEPS))
def test_a_plan_that_meets_the_target_without_halving_cuts_where_the_seed_does(steps: list[Step], keep: int) -> None:
    """A plan covers what stands before the seed's cut, where that is legal and enough."""
    timeline, log = run(_played(steps))
    policy = small(100_000, keep_recent_tokens=keep, halvings=0)
    items = timeline.window.items
    seed = seed_cut(items, keep)
    plan = PlannedSteps().plan(first_step(policy), timeline.window, FixedPart(), policy, timeline.counter)
    if isinstance(plan, Plan) and plan.covers is not None and seed is not None and seed in seed_rules.legal_cuts(log):
        if all(item.is_summary or item.version in _kept(log, items[seed].block.turn_id) for item in items[:seed]):
            return  # all that the seed's cut would cover is carried
        assert plan.cut_version == items[seed].version
        assert plan.split_turn_id == _split(timeline, seed)


async def _compacted(steps: list[Step], keep: int) -> None:
    """Play a log, compact it, and hold what is left against the rules where their cut is legal."""
    timeline, log = await _played(steps)
    items = timeline.window.items
    cut = seed_rules.find_cut([item.block for item in items], [item.shown_tokens for item in items], keep)
    policy = small(100_000, keep_recent_tokens=keep, halvings=0, min_progress=0.0, min_progress_tokens=0)
    await timeline.use_policy(policy)
    try:
        await timeline.compact(now=AT)
    except CompactionRefused:  # a summary as long as its cap would be no gain
        return
    rounds = [event async for event in timeline._store.read("c", types=["compaction.completed"])]
    summary = timeline.window.summary
    if cut in seed_rules.legal_cuts(log) and rounds and summary is not None and rounds[-1].version == summary.version:
        left = {item.version for item in timeline.window.items if item.version < summary.version and not item.carried}
        covered_or_carried = {item.version for item in items[:cut]}
        assert left.isdisjoint(covered_or_carried - _kept(log, items[cut].block.turn_id))
        assert {item.version for item in items[cut:]} <= {item.version for item in timeline.window.items}


@pytest.mark.shows("R-002-1")
@search(40)
@given(LOGS, st.sampled_from(KEEPS))
def test_a_compaction_keeps_what_stands_behind_the_seeds_cut(steps: list[Step], keep: int) -> None:
    """Where the cut of the rules is legal, all from it on is live afterwards, and all before it is covered."""
    run(_compacted(steps, keep))


async def _compacted_until(steps: list[Step], place: float) -> None:
    """Play a log, compact it up to one of its blocks, and hold what is left against what a cut may do."""
    timeline, log = await _played(steps)
    items = timeline.window.items
    if not items:
        return
    chosen = int(place * len(items))
    await timeline.use_policy(small(100_000, min_progress=0.0, min_progress_tokens=0))
    before = timeline.window.version
    try:
        await timeline.compact(until=items[chosen].block.path, now=AT)
    except CompactionRefused:
        assert timeline.window.version == before
        return
    left = {item.version for item in timeline.window.items}
    gone = {item.version for item in items} - left
    assert gone.isdisjoint({item.version for item in items[chosen:]}), "the chosen block stays, and all that is newer"
    kept = _kept(log, "")
    assert gone.isdisjoint(kept), "protected blocks stay"
    divided = [group for group in reference.groups(log) if group & gone and (group & left) - kept]
    assert all(_is_opening(log, group) for group in divided), "groups are whole"
    assert (await timeline.verify()).ok


def _is_opening(log: list[LogLine], group: set[int]) -> bool:
    """Return whether a group is a turn's opening, of which a split carries the prompts."""
    return any(reference.blocks_of(log)[version].type == "user.prompt" for version in group)


@search(60)
@given(LOGS, st.floats(0, 1, exclude_max=True))
def test_no_illegal_cut_comes_of_a_block_that_the_caller_chooses(steps: list[Step], place: float) -> None:
    """Whichever block is named: pairs and groups stay whole, what is protected stays, and so does what is newer."""
    run(_compacted_until(steps, place))


def _kept(log: list[LogLine], cut_turn: str) -> set[int]:
    """Name the blocks that a cut in a turn carries, wherever they stand: pins, waiting calls, the turn's prompts."""
    blocks, waiting = reference.blocks_of(log), set(reference.open_calls(log))
    waiting |= {v for v, block in blocks.items() if isinstance(block, ToolCall) and block.pending}
    waiting |= {v for v in reference.order(log) if reference.is_pinned(log, v)}
    kept = {v for group in reference.groups(log) if group & waiting for v in group}
    asked = {"user.prompt", "user.attachment"}
    return kept | {v for v, block in blocks.items() if block.turn_id == cut_turn and block.type in asked}


def _split(timeline: Timeline, position: int) -> str | None:
    """Say which turn a cut divides: that of the first candidate, unless it starts one or nothing of it is before."""
    items = timeline.window.items
    block = next(item.block for item in items[position:] if is_candidate(item.block))
    if seed_rules.is_turn_start(block):
        return None
    before = [item for item in items[:position] if not item.is_summary]
    return block.turn_id if any(item.block.turn_id == block.turn_id for item in before) else None
