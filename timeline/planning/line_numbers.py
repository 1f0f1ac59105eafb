"""Leave out the numbers of lines that follow from the numbers above and below them.

Tools that read files print a number in front of each line, which costs about as much as a fifth of the text behind it.
Here the first and the last line of a run keep theirs, and so do every tenth line or so and all from 1,000 on: the lines
between two numbers that are as far apart as the lines are can be numbered by counting, so nothing is lost (ADR 0091).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER: Final = r"( {0,12}[1-9]\d{0,6}(?=[\t→])|0{1,6}[1-9]\d{0,6}(?=\| ))(\t|→|\| )"
"""A number as tools that read files print it: before a tab or an arrow, or padded with zeros before a bar and a blank.

Not before a colon: data is written so, and whether a blank behind it is the tool's or the text's cannot be seen.
"""
_NUMBERED: Final = re.compile(_NUMBER + "(.*)", re.DOTALL)
_LIKE_A_NUMBER: Final = re.compile(r"\s*\d+\s*[\t→|]")
"""A text that might be taken for one behind a number, although no tool here would have printed it so."""
_TWO: Final = re.compile(rf"^{_NUMBER}.*\n{_NUMBER}", re.MULTILINE)


class Line(NamedTuple):
    """A line: its number with what stands before it and behind it, if it has one, and its text.

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


_NAME: Final = 1_000
"""A number of four digits or more is a fact by itself, which agents quote: it stays."""
_LONG: Final = 100_000
"""Characters that are looked through in a millisecond."""
_NO_LINE: Final = Line(None, "")


def may_have_numbers(text: str) -> bool:
    """Return whether two lines of a text, one below the other, have numbers; of a long text without a look."""
    return len(text) > _LONG or _TWO.search(text) is not None


def lines_of(text: str) -> list[Line]:
    """Return the lines of a text."""
    return [line_of(line) for line in text.split("\n")]


def line_of(text: str) -> Line:
    """Return a line apart from its number; what follows the sign is its text."""
    found = _NUMBERED.fullmatch(text)
    return Line(None, text) if found is None else Line(int(found[1]), found[3], found[1], found[2])


def with_few_numbers(texts: Sequence[str], every: int) -> list[str]:
    """Return lines of which only some keep their numbers; as they are where a number could not be told by counting.

    Args:
        texts: the lines.
        every: a number stays where it is a multiple of this, and at both ends of a run of lines.
    """
    lines = [line_of(text) for text in texts]
    shown: list[str] = []
    counted, place = _NO_LINE, 0  # the last line that keeps its number, and where it is
    for here, line in enumerate(lines):
        follows = _follows(line, counted, here - place)
        in_a_run = follows and lines[here - 1].number is not None
        if follows and not in_a_run:
            return list(texts)  # the lines between have no numbers, and would be counted
        below = lines[here + 1] if here + 1 < len(lines) else _NO_LINE
        if in_a_run and _is_between(line, every) and _follows(below, counted, here + 1 - place):
            shown.append(line.text)
            continue
        shown.append(texts[here])
        if line.number is not None:
            counted, place = line, here
    return shown


def _is_between(line: Line, every: int) -> bool:
    """Return whether a line is no mark, and would not be read as one without its number."""
    if line.number is None or line.number >= _NAME:
        return False
    return line.number % every != 0 and _LIKE_A_NUMBER.match(line.text) is None


def _follows(line: Line, counted: Line, distance: int) -> bool:
    """Return whether a line is numbered as so many lines behind another one are."""
    if line.number is None or counted.number is None or line.sign != counted.sign:
        return False
    printed = str(counted.number + distance)
    pad = counted.printed[0] if counted.printed[0] in " 0" else " "
    return line.printed == printed.rjust(len(counted.printed), pad)
