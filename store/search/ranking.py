"""Rank texts in memory as a store's search does, each cut into words once: for many queries over the same texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .scanning import Scan, SearchFilter, text_of
from .words import Query, Words

if TYPE_CHECKING:
    from .words import Phrase


class _Kept(NamedTuple):
    type: str
    words: Words
    present: frozenset[str]


class Ranking:
    """Texts that are searched again and again, such as the blocks of a replay."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def add(self, key: str, payload: str) -> None:
        """Add the text of an event, given as its JSON; one without a text is never found."""
        text = text_of(payload)
        words = None if text is None else Words.of(text.text)
        if text is not None and words is not None and words.words:
            present = frozenset(words.words).union(*words.humps)
            self._kept[key] = _Kept(text.type, words, present)

    def best(self, query: str, most: int) -> list[str]:
        """Return the keys of the best texts that hold all words of a query, best first; of equal ones the newest.

        Raises:
            InvalidFilter: the query holds no word.
        """
        asked = Query.parse(query)
        scan = Scan(asked, None, SearchFilter.checked(None, None, None))
        for position, kept in enumerate(self._kept.values()):
            counts = [phrase.count(kept.words) if _may_hold(kept, phrase) else 0 for phrase in asked.phrases]
            scan.take(position, None, kept.type, kept.words.size, counts, "")
        keys = list(self._kept)
        return [keys[hit.position] for hit in scan.best()[:most]]


def _may_hold(kept: _Kept, phrase: Phrase) -> bool:
    whole = phrase.parts[:-1] if phrase.prefix else phrase.parts
    return kept.present.issuperset(whole)
