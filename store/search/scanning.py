"""Searching without an index: every text is cut into words and counted, then the best are chosen.

The memory store searches so, and a database what its index has not reached where it may not be written. The ranks are
those of FTS5's `bm25()` (https://sqlite.org/fts5.html#the_bm25_function), with the sign turned.

Searched are the text of an event's block and its type, unless it was redacted. They are taken from stored payloads, not
from blocks: the index of a database reads them by the million.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from heapq import nsmallest
from math import log
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..digests import EARLIEST, LATEST, moment
from .words import Words

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Sequence
    from datetime import datetime

    from .words import Query


class Text(NamedTuple):
    """The text of a block, and the block's type."""

    type: str
    text: str


def text_of(payload: str) -> Text | None:
    """Return what is searched of an event, or None where it appends no block or the payload is damaged.

    Of a call that is the tool's name and the values of the arguments: their keys are nobody's words.
    """
    block = _object(payload).get("block")
    if not isinstance(block, dict):
        return None
    type_, text = block.get("type"), block.get("text", "")
    parts = [text] if isinstance(text, str) else []
    if type_ == "react.tool.call":
        parts = [*_values(block.get("name")), *_values(block.get("arguments")), *parts]
    return Text(str(type_), "\n".join(parts))


def redacted_version(payload: str) -> int | None:
    """Return the version of the block that a `block.redacted` event erases."""
    version = _object(payload).get("version")
    return version if isinstance(version, int) else None


def _object(payload: str) -> dict[str, Any]:
    try:
        value = json.loads(payload)
    except ValueError:
        return {}  # Damaged: there is nothing to find in it, and reading the event says so.
    return value if isinstance(value, dict) else {}


def _values(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _values(inner)
        case list():
            for inner in value:
                yield from _values(inner)
        case bool() | None:
            return
        case int() | float():
            yield str(value)


MOST: Final = 1_000
"""Hits of a search; who needs more needs more words."""
TAGS: Final = 2
"""Words that the index of a database adds to each text: its conversation and its type."""
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75
_LEAST_WEIGHT: Final = 1e-6


class Hit(NamedTuple):
    """Where something was found, and how well it fits."""

    position: int
    rank: float


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Which texts may be found."""

    types: Collection[str] | None
    since: str
    until: str

    @classmethod
    def checked(cls, types: Collection[str] | None, since: datetime | None, until: datetime | None) -> SearchFilter:
        """Check filters.

        Raises:
            InvalidFilter: a moment has no time zone.
        """
        return cls(types, moment("since", since) or EARLIEST, moment("until", until) or LATEST)

    @property
    def bounded(self) -> bool:
        """Say whether time matters."""
        return (self.since, self.until) != (EARLIEST, LATEST)

    def lets_through(self, type_: str, at: str) -> bool:
        """Say whether a text may be found."""
        return (self.types is None or type_ in self.types) and self.since <= at <= self.until


@dataclass(slots=True)
class Scan:
    """The texts seen so far: those that are found, and how often each phrase occurs in all of them.

    ``conversation`` is whatever tells conversations apart where the texts come from; None lets all through.
    """

    query: Query
    conversation: Hashable | None
    filter: SearchFilter
    texts: int = 0
    size: int = 0
    with_phrase: list[int] = field(default_factory=list)
    found: list[tuple[int, int, list[int]]] = field(default_factory=list)

    def add(self, position: int, conversation: Hashable, text: Text, at: str) -> None:
        """Look at one text."""
        words = Words.of(text.text)
        if not words.words:
            return
        counts = self.query.counts(words)
        self.texts += 1
        self.size += words.size + TAGS
        so_far = self.with_phrase or [0] * len(counts)
        self.with_phrase = [n + (count > 0) for n, count in zip(so_far, counts, strict=True)]
        if (
            self.conversation in {None, conversation}
            and self.query.met(counts)
            and self.filter.lets_through(text.type, at)
        ):
            self.found.append((position, words.size + TAGS, counts))

    def best(self) -> list[Hit]:
        """Return the best of what was found, the best first; of equals the newest."""
        weights = [max(log((self.texts - n + 0.5) / (n + 0.5)), _LEAST_WEIGHT) for n in self.with_phrase]
        hits = [Hit(position, self._rank(weights, size, counts)) for position, size, counts in self.found]
        return best(hits)

    def _rank(self, weights: Sequence[float], size: int, counts: Sequence[int]) -> float:
        length = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * size * self.texts / self.size)
        return sum(
            weight * count * (_SATURATION + 1) / (count + length) for weight, count in zip(weights, counts, strict=True)
        )


def best(hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hits, the best first; of equals the newest."""
    return nsmallest(MOST, hits, key=lambda hit: (-hit.rank, -hit.position))
