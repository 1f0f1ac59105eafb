"""Collapsing stages: which run is covered, how far, and what never is (seed 000, P2 and P4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import COUNTER, apply, call, compact_fold, exchange, fold_of, grow, paths, prompt, result, turn
from timeline import policies
from timeline.blocks import Note, StageDigest, SystemMessage
from timeline.events import BlocksPinned
from timeline.events.other_payloads import StageApproved, StageEntered
from timeline.planning.account import FixedPart
from timeline.planning.collapse_stages import memory_digest
from timeline.planning.message_cuts import cut_start
from timeline.planning.planned import PlannedSteps
from timeline.planning.plans import Plan, Refusal
from timeline.policy.steps import CollapseStages, MemoryDigest, Oldest, Summarize

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.fold import Fold

OLDEST: Final = CollapseStages(which="oldest", recent=1)
RECENT: Final = CollapseStages(which="recent", recent=1)
WORDS: Final = MemoryDigest(heading="DECIDED")


def enter(fold: Fold, stage: str) -> None:
    """Begin a stage."""
    apply(fold, fold.version + 1, StageEntered(stage=stage, label=stage.upper()))


def approve(fold: Fold, stage: str, first: int, last: int, *, digest: bool = True) -> None:
    """Approve a stage whose messages stand from one version to another, and append the digest."""
    count = last - first + 1
    approval = StageApproved(
        stage=stage, label=stage.upper(), decision=f"{stage}!", first=first, last=last, count=count
    )
    apply(fold, fold.version + 1, approval)
    if digest:
        grow(fold, StageDigest(text=f"digest up to {stage}"))


def through(fold: Fold, stage: str, *blocks: Block) -> None:
    """Go through a stage."""
    enter(fold, stage)
    first = fold.version + 1
    grow(fold, *blocks)
    approve(fold, stage, first, fold.version)


def staged(*names: str, tokens: int = 100) -> Fold:
    """Go through stages of a turn each, then ask something."""
    fold = fold_of()
    for name in names:
        through(fold, name, *turn(tokens))
    grow(fold, *turn(tokens))
    return fold


def decided(fold: Fold, step: Any = OLDEST, most: int | None = None, **changes: Any) -> Plan | Refusal:
    """Plan a step that is to bring the messages down to a figure, or as far as it can."""
    policy = policies.priority_chain(**{"max_tokens": 1_000, **changes})
    decision = PlannedSteps().plan(step, fold.window, FixedPart(), policy, COUNTER, most=most or 1)
    assert isinstance(decision, Plan | Refusal)
    return decision


def planned(fold: Fold, step: Any = OLDEST, most: int | None = None, **changes: Any) -> Plan:
    """Plan what is not refused."""
    decision = decided(fold, step, most, **changes)
    assert isinstance(decision, Plan), decision
    return decision


def told(plan: Plan) -> str:
    """Return the line that takes the place of the stages' messages."""
    assert plan.written is not None
    return plan.written.history


def named(plan: Plan) -> str:
    """Return the stages that the line names."""
    return told(plan).split(": ")[1].split(". ")[0]


@pytest.mark.shows("000-24")
def test_all_but_the_newest_stages_are_the_oldest() -> None:
    """P2 spares the recent ones; P4 takes them too."""
    fold = staged("a", "b", "c")
    assert named(planned(fold)) == "A; B"
    assert named(planned(fold, RECENT)) == "A; B; C"
    assert planned(fold).written_by == "stage_digest"


@pytest.mark.shows("000-24", "000-27", "R-000-11")
def test_stages_are_taken_one_at_a_time_until_it_is_enough() -> None:
    """After each one it is counted anew."""
    fold = staged("a", "b", "c")
    tokens = fold.window.tokens
    assert named(planned(fold, RECENT, most=tokens - 60)) == "A"
    assert named(planned(fold, RECENT, most=tokens - 110)) == "A; B"


def test_what_is_expected_is_what_is_left() -> None:
    """The line is written already, so its size is known: it has no heading."""
    fold = staged("a", "b", "c")
    plan = planned(fold, RECENT, most=fold.window.tokens - 60)
    kept = sum(item.tokens for item in fold.window.items) - sum(item.tokens for item in plan.covered)
    assert plan.expected_tokens == kept + COUNTER.count(told(plan))


