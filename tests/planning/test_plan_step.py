"""Planning: from a window to one decision. Each test is one rule or one repair (design, section 6, Cut point)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import (
    COUNTER,
    answer,
    apply,
    call,
    compact_fold,
    exchange,
    first_step,
    fold_of,
    grow,
    planned,
    prompt,
    refused,
    result,
    small_policy,
    turn,
    window_of,
    words,
)
from timeline.blocks import Attachment, CustomBlock, Note, Reasoning, StageDigest, SystemMessage, TurnHeader
from timeline.events import BlocksPinned, SummaryParts
from timeline.planning.account import FixedPart
from timeline.planning.planned import PlannedSteps
from timeline.planning.plans import Plan

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.window import Window

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=300)


def covered_paths(plan: Plan) -> list[str]:
    """Return the paths of what a plan covers."""
    return [item.block.path for item in plan.covered]


def cut_at(window: Window, plan: Plan) -> str:
    """Return the path of the first block that a plan keeps."""
    return next(i.block.path for i in window.items if i.version == plan.cut_version)


@pytest.mark.shows("002-24", "002-33", "R-002-4")
def test_what_stands_before_the_cut_is_covered_and_the_cut_block_is_kept() -> None:
    """The retained window starts at the cut point."""
    window = window_of(*turn(400), *turn(400), *turn(400))
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=400))
    assert cut_at(window, plan) == "ar:turn_3.assistant.completion"
    assert plan.covers is not None
    assert plan.covers.ranges == ((2, 6),)
    assert plan.covers.summaries == ()
    assert covered_paths(plan)[-1] == "ar:turn_2.assistant.completion"


def test_a_cut_at_a_turn_start_splits_nothing() -> None:
    """A turn that is kept whole carries nothing and has no prefix."""
    window = window_of(*turn(400), *turn(400), *turn(300, asked=100))
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=400))
    assert cut_at(window, plan) == "ar:turn_3.user.prompt"
    assert (plan.split_turn_id, plan.carried, plan.caps.turn_prefix) == (None, (), 0)


def test_a_cut_inside_a_turn_splits_it_and_carries_its_prompt() -> None:
    """The split turn's own prompt stays verbatim behind the summary."""
    window = window_of(*turn(400), prompt(50), *exchange("a", 400), *exchange("b", 400), *exchange("d", 300))
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=300))
    assert plan.split_turn_id == "turn_2"
    assert plan.carried == (4,)
    assert "ar:turn_2.user.prompt" not in covered_paths(plan)
    assert plan.caps.turn_prefix > 0


def test_a_cut_at_the_users_own_block_in_mid_turn_is_no_split() -> None:
    """Any block by the user is a turn start (seed 002), so nothing of that turn is summarised apart."""
    reminder = CustomBlock(type="app.reminder", text=words(10), turn_id="turn_2")
    window = window_of(*turn(400), prompt(50), *exchange("a", 800), reminder, *exchange("b", 300))
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=310))
    assert cut_at(window, plan) == "bl:turn_2.app.reminder"
    assert (plan.split_turn_id, plan.carried) == (None, ())


def test_the_prompts_attachments_are_carried_with_it() -> None:
    """The opening's prompt and attachments stay, its header is covered."""
    opening = (TurnHeader(text="h"), prompt(50), Attachment(text="a"))
    window = window_of(*turn(400), *opening, *exchange("a", 400), *exchange("b", 400), *exchange("d", 300))
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=300))
    assert plan.carried == (5, 6)
    assert "bl:turn_2.turn.header" in covered_paths(plan)


def test_the_newest_prompt_of_a_split_turn_is_carried_beside_the_first() -> None:
    """A correction in mid-turn is what the model is working on."""
    more = prompt(20, turn_id="turn_2")
    window = window_of(*turn(400), prompt(50), *exchange("a", 400), more, *exchange("b", 400), *exchange("d", 300))
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=300))
    assert plan.carried == (4, 7)


