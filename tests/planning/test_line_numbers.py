"""Which lines of a new result keep their number (ADR 0091)."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline.planning.line_numbers import with_few_numbers

PRINTED: Final = re.compile(r"([ 0]*)([0-9]+)(\t|→|\| )")


def numbered(texts: list[str], first: int = 1, form: str = "{:6}\t") -> list[str]:
    """Return lines behind their numbers."""
    return [form.format(number) + text for number, text in enumerate(texts, first)]


def read(shown: list[str]) -> list[str]:
    """Return the lines as a reader numbers them, who shares no code with the planner.

    Between two numbers that are as far apart as their lines are, he counts, and prints as the first one is printed.
    """
    places = [(place, found) for place, line in enumerate(shown) if (found := PRINTED.match(line)) is not None]
    lines = [*shown]
    for (above, first), (below, second) in pairwise(places):
        if int(second[2]) - int(first[2]) == below - above and first[3] == second[3]:
            width, zeros = len(first[1]) + len(first[2]), first[1].startswith("0")
            for place in range(above + 1, below):
                number = str(int(first[2]) + place - above)
                lines[place] = number.rjust(width, "0" if zeros else " ") + first[3] + lines[place]
    return lines


FORMS: Final = ["{:6}\t", "{:6}→", "{}\t", "{}→", "{:05}| "]
TEXTS: Final = st.sampled_from(
    [
        "",
        "def f():",
        "    return 1",
        " * of a comment",
        "\tx",
        "12: twelve",
        "0| zero",
        "     7\tseven",
        "3",
        "a: b",
        "|",
    ]
)
RUNS: Final = st.lists(
    st.one_of(
        st.lists(TEXTS, max_size=3),
        st.builds(numbered, st.lists(TEXTS, max_size=25), st.integers(1, 120), st.sampled_from(FORMS)),
    ),
    max_size=5,
)


@given(RUNS, st.integers(2, 12))
def test_a_reader_counts_every_number_that_is_left_out(runs: list[list[str]], every: int) -> None:
    """Whatever stands between runs of lines, and whatever the lines say."""
    lines = [line for run in runs for line in run]
    shown = with_few_numbers(lines, every)
    if shown != lines:
        assert read(shown) == lines


def test_both_ends_and_every_tenth_line_keep_their_numbers() -> None:
    """Long enough between to save most, near enough to count."""
    lines = numbered([f"line {number}" for number in range(1, 25)])
    shown = with_few_numbers(lines, 10)
    assert [line for line in shown if "\t" in line] == [lines[0], lines[9], lines[19], lines[23]]
    assert shown[1] == "line 2"


def test_numbers_of_four_digits_stay() -> None:
    """Agents quote them, as they do names."""
    lines = numbered(["some text"] * 30, first=985)
    shown = with_few_numbers(lines, 10)
    assert shown[6:15] == ["some text"] * 9
    assert shown[15:] == lines[15:]


@pytest.mark.parametrize("form", FORMS)
def test_numbers_are_known_in_the_forms_that_tools_print(form: str) -> None:
    """Padded with blanks or zeros, or not; across a number that has one digit more."""
    lines = numbered(["some text"] * 30, first=90, form=form)
    assert with_few_numbers(lines, 10)[5:10] == ["some text"] * 5


SHORT: Final = ["one", "two", "three", "four"]


@pytest.mark.parametrize(
    "lines",
    [
        ["1\tone", "3\tthree", "5\tfive", "7\tseven"],
        numbered(SHORT, form="{}: "),
        numbered(["    indented"] * 4, form="{}|"),
        SHORT,
        ["5\tfive", "six", *numbered(SHORT, first=7, form="{}\t")],
        ["1\tone", "2→two", "3\tthree", "4→four"],
    ],
)
def test_numbers_that_could_not_be_counted_stay(lines: list[str]) -> None:
    """They have gaps, or none; or a line between two runs would be counted as one that had a number."""
    assert with_few_numbers(lines, 3) == lines


def test_a_run_of_no_more_lines_than_one_in_so_many_keeps_its_numbers() -> None:
    """It saves next to nothing, and may be a list of hours, or what a search found."""
    lines = numbered(SHORT)
    assert with_few_numbers(lines, 4) == lines
    assert with_few_numbers(lines, 3) == [lines[0], "two", lines[2], lines[3]]


def test_numbers_under_a_head_of_columns_stay() -> None:
    """They are data of a table, such as the ids of its rows."""
    lines = ["id\tname", *numbered(SHORT, form="{}\t")]
    assert with_few_numbers(lines, 3) == lines


@pytest.mark.parametrize("form", FORMS)
def test_what_is_left_of_a_line_is_the_line_in_the_file(form: str) -> None:
    """With its whole indentation, which an edit has to name."""
    texts = ["def f():", "    first = 1", "    second = 2", "    return first", "", "def g():", "    return 3"]
    assert with_few_numbers(numbered(texts, form=form), 6)[1:5] == texts[1:5]


@pytest.mark.parametrize("text", ["12\ttwelve", "00→ zero", " 7 | seven"])
def test_a_line_that_would_read_as_a_number_keeps_its_own(text: str) -> None:
    """A file may hold what a tool printed."""
    lines = numbered(["a", text, "c", "d", "e"])
    assert with_few_numbers(lines, 4) == [lines[0], lines[1], "c", lines[3], lines[4]]
