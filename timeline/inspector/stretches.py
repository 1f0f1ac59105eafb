"""The stages of a conversation's work, and its attempts to compact, each as a stretch of versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.events import CompactionCompleted
from timeline.events.other_payloads import (
    CompactionFailed,
    CompactionStarted,
    StageApproved,
    StageEntered,
    StageRewound,
)
from timeline.inspector.shapes import Stretch

if TYPE_CHECKING:
    from timeline.events import Event
    from timeline.ports import EventStore

_TYPES: Final = (
    "stage.entered",
    "stage.approved",
    "stage.rewound",
    "compaction.started",
    "compaction.completed",
    "compaction.failed",
)
_MOST_TEXT: Final = 400
"""Characters of a decision, or of why an attempt failed."""


async def stretches_of(store: EventStore, conversation: str) -> list[Stretch]:
    """Return the stages and attempts of a conversation, in the order in which they began."""
    found: list[Stretch] = []
    names: dict[str, int] = {}
    attempt: int | None = None
    async for event in store.read(conversation, types=_TYPES):
        payload = event.payload
        match payload:
            case StageEntered():
                names[payload.stage] = len(found)
                found.append(_begun("stage", payload.label or payload.stage, event))
            case StageApproved():
                place = _begin(found, names.get(payload.stage), "stage", payload.label or payload.stage, event)
                names[payload.stage] = place
                found[place] = _ended(found[place], event, "approved", payload.decision)
            case StageRewound():
                _rewind(found, names.get(payload.stage), event)
            case CompactionStarted():
                attempt = len(found)
                found.append(_begun("attempt", payload.reason, event))
            case CompactionCompleted():
                place = _begin(found, attempt, "attempt", payload.reason, event)
                text = f"{payload.before_tokens:,} -> {payload.after_tokens:,} tokens"
                found[place], attempt = _ended(found[place], event, "completed", text), None
            case CompactionFailed():
                place = _begin(found, attempt, "attempt", payload.reason, event)
                found[place], attempt = _ended(found[place], event, "failed", payload.detail or payload.reason), None
    return found


def _begun(kind: str, name: str, event: Event) -> Stretch:
    return Stretch.model_validate(
        {"kind": kind, "name": name, "first": event.version, "last": None, "outcome": "open", "text": ""}
    )


def _begin(found: list[Stretch], place: int | None, kind: str, name: str, event: Event) -> int:
    """Return the place of what an event ends; one without a beginning of its own begins with its end."""
    if place is None:
        found.append(_begun(kind, name, event))
        return len(found) - 1
    return place


def _ended(stretch: Stretch, event: Event, outcome: str, text: str) -> Stretch:
    return stretch.model_copy(update={"last": event.version, "outcome": outcome, "text": text[:_MOST_TEXT]})


def _rewind(found: list[Stretch], place: int | None, event: Event) -> None:
    """Take back a stage and all later ones: their decisions do not hold any more."""
    for later in range(len(found) if place is None else place, len(found)):
        if found[later].kind == "stage" and found[later].outcome != "rewound":
            found[later] = _ended(found[later], event, "rewound", found[later].text)
