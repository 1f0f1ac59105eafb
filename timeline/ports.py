"""Ports: the protocols that stores, summarizers, token counters and clocks implement, and an application's hooks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pydantic import JsonValue

from timeline.errors import ForkedProcess, WrongEventLoop
from timeline.frozen import Frozen
from timeline.queries import Queries

if TYPE_CHECKING:
    from uuid import UUID

    from timeline.blocks import Block
    from timeline.events import Event, NewEvent, ParentLink, Payload
    from timeline.events.chain import Seal
    from timeline.events.other_payloads import Retention
    from timeline.usage import Usage


KEPT_TYPES: Final = frozenset(
    {
        "conversation.opened",
        "compaction.completed",
        "compaction.reverted",
        "policy.changed",
        "policy.overridden",
        "retention.set",
        "block.redacted",
        "framework.entry",
        "framework.record",
    }
)
"""Types of events that are never scavenged: compactions with their digests, what was decided about the conversation as
a whole or about a block for good, and what a framework stores as its own."""


class Expected(Enum):
    """What an append expects of its conversation, besides an exact version (an int; 0 is an empty conversation)."""

    ANY = "any"
    NO_STREAM = "no_stream"
    STREAM_EXISTS = "stream_exists"


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append: versions ``first_version`` to ``version``, and the position of the last event.

    ``repeated`` is True if the log held the same append already, so that nothing was written.
    """

    first_version: int
    version: int
    position: int
    repeated: bool = False


class Snapshot(Frozen):
    """The state of the fold at a version, which a running agent loads instead of the history.

    ``window_start`` is the lowest version of a visible block that is not carried; ``blocks`` are the versions below it
    whose events the window needs too (carried blocks, approvals of stages); ``state`` is the fold's own state, without
    the bodies of blocks.
    """

    version: int
    window_start: int
    blocks: tuple[int, ...] = ()
    state: dict[str, JsonValue] = {}


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """Facts about a conversation that a store returns without reading its events. Times are UTC.

    ``base`` is the last version that a fork shares with its parent: the versions 1 to ``base`` are the parent's events,
    and the fork's own begin behind them. It is 0 for a conversation that shares nothing.
    """

    id: str
    version: int
    window_start: int
    created_at: datetime
    updated_at: datetime
    title: str = ""
    parent: ParentLink | None = None
    base: int = 0
    first_version: int = 1
    """All events from this version on are there; some before it were scavenged. 1 where none was."""
    compactions: int = 0
    """How many compactions it had: those of a fork's shared versions and undone ones included."""
    last_compaction_at: datetime | None = None
    """The time of the newest of them; None without one."""