def test_the_newest_prompt_of_a_split_turn_is_carried_however_large_it_is() -> None:
    """It alone takes more than the share of what is carried: what the model is working on is no old follow-up."""
    pasted = prompt(700, turn_id="turn_2")
    window = window_of(*turn(400), prompt(50), *exchange("a", 900), pasted, *exchange("b", 900), *exchange("d", 300))
    plan = planned(window, POLICY)
    assert plan.carried == (4, 7)


def test_pinned_blocks_are_carried_with_their_group() -> None:
    """A pinned result keeps its call; a pinned call keeps its result."""
    fold = fold_of(prompt(), *exchange("a", 50), *turn(400), *turn(400), *turn(400))
    apply(fold, 11, BlocksPinned(versions=(4,)))
    plan = planned(fold.window, small_policy(max_tokens=2_000, keep_recent_tokens=400))
    assert plan.carried == (3, 4, 9)


@pytest.mark.parametrize("block", [Note(text="n"), StageDigest(text="s")])
def test_notes_and_stage_digests_are_carried(block: Note | StageDigest) -> None:
    """They are pinned by their type."""
    window = window_of(block, *turn(400), *turn(400), *turn(300, asked=100))
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=400))
    assert plan.carried == (2,)


def test_a_pending_call_is_carried_with_its_group() -> None:
    """A call that waits for approval is never covered."""
    waiting = (call("p", response_id="m1", pending=True), call("q", response_id="m1"), result("q", 50))
    window = window_of(prompt(), *waiting, *turn(400), *turn(400), *turn(300, asked=100))
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=400))
    assert plan.carried == (3, 4, 5)


def test_a_pending_call_may_be_cut_off_from_the_result_that_came_much_later() -> None:
    """The call is carried, its result is kept: neither is shown without the other, and the cut does not wait."""
    window = window_of(
        prompt(),
        call("p", response_id="m1", pending=True),
        *turn(400),
        *turn(400),
        prompt(),
        result("p", 50),
        *turn(200),
    )
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=256))
    assert cut_at(window, plan) == "ar:turn_4.user.prompt"
    assert plan.carried == (3,)


def test_the_open_calls_of_the_newest_response_are_never_covered() -> None:
    """However large what follows them is."""
    parallel = [call(c, response_id="m9") for c in "abc"]
    window = window_of(*turn(600), *turn(600), prompt(), *parallel, result("a", 600))
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=100))
    assert not {"tc:turn_3.b.call", "tc:turn_3.c.call"} & set(covered_paths(plan))


def test_a_dead_call_may_be_covered() -> None:
    """A call that the model gave up is history."""
    window = window_of(prompt(), call("x", response_id="m1"), answer(400, response_id="m2"), *turn(400), *turn(400))
    plan = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=300))
    assert "tc:turn_1.x.call" in covered_paths(plan)


@pytest.mark.shows("004-17")
def test_the_next_compaction_begins_where_the_last_one_began_and_supersedes_its_summary() -> None:
    """The range stays one; the previous summary is integrated and named."""
    fold = fold_of(*turn(400), *turn(400))
    first = compact_fold(fold, 3, tokens=100)
    grow(fold, *turn(400), *turn(400), *turn(300, asked=100))
    plan = planned(fold.window, small_policy(max_tokens=2_000, keep_recent_tokens=400))
    assert plan.covers is not None
    assert plan.covers.ranges == ((2, 10),)
    assert plan.covers.summaries == (first,)
    assert covered_paths(plan)[0] == "ar:turn_2.user.prompt"


def test_what_was_carried_is_covered_once_its_turn_is_over() -> None:
    """Carried blocks are candidates again next time."""
    fold = fold_of(prompt(50), *exchange("a", 400), *exchange("b", 400))
    compact_fold(fold, 4, carried=(2,), split_turn_id="turn_1")
    grow(fold, *turn(400), *turn(300, asked=100))
    plan = planned(fold.window, small_policy(max_tokens=2_000, keep_recent_tokens=400))
    assert plan.carried == ()
    assert covered_paths(plan)[0] == "ar:turn_1.user.prompt"