@pytest.mark.shows("000-25", "R-000-12")
def test_one_range_goes_from_the_first_stages_first_block_to_the_last_ones_last() -> None:
    """The digests in between go with it: the newest one holds what they say."""
    fold = staged("a", "b", "c")
    plan = planned(fold)
    assert [item.version for item in plan.covered] == [3, 4, 6, 8, 9]
    assert plan.covers is not None
    assert plan.covers.ranges[0][0] == 3
    assert plan.carried == ()


@pytest.mark.shows("000-39", "R-000-23")
def test_the_newest_digest_stays_in_view() -> None:
    """It is carried where it lies inside of what is covered."""
    fold = fold_of()
    through(fold, "a", *turn(100))
    enter(fold, "b")
    grow(fold, *turn(100))
    approve(fold, "b", 8, 9, digest=False)
    grow(fold, *turn(100))
    plan = planned(fold, RECENT)
    assert named(plan) == "A; B"
    assert plan.carried == (6,)


def test_messages_of_no_stage_part_two_compactions() -> None:
    """Nothing is covered that no decision speaks for: first the stages before them, then those behind."""
    fold = fold_of()
    through(fold, "a", *turn(100))
    through(fold, "b", *turn(100))
    grow(fold, *turn(100))
    through(fold, "c", *turn(100))
    grow(fold, *turn(100))
    plan = planned(fold, RECENT)
    assert named(plan) == "A; B"
    compact_fold(fold, plan.covered[-1].version)
    assert named(planned(fold, RECENT)) == "C"


def test_notes_and_the_runtimes_own_words_part_nothing() -> None:
    """A note stays in view inside the range, and a message of the runtime goes with it."""
    fold = fold_of()
    through(fold, "a", *turn(100))
    grow(fold, Note(text="keep me"), SystemMessage(text="hidden"))
    through(fold, "b", *turn(100))
    grow(fold, *turn(100))
    plan = planned(fold, RECENT)
    assert named(plan) == "A; B"
    assert plan.carried == (7,)
    assert 8 in {item.version for item in plan.covered}


def test_a_stage_is_collapsed_once() -> None:
    """What is out of view already is nothing to cover; a prompt that stays pinned is none either."""
    fold = fold_of()
    through(fold, "a", *turn(100))
    apply(fold, fold.version + 1, BlocksPinned(versions=(3,)))
    grow(fold, *turn(100))
    plan = planned(fold, RECENT)
    assert plan.carried == (3,)
    compact_fold(fold, 4, carried=plan.carried)
    assert isinstance(decided(fold, RECENT), Refusal)


def test_a_group_that_reaches_out_of_a_stage_stays() -> None:
    """A call that the stage was approved in is not parted from its result."""
    fold = fold_of()
    enter(fold, "a")
    grow(fold, *turn(100), call("approve", response_id="r"))
    approve(fold, "a", 3, 5)
    grow(fold, result("approve", 50), *turn(100))
    plan = planned(fold, RECENT)
    assert [item.version for item in plan.covered] == [3, 4]


def test_a_group_between_two_collapsed_stages_goes_with_them() -> None:
    """It lies inside the range, and is divided by nothing."""
    fold = fold_of()
    enter(fold, "a")
    grow(fold, *turn(100), call("approve", response_id="r"))
    approve(fold, "a", 3, 5)
    enter(fold, "b")
    grow(fold, result("approve", 50), *turn(100))
    approve(fold, "b", 9, 11)
    grow(fold, *turn(100))
    plan = planned(fold, RECENT)
    assert named(plan) == "A; B"
    assert {5, 9} <= {item.version for item in plan.covered}


def test_the_newest_prompt_stays_where_a_run_goes_on_behind_the_stage() -> None:
    """An agent that goes through its stages by itself has one prompt; it is carried."""
    fold = fold_of()
    through(fold, "a", *turn(100, asked=20))
    enter(fold, "b")
    grow(fold, *exchange("x", 50))
    plan = planned(fold, RECENT)
    assert plan.carried == (3,)
    assert [item.version for item in plan.covered] == [4]


@pytest.mark.parametrize("digest", [True, False])
def test_what_the_model_is_to_go_on_from_is_never_covered(digest: bool) -> None:  # noqa: FBT001 - a table
    """A stage that was approved just now, with nothing said since, has to wait, and no part of it goes before."""
    fold = fold_of()
    enter(fold, "a")
    grow(fold, *turn(100), *turn(100))
    approve(fold, "a", 3, fold.version, digest=digest)
    assert isinstance(decided(fold, RECENT), Refusal)
    enter(fold, "b")
    assert isinstance(decided(fold, RECENT), Refusal)
    grow(fold, prompt())
    assert named(planned(fold, RECENT)) == "A"


