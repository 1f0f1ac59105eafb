"""The queries of both stores: validate the arguments, then pass them on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from timeline.errors import InvalidFilter

from .digests import DigestFilter
from .facts import FactFilter
from .failures import checked_page
from .search.scanning import SearchFilter
from .search.words import Query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence
    from datetime import datetime

    from timeline.events import Covers
    from timeline.queries import FactKind, FactRecord, Found, StoredDigest, StoredFact


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
        query: str,
        *,
        conversation: str | None = None,
        types: Collection[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        page: int = 50,
    ) -> AsyncIterator[Found]:
        """Iterate over the blocks that hold all words of a text, best first; see `Queries.search`."""
        words, wanted = Query.parse(query), SearchFilter.checked(types, since, until)
        async for found in self._search(words, conversation, wanted, checked_page(page)):
            yield found

    async def facts(
        self,
        *,
        conversation: str | Collection[str] | None = None,
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
        page: int = 200,
    ) -> AsyncIterator[StoredFact]:
        """Iterate over the facts that meet every condition; see `Queries.facts`."""
        wanted = FactFilter.checked(
            kind=kind,
            subject=subject,
            glob=glob,
            tool=tool,
            exit_status=exit_status,
            failed=failed,
            since=since,
            until=until,
            covered=covered,
            query=query,
        )
        asked = [conversation] if isinstance(conversation, str) else conversation
        asked = None if asked is None else list(dict.fromkeys(asked))
        async for fact in self._facts(asked, wanted, checked_page(page)):
            yield fact

    async def fact_record(self, conversation: str, *, covers: Covers | None = None, most: int = 200) -> FactRecord:
        """Return one merged record of a conversation's facts; see `Queries.fact_record`."""
        if most < 1:
            raise InvalidFilter("most", f"must be at least 1, not {most}")
        return await self._fact_record(conversation, covers, most)

    @abstractmethod
    def _digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions of a conversation (or all) that match a filter, by position."""

    @abstractmethod
    def _facts(self, conversations: Sequence[str] | None, wanted: FactFilter, page: int) -> AsyncIterator[StoredFact]:
        """Iterate over the facts of conversations (or all) that meet a filter, by position."""

    @abstractmethod
    async def _fact_record(self, conversation: str, covers: Covers | None, most: int) -> FactRecord:
        """Return the merged record of a conversation's facts."""

    @abstractmethod
    def _search(self, query: Query, conversation: str | None, wanted: SearchFilter, page: int) -> AsyncIterator[Found]:
        """Iterate over the best hits of a query in a conversation (or all)."""