def test_the_prompt_is_carried_again_when_its_turn_is_split_again() -> None:
    """However often a turn is split, its prompt stays."""
    fold = fold_of(prompt(50), *exchange("a", 400), *exchange("b", 400))
    compact_fold(fold, 4, carried=(2,), split_turn_id="turn_1")
    grow(fold, *exchange("d", 500), *exchange("e", 500), *exchange("f", 300))
    plan = planned(fold.window, small_policy(max_tokens=2_000, keep_recent_tokens=300))
    assert (plan.split_turn_id, plan.carried) == ("turn_1", (2,))


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("behind", [0, 2])
def test_the_prompts_attachments_are_carried_again_with_it(before: int, behind: int) -> None:
    """On both sides of the prompt, and no other turn's: an agent that works for long still sees what it was given."""
    beside = [Attachment(text="a", turn_id="turn_2") for _ in range(before + behind)]
    opening = [*beside[:before], prompt(50, turn_id="turn_2"), *beside[before:]]
    fold = fold_of(Attachment(text="another turn's", turn_id="turn_1"), *opening, *exchange("a", 400))
    asked = tuple(range(3, 3 + len(opening)))
    compact_fold(fold, fold.version, carried=(2, *asked), split_turn_id="turn_2")
    grow(fold, *exchange("d", 500), *exchange("e", 500), *exchange("f", 300))
    plan = planned(fold.window, small_policy(max_tokens=2_000, keep_recent_tokens=300))
    assert (plan.split_turn_id, plan.carried, plan.ahead) == ("turn_2", asked, asked)


# The repairs, one by one


def test_a_last_result_larger_than_the_keep_does_not_keep_everything() -> None:
    """Twenty turns and one last result of 22.5k tokens: everything before the last round is covered."""
    turns = [block for _ in range(20) for block in (*turn(2_000), *exchange("x", 2_000), answer(20))]
    window = window_of(*turns, prompt(), call("big"), result("big", 22_500))
    plan = planned(window, small_policy())
    assert cut_at(window, plan) == "tc:turn_21.big.call"
    assert not plan.target_missed
    assert plan.expected_tokens < 0.7 * 80_000


def test_parallel_calls_are_kept_or_covered_together() -> None:
    """Where the walk back stops among ``call call call call`` and their results, no result loses its call."""
    calls = [call(f"c{n}", arguments={"text": words(50)}) for n in range(4)]
    results = [result(f"c{n}", 50) for n in range(4)]
    window = window_of(*turn(500), *turn(500), prompt(), *calls, *results, *turn(200))
    for keep in range(10, 800, 30):
        policy = small_policy(max_tokens=1_500, keep_recent_tokens=keep)
        decision = PlannedSteps().plan(first_step(policy), window, FixedPart(), policy, COUNTER)
        if isinstance(decision, Plan):
            batch = {i.version for i in decision.covered if i.block.call_id}
            assert len(batch) in {0, 8}


def test_a_conversation_that_is_one_turn_is_cut_inside_it() -> None:
    """An autonomous session of a single prompt compacts like any other."""
    rounds = [block for n in range(60) for block in exchange(f"c{n}", 200)]
    window = window_of(prompt(100), *rounds)
    plan = planned(window, small_policy(max_tokens=10_000))
    assert plan.split_turn_id == "turn_1"
    assert plan.carried == (2,)
    assert plan.expected_tokens <= 7_000
    assert not plan.target_missed


def test_an_oversize_prompt_alone_is_previewed() -> None:
    """With no cut to make, a pasted prompt is shown as a preview of at most 400 tokens with its path."""
    window = window_of(prompt(90_000))
    plan = planned(window, small_policy())
    assert plan.covers is None
    [preview] = plan.previews
    assert preview.version == 2
    assert preview.tokens <= 400
    assert f"all of it: @{preview.version} …]" in preview.text


def test_an_oversize_newest_group_is_previewed_and_the_rest_covered() -> None:
    """The newest group stays, its results shrink, and what is before it is summarised."""
    parallel = [call("a"), call("b"), call("d"), result("a", 3_000), result("b", 4_000), result("d", 100)]
    window = window_of(*turn(500), prompt(), *parallel)
    plan = planned(window, small_policy(max_tokens=5_000))
    assert cut_at(window, plan) == "tc:turn_2.a.call"
    assert {s.version for s in plan.previews} == {8, 9}
    assert plan.expected_tokens <= 3_500


