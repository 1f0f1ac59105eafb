"""The fold: events in, window out (design, words: window, state of a block)."""

from __future__ import annotations

import pytest

from tests.scenes import (
    AT,
    COUNTER,
    answer,
    apply,
    call,
    compact_fold,
    fold_of,
    grow,
    paths,
    prompt,
    result,
    turn,
    window_of,
    words,
)
from timeline.blocks import Note, RangeSummary, StageDigest
from timeline.events import (
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    BlocksUnpinned,
    CompactionCompleted,
    ContextRendered,
    Covers,
    ModelCalled,
    PolicyChanged,
    Replacement,
    UnknownPayload,
    WrittenBy,
)
from timeline.events.other_payloads import CompactionFailed, HookFailed
from timeline.fold.fold import Fold


def states(fold: Fold) -> dict[int, str]:
    """Return the state of each live item by version."""
    return {item.version: item.state for item in fold.window.items}


def test_an_empty_conversation_has_an_empty_window() -> None:
    """Before the first block the window starts at the next version."""
    window = Fold("c").window
    assert (window.version, window.items, window.tokens, window.window_start) == (0, (), 0, 1)


def test_blocks_stand_in_the_order_of_their_versions_and_are_visible() -> None:
    """An appended block is visible until something is decided about it."""
    fold = fold_of(*turn(3), *turn(4))
    assert states(fold) == {2: "visible", 3: "visible", 4: "visible", 5: "visible"}
    assert fold.window.tokens == 5 + 3 + 5 + 4


@pytest.mark.shows("004-27", "004-59")
def test_a_hidden_block_counts_as_its_replacement() -> None:
    """Hidden is shown as something smaller; the block itself stays whole."""
    fold = fold_of(prompt(), call("a"), result("a", 100))
    apply(fold, 5, BlocksHidden(reason="ttl", blocks=(Replacement(version=4, text="[a: gone]", tokens=3),)))
    item = fold.window.items[-1]
    assert (item.state, item.shown_tokens, item.tokens) == ("hidden", 3, 100)
    assert item.block.text == words(100)


def test_an_omitted_block_counts_nothing() -> None:
    """Omitted is hidden without a replacement."""
    fold = fold_of(prompt(), answer(50))
    apply(fold, 4, BlocksHidden(mode="omit", reason="chitchat", blocks=(Replacement(version=3),)))
    assert states(fold) == {2: "visible", 3: "omitted"}
    assert fold.window.tokens == 5


def test_revealing_shows_the_block_again() -> None:
    """A reveal undoes both ways of hiding."""
    fold = fold_of(prompt(), answer(50), answer(60))
    apply(fold, 5, BlocksHidden(reason="ttl", blocks=(Replacement(version=2, text="x", tokens=1),)))
    apply(fold, 6, BlocksHidden(mode="omit", reason="ttl", blocks=(Replacement(version=3),)))
    apply(fold, 7, BlocksRevealed(versions=(2, 3)))
    assert set(states(fold).values()) == {"visible"}


def test_a_redacted_block_leaves_a_tombstone_at_its_address() -> None:
    """Text, data and arguments are erased; path and place stay."""
    fold = fold_of(prompt(), call("a", arguments={"key": "secret"}), result("a", data=["secret"]))
    path = fold.window.items[2].block.path
    apply(fold, 5, BlockRedacted(version=3))
    apply(fold, 6, BlockRedacted(version=4))
    assert states(fold) == {2: "visible", 3: "redacted", 4: "redacted"}
    assert "secret" not in str(fold.window.items)
    assert fold.window.items[2].block.path == path


def test_a_decision_about_what_is_not_live_changes_nothing() -> None:
    """A hide, reveal or pin that comes too late for its block is left alone."""
    fold = fold_of(*turn(), *turn())
    compact_fold(fold, 3)
    before = fold.window.items
    apply(
        fold,
        7,
        BlocksHidden(reason="ttl", blocks=(Replacement(version=2, text="x"), Replacement(version=99, text="x"))),
    )
    apply(fold, 8, BlocksRevealed(versions=(3,)))
    apply(fold, 9, BlocksPinned(versions=(2,)))
    assert fold.window.items == before


@pytest.mark.shows("002-8")
def test_a_summary_stands_where_its_range_begins() -> None:
    """The summary event is later than the blocks it left visible, and still stands before them."""
    fold = fold_of(*turn(), *turn(), *turn())
    version = compact_fold(fold, 5)
    assert [(item.version, item.place) for item in fold.window.items] == [(version, 2), (6, 6), (7, 7)]
    assert paths(fold.window.items)[0] == "su:c.conv.range.summary"


