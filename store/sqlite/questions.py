"""The queries of a SQLite store: what they read is brought up to the log first, a slice at a time."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from timeline.errors import StoreFull, StoreLocked, StoreReadOnly

from ..questions import DatabaseQuestions
from .facts import SLICE as FACTS_SLICE
from .facts import SQLiteFacts
from .facts import catch_up as catch_up_facts
from .files import connect_beside, started
from .holding import log
from .search import SLICE, SQLiteQuestions, catch_up, cut_slice, enter_slice
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.queries import StoredDigest

    from ..digests import DigestFilter
    from ..log_reader import LogReader
    from .database import Database


class Questions(DatabaseQuestions):
    """The queries of one store."""

    def __init__(self, database: Database, reader: LogReader) -> None:
        self._questions = SQLiteQuestions(database.fetched, database.where)
        super().__init__(reader, self._questions, SQLiteFacts(database.fetched))
        self._database = database
        self._indexing = asyncio.Lock()
        self._indexer: Writer | None = None
        """Indexes much text at once, on a connection of its own, while a search waits for it."""

    async def digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions of a conversation (or all) that match a filter, by position."""
        if conversation is not None:
            await self._reader.key(conversation)
        async for digest in self._questions.digests(conversation, wanted, page):
            yield digest

    async def catch_up_facts(self, most: int | None = None) -> None:
        """Add the facts of what was appended since the last query, of at most so many slices of the log."""
        if self._database.writer is None:
            return
        reached, last = await self._known.progress()
        try:
            for _ in count() if most is None else range(most):
                if reached >= last:
                    return
                reached = await self._database.do(partial(catch_up_facts, until=last), FACTS_SLICE)
        except (StoreReadOnly, StoreLocked, StoreFull) as refusal:
            log.info("facts are read from the log: %s", refusal)

    async def catch_up_words(self) -> None:
        """Index the texts that were appended since the last search: a slice by the writer, what is more beside it."""
        writer = self._database.writer
        if writer is None:
            return
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
