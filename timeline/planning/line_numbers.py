"""Leave out the numbers of lines that follow from the numbers above and below them.

Tools that read files print a number in front of each line, which costs about a fifth as much as the text behind it.
These keep their numbers: the first and the last line of a run, about every tenth line, and all lines from 1,000 on.
A model that needs a number in between counts the lines from the last one, so nothing is lost (ADR 0091).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NUMBER: Final = r"( {0,12}[1-9]\d{0,6}(?=[\t→])|0{1,6}[1-9]\d{0,6}(?=\| ))(\t|→|\| )"
"""A number as tools that read files print it: before a tab or an arrow, or padded with zeros before a bar and a blank.

A number before a colon is none: data is written so, and a blank behind the colon may be the tool's or the text's.
"""
_LINES: Final = re.compile(rf"^(?:{_NUMBER})?(.*)$", re.MULTILINE)
"""Finds every line of a text in one search; one match for each numbered line took half as long again."""
_LIKE_A_NUMBER: Final = re.compile(r"\s*\d+\s*[\t→|]")
"""A text that itself begins like a numbered line, although in a form that `_NUMBER` does not take."""
_TWO: Final = re.compile(rf"^{_NUMBER}.*\n{_NUMBER}", re.MULTILINE)


class Line(NamedTuple):
    """A line: its number, if it has one, with what is before and behind it, and its text.

    Attributes:
        number: None for a line without a number.
        text: behind the number.
        printed: the number as it is printed, with its padding.
        sign: between number and text.
    """

    number: int | None
    text: str
    printed: str = ""
    sign: str = ""


_new: Final = tuple.__new__
"""Makes a `Line` in a third of the time that its constructor takes."""
_NAME: Final = 1_000
"""A number of four digits or more is a fact by itself, which agents quote: it stays."""
_LONG: Final = 100_000
"""Characters that can be searched in a millisecond."""


def may_have_numbers(text: str) -> bool:
    """Return whether two lines of a text, one below the other, have numbers; a long text counts without a look."""
    return len(text) > _LONG or _TWO.search(text) is not None


def lines_of(text: str) -> list[Line]:
    """Return the lines of a text, each parted into its number and the text behind the sign."""
    found = _LINES.findall(text)
    return [
        _new(Line, (int(printed), rest, printed, sign)) if printed else _new(Line, (None, rest, "", ""))
        for printed, sign, rest in found
    ]


def with_few_numbers(texts: Sequence[str], every: int) -> list[str]:
    """Return lines of which only some keep their numbers; unchanged where counting would not give each number back.

    Args:
        texts: the lines, without their ends.
        every: a number stays where it is a multiple of this, at both ends of a run of lines, and in a shorter run.
    """
    lines = lines_of("\n".join(texts))
    shown = list(texts)
    before = -1  # the last line with a number above the run
    for start, end in _runs(lines):
        if before >= 0 and _follows(lines[start], lines[before], start - before):
            return list(texts)  # the lines between the runs have no numbers, and a reader would count them
        before = end - 1
        if end - start > every and not _is_column(texts, lines, start):
            for place in range(start + 1, end - 1):
                if _is_between(lines[place], every):
                    shown[place] = lines[place].text
    return shown


def _runs(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each run of numbers that follow each other, and the line behind its last one."""
    start = 0
    for place in range(1, len(lines) + 1):
        if place < len(lines) and _follows(lines[place], lines[start], place - start):
            continue
        if lines[start].number is not None:
            yield start, place
        start = place


def _is_column(texts: Sequence[str], lines: Sequence[Line], start: int) -> bool:
    """Return whether the numbers of a run are data: the first column of a table whose head is above."""
    return start > 0 and lines[start].sign in texts[start - 1]


def _is_between(line: Line, every: int) -> bool:
    """Return whether a line may lose its number: it is no mark, and would not read as numbered without it."""
    if line.number is None or line.number >= _NAME:
        return False
    return line.number % every != 0 and _LIKE_A_NUMBER.match(line.text) is None


def _follows(line: Line, counted: Line, distance: int) -> bool:
    """Return whether a line has the number that follows from another line, ``distance`` lines before it."""
    if line.number is None or counted.number is None or line.sign != counted.sign:
        return False
    printed = str(counted.number + distance)
    pad = counted.printed[0] if counted.printed[0] in " 0" else " "
    return line.printed == printed.rjust(len(counted.printed), pad)