def test_the_current_stage_is_never_covered() -> None:
    """Its decision is still to come."""
    fold = fold_of()
    enter(fold, "a")
    grow(fold, *turn(100), *turn(100))
    assert isinstance(decided(fold, RECENT), Refusal)


def test_a_summary_inside_a_stage_gives_way_to_its_decision() -> None:
    """What was summarised while the stage went on is what it decided on."""
    fold = fold_of()
    enter(fold, "a")
    grow(fold, *turn(100), *turn(100))
    summary = compact_fold(fold, 4, tokens=40)
    approve(fold, "a", 3, 6)
    grow(fold, *turn(100))
    plan = planned(fold, RECENT)
    assert named(plan) == "A"
    assert plan.covers is not None
    assert plan.covers.summaries == (summary,)
    assert [item.version for item in plan.covered] == [5, 6]


def test_a_summary_that_speaks_for_later_messages_too_stays() -> None:
    """The stage's decision could not stand for those."""
    fold = fold_of()
    enter(fold, "a")
    grow(fold, *turn(100), *turn(100))
    apply(fold, fold.version + 1, StageApproved(stage="a", decision="d", first=3, last=4, count=2))
    compact_fold(fold, 5, carried=(3,))
    grow(fold, *turn(100))
    assert isinstance(decided(fold, RECENT), Refusal)


def test_a_run_that_frees_too_little_is_left_for_one_that_frees_enough() -> None:
    """Two words give way to a longer line: that is no gain."""
    fold = fold_of()
    through(fold, "a", *turn(1, asked=1))
    grow(fold, *turn(100))
    through(fold, "b", *turn(100))
    grow(fold, *turn(100))
    assert named(planned(fold, RECENT)) == "B"


@pytest.mark.shows("000-23", "000-51", "R-000-11")
def test_without_stages_there_is_nothing_to_collapse() -> None:
    """A conversation without stages skips P2 and P4."""
    decision = decided(fold_of(*turn(100), *turn(100)), RECENT)
    assert isinstance(decision, Refusal)
    assert decision.reason == "nothing_to_cover"


@pytest.mark.shows("000-28", "R-000-14")
@pytest.mark.parametrize(
    ("scope", "covered"), [("stage", [8, 9]), ("conversation", [3, 4])], ids=["stage", "conversation"]
)
def test_the_oldest_messages_are_those_of_the_current_stage(scope: Any, covered: list[int]) -> None:
    """P3 in a staged conversation leaves alone what stands before, unless it is told otherwise."""
    fold = fold_of()
    through(fold, "a", *turn(200))
    enter(fold, "b")
    grow(fold, *turn(200), *turn(200))
    plan = planned(fold, Summarize(cut=Oldest(messages=2, scope=scope)))
    assert [item.version for item in plan.covered] == covered


@pytest.mark.shows("000-28")
def test_between_two_stages_the_oldest_messages_belong_to_neither() -> None:
    """What is approved is left to the steps that know its decision."""
    fold = fold_of()
    through(fold, "a", *turn(200))
    grow(fold, *turn(200))
    assert paths(fold.window.items[cut_start(Oldest(), fold.window, ()) :]) == [
        "bl:turn_1.stage.digest",
        "ar:turn_2.user.prompt",
        "ar:turn_2.assistant.completion",
    ]


@pytest.mark.shows("000-42", "R-000-22")
def test_a_digest_has_a_heading_and_a_line_a_stage() -> None:
    """With no stage there is no text."""
    approved = [StageApproved(stage="a", label="A", decision="x"), StageApproved(stage="b", decision="y")]
    assert memory_digest(approved, WORDS) == "DECIDED\n- A: x\n- b: y"
    assert memory_digest([], WORDS) == ""


@pytest.mark.shows("000-42")
def test_the_line_of_a_stage_is_one_line() -> None:
    """Whatever its label and decision look like."""
    approved = [StageApproved(stage="a", label="A\tB", decision="one\n\n  two")]
    assert memory_digest(approved, WORDS).splitlines()[1:] == ["- A B: one two"]
