"""Snippets: the part of a text that shows best why it was found, with its hits between ``«`` and ``»``."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import category

from timeline.events import appended_block
from timeline.queries import Found

from .scanning import text_of
from .words import WORD, folded, humps_of, pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from timeline.events import Event

    from .words import Phrase, Query

WIDTH: Final = 160
"""Characters of the text that a snippet shows."""
_BEFORE: Final = 40
"""Characters shown before the first hit."""
_MOST_KEPT: Final = 1_000
"""Hits behind which no more are looked for: more than a snippet that begins at one of the first can show."""
_MOST_TRIED: Final = 200
"""Most hits at which a snippet may begin; in a text with more hits it begins at one of the first."""
_MOST_OF_PHRASE: Final = _MOST_TRIED + WIDTH
"""Hits of one phrase that a snippet can need: it begins at one of the first, and each hit behind it is a character."""


class _Place(NamedTuple):
    """A hit: characters ``start`` to ``end`` of the text, and the number of its term."""

    start: int
    end: int
    term: int


def found(event: Event, payload: str, query: Query, rank: float, reverted_by: int | None) -> Found | None:
    """Return a hit with its current text, or None where that text no longer matches."""
    text = text_of(payload)
    shown = None if text is None else snippet(text.text, query)
    if text is None or shown is None:
        return None
    block = appended_block(event.payload)
    path = "" if block is None else block.path
    return Found(
        conversation=event.conversation,
        version=event.version,
        path=path,
        type=text.type,
        at=event.at,
        snippet=shown,
        rank=rank,
        position=event.position,
        reverted_by=reverted_by,
    )


def snippet(text: str, query: Query) -> str | None:
    """Return the snippet of a text, or None if the text does not match the query."""
    places = _places(text, query)
    if places is None:
        return None
    first = _best(places[:_MOST_TRIED], len(query.terms))
    start = _word_after(text, first.start - _BEFORE, first.start)
    end = _word_before(text, start + WIDTH, first.end)
    pieces: list[str] = []
    shown = start
    for place in places:
        if shown <= place.start and place.end <= end:
            pieces += [text[shown : place.start], "«", text[place.start : place.end], "»"]
            shown = place.end
    line = " ".join("".join([*pieces, text[shown:end]]).split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"


def _word_after(text: str, start: int, last: int) -> int:
    """Return the start of the first whole word in a snippet, else of a whole sign, no later than that of the hit."""
    if start <= 0:
        return 0
    spaces = (n + 1 for n in range(start - 1, last) if text[n].isspace())
    return next(chain(spaces, (n for n in range(start, last) if not _is_mark(text[n]))), last)


def _word_before(text: str, end: int, first: int) -> int:
    """Return the end of the last whole word in a snippet, else of a whole sign, no earlier than that of the hit."""
    if end >= len(text):
        return len(text)
    spaces = (n for n in range(end, first, -1) if text[n].isspace())
    return next(chain(spaces, (n for n in range(end, first, -1) if not _is_mark(text[n]))), first)


def _is_mark(sign: str) -> bool:
    """Return whether a sign is shown on the one before it: a snippet neither begins with it nor ends in front of it."""
    return category(sign).startswith("M")


def _best(places: list[_Place], terms: int) -> _Place:
    """Return the hit at which the snippet begins that shows the most terms, and those closest together."""
    starts = [place.start for place in places]
    following = (islice(places, bisect_left(starts, start), None) for start in starts)
    rated = ((*_shown_from(first, rest, terms), first.start) for first, rest in zip(places, following, strict=True))
    return min(zip(rated, places, strict=True))[1]


def _shown_from(first: _Place, following: Iterable[_Place], terms: int) -> tuple[int, int]:
    """Rate the snippet that begins at a hit: the more terms it shows, and the closer together, the smaller."""
    end = first.start + WIDTH - _BEFORE
    last_of_term = first.end
    seen: set[int] = set()
    for place in following:
        if place.start > end or len(seen) == terms:
            break
        if place.end <= end and place.term not in seen:
            seen.add(place.term)
            last_of_term = max(last_of_term, place.end)
    return -len(seen), last_of_term - first.start


def _places(text: str, query: Query) -> list[_Place] | None:
    """Return the first hits, in order, all that a snippet can need; None where a term has none."""
    overlap = max(len(phrase.parts) for phrase in query.phrases) - 1
    missing = set(range(len(query.terms)))
    places: list[_Place] = []
    before: list[tuple[int, int]] = []
    for start, piece in pieces(text):
        written = [text[first:last] for first, last in before] + WORD.findall(piece)
        enough = len(places) >= _MOST_KEPT
        found = list(_found_in(written, query, missing if enough else range(len(query.terms))))
        missing -= {term for _, _, term in found}
        rest = bool(overlap) and start + len(piece) < len(text)
        # Most words of a text are in no hit: where they are is asked up to the last hit alone.
        ask = len(written) if rest else max((last + 1 for _, last, _ in found), default=0)
        spans = before + [
            (start + match.start(), start + match.end())
            for match in islice(WORD.finditer(piece), max(ask - len(before), 0))
        ]
        if not enough:
            places += (_Place(spans[first][0], spans[last][1], term) for first, last, term in found)
        elif not missing:
            break
        before = spans[len(spans) - overlap :] if overlap else []
    return None if missing else sorted(set(places))


class _Sought:
    """The phrases of a query by the word that each ends in: many of them are found in one walk over the words."""

    def __init__(self, phrases: Iterable[tuple[int, Phrase]]) -> None:
        self._whole: dict[str, list[tuple[int, Phrase]]] = {}
        self._beginnings: dict[str, list[tuple[int, Phrase]]] = {}
        for term, phrase in phrases:
            by_word = self._beginnings if phrase.prefix else self._whole
            by_word.setdefault(phrase.parts[-1], []).append((term, phrase))
        self._lengths = sorted({len(beginning) for beginning in self._beginnings})

    def __bool__(self) -> bool:
        return bool(self._whole or self._beginnings)

    def places(self, words: Sequence[str]) -> Iterator[tuple[int, int, int, Phrase]]:
        """Yield first and last word of each place of a phrase, its term and the phrase, in the order of the last."""
        # Most words end no phrase: of whole words that is one look each.
        ends = enumerate(words) if self._lengths else ((n, word) for n, word in enumerate(words) if word in self._whole)
        for last, word in ends:
            for term, phrase in self._ending_in(word):
                *before, _ = phrase.parts
                first = last - len(before)
                if first >= 0 and (not before or list(words[first:last]) == before):
                    yield first, last, term, phrase

    def in_humps(self, written: Sequence[str]) -> Iterator[tuple[int, int, int, Phrase]]:
        """Yield each word that has a phrase in its humps, as `places` does."""
        for number, word in enumerate(written):
            if not word.islower() and (humps := humps_of(word)):
                for term, phrase in dict.fromkeys((term, phrase) for _, _, term, phrase in self.places(humps)):
                    yield number, number, term, phrase

    def _ending_in(self, word: str) -> Iterable[tuple[int, Phrase]]:
        whole = self._whole.get(word, ())
        if not self._lengths:
            return whole
        lengths = (length for length in self._lengths if length <= len(word))
        return chain(whole, *(self._beginnings.get(word[:length], ()) for length in lengths))


def _found_in(written: list[str], query: Query, terms: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the first and last word of every hit, and its term; for a hump they are its word."""
    wanted = [(term, phrase) for term in terms for phrase in query.terms[term].phrases]
    if in_words := _Sought(pair for pair in wanted if pair[1].in_words):
        yield from _first_of_each(in_words.places([*map(folded, written)]))
    if in_humps := _Sought(pair for pair in wanted if pair[1].in_humps):
        yield from _first_of_each(in_humps.in_humps(written))


def _first_of_each(places: Iterable[tuple[int, int, int, Phrase]]) -> Iterator[tuple[int, int, int]]:
    """Yield of each phrase as many places as a snippet can need."""
    taken: Counter[tuple[int, Phrase]] = Counter()
    for first, last, term, phrase in places:
        taken[term, phrase] += 1
        if taken[term, phrase] <= _MOST_OF_PHRASE:
            yield first, last, term