@dataclass(frozen=True, slots=True)
class StoredWindow:
    """The data to open a conversation with: the snapshot (None before the first compaction), and the events to fold.

    ``events`` are those of ``snapshot.blocks``, then every event from ``window_start`` on, by version.
    """

    info: ConversationInfo
    snapshot: Snapshot | None
    events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class Removal:
    """The outcome of one step of `Scavenging.remove`.

    Attributes:
        events: number of events that were removed.
        size: bytes of their payloads, in UTF-8.
        reached: the last version that this step looked at; the next step goes on behind it.
        last: the last version that may be removed; 0 where nothing may be.
        first: the lowest version that may be removed.
        fork: the fork whose shared past ends right before ``first``; None without one.
        done: whether nothing is left to remove up to ``last``.
    """

    events: int = 0
    size: int = 0
    reached: int = 0
    last: int = 0
    first: int = 1
    fork: str | None = None
    done: bool = True


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The outcome of `Scavenging.rehearse`: what removing would do.

    Attributes:
        removals: for each conversation all that would be removed of it.
        values: number of content-addressed texts that would be removed; ``value_size`` are their bytes.
        before: bytes of the store as it is, once its write-ahead log is in it; ``after`` those that would be left.
    """

    removals: Mapping[str, Removal]
    values: int
    value_size: int
    before: int
    after: int


class Scavenging(Protocol):
    """The part of a store that removes history, on request and never by itself; `timeline.retention` calls it.

    Of a conversation's own events, those of the versions ``first`` to ``last`` may be removed: behind the last version
    that a fork shares with it, before the start of its window, and not behind its snapshot. Of these stay the events
    that the snapshot names (its blocks, and the newest recorded context), and those of `KEPT_TYPES`. Version, id, path
    and time of a removed event stay, so that they remain taken, and its type, if it is a frequent one; its payload,
    checksum, turn and tokens are gone, and so are its words in the search index. Nothing is removed where an undo came
    behind the snapshot without a new one.

    The first step also keeps the snapshot as a *base* (`load_base`), from which the log can be folded from then on.
    """

    async def retention(self) -> Retention:
        """Return the setting for conversations that have none of their own; ``keep`` in a new store."""
        ...

    async def set_retention(self, retention: Retention) -> None:
        """Set what holds for conversations that have no setting of their own."""
        ...

    async def remove(self, conversation: str, *, after: int = 0, most: int = 1_000) -> Removal:
        """Remove at most ``most`` events behind version ``after``, in one transaction; calling it again goes on.

        Raises:
            ConversationNotFound: there is no such conversation.
            StoreError: nothing was removed by this call.
        """
        ...

    async def remove_values(self) -> tuple[int, int]:
        """Remove the content-addressed texts that no event and no snapshot names; return their number and bytes."""
        ...

    async def shrink(self) -> tuple[int, int] | None:
        """Give the removed bytes back, and leave no copy of them in the store's files.

        Returns the store's size before and after; None where nothing was removed since the last time.

        Raises:
            StoreLocked: another connection reads or writes; try again.
            StoreFull: there is no room for the copy that this takes; the store is as it was.
        """
        ...

    async def rehearse(self, conversations: Collection[str]) -> Rehearsal:
        """Return what `remove` of these conversations, `remove_values` and `shrink` would do; the store stays as it is.

        It is done on a copy that nobody else can open, so the figures are those of the real run; of a large store on a
        server ``after`` is an estimate.
        """
        ...

    async def take_lease(self, runner: str, now: datetime, until: datetime) -> datetime | None:
        """Let one runner at a time scavenge: take or renew the lease, until a time.

        A time that is not after ``now`` gives the lease back. Returns None, or the end of another runner's lease, which
        goes on after ``now``.
        """
        ...

    async def scavenged(self, conversation: str) -> dict[str, int]:
        """Return how many of a conversation's events were removed; those of a shared past are counted too.

        By type: ``block.appended``, ``context.rendered``, ``model.called``, and ``scavenged`` for all others.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    async def load_base(self, conversation: str, until: int | None = None) -> StoredWindow | None:
        """Read the newest base up to a version, with its events; None where the log folds from version 1.

        A fork's base may be its parent's. ``snapshot`` is never None.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What `Forgetting.rewrite` does in one conversation.

    Attributes:
        conversation: its id.
        expected: the version that it is at; at any other one nothing is written.
        events: the events to append: the redactions.
        payloads: the new payloads of events that the conversation itself holds, by version.
        blocks: versions whose facts and words in the search index go, in the shared past too.
        snapshot: returns a stored snapshot as it is to be. It is called for each one in turn, in any thread.
        title: the title to show from now on; None leaves it.
    """

    conversation: str
    expected: int
    events: Sequence[NewEvent]
    payloads: Mapping[int, Payload]
    blocks: Collection[int]
    snapshot: Callable[[Snapshot], Snapshot]
    title: str | None = None


