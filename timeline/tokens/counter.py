"""Count tokens: exactly with tiktoken, exactly and faster with toktok, or as a quarter of the characters.

Both exact counters give the same numbers (the ids are equal), so they carry the same name. A text is counted as a
model would read it: special tokens are ordinary text, and lone surrogates count as the replacement character.

The longest prefix of a text within a number of tokens is found without counting the whole text. Counts add up at
*seams*: places where both vocabularies' patterns always begin a new piece, whatever is before or after. So whole
stretches between seams are taken while they fit, and only the one stretch that does not fit is cut inside, where a
count can go down when a character is added ("ab" may be one token and "a" + "bc" two).
"""

from __future__ import annotations

import importlib
import re
import unicodedata
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from timeline.frozen import repair_text
from timeline.tokens.vocabulary import LONGEST_TOKEN, VOCABULARIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tiktoken import Encoding


_SEAM: Final = re.compile(
    r"(?<=\S)(?= )"  # a space begins a piece unless white space precedes it
    r"|(?<=[^\W_])(?=[\n.,;:!?/+=()\[\]{}\"<>|\\"  # a line break or sign does after a letter or digit
    r"\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f])"  # the same signs in East Asian writing
    r"|(?<=[a-zA-Z])(?=[0-9])|(?<=[0-9])(?=[a-zA-Z])"
)
_FIRST_STRETCH: Final = 8
"""Characters a token that the first try assumes; prose has about four, so one try mostly decides."""
_FIRST_WIDE: Final = 2
"""The same for a text that is not ASCII: most writings have between one and three."""
_SCANNED: Final = 4_096
"""Up to this many characters without a seam the result is exactly the longest prefix; see `longest_prefix`."""
_MOST_KEPT: Final = 0.9
"""The share of a stretch that is tried next where it did not fit, at most: each try is shorter, and there are few."""
_settled: Final[set[str]] = set()
"""Characters of texts so far that this Python knows: few texts have one that is not among them."""
_BEYOND: Final = 4 * LONGEST_TOKEN
"""Tokens behind a cut that the encoding in which it is made has at least: what comes behind them does not move it.

They are as many characters as the longest token has bytes, or more: a character has four bytes at most.
"""


def longest_prefix(text: str, tokens: int, *, count: Callable[[str], int], cut: Callable[[str, int], int]) -> str:
    """Return the longest prefix of a text, at a character boundary, whose count is at most ``tokens``.

    In a run of more than 4,096 characters without a seam (a megabyte of one letter) the cut is made at a token's end,
    and may fall some characters short of the longest. The cost is linear in ``tokens`` and the result, whatever the
    text's length.

    Args:
        text: text without lone surrogates.
        tokens: most tokens of the result, which is empty for 0 and less.
        count: exact number of tokens of a text.
        cut: number of characters that lie wholly in the first so many tokens of a text.
    """
    text = text[: max(tokens, 0) * LONGEST_TOKEN]
    taken, size = 0, (_FIRST_STRETCH if text.isascii() else _FIRST_WIDE) * tokens
    while taken < len(text) and tokens > 0:
        end, adds_up = _bounded(text, taken, size)
        needed = count(text[taken:end])
        if adds_up and needed <= tokens:
            taken, tokens = end, tokens - needed
            size = min(size, _FIRST_STRETCH * tokens)
        elif not adds_up and needed <= tokens + _BEYOND:
            size = end - taken
        elif (smaller := _shorter(text, taken, end, tokens / needed)) < end:
            size = smaller - taken
        else:
            return text[: taken + _cut_inside(text[taken:end], tokens, count=count, cut=cut)]
    return text[:taken]


def _stretch(text: str, start: int, size: int) -> int:
    """Return the first seam at least ``size`` characters (and one) after ``start``, or the end of the text."""
    seam = _SEAM.search(text, start + max(size, 1))
    return seam.start() if seam else len(text)


