"""What a log is to those who decide upon it: `StoredLog` writes, `DryLog` only folds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from timeline.blocks import Block
    from timeline.events import Event, Payload
    from timeline.fold.fold import Fold


Decision: TypeAlias = Callable[[], Awaitable[Sequence["Payload"]]]
"""Chooses what to append; nothing where nothing is due any more."""


class Draft(NamedTuple):
    """An event before it has its place: either a block with its count, or another payload."""

    id: UUID
    at: datetime
    block: Block | None = None
    tokens: int = 0
    payload: Payload | None = None


class Log(Protocol):
    """What a render or a compaction needs of a log."""

    @property
    def fold(self) -> Fold:
        """The fold of all that is known of the log."""
        ...

    async def catch_up(self) -> None:
        """Take in what other writers appended."""
        ...

    async def since(self, version: int) -> list[Event]:
        """Return the events after a version."""
        ...

    async def paths_taken(self, stems: Collection[str]) -> set[str]:
        """Return the paths in use that begin with one of the stems."""
        ...

    async def first_prompt(self) -> str | None:
        """Return what the conversation began with, see `timeline.log.history.first_prompt`."""
        ...

    async def commit(
        self,
        payloads: Sequence[Payload],
        *,
        at: datetime,
        expected: int | None = None,
        values: Mapping[str, str] | None = None,
        snapshot: bool = False,
    ) -> int:
        """Append payloads in one transaction, at ``expected`` or wherever the log ends; return the first's version.

        Raises:
            VersionConflict: the log is not at ``expected``.
        """
        ...

    async def decide(self, choose: Decision, *, at: datetime, snapshot: bool = False) -> bool:
        """Append what is chosen from the log as it is then, before this timeline appends anything else; False: nothing.

        Whoever chooses may look at the log, but not append to it, and is asked again where another process was faster.

        Raises:
            VersionConflict: other processes were faster each time.
        """
        ...