ForksOnErase: TypeAlias = Literal["refuse", "erase", "copy"]
"""What becomes of a conversation's forks when it is erased."""
NOT_REACHED: Final[Mapping[str, str]] = {
    "backups": "copies of the database made before still hold it, and so do snapshots of its file system",
    "exports": "files exported before still hold it; exports made from now on do not",
    "traces": "spans sent before with include_content=True hold it",
    "provider": "requests that were sent held it; what the provider keeps of them is the provider's",
    "memory": "a process that read it may hold it until it ends, and so may a core dump or a swap file",
    "server": "a database server keeps it in its write-ahead log, in what it archived of that, and on standbys, until "
    "it is written over there; and in its own log, where it is set to write statements",
}
"""By place of the erasure map what no call of this library reaches, with what is there."""


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What an erasure reached, by place, and what it did not; a dry run reports what it would.

    Attributes:
        conversations: the conversations that were written, erased ones included.
        reached: number of things that were erased or written anew, by place: ``payloads``, ``titles``, ``summaries``
            (with their digests), ``replacements``, ``contexts``, ``calls``, ``entries`` (of frameworks, and errors),
            ``snapshots``, ``values``, ``facts`` and ``conversations``. A place at which nothing was is left out.
        rewritten: each event that was written anew, as ``conversation@version``.
        left: by place why something was not reached, beyond what no call reaches.
        physical: whether the bytes are gone from the store's files too: free pages, the search index, the log beside a
            file. False where another connection was in the way, or where it was left for later: scavenge, or repeat the
            call. A server's own log is among what is not reached.
        not_reached: by place what no call of this library reaches.
    """

    conversations: tuple[str, ...]
    reached: Mapping[str, int]
    rewritten: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    physical: bool = False
    not_reached: Mapping[str, str] = field(default_factory=lambda: NOT_REACHED)


class Forgetting(Protocol):
    """The part of a store that overwrites what was appended; `timeline.forgetting` decides what is written.

    It is the only way in which a stored payload changes. Version, id, path and time of an event stay. Its old checksum
    goes, since a short text can be guessed from its hash.
    """

    async def forks(self, conversation: str) -> dict[str, int]:
        """Return the conversation's own forks in the order of their opening, each with the last version of both.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    async def rewrite(
        self, parts: Sequence[Rewriting], *, values: Mapping[str, str] = ..., dropped: Collection[str] = ()
    ) -> dict[str, int]:
        """Overwrite payloads and snapshots, and append redactions, in one transaction; return what was done, by place.

        The rows of digests and facts and the words of the search index follow. ``values`` are new texts by their
        hashes; of ``dropped`` those go that no event and no snapshot names any more.

        Raises:
            ConversationNotFound: there is no such conversation.
            VersionConflict: a conversation is not at the version that it is expected at, or a block that goes was
                shared with a fork in the meantime which is no part of the call.
            StoreError: the database failed; nothing was written.
        """
        ...

    async def erase(
        self,
        conversation: str,
        *,
        forks: ForksOnErase = "refuse",
        reason: str = "",
        at: datetime | None = None,
    ) -> ErasureReport:
        """Erase a conversation with all that belongs to it, in one transaction, then from the store's files.

        Its id stays taken: every read of it and every append to it is a `ConversationErased`. Content-addressed texts
        that only it named go with it. A conversation that was erased before is erased from the files once more.

        Args:
            conversation: its id.
            forks: ``erase`` erases its forks too, and theirs; ``copy`` lets each of its forks keep what it shares, as
                events of its own, at new positions.
            reason: kept beside the id.
            at: the time that is kept beside it; now by default.

        Raises:
            ConversationNotFound: there is no such conversation.
            ForksRemain: it has forks, and ``forks`` is ``refuse``.
            UnderLegalHold: a legal hold is on it, or on a fork that would be erased.
            InvalidArgument: ``forks`` is none of the three.
            StoreError: the database failed; nothing was erased.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChainedEvent:
    """An event as the chain has it, without its payload; see `timeline.events.chain`.

    Attributes:
        conversation: the log that it belongs to; of a fork's shared past that is its parent.
        version: see `Event`, as for the next five.
        position: see ``version``.
        id: see ``version``.
        schema_version: see ``version``.
        at: the time as it is stored.
        type: the type that the link covers; a removed event's own, not the one that stands for it in other reads.
        path: path of the block that it appends.
        checksum: see ``version``; empty if the event was scavenged.
        salt: with a salt, ``c`` is the commitment to ``checksum``. None if the payload was erased. A scavenged event
            has that of `chain.remains`.
        c: the commitment, which a store may keep or give by salt and checksum; None, as the link, up to what was
            scavenged before the store kept a chain.
        link: the link behind the event before it.
    """

    conversation: str
    version: int
    position: int
    id: str
    type: str
    schema_version: int
    at: str
    path: str | None
    checksum: str
    salt: bytes | None
    c: bytes | None
    link: bytes | None


class WrittenEvent(NamedTuple):
    """An event as it is written, checked like a read one; see `Event` and `ChainedEvent` for what is not said here.

    Attributes:
        version: see `Event`, as for the next five.
        id: as text.
        type: see ``version``.
        schema_version: see ``version``.
        at: the time as text.
        checksum: see ``version``.
        salt: see `ChainedEvent`, as for the next two.
        c: see ``salt``.
        link: see ``salt``.
        text: the payload as it is stored.
        payload: the payload; None for a block that fits its type, which nobody needs in order to write it.
    """

    version: int
    id: str
    type: str
    schema_version: int
    at: str
    checksum: str
    salt: bytes | None
    c: bytes | None
    link: bytes | None
    text: str
    payload: Payload | None


@dataclass(frozen=True, slots=True)
class Finding:
    """What an examination found: the kind of data, what is wrong, and whether `Proofs.mend` makes it anew."""

    what: str
    problem: str
    derivable: bool


class Proofs(Protocol):
    """The part of a store that lets its log be proved, and what is derived from the log be checked and made anew."""

    async def chain_head(self, conversation: str) -> bytes:
        """Return the link of a conversation's newest event, as its row has it. Keep it elsewhere to prove the log.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    def chained(self, conversation: str, *, after: int = 0, page: int = 2_000) -> AsyncIterator[ChainedEvent]:
        """Iterate over all events behind a version as they are stored, scavenged and shared ones too, by version.

        Nothing is checked: `timeline.audit.proof` does that. No lock or cursor is held between two pages.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    def read_written(
        self, conversation: str, *, after: int = 0, until: int | None = None, page: int = 500
    ) -> AsyncIterator[WrittenEvent]:
        """Iterate over the events of ``after < version <= until`` as they are written, for an export.

        Each is checked as `EventStore.read` checks it; what was scavenged is left out, as there.

        Raises:
            ConversationNotFound: there is no such conversation.
            StoreCorrupt: an event is damaged; those before it were yielded.
        """
        ...

    async def examine(self) -> list[Finding]:
        """Compare all that is derived from the log with what it is derived from, and return what differs.

        It is done on a copy that nobody else can open, or by reading alone, so the store stays as it is, and appends go
        on.
        """
        ...

    async def mend(self) -> list[Finding]:
        """Make anew what is derived from the log and differs from it; return what was found, as `examine` does.

        No event is changed. What was derived from events that are gone stays.

        Raises:
            StoreReadOnly: the store may not be written to.
        """
        ...

    async def waypoints(self, conversation: str) -> list[int]:
        """Return the versions of the snapshots of the past that a conversation has itself, rising.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    async def replace_waypoints(
        self,
        conversation: str,
        snapshots: Sequence[Snapshot],
        *,
        dropped: Collection[int] = (),
        expected: int | None = None,
    ) -> None:
        """Keep snapshots of the past, in the places of those of the same versions; drop those of some versions.

        Args:
            conversation: its id.
            snapshots: the new ones.
            dropped: versions of those that go.
            expected: as for `replace_snapshot`.

        Raises:
            ConversationNotFound: there is no such conversation.
            VersionConflict: the conversation is not at ``expected``; nothing was replaced.
        """
        ...

    async def replace_snapshot(
        self, conversation: str, snapshot: Snapshot | None, *, expected: int | None = None
    ) -> None:
        """Put a snapshot of the log in the place of the stored one; None removes it, and the window begins at 1.

        Args:
            conversation: its id.
            snapshot: the new one.
            expected: the version that the snapshot was made at: a redaction may have come since, whose content it has.

        Raises:
            ConversationNotFound: there is no such conversation.
            VersionConflict: the conversation is not at ``expected``; nothing was replaced.
        """
        ...


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
        version. ``values`` are content-addressed texts by sha256, ``snapshot`` replaces the conversation's snapshot.
        ``seals`` are those that the events had elsewhere, one each, so that they keep their links; unless given, each
        payload gets a salt of its own. The append links its events, in their order, behind the one before them.

        Raises:
            VersionConflict: the conversation is not at ``expected``.
            DuplicateEvent: the log holds some of the ids already, in another append or with other content.
            PathTaken: a block's path is in use in the conversation.
            ConversationNotFound: the append opens a fork of a conversation that does not exist.
            HistoryUnavailable: the append opens a fork at a version that the parent does not hold, or comes with a
                snapshot that needs events which were scavenged.
            AppendUncertain: the commit failed; the same append again, under the same ids, is written once.
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
        """Read the newest snapshot of the past with ``after < version <= until``; None where there is none.

        Every snapshot that came with an append is kept as one, until a scavenge removes what it was made of. It is the
        fold of the log as it was then. A fork's may be its parent's.

        Raises:
            ConversationNotFound: there is no such conversation.
            StoreCorrupt: it is damaged; `timeline repair` makes it anew.
        """
        ...

    async def info(self, conversation: str) -> ConversationInfo:
        """Return the facts about one conversation.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    def conversations(self, *, page: int = 200) -> AsyncIterator[ConversationInfo]:
        """Iterate over all conversations, in the order in which they were opened.

        Raises:
            StoreCorrupt: what is stored of a conversation is damaged; all others were yielded.
        """
        ...

    def read_all(
        self, *, after: int = 0, types: Collection[str] | None = None, page: int = 500
    ) -> AsyncIterator[Event]:
        """Iterate over the events of all conversations with ``position > after``, by position.

        Each event comes once, under its own conversation; a fork's are those behind its ``base``.
        """
        ...

    async def head(self) -> int:
        """Return the position of the last event of all; 0 in an empty store. The cost does not depend on the history.

        A reader can stop at a head and go on behind it without missing events: no later event has a lower position.
        """
        ...

    async def values(self, hashes: Collection[str]) -> dict[str, str]:
        """Return the content-addressed values of these hashes that the store holds."""
        ...

    async def aclose(self) -> None:
        """Finish running writes, then close; a second call does nothing."""
        ...


class Wakeup(Protocol):
    """A store's hint that something was appended through another store on its database."""

    def concerns(self, conversation: str | None, types: Collection[str]) -> bool:
        """Return whether a conversation, or any one if None, may have got an event of one of these types."""
        ...


