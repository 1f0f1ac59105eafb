"""What the fold knows of time and of other writers: the cache's last use, leases, undo and hold (design, section 4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.scenes import AT, after, apply, compact_fold, fold_of, grow, paths, small_policy, turn
from timeline.events import (
    BlocksHidden,
    BlocksRevealed,
    CompactionReverted,
    ContextRendered,
    ModelCalled,
    PolicyChanged,
    Replacement,
)
from timeline.events.other_payloads import CompactionFailed, CompactionStarted
from timeline.fold.fold import Fold, HistoryNeeded
from timeline.fold.state import Lease, Touch
from timeline.usage import CACHE_SECONDS, LONG_CACHE_SECONDS, Usage

POLICY = small_policy().hash()
RENDERED = ContextRendered(version=3, projection=1, fingerprint="f", policy="p")


def take(fold: Fold, payload: Any, seconds: float = 0) -> int:
    """Take an event in at so many seconds after `AT`; return its version."""
    fold.apply(fold.version + 1, after(seconds), payload)
    return fold.version


# The cache's last use


def test_a_render_touches_the_cache_until_calls_are_recorded() -> None:
    """The newest recorded render first; from the first call on, the newest call's start."""
    fold = fold_of(*turn())
    assert fold.window.touch is None
    take(fold, RENDERED, 1)
    take(fold, RENDERED, 2)
    assert fold.window.touch == Touch(after(2), CACHE_SECONDS, called=False)
    take(fold, ModelCalled(started_at=after(3)), 9)
    take(fold, RENDERED, 10)
    assert fold.window.touch == Touch(after(3), CACHE_SECONDS, called=True)


def test_calls_side_by_side_touch_the_cache_when_the_newest_began() -> None:
    """A call that is recorded late does not move the cache's clock back."""
    fold = fold_of(*turn())
    take(fold, ModelCalled(started_at=after(30)), 40)
    take(fold, ModelCalled(started_at=after(20)), 50)
    assert fold.window.touch == Touch(after(30), CACHE_SECONDS, called=True)


def test_a_usage_says_how_long_the_provider_keeps_its_cache() -> None:
    """What was written for an hour, or for five minutes; a call that wrote nothing leaves it."""
    fold = fold_of(*turn())
    for usage, ttl in (
        (Usage(cache_write_1h_tokens=1), LONG_CACHE_SECONDS),
        (Usage(cache_read_tokens=1), LONG_CACHE_SECONDS),
        (Usage(cache_write_5m_tokens=1), CACHE_SECONDS),
    ):
        take(fold, ModelCalled(usage=usage))
        assert fold.window.touch == Touch(AT, ttl, called=True)


def test_a_call_that_names_no_model_leaves_the_one_that_is_known() -> None:
    """A window is asked which model was called last."""
    fold = fold_of(*turn())
    for named, known in (("", ""), ("m", "m"), ("", "m"), ("n", "n")):
        take(fold, ModelCalled(model=named))
        assert fold.window.model == known


def test_a_failed_call_is_no_use_of_the_cache() -> None:
    """Not even the first one."""
    fold = fold_of(*turn())
    take(fold, ModelCalled(finish_reason="error"))
    assert fold.window.touch is None


# Leases


def start(fold: Fold, at: float, seconds: float = 120) -> int:
    """Start a compaction at so many seconds after `AT`, for so many."""
    return take(fold, CompactionStarted(expires_at=after(at) + timedelta(seconds=seconds)), at)


def test_the_first_start_holds_the_lease_until_it_expires() -> None:
    """A later one meanwhile is void; one at its expiry takes over."""
    fold = fold_of(*turn())
    first = start(fold, 0)
    start(fold, 119)
    assert fold.window.lease == Lease(first, after(120))
    third = start(fold, 120)
    assert fold.window.lease == Lease(third, after(240))


@pytest.mark.parametrize("ends", [True, False])
def test_only_what_names_a_lease_ends_it(ends: bool) -> None:  # noqa: FBT001 - both ways
    """A failure of somebody else's, or of nobody's, leaves it."""
    fold = fold_of(*turn())
    lease = start(fold, 0)
    take(fold, CompactionFailed(reason="cancelled", lease=lease if ends else None))
    assert (fold.window.lease is None) == ends
    fold = fold_of(*turn(), *turn())
    lease = start(fold, 0)
    compact_fold(fold, 3, lease=lease if ends else lease - 1)
    assert (fold.window.lease is None) == ends


