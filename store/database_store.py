"""What the stores over a database have in common: they encode appends alike, and read their logs by the same rules.

A store is made of parts. Each part knows the database, and not how the other parts work. This module has the methods
that are the same for every database. How an append is written, and what changes older rows, is each store's own.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

from timeline.errors import AppendUncertain
from timeline.ports import Expected

from .codec import NO_VALUES, encode, is_long
from .failures import InDoubt
from .queries import QueryMixin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType
    from uuid import UUID

    from timeline.events import Covers, Event, NewEvent
    from timeline.events.chain import Seal
    from timeline.ports import (
        Appended,
        ChainedEvent,
        ConversationInfo,
        Snapshot,
        StoredWindow,
        WrittenEvent,
    )
    from timeline.queries import FactReach, FactRecord, Found, StoredDigest, StoredFact

    from .codec import Batch
    from .digests import DigestFilter
    from .facts import FactFilter
    from .late_writes import LateWrites
    from .log_reader import LogReader
    from .open_database import OpenDatabase
    from .questions import DatabaseQuestions
    from .search.scanning import SearchFilter
    from .search.words import Query


class DatabaseStore(QueryMixin):
    """The part of an `EventStore` that appends, reads and asks, over a database."""

    def __init__(self, database: OpenDatabase, log: LogReader, questions: DatabaseQuestions) -> None:
        self._open, self._log, self._questions = database, log, questions

    @property
    def late_writes(self) -> LateWrites:
        """Writes that a close finishes first; see `FinishingStore`."""
        return self._open.late_writes

    async def append(
        self,
        conversation: str,
        events: Sequence[NewEvent],
        *,
        expected: int | Expected = Expected.ANY,
        values: Mapping[str, str] = NO_VALUES,
        snapshot: Snapshot | None = None,
        seals: Sequence[Seal] = (),
    ) -> Appended:
        """Append events at the end of a conversation, all of them or none; see `EventStore.append`.

        Appends that wait together are committed together; each is accepted or refused for itself. An append that is
        cancelled while it waits for its turn writes nothing; cancelled later, it is written whole.

        Raises:
            StoreBusy: too much waits to be written, or the append waited too long; nothing was written.
        """
        if is_long(events):
            batch = await asyncio.to_thread(encode, conversation, events, expected, values, snapshot, seals)
        else:
            batch = encode(conversation, events, expected, values, snapshot, seals)
        try:
            return await self._append(batch)
        except InDoubt as doubt:
            again: dict[str, Any] = {"conversation": conversation, "events": events, "expected": expected}
            again |= {"values": values, "snapshot": snapshot, "seals": seals}
            where, problem, ids = self._open.where, str(doubt), [event.id for event in events]
            raise AppendUncertain(where, problem, ids, again, known=doubt.known) from doubt.__cause__

    @abstractmethod
    def _append(self, batch: Batch) -> Awaitable[Appended]:
        """Write an append, or look up the version of a conversation for one without events.

        Raises:
            StoreClosed, StoreReadOnly: the store does not write any more, or never did.
            InDoubt: its commit failed, and nobody knows whether it is in the log.
        """

    def read(
        self,
        conversation: str,
        *,
        after: int = 0,
        until: int | None = None,
        types: Collection[str] | None = None,
        page: int = 500,
    ) -> AsyncIterator[Event]:
        """Iterate over a conversation's events, up to the version that it has now; see `EventStore.read`."""
        return self._log.read(conversation, after=after, until=until, types=types, page=page)

    async def read_versions(self, conversation: str, versions: Collection[int]) -> list[Event]:
        """Return the events of these versions that exist, by version."""
        return await self._log.read_versions(conversation, versions)

    async def find(self, conversation: str, path: str) -> Event | None:
        """Return the event that appended the block at a path, or None."""
        return await self._log.find(conversation, path)

    async def paths_taken(self, conversation: str, stems: Collection[str]) -> set[str]:
        """Return all paths in use that begin with one of the stems."""
        return await self._log.paths_taken(conversation, stems)

    async def known_ids(self, conversation: str, ids: Collection[UUID]) -> set[UUID]:
        """Return the given event ids that the conversation holds."""
        return await self._log.known_ids(conversation, ids)

    async def load_window(self, conversation: str) -> StoredWindow:
        """Read the state that a running agent needs; see `EventStore.load_window`."""
        return await self._log.load_window(conversation)

    async def load_waypoint(self, conversation: str, until: int, *, after: int = 0) -> Snapshot | None:
        """Read the newest snapshot of the past up to a version; see `EventStore.load_waypoint`."""
        return await self._log.load_waypoint(conversation, until, after=after)

    async def load_base(self, conversation: str, until: int | None = None) -> StoredWindow | None:
        """Read the newest base up to a version, with its events; see `Scavenging.load_base`."""
        return await self._log.load_base(conversation, until)

    async def info(self, conversation: str) -> ConversationInfo:
        """Return the facts of one conversation."""
        return await self._log.info(conversation)

    def conversations(self, *, page: int = 1_000) -> AsyncIterator[ConversationInfo]:
        """Iterate over all conversations, in the order in which they were opened."""
        return self._log.conversations(page=page)

    def recent_conversations(
        self, *, before: tuple[datetime, str] | None = None, page: int = 1_000
    ) -> AsyncIterator[ConversationInfo]:
        """Iterate over conversations, the one that changed last first; see `EventStore.recent_conversations`."""
        return self._log.recent_conversations(before=before, page=page)

    async def conversation_count(self) -> int:
        """Return how many conversations the store holds."""
        return await self._log.conversation_count()

    def read_all(
        self, *, after: int = 0, types: Collection[str] | None = None, page: int = 500
    ) -> AsyncIterator[Event]:
        """Iterate over the events of all conversations with ``position > after``, by position."""
        return self._log.read_all(after=after, types=types, page=page)

    async def head(self) -> int:
        """Return the position of the store's last event; see `EventStore.head`."""
        return await self._log.head()

    async def values(self, hashes: Collection[str]) -> dict[str, str]:
        """Return the content-addressed values of these hashes that the store holds."""
        return await self._log.values(hashes)

    async def chain_head(self, conversation: str) -> bytes:
        """Return the link of a conversation's newest event, as its row has it."""
        return await self._log.chain_head(conversation)

    async def check_listed(self) -> None:
        """Check that each conversation of which there are events is listed; see `Proofs.check_listed`."""
        await self._log.check_listed()

    def chained(self, conversation: str, *, after: int = 0, page: int = 2_000) -> AsyncIterator[ChainedEvent]:
        """Iterate over all events of a conversation as they are stored; see `Proofs.chained`."""
        return self._log.chained(conversation, after=after, page=page)

    def read_written(
        self, conversation: str, *, after: int = 0, until: int | None = None, page: int = 500
    ) -> AsyncIterator[WrittenEvent]:
        """Iterate over a conversation's events as they are written; see `Proofs.read_written`."""
        return self._log.read_written(conversation, after=after, until=until, page=page)

    async def waypoints(self, conversation: str) -> list[int]:
        """Return the versions of a conversation's own snapshots of the past, rising."""
        return await self._log.waypoints(conversation)

    async def scavenged(self, conversation: str) -> dict[str, int]:
        """Return how many of a conversation's events were removed, by type."""
        return await self._log.scavenged(conversation)

    def _digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        return self._questions.digests(conversation, wanted, page)

    def _search(self, query: Query, conversation: str | None, wanted: SearchFilter, page: int) -> AsyncIterator[Found]:
        return self._questions.search(query, conversation, wanted, page)

    def _facts(self, conversations: Sequence[str] | None, wanted: FactFilter, page: int) -> AsyncIterator[StoredFact]:
        return self._questions.facts(conversations, wanted, page)

    async def _fact_record(self, conversation: str, covers: Covers | None, most: int) -> FactRecord:
        return await self._questions.fact_record(conversation, covers, most)

    async def fact_reach(self) -> FactReach:
        """Return how far the index of facts reaches; see `Queries.fact_reach`."""
        return await self._questions.fact_reach()

    @abstractmethod
    async def aclose(self) -> None:
        """Finish pending writes, then close. A cancelled call continues to close; a second call waits for the end."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