@runtime_checkable
class WakingStore(Protocol):
    """What a store has that hears of appends of other processes. Followers of any other store find them by looking."""

    def wakeups(self) -> AsyncIterator[Wakeup]:
        """Iterate over the wake-ups from now on, until the store is closed.

        It never fails: while there is no connection to hear them by, none come, and when there is one again, the first
        one concerns everything. Followers look at the log by themselves too, so that one may be lost.
        """
        ...


class TokenCounter(Protocol):
    """Counts the tokens of a text. Counting never fails: special tokens are ordinary text here."""

    @property
    def name(self) -> str:
        """The name that is stored beside every count, such as ``o200k_base``."""
        ...

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count many texts, on several cores where that helps."""
        ...

    def truncate(self, text: str, tokens: int) -> str:
        """Return the longest prefix of a text, at a character boundary, that counts at most ``tokens``."""
        ...


SummaryKind: TypeAlias = Literal["history", "turn_prefix"]
PromptName: TypeAlias = Literal["generic", "sections", "continuation", "bullets"]
"""Shapes of a summary: prose under plain headings, the sections of the keep-last design (001), the five headings of the
prune-then-summarize design (004), the three to five bullet points of the priority-chain design (000)."""
HIDDEN_KEY: Final = "hidden"
"""Key of a block's ``meta`` in a request: the reason why the model saw a replacement. Stored blocks do not have it."""
CUT_KEY: Final = "cut"
"""Key of a block's ``meta`` in a request: it is as it was said, without the middle. Stored blocks do not have it."""


