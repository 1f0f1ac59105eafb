"""The queries of a PostgreSQL store: bring what they read up to the log where it may be written, then ask."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import asyncpg

from timeline.errors import StoreError, StoreFull, StoreReadOnly
from timeline.facts.extracting import FORM
from timeline.queries import FactReach

from ..queries import QueryMixin
from . import facts, search
from .digests import PostgresDigests
from .facts import PostgresFacts
from .reading import Reading
from .search import PostgresSearch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from timeline.events import Covers
    from timeline.queries import FactRecord, Found, StoredDigest, StoredFact

    from ..digests import DigestFilter
    from ..facts import FactFilter
    from ..search.scanning import SearchFilter
    from ..search.words import Query
    from .connections import Connection

log: Final = logging.getLogger("timeline.store")


class Questions(QueryMixin, Reading):
    """The part of a store that implements `timeline.queries.Queries`."""

    async def _digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        key = None if conversation is None else await self._key(conversation)
        await self._settled()
        async for digest in PostgresDigests(self.rows, self.where).digests(key, wanted, page):
            yield digest

    async def _search(
        self, query: Query, conversation: str | None, wanted: SearchFilter, page: int
    ) -> AsyncIterator[Found]:
        key = None if conversation is None else await self._key(conversation)
        await self._catch_up(search.catch_up, "the search goes on without its index")
        async for found in PostgresSearch(self.rows, self.where).search(query, key, wanted, page):
            yield found

    async def _facts(
        self, conversations: Sequence[str] | None, wanted: FactFilter, page: int
    ) -> AsyncIterator[StoredFact]:
        await self._catch_up_facts()
        async for fact in PostgresFacts(self.rows).facts(conversations, wanted, page):
            yield fact

    async def _fact_record(self, conversation: str, covers: Covers | None, most: int) -> FactRecord:
        await self._catch_up_facts()
        return await PostgresFacts(self.rows).record(conversation, covers, most)

    async def fact_reach(self) -> FactReach:
        """Return how far the index of facts reaches; see `Queries.fact_reach`."""
        await self._settled()
        return FactReach(*await PostgresFacts(self.rows).progress(), FORM)

    async def _catch_up_facts(self) -> None:
        await self._catch_up(facts.catch_up, "facts are read from the log")

    async def _catch_up(self, add: Callable[[Connection], Awaitable[bool]], otherwise: str) -> None:
        """Add what was appended since the last query; what cannot be added is read from the log."""
        await self._settled()
        if self.read_only:
            return
        try:
            while await self.do(add):
                pass
        except StoreError as refusal:
            may_not = isinstance(refusal.__cause__, asyncpg.InsufficientPrivilegeError)
            if not may_not and not isinstance(refusal, StoreReadOnly | StoreFull):
                raise
            log.info("%s: %s", otherwise, refusal)