def test_the_largest_blocks_are_previewed_first_and_no_more_than_needed() -> None:
    """It stops when the target is met."""
    parallel = [call("a"), call("b"), call("d"), result("a", 600), result("b", 4_000), result("d", 700)]
    plan = planned(window_of(prompt(), *parallel), small_policy(max_tokens=5_000))
    assert [s.version for s in plan.previews] == [7]


def test_nothing_is_previewed_while_the_kept_part_is_at_or_below_the_trigger() -> None:
    """A context that misses the target but holds the trigger is left whole."""
    window = window_of(*turn(4_000), prompt(), call("a"), result("a", 3_000))
    plan = planned(window, small_policy(max_tokens=5_000))
    assert plan.previews == ()
    assert plan.target_missed
    assert 3_500 < plan.expected_tokens <= 4_500


def test_oversize_arguments_are_previewed_too() -> None:
    """A call that writes a huge file is shown with shortened arguments, still a JSON object."""
    window = window_of(
        *turn(500), prompt(), call("w", arguments={"path": "a.py", "content": words(8_000)}), result("w")
    )
    plan = planned(window, small_policy(max_tokens=5_000))
    [preview] = plan.previews
    assert preview.arguments is not None
    assert preview.arguments["path"] == "a.py"
    assert preview.tokens <= 400


def test_carried_blocks_beyond_their_share_are_previewed() -> None:
    """Together beyond 15 % of the limit they show previews with a path, the largest first."""
    notes = [Note(text=words(n)) for n in (1_500, 100, 100)]
    window = window_of(*notes, *turn(2_000), *turn(2_000), *turn(500))
    plan = planned(window, small_policy(max_tokens=5_000, keep_recent_tokens=500))
    assert plan.carried == (2, 3, 4, 9)
    assert [s.version for s in plan.previews] == [2]
    assert f"all of it: @{plan.previews[0].version} …]" in plan.previews[0].text
    assert plan.expected_tokens <= 5_000 * 0.7


def test_the_keep_is_halved_until_the_target_is_met() -> None:
    """A keep that is too large for the limit is halved, and the plan says which one it used."""
    window = window_of(*[block for _ in range(20) for block in turn(200)])
    plan = planned(window, small_policy(max_tokens=4_000, keep_recent_tokens=3_600))
    assert plan.keep_recent_tokens == 1_800
    assert not plan.target_missed
    assert plan.expected_tokens <= 2_800


def test_the_keep_is_halved_four_times_at_most() -> None:
    """After that the cut that keeps least is taken and the missed target is reported."""
    rounds = [block for n in range(3) for block in exchange(f"c{n}", 1_200)]
    window = window_of(prompt(), *rounds, answer(3_000, response_id="big"))
    plan = planned(window, small_policy(max_tokens=4_000, keep_recent_tokens=3_900))
    assert plan.target_missed
    assert cut_at(window, plan) == "ar:turn_1.assistant.completion"


def test_where_no_halving_is_enough_the_newest_group_is_what_is_kept() -> None:
    """A keep that is far too large even when halved does not stand in the way."""
    window = window_of(*[block for _ in range(20) for block in turn(200)])
    plan = planned(window, small_policy(max_tokens=4_000, keep_recent_tokens=60_000))
    assert cut_at(window, plan) == "ar:turn_20.assistant.completion"


def test_no_halving_means_one_try() -> None:
    """The number of halvings is the policy's."""
    window = window_of(*[block for _ in range(20) for block in turn(200)])
    plan = planned(window, small_policy(max_tokens=4_000, keep_recent_tokens=2_300, halvings=0))
    assert plan.keep_recent_tokens == 2_300
    assert plan.target_missed


