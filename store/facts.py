"""Facts as rows: the shape of a row, and the conditions of a query.

The rules are here once, for every store: which call a result answers, what a redaction takes away, which blocks a
compaction covers, and what a condition means. A database narrows by its indexes first; `FactFilter.matches` decides.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.errors import InvalidFilter
from timeline.facts.extracting import facts_named
from timeline.facts.model import Fact
from timeline.queries import FACT_KINDS, FactKind, StoredFact

from .digests import EARLIEST, LATEST, check_text, check_type, moment
from .globs import parse_glob
from .search.words import Query, Words, composed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from timeline.blocks import Block

    from .globs import Glob

NUMBERS: Final = {kind: number for number, kind in enumerate(FACT_KINDS)}
"""The number of a kind in a row."""
NAMED: Final = frozenset({NUMBERS["url"], NUMBERS["identifier"]})
"""The kinds that a text names; the others are what a result says was done."""
BESIDE: Final = ".call"
"""The ``path`` of a row whose block is the call beside the event's own block, a result."""
_RESULT: Final = ".result"
_new: Final = tuple.__new__


class FactRow(NamedTuple):
    """One fact as a row; ``position`` and ``number`` are its key.

    Attributes:
        position: of the event that made it known.
        number: its place among the facts of that event: from 0 on if a result says that it was done, below 0 if named.
        conversation: the conversation's key in its store.
        kind: number of the kind, see `FACT_KINDS`.
        failed: 1 if it failed.
        status: exit status.
        version: version of the block to read.
        call: version of the call that a result answers; None for what a block names.
        subject: see `timeline.facts.model.Fact`, as all others.
        tool: name of the tool.
        detail: first words.
        path: path of the block to read; None: that of the event; `BESIDE`: that of the call beside it.
        source: 1 if it was taken from a digest.
    """

    position: int
    number: int
    conversation: Any
    kind: int
    failed: int
    status: int | None
    version: int
    call: int | None
    subject: str
    tool: str
    detail: str
    path: str | None
    source: int


def call_path(path: str) -> str | None:
    """Return the path of the call that the result at a path answers; None for a path of an application's own."""
    return path[: -len(_RESULT)] + BESIDE if path.endswith(_RESULT) else None


def rows_of_facts(facts: Sequence[Fact], key: object, position: int, path: str, call: int | None) -> list[FactRow]:
    """Return the rows of the facts that an event makes known.

    Args:
        facts: all that one result says, or all that one block names.
        key: the conversation's key.
        position: the event's.
        path: path of the event's block.
        call: version of the call that a result answers; None for what a block names.
    """
    number = -1 if call is not None else -len(facts) - 1
    beside = call_path(path)
    rows = []
    for kind, subject, block, version, _, tool, status, failed, detail in facts:
        number += 1
        kept = None if block == path else BESIDE if block == beside else block
        row = (
            position,
            number,
            key,
            NUMBERS[kind],
            int(failed),
            status,
            version,
            call,
            subject,
            tool,
            detail,
            kept,
            0,
        )
        rows.append(_new(FactRow, row))  # a third of the time that its constructor takes
    return rows


def rows_named(block: Block, key: object, position: int, version: int, at: datetime) -> list[FactRow]:
    """Return the rows of what a block names."""
    return rows_of_facts(facts_named(block, version, at), key, position, block.path, None)


def stored_fact(row: FactRow, conversation: str, at: datetime, path: str, *, covered: bool) -> StoredFact:
    """Return a row as a query's answer.

    Args:
        row: the row.
        conversation: id of the conversation.
        at: time of the event.
        path: path of the event's block.
        covered: whether the block to read is covered.
    """
    return StoredFact(
        conversation=conversation,
        position=row.position,
        kind=FACT_KINDS[row.kind],
        subject=row.subject,
        at=at,
        path=block_path(row.path, path),
        version=row.version,
        tool=row.tool,
        exit_status=row.status,
        failed=bool(row.failed),
        detail=row.detail,
        covered=covered,
        source="digest" if row.source else "log",
    )


def fact_of(row: FactRow, at: datetime, path: str) -> Fact:
    """Return a row as the fact that it was made of; ``at`` and ``path`` are those of its event."""
    _, _, _, kind, failed, status, version, _, subject, tool, detail, kept, _ = row
    return Fact(FACT_KINDS[kind], subject, block_path(kept, path), version, at, tool, status, bool(failed), detail)


def block_path(kept: str | None, path: str) -> str:
    """Return the path of the block to read, of a row's ``path`` and the path of the event's block."""
    if kept is None:
        return path
    return call_path(path) or "" if kept == BESIDE else kept


class CoveredBy(NamedTuple):
    """What one compaction covers: ranges and superseded summaries, without what it carries."""

    version: int
    ranges: Iterable[tuple[int, int]]
    summaries: Iterable[int]
    carried: Iterable[int]


