"""Words: cut a text into words, parse a query, and find the query's places in a text.

Every store cuts by these rules, and a database's index too: it indexes the words as they are made here.

A word is a run of letters with their marks and digits, upper and lower case alike, a letter and its mark the same as
the sign of both. Scripts that put no space between words (Chinese, Japanese, Thai, Lao, Burmese, Khmer), and Korean,
which puts none before its particles, have a word at each sign, so that any part of a text finds it. ``_``, ``.``, ``/``
and similar signs separate words: the query ``src/app/main.py`` asks for four words in this order. A word with humps
(``getUserName``) is one word, and each of its humps is found too.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import normalize

from timeline.errors import InvalidFilter
from timeline.queries import LONGEST_QUERY

from .marks import MARKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LONGEST: Final = 64
"""Most letters of a word: a longer run is cut, so that a page of base64 does not become one word."""
_SINGLE: Final = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese: also repetition and zero, and half width
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecd\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u1780-\u17d3\u17d7\u17dc\u17dd"  # Burmese, Khmer
    "\u3131-\u318e\uac00-\ud7a3"  # Korean, whose particles follow a name in any script without a space
)
_LETTER: Final = rf"[^\W_{_SINGLE}]"
_MARKED: Final = rf"(?![\u0300-\U0010ffff])|(?:[{MARKS}]{{1,4}}{_LETTER}{{0,20}}){{0,10}}"
"""Matches the rest of a word from its first mark on; in most texts one look says that there is none."""
WORD: Final = re.compile(rf"[{_SINGLE}]|{_LETTER}{{1,{LONGEST}}}+(?:{_MARKED})")
"""Matches one word, in its own case. Marks make it no longer than a lexeme of PostgreSQL may be, 2,046 bytes."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ASKED: Final = re.compile(r'"(?P<quoted>[^"]*)"?|(?P<plain>[^\s"]+)')
PIECE: Final = 256 * 1024
"""Characters of a long text that are cut into words at a time: as words they take many times their room."""
_BETWEEN: Final = re.compile(rf"(?![{MARKS}])[\W_{_SINGLE}]")
"""Matches where a text may be parted without parting a word."""
_STARRED: Final = re.compile(rf"(?:[^\W_]|[{_SINGLE}{MARKS}])\*\Z")


def composed(text: str) -> str:
    """Return a text in the form that is cut: a letter and its mark as the one sign that Unicode has for both, if any.

    Names of files come in either form, from macOS with the mark apart.
    """
    return normalize("NFC", text)


def folded(text: str) -> str:
    """Return a text in the case that is compared.

    Case is folded sign by sign, and takes some apart: a Greek iota with two marks becomes three signs, its capital two.
    """
    return text.lower() if text.isascii() else composed(text.casefold())


def humps_of(word: str) -> tuple[str, ...]:
    """Return the humps of a word, in lower case; none if it has only one."""
    if word.islower() or len(word) == LONGEST:
        return ()
    humps = _HUMP.split(word)
    return tuple(map(folded, humps)) if len(humps) > 1 else ()


@dataclass(frozen=True)
class Words:
    """A text as words: each in lower case, with the humps of each word that has some."""

    words: list[str]
    humps: list[tuple[str, ...]]

    @classmethod
    def of(cls, text: str) -> Words:
        """Cut a text."""
        written = WORD.findall(text)
        # All at a time: a letter's lower case depends on no other letter, and has no space.
        words = folded(" ".join(written)).split(" ") if written else []
        return cls(words, [humps for word in written if len(word) > 1 and (humps := humps_of(word))])

    @staticmethod
    def each(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield each word of a text in lower case, with its humps."""
        for word in WORD.findall(text):
            yield folded(word), humps_of(word)

    @cached_property
    def columns(self) -> tuple[str, str]:
        """The words, and the humps with ``SEAM`` between those of two words: two texts that are split at spaces."""
        return " ".join(self.words), f" {SEAM} ".join(" ".join(humps) for humps in self.humps)

    @cached_property
    def often(self) -> tuple[Counter[str], Counter[str]]:
        """How often each word, and each hump, is there: a query of many words asks this instead of all of the text."""
        return Counter(self.words), Counter(chain.from_iterable(self.humps))

    @cached_property
    def sorted(self) -> tuple[list[str], list[str]]:
        """The words, and the humps, each sorted: those that begin alike stand together."""
        return sorted(self.words), sorted(chain.from_iterable(self.humps))

    @property
    def size(self) -> int:
        """Number of words in both columns."""
        return len(self.words) + sum(map(len, self.humps)) + max(len(self.humps) - 1, 0)


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Part a text between words into pieces of bounded length; yield each with its place.

    A run of letters without an end is one piece: it is cut into few words.
    """
    start = 0
    while start < len(text):
        gap = _BETWEEN.search(text, start + PIECE)
        end = len(text) if gap is None else max(gap.start(), start + 1)
        yield start, text[start:end] if end - start < len(text) else text
        start = end


_BEHIND: Final = "\U0010ffff"
"""Sorts behind every letter, mark and digit."""
SEAM: Final = "\u00a6"
"""Separates the humps of two words, so that no phrase crosses the seam."""


class Phrase(NamedTuple):
    """Consecutive words, in the text or in the humps of one word; the last one may match by its beginning only."""

    parts: tuple[str, ...]
    in_words: bool
    in_humps: bool
    prefix: bool

    def count(self, words: Words, before: Sequence[str] = ()) -> int:
        """Count the places of the phrase in a text that end in it; ``before`` are the words right before it."""
        in_words, in_humps = self._ends(words)
        if len(self.parts) == 1:
            return in_words + in_humps
        found = 0
        if in_words:
            least = len(before) - len(self.parts) + 1
            found = sum(start >= least for start in self.places([*before, *words.words]))
        if in_humps:
            found += sum(1 for humps in words.humps for _ in self.places(humps))
        return found

    def _ends(self, words: Words) -> tuple[int, int]:
        """Return how often the last word of the phrase is among the words, and how often among the humps."""
        last = self.parts[-1]
        if self.prefix:
            there, in_humps = (_number_of(last, column) for column in words.sorted)
        else:
            there, in_humps = (column[last] for column in words.often)
        return there * self.in_words, in_humps * self.in_humps

    def places(self, words: Sequence[str]) -> Iterator[int]:
        """Iterate over the indexes of words at which the phrase begins."""
        *before, last = self.parts
        size = len(before)
        for end in _beginning(last, words) if self.prefix else _equal(last, words):
            start = end - size
            if start >= 0 and (not before or list(words[start:end]) == before):
                yield start


def _number_of(beginning: str, words: Sequence[str]) -> int:
    """Return how many of some sorted words begin so."""
    return bisect_left(words, beginning + _BEHIND) - bisect_left(words, beginning)


def _beginning(last: str, words: Sequence[str]) -> Iterator[int]:
    """Iterate over the indexes of the words that begin so."""
    return (place for place, word in enumerate(words) if word.startswith(last))


def _equal(last: str, words: Sequence[str]) -> Iterator[int]:
    """Iterate over the indexes of a word. `index` looks several times faster than a loop: long queries ask it often."""
    place = -1
    with suppress(ValueError):
        while True:
            place = words.index(last, place + 1)
            yield place


class Term(NamedTuple):
    """One requirement of a query, met by any of its phrases."""

    phrases: tuple[Phrase, ...]


@dataclass(frozen=True)
class Query:
    """A parsed query: every term must be found."""

    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> Query:
        """Parse a user's query: words, ``"quoted words"`` and ``begin*``; no other syntax has a meaning.

        Args:
            text: the query.

        Raises:
            InvalidFilter: it is no text, or has no word, or more than `LONGEST_QUERY` characters.
        """
        if not isinstance(text, str):
            raise InvalidFilter("query", f"must be a text, not of type {type(text).__name__}")
        if len(text) > LONGEST_QUERY:
            raise InvalidFilter("query", f"has {len(text):,} characters of at most {LONGEST_QUERY:,}; give fewer words")
        terms: dict[Term, None] = {}
        for asked in _ASKED.finditer(composed(text)):
            quoted = asked["quoted"]
            term = _plain(asked["plain"]) if quoted is None else _quoted(quoted)
            if term is not None:
                terms[term] = None
        if not terms:
            raise InvalidFilter("query", "holds no word to look for; a word has a letter or a digit")
        return cls(tuple(terms))

    @property
    def phrases(self) -> list[Phrase]:
        """All phrases of all terms, in order."""
        return [phrase for term in self.terms for phrase in term.phrases]

    @property
    def letters(self) -> str | None:
        """The longest run of ASCII letters and digits that a text of ASCII alone has to contain, in lower case.

        None if the query has no such word. A text that does not contain it need not be cut into words.
        """
        # The last phrase of a term: the humps of a word are in the word, and the word need not be in one with humps.
        parts = [part for term in self.terms for part in term.phrases[-1].parts if part.isascii()]
        return max(parts, key=len, default=None)

    def counts(self, words: Words) -> list[int]:
        """Count each phrase in a text."""
        return [phrase.count(words) for phrase in self.phrases]

    def counted(self, text: str, between: Callable[[], None] = lambda: None) -> tuple[int, list[int]]:
        """Return the size of a text of any length as `Words`, and the count of each phrase in it.

        ``between`` is called before each piece of the text, and may raise to give it up.
        """
        phrases, totals = self.phrases, [0] * len(self.phrases)
        overlap = max(len(phrase.parts) for phrase in phrases) - 1
        size = seams = 0
        before: list[str] = []
        for _, piece in pieces(text):
            between()
            words = Words.of(piece)
            size += len(words.words) + sum(map(len, words.humps))
            seams += len(words.humps)
            # A phrase that ends in what came before was counted there.
            counts = [phrase.count(words, before) for phrase in phrases]
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
            before = [*before, *words.words[-overlap:]][-overlap:] if overlap else []
        return size + max(seams - 1, 0), totals

    def met(self, counts: Sequence[int]) -> bool:
        """Return whether each term has a phrase with a count above 0."""
        each = iter(counts)
        return all(any(list(islice(each, len(term.phrases)))) for term in self.terms)


def _quoted(text: str) -> Term | None:
    words = tuple(Words.of(text).words)
    return Term((Phrase(words, in_words=True, in_humps=False, prefix=False),)) if words else None


def _plain(text: str) -> Term | None:
    written = WORD.findall(text)
    if not written:
        return None
    prefix = _STARRED.search(text) is not None
    words = tuple(map(folded, written))
    if len(words) > 1:
        return Term((Phrase(words, in_words=True, in_humps=False, prefix=prefix),))
    humps = humps_of(written[0])
    if not humps:
        return Term((Phrase(words, in_words=True, in_humps=True, prefix=prefix),))
    return Term(
        (
            Phrase(words, in_words=True, in_humps=False, prefix=prefix),
            Phrase(humps, in_words=False, in_humps=True, prefix=prefix),
        )
    )
