"""The search over a database: hits of its index, and of the texts that the index has not reached, become an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from ..codec import decode
from .scanning import Scan, best, redacted_version, text_of
from .snippets import found

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from timeline.queries import Found

    from ..codec import Row
    from .scanning import Hit, SearchFilter
    from .words import Query

_SCANNED: Final = 500
"""Events that are read at a time where there is no index."""


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
        """Return the id and the key of the conversation, and the event, at each position."""

    async def search(self, query: Query, key: int | None, wanted: SearchFilter, page: int) -> AsyncIterator[Found]:
        """Iterate over the best hits; events that the index has not reached are scanned."""
        indexed, last = await self.progress()
        hits = await self.indexed(query, key, wanted) if indexed else []
        redacted: set[tuple[int, int]] = set()
        if indexed < last:
            redacted = await self._redacted_since(indexed)
            scan = Scan(query, key, wanted)
            await self._scan(scan, indexed, redacted)
            hits = best([*hits, *scan.best()])
        for start in range(0, len(hits), page):
            async for hit in self._read(hits[start : start + page], query, redacted):
                yield hit

    async def _read(self, hits: Sequence[Hit], query: Query, redacted: set[tuple[int, int]]) -> AsyncIterator[Found]:
        ranks = {hit.position: hit.rank for hit in hits}
        rows = {row[2]: row for row in await self.events_at(list(ranks))}
        for owner, key, *row in (rows[position] for position in ranks if position in rows):
            hit = found(decode(owner, tuple(row), self.where), row[6], query, ranks[row[0]])
            if hit is not None and (key, hit.version) not in redacted:
                yield hit

    async def _redacted_since(self, position: int) -> set[tuple[int, int]]:
        rows = await self.redacted_since(position)
        return {(key, version) for key, payload in rows if (version := redacted_version(payload)) is not None}

    async def _scan(self, scan: Scan, after: int, redacted: set[tuple[int, int]]) -> None:
        """Scan every text behind a position. Ranks count only these texts."""
        while rows := await self.texts_behind(after, _SCANNED):
            for position, key, version, _, at, payload, _ in rows:
                text = text_of(payload)
                if text is not None and (key, version) not in redacted:
                    scan.add(position, key, text, at)
            after = rows[-1][0]
