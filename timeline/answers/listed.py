"""Conversations, events and decided blocks, a row each, in what the command and the API have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.frozen import Frozen

if TYPE_CHECKING:
    from typing import Self

    from timeline.fold.window import Item


class PolicyRow(Frozen):
    """The policy in force: its name, the release of its preset (0 for another policy), and its hash."""

    name: str
    release: int
    hash: str


class ConversationRow(Frozen):
    """A conversation; ``parent`` is None, or its origin (conversation, version, path, relation).

    ``policy`` is None where the log names none, as for an imported recording. ``compactions`` counts those of a shared
    past and undone ones too; ``last_compaction_at`` is None without one.
    """

    id: str
    title: str
    version: int
    window_start: int
    created_at: str
    updated_at: str
    compactions: int
    last_compaction_at: str | None
    policy: PolicyRow | None
    parent: dict[str, Any] | None


class EventRow(Frozen):
    """An event.

    Where it appends a block, ``type`` is the block's type and ``state`` one of visible, abridged, hidden, carried,
    omitted, covered, redacted, deleted; ``covered_by`` is the version of the summary that covers it, or None. Of any
    other event ``type`` is the event's type, and the fields of a block are None. ``duration`` is how many seconds a
    compaction (also one that failed) or a model call took, and None of all others and where that was not measured.
    ``unsaid`` are the versions of the prompts of which a compaction or a hide left something asked neither said nor
    listed, and empty of all others.
    """

    version: int
    at: str
    type: str
    path: str | None = None
    state: str | None = None
    covered_by: int | None = None
    turn_id: str | None = None
    call_id: str | None = None
    tokens: int | None = None
    duration: float | None = None
    unsaid: tuple[int, ...] = ()


class DecidedBlock(Frozen):
    """A block that a decision changed, as it is afterwards."""

    version: int
    path: str
    state: str
    pinned: bool
    tokens: int
    shown_tokens: int

    @classmethod
    def of(cls, item: Item) -> Self:
        """Return the row of a live block."""
        return cls(
            version=item.version,
            path=item.block.path,
            state=item.state,
            pinned=item.pinned,
            tokens=item.tokens,
            shown_tokens=item.shown_tokens,
        )
