"""The log as the engine sees it: the `Log` protocol, its drafts and its decisions.

`StoredLog` writes to a store, `DryRunLog` only folds: a dry run goes through the same code, and decides the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from timeline.events import ABANDONED, BEHIND, BlocksHidden, Replacement

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from timeline.blocks import Block
    from timeline.events import Covers, Event, Payload
    from timeline.fold.fold import Fold
    from timeline.ports import LeaseMark
    from timeline.queries import FactRecord


Decision: TypeAlias = Callable[["datetime"], Awaitable[Sequence["Payload"]]]
"""Gets the time of the events to append, and returns them, chosen from the log as it is then; none if none is due."""


class Draft(NamedTuple):
    """An event without a path or version yet: either a block with its token count, or another payload.

    Without ``at`` it gets the time of its append.
    """

    id: UUID
    at: datetime | None
    block: Block | None = None
    tokens: int = 0
    payload: Payload | None = None


class Departure(NamedTuple):
    """The versions that a framework's history left, and those that it left before and has again.

    ``behind`` is the version behind which an application went back, by name; None where a list or session shows it.
    """

    abandoned: tuple[int, ...] = ()
    revived: tuple[int, ...] = ()
    behind: int | None = None

    @property
    def versions(self) -> tuple[int, ...]:
        """All versions that are shown differently from now on."""
        return (*self.abandoned, *self.revived)

    def omission(self) -> list[Payload]:
        """Return the event for what left; none where nothing did."""
        gone = tuple(Replacement(version=version) for version in self.abandoned)
        facts = {} if self.behind is None else {BEHIND: self.behind}
        return [BlocksHidden(mode="omit", reason=ABANDONED, blocks=gone, facts=facts)] if gone else []


class Log(Protocol):
    """A conversation's log, as renders and compactions use it."""

    @property
    def fold(self) -> Fold:
        """The fold of the log, as far as it was read."""
        ...

    async def catch_up(self) -> None:
        """Fold the events that other writers appended."""
        ...

    async def since(self, version: int) -> list[Event]:
        """Return the events after a version."""
        ...

    async def paths_taken(self, stems: Collection[str]) -> set[str]:
        """Return the paths in use that begin with one of the stems."""
        ...

    async def first_prompt(self) -> str | None:
        """Return what the user's first message says, see `timeline.log.history.first_prompt`."""
        ...

    async def fact_record(self, covers: Covers) -> FactRecord:
        """Return the merged record of what was done and named in the blocks of these versions."""
        ...

    async def asked(self, covers: Covers) -> FactRecord:
        """Return the record of what the prompts of these versions ask for, and of nothing else."""
        ...

    def mark_lease(self) -> LeaseMark:
        """Mark the lease that this process is about to take; see `MarkingStore`."""
        ...

    def holder_died(self, version: int, expires_at: datetime) -> bool:
        """Return whether the process that took the lease of this version and expiry is known to have ended."""
        ...

    async def commit(
        self,
        payloads: Sequence[Payload],
        *,
        at: datetime | None,
        expected: int | None = None,
        values: Mapping[str, str] | None = None,
        snapshot: bool = False,
    ) -> int:
        """Append payloads in one transaction, at ``expected`` or at the log's end; return the first one's version.

        Without ``at`` they get the time of the append.

        Raises:
            VersionConflict: the log is not at ``expected``.
            StoreLocked: other writers were faster each time.
        """
        ...

    async def decide(
        self, choose: Decision, *, at: datetime | None, least: datetime | None = None, snapshot: bool = False
    ) -> bool:
        """Choose events from the log and append them under one lock; return whether any were appended.

        ``choose`` runs under the log's lock: no append of this process comes between its look at the log and its own
        events. It may read the log but not append to it, and runs again when another process was faster.

        Without ``at`` the events get the time of the append, which is not before ``least``.

        Raises:
            VersionConflict: other processes were faster each time.
        """
        ...
