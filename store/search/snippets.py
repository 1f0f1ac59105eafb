"""Snippets: the part of a text that shows best why it was found, with its hits between ``«`` and ``»``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.events import appended_block
from timeline.queries import Found

from .scanning import text_of
from .words import WORD, humps_of, pieces

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

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


class _Place(NamedTuple):
    """A hit: characters ``start`` to ``end`` of the text, and the number of its term."""

    start: int
    end: int
    term: int


def found(event: Event, payload: str, query: Query, rank: float) -> Found | None:
    """Return a hit with its current text, or None where that text no longer matches."""
    text = text_of(payload)
    shown = None if text is None else snippet(text.text, query)
    if text is None or shown is None:
        return None
    block = appended_block(event.payload)
    path = "" if block is None else block.path
    return Found(event.conversation, event.version, path, text.type, event.at, shown, rank)


def snippet(text: str, query: Query) -> str | None:
    """Return the snippet of a text, or None if the text does not match the query."""
    places = _places(text, query)
    if places is None:
        return None
    first = min(places[:_MOST_TRIED], key=lambda place: (*_shown_from(places, place), place.start))
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
    """Return the start of the first whole word in a snippet, no later than the start of the hit."""
    if start <= 0:
        return 0
    return next((n + 1 for n in range(start - 1, last) if text[n].isspace()), start)


def _word_before(text: str, end: int, first: int) -> int:
    """Return the end of the last whole word in a snippet, no earlier than the end of the hit."""
    if end >= len(text):
        return len(text)
    return next((n for n in range(end, first, -1) if text[n].isspace()), max(end, first))


def _shown_from(places: list[_Place], first: _Place) -> tuple[int, int]:
    """Rate the snippet that begins at a hit: the more terms it shows, and the closer together, the smaller."""
    end = first.start + WIDTH - _BEFORE
    last_of_term = first.end
    terms: set[int] = set()
    for place in places[:_MOST_TRIED]:
        if first.start <= place.start and place.end <= end and place.term not in terms:
            terms.add(place.term)
            last_of_term = max(last_of_term, place.end)
    return -len(terms), last_of_term - first.start


def _places(text: str, query: Query) -> list[_Place] | None:
    """Return the first hits, in order, all that a snippet can need; None where a term has none."""
    overlap = max(len(phrase.parts) for phrase in query.phrases) - 1
    missing = set(range(len(query.terms)))
    places: list[_Place] = []
    before: list[tuple[int, int]] = []
    for start, piece in pieces(text):
        spans = before + [(start + first, start + last) for first, last in map(_span, WORD.finditer(piece))]
        enough = len(places) >= _MOST_KEPT
        found = _places_in(text, spans, query, missing if enough else range(len(query.terms)))
        missing -= {place.term for place in found}
        if not enough:
            places += found
        elif not missing:
            break
        before = spans[len(spans) - overlap :] if overlap else []
    return None if missing else sorted(set(places))


def _places_in(text: str, spans: list[tuple[int, int]], query: Query, terms: Iterable[int]) -> list[_Place]:
    written = [text[start:end] for start, end in spans]
    folded = [word.casefold() for word in written]
    humps = {number: humps for number, word in enumerate(written) if (humps := humps_of(word))}
    return [
        _Place(spans[first][0], spans[last][1], number)
        for number in terms
        for phrase in query.terms[number].phrases
        for first, last in _found(phrase, folded, humps)
    ]


def _span(match: re.Match[str]) -> tuple[int, int]:
    return match.span()


def _found(phrase: Phrase, words: list[str], humps: dict[int, tuple[str, ...]]) -> Iterator[tuple[int, int]]:
    """Return the first and last word of every place; for a hump they are its word."""
    if phrase.in_words:
        for place in phrase.places(words):
            yield place, place + len(phrase.parts) - 1
    if phrase.in_humps:
        yield from ((number, number) for number in humps if any(True for _ in phrase.places(humps[number])))
