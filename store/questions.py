"""The queries of a store over a database, with checked arguments; see `timeline.queries.Queries`.

A query first brings the index that it reads up to the log, if the store may be written. What the index still lacks is
read from the log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from timeline.errors import ConversationNotFound
from timeline.facts.extracting import FORM
from timeline.queries import FactReach

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from timeline.events import Covers
    from timeline.queries import FactRecord, Found, StoredDigest, StoredFact

    from .digests import DigestFilter
    from .fact_queries import DatabaseFacts
    from .facts import FactFilter
    from .log_reader import LogReader
    from .search.querying import DatabaseSearch
    from .search.scanning import SearchFilter
    from .search.words import Query

_OF_ONE: Final = 16
"""Most slices of the log whose facts are added for a question about one conversation: about a second of work. Facts
beyond these are read from that conversation's log, so that no compaction waits for a hundred thousand imported ones."""


class DatabaseQuestions(ABC):
    """The queries of one store."""

    def __init__(self, reader: LogReader, index: DatabaseSearch, known: DatabaseFacts) -> None:
        self._reader, self._index, self._known = reader, index, known

    @abstractmethod
    def digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions of a conversation (or all) that match a filter, by position."""

    async def search(
        self, query: Query, conversation: str | None, wanted: SearchFilter, page: int
    ) -> AsyncIterator[Found]:
        """Iterate over the best hits of a query in a conversation (or all); what the index still lacks is scanned."""
        key = None if conversation is None else await self._reader.key(conversation)
        await self.catch_up_words()
        async for found in self._index.search(query, key, wanted, page):
            yield found

    async def facts(
        self, conversations: Sequence[str] | None, wanted: FactFilter, page: int
    ) -> AsyncIterator[StoredFact]:
        """Iterate over the facts of conversations (or all) that meet a filter, by position."""
        await self.catch_up_facts(_OF_ONE if conversations is not None and len(conversations) == 1 else None)
        try:
            async for fact in self._known.facts(conversations, wanted, page):
                yield fact
        except ConversationNotFound as error:
            raise await self._reader.missing(error.conversation) from None

    async def fact_record(self, conversation: str, covers: Covers | None, most: int) -> FactRecord:
        """Return the merged record of a conversation's facts."""
        await self.catch_up_facts(_OF_ONE)
        try:
            return await self._known.record(conversation, covers, most)
        except ConversationNotFound as error:
            raise await self._reader.missing(error.conversation) from None

    async def fact_reach(self) -> FactReach:
        """Return how far the index of facts reaches; see `Queries.fact_reach`."""
        await self._reader.settled()
        return FactReach(*await self._known.progress(), FORM)

    @abstractmethod
    async def catch_up_words(self) -> None:
        """Index the texts that were appended since the last search."""

    @abstractmethod
    async def catch_up_facts(self, most: int | None = None) -> None:
        """Add the facts of what was appended since the last query, of at most so many slices of the log."""