@pytest.mark.shows("002-8")
def test_carried_blocks_stand_behind_the_summary() -> None:
    """What is carried stays verbatim inside the covered range, after the summary."""
    fold = fold_of(prompt(), call("a"), result("a"), call("b"), result("b"), answer())
    compact_fold(fold, 4, carried=(2,))
    assert [(item.version, item.state) for item in fold.window.items] == [
        (8, "visible"),
        (2, "carried"),
        (5, "visible"),
        (6, "visible"),
        (7, "visible"),
    ]


def test_a_later_summary_supersedes_the_one_before() -> None:
    """One summary is live; its range begins where the first one began, and the number of compactions rises."""
    fold = fold_of(*turn(), *turn())
    compact_fold(fold, 3)
    grow(fold, *turn())
    second = compact_fold(fold, 5)
    window = fold.window
    assert [(item.version, item.place) for item in window.items] == [(second, 2), (7, 7), (8, 8)]
    assert [s.round for s in window.summaries] == [2]
    assert window.compactions == 2
    assert window.compaction is not None
    assert window.compaction.covers.summaries == (6,)


def test_a_summary_that_only_a_range_covers_leaves_with_its_block() -> None:
    """So the page of the bytes says it; only a forged log leaves the summary out of those that it names."""
    fold = fold_of(*turn(), *turn())
    first = compact_fold(fold, 3)
    grow(fold, *turn())
    payload = CompactionCompleted(
        block=RangeSummary(turn_id="c", path="su:c.conv.range.summary.2", text=words(10), at=AT),
        tokens=10,
        counter=COUNTER.name,
        covers=Covers(ranges=((2, first),)),
        round=2,
        written_by=WrittenBy(summarizer="hand"),
    )
    second = fold.version + 1
    apply(fold, second, payload)
    assert [item.version for item in fold.window.items] == [second, 7, 8]
    assert [summary.round for summary in fold.window.summaries] == [2]


def test_what_was_carried_is_covered_when_the_next_compaction_does_not_carry_it() -> None:
    """Carried blocks are candidates again next time."""
    fold = fold_of(prompt(), answer(), answer(response_id="m2"))
    compact_fold(fold, 3, carried=(2,))
    grow(fold, *turn())
    second = compact_fold(fold, 4)
    assert [item.version for item in fold.window.items] == [second, 6, 7]


def test_hidden_and_pinned_survive_being_carried() -> None:
    """A compaction does not undo what was decided about a block that it carries."""
    fold = fold_of(prompt(200), *turn())
    apply(fold, 5, BlocksHidden(reason="spill", blocks=(Replacement(version=2, text="[…]", tokens=1),)))
    apply(fold, 6, BlocksPinned(versions=(2,)))
    compact_fold(fold, 3, carried=(2,))
    item = fold.window.items[1]
    assert (item.version, item.state, item.carried, item.pinned, item.shown_tokens) == (2, "hidden", True, True, 1)


def test_the_window_starts_at_the_first_visible_block_that_is_not_carried() -> None:
    """Neither the summary's own version nor a carried block moves the start of the window."""
    fold = fold_of(*turn(), *turn())
    compact_fold(fold, 3, carried=(2,))
    assert fold.window.window_start == 4
    compact_fold(fold, 5, carried=(2,))
    assert fold.window.window_start == fold.version + 1


def test_the_result_of_a_covered_call_stands_alone() -> None:
    """A result that comes after its call was covered answers no live call."""
    fold = fold_of(prompt(), call("a", pending=True), answer(response_id="m2"))
    compact_fold(fold, 3)
    grow(fold, result("a"))
    item = fold.window.items[-1]
    assert (item.answers, item.response) == (None, 0)


def test_the_result_of_a_carried_call_answers_it() -> None:
    """A carried call is live."""
    fold = fold_of(prompt(), call("a", pending=True), answer(response_id="m2"))
    compact_fold(fold, 3, carried=(3,))
    grow(fold, result("a"))
    assert fold.window.items[-1].answers == 3


@pytest.mark.parametrize("block", [Note(text="n"), StageDigest(text="s")])
def test_notes_and_stage_digests_are_pinned_by_their_type(block: Note | StageDigest) -> None:
    """No cover may take them."""
    assert window_of(block).items[0].keeps


def test_a_pin_can_be_taken_off() -> None:
    """Pinning and unpinning are events like any other."""
    fold = fold_of(prompt())
    apply(fold, 3, BlocksPinned(versions=(2,)))
    assert fold.window.items[0].keeps
    apply(fold, 4, BlocksUnpinned(versions=(2,)))
    assert not fold.window.items[0].keeps