class Coverage:
    """The versions that compactions in force cover and did not carry."""

    def __init__(self, compactions: Iterable[CoveredBy]) -> None:
        spans: list[tuple[int, int]] = []
        for version, ranges, summaries, carried in compactions:
            kept = sorted(set(carried))
            for first, last in chain(ranges, ((summary, summary) for summary in summaries)):
                spans.extend(_without(first, min(last, version - 1), kept))
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in sorted(spans):
            if self._lasts and first <= self._lasts[-1] + 1:
                self._lasts[-1] = max(self._lasts[-1], last)
            else:
                self._firsts.append(first)
                self._lasts.append(last)

    def __contains__(self, version: int) -> bool:
        """Return whether a version is covered."""
        place = bisect_right(self._firsts, version) - 1
        return place >= 0 and version <= self._lasts[place]


def _without(first: int, last: int, kept: Sequence[int]) -> Iterator[tuple[int, int]]:
    for version in kept:
        if first <= version <= last:
            if first < version:
                yield first, version - 1
            first = version + 1
    if first <= last:
        yield first, last


@dataclass(frozen=True, slots=True)
class FactFilter:
    """The conditions of `Queries.facts`, validated."""

    kinds: frozenset[int]
    subject: str | None
    glob: Glob | None
    tool: str | None
    exit_status: int | None
    failed: bool | None
    since: str
    until: str
    covered: bool | None
    query: Query | None

    @classmethod
    def checked(
        cls,
        *,
        kind: FactKind | Collection[FactKind] | None = None,
        subject: str | None = None,
        glob: str | None = None,
        tool: str | None = None,
        exit_status: int | None = None,
        failed: bool | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        covered: bool | None = None,
        query: str | None = None,
    ) -> FactFilter:
        """Validate conditions.

        Raises:
            InvalidFilter: a condition cannot be used.
        """
        for field, text in (("subject", subject), ("tool", tool)):
            check_text(field, text)
        check_type("glob", glob)
        return cls(
            kinds=_kinds(kind),
            subject=subject,
            glob=None if glob is None else parse_glob(glob, "glob"),
            tool=tool,
            exit_status=exit_status,
            failed=failed,
            since=moment("since", since) or EARLIEST,
            until=moment("until", until) or LATEST,
            covered=covered,
            query=None if query is None else Query.parse(query),
        )

    @property
    def bounded(self) -> bool:
        """Return whether the filter has a bound in time."""
        return (self.since, self.until) != (EARLIEST, LATEST)

    @property
    def every_kind(self) -> bool:
        """Return whether no kind is left out."""
        return len(self.kinds) == len(FACT_KINDS)

    def matches(self, row: FactRow, at: str) -> bool:
        """Return whether a fact meets every condition but that of being covered; ``at`` is its time in a row's form."""
        return (
            row.kind in self.kinds
            and self.failed in {None, bool(row.failed)}
            and self.tool in {None, row.tool}
            and (self.exit_status is None or row.status == self.exit_status)
            and self.since <= at <= self.until
            and (self.subject is None or self.subject in row.subject)
            and (self.glob is None or self.glob.fits(row.subject))
            and (self.query is None or _holds(self.query, row))
        )


def _kinds(kind: FactKind | Collection[FactKind] | None) -> frozenset[int]:
    if kind is None:
        return frozenset(NUMBERS.values())
    if not isinstance(kind, Iterable):
        raise InvalidFilter(
            "kind", f"must be a kind, or several: {', '.join(FACT_KINDS)}; not of type {type(kind).__name__}"
        )
    asked = {kind} if isinstance(kind, str) else set(kind)
    unknown = sorted(map(str, asked - NUMBERS.keys()))
    if unknown:
        raise InvalidFilter("kind", f"there is no kind {unknown[0]!r}; the kinds are {', '.join(FACT_KINDS)}")
    return frozenset(NUMBERS[kind] for kind in asked)


def _holds(query: Query, row: FactRow) -> bool:
    """Return whether each term of a query is met by one of a fact's texts; no phrase crosses from one to another."""
    counts = [query.counts(Words.of(composed(text))) for text in (row.subject, row.tool, row.detail)]
    return query.met([sum(each) for each in zip(*counts, strict=True)])


def proof_of_rows(link: bytes, rows: Sequence[tuple[object, ...]]) -> bytes:
    """Return the proof of the facts of a scavenged event, since nothing else says what they were.

    It leaves out the conversation of the rows, which is that of their event. It is stored in the place of a packed
    payload, and begins with a byte that no form of a packed payload has. A damaged row may hold bytes where a text was.

    Args:
        link: of the event.
        rows: number, kind, failed, status, version, call, subject, tool, detail, path and source of each, by number.
    """
    return b"\x00" + sha256(b"f" + link + json.dumps(rows, default=repr).encode()).digest()[:16]
