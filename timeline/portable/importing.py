"""Append an exported log to a store: the same events under the same versions and ids, up to the first gap.

A log's versions have no gaps, so the events after a missing one are not imported; importing a sound copy of the file
later continues from there. Events that the store has already are compared, and never written again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import parse_instant
from timeline.errors import ImportFailed
from timeline.events import (
    BlockAppended,
    CompactionCompleted,
    CompactionReverted,
    ConversationOpened,
    appended_block,
)
from timeline.fold.fold import Fold
from timeline.fold.snapshot import is_due, is_far, take_snapshot
from timeline.fold.window import TOMBSTONE
from timeline.log.history import fold_history
from timeline.portable.held import held_version
from timeline.portable.lines import values_of
from timeline.portable.recordings import Imported
from timeline.ports import Expected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.events import Event, Payload
    from timeline.events.chain import Seal
    from timeline.portable.reading import CopiedEvent, LogCopy
    from timeline.ports import EventStore, Snapshot

_BATCH: Final = 500
"""Events in one append."""


async def import_copy(
    store: EventStore, copy: LogCopy, *, on_progress: Callable[[int], None] = lambda _: None
) -> Imported:
    """Append the events of a conversation that a store does not have yet.

    Args:
        store: the store to append to; the shared part of a fork's parent must be in it already.
        copy: a conversation from `read_copies`.
        on_progress: called with the number of events compared or appended.

    Raises:
        ImportFailed: the store has other events under this id, or not the fork's parent; or the history of the
            conversation had been scavenged before it was exported.
        StoreError: an append failed; the batches acknowledged before it are stored.
    """
    if copy.first_version > 1:
        raise ImportFailed(
            copy.conversation,
            f"what lay before its version {copy.first_version} had been scavenged when it was exported, and only a "
            "whole log can be imported. Import an export made before that, or copy the database file.",
        )
    opened = _opening(copy)
    base = copy.base or _base_of(opened)
    version = await held_version(store, copy.conversation)
    known = await _compare(store, copy, base, version)
    events = _run(copy, max(version, base))
    if events:
        if not version and base:
            await _check_parent(store, copy, opened, base)
        fold = await _fold(store, copy, events, base if not version else 0)
        await _append(store, copy, events, fold, on_progress)
        await _check_chain(store, copy, events)
    return Imported(copy.conversation, len(events), known, copy.report.dump())


def _opening(copy: LogCopy) -> ConversationOpened | None:
    payloads = (found.read for found in copy.events.values())
    return next((payload for payload in payloads if isinstance(payload, ConversationOpened)), None)


def _base_of(opened: ConversationOpened | None) -> int:
    """Return the last version that a fork shares with its parent, by its opening event: the log line may be lost."""
    link = opened.parent if opened is not None else None
    return link.version or 0 if link is not None and link.relation == "fork" else 0


async def _compare(store: EventStore, copy: LogCopy, base: int, version: int) -> int:
    """Count the events that the store has already.

    Raises:
        ImportFailed: the store has another conversation under this id.
    """
    if not version:
        return 0
    known = 0
    async for event in store.read(copy.conversation, after=base):
        found = copy.events.get(event.version)
        if found is not None and not _same(found, event):
            raise ImportFailed(
                copy.conversation,
                f"the database holds another conversation of this id: the two differ from version {event.version} on. "
                "Nothing of it was imported; import it into another database with --db.",
            )
        known += found is not None
    return known


def _same(found: CopiedEvent, event: Event) -> bool:
    """Return whether an event equals the one in the file; if one of the two is redacted, the contents may differ."""
    if found.id != str(event.id):
        return False
    return found.checksum == event.checksum or found.redacted or _is_erased(event.payload)


def _is_erased(payload: Payload) -> bool:
    match payload:
        case BlockAppended(block=block) | CompactionCompleted(block=block):
            return block.text == TOMBSTONE
        case _:
            return getattr(payload, "fingerprint", None) == "" or getattr(payload, "title", None) == TOMBSTONE


def _run(copy: LogCopy, version: int) -> list[CopiedEvent]:
    """Return the events after a version up to the first gap, and report the events that wait behind the gap."""
    events: list[CopiedEvent] = []
    while (found := copy.events.get(version + len(events) + 1)) is not None:
        events.append(found)
    end = version + len(events)
    if max(copy.events, default=0) > end or end < copy.version:
        waiting = sum(number > end for number in copy.events)
        problem = f"version {end + 1} is missing or damaged; {waiting} events after it were left out"
        copy.report.note("gap", 0, f"{copy.conversation}: {problem}. Import a sound copy of the file to go on.")
    return events


async def _check_parent(store: EventStore, copy: LogCopy, opened: ConversationOpened | None, base: int) -> None:
    parent = opened.parent.conversation if opened is not None and opened.parent is not None else ""
    if await held_version(store, parent) < base:
        raise ImportFailed(
            copy.conversation,
            f"it was forked from {parent!r} at version {base}, which is not in the database. Import that conversation "
            "first. Or export this one alone, and import that file: it also holds what the two share.",
        )


async def _append(
    store: EventStore, copy: LogCopy, events: Sequence[CopiedEvent], fold: Fold, on_progress: Callable[[int], None]
) -> None:
    """Append in batches, the last one with a snapshot, so that the next opening reads the window alone.

    A new log that was never compacted is all window, and needs no snapshot. Any other log gets the snapshots on the way
    that it would have got as it grew, except where compactions are taken back later: this fold skips these compactions,
    and a snapshot between a compaction and its undo must contain it.
    """
    seals, snapshots = _seals(events), _Snapshots(fold, events)
    for start in range(0, len(events), _BATCH):
        batch = events[start : start + _BATCH]
        hashes = {hash_ for found in batch if found.read is not None for hash_ in values_of(found.read)}
        opens = isinstance(batch[0].read, ConversationOpened)
        await store.append(
            copy.conversation,
            [found.event() for found in batch],
            expected=Expected.NO_STREAM if opens else batch[0].version - 1,
            values={hash_: copy.values[hash_] for hash_ in sorted(hashes & copy.values.keys())},
            snapshot=snapshots.behind(batch, is_last=start + len(batch) == len(events)),
            seals=seals[start : start + _BATCH],
        )
        on_progress(start + len(batch))


class _Snapshots:
    """The snapshots of one import; nothing is folded before one is due.

    In a new log that was never compacted, all is window: its blocks are counted to know whether a snapshot is due.

    Args:
        fold: of what is there before the new events.
        events: the new events.
    """

    def __init__(self, fold: Fold, events: Sequence[CopiedEvent]) -> None:
        self._fold = fold
        self._kept = fold.version
        self._continues = fold.version > 0
        kinds = {type(found.read) for found in events}
        self._is_straight = CompactionReverted not in kinds
        self._compacts = CompactionCompleted in kinds
        self._unfolded: list[CopiedEvent] = []
        self._blocks = 0

    def behind(self, batch: Sequence[CopiedEvent], *, is_last: bool) -> Snapshot | None:
        """Return the snapshot that is taken behind a batch, None where none is due."""
        self._unfolded += batch
        if not self._takes(batch, is_last=is_last):
            return None
        self._kept = batch[-1].version
        return take_snapshot(self._caught_up())

    def _takes(self, batch: Sequence[CopiedEvent], *, is_last: bool) -> bool:
        if self._continues or self._compacts:
            fold = self._caught_up()
            if is_last and (fold.window.compactions or (self._continues and fold.window.window_start > 1)):
                return True
            return self._is_straight and is_due(fold, self._kept)
        self._blocks += sum(found.read is None or appended_block(found.read) is not None for found in batch)
        return self._is_straight and is_far(batch[-1].version, self._kept, self._blocks)

    def _caught_up(self) -> Fold:
        for found in self._unfolded:
            self._fold.apply(found.version, parse_instant(found.at), found.payload)
        self._unfolded = []
        return self._fold


def _seals(events: Sequence[CopiedEvent]) -> list[Seal]:
    """Return the seals that the events had, so that their links stay the same; none if one of them has no seal."""
    seals = [found.seal for found in events if found.seal is not None and not found.redacted]
    return seals if len(seals) == len(events) else []


async def _check_chain(store: EventStore, copy: LogCopy, events: Sequence[CopiedEvent]) -> None:
    """Report where the links differ from those of the file: a head kept of the old log does not prove this one."""
    head, newest = await store.chain_head(copy.conversation), events[-1].link
    if head != newest:
        reason = "the file has no links" if newest is None else "its links do not go on from those of the database"
        reason = f"it was exported as {copy.exported_as}" if copy.exported_as else reason
        reason = "content was taken out of it" if any(found.redacted for found in events) else reason
        copy.report.note(
            "chain", 0, f"{copy.conversation}: {reason}; here it has a chain of its own, with another head"
        )


async def _fold(store: EventStore, copy: LogCopy, events: Sequence[CopiedEvent], base: int) -> Fold:
    """Return the fold that the new events continue, without the compactions that they take back.

    Args:
        store: the store of the conversation, or of the parent of a fork that is not stored yet.
        copy: the conversation.
        events: the new events.
        base: the last version that a fork which is not stored yet shares with its parent.
    """
    reverted = {v for found in events if isinstance(found.read, CompactionReverted) for v in found.read.versions}
    opened = _opening(copy)
    if base and opened is not None and opened.parent is not None:
        parent = await fold_history(store, opened.parent.conversation, until=base, without=reverted)
        return parent.copy(copy.conversation)
    if events[0].version == 1:
        return Fold(copy.conversation, reverted)
    return await fold_history(store, copy.conversation, without=reverted)
