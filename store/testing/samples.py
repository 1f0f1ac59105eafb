"""Events to test a store with: small, each with its own id, at rising times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Final

from timeline.blocks import RangeSummary, UserPrompt
from timeline.digest import Digest
from timeline.events import (
    BlockAppended,
    CompactionCompleted,
    ConversationOpened,
    Covers,
    NewEvent,
    ParentLink,
    WrittenBy,
    event_id,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from timeline.events import Event, Payload
    from timeline.ports import EventStore

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
NOTHING_DONE: Final = Digest()
_ticks = count()


def event(payload: Payload) -> NewEvent:
    """Make an event of a payload, a little later than the one before."""
    at = START + timedelta(milliseconds=next(_ticks))
    return NewEvent(id=event_id(at), at=at, payload=payload)


def block_event(path: str = "", text: str = "hello", turn_id: str = "turn_1") -> NewEvent:
    """Make an event that appends a prompt; without a path its block is in no index of paths."""
    return event(
        BlockAppended(block=UserPrompt(text=text, path=path, turn_id=turn_id), tokens=len(text), counter="chars")
    )


def events(count_: int, text: str = "hello") -> list[NewEvent]:
    """Make events that append prompts."""
    return [block_event(text=f"{text} {number}") for number in range(count_)]


def compaction(first: int, last: int, *, digest: Digest = NOTHING_DONE, round_: int = 1) -> NewEvent:
    """Make an event that completes a compaction of a range of versions."""
    return event(
        CompactionCompleted(
            block=RangeSummary(
                text="they greeted", path=f"su:turn_1.conv.range.summary.{first}.{last}", turn_id="turn_1"
            ),
            tokens=12,
            counter="chars",
            covers=Covers(ranges=((first, last),)),
            round=round_,
            before_tokens=100,
            after_tokens=20,
            digest=digest,
            written_by=WrittenBy(summarizer="none"),
        )
    )


def fork(parent: str, version: int | None) -> NewEvent:
    """Make the event that opens a fork of a conversation behind one of its versions."""
    return event(ConversationOpened(parent=ParentLink(conversation=parent, version=version, relation="fork")))


async def versions(
    store: EventStore, conversation: str, *, types: Collection[str] | None = None, page: int = 500
) -> list[int]:
    """Read the versions of a conversation's events."""
    return [event.version async for event in store.read(conversation, types=types, page=page)]


def contents(read: Sequence[Event | NewEvent]) -> list[tuple[object, ...]]:
    """Return the content of events in a form that compares read events with written ones."""
    return [(event.id, event.at, event.payload, event.schema_version) for event in read]
