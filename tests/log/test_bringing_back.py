"""What was disowned comes back as it was: hidden, omitted, asked for, or free to be hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.scenes import answer, apply, fold_of, prompt
from timeline.events import ABANDONED, REJECTED, BlocksHidden, BlocksRevealed, Pruned, Replacement
from timeline.log.bringing_back import brought_back

if TYPE_CHECKING:
    from timeline.events import Payload
    from timeline.fold.fold import Fold


def decided(fold: Fold, *payloads: Payload) -> dict[int, Payload]:
    """Fold decisions; return them by version."""
    made: dict[int, Payload] = {}
    for payload in payloads:
        apply(fold, fold.version + 1, payload)
        made[fold.version] = payload
    return made


def left(*versions: int, reason: str = ABANDONED) -> BlocksHidden:
    """Return the omission of blocks that never happened."""
    return BlocksHidden(mode="omit", reason=reason, blocks=tuple(Replacement(version=version) for version in versions))


def back(fold: Fold, made: dict[int, Payload]) -> list[Payload]:
    """Return the events that take all disowned blocks back."""
    items = [item for item in fold.window.items if item.disowned]
    return brought_back([item.version for item in items], items, made)


def test_what_was_hidden_is_hidden_again_by_its_own_decision() -> None:
    """With its text, reason and figures, but without blocks that are still hidden, as no step of a compaction."""
    fold = fold_of(prompt(), answer(), answer())
    hide = BlocksHidden(
        reason="stale",
        blocks=tuple(Replacement(version=version, text=f"cut {version}", tokens=2) for version in (1, 2)),
        facts={"idle": 9},
        pruned=Pruned(reason="cold"),
        counter="words",
        unsaid=(1,),
    )
    made = decided(fold, hide, left(2, 3))
    again = hide.model_copy(update={"blocks": hide.blocks[1:], "unsaid": (), "pruned": None})
    assert back(fold, made) == [BlocksRevealed(versions=(2, 3), reason="restored"), again]


def test_what_somebody_asked_to_see_is_asked_for_again() -> None:
    """So no render hides it, and one may hide the rest."""
    fold = fold_of(prompt(), answer(), answer())
    hide = BlocksHidden(reason="stale", blocks=(Replacement(version=2, text="cut"),))
    made = decided(fold, hide, BlocksRevealed(versions=(2,)), left(2, 3))
    assert back(fold, made) == [BlocksRevealed(versions=(3,), reason="restored"), BlocksRevealed(versions=(2,))]


def test_of_blocks_that_were_disowned_twice_the_decision_before_both_holds() -> None:
    """A rejected reply that is abandoned with its turn never was in sight; before that, it was hidden."""
    fold = fold_of(prompt(), answer())
    hide = BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=2),))
    made = decided(fold, hide, left(2, reason=REJECTED), left(2))
    assert back(fold, made) == [BlocksRevealed(versions=(2,), reason="restored"), hide]


def test_a_decision_that_is_gone_from_the_log_holds_no_more() -> None:
    """A scavenge removes hides; the block is then shown in full."""
    fold = fold_of(prompt(), answer())
    made = decided(fold, BlocksHidden(reason="stale", blocks=(Replacement(version=2, text="cut"),)), left(2))
    del made[min(made)]
    assert back(fold, made) == [BlocksRevealed(versions=(2,), reason="restored")]


def test_a_block_that_a_summary_covers_is_revealed_for_those_who_ask_what_happened() -> None:
    """It is not in the window: no decision about it is taken once more."""
    assert brought_back([2], [], {}) == [BlocksRevealed(versions=(2,), reason="restored")]
