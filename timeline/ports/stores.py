"""The append-only store of conversations, and the wake-ups of one that hears of other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from timeline.ports.forgetting import Forgetting
from timeline.ports.proofs import Proofs
from timeline.ports.scavenging import Scavenging
from timeline.ports.stored import Appended, ConversationInfo, Expected, Snapshot, StoredWindow
from timeline.queries import Queries

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from timeline.events import Event, NewEvent
    from timeline.events.chain import Seal


class EventStore(Queries, Scavenging, Forgetting, Proofs, Protocol):
    """An append-only store of conversations. `timeline.store.testing.StoreContract` is this docstring as tests.

    Every event of an append, its values and its snapshot are written in one transaction, or none is. Reads see whole
    appends. Cancelling a call never leaves half an append, and never a store that cannot be used.

    **Forks.** A conversation whose first append holds a `ConversationOpened` with a parent link of the relation
    ``fork`` and a version V shares the parent's versions 1 to V (`ConversationInfo.base`) and goes on at V + 1, so
    that every version, range and path of the parent up to V means the same in the fork. Reads of the fork include the
    shared events, under the parent's name and checksum, and paths in use up to V are taken in the fork too. The fork
    never shows what the parent appends later. A parent may be a fork itself. Event ids are a conversation's own.

    **Scavenged events** (`Scavenging`) are left out of every read; `find` raises for the path of one.
    """

    async def append(
        self,
        conversation: str,
        events: Sequence[NewEvent],
        *,
        expected: int | Expected = Expected.ANY,
        values: Mapping[str, str] = ...,
        snapshot: Snapshot | None = None,
        seals: Sequence[Seal] = ...,
    ) -> Appended:
        """Append events, in order, at the end of a conversation; the first append opens it.

        An append that the log holds already (same ids in the same order, same content, where ``expected`` puts them)
        writes nothing and returns its versions. An append without events writes nothing and returns the current
        version. ``values`` are content-addressed texts by sha256. ``snapshot`` replaces the conversation's snapshot.
        ``seals`` are the seals that the events had in another store, one for each, so that they keep their links;
        without them, each payload gets a salt of its own. The append links its events in their order, after the newest
        event.

        Raises:
            VersionConflict: the conversation is not at ``expected``.
            DuplicateEvent: the log holds some of the ids already, in another append or with other content.
            PathTaken: a block's path is in use in the conversation.
            ConversationNotFound: the append opens a fork of a conversation that does not exist.
            HistoryUnavailable: the append opens a fork at a version that the parent does not hold, or its snapshot
                needs events that were scavenged.
            AppendUncertain: the commit failed. Append the same events again, under the same ids: they are written once.
            StoreError: the database is locked, read-only, full, damaged or closed; nothing was written.
        """
        ...

    def read(
        self,
        conversation: str,
        *,
        after: int = 0,
        until: int | None = None,
        types: Collection[str] | None = None,
        page: int = 500,
    ) -> AsyncIterator[Event]:
        """Iterate over events with ``after < version <= until``, by version, of the given types.

        Reads ``page`` events at a time; no lock or cursor is held between two pages.

        Raises:
            ConversationNotFound: there is no such conversation.
            InvalidArgument: ``types`` is a single text.
            StoreCorrupt: an event does not match its checksum.
        """
        ...

    async def read_versions(self, conversation: str, versions: Collection[int]) -> list[Event]:
        """Return the events of these versions that exist, by version."""
        ...

    async def find(self, conversation: str, path: str) -> Event | None:
        """Return the event that appended the block at a path, or None.

        Raises:
            HistoryUnavailable: the event was scavenged.
        """
        ...

    async def paths_taken(self, conversation: str, stems: Collection[str]) -> set[str]:
        """Return all paths in use that begin with one of the stems."""
        ...

    async def known_ids(self, conversation: str, ids: Collection[UUID]) -> set[UUID]:
        """Return the event ids that the conversation itself holds; none for an unknown conversation.

        The ids of the events that a fork shares with its parent are the parent's.
        """
        ...

    async def load_window(self, conversation: str) -> StoredWindow:
        """Read the data to open a conversation with; the cost does not depend on the history before the window.

        The window of a fork may begin in its parent. A fork does not use its parent's snapshot: until it has one of its
        own, its window is everything from version 1 on.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    async def load_waypoint(self, conversation: str, until: int, *, after: int = 0) -> Snapshot | None:
        """Read the newest snapshot of the past with ``after < version <= until``; None if there is none.

        Every snapshot that came with an append is kept as one, until a scavenge removes what it was made of. It is the
        fold of the log as it was then. For a fork it may be its parent's.

        Raises:
            ConversationNotFound: there is no such conversation.
            StoreCorrupt: the snapshot is damaged; `timeline repair` makes it anew.
        """
        ...

    async def info(self, conversation: str) -> ConversationInfo:
        """Return the facts about one conversation.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    def conversations(self, *, page: int = 1_000) -> AsyncIterator[ConversationInfo]:
        """Iterate over all conversations, in the order in which they were opened.

        Raises:
            StoreCorrupt: what is stored of a conversation is damaged; all others were yielded. Where only the events
                are damaged that say when it was compacted, it was yielded as well.
        """
        ...

    def recent_conversations(
        self, *, before: tuple[datetime, str] | None = None, page: int = 1_000
    ) -> AsyncIterator[ConversationInfo]:
        """Iterate over conversations, the one that changed last first; those of the same moment by descending id.

        A page looks at the time at which each conversation changed, and reads only its own rows. A conversation that
        changes during the iteration moves to the front: it comes at its old place, or not at all.

        Args:
            before: ``updated_at`` and id of the conversation after which to begin; by default at the front.
            page: number of conversations to read at a time.

        Raises:
            StoreCorrupt: what is stored of a conversation is damaged; all others were yielded. Where only the events
                are damaged that say when it was compacted, it was yielded as well.
        """
        ...

    async def conversation_count(self) -> int:
        """Return how many conversations the store holds."""
        ...

    def read_all(
        self, *, after: int = 0, types: Collection[str] | None = None, page: int = 500
    ) -> AsyncIterator[Event]:
        """Iterate over the events of all conversations with ``position > after``, by position.

        Each event comes once, under its own conversation; a fork's own events are those after its ``base``. This is
        made for followers: on a server it ends where an older transaction still writes, in any of the server's
        databases, so that no event can appear later at a lower position. To miss nothing, read each conversation
        (`timeline.log.all_events`).
        """
        ...

    async def head(self) -> int:
        """Return the position of the last event of all; 0 in an empty store. The cost does not depend on the history.

        A reader can stop at a head and go on after it without missing events: no later event has a lower position.
        """
        ...

    async def values(self, hashes: Collection[str]) -> dict[str, str]:
        """Return the content-addressed values of these hashes that the store holds."""
        ...

    async def aclose(self) -> None:
        """Finish running and late writes (`FinishingStore`), then close; a second call does nothing."""
        ...


@runtime_checkable
class FinishingStore(Protocol):
    """Part of a store whose close waits for late writes, those of ``render(record="overlapped")``.

    With any other store, a context that is being recorded when the store is closed may be lost. A call that waits for
    the record then raises `StoreClosed`.
    """

    @property
    def late_writes(self) -> set[asyncio.Task[None]]:
        """Tasks that write to the store and have not been awaited yet; whoever begins or awaits one updates the set.

        A close waits for them before it refuses any call; once the store is closed, it raises the error that one of
        them raised.
        """
        ...


class Wakeup(Protocol):
    """A store's hint that something was appended through another store on its database."""

    def concerns(self, conversation: str | None, types: Collection[str]) -> bool:
        """Return whether a conversation, or any one if None, may have got an event of one of these types."""
        ...


