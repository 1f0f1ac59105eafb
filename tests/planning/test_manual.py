"""Hiding, revealing, pinning and unpinning single blocks, with their groups (design, sections 4 and 8)."""

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
    fold_of,
    grow,
    prompt,
    result,
    turn,
    words,
)
from timeline.blocks import Attachment, Note, Reasoning, StageDigest, TurnHeader
from timeline.errors import BlockProtected, InvalidBlock
from timeline.events import ABANDONED, REJECTED, BlockRedacted, BlocksHidden, Replacement
from timeline.planning.manual import HideMode, group_of, hide, pin, reveal, unpin

if TYPE_CHECKING:
    from timeline.fold.fold import Fold
    from timeline.fold.window import Item


def item_at(fold: Fold, version: int) -> Item:
    """Return the live item of a version."""
    return next(item for item in fold.window.items if item.version == version)


def hide_at(fold: Fold, version: int, *, mode: HideMode = "replace", text: str | None = None) -> BlocksHidden:
    """Hide the block of a version, and fold that."""
    payload = hide(fold.window, item_at(fold, version), mode=mode, text=text, most=60, counter=COUNTER)
    apply(fold, fold.version + 1, payload)
    return payload


def states(fold: Fold) -> list[str]:
    """Return the states of all live blocks, in order."""
    return [item.state for item in fold.window.items]


def parallel() -> Fold:
    """Return a prompt, then a response with a thought, a text and two calls, and their results."""
    return fold_of(prompt(), Reasoning(text="t"), answer(), call("a"), call("b"), result("a", 90), result("b", 90))


def test_a_replacement_changes_only_the_block_that_is_named() -> None:
    """Pairs stay pairs: its call and its neighbours are shown as they were."""
    fold = parallel()
    payload = hide_at(fold, 7)
    assert (payload.mode, payload.reason) == ("replace", "manual")
    assert [r.version for r in payload.blocks] == [7]
    assert payload.blocks[0].text == "[run(): 90 tokens, ok, hidden] @7"
    assert states(fold) == ["visible"] * 5 + ["hidden", "visible"]


def test_a_text_of_the_callers_own_is_shown_as_it_is() -> None:
    """Counted, and without what no encoding takes."""
    fold = parallel()
    assert hide_at(fold, 7, text="gone \ud800").blocks == (Replacement(version=7, text="gone \ufffd", tokens=2),)


def test_a_text_for_a_call_becomes_its_one_argument() -> None:
    """Arguments stay an object."""
    fold = parallel()
    [replacement] = hide_at(fold, 5, text="gone").blocks
    assert replacement.arguments == {"_hidden": "gone"}
    assert replacement.tokens == COUNTER.count('run{"_hidden":"gone"}')


def test_what_is_omitted_takes_its_group_along() -> None:
    """No call stays without its result, and no part of a response alone."""
    fold = parallel()
    payload = hide_at(fold, 7, mode="omit")
    assert payload.mode == "omit"
    assert [r.version for r in payload.blocks] == [3, 4, 5, 6, 7, 8]
    assert states(fold) == ["visible"] + ["omitted"] * 6


def test_what_shows_nothing_has_no_text() -> None:
    """Both together are refused, rather than one forgotten."""
    with pytest.raises(InvalidBlock, match="an omitted block shows no text"):
        hide_at(parallel(), 7, mode="omit", text="x")


def test_a_prompt_that_is_omitted_takes_its_opening_along() -> None:
    """Header and attachments belong to it."""
    fold = fold_of(TurnHeader(text="h"), prompt(), Attachment(text="x"), answer(), *turn())
    hide_at(fold, 3, mode="omit")
    assert states(fold) == ["omitted"] * 3 + ["visible"] * 3


def test_a_hidden_block_can_be_hidden_again() -> None:
    """The newest decision counts."""
    fold = parallel()
    hide_at(fold, 7)
    hide_at(fold, 7, text="other")
    replacement = item_at(fold, 7).replacement
    assert replacement is not None
    assert replacement.text == "other"


@pytest.mark.parametrize("mode", ["replace", "omit"])
def test_summaries_redacted_pinned_and_open_blocks_are_not_hidden(mode: HideMode) -> None:
    """Each refusal says why, and what to do instead."""
    fold = fold_of(*turn(), prompt(), *exchange("r"), prompt(), *exchange("p"), Note(text="n"), StageDigest(text="s"))
    summary = compact_fold(fold, 3)
    apply(fold, fold.version + 1, BlockRedacted(version=6))
    apply(fold, fold.version + 1, pin(fold.window, item_at(fold, 8)))
    grow(fold, prompt(), call("open"))
    for version, reason in (
        (summary, "undo its compaction"),
        (6, "erased already"),
        (8, "unpin it first"),
        (10, "kept in view"),
        (11, "kept in view"),
        (fold.version, "still open"),
    ):
        with pytest.raises(BlockProtected, match=reason) as refused:
            hide_at(fold, version, mode=mode)
        assert refused.value.path == item_at(fold, version).block.path


