"""The queries of both stores: validate the arguments, then pass them on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from .digests import DigestFilter
from .failures import checked_page
from .search.scanning import SearchFilter
from .search.words import Query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection
    from datetime import datetime

    from timeline.queries import Found, StoredDigest


class QueryMixin(ABC):
    """The part of a store that implements `timeline.queries.Queries`."""

    async def digests(
        self,
        *,
        conversation: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        tool: str | None = None,
        path_glob: str | None = None,
        command: str | None = None,
        error: bool | str | None = None,
        compaction_number: int | range | None = None,
        reverted: bool | None = False,
        page: int = 200,
    ) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions whose digest meets every filter; see `Queries.digests`."""
        wanted = DigestFilter.checked(
            since=since,
            until=until,
            tool=tool,
            path_glob=path_glob,
            command=command,
            error=error,
            compaction_number=compaction_number,
            reverted=reverted,
        )
        async for digest in self._digests(conversation, wanted, checked_page(page)):
            yield digest

    async def search(
        self,
        text: str,
        *,
        conversation: str | None = None,
        types: Collection[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        page: int = 50,
    ) -> AsyncIterator[Found]:
        """Iterate over the blocks that hold all words of a text, best first; see `Queries.search`."""
        query, wanted = Query.parse(text), SearchFilter.checked(types, since, until)
        async for found in self._search(query, conversation, wanted, checked_page(page)):
            yield found

    @abstractmethod
    def _digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions of a conversation (or all) that match a filter, by position."""

    @abstractmethod
    def _search(self, query: Query, conversation: str | None, wanted: SearchFilter, page: int) -> AsyncIterator[Found]:
        """Iterate over the best hits of a query in a conversation (or all)."""
