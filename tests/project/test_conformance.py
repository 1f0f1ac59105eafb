"""docs/conformance: each statement of the published designs is shown by a test, or its page says why it is not."""

from __future__ import annotations

from typing import Final

import pytest

from tests.project.conformance import FOLDER, Design, designs, pages, shown

COUNTS: Final = {"000": (59, 29), "001": (72, 26), "002": (65, 9), "003": (35, 11), "004": (149, 36)}
"""How many statements each design makes, and how many rulings there are about it."""
REASONS: Final = frozenset({"user interface"})
"""Why a statement may be left out: it belongs to a part that is not begun."""
HOW: Final = "write them again: python -m tests.project.conformance"


def named(design: Design) -> str:
    """Return the name of a design's policy."""
    return design.preset


def test_the_designs_are_those_that_were_published() -> None:
    """There is a file for each of the five."""
    assert [design.number for design in designs()] == list(COUNTS)


@pytest.mark.parametrize("design", designs(), ids=named)
def test_statements_and_rulings_are_numbered_without_a_gap(design: Design) -> None:
    """Ids count up from 1, in the order of the design's text, and every statement is there."""
    statements, rulings = COUNTS[design.number]
    assert list(design.statements) == [f"{design.number}-{number}" for number in range(1, statements + 1)]
    assert list(design.rulings) == [f"R-{design.number}-{number}" for number in range(1, rulings + 1)]


@pytest.mark.parametrize("design", designs(), ids=named)
def test_each_statement_is_shown_or_left_out_for_a_reason(design: Design) -> None:
    """A statement has at least one test or a reason, and never both."""
    tested = {name for name in design.asked if name in shown()}
    assert tested ^ set(design.left_out) == set(design.asked)
    assert set(design.left_out.values()) <= REASONS


def test_no_test_shows_a_statement_that_nobody_made() -> None:
    """The ids of all marks are ids of statements."""
    assert shown().keys() - {name for design in designs() for name in design.asked} == set()


def test_every_mark_is_read(request: pytest.FixtureRequest) -> None:
    """The tests that pytest collects with the mark are found in the sources, with the same ids."""
    marked = {
        (item.nodeid.partition("[")[0], statement)
        for item in request.session.items
        for mark in item.iter_markers("shows")
        for statement in mark.args
    }
    assert marked <= {(test, statement) for statement, tests in shown().items() for test in tests}


def test_the_committed_pages_are_generated() -> None:
    """Marks and pages never differ, and no page is left over."""
    made = pages()
    assert {file: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.md")} == made, HOW
