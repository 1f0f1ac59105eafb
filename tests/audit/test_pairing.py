"""Calls and results that a context shows without their other half (design: Invariants, 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import call, compact_fold, exchange, fold_of, grow, prompt, result
from timeline.audit.pairing import Pairing
from timeline.policy.model import CachePointRule
from timeline.projection.project import Projector

if TYPE_CHECKING:
    from timeline.fold.fold import Fold
    from timeline.wire.neutral import NeutralContext


def shown(fold: Fold, *gone: str) -> NeutralContext:
    """Return the context of a fold, as a faulty projection would make it: without the entries of these paths."""
    neutral = Projector().project(fold.window, CachePointRule())
    return neutral.model_copy(update={"entries": tuple(e for e in neutral.entries if e.path not in gone)})


def paths_of(fold: Fold) -> dict[int, str]:
    """Return the path of each live block, by version."""
    return {item.version: item.block.path for item in fold.window.items}


@pytest.mark.parametrize(
    ("gone", "problems"),
    [
        ((), []),
        (("ar:turn_1.user.prompt",), []),
        (("tc:turn_1.a.call", "tc:turn_1.a.result"), []),
        (("tc:turn_1.a.call",), ["tc:turn_1.a.result is shown without its call"]),
        (("tc:turn_1.b.result",), ["tc:turn_1.b.call is shown without its result"]),
    ],
)
def test_half_a_pair_is_a_problem_and_none_of_it_is_not(gone: tuple[str, ...], problems: list[str]) -> None:
    """A provider refuses the one; the other is a hide."""
    fold = fold_of(prompt(), *exchange("a"), *exchange("b"), call("open"))
    found = Pairing(paths_of(fold)).problems(fold.window, shown(fold, *gone), continues=False)
    assert list(found) == problems


def test_a_context_that_goes_on_from_the_last_one_is_checked_by_what_is_new() -> None:
    """A result pairs with a call of the context before, too; one that begins anew is checked as a whole."""
    fold = fold_of(prompt(), *exchange("a"), call("b"))
    paths = paths_of(fold)
    pairing = Pairing(paths)
    assert list(pairing.problems(fold.window, shown(fold), continues=False)) == []
    grow(fold, result("b"), *exchange("d"))
    paths.update(paths_of(fold))
    found = pairing.problems(fold.window, shown(fold, "tc:turn_1.d.call"), continues=True)
    assert list(found) == ["tc:turn_1.d.result is shown without its call"]
    assert list(pairing.problems(fold.window, shown(fold), continues=True)) == []
    found = pairing.problems(fold.window, shown(fold, "tc:turn_1.a.result"), continues=False)
    assert list(found) == ["tc:turn_1.a.call is shown without its result"]


def test_a_result_whose_call_is_covered_is_shown_apart_and_no_problem() -> None:
    """It goes out as user text with its path."""
    fold = fold_of(prompt(), *exchange("a"))
    paths = paths_of(fold)
    compact_fold(fold, 3)
    neutral = shown(fold)
    assert neutral.entries[-1].loose
    assert list(Pairing(paths).problems(fold.window, neutral, continues=False)) == []