def test_together_splits_a_turn_and_asks_for_one_summary() -> None:
    """With ``on_split = "together"`` the same is covered and carried; no part of the summary is the prefix's alone."""
    window = window_of(*turn(500), *turn(500), prompt(), *exchange("a", 300), *exchange("b", 300))
    split = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=300))
    together = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=300, on_split="together"))
    assert (together.split_turn_id, together.covered, together.carried) == ("turn_3", split.covered, split.carried)
    assert (together.prefix_turn_id, together.caps.turn_prefix) == (None, 0)


def test_whole_turn_moves_the_cut_to_the_start_of_a_turn() -> None:
    """With ``on_split = "whole_turn"`` nothing is split and nothing is carried."""
    window = window_of(*turn(500), *turn(500), prompt(), *exchange("a", 300), *exchange("b", 300))
    split = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=300))
    whole = planned(window, small_policy(max_tokens=2_000, keep_recent_tokens=300, on_split="whole_turn"))
    assert split.split_turn_id == "turn_3"
    assert (whole.split_turn_id, whole.carried) == (None, ())
    assert cut_at(window, whole) == "ar:turn_3.user.prompt"


def test_whole_turn_shows_previews_where_the_only_turn_is_too_large() -> None:
    """A single turn has no legal cut then; its results shrink instead."""
    window = window_of(prompt(), *exchange("a", 2_000), *exchange("b", 2_500))
    plan = planned(window, small_policy(max_tokens=4_000, on_split="whole_turn"))
    assert plan.covers is None
    assert [s.version for s in plan.previews] == [6]


# Caps of the summary


@pytest.mark.shows("002-31")
def test_the_summarys_caps_are_the_policys_in_a_large_context() -> None:
    """800 tokens of history, 400 of turn prefix, 300 of exact record."""
    window = window_of(*turn(40_000), prompt(), *exchange("a", 20_000), *exchange("b", 10_000))
    caps = planned(window, small_policy(keep_recent_tokens=10_000)).caps
    assert (caps.history, caps.turn_prefix, caps.digest) == (800, 400, 300)


def test_the_summarys_caps_shrink_with_the_room() -> None:
    """In a small context a summary takes an eighth of the room, a prefix and a record a sixteenth."""
    window = window_of(*turn(2_000), prompt(), *exchange("a", 1_000), *exchange("b", 300))
    caps = planned(window, small_policy(max_tokens=3_600, keep_recent_tokens=300), FixedPart(system=400)).caps
    assert (caps.history, caps.turn_prefix, caps.digest) == (400, 200, 200)


def test_a_summary_is_at_most_half_of_what_it_replaces() -> None:
    """Little text is not blown up."""
    caps = planned(window_of(*turn(1_500), *turn(300)), small_policy(keep_recent_tokens=300)).caps
    assert caps.history == (5 + 1_500) // 2


def test_a_prefix_that_is_integrated_again_keeps_its_room() -> None:
    """When the same turn is split again, the cap counts the old prefix and half of the new rounds."""
    fold = fold_of(prompt(50), *exchange("a", 2_000), *exchange("b", 700))
    parts = SummaryParts(history=words(700), turn_prefix=words(300))
    compact_fold(fold, 4, carried=(2,), split_turn_id="turn_1", tokens=1_050, parts=parts)
    grow(fold, *exchange("d", 700), *exchange("e", 300))
    caps = planned(fold.window, small_policy(keep_recent_tokens=300, turn_prefix_tokens=2_000)).caps
    assert caps.turn_prefix == 300 + (2 + 700 + 2 + 700) // 2