class WarmContext(Protocol):
    """The context that a model was sent last, which its provider still has in the cache: to ask one more question in.

    It holds all blocks of the request, and what came behind them. A question costs what reading the cache costs.
    """

    @property
    def wire(self) -> str:
        """The wire format that it was sent in."""
        ...

    @property
    def model(self) -> str:
        """Id of the model that it was sent to: no other one has it in its cache."""
        ...

    @property
    def tokens(self) -> int:
        """Its tokens, system prompt and tools included, by the policy's counter."""
        ...

    def arguments(self, question: str, most_tokens: int) -> dict[str, Any]:
        """Return the arguments of the SDK's method that ask a question behind it; a new dict each time.

        All before the question is as it was sent, byte for byte, and so are the parameters that a cache depends on:
        tools and tool choice, thinking, effort.

        Args:
            question: the question; it is stored nowhere.
            most_tokens: cap of the answer, in the model's own tokens.
        """
        ...


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A request for a summary.

    Attributes:
        kind: finished history, or the prefix of the turn that goes on after the summary.
        blocks: the blocks to summarise, in timeline order; never empty. Each is as the model saw it; or, where the
            policy asks for originals, as it was said, and cut where there is no room (`CUT_KEY`).
        previous: the earlier summary to integrate, whole and in its own shape; None if there is none.
        task: the prompt of the split turn (``turn_prefix``) or of the conversation's newest covered turn.
        max_tokens: hard cap of the answer: half of the new blocks' tokens, and those of the earlier summary, so that an
            answer within the cap never grows the context.
        counter: the policy's counter, to measure the answer with.
        instructions: extra wishes of the caller, such as what to focus on.
        prompt: the shape of the answer; a turn prefix has a shape of its own.
        language: language of the answer, such as ``Indonesian``; the conversation's if empty.
        compaction_number: number of the compaction, counted from 1.
        original_task: the first prompt of the log, however long ago it was covered.
        temperature: the policy's wish for the model; None where it has none.
        answer_room: multiple of the cap at which a model is stopped.
        too_long: an answer above the cap is refused, so that another summarizer writes one or all stays as it is; or it
            is cut to the cap, where what would come instead says less.
        invented: names in an answer that the request does not have are accepted; or the author is asked once more, and
            the sentences of those that are left are removed.
        warm: the context in the provider's cache, to ask in; None where the policy has summaries asked alone, or where
            the context cannot be used. A summarizer may leave it unused.
    """

    kind: SummaryKind
    blocks: tuple[Block, ...]
    previous: str | None
    task: str | None
    max_tokens: int
    counter: TokenCounter
    instructions: str = ""
    prompt: PromptName = "generic"
    language: str = ""
    compaction_number: int = 1
    original_task: str | None = None
    temperature: float | None = None
    answer_room: float = 2.0
    too_long: Literal["refuse", "cut"] = "refuse"
    invented: Literal["accept", "repair"] = "accept"
    warm: WarmContext | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summarizer's answer, with the names of the summarizer and its model.

    ``repaired`` says which names the author had invented, and what became of them. ``asked`` says whether the model was
    asked in ``request.warm``, and ``alone_because`` why it was not.
    """

    text: str
    summarizer: str
    model: str | None = None
    prompt_version: str | None = None
    usage: Usage | None = None
    fallback_reason: str | None = None
    repaired: str | None = None
    asked: Literal["alone", "in_cache"] = "alone"
    alone_because: str | None = None


