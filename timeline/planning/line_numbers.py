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

_NUMBER: Final = r"((?: {0,12}|0{0,6})[1-9]\d{0,6})(\t|→|\||:)"
"""A number as tools that read files print it: padded with blanks or zeros, or not."""
_BEFORE_BLANK: Final = frozenset("|:")
"""Signs behind which some tools print a blank."""
_NUMBERED: Final = re.compile(_NUMBER + "(.*)", re.DOTALL)
_LIKE_A_NUMBER: Final = re.compile(r"\s*\d+\s*[\t→|:]")
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
_BLANK: Final = " "


def may_have_numbers(text: str) -> bool:
    """Return whether two lines of a text, one below the other, have numbers; of a long text without a look."""
    return len(text) > _LONG or _TWO.search(text) is not None


def lines_of(texts: Sequence[str]) -> list[Line]:
    """Return lines apart from their numbers.

    Whether the tool printed a blank behind a bar or a colon, or the text is indented, the least indented line shows: a
    tool prints one blank behind all of them, or none.
    """
    lines = [line_of(text) for text in texts]
    for sign in _BEFORE_BLANK:
        if min((_depth(line) for line in lines if line.sign == sign and line.text.strip()), default=0) == 1:
            lines = [_behind_blank(line) if line.sign == sign else line for line in lines]
    return lines


def _behind_blank(line: Line) -> Line:
    return line._replace(text=line.text[1:], sign=line.sign + _BLANK) if line.text.startswith(_BLANK) else line


def _depth(line: Line) -> int:
    return len(line.text) - len(line.text.lstrip(_BLANK))


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
    lines = lines_of(texts)
    begins = _where_texts_begin(lines)
    signs = {"\t", "→", *(lines[place].sign for place in begins)}
    shown: list[str] = []
    counted, place = _NO_LINE, 0  # the last line that keeps its number, and where it is
    for here, line in enumerate(lines):
        follows = _follows(line, counted, here - place)
        in_a_run = follows and lines[here - 1].number is not None
        if follows and not in_a_run:
            return list(texts)  # the lines between have no numbers, and would be counted
        below = lines[here + 1] if here + 1 < len(lines) else _NO_LINE
        between = in_a_run and line.sign in signs and here not in begins and _is_between(line, every)
        if between and _follows(below, counted, here + 1 - place):
            shown.append(line.text)
            continue
        shown.append(texts[here])
        if line.number is not None:
            counted, place = line, here
    return shown


def _where_texts_begin(lines: Sequence[Line]) -> set[int]:
    """Return the places of lines that show where texts begin: behind a bar or a colon the first one not indented."""
    places: dict[str, int] = {}
    for place, line in enumerate(lines):
        if line.sign[:1] in _BEFORE_BLANK and line.text.strip() and not _depth(line):
            places.setdefault(line.sign[0], place)
    return {*places.values()}


def _is_between(line: Line, every: int) -> bool:
    """Return whether a line is no mark, and would not be read as one without its number."""
    if line.number is None or line.number >= _NAME:
        return False
    return line.number % every != 0 and _LIKE_A_NUMBER.match(line.text) is None


def _follows(line: Line, counted: Line, distance: int) -> bool:
    """Return whether a line is numbered as so many lines behind another one are."""
    if line.number is None or counted.number is None or line.sign[:1] != counted.sign[:1]:
        return False
    printed = str(counted.number + distance)
    pad = counted.printed[0] if counted.printed[0] in " 0" else " "
    return line.printed == printed.rjust(len(counted.printed), pad)
