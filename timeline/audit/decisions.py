"""The decisions before a model call: the events that may change what it is sent, each described in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import instant_text
from timeline.events import (
    ABRIDGED,
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    BlocksUnpinned,
    CompactionCompleted,
    CompactionReverted,
    PolicyChanged,
)
from timeline.events.other_payloads import (
    CompactionFailed,
    PrefixChanged,
    StageApproved,
    StageEntered,
    StageRewound,
    ToolsChanged,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.events import Event, Payload

_MOST_LISTED: Final = 6
"""Versions that a decision names in words."""
DECISIONS: Final = (
    CompactionCompleted,
    CompactionFailed,
    CompactionReverted,
    BlocksHidden,
    BlocksRevealed,
    BlocksPinned,
    BlocksUnpinned,
    BlockRedacted,
    PolicyChanged,
    PrefixChanged,
    ToolsChanged,
    StageEntered,
    StageApproved,
    StageRewound,
)
"""The events that may change what the next call is sent."""


class CallDecision(NamedTuple):
    """A decision before a call: the version, time and type of its event, and what it decided, in words.

    Attributes:
        keeps_prefix: whether it only decides how new blocks are sent, and changes nothing that was sent before.
    """

    version: int
    at: datetime
    type: str
    text: str
    keeps_prefix: bool = False

    def dump(self) -> dict[str, Any]:
        """Return its JSON form."""
        return {"version": self.version, "at": instant_text(self.at), "type": self.type, "text": self.text}


def decision_of(event: Event) -> CallDecision:
    """Return the decision of an event."""
    payload = event.payload
    abridging = isinstance(payload, BlocksHidden) and payload.reason in ABRIDGED
    return CallDecision(event.version, event.at, event.type, _in_words(payload), keeps_prefix=abridging)


def _in_words(payload: Payload) -> str:
    """Describe a decision that may change what the next call is sent, in one line."""
    match payload:
        case CompactionCompleted():
            sizes = f"{payload.before_tokens:,} -> {payload.after_tokens:,} tokens"
            return f"compaction {payload.round} ({payload.reason}) into {payload.block.path}: {sizes}"
        case CompactionFailed():
            return f"no compaction: {payload.reason}"
        case CompactionReverted() | BlocksRevealed() | BlocksPinned() | BlocksUnpinned():
            what = payload.type.partition(".")[2]
            return f"{what}: {'version' if len(payload.versions) == 1 else 'versions'} {_listed(payload.versions)}"
        case BlocksHidden():
            versions = [shown.version for shown in payload.blocks]
            named = f"{'version' if len(versions) == 1 else 'versions'} {_listed(versions)}"
            return f"{payload.state} ({payload.reason}): {named}"
        case BlockRedacted():
            return f"redacted: {f'version {payload.version}' if payload.version else 'words of other events'}"
        case PolicyChanged():
            return f"policy {'' if payload.origin is None else payload.origin.in_words()}".strip()
        case PrefixChanged():
            return "another system prompt"
        case ToolsChanged():
            return "other tools"
        case StageEntered() | StageApproved() | StageRewound():
            return f"{payload.type.replace('.', ' ')}: {payload.stage}"
        case _:
            return payload.type


def _listed(versions: Sequence[int]) -> str:
    named = ", ".join(map(str, versions[:_MOST_LISTED]))
    return named if len(versions) <= _MOST_LISTED else f"{named} and {len(versions) - _MOST_LISTED} more"