class Summarizer(Protocol):
    """Writes summaries. It runs outside of any lock, and may be slow, fail or be cancelled.

    An answer is used only if it is a `Summary` whose text can be stored, is not blank, and counts at most
    ``request.max_tokens``. Each request is cancelled at its deadline (`Timeline.open(summary_timeout=…)`).
    """

    @property
    def name(self) -> str:
        """The name that is stored beside every summary."""
        ...

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer a request; the text counts at most ``request.max_tokens``.

        Raises:
            SummarizerFailed: there is no usable answer.
        """
        ...


SIGNALS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Exceptions that end the program or the coroutine: not a failure of the summarizer that raises one."""
SUMMARY_TIMEOUT: Final = 110.0
"""Seconds that a summarizer has for one request, by default.

Less than the lease of a compaction (120 seconds): the next of the chain answers, and the summary is committed, before
another writer may take the compaction over."""


@runtime_checkable
class WindowedSummarizer(Summarizer, Protocol):
    """A summarizer that names its window: originals are cut so that it need not be asked again because of them."""

    @property
    def window_tokens(self) -> int | None:
        """Tokens that it reads and writes at once; None where it knows no limit."""
        ...


def window_of(summarizer: object) -> int | None:
    """Return the window that a summarizer names, if it names one."""
    window = summarizer.window_tokens if isinstance(summarizer, WindowedSummarizer) else None
    return window if isinstance(window, int) and window > 0 else None


def ratio_of(counter: object) -> float:
    """Return how many tokens a request's counter counts for one of the policy's: one, unless counts are calibrated."""
    ratio = getattr(counter, "ratio", 1.0)
    return ratio if isinstance(ratio, float) and ratio > 0 else 1.0


def name_of(summarizer: object) -> str:
    """Return a summarizer's name, or else its class, so that every failure can name its summarizer."""
    name = getattr(summarizer, "name", None)
    return name if isinstance(name, str) else type(summarizer).__name__


class Clock(Protocol):
    """The source of the time of calls without ``now``; of durations too, if it is a `MeasuringClock`."""

    def now(self) -> datetime:
        """Return the present moment, in UTC. It may step back; the times of a handle's events do not."""
        ...


@runtime_checkable
class MeasuringClock(Clock, Protocol):
    """A clock that durations are measured by, as tests need it. With any other clock, the computer measures them."""

    def monotonic(self) -> float:
        """Return the seconds since some fixed moment, never less than before."""
        ...