@pytest.mark.parametrize(("then", "cap"), [([], 200), ([prompt(40)], 200 + 100 + (2 + 300) // 2)])
def test_the_cap_of_a_history_counts_the_old_texts_that_it_integrates(then: list[Block], cap: int) -> None:
    """The old prefix is part of it once another turn is split; of the turn that is split again it stays the prefix."""
    fold = fold_of(*turn(300), prompt(50), *exchange("a", 500), *exchange("b", 300))
    parts = SummaryParts(history=words(200), turn_prefix=words(100))
    compact_fold(fold, 6, split_turn_id="turn_2", tokens=350, parts=parts)
    grow(fold, *then, *exchange("d", 900), *exchange("e", 300))
    assert planned(fold.window, small_policy(keep_recent_tokens=300)).caps.history == cap


def test_a_history_that_is_kept_verbatim_is_charged_with_what_it_is() -> None:
    """Whatever the cap of a new one: too long for a smaller limit, or shorter than the least."""
    for kept in (700, 20):
        fold = fold_of(prompt(50), *exchange("a", 900), *exchange("b", 1_500))
        parts = SummaryParts(history=words(kept), turn_prefix=words(100))
        compact_fold(fold, 4, carried=(2,), split_turn_id="turn_1", tokens=kept + 150, parts=parts)
        grow(fold, *exchange("d", 900), *exchange("e", 300))
        assert planned(fold.window, POLICY).caps.history == kept


# Refusals


def test_an_empty_window_has_nothing_to_cover() -> None:
    """A typed reason, not a silent no-op."""
    refusal = refused(window_of(), small_policy())
    assert (refusal.reason, refusal.facts["messages"]) == ("nothing_to_cover", 0)


def test_a_single_group_has_nothing_to_cover() -> None:
    """One round below the trigger cannot be cut and needs no previews."""
    assert refused(window_of(prompt(500)), small_policy()).reason == "nothing_to_cover"
    assert (
        refused(window_of(TurnHeader(), prompt(500), Attachment(text="x")), small_policy()).reason == "nothing_to_cover"
    )


def test_a_compaction_that_would_free_too_little_is_refused() -> None:
    """It must free a tenth of the visible tokens and at least 256, else the reason is ``no_progress``."""
    window = window_of(*turn(100), *turn(5_000), *turn(300))
    refusal = refused(window, small_policy(keep_recent_tokens=5_000))
    assert refusal.reason == "no_progress"
    assert refusal.facts["would_free"] < refusal.facts["least"] == 542


def test_a_compaction_that_frees_exactly_the_least_is_made() -> None:
    """The least is enough; one token less is not."""
    policy = small_policy(keep_recent_tokens=300)
    plan = planned(window_of(*turn(1_346), *turn(300)), policy)
    assert plan.before_tokens - plan.expected_tokens == plan.least_progress == 256
    assert refused(window_of(*turn(1_345), *turn(300)), policy).facts["would_free"] == 255


def test_the_least_progress_is_256_tokens_in_a_small_context() -> None:
    """A tenth of little is too little."""
    refusal = refused(window_of(*turn(100), *turn(100)), small_policy(keep_recent_tokens=50))
    assert refusal.facts["least"] == 256


def test_pins_alone_are_nothing_to_cover() -> None:
    """What may not be covered cannot be compacted."""
    window = window_of(Note(text=words(300)), Note(text=words(300)), prompt(), answer())
    assert refused(window, small_policy(keep_recent_tokens=5)).reason in {"nothing_to_cover", "no_progress"}


def test_a_summary_and_what_it_carried_are_nothing_to_cover() -> None:
    """Directly after a compaction there is nothing new."""
    fold = fold_of(prompt(50), answer(400), answer(400, response_id="m2"))
    compact_fold(fold, 3, carried=(2,), split_turn_id="turn_1")
    assert refused(fold.window, small_policy(keep_recent_tokens=100)).reason == "nothing_to_cover"


def test_planning_is_deterministic() -> None:
    """The same window and policy give the same plan."""
    blocks = [
        Reasoning(text="r"),
        SystemMessage(text="s"),
        *turn(400),
        prompt(),
        *exchange("a", 900),
        *exchange("b", 300),
    ]
    policy = small_policy(max_tokens=1_500)
    assert planned(window_of(*blocks), policy) == planned(window_of(*blocks), policy)


def test_the_fixed_part_lowers_the_keep() -> None:
    """The default keep is a fifth of what the system prompt and tools leave."""
    window = window_of(*[block for _ in range(20) for block in turn(200)])
    plan = planned(window, small_policy(max_tokens=4_000), FixedPart(system=800, tools=200))
    assert plan.keep_recent_tokens == 600