def _bounded(text: str, start: int, size: int) -> tuple[int, bool]:
    """Return the end of a stretch as `_stretch` does, or a place that is no seam where the next one is far away.

    Behind the cut, a text without seams is neither searched nor counted.

    Returns:
        The end, and whether the count up to it adds up with that of what follows.
    """
    begin = start + max(size, 1)
    last = begin + _SCANNED
    if seam := _SEAM.search(text, begin, last):
        return seam.start(), True
    return min(last, len(text)), last >= len(text)


def _shorter(text: str, start: int, end: int, share: float) -> int:
    """Return a seam between ``start`` and ``end``, behind a share of what is there if possible; ``end`` if none is."""
    for size in (int((end - start) * min(share, _MOST_KEPT)), (end - start) // 2, 1):
        if seam := _SEAM.search(text, start + max(size, 1), end):
            return seam.start()
    return end


def _cut_inside(stretch: str, tokens: int, *, count: Callable[[str], int], cut: Callable[[str, int], int]) -> int:
    """Return the length of the longest prefix of a stretch without seams that counts at most ``tokens``.

    The search continues behind a token's end until as many bytes as the longest token has did not fit. No longer prefix
    can fit then: its encoding would have to step from one of those lengths, and each needs too many tokens already.
    """
    best = cut(stretch, tokens)
    while count(stretch[:best]) > tokens:
        best -= 1
    if best > _SCANNED:
        return best
    length, behind = best, 0
    while length < len(stretch) and behind < LONGEST_TOKEN:
        behind += len(stretch[length].encode())
        length += 1
        if count(stretch[:length]) <= tokens:
            best, behind = length, 0
    return best


CHARACTERS_PER_TOKEN: Final = 4
"""The rule of thumb of the keep-last, keep-ratio and prune-then-summarize designs."""
BLANKS: Final = 960_000
"""Most white space in a row that tiktoken is given at once: at a million its regex engine overflows and panics.

A multiple of 128, so that slices of a run of one character count as much as the whole run.
"""
_WORTH_THREADS: Final = 1_000_000
"""Characters below which setting up toktok's threads costs more than they save (measured with blocks of 900)."""
LONGEST_PART: Final = 4_000_000
"""Characters of a text that are counted at once: the ids of a text take ten times its size in memory."""
_LONG_BLANK: Final = re.compile(rf"(?<!\s)\s{{{BLANKS},}}")


class TiktokenCounter:
    """Exact counts by tiktoken, with the vocabulary that ships in this package; faster than tiktoken as it comes.

    Args:
        name: ``o200k_base`` or ``cl100k_base``; another name is a `KeyError`.
    """

    def __init__(self, name: str) -> None:
        self._encoding = load_encoding(name)

    @property
    def name(self) -> str:
        """The encoding's name."""
        return self._encoding.name

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        if len(text) <= LONGEST_PART:
            return len(self._ids(text))
        return sum(len(self._ids(part)) for part in parts_between_seams(text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count many texts, one after the other.

        On two cores tiktoken's own thread pool takes half as long again for blocks of 300 to 5,000 characters: the
        ids are made into lists under the interpreter's lock, and each text pays for its hand-over.
        """
        return [self.count(text) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """Return the longest prefix of the repaired text that counts at most ``tokens``."""
        return longest_prefix(repair_text(text), tokens, count=self.count, cut=self._cut)

    def _cut(self, text: str, tokens: int) -> int:
        return len(self._encoding.decode_bytes(self._ids(text)[:tokens]).decode(errors="ignore"))

    def _ids(self, text: str) -> list[int]:
        if len(text) <= BLANKS:
            return self._encoding.encode_ordinary(text)
        return [id_ for part in sliced(text) for id_ in self._encoding.encode_ordinary(part)]


class ToktokCounter:
    """Exact counts by toktok-rs (the extra ``fast``), two to three times as fast as `TiktokenCounter`.

    Args:
        name: ``o200k_base`` or ``cl100k_base``.

    Raises:
        ImportError: the extra is not installed.
    """

    def __init__(self, name: str) -> None:
        self._toktok: Any = importlib.import_module("toktok")
        self._name = name

    @cached_property
    def _exact(self) -> TiktokenCounter:
        """The counter that decides where the two may disagree."""
        return TiktokenCounter(self._name)

    @property
    def name(self) -> str:
        """The encoding's name: the ids are tiktoken's."""
        return self._name

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        if not text.isascii() and is_unsettled(text):
            return self._exact.count(text)
        if len(text) > LONGEST_PART:
            return sum(map(self._count, parts_between_seams(text)))
        return self._count(text)

    def _count(self, text: str) -> int:
        # `truncate` reports the whole text's count, and unlike `batch_count` sets up no threads (5 µs against 27).
        total: int = self._toktok.truncate(repair_text(text), 0, self._name)[1]
        return total

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count many texts, on all cores where they are long enough to pay for the threads."""
        if sum(map(len, texts)) < _WORTH_THREADS or any(not t.isascii() and is_unsettled(t) for t in texts):
            return [self.count(text) for text in texts]
        shorter = [text for text in texts if len(text) <= LONGEST_PART]
        counts = iter(self._toktok.batch_count([repair_text(text) for text in shorter], self._name))
        return [next(counts) if len(text) <= LONGEST_PART else self.count(text) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """Return the longest prefix of the repaired text that counts at most ``tokens``."""
        return longest_prefix(repair_text(text), tokens, count=self.count, cut=self._cut)

    def _cut(self, text: str, tokens: int) -> int:
        return len(self._toktok.truncate(text, tokens, self._name)[0])


class QuarterCounter:
    """Estimates ``ceil(characters / 4)``, for policies that ask for it and models whose tokenizer is not public."""

    @property
    def name(self) -> str:
        """Always ``chars4``."""
        return "chars4"

    def count(self, text: str) -> int:
        """Return a quarter of the number of characters, rounded up; 0 for an empty text."""
        return -(-len(text) // CHARACTERS_PER_TOKEN)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count many texts."""
        return [self.count(text) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """Return the first ``4 · tokens`` characters."""
        return text[: max(0, tokens) * CHARACTERS_PER_TOKEN]


def is_unsettled(text: str) -> bool:
    """Return whether a text holds characters that this Python does not know.

    The engines split words by the Unicode classes of their own releases, so they may disagree about newer characters.
    """
    new = set(text) - _settled
    unsettled = {character for character in new if unicodedata.category(character) == "Cn"}
    _settled.update(new - unsettled)
    return bool(unsettled)


def parts_between_seams(text: str) -> Iterator[str]:
    """Yield a long text in parts of some millions of characters whose counts add up to its own.

    A part without a seam is as long as it is.
    """
    start = 0
    while start < len(text):
        end = _stretch(text, start, LONGEST_PART // 2)
        yield text[start:end]
        start = end


def sliced(text: str) -> list[str]:
    """Cut a text inside its runs of more than ``BLANKS`` white-space characters, and nowhere else."""
    cuts = [at for run in _LONG_BLANK.finditer(text) for at in range(run.start() + BLANKS, run.end(), BLANKS)]
    return [text[start:end] for start, end in pairwise((0, *cuts, len(text)))]


def load_encoding(name: str, *, pattern: str | None = None) -> Encoding:
    """Build tiktoken's encoding from the packed vocabulary, without its network or cache (a quarter of a second).

    Args:
        name: of the vocabulary.
        pattern: the expression that splits a text into pieces; the vocabulary's quick one unless given.

    Raises:
        KeyError: there is no pack of this name.
    """
    # Imported here, so that importing the library does not pay for what only counting needs.
    from tiktoken import Encoding  # noqa: PLC0415 - see above

    vocabulary = VOCABULARIES[name]
    return Encoding(
        name,
        pat_str=pattern or vocabulary.quick_pattern,
        mergeable_ranks=vocabulary.ranks(),
        special_tokens=dict(vocabulary.special_tokens),
    )
