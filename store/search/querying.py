"""The search over a database: hits of its index, and of the texts that the index has not reached, become an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Final

from ..aside import at_its_size
from ..codec import decode
from .scanning import Scan, best, redacted_version, text_of
from .snippets import found

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from timeline.queries import Found

    from ..codec import Row
    from .scanning import Hit, SearchFilter
    from .words import Query

_SCANNED: Final = 500
"""Events that are read at a time where there is no index."""
_POSITION: Final = 3
"""Place of the position in a row of `DatabaseSearch.events_at`."""
_CHECKSUM: Final = 7
"""Place of the checksum in the row of an event."""


class DatabaseSearch(ABC):
    """The search over one database.

    Attributes:
        where: names the store in errors.
    """

    __slots__ = ()
    where: str

    @abstractmethod
    async def progress(self) -> tuple[int, int]:
        """Return the position that the index has reached, and that of the newest event."""

    @abstractmethod
    async def indexed(self, query: Query, key: int | None, wanted: SearchFilter) -> list[Hit]:
        """Return the best hits in the index."""

    @abstractmethod
    async def redacted_since(self, position: int) -> Sequence[Row]:
        """Return conversation's key and payload of the redactions behind a position."""

    @abstractmethod
    async def texts_behind(self, position: int, most: int) -> Sequence[Row]:
        """Return the next events behind a position that may hold a text.

        Of each position, conversation's key, version, type, time, payload and checksum.
        """

    @abstractmethod
    async def events_at(self, positions: Sequence[int]) -> Sequence[Row]:
        """Return the events at some positions.

        Of each, the version that undid its compaction (None, if it is none or in force), the id and the key of the
        conversation, and the event.
        """

    async def search(self, query: Query, key: int | None, wanted: SearchFilter, page: int) -> AsyncIterator[Found]:
        """Iterate over the best hits; events that the index has not reached are scanned."""
        indexed, last = await self.progress()
        hits = await self.indexed(query, key, wanted) if indexed else []
        redacted: set[tuple[int, int]] = set()
        if indexed < last:
            redacted = await self._redacted_since(indexed)
            with _given_up() as check:
                scan = Scan(query, key, wanted, between=check)
                await self._scan(scan, indexed, redacted)
            hits = best([*hits, *scan.best()])
        for start in range(0, len(hits), page):
            ranks = {hit.position: hit.rank for hit in hits[start : start + page]}
            rows = {row[_POSITION]: row for row in await self.events_at(list(ranks))}
            for row in (rows[position] for position in ranks if position in rows):
                hit = await at_its_size(partial(self._hit, row, query, ranks[row[_POSITION]], redacted), [row])
                if hit is not None:
                    yield hit

    def _hit(self, row: Row, query: Query, rank: float, redacted: set[tuple[int, int]]) -> Found | None:
        """Return the event of a row as a hit; None where the row no longer holds it, or it was redacted."""
        reverted_by, owner, key, *stored = row
        if not stored[_CHECKSUM]:  # it was scavenged since it was found
            return None
        hit = found(decode(owner, tuple(stored), self.where), stored[6], query, rank, reverted_by)
        return None if hit is None or (key, hit.version) in redacted else hit

    async def _redacted_since(self, position: int) -> set[tuple[int, int]]:
        rows = await self.redacted_since(position)
        return {(key, version) for key, payload in rows if (version := redacted_version(payload)) is not None}

    async def _scan(self, scan: Scan, after: int, redacted: set[tuple[int, int]]) -> None:
        """Scan every text behind a position. Ranks count only these texts."""
        while rows := await self.texts_behind(after, _SCANNED):
            await at_its_size(partial(_scan, scan, rows, redacted), rows)
            after = rows[-1][0]


def _scan(scan: Scan, rows: Sequence[Row], redacted: set[tuple[int, int]]) -> None:
    for position, key, version, _, at, payload, _ in rows:
        text = text_of(payload)
        if text is not None and (key, version) not in redacted:
            scan.add(position, key, text, at)


class _GivenUp(Exception):
    """Nobody waits for a search any more."""


@contextmanager
def _given_up() -> Iterator[Callable[[], None]]:
    """Give a check that raises once the block was left: a thread that was left goes on to the next one."""
    left = Event()

    def check() -> None:
        if left.is_set():
            raise _GivenUp

    try:
        yield check
    finally:
        left.set()
