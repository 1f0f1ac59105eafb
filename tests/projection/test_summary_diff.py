"""How two summaries differ, as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline.projection.summary_diff import DiffLine, changed_lines


def test_a_line_that_changed_in_part_is_one_line_with_both_sides() -> None:
    """A dropped constraint is read at a glance."""
    before = "## Task\n- Build a small flashcard app; no database.\n## Done\n- Step 1"
    after = "## Task\n- Build a small flashcard app.\n## Done\n- Step 1\n- Step 2"
    assert changed_lines(before, after) == (
        DiffLine("same", "## Task"),
        DiffLine("changed", "- Build a small flashcard [-app; no database.-]{+app.+}"),
        DiffLine("same", "## Done"),
        DiffLine("same", "- Step 1"),
        DiffLine("added", "- Step 2"),
    )


def test_equal_lines_far_from_a_change_are_counted() -> None:
    """One line on either side is shown."""
    lines = [f"line {n}" for n in range(10)]
    assert changed_lines("\n".join(lines), "\n".join([*lines[:5], *lines[6:]])) == (
        DiffLine("skipped", "4 equal lines"),
        DiffLine("same", "line 4"),
        DiffLine("removed", "line 5"),
        DiffLine("same", "line 6"),
        DiffLine("skipped", "3 equal lines"),
    )


def test_entries_of_a_list_are_lines_of_their_own() -> None:
    """That they begin alike makes none of them the other."""
    before, after = "- pytest tests/test_a.py (exit 1) (@9)", "- pytest tests/test_b.py (exit 1) (@99)"
    assert changed_lines(before, after) == (DiffLine("removed", before), DiffLine("added", after))


@pytest.mark.parametrize("after", ["Nothing alike is in here at all", "word " * 300])
def test_lines_with_little_in_common_or_too_long_stand_below_each_other(after: str) -> None:
    """Marks inside them would be harder to read."""
    before = "word " * 299 + "x"
    assert [line.kind for line in changed_lines(before, after)] == ["removed", "added"]


def test_equal_texts_have_no_difference() -> None:
    """Not even an empty one."""
    assert changed_lines("a\nb", "a\nb") == ()


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_what_is_removed_and_added_makes_one_text_of_the_other(before: list[str], after: list[str]) -> None:
    """Nothing that differs is left out."""
    lines = changed_lines("\n".join(before), "\n".join(after))
    kinds = [line.kind for line in lines]
    assert len(after) - len(before) == kinds.count("added") - kinds.count("removed")
    assert (kinds == []) == (before == after)
