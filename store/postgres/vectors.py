"""Texts and queries as PostgreSQL's full-text types hold them, made of the words of `store.search.words`.

A word is a lexeme with ``w`` in front, a hump one with ``h``, the type of a block one with ``t``: no dictionary of the
server has a part in it. PostgreSQL keeps at most 255 places of a lexeme, no place above 16,383, and no vector above
1 MB, and says nothing of the first two. So a longer text becomes several vectors. Each begins with the last words of
the one before it, so that a phrase of some words lies in one of them as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from timeline.frozen import sha256_hex

from ..search.words import Words, pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..search.scanning import Text
    from ..search.words import Phrase, Query

OVERLAP: Final = 15
"""Words of a vector that were the last ones of the vector before it."""
MOST_ASKED: Final = 250
"""Words of a phrase that the server is asked for; it goes one call deeper for each."""
_MOST_PLACES: Final = 250
_LAST_PLACE: Final = 16_000
_MOST_BYTES: Final = 256 * 1024


class _Vector:
    """A vector that is being filled."""

    def __init__(self, type_lexeme: str, before: Sequence[str]) -> None:
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._type = type_lexeme
        self._word = self._hump = self._bytes = 0
        self._full = False
        for word in before:
            self.add(word)

    def add(self, word: str) -> None:
        """Add the next word."""
        self._word += 1
        self._add(f"w{word}", self._word)

    def add_humps(self, humps: Sequence[str]) -> None:
        """Add the humps of a word; no phrase crosses from one word's to another's."""
        for hump in humps:
            self._hump += 1
            self._add(f"h{hump}", self._hump)
        self._hump += 1

    def _add(self, lexeme: str, place: int) -> None:
        places = self._places[lexeme]
        places.append(place)
        self._bytes += 4 if len(places) > 1 else 4 * len(lexeme) + 8
        if len(places) >= _MOST_PLACES - 1:
            self._full = True

    def is_full(self, humps: int) -> bool:
        """Return whether a word with so many humps has no room any more."""
        last = max(self._word, self._hump + humps)
        return self._full or last >= _LAST_PLACE or self._bytes >= _MOST_BYTES or humps >= _MOST_PLACES

    def literal(self) -> str:
        """Return the vector in the form that PostgreSQL reads; letters and digits need no escape."""
        written = [f"'{lexeme}':{','.join(map(str, places))}" for lexeme, places in self._places.items()]
        return " ".join([f"'{self._type}'", *written])


def vectors(text: Text) -> tuple[int, list[str]]:
    """Return the number of words of a text, as `Words.size` counts them, and its vectors; none without a word."""
    made: list[str] = []
    size = seams = 0
    vector = _Vector(type_lexeme(text.type), ())
    newest: list[str] = []
    for word, humps in _words(text.text):
        if newest and vector.is_full(len(humps)):
            made.append(vector.literal())
            vector = _Vector(type_lexeme(text.type), newest)
        vector.add(word)
        size += 1 + len(humps)
        if humps:
            vector.add_humps(humps)
            seams += 1
        newest = [*newest[-OVERLAP + 1 :], word]
    if newest:
        made.append(vector.literal())
    return size + max(seams - 1, 0), made


def _words(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for _, piece in pieces(text):
        yield from Words.each(piece)


def type_lexeme(type_: str) -> str:
    """Return the lexeme of a type of blocks."""
    return f"t{sha256_hex(type_.encode(errors='replace').decode())[:32]}"


def is_long(phrase: Phrase, *, several: bool) -> bool:
    """Return whether the server cannot be asked for a whole phrase, so that the texts it may be in have to be read.

    In a text of several vectors, it may lie in none of them as a whole.
    """
    return phrase.in_words and len(phrase.parts) > _most_asked(several=several)


def _most_asked(*, several: bool) -> int:
    return OVERLAP + 1 if several else MOST_ASKED


def phrase_query(phrase: Phrase, *, several: bool) -> str:
    """Write a phrase as a query for texts of one vector or of several; of a long one the beginning.

    The humps of a word are in one vector, whatever their number.
    """
    asked = []
    for sign, wanted, most in (("w", phrase.in_words, _most_asked(several=several)), ("h", phrase.in_humps, None)):
        *before, last = phrase.parts[:most]
        star = ":*" if phrase.prefix and len(before) + 1 == len(phrase.parts) else ""
        if wanted:
            asked.append(" <-> ".join([*(f"'{sign}{part}'" for part in before), f"'{sign}{last}'{star}"]))
    return " | ".join(f"({each})" for each in asked)


def every_term(query: Query) -> str:
    """Write a query for the texts of one vector in which each term is found."""
    terms = ([phrase_query(phrase, several=False) for phrase in term.phrases] for term in query.terms)
    return " & ".join(f"({' | '.join(phrases)})" for phrases in terms)


def any_term(query: Query) -> str:
    """Write a query for those of a text's several vectors in which some term is found."""
    return " | ".join(phrase_query(phrase, several=True) for phrase in query.phrases)


def any_type(types: Iterable[str]) -> str:
    """Write a query for the vectors of some types."""
    return " | ".join(f"'{type_lexeme(type_)}'" for type_ in types)


def lexemes(query: Query) -> tuple[list[str], list[str]]:
    """Return the lexemes that a query asks for, and the beginnings of lexemes."""
    whole: set[str] = set()
    begun: set[str] = set()
    for phrase in query.phrases:
        for sign, wanted in (("w", phrase.in_words), ("h", phrase.in_humps)):
            if wanted:
                *before, last = (f"{sign}{part}" for part in phrase.parts)
                whole.update(before)
                (begun if phrase.prefix else whole).add(last)
    return sorted(whole), sorted(begun)


def count(phrase: Phrase, places: Mapping[str, Sequence[int]], *, first: bool) -> int:
    """Count the places of a phrase in a vector, given those of its lexemes.

    Args:
        phrase: the phrase, which is not long in such a text.
        places: the places of each lexeme.
        first: whether it is the first vector of its text; in another one, what the one before it held does not count.
    """
    total = 0
    for sign, wanted, least in (("w", phrase.in_words, 0 if first else OVERLAP), ("h", phrase.in_humps, 0)):
        if wanted:
            *before, last = (f"{sign}{part}" for part in phrase.parts)
            sets = [frozenset(places.get(lexeme, ())) for lexeme in before]
            total += sum(
                end > least and all(end - len(sets) + number in each for number, each in enumerate(sets))
                for lexeme, ends in places.items()
                if lexeme == last or (phrase.prefix and lexeme.startswith(last))
                for end in ends
            )
    return total
