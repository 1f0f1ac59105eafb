"""Ports: what the core asks of the outside, as Protocols, which store, summarizers and tokens implement."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from pydantic import JsonValue

from timeline.frozen import Frozen
from timeline.queries import Queries

if TYPE_CHECKING:
    from uuid import UUID

    from timeline.blocks import Block
    from timeline.events import Event, NewEvent, ParentLink
    from timeline.usage import Usage


class Expected(Enum):
    """What an append may expect of a conversation, besides an exact version (an int; 0 is an empty one)."""

    ANY = "any"
    NO_STREAM = "no_stream"
    STREAM_EXISTS = "stream_exists"


@dataclass(frozen=True, slots=True)
class Appended:
    """Where an append went: versions ``first_version`` to ``version``, and the position of the last event.

    ``repeated`` says that the very same append was in the log already and nothing was written.
    """

    first_version: int
    version: int
    position: int
    repeated: bool = False


class Snapshot(Frozen):
    """The small state of the fold at a version: what a running agent loads instead of the history.

    ``window_start`` is the lowest version of a visible block that is not carried; ``blocks`` are the versions below it
    whose events the window needs too (carried blocks, approvals of stages); ``state`` is the fold's own, without block
    bodies.
    """

    version: int
    window_start: int
    blocks: tuple[int, ...] = ()
    state: dict[str, JsonValue] = {}


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """What the store knows of a conversation without reading its events. Times are UTC.

    ``base`` is the last version that a fork shares with its parent: the versions 1 to ``base`` are the parent's events,
    and its own begin behind them. It is 0 for a conversation that shares nothing.
    """

    id: str
    version: int
    window_start: int
    created_at: datetime
    updated_at: datetime
    title: str = ""
    parent: ParentLink | None = None
    base: int = 0


@dataclass(frozen=True, slots=True)
class StoredWindow:
    """What opening a conversation reads: the snapshot (None before the first compaction), and the events to fold.

    ``events`` are those of ``snapshot.blocks``, then every event from ``window_start`` on, by version.
    """

    info: ConversationInfo
    snapshot: Snapshot | None
    events: Sequence[Event]


class EventStore(Queries, Protocol):
    """An append-only store of conversations. `timeline.store.testing.StoreContract` is this docstring as tests.

    Every event of an append, its values and its snapshot are written in one transaction, or none is. Reads see whole
    appends. Cancelling a call never leaves half an append, and never a store that cannot be used.

    **Forks.** A conversation whose first append holds a `ConversationOpened` with a parent link of the relation
    ``fork`` and a version V shares the parent's versions 1 to V (`ConversationInfo.base`) and goes on at V + 1, so
    that every version, range and path of the parent up to there means the same in the fork. Whatever reads the fork
    reads through: the parent's events come with the parent's name and checksum, and paths in use up to V are taken in
    the fork too. What the parent appends later never shows. A parent may be a fork itself. Event ids are a
    conversation's own.
    """

    async def append(
        self,
        conversation: str,
        events: Sequence[NewEvent],
        *,
        expected: int | Expected = Expected.ANY,
        values: Mapping[str, str] = ...,
        snapshot: Snapshot | None = None,
    ) -> Appended:
        """Append events, in order, at the end of a conversation; the first append opens it.

        An append that is in the log already (same ids in the same order, same content, where ``expected`` puts them)
        is answered with its own versions and writes nothing. No events: nothing is written, the current version comes
        back. ``values`` are content-addressed texts by sha256, ``snapshot`` replaces the conversation's snapshot.

        Raises:
            VersionConflict: the conversation is not where ``expected`` says.
            DuplicateEvent: ids are in the log already, in other company or with other content.
            PathTaken: a block's path is in use in the conversation.
            ConversationNotFound: it would open a fork of a conversation that is not there.
            HistoryUnavailable: it would open a fork at a version that the parent does not hold.
            StoreError: the database is locked, read-only, full, damaged or closed.
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
        """Return the event that appended the block at a path, or None."""
        ...

    async def paths_taken(self, conversation: str, stems: Collection[str]) -> set[str]:
        """Return all paths in use that begin with one of the stems."""
        ...

    async def known_ids(self, conversation: str, ids: Collection[UUID]) -> set[UUID]:
        """Return those of the event ids that the conversation itself holds; empty for an unknown conversation.

        The ids of what a fork shares with its parent are the parent's.
        """
        ...

    async def load_window(self, conversation: str) -> StoredWindow:
        """Read what a running agent needs; the cost does not depend on the history before the window.

        The window of a fork may begin in its parent. A fork has no snapshot but its own: one that is opened without
        a snapshot has everything from version 1 on as its window.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    async def info(self, conversation: str) -> ConversationInfo:
        """Return what is known of one conversation.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    def conversations(self, *, page: int = 200) -> AsyncIterator[ConversationInfo]:
        """Iterate over all conversations, in the order in which they were opened."""
        ...

    def read_all(
        self, *, after: int = 0, types: Collection[str] | None = None, page: int = 500
    ) -> AsyncIterator[Event]:
        """Iterate over the events of all conversations with ``position > after``, by position.

        Each event comes once, as its own conversation's; a fork has those behind its ``base``.
        """
        ...

    async def head(self) -> int:
        """Return the position of the last event of all; 0 in an empty store. The cost does not depend on the history.

        Whoever saw every event up to a head misses nothing by going on behind it: no later event has a lower position.
        """
        ...

    async def values(self, hashes: Collection[str]) -> dict[str, str]:
        """Return the content-addressed values that the store holds of these hashes."""
        ...

    async def aclose(self) -> None:
        """Finish what is being written, then close; a second call does nothing."""
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
"""What a summarizer is asked for: prose under plain headings, seed 001's sections, seed 004's five headings, seed 000's
three to five bullet points."""
HIDDEN_KEY: Final = "hidden"
"""Key of a block's ``meta`` in a request: why the model saw a replacement instead of it. No stored block has it."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a summarizer is asked for.

    Attributes:
        kind: finished history, or the prefix of the turn that goes on after the summary.
        blocks: what to summarise, in timeline order, each as the model saw it; never empty.
        previous: the whole summary to integrate, in the shape that it was written in, if there is one.
        task: the prompt of the split turn (``turn_prefix``) or of the conversation's newest covered turn.
        max_tokens: hard cap of the answer. A summary has at most half of what is new to it, and what the one before it
            had, so that an answer within the cap never grows the context.
        counter: the policy's counter, to keep the cap with.
        instructions: extra wishes of the caller, such as what to focus on.
        prompt: the shape of the answer; a turn prefix has one of its own.
        language: of the answer, in words such as ``Indonesian``; that of the conversation where it is empty.
        round: number of the compaction, counted from 1.
        original_task: the first prompt of the log, however long ago it was covered.
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
    round: int = 1
    original_task: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summarizer's answer, and who gave it."""

    text: str
    summarizer: str
    model: str | None = None
    prompt_version: str | None = None
    usage: Usage | None = None
    fallback_reason: str | None = None


