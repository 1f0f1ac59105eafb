"""Stage data: what is told of approved stages in the tail of a context (seed 000, formatStageData)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import apply as take_in
from tests.scenes import compact_fold, fold_of, grow, turn
from timeline.blocks import COLLAPSED_KEY
from timeline.events.other_payloads import StageApproved, StageEntered
from timeline.planning.collapse_stages import stage_data
from timeline.policy.steps import StageData

if TYPE_CHECKING:
    from timeline.fold.fold import Fold

TOLD: Final = StageData(heading="STAGES")


def through(fold: Fold, stage: str, **approval: Any) -> None:
    """Go through a stage of one turn."""
    take_in(fold, fold.version + 1, StageEntered(stage=stage))
    grow(fold, *turn())
    first, last = fold.version - 1, fold.version
    texts = {"decision": f"{stage}!", "short": f"short {stage}", "detailed": f"detailed {stage}"}
    payload = StageApproved(stage=stage, first=first, last=last, count=2, **{**texts, **approval})
    take_in(fold, fold.version + 1, payload)


def staged(*names: str, **approval: Any) -> Fold:
    """Go through stages."""
    fold = fold_of()
    for name in names:
        through(fold, name, **approval)
    return fold


@pytest.mark.shows("000-2")
def test_the_newest_three_stages_are_told_in_detail() -> None:
    """The others in short, oldest first."""
    text = stage_data(staged("a", "b", "c", "d").window, TOLD)
    assert text == "STAGES\n\n## a\nshort a\n\n## b\ndetailed b\n\n## c\ndetailed c\n\n## d\ndetailed d"


@pytest.mark.shows("000-36", "R-000-18")
def test_once_a_recent_stage_is_collapsed_all_are_told_in_short() -> None:
    """P4; told from the window, so that an undo brings the detail back."""
    fold = staged("a", "b", "c", "d")
    compact_fold(fold, 8, meta={COLLAPSED_KEY: ["b"]})
    text = stage_data(fold.window, TOLD)
    assert text.count("short") == 4
    assert "detailed" not in text


def test_an_old_stage_that_is_collapsed_changes_nothing() -> None:
    """P2 leaves the recent ones in detail."""
    fold = staged("a", "b", "c", "d")
    compact_fold(fold, 4)
    assert stage_data(fold.window, TOLD).count("detailed") == 3


def test_a_recent_stage_that_another_step_covered_changes_nothing() -> None:
    """The messages of the newest three are out of view, but it was not P4 that took them."""
    fold = staged("a", "b", "c", "d")
    compact_fold(fold, 8)
    assert stage_data(fold.window, TOLD).count("detailed") == 3


@pytest.mark.shows("000-41")
def test_a_stage_that_was_gone_back_to_is_not_told() -> None:
    """Nor are those that fell with it; without any there is no text."""
    fold = staged("a", "b")
    take_in(fold, fold.version + 1, StageEntered(stage="b"))
    assert stage_data(fold.window, TOLD) == "STAGES\n\n## a\ndetailed a"
    assert not stage_data(fold_of(*turn()).window, TOLD)
    assert not stage_data(fold.window, None)


def test_a_text_that_was_not_given_is_told_by_the_next_shorter_one() -> None:
    """The decision at last."""
    assert stage_data(staged("a", detailed="").window, TOLD).endswith("## a\nshort a")
    assert stage_data(staged("a", detailed="", short="").window, TOLD).endswith("## a\na!")


@pytest.mark.shows("000-2", "000-36")
def test_texts_are_cut_to_their_characters() -> None:
    """1,000 and 280 by default; what a policy says otherwise counts."""
    long = staged("a", "b", detailed="d" * 1_001, short="s" * 281).window
    assert stage_data(long, StageData(heading="STAGES", detailed=1)) == "STAGES\n\n## a\n{}…\n\n## b\n{}…".format(
        "s" * 279, "d" * 999
    )
    few = StageData(heading="STAGES", detailed=1, detailed_chars=5, short_chars=4)
    assert stage_data(staged("a", "b").window, few) == "STAGES\n\n## a\nsho…\n\n## b\ndeta…"


@pytest.mark.shows("000-3", "R-000-19")
def test_five_references_and_five_citations_a_stage_are_told() -> None:
    """And how many more there are."""
    lists = {"references": tuple("rstuvw"), "citations": tuple("klmno")}
    text = stage_data(staged("a", **lists).window, TOLD)
    assert "References:\n- r\n- s\n- t\n- u\n- v\n- and 1 more\n" in text
    assert text.endswith("Citations:\n- k\n- l\n- m\n- n\n- o")


@pytest.mark.shows("000-5", "R-000-19")
def test_ten_artifacts_of_500_characters_are_told_the_newest_stages_first() -> None:
    """The caps are for all stages together; a stage whose artifacts have no room is told without."""
    text = stage_data(staged("a", "b", "c", artifacts=tuple("x" * 600 for _ in range(6))).window, TOLD)
    by_stage = [section.count("x" * 499 + "…") for section in text.split("## ")[1:]]
    assert by_stage == [0, 4, 6]
    assert "x" * 500 not in text
    assert "- and 2 more" in text
