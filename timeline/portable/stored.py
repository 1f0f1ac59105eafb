"""Read a log as a recording of what was said in it, to run it again from any of its model calls on.

A stored conversation and the file of an export give the same: what users, models and tools said, the model calls, and
the decisions of the policy that it ran under. Another policy makes its own decisions instead of those behind a call.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from timeline.audit.before_call import HAPPENED, what_was_asked
from timeline.audit.redacting import eraser_of
from timeline.errors import CallNotFound, HistoryUnavailable, ImportFailed
from timeline.events import (
    BlockAppended,
    BlocksHidden,
    CompactionCompleted,
    ContextRendered,
    ConversationOpened,
    Event,
    ModelCalled,
    stored_event,
)
from timeline.importers.recording import ImportedCompaction, ImportedHide, RecordedEvent, Recording, Report
from timeline.log.undisturbed import undisturbed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from timeline.events import ParentLink, Payload
    from timeline.portable.reading import CopiedEvent, LogCopy
    from timeline.ports import EventStore

FORMAT: Final = "timeline"
"""Name of the format in the report of such a recording."""
_NEAR: Final = 2


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A log, and the same as a recording.

    Attributes:
        events: all events of the log, those that a fork shares with its parent included.
        recording: what was said, without the log's own decisions; a compaction or a hide is noted as one of the
            recorded client.
        versions: for each event of the recording the version that it has in the log.
    """

    events: tuple[Event, ...] = field(repr=False)
    recording: Recording
    versions: tuple[int, ...] = field(repr=False)

    def before_call(self, number: int) -> int:
        """Return the log's version right before a model call: what it answers is there, its response is not.

        Nor is what a policy decided for that call, so that another policy decides in its place.

        Raises:
            CallNotFound: the log has no model call of this number.
        """
        calls = [(event.version, event.payload) for event in self.events if isinstance(event.payload, ModelCalled)]
        if not 1 <= number <= len(calls):
            nearest = max(1, min(number, len(calls)))
            near = range(max(1, nearest - _NEAR), min(len(calls), nearest + _NEAR) + 1)
            raise CallNotFound(self.recording.id, number, near, len(calls))
        version, called = calls[number - 1]
        asked = what_was_asked(called, version, [earlier for _, earlier in calls[: number - 1]], self.events)
        return asked.newest(self.events) or 1

    def position(self, version: int) -> int:
        """Return the position of the recording's first event behind a version of the log."""
        return bisect_right(self.versions, version)

    def contexts(self, version: int) -> list[ContextRendered | None]:
        """Return for each of the recording's events behind a version the newest recorded context before it."""
        known: dict[int, ContextRendered | None] = {}
        newest: ContextRendered | None = None
        for event in self.events:
            if isinstance(event.payload, ContextRendered):
                newest = event.payload
            known[event.version] = newest
        return [known[own] for own in self.versions[self.position(version) :]]


def as_recording(conversation: str, events: Sequence[Event], title: str = "") -> StoredConversation:
    """Return a log as a recording.

    Args:
        conversation: its id.
        events: its events from version 1 on, without a gap.
        title: its title.

    Raises:
        HistoryUnavailable: events are missing.
    """
    for expected, event in enumerate(events, start=1):
        if event.version != expected:
            raise HistoryUnavailable(conversation, expected, event.version, events[-1].version, scavenged=True)
    numbered = [(event.version, recorded) for event in events if (recorded := _recorded(event)) is not None]
    report = Report(format=FORMAT, records=len(events))
    recording = Recording(conversation, tuple(recorded for _, recorded in numbered), report, title)
    return StoredConversation(tuple(events), recording, tuple(version for version, _ in numbered))


def is_in_recording(payload: Payload) -> bool:
    """Return whether the recording of a log has an event for this one of the log."""
    return isinstance(payload, (BlockAppended, CompactionCompleted, BlocksHidden, *HAPPENED))


def _recorded(event: Event) -> RecordedEvent | None:
    payload, key = event.payload, f"version {event.version}"
    match payload:
        case BlockAppended(block=block):
            return RecordedEvent(BlockAppended(block=block, tokens=0, counter=""), event.at, key)
        case CompactionCompleted(block=block):
            return RecordedEvent(ImportedCompaction(block.text, payload.reason), event.at, key)
        case BlocksHidden():
            return RecordedEvent(ImportedHide((), payload.reason), event.at, key)
        case ModelCalled():  # what it was sent is of this log: what it answers is another version where it is run again
            return RecordedEvent(payload.model_copy(update={"answers": None, "request": None}), event.at, key)
    return RecordedEvent(payload, event.at, key) if isinstance(payload, HAPPENED) else None


async def stored_conversation(store: EventStore, conversation: str) -> StoredConversation:
    """Read a stored conversation, without what it redacts, as an export of it is.

    Raises:
        ConversationNotFound: there is no such conversation.
        HistoryUnavailable: `timeline scavenge` removed a part of it.
    """

    async def read() -> StoredConversation:
        info = await store.info(conversation)
        eraser = await eraser_of(store, conversation)
        events = [eraser.cleaned(event) async for event in store.read(conversation)]
        return as_recording(conversation, events, eraser.title(info.title))

    return await undisturbed(store, read, conversation)


def exported_conversations(path: Path, copies: Sequence[LogCopy]) -> list[StoredConversation]:
    """Return the conversations of a file that `timeline export` wrote, each fork with the past that it shares.

    Those that are in it only for what a fork shares with them are left out: the fork has all that is there of them.

    Args:
        path: the file, for errors.
        copies: what `read_copies` found in it.

    Raises:
        ImportFailed: a fork's parent or an event is missing in it.
    """
    by_id = {copy.conversation: copy for copy in copies}
    shared = {(link.conversation, copy.base) for copy in copies if (link := _parent(copy)) is not None}
    return [_exported(path, copy, by_id) for copy in copies if (copy.conversation, copy.version) not in shared]


def _exported(path: Path, copy: LogCopy, by_id: dict[str, LogCopy]) -> StoredConversation:
    events = _events(path, copy, by_id)
    title = next((e.payload.title for e in reversed(events) if isinstance(e.payload, ConversationOpened)), "")
    try:
        return as_recording(copy.conversation, events, title)
    except HistoryUnavailable:
        raise ImportFailed(
            str(path), f"events of {copy.conversation!r} are missing in it. Export the conversation again."
        ) from None


def _parent(copy: LogCopy) -> ParentLink | None:
    """Return the link of a fork to the conversation that it shares its past with; None of what is no fork."""
    payloads = (found.read for found in copy.events.values())
    return next((p.parent for p in payloads if isinstance(p, ConversationOpened)), None) if copy.base else None


def _events(path: Path, copy: LogCopy, by_id: dict[str, LogCopy]) -> list[Event]:
    """Return a copy's events behind those that it shares with its parent."""
    shared: list[Event] = []
    if copy.base:
        link = _parent(copy)
        parent = by_id.get(link.conversation) if link is not None else None
        if parent is None:
            raise ImportFailed(str(path), f"the parent of {copy.conversation!r} is not in it. Export both together.")
        shared = [event for event in _events(path, parent, by_id) if event.version <= copy.base]
    own = (copy.events[version] for version in sorted(copy.events))
    return shared + [_read(copy.conversation, found) for found in own]


def _read(conversation: str, found: CopiedEvent) -> Event:
    event = found.event()
    return stored_event(event.id, event.at, event.payload, conversation, found.version, found.version, found.checksum)
