"""The part of a store that overwrites what was appended, and erases conversations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from timeline.events import NewEvent, Payload
    from timeline.ports.stored import Snapshot


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What `Forgetting.rewrite` does in one conversation.

    Attributes:
        conversation: its id.
        expected: the version that the conversation has to be at; otherwise nothing is written.
        events: the events to append: the redactions.
        payloads: the new payloads of events that the conversation itself holds, by version.
        blocks: versions whose facts and words in the search index are removed, in the shared past too.
        snapshot: returns the new form of a stored snapshot. It is called for each snapshot in turn, in any thread.
        title: the title to show from now on; None leaves it as it is.
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
    "it is written over there; in its own log, where it is set to write statements; and in the unfinished copies of "
    "tables that a crash of it left behind",
}
"""By place of the erasure map what no call of this library reaches, with what is there."""


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What an erasure reached and did not reach, by place; a dry run reports what it would reach.

    Attributes:
        conversations: the conversations that were written, erased ones included.
        reached: number of things that were erased or written anew, by place: ``payloads``, ``titles``, ``summaries``
            (with their digests), ``replacements``, ``contexts``, ``calls``, ``entries`` (of frameworks, and errors),
            ``snapshots``, ``values``, ``facts`` and ``conversations``. Places where nothing was reached are left out. A
            dry run counts no ``snapshots`` and ``facts``, which are made from the log, and no ``values`` of an erasure.
        rewritten: each event that was written anew, as ``conversation@version``.
        left: by place, why something was not reached that a call could reach.
        physical: whether the bytes are gone from the store's files too: free pages, the search index, the log beside a
            file. False where another connection was in the way, or where it was left for later: scavenge, or repeat the
            call. A server's own log is among what is not reached.
        not_reached: by place, what no call of this library reaches.
    """

    conversations: tuple[str, ...]
    reached: Mapping[str, int]
    rewritten: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    physical: bool = False
    not_reached: Mapping[str, str] = field(default_factory=lambda: NOT_REACHED)


class Forgetting(Protocol):
    """The part of a store that overwrites appended content; `timeline.forgetting` decides what is written.

    Nothing else changes a stored payload. Version, id, path and time of an event stay. Its old checksum goes, since a
    short text can be guessed from its hash.
    """

    async def forks(self, conversation: str) -> dict[str, int]:
        """Return the conversation's own forks in the order of their opening, each with the last shared version.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    async def rewrite(
        self, parts: Sequence[Rewriting], *, values: Mapping[str, str] = ..., dropped: Collection[str] = ()
    ) -> dict[str, int]:
        """Overwrite payloads and snapshots, and append redactions, in one transaction; return what was done, by place.

        The rows of digests and facts and the words of the search index follow. ``values`` are new texts by their
        hashes. The texts in ``dropped`` are removed unless an event or a snapshot still names them.

        Raises:
            ConversationNotFound: there is no such conversation.
            VersionConflict: a conversation is not at its expected version; or meanwhile a fork that is not part of the
                call began to share a block that is to go, or an event that is to be overwritten.
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

        Its id stays taken: every read and every append raises `ConversationErased`. Content-addressed texts that only
        this conversation named go with it. For a conversation that was erased before, the files are cleaned once more.

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
            InvalidArgument: ``forks`` is not one of the three.
            StoreError: the database failed; nothing was erased.
        """
        ...
