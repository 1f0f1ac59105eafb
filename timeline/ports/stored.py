"""What a store keeps of a conversation, and returns of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pydantic import JsonValue

from timeline.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.events import Event, ParentLink


class Expected(Enum):
    """What an append expects of its conversation, besides an exact version (an int; 0 is an empty conversation)."""

    ANY = "any"
    NO_STREAM = "no_stream"
    STREAM_EXISTS = "stream_exists"


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append: versions ``first_version`` to ``version``, and the position of the last event.

    ``repeated`` is True if the log held the same append already; then nothing was written.
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

    @property
    def is_outdated(self) -> bool:
        """Whether it was taken by a release whose fold did not know stages.

        Such folds showed other blocks behind an undo, and did not say which event recorded the newest context. So the
        log, which was whole then, is folded anew.
        """
        return self.state.keys() >= {"items", "rounds"} and "stages" not in self.state


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """Facts about a conversation that a store returns without reading its events. Times are UTC.

    ``base`` is the last version that a fork shares with its parent: the versions 1 to ``base`` are the parent's events,
    and the fork's own events come after them. It is 0 for a conversation that shares nothing.
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
    """How many compactions it had: those of a fork's shared versions and undone ones included. 0 where the events that
    say it are damaged, too."""
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