class Summarizer(Protocol):
    """Writes summaries. It never sees a lock, and may be slow, fail or be cancelled.

    An answer counts only where it is a `Summary` with a text that can be stored, shows something, and is within
    ``request.max_tokens``. Each request has a deadline (`Timeline.open(summary_timeout=…)`), at which it is cancelled.
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
"""What ends the program, or the coroutine, and so is no failure of a summarizer that raises it."""
SUMMARY_TIMEOUT: Final = 110.0
"""Seconds that a summarizer has for one request, unless the application says otherwise.

Less than the lease of a compaction (120 seconds): the next of the chain answers, and the summary is committed, before
another writer may take the compaction over."""


def name_of(summarizer: object) -> str:
    """Return a summarizer's name; of one that has none, its class: a failure has to be told in any case."""
    name = getattr(summarizer, "name", None)
    return name if isinstance(name, str) else type(summarizer).__name__


class Clock(Protocol):
    """Where time enters."""

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        ...


class SystemClock:
    """The computer's clock."""

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class StoppedClock:
    """A clock that stands at one moment: in a past, time does not go on."""

    at: datetime

    def now(self) -> datetime:
        """Return that moment."""
        return self.at


Hook: TypeAlias = Callable[[dict[str, Any]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Skip:
    """What `Hooks.on_before_compaction` returns so that nothing is compacted now; the reason is recorded."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions of the application, awaited around a compaction; an error in one is recorded, never fatal (seed 002).

    Attributes:
        on_before_compaction: is given ``{before_tokens}``. Returns `Skip` to forbid the compaction: it is refused as
            ``vetoed``, and not tried again until the conversation has grown. Returns a text to write the summary
            itself, instead of the summarizer: it stands for all that is covered, an earlier summary included, and is
            cut to the policy's caps. Anything else lets the compaction go on. A dry run calls no hook, so it shows what
            would be done without one.
        on_after_compaction: is given ``{before_tokens, after_tokens, compacted_tokens}``; what it returns is ignored.
        on_session_start: is called next, when the conversation goes on from a summary (seed 003): given ``{source,
            conversation, summary, round, before_tokens, after_tokens}``, where ``source`` is ``"compact"`` and
            ``summary`` the path; what it returns is ignored.

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
