"""The queries of a PostgreSQL store: bring what they read up to the log where it may be written, then ask."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from timeline.errors import StoreFull, StoreReadOnly
from timeline.facts.extracting import FORM
from timeline.queries import FactReach

from . import facts, search_index
from .digests import PostgresDigests
from .facts import PostgresFacts
from .search import PostgresSearch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from timeline.events import Covers
    from timeline.queries import FactRecord, Found, StoredDigest, StoredFact

    from ..digests import DigestFilter
    from ..facts import FactFilter
    from ..log_reader import LogReader
    from ..search.scanning import SearchFilter
    from ..search.words import Query
    from .connections import Connection
    from .database import Database
    from .horizon import Horizon

log: Final = logging.getLogger("timeline.store")


class Questions:
    """What a store is asked through `timeline.queries.Queries`, its arguments checked."""

    def __init__(self, database: Database, reader: LogReader, horizon: Horizon) -> None:
        self._database, self._reader, self._horizon = database, reader, horizon
        self._kept_digests = PostgresDigests(database.rows, database.where)
        self._index = PostgresSearch(database.rows, database.where)
        self._known = PostgresFacts(database.rows)

    async def digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions of a conversation (or all) that match a filter, by position."""
        key = None if conversation is None else await self._reader.key(conversation)
        await self._horizon.settled()
        async for digest in self._kept_digests.digests(key, wanted, page):
            yield digest

    async def search(
        self, query: Query, conversation: str | None, wanted: SearchFilter, page: int
    ) -> AsyncIterator[Found]:
        """Iterate over the best hits of a query in a conversation (or all)."""
        key = None if conversation is None else await self._reader.key(conversation)
        await self._catch_up(search_index.catch_up, "the search goes on without its index")
        async for found in self._index.search(query, key, wanted, page):
            yield found

    async def facts(
        self, conversations: Sequence[str] | None, wanted: FactFilter, page: int
    ) -> AsyncIterator[StoredFact]:
        """Iterate over the facts of conversations (or all) that meet a filter, by position."""
        await self._catch_up_facts()
        async for fact in self._known.facts(conversations, wanted, page):
            yield fact

    async def fact_record(self, conversation: str, covers: Covers | None, most: int) -> FactRecord:
        """Return the merged record of a conversation's facts."""
        await self._catch_up_facts()
        return await self._known.record(conversation, covers, most)

    async def fact_reach(self) -> FactReach:
        """Return how far the index of facts reaches; see `Queries.fact_reach`."""
        await self._horizon.settled()
        return FactReach(*await self._known.progress(), FORM)

    async def _catch_up_facts(self) -> None:
        await self._catch_up(facts.catch_up, "facts are read from the log")

    async def _catch_up(self, add: Callable[[Connection], Awaitable[bool]], otherwise: str) -> None:
        """Add what was appended since the last query; what cannot be added is read from the log."""
        await self._horizon.settled()
        if self._database.read_only:
            return
        try:
            while await self._database.do(add):
                pass
        except (StoreReadOnly, StoreFull) as refusal:
            log.info("%s: %s", otherwise, refusal)