def test_a_lease_that_was_taken_over_ends_nothing() -> None:
    """Fencing: who comes too late does not free the lease of the one who came after."""
    fold = fold_of(*turn())
    first, second = start(fold, 0), start(fold, 200)
    take(fold, CompactionFailed(reason="superseded", lease=first))
    assert fold.window.lease == Lease(second, after(320))


# Undo and hold


def undone(*, without: bool) -> tuple[Fold, int]:
    """Return a fold with a compaction, which knows or does not know that it is taken back; and its version."""
    fold = Fold("c", [6]) if without else Fold("c")
    fold.version = 1
    grow(fold, *turn(), *turn())
    return fold, compact_fold(fold, 3)


def test_a_compaction_that_is_taken_back_later_was_never_made() -> None:
    """Where the fold knows of it beforehand."""
    fold, version = undone(without=True)
    assert [item.version for item in fold.window.items] == [2, 3, 4, 5]
    assert (fold.window.summaries, fold.window.compactions) == ((), 0)
    take(fold, CompactionReverted(versions=(version,), policy=POLICY))
    assert fold.window.hold == POLICY


def test_a_fold_that_went_through_it_asks_for_the_history() -> None:
    """It does not keep what a compaction covers; its window stays as it was."""
    fold, version = undone(without=False)
    before = fold.window.items
    with pytest.raises(HistoryNeeded):
        take(fold, CompactionReverted(versions=(version,), policy=POLICY))
    assert fold.window.items == before


def test_a_decision_about_what_is_shown_again_holds() -> None:
    """The hide of a block that its compaction never covered for this fold."""
    fold, version = undone(without=True)
    hidden = take(fold, BlocksHidden(reason="manual", blocks=(Replacement(version=4, text="x", tokens=1),)))
    take(fold, CompactionReverted(versions=(version,), policy=POLICY))
    item = fold.window.items[2]
    assert (item.state, item.changed_at) == ("hidden", hidden)


def test_an_undo_clears_a_setback_and_a_new_compaction_the_hold() -> None:
    """So does another policy; a failure does not."""
    fold, version = undone(without=True)
    take(fold, CompactionFailed(reason="no_progress", policy=POLICY, visible_tokens=10, retry_after=5))
    take(fold, CompactionReverted(versions=(version,), policy=POLICY))
    assert fold.window.setback is None
    take(fold, CompactionFailed(reason="no_progress", policy=POLICY))
    assert fold.window.hold == POLICY
    copy = fold.copy()
    take(copy, PolicyChanged(policy="other"))
    assert copy.window.hold is None
    compact_fold(fold, 3)
    assert fold.window.hold is None


def test_a_copy_knows_what_is_taken_back_too() -> None:
    """A dry run goes on like the fold that it was made of."""
    fold, version = undone(without=True)
    twin = fold.copy()
    take(twin, CompactionReverted(versions=(version,), policy=POLICY))
    assert twin.window.hold == POLICY
    assert fold.window.hold is None


def test_a_copy_for_another_conversation_has_its_name() -> None:
    """And everything else of the first one."""
    fold = fold_of(*turn())
    twin = fold.copy("fork")
    assert twin.window.conversation == "fork"
    assert paths(twin.window.items) == paths(fold.window.items)


# Hides


def test_a_block_says_which_decision_hid_it_and_a_reveal_forgets_that() -> None:
    """Reason and figures stand with the item, as long as it is hidden."""
    fold = fold_of(*turn())
    replacements = (Replacement(version=2, text="x", tokens=1), Replacement(version=3, text="y", tokens=1))
    version = take(fold, BlocksHidden(reason="cold", blocks=replacements, facts={"idle_seconds": 400}))
    for item in fold.window.items:
        assert item.hide is not None
        assert (item.hide.version, item.hide.reason, item.hide.facts) == (version, "cold", {"idle_seconds": 400})
    take(fold, BlocksRevealed(versions=(2,)))
    revealed, hidden = fold.window.items
    assert (revealed.hide, revealed.revealed, hidden.revealed) == (None, True, False)
    assert hidden.hide is not None


def test_hiding_again_ends_what_a_reveal_promised() -> None:
    """Whoever hides it by hand wants it hidden."""
    fold = fold_of(*turn())
    take(fold, BlocksRevealed(versions=(2,)))
    take(fold, BlocksHidden(reason="manual", blocks=(Replacement(version=2, text="x", tokens=1),)))
    assert not fold.window.items[0].revealed
    apply(fold, fold.version + 1, BlocksRevealed(versions=(2,)))
    assert fold.window.items[0].revealed
