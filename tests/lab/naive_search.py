"""The queries for a lost fact and their first hits, once more and the plain way: from docs/lab.md, sharing no code."""

from __future__ import annotations

import re
from math import log
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_LETTERS: Final = r"[^\W\d_]{4,}"
_SEAM: Final = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"


class Doc(NamedTuple):
    """A text as words in small letters, and the humps of each word that has some."""

    words: list[str]
    humps: list[list[str]]


def doc_of(text: str) -> Doc:
    """Cut a text."""
    written = [word[:64] for word in re.findall(r"[^\W_]+", text)]
    humps = [re.split(_SEAM, word) for word in written]
    return Doc(
        [word.casefold() for word in written], [[h.casefold() for h in parts] for parts in humps if len(parts) > 1]
    )


def naive_queries(
    fact: str, needed: Sequence[str], names: Collection[str], text: str, *, seen: Collection[str], shown: str
) -> Iterator[str]:
    """Yield a known piece of the fact, the words on either side of it, and the nearest name in sight.

    Args:
        fact: what is looked for.
        needed: the facts that the answer needs, in its order.
        names: the facts of the text that has it.
        text: that text of the answer.
        seen: the needed facts that are in sight.
        shown: all that the request shows.
    """
    pieces = [piece for piece in fact.split("/") if len(piece) >= 4 and piece != fact and piece in shown]
    if pieces and re.search(_LETTERS, pieces[-1]):
        yield pieces[-1]
    line = next(line for line in text.split("\n") if fact in line)
    left, _, right = line.partition(fact)
    for other in sorted(names, key=len, reverse=True):
        left, right = left.replace(other, "|"), right.replace(other, "|")
    beside = [*re.findall(_LETTERS, left)[-1:], *re.findall(_LETTERS, right)[:1]]
    if beside:
        yield " ".join(beside)
    place = needed.index(fact)
    nearest = sorted((abs(number - place), other) for number, other in enumerate(needed) if other in seen)
    if nearest:
        yield nearest[0][1]


def first_hits(query: str, docs: Mapping[int, Doc]) -> list[int]:
    """Return the five texts that hold every word of a query and rank first by BM25; of equals the newest."""
    scores = dict.fromkeys(docs, 0.0)
    sizes = {at: len(doc.words) + sum(map(len, doc.humps)) + max(len(doc.humps) - 1, 0) + 2 for at, doc in docs.items()}
    mean = sum(sizes.values()) / max(1, len(sizes))
    left = set(docs)
    for term in query.split():
        asked = doc_of(term)
        if not asked.words:
            continue
        holds: set[int] = set()
        for counts in _counts(asked, docs):
            there = {at for at, count in counts.items() if count}
            weight = max(log((len(docs) - len(there) + 0.5) / (len(there) + 0.5)), 1e-6)
            for at in there:
                count = counts[at]
                scores[at] += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * sizes[at] / mean))
            holds |= there
        left &= holds
    return sorted(left, key=lambda at: (-scores[at], -at))[:5]


def _counts(asked: Doc, docs: Mapping[int, Doc]) -> Iterator[dict[int, int]]:
    if len(asked.words) > 1:
        yield {at: _runs(asked.words, doc.words) for at, doc in docs.items()}
        return
    humps = asked.humps[0] if asked.humps else asked.words
    whole = {at: doc.words.count(asked.words[0]) for at, doc in docs.items()}
    parts = {at: sum(_runs(humps, own) for own in doc.humps) for at, doc in docs.items()}
    if asked.humps:
        yield whole
        yield parts
    else:
        yield {at: whole[at] + parts[at] for at in docs}


def _runs(parts: Sequence[str], words: Sequence[str]) -> int:
    if not set(parts) <= set(words):
        return 0
    size = len(parts)
    return sum(list(words[at : at + size]) == list(parts) for at in range(len(words) - size + 1))


def text_of(texts: Sequence[Any]) -> str:
    """Return what a store's search reads of a block: its texts, one a line."""
    return "\n".join(str(text) for text in texts)
