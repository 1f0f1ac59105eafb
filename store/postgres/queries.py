"""The queries of a PostgreSQL store: what they read is brought up to the horizon first."""

from __future__ import annotations

import logging
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

import asyncpg

from timeline.errors import StoreError, StoreFull, StoreReadOnly

from ..questions import DatabaseQuestions
from . import facts, search_index
from .catching_up import catch_up
from .digests import PostgresDigests
from .facts import PostgresFacts
from .search import PostgresSearch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.queries import StoredDigest

    from ..digests import DigestFilter
    from ..log_reader import LogReader
    from .catching_up import DerivedRows
    from .database import Database

log: Final = logging.getLogger("timeline.store")


class Questions(DatabaseQuestions):
    """The queries of one store."""

    def __init__(self, database: Database, reader: LogReader) -> None:
        super().__init__(reader, PostgresSearch(database.rows, database.where), PostgresFacts(database.rows))
        self._database = database
        self._digests = PostgresDigests(database.rows, database.where)

    async def digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions of a conversation (or all) that match a filter, by position."""
        key = None if conversation is None else await self._reader.key(conversation)
        await self._reader.settled()
        async for digest in self._digests.digests(key, wanted, page):
            yield digest

    async def catch_up_words(self) -> None:
        """Index the texts that were appended since the last search."""
        await self._catch_up(search_index.ROWS, "the search goes on without its index")

    async def catch_up_facts(self, most: int | None = None) -> None:
        """Add the facts of what was appended since the last query, of at most so many slices of the log."""
        await self._catch_up(facts.ROWS, "facts are read from the log", most)

    async def _catch_up(self, made: DerivedRows, otherwise: str, most: int | None = None) -> None:
        """Add what was appended since the last query; what is not added is read from the log."""
        await self._reader.settled()
        if self._database.read_only:
            return
        try:
            for _ in count() if most is None else range(most):
                if not await self._database.do(partial(catch_up, made=made)):
                    return
        except StoreError as refusal:
            may_not = isinstance(refusal.__cause__, asyncpg.InsufficientPrivilegeError)
            if not may_not and not isinstance(refusal, StoreReadOnly | StoreFull):
                raise
            log.info("%s: %s", otherwise, refusal)
