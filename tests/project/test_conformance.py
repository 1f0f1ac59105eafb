"""`docs/conformance.md`: every statement of the published designs has its row, and no row names what is not there."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import pytest

from tests.project.pages import TEST_NAME, is_defined, table_rows
from tests.project.sources import ROOT

PAGE: Final = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
STATEMENTS: Final = {
    "000": 51,
    "R-000": 29,
    "001": 64,
    "R-001": 26,
    "002": 59,
    "R-002": 9,
    "003": 32,
    "R-003": 11,
    "004": 138,
    "R-004": 36,
}
"""How many statements each seed makes, and how many rulings there are about it."""
REASONS: Final = frozenset({"price model", "the lab", "user interface"})
"""What belongs to parts that are not begun."""
CODE: Final = re.compile(r"`([^`]+)`")


class Row(NamedTuple):
    """A row of the page: the number of its statement in two parts, and the cells behind it."""

    source: str
    number: int
    cells: tuple[str, ...]

    @property
    def name(self) -> str:
        """The number as it is written."""
        return f"{self.source}-{self.number}"


def _rows() -> list[Row]:
    found = []
    for line in table_rows(PAGE):
        number, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        source, last = number.rsplit("-", 1)
        found.append(Row(source, int(last), tuple(cells)))
    return found


ROWS: Final = _rows()
SHOWN: Final = [row for row in ROWS if row.cells[1:2] != ("`later`",)]
LATER: Final = [row for row in ROWS if row.cells[1:2] == ("`later`",)]


@pytest.mark.parametrize("source", STATEMENTS)
def test_every_statement_has_one_row(source: str) -> None:
    """The statements of a seed, and the rulings about it, are numbered from 1 without a gap."""
    numbers = sorted(row.number for row in ROWS if row.source == source)
    assert numbers == list(range(1, STATEMENTS[source] + 1))


def test_no_row_is_of_another_source() -> None:
    """All rows are of the five seeds and their rulings."""
    assert {row.source for row in ROWS} == set(STATEMENTS)


def test_rows_stand_in_the_order_of_their_seeds() -> None:
    """A table follows the text that it is about."""
    for source in STATEMENTS:
        numbers = [row.number for row in SHOWN if row.source == source]
        assert numbers == sorted(numbers), source


def test_no_cell_is_missing_or_empty() -> None:
    """A row says what is asked, where it is, and what shows it."""
    assert [row.name for row in ROWS if len(row.cells) != 3 or not all(row.cells)] == []


def test_each_row_names_modules_that_exist() -> None:
    """Where a statement is implemented is a file of the project, and nothing else."""
    named = {row.name: CODE.findall(row.cells[1]) for row in SHOWN}
    assert [name for name, files in named.items() if not files] == []
    assert [(name, file) for name, files in named.items() for file in files if not (ROOT / file).is_file()] == []


def test_each_row_names_tests_that_exist() -> None:
    """What shows a statement is at least one test, and every one that is named is defined."""
    named = {row.name: CODE.findall(row.cells[2]) for row in SHOWN}
    assert [name for name, tests in named.items() if not tests] == []
    wrong = [(name, test) for name, tests in named.items() for test in tests if not TEST_NAME.fullmatch(test)]
    assert wrong == []
    assert [(name, test) for name, tests in named.items() for test in tests if not is_defined(test)] == []


def test_what_comes_later_says_why() -> None:
    """A statement without an implementation belongs to a part of the project that is not begun."""
    assert [row.name for row in LATER if row.cells[2] not in REASONS] == []