def test_omitting_is_refused_for_the_whole_group() -> None:
    """One member that has to stay keeps all of them."""
    fold = parallel()
    apply(fold, fold.version + 1, pin(fold.window, item_at(fold, 2)))
    hide_at(fold, 7, mode="omit")
    fold = parallel()
    apply(fold, fold.version + 1, BlockRedacted(version=8))
    with pytest.raises(BlockProtected, match="erased already") as refused:
        hide_at(fold, 7, mode="omit")
    assert refused.value.path == "tc:turn_1.b.result"


def test_reveal_shows_a_hidden_block_again() -> None:
    """And its group's omitted members with it."""
    fold = parallel()
    hide_at(fold, 7)
    payload = reveal(fold.window, item_at(fold, 7))
    assert payload.versions == (7,)
    apply(fold, fold.version + 1, payload)
    assert states(fold) == ["visible"] * 7
    hide_at(fold, 5, mode="omit")
    assert reveal(fold.window, item_at(fold, 8)).versions == (3, 4, 5, 6, 7, 8)


def test_reveal_takes_back_what_was_disowned_for_the_same_reason_with_nothing_appended_in_between() -> None:
    """A session is popped item by item; what was rejected meanwhile, and what was popped later, is another decision."""
    fold = fold_of(prompt(), answer(), answer(response_id="m2"), answer(response_id="m3"))
    for version, reason in ((5, ABANDONED), (4, REJECTED), (3, ABANDONED)):
        gone = (Replacement(version=version),)
        apply(fold, fold.version + 1, BlocksHidden(mode="omit", reason=reason, blocks=gone))
    grow(fold, answer(response_id="m4"))
    apply(
        fold,
        fold.version + 1,
        BlocksHidden(mode="omit", reason=ABANDONED, blocks=(Replacement(version=fold.version),)),
    )
    assert reveal(fold.window, item_at(fold, 5)).versions == (3, 5)
    assert reveal(fold.window, item_at(fold, 4)).versions == (4,)


@pytest.mark.parametrize(("version", "back"), [(3, (3,)), (4, (3, 4)), (5, (3, 4, 5))])
def test_reveal_gives_back_no_more_than_the_newest_step_in_which_the_application_went_back(
    version: int, back: tuple[int, ...]
) -> None:
    """What was popped before it stays away; what was popped behind it comes with it."""
    fold = fold_of(prompt(), answer(), answer(response_id="m2"), answer(response_id="m3"))
    for gone, facts in ((5, {}), (4, {"behind": 4}), (3, {})):
        left = BlocksHidden(mode="omit", reason=ABANDONED, blocks=(Replacement(version=gone),), facts=facts)
        apply(fold, fold.version + 1, left)
    assert reveal(fold.window, item_at(fold, version)).versions == back


@pytest.mark.parametrize(("version", "state"), [(2, "visible"), (3, "carried"), (4, "redacted")])
def test_what_is_not_hidden_cannot_be_revealed(version: int, state: str) -> None:
    """The refusal names the state that it is in."""
    fold = fold_of(prompt(), Note(text="n"), prompt(), answer())
    if version == 3:
        compact_fold(fold, 4, carried=(3,))
    apply(fold, fold.version + 1, BlockRedacted(version=4))
    with pytest.raises(BlockProtected, match=f"it is {state}, not hidden"):
        reveal(fold.window, item_at(fold, version))


def test_a_pin_holds_the_whole_group() -> None:
    """So that no cut divides it."""
    fold = parallel()
    payload = pin(fold.window, item_at(fold, 6))
    assert payload.versions == (3, 4, 5, 6, 7, 8)
    apply(fold, fold.version + 1, payload)
    assert [item.keeps for item in fold.window.items] == [False] + [True] * 6


def test_a_hidden_block_that_is_pinned_stays_hidden() -> None:
    """Two decisions about two things."""
    fold = parallel()
    hide_at(fold, 7)
    apply(fold, fold.version + 1, pin(fold.window, item_at(fold, 7)))
    assert states(fold)[5] == "hidden"
    assert item_at(fold, 7).keeps


def test_a_summary_cannot_be_pinned() -> None:
    """The next one integrates it."""
    fold = fold_of(*turn(), *turn())
    summary = compact_fold(fold, 3)
    with pytest.raises(BlockProtected, match="integrated into the next one"):
        pin(fold.window, item_at(fold, summary))


def test_unpinning_takes_the_pins_off_the_group() -> None:
    """Off those members that have one."""
    fold = parallel()
    apply(fold, fold.version + 1, pin(fold.window, item_at(fold, 6)))
    payload = unpin(fold.window, item_at(fold, 8))
    assert payload.versions == (3, 4, 5, 6, 7, 8)
    apply(fold, fold.version + 1, payload)
    assert not any(item.keeps for item in fold.window.items)


@pytest.mark.parametrize("version", [2, 3])
def test_what_no_decision_pinned_cannot_be_unpinned(version: int) -> None:
    """A note is kept by its kind."""
    fold = fold_of(prompt(), Note(text="n"))
    with pytest.raises(BlockProtected, match="no decision pinned it"):
        unpin(fold.window, item_at(fold, version))


def test_a_carried_prompt_is_a_group_of_its_own() -> None:
    """What it was asked with is covered."""
    fold = fold_of(prompt(), Attachment(text=words(3)), answer(), *exchange("a"))
    compact_fold(fold, 4, carried=(2,))
    assert [item.version for item in group_of(fold.window, item_at(fold, 2))] == [2]
