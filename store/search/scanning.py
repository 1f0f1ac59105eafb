"""Search without an index: cut every text into words, count them, then choose the best.

The memory store searches this way, and a database the part that its index has not reached, if it may not write. Ranks
are those of FTS5's `bm25()` (https://sqlite.org/fts5.html#the_bm25_function), with the sign inverted.

The search covers the text and type of an event's block, unless it was redacted. They are taken from stored payloads,
not from blocks: a database's index reads them by the million.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from heapq import nsmallest
from math import log
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.content.native import server_content
from timeline.content.server_words import words_said
from timeline.errors import InvalidFilter
from timeline.queries import MOST_FOUND

from ..digests import EARLIEST, LATEST, moment
from .words import composed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from datetime import datetime

    from .words import Query


MOST_CHARACTERS: Final = 4_000_000
"""Characters of a text that a search knows, from its beginning. An index of a longer one, of words that differ, takes
gigabytes and minutes, and as much to take a word out again."""


class Text(NamedTuple):
    """A block's text and type."""

    type: str
    text: str


def text_of(payload: str) -> Text | None:
    """Return the searchable text of an event, or None where it appends no block or the payload is damaged.

    A call's text is the tool's name and the values of the arguments, without their keys; that of what a provider's
    server did, what its tool was asked and found. Of a text of more than `MOST_CHARACTERS` it is the beginning.
    """
    block = _object(payload).get("block")
    if not isinstance(block, dict):
        return None
    type_, text = block.get("type"), block.get("text", "")
    parts = [text] if isinstance(text, str) else []
    if type_ == "react.tool.call":
        parts = [*_values(block.get("name")), *_values(block.get("arguments")), *parts]
    elif not text and (part := server_content(str(type_), block.get("data"))) is not None:
        parts = [*words_said(part)]
    return Text(str(type_), composed("\n".join(parts)[:MOST_CHARACTERS]))


def redacted_version(payload: str) -> int | None:
    """Return the version of the block that a `block.redacted` event erases."""
    version = _object(payload).get("version")
    return version if isinstance(version, int) else None


def _object(payload: str) -> dict[str, Any]:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return {}  # Damaged: a search finds nothing in it, and reading the event reports the damage.
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


TAGS: Final = 2
"""Words that a database's index adds to each text: its conversation and its type."""
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75
_LEAST_WEIGHT: Final = 1e-6


class Hit(NamedTuple):
    """The place of a hit, and its rank."""

    position: int
    rank: float


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """The conditions on the texts that a search may find."""

    types: Collection[str] | None
    since: str
    until: str

    @classmethod
    def checked(cls, types: Collection[str] | None, since: datetime | None, until: datetime | None) -> SearchFilter:
        """Validate filters.

        Raises:
            InvalidFilter: a moment has no time zone, or the types are a single text, whose letters are none.
        """
        if isinstance(types, str):
            raise InvalidFilter("types", f"must be a list, not {types!r}; put a single one into brackets")
        if not (types is None or (isinstance(types, Collection) and all(isinstance(one, str) for one in types))):
            raise InvalidFilter("types", "must be a list of texts, such as ['user.prompt']")
        return cls(types, moment("since", since) or EARLIEST, moment("until", until) or LATEST)

    @property
    def bounded(self) -> bool:
        """Return whether the filter has a bound in time."""
        return (self.since, self.until) != (EARLIEST, LATEST)

    def lets_through(self, type_: str, at: str) -> bool:
        """Return whether a text may be found."""
        return (self.types is None or type_ in self.types) and self.since <= at <= self.until


@dataclass(slots=True)
class Scan:
    """The texts seen so far: the hits, and the count of each phrase in all texts.

    ``conversation`` is any key that identifies a conversation in the source of the texts; None accepts all
    conversations. ``between`` is called before each piece of a text, and may raise to give the scan up.
    """

    query: Query
    conversation: Hashable | None
    filter: SearchFilter
    texts: int = 0
    size: int = 0
    with_phrase: list[int] = field(default_factory=list)
    found: list[tuple[int, int, list[int]]] = field(default_factory=list)
    between: Callable[[], None] = lambda: None

    def add(self, position: int, conversation: Hashable, text: Text, at: str) -> None:
        """Scan one text."""
        size, counts = self.query.counted(text.text, self.between)
        if size:
            self.take(position, conversation, text.type, size, counts, at)

    def take(  # noqa: PLR0917 - what a text is to a search
        self, position: int, conversation: Hashable, type_: str, size: int, counts: list[int], at: str
    ) -> None:
        """Take a text in whose number of words, and whose counts of the phrases, are known."""
        self.texts += 1
        self.size += size + TAGS
        so_far = self.with_phrase or [0] * len(counts)
        self.with_phrase = [n + (count > 0) for n, count in zip(so_far, counts, strict=True)]
        if self.conversation in {None, conversation} and self.query.met(counts) and self.filter.lets_through(type_, at):
            self.found.append((position, size + TAGS, counts))

    def best(self) -> list[Hit]:
        """Return the best hits, best first; of equal ones the newest."""
        weights = [max(log((self.texts - n + 0.5) / (n + 0.5)), _LEAST_WEIGHT) for n in self.with_phrase]
        hits = [Hit(position, self._rank(weights, size, counts)) for position, size, counts in self.found]
        return best(hits)

    def _rank(self, weights: Sequence[float], size: int, counts: Sequence[int]) -> float:
        length = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * size * self.texts / self.size)
        return sum(
            weight * count * (_SATURATION + 1) / (count + length) for weight, count in zip(weights, counts, strict=True)
        )


def best(hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hits, best first; of equal ones the newest."""
    return nsmallest(MOST_FOUND, hits, key=lambda hit: (-hit.rank, -hit.position))