@runtime_checkable
class WakingStore(Protocol):
    """Part of a store that hears of other processes' appends; with any other store, followers look for them."""

    def wakeups(self) -> AsyncIterator[Wakeup]:
        """Iterate over the wake-ups from now on, until the store is closed.

        It never fails: without a connection no wake-ups come, and when there is one again, the first wake-up concerns
        everything. A wake-up may be lost, since followers also look at the log by themselves.
        """
        ...


class LeaseMark(Protocol):
    """A mark that shows other processes that this one runs, as long as it writes a summary under a lease."""

    def name(self, version: int, expires_at: datetime) -> None:
        """Say which lease is asked for, before it is in the log; the last one counts."""

    def close(self) -> None:
        """Remove the mark; a second call does nothing."""


class _NoMark:
    """The mark of a log that no other process writes, or whose store has no way to see whether another one runs."""

    def name(self, version: int, expires_at: datetime) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


NO_MARK: Final[LeaseMark] = _NoMark()


@runtime_checkable
class MarkingStore(Protocol):
    """Part of a store that can see whether the process that took a lease still runs.

    With any other store, the lease of a process that died has to expire first.
    """

    def mark_lease(self, conversation: str) -> LeaseMark:
        """Mark the lease that this process is about to take; `NO_MARK` if that is not possible."""
        ...

    def holder_died(self, conversation: str, version: int, expires_at: datetime) -> bool:
        """Return whether the process that took the lease of this version and expiry is known to have ended.

        False if that is not known, so that a summary is never paid for twice because a running process cannot be seen.
        """
        ...
