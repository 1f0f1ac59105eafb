"""Words: how a text is cut into words, what a query asks for, and where in a text it is found.

Every store cuts by these rules, the index of a database too: what is indexed are the words as they are made here.

A word is a run of letters and digits, upper and lower case alike; each Chinese character and each Japanese kana is a
word of its own, so that a text without spaces is found by any part of it. ``_``, ``.``, ``/`` and the like stand
between words: a query's ``src/app/main.py`` asks for four words in this order. A word with humps (``getUserName``) is
one word, and each of its humps is found too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.errors import InvalidFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST: Final = 64
"""Letters of a word: a longer run is cut, so that a page of base64 makes no word of its own."""
_SINGLE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
WORD: Final = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]{{1,{LONGEST}}}")
"""One word as it is written."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ASKED: Final = re.compile(r'"(?P<quoted>[^"]*)"?|(?P<plain>[^\s"]+)')
_STARRED: Final = re.compile(r"[^\W_]\*\Z")


def humps_of(word: str) -> tuple[str, ...]:
    """Return the humps of a word as it is written, folded; nothing if it has only one."""
    if word.islower() or len(word) == LONGEST:
        return ()
    humps = _HUMP.split(word)
    return tuple(hump.casefold() for hump in humps) if len(humps) > 1 else ()


@dataclass(frozen=True)
class Words:
    """A text as words: each folded, and the humps of each word that has some."""

    words: list[str]
    humps: list[tuple[str, ...]]

    @classmethod
    def of(cls, text: str) -> Words:
        """Cut a text."""
        written = WORD.findall(text)
        return cls([word.casefold() for word in written], [humps for word in written if (humps := humps_of(word))])

    @cached_property
    def columns(self) -> tuple[str, str]:
        """The words, and the humps with ``SEAM`` between those of two words: two texts to be cut at spaces."""
        return " ".join(self.words), f" {SEAM} ".join(" ".join(humps) for humps in self.humps)

    @property
    def size(self) -> int:
        """How many words the columns have together."""
        return len(self.words) + sum(map(len, self.humps)) + max(len(self.humps) - 1, 0)


SEAM: Final = "\u00a6"
"""Stands between the humps of two words, so that no phrase goes over the seam."""


class Phrase(NamedTuple):
    """Words that follow one another, in the text or in the humps of one word; of the last the beginning may do."""

    parts: tuple[str, ...]
    in_words: bool
    in_humps: bool
    prefix: bool

    def count(self, words: Words) -> int:
        """Count the places where a text has it."""
        found = sum(1 for _ in self.places(words.words)) if self.in_words else 0
        return found + sum(1 for humps in words.humps for _ in self.places(humps)) if self.in_humps else found

    def places(self, words: Sequence[str]) -> Iterator[int]:
        """Iterate over the indexes of words at which it begins."""
        *before, last = self.parts
        size = len(before)
        for start, word in enumerate(words[size:]):
            fits = word == last or (self.prefix and word.startswith(last))
            if fits and list(words[start : start + size]) == before:
                yield start


class Term(NamedTuple):
    """One thing that a query asks for: any of its phrases will do."""

    phrases: tuple[Phrase, ...]


@dataclass(frozen=True)
class Query:
    """What a text asks for: every term must be found."""

    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> Query:
        """Read what a person typed: words, ``"quoted words"`` and ``begin*``; nothing else has a meaning.

        Raises:
            InvalidFilter: there is no word in it.
        """
        terms: dict[Term, None] = {}
        for asked in _ASKED.finditer(text):
            quoted = asked["quoted"]
            term = _plain(asked["plain"]) if quoted is None else _quoted(quoted)
            if term is not None:
                terms[term] = None
        if not terms:
            raise InvalidFilter("text", "holds no word to look for; a word has a letter or a digit")
        return cls(tuple(terms))

    @property
    def phrases(self) -> list[Phrase]:
        """All phrases of all terms, in order."""
        return [phrase for term in self.terms for phrase in term.phrases]

    def counts(self, words: Words) -> list[int]:
        """Count each phrase in a text."""
        return [phrase.count(words) for phrase in self.phrases]

    def met(self, counts: Sequence[int]) -> bool:
        """Say whether each term has a phrase that was counted."""
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
    words = tuple(word.casefold() for word in written)
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
