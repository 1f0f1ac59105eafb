"""The longest prefix of a text that counts at most so many tokens, exact and without counting the whole text.

Counts add up at *seams*: places where both vocabularies' patterns always begin a new piece, whatever stands before or
after. So whole stretches between seams are taken while they fit, and only the one stretch that does not fit is cut
inside, where a count can go down when a character is added ("ab" may be one token and "a" + "bc" two).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from timeline.tokens.vocabulary import LONGEST_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

_SEAM: Final = re.compile(
    r"(?<=\S)(?= )"  # a space begins a piece unless white space stands before it
    r"|(?<=[^\W_])(?=[\n.,;:!?/+=()\[\]{}\"<>|\\"  # a line break or sign does after a letter or digit
    r"\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f])"  # the same signs in East Asian writing
    r"|(?<=[a-zA-Z])(?=[0-9])|(?<=[0-9])(?=[a-zA-Z])"
)
_FIRST_STRETCH: Final = 8
"""Characters a token in the first try; prose has about four, so that one try mostly decides."""
_SCANNED: Final = 4_096
"""Up to so many characters without a seam the result is exactly the longest prefix; see `longest_prefix`."""


def longest_prefix(text: str, tokens: int, *, count: Callable[[str], int], cut: Callable[[str, int], int]) -> str:
    """Return the longest prefix of a text, at a character boundary, whose count is at most ``tokens``.

    In a run of more than 4,096 characters without a seam (a megabyte of one letter) the cut is made at a token's end,
    and may fall some characters short of the longest. The cost is linear in ``tokens``, whatever the text's length.

    Args:
        text: text without lone surrogates.
        tokens: the most that the result may count; the result is empty for 0 and less.
        count: exact number of tokens of a text.
        cut: number of characters that lie wholly in a text's first so many tokens.
    """
    text = text[: max(tokens, 0) * LONGEST_TOKEN]
    taken, size = 0, _FIRST_STRETCH * tokens
    while taken < len(text) and tokens > 0:
        end = _stretch(text, taken, size)
        needed = count(text[taken:end])
        if needed <= tokens:
            taken, tokens = end, tokens - needed
        elif (smaller := _shorter(text, taken, end)) < end:
            size = smaller - taken
        else:
            return text[: taken + _cut_inside(text[taken:end], tokens, count=count, cut=cut)]
    return text[:taken]


def _stretch(text: str, start: int, size: int) -> int:
    """Return the first seam at least ``size`` characters (and one) after ``start``, or the end of the text."""
    seam = _SEAM.search(text, start + max(size, 1))
    return seam.start() if seam else len(text)


def _shorter(text: str, start: int, end: int) -> int:
    """Return a seam between ``start`` and ``end``, about in the middle where there is one; ``end`` if there is none."""
    middle = _stretch(text, start, (end - start) // 2)
    return middle if middle < end else min(_stretch(text, start, 1), end)


def _cut_inside(stretch: str, tokens: int, *, count: Callable[[str], int], cut: Callable[[str, int], int]) -> int:
    """Return the length of the longest prefix of a stretch without seams that counts at most ``tokens``.

    The search goes on from a token's end until as many lengths as the longest token has bytes did not fit. None that is
    longer can fit then: its encoding would have to step from one of those lengths, and each needs more already.
    """
    best = cut(stretch, tokens)
    while count(stretch[:best]) > tokens:
        best -= 1
    if best > _SCANNED:
        return best
    length = best
    while length < len(stretch) and length - best < LONGEST_TOKEN:
        length += 1
        if count(stretch[:length]) <= tokens:
            best = length
    return best
