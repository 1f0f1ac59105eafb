"""The queries of a SQLite store: bring what they read up to the log where it may be written, then ask."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from timeline.errors import StoreFull, StoreLocked, StoreReadOnly
from timeline.facts.extracting import FORM
from timeline.queries import FactReach

from .facts import SLICE as FACTS_SLICE
from .facts import SQLiteFacts
from .facts import catch_up as catch_up_facts
from .files import connect_beside, started
from .holding import log
from .search import SLICE, SQLiteQuestions, catch_up, cut_slice, enter_slice
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from timeline.events import Covers
    from timeline.queries import FactRecord, Found, StoredDigest, StoredFact

    from ..digests import DigestFilter
    from ..facts import FactFilter
    from ..log_reader import LogReader
    from ..search.scanning import SearchFilter
    from ..search.words import Query
    from .database import Database


class Questions:
    """What a store is asked through `timeline.queries.Queries`, its arguments checked."""

    def __init__(self, database: Database, reader: LogReader) -> None:
        self._database, self._reader = database, reader
        self._index = SQLiteQuestions(database.fetched, database.where)
        self._known = SQLiteFacts(database.fetched)
        self._indexing = asyncio.Lock()
        self._indexer: Writer | None = None
        """Indexes much text at once, on a connection of its own, while a search waits for it."""

    async def digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions of a conversation (or all) that match a filter, by position."""
        if conversation is not None:
            await self._reader.key(conversation)
        async for digest in self._index.digests(conversation, wanted, page):
            yield digest

    async def search(
        self, query: Query, conversation: str | None, wanted: SearchFilter, page: int
    ) -> AsyncIterator[Found]:
        """Iterate over the best hits of a query in a conversation (or all); what the index still lacks is scanned."""
        key = None if conversation is None else await self._reader.key(conversation)
        if self._database.writer is not None:
            await self._catch_up(self._database.writer)
        async for found in self._index.search(query, key, wanted, page):
            yield found

    async def facts(
        self, conversations: Sequence[str] | None, wanted: FactFilter, page: int
    ) -> AsyncIterator[StoredFact]:
        """Iterate over the facts of conversations (or all) that meet a filter, by position."""
        await self.catch_up_facts()
        async for fact in self._known.facts(conversations, wanted, page):
            yield fact

    async def fact_record(self, conversation: str, covers: Covers | None, most: int) -> FactRecord:
        """Return the merged record of a conversation's facts."""
        await self.catch_up_facts()
        return await self._known.record(conversation, covers, most)

    async def fact_reach(self) -> FactReach:
        """Return how far the index of facts reaches; see `Queries.fact_reach`."""
        return FactReach(*await self._known.progress(), FORM)

    async def catch_up_facts(self) -> None:
        """Bring the facts up to date where they may be written; what they still lack is read from the log."""
        if self._database.writer is None:
            return
        reached, last = await self._known.progress()
        try:
            while reached < last:
                reached = await self._database.do(partial(catch_up_facts, until=last), FACTS_SLICE)
        except (StoreReadOnly, StoreLocked, StoreFull) as refusal:
            log.info("facts are read from the log: %s", refusal)

    async def _catch_up(self, writer: Writer) -> None:
        """Index what was appended since the last search: a slice by the writer, what is more beside it."""
        indexed, last = await self._index.progress()
        try:
            if indexed < last:
                indexed = await self._database.do(partial(catch_up, until=last), SLICE)
            if indexed < last:
                async with self._indexing:
                    await self._index_beside(writer.opened.result(), last)
        except (StoreReadOnly, StoreLocked, StoreFull) as refusal:
            log.info("the search goes on without its index: %s", refusal)

    async def _index_beside(self, name: str, until: int) -> None:
        """Index the events up to a position on a connection of its own: the writer waits for one slice at a time."""
        indexed, _ = await self._index.progress()
        if indexed >= until:
            return
        database = self._database
        connect = partial(connect_beside, database.place.file, database.busy_timeout, name)
        self._indexer = indexer = Writer(connect, f"{database.file}: search")
        try:
            await started(indexer)
            while indexed < until:
                cut = await database.written(indexer.submit(partial(cut_slice, until=until)))
                indexed = await database.written(indexer.submit(partial(enter_slice, cut=cut), SLICE))
        finally:
            indexer.stop()
            await asyncio.wrap_future(indexer.stopped)
            self._indexer = None

    async def stop(self) -> None:
        """End the indexing beside the writer, if it is under way."""
        if self._indexer is not None:
            self._indexer.stop()
            await asyncio.wrap_future(self._indexer.stopped)
