"""The part of a store that lets its log be proved, and what is derived from the log be made anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from timeline.events import Payload
    from timeline.ports.stored import Snapshot


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
        type: the type that the link covers; a removed event's own, not the one that other reads give in its place.
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
    """The part of a store that proves its log, and checks and rebuilds what is derived from the log."""

    async def chain_head(self, conversation: str) -> bytes:
        """Return the link of a conversation's newest event, as its row has it. Keep it elsewhere to prove the log.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    def chained(self, conversation: str, *, after: int = 0, page: int = 2_000) -> AsyncIterator[ChainedEvent]:
        """Iterate over all events after a version as they are stored, by version, scavenged and shared ones included.

        Nothing is checked: `timeline.audit.proof` does that. No lock or cursor is held between two pages.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    def read_written(
        self, conversation: str, *, after: int = 0, until: int | None = None, page: int = 500
    ) -> AsyncIterator[WrittenEvent]:
        """Iterate over the events of ``after < version <= until`` as they are written, for an export.

        Each event is checked as `EventStore.read` checks it, and scavenged ones are left out, as there.

        Raises:
            ConversationNotFound: there is no such conversation.
            StoreCorrupt: an event is damaged; those before it were yielded.
        """
        ...

    async def check_listed(self) -> None:
        """Check that each conversation that has events is listed: its row may have been deleted.

        It costs a look-up for each conversation.

        Raises:
            StoreCorrupt: a conversation is not listed, or that cannot be found out.
        """
        ...

    async def examine(self) -> list[Finding]:
        """Compare all that is derived from the log with the log, and return what differs.

        It works on a copy that nobody else can open, or only reads, so the store stays as it is and appends go on.
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
        """Store snapshots of the past, replacing those of the same versions, and drop those of other versions.

        Args:
            conversation: its id.
            snapshots: the new ones.
            dropped: versions whose snapshots are removed.
            expected: as for `replace_snapshot`.

        Raises:
            ConversationNotFound: there is no such conversation.
            VersionConflict: the conversation is not at ``expected``; nothing was replaced.
        """
        ...

    async def replace_snapshot(
        self, conversation: str, snapshot: Snapshot | None, *, expected: int | None = None
    ) -> None:
        """Replace the stored snapshot of the log; None removes it, and the window begins at version 1.

        Args:
            conversation: its id.
            snapshot: the new one.
            expected: the version that the snapshot was made at. A redaction may have come since, whose content the
                snapshot still has.

        Raises:
            ConversationNotFound: there is no such conversation.
            VersionConflict: the conversation is not at ``expected``; nothing was replaced.
        """
        ...