def test_a_failure_sets_back_until_the_visible_tokens_have_grown() -> None:
    """The setback names the size from which a new try is allowed."""
    fold = fold_of(*turn())
    apply(fold, 4, CompactionFailed(reason="no_progress", visible_tokens=1000, retry_after=256))
    assert fold.window.setback is not None
    assert (fold.window.setback.reason, fold.window.setback.retry_at) == ("no_progress", 1256)


def test_a_compaction_or_another_policy_lifts_the_setback() -> None:
    """Either one makes a new try worth while."""
    for lift in ("compaction", "policy"):
        fold = fold_of(*turn(), *turn())
        apply(fold, 6, CompactionFailed(reason="no_progress", visible_tokens=10, retry_after=256))
        if lift == "policy":
            apply(fold, 7, PolicyChanged(policy="p"))
        else:
            compact_fold(fold, 3)
        assert fold.window.setback is None


def test_usage_and_hooks_leave_the_items_alone() -> None:
    """Events about calls and hooks move the version only."""
    fold = fold_of(*turn())
    before = fold.window.items
    apply(fold, 4, ModelCalled(model="m"))
    apply(fold, 5, HookFailed(hook="on_before_compaction", error="x"))
    apply(fold, 6, UnknownPayload(type="weather.changed", data={}))
    assert fold.window.items == before
    assert fold.version == 6


def test_the_window_knows_the_newest_recorded_context() -> None:
    """A render that changes nothing is told by the fingerprint of the one before."""
    fold = fold_of(*turn())
    apply(fold, 4, ContextRendered(version=3, projection=1, fingerprint="f1", policy="p"))
    assert fold.window.rendered is not None
    assert fold.window.rendered.fingerprint == "f1"


def test_a_window_is_a_value() -> None:
    """The window that was handed out does not change when the log goes on."""
    fold = fold_of(*turn())
    before = fold.window
    grow(fold, *turn())
    assert len(before.items) == 2
    assert len(fold.window.items) == 4


def test_a_copy_is_independent() -> None:
    """A dry run folds a copy."""
    fold = fold_of(*turn(), *turn())
    twin = fold.copy()
    compact_fold(twin, 3)
    assert len(fold.window.items) == 4
    assert fold.window.summaries == ()
    assert fold.address([(prompt(), AT)])[0].turn_id == "turn_3"


def test_a_range_is_parted_where_a_summary_was_written_that_stands_before_it() -> None:
    """A summary's own version may lie among those that a later compaction covers; it stands where it stood."""
    fold = fold_of(*turn(3), *turn(4))
    summary = compact_fold(fold, 3)
    grow(fold, *turn(5))
    window = fold.window
    assert [item.version for item in window.items] == [summary, 4, 5, 7, 8]
    assert window.covers_between(1, 4).ranges == ((4, 5), (7, 7))
    assert window.covers_between(0, 4) == Covers(ranges=((2, 7),), summaries=(summary,))


def test_a_range_behind_an_earlier_summary_begins_with_its_own_first_item() -> None:
    """The summary and what stands between the two stay as they are: what no summary tells is not covered."""
    fold = fold_of(*turn(3))
    summary = compact_fold(fold, 3)
    grow(fold, *turn(4), *turn(5))
    window = fold.window
    assert [item.version for item in window.items] == [summary, 5, 6, 7, 8]
    assert window.covers_between(3, 5) == Covers(ranges=((7, 8),))


def test_only_the_newest_stage_digest_is_pinned_by_its_type() -> None:
    """It says all that holds; a decision may pin an earlier one all the same."""
    fold = fold_of(StageDigest(text="a"), StageDigest(text="b"), StageDigest(text="c"))
    apply(fold, 5, BlocksPinned(versions=(2,)))
    assert [(item.keeps, item.superseded) for item in fold.window.items] == [(True, True), (False, True), (True, False)]


@pytest.mark.parametrize(
    ("carried", "ranges"), [((4,), ((2, 3), (5, 5))), ((5,), ((2, 4),)), ((2, 5), ((3, 4),)), ((4, 5), ((2, 3),))]
)
def test_a_superseded_summary_hands_on_all_that_it_covers(
    carried: tuple[int, ...], ranges: tuple[tuple[int, int], ...]
) -> None:
    """What it carries may stay outside of the next compaction; what lies around that is covered all the same."""
    fold = fold_of(*turn(3), *turn(4), *turn(5))
    summary = compact_fold(fold, 5, carried=carried)
    assert [item.version for item in fold.window.items] == [summary, *carried, 6, 7]
    assert fold.window.covers_between(0, 1) == Covers(ranges=ranges, summaries=(summary,))