class SystemClock:
    """The computer's clock."""

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds since some fixed moment, whatever the wall clock is set to."""
        return perf_counter()


@dataclass(frozen=True, slots=True)
class StoppedClock:
    """A clock that always shows one moment, for a view of the past and for replays: by it nothing has a duration."""

    at: datetime

    def now(self) -> datetime:
        """Return that moment."""
        return self.at

    def monotonic(self) -> float:
        """Return the same reading each time."""
        return 0.0


class Home:
    """The process and the event loop that an object belongs to: those in which it is made.

    An object that is made without an event loop belongs to the one in which it is first used.

    Args:
        what: names the object in errors.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._process = os.getpid()
        self._loop = _running_loop()

    def __deepcopy__(self, memo: object) -> Home:
        """A copy of the object belongs where the object does: an event loop has no copy."""
        return self

    def check(self) -> None:
        """Check that the object is used where it belongs.

        Raises:
            ForkedProcess: this process is a fork of its own.
            WrongEventLoop: another event loop runs here than its own.
        """
        self.check_process()
        loop = _running_loop()
        if self._loop is None:
            self._loop = loop
        elif loop is not self._loop:
            raise WrongEventLoop(self._what)

    def check_alone(self) -> None:
        """Check the same of an object in which nothing waits: it moves on from an event loop that is closed.

        Raises:
            ForkedProcess: this process is a fork of its own.
            WrongEventLoop: another event loop has it, which may be running in another thread.
        """
        if self._loop is not None and self._loop.is_closed():
            self._loop = None
        self.check()

    def check_process(self) -> None:
        """Check that the object is used in its process, from whatever thread.

        Raises:
            ForkedProcess: this process is a fork of its own.
        """
        if self.forked:
            raise ForkedProcess(self._what, self._process)

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the object's own."""
        return os.getpid() != self._process


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def leave_to_parent(inherited: object) -> None:
    """Keep an object from ever being finalized in this process, a fork of the one that it belongs to.

    Its clean-up would reach what the two processes share, such as a database's files. Nothing else keeps an object
    alive beyond the end of the interpreter.
    """
    import ctypes  # noqa: PLC0415 - only forks need it, and it takes long to import

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


Hook: TypeAlias = Callable[[dict[str, Any]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Skip:
    """Returned by `Hooks.on_before_compaction` to prevent the compaction; the reason is recorded."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions of the application to await around a compaction; an error in one is recorded, never fatal.

    The hooks are those of the cut-point design (002) [cut_point], the last that of the keep-ratio design (003)
    [keep_ratio].

    Attributes:
        on_before_compaction: called with ``{before_tokens}``. Returns `Skip` to prevent the compaction: it is refused
            as ``vetoed``, and not tried again until the conversation has grown. Returns a text to use as the summary,
            in place of the summarizer's: it replaces all covered blocks, an earlier summary included, and is cut to the
            policy's caps. With any other value the compaction goes on. A dry run calls no hook, so it shows the result
            without one.
        on_after_compaction: called with ``{before_tokens, after_tokens, compacted_tokens}``; its result is ignored.
        on_session_start: called next, when the conversation goes on from a summary, with ``{source, conversation,
            summary, compaction_number, before_tokens, after_tokens}``; ``source`` is ``"compact"`` and ``summary`` a
            path. Its result is ignored.
        on_append: called with each block before it is counted and stored; returns the block to store, such as one with
            its secrets masked (`timeline.forgetting.mask_credentials`). Every other text that is stored is shown to it
            as a `Note`: titles, errors, labels and approvals of stages, entries of frameworks, summaries. Where it
            changes a system prompt, tools or an ephemeral text, which were sent as they are, the context is recorded by
            hashes, as with ``record="hash"``. It is no coroutine. An error in it is raised, and nothing is stored: a
            secret that it could not mask must not get in.

    Example:
        ```python
        from timeline import Hooks, Skip, Timeline, open_store


        async def before(facts):  # {"before_tokens": …}
            return Skip("a deploy is running")


        store = await open_store("memory://")
        timeline = await Timeline.open(store, "cards", hooks=Hooks(on_before_compaction=before))
        ```
    """

    on_before_compaction: Hook | None = field(default=None)
    on_after_compaction: Hook | None = field(default=None)
    on_session_start: Hook | None = field(default=None)
    on_append: Callable[[Block], Block] | None = field(default=None)
