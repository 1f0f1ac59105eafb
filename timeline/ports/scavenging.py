"""The part of a store that removes history, on request and never by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from timeline.events.other_payloads import Retention
    from timeline.ports.stored import StoredWindow

KEPT_TYPES: Final = frozenset(
    {
        "conversation.opened",
        "compaction.completed",
        "compaction.reverted",
        "policy.changed",
        "policy.overridden",
        "retention.set",
        "block.redacted",
        "blocks.revealed",
        "framework.entry",
        "framework.record",
    }
)
"""Types of events that are never scavenged: compactions with their digests, what was decided about the conversation as
a whole or about a block for good, what took an omission back, and what a framework stores as its own."""


@dataclass(frozen=True, slots=True)
class Removal:
    """The outcome of one step of `Scavenging.remove`.

    Attributes:
        events: number of events that were removed.
        size: bytes of their payloads, in UTF-8.
        reached: the last version that this step looked at; the next step goes on after it.
        last: the last version that may be removed; 0 if nothing may be removed.
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
        removals: what would be removed, for each conversation.
        values: number of content-addressed texts that would be removed; ``value_size`` are their bytes.
        before: bytes of the store now, its write-ahead log included; ``after`` are the bytes that would be left.
    """

    removals: Mapping[str, Removal]
    values: int
    value_size: int
    before: int
    after: int


class Scavenging(Protocol):
    """The part of a store that removes history, on request and never by itself; `timeline.retention` calls it.

    Of a conversation's own events, those of the versions ``first`` to ``last`` may be removed: after the last version
    that a fork shares with it, before the start of its window, and not after its snapshot. Among these, the events that
    the snapshot names (its blocks, and the newest recorded context) and those of `KEPT_TYPES` stay, and omissions of
    what never happened (``blocks.hidden`` with a reason of `DISOWNED`): facts outlive their blocks, and no summary is
    to tell what was taken back. Version, id, path and time of a removed event stay, so that they remain taken, and so
    does its type, if it is a frequent one. Its payload, checksum, turn and tokens are gone, and so are its words in the
    search index. Nothing is removed if an undo came after the snapshot and no new snapshot since.

    The first step also keeps the snapshot as a *base* (`load_base`), from which the log can be folded from then on.
    """

    async def retention(self) -> Retention:
        """Return the setting for conversations that have none of their own; ``keep`` in a new store."""
        ...

    async def set_retention(self, retention: Retention) -> None:
        """Set what holds for conversations that have no setting of their own.

        Raises:
            InvalidArgument: there is no such retention.
        """
        ...

    async def remove(self, conversation: str, *, after: int = 0, most: int = 1_000) -> Removal:
        """Remove at most ``most`` events after version ``after``, in one transaction; call it again to go on.

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

        Returns the store's size in bytes before and after; None if nothing was removed since the last time.

        Raises:
            StoreLocked: another connection reads or writes; try again.
            StoreFull: there is no room for the copy that this takes; the store is as it was.
        """
        ...

    async def rehearse(self, conversations: Collection[str]) -> Rehearsal:
        """Return what `remove` of these conversations, `remove_values` and `shrink` would do; the store stays as it is.

        It works on a copy that nobody else can open, so the figures are those of the real run; only for a large store
        on a server is ``after`` an estimate.
        """
        ...

    async def take_lease(self, runner: str, now: datetime, until: datetime) -> datetime | None:
        """Let one runner at a time scavenge: take or renew the lease, until a time.

        A time that is not after ``now`` gives the lease back. Returns None if this runner has the lease, or the end of
        another runner's lease that is still in force.
        """
        ...

    async def scavenged(self, conversation: str) -> dict[str, int]:
        """Return how many of a conversation's events were removed, those of a shared past included.

        By type: ``block.appended``, ``context.rendered``, ``model.called``, and ``scavenged`` for all others.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...

    async def load_base(self, conversation: str, until: int | None = None) -> StoredWindow | None:
        """Read the newest base up to a version, with its events; None if the log folds from version 1.

        A fork's base may be its parent's. ``snapshot`` is never None.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        ...
