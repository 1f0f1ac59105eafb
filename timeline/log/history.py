"""Fold a conversation from its stored events: from the snapshot, at a past version, or without compactions undone.

A running agent folds from its snapshot on. The past, a fork and an undo fold from the nearest snapshot of the past, so
they cost what their window costs. A proof of the log folds it from its first version. Compactions are undone newest
first: while a later summary covers an earlier one, the blocks of that one would come back inside a covered range.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from timeline.blocks import UserPrompt
from timeline.errors import CompactionCovered, HistoryUnavailable, UndoUnavailable
from timeline.events import (
    DISOWNED,
    BlocksHidden,
    BlocksRevealed,
    CompactionCompleted,
    CompactionReverted,
    Covers,
    appended_block,
)
from timeline.facts.model import Fact
from timeline.facts.record import MOST_ENTRIES, record_of
from timeline.fold.changes import DECIDING, changes_in
from timeline.fold.fold import Fold, HistoryNeeded
from timeline.fold.reported import NO_REPORTS, REPORTING
from timeline.fold.snapshot import counts_calls, has_changes, has_reports, restore
from timeline.log.first_message import FirstMessage
from timeline.log.in_turns import in_turns
from timeline.log.off_loop import off_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence

    from timeline.events import Event
    from timeline.ports import EventStore, Snapshot
    from timeline.queries import FactRecord


CALLED: Final = "model.called"
"""Type of the event of a model call."""
_BEGINNING: Final = 16
"""Events of a page when only the beginning of a log is read."""


async def load_fold(store: EventStore, conversation: str) -> Fold:
    """Fold a conversation from its snapshot on. The cost is that of the window, and not of the history before it.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    stored = await store.load_window(conversation)
    try:
        fold = await restored(store, conversation, stored.snapshot, stored.events)
    except HistoryNeeded:  # an undo came without a snapshot, so the blocks that it brings back are not at hand
        return await fold_near(store, conversation)
    fold.at = stored.info.updated_at  # a snapshot of the newest event does not hold that event's time
    return fold


async def first_prompt(store: EventStore, conversation: str, until: int | None = None) -> str | None:
    """Return what the user's first message says, covered or not: the original task, for summaries (001, [keep_last]).

    ``until`` is the last version in view; all of them unless given.

    A message that never happened for the agent does not count.

    It is read each time, and not kept: the beginning of a log is quick to read, and a redaction there takes effect at
    once. If it was scavenged, the result is None: a later prompt is not the task, and the summaries name the task.
    """
    message = FirstMessage()
    disowned: set[int] | None = None
    async for event in store.read(conversation, until=until, types=["block.appended"], page=_BEGINNING):
        block = appended_block(event.payload)
        if block is None:
            continue
        if type(block) is UserPrompt and disowned is None:
            disowned = await disowned_versions(store, conversation, until)
        if disowned is None or event.version not in disowned:
            message.take(event.version, block)
        if message.is_over:
            break
    return message.text if message.versions and await _is_whole(store, conversation, message.versions[0]) else None


async def disowned_versions(store: EventStore, conversation: str, until: int | None = None) -> set[int]:
    """Return the versions of the blocks that never happened for the agent: its framework rejected or left them."""
    versions: set[int] = set()
    async for event in store.read(conversation, until=until, types=["blocks.hidden", "blocks.revealed"]):
        if isinstance(event.payload, BlocksHidden) and event.payload.reason in DISOWNED:
            versions.update(block.version for block in event.payload.blocks)
        elif isinstance(event.payload, BlocksRevealed):
            versions.difference_update(event.payload.versions)
    return versions


async def record_within(
    store: EventStore, conversation: str, covers: Covers, *, most: int = MOST_ENTRIES, until: int | None = None
) -> FactRecord:
    """Return the record of what was done and named in these versions.

    What never happened for the agent is not in it, since the model reads the record in a summary. ``until`` is the last
    version in view; all of them unless given.
    """
    covers = covers.without(await disowned_versions(store, conversation, until))
    return await store.fact_record(conversation, covers=covers, most=most)


async def asked_of(store: EventStore, conversation: str, covers: Covers, *, until: int | None = None) -> FactRecord:
    """Return the record of what the prompts of these versions ask for: a part of `record_within`."""
    covers = covers.without(await disowned_versions(store, conversation, until))
    found = [fact async for fact in store.facts(conversation=conversation, kind="request") if fact.version in covers]
    return record_of(
        Fact(fact.kind, fact.subject, fact.path, fact.version, fact.at, detail=fact.detail) for fact in found
    )


async def _is_whole(store: EventStore, conversation: str, until: int) -> bool:
    """Return whether no event up to a version was scavenged."""
    if (await store.info(conversation)).first_version == 1:
        return True
    there = [event.version async for event in store.read(conversation, until=until)]
    return len(there) == until


async def reverted_versions(store: EventStore, conversation: str, until: int | None = None) -> set[int]:
    """Return the versions of the compactions that were undone, up to a version of the log."""
    return {version for _, versions in await undos(store, conversation, until) for version in versions}


async def undos(
    store: EventStore, conversation: str, until: int | None = None, *, after: int = 0
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the undos up to a version of the log, each with the versions of the compactions that it takes back."""
    read = store.read(conversation, after=after, until=until, types=["compaction.reverted"])
    return [
        (e.version, e.payload.versions)
        async for e in read
        if isinstance(e.payload, CompactionReverted) and e.payload.versions
    ]


async def fold_near(
    store: EventStore, conversation: str, *, until: int | None = None, without: Collection[int] = ()
) -> Fold:
    """Fold a conversation as `fold_history` does, but from the nearest snapshot of the past that has the same undos.

    The cost is that of the window there, and of the events since the snapshot. The snapshot is trusted, like the one
    from which a conversation is opened: `timeline verify --deep` compares both with the log.

    Raises:
        ConversationNotFound, HistoryUnavailable: as for `fold_history`.
    """
    info = await store.info(conversation)
    last = info.version if until is None else min(until, info.version)
    undone = await undos(store, conversation, last)
    after = 0
    if info.first_version > 1 and (base := await store.load_base(conversation, last)) is not None:
        after = 0 if base.snapshot is None else base.snapshot.version
    near = await _nearest(store, conversation, min([last, *(version - 1 for version in without)]), undone, after)
    if near is None:
        return await fold_history(store, conversation, until=last, without=without)
    reverted = {*without, *(version for _, versions in undone for version in versions)}
    fold = await resumed(store, conversation, near, reverted)
    async for _ in read_folding(store, conversation, fold, after=fold.version, until=last):
        pass
    return fold


async def _nearest(
    store: EventStore, conversation: str, limit: int, undone: Sequence[tuple[int, tuple[int, ...]]], after: int
) -> Snapshot | None:
    """Return the newest snapshot of the past, up to a version, from which the log can be folded through its undos.

    A snapshot between a compaction and its undo contains the compaction, so folding cannot go on from it past the undo.
    """
    spans = [(min(versions), at) for at, versions in undone]
    while limit > after:
        snapshot = await store.load_waypoint(conversation, limit, after=after)
        if snapshot is None:
            return None
        through = [compacted for compacted, at in spans if compacted <= snapshot.version < at]
        if not through:
            return snapshot
        limit = min(through) - 1
    return None


async def resumed(store: EventStore, conversation: str, snapshot: Snapshot, without: Collection[int] = ()) -> Fold:
    """Restore the fold of a snapshot of the past.

    Raises:
        ConversationNotFound: there is no such conversation.
        StoreCorrupt: the log does not hold what the snapshot names.
    """
    start, version = snapshot.window_start, snapshot.version
    events = await store.read_versions(conversation, [block for block in snapshot.blocks if block < start])
    events += [event async for event in store.read(conversation, after=start - 1, until=version)]
    fold = await restored(store, conversation, snapshot, events, without)
    newest = events[-1:] if events and events[-1].version == version else []
    for event in newest or await store.read_versions(conversation, [version]):
        fold.at = event.at
    return fold


async def fold_history(
    store: EventStore, conversation: str, *, until: int | None = None, without: Collection[int] = ()
) -> Fold:
    """Fold a conversation from its first version up to ``until``, as it was then, trusting nothing but its events.

    Where history was scavenged, it is folded from the snapshot that was kept then.

    Args:
        store: where it lives.
        conversation: its id.
        until: the last version to fold; all of them unless given.
        without: versions of compactions to leave out, besides those that were undone by then.

    Raises:
        ConversationNotFound: there is no such conversation.
        HistoryUnavailable: versions are missing.
    """
    # Up to a version that is known before the undos are read: the fold must know each of them beforehand.
    last = (await store.info(conversation)).version if until is None else until
    reverted = {*without, *await reverted_versions(store, conversation, last)}
    fold = await base_fold(store, conversation, until=until, without=reverted)
    if any(version <= fold.version for version in without):
        raise await _scavenged(store, conversation, (await store.info(conversation)).first_version - 1)
    async for _ in read_folding(store, conversation, fold, after=fold.version, until=last):
        pass
    return fold


async def read_folding(
    store: EventStore, conversation: str, fold: Fold, *, after: int = 0, until: int | None = None
) -> AsyncIterator[Event]:
    """Read events, and fold those that the fold does not have yet; events before it may be missing.

    Raises:
        ConversationNotFound: there is no such conversation.
        HistoryUnavailable: events behind the fold are missing.
    """
    async for event in in_turns(store.read(conversation, after=after, until=until)):
        if event.version > fold.version + 1:
            info = await store.info(conversation)
            if fold.version + 1 < info.first_version:
                in_past = until is not None and until < info.version
                raise await _scavenged(store, conversation, until if until and in_past else fold.version + 1)
            raise HistoryUnavailable(conversation, fold.version + 1, event.version, info.version)
        if event.version > fold.version:
            fold.apply(event.version, event.at, event.payload)
        yield event
    if until is not None and fold.version < until < (await store.info(conversation)).first_version:
        raise await _scavenged(store, conversation, until)


async def base_fold(
    store: EventStore, conversation: str, *, until: int | None = None, without: Collection[int] = ()
) -> Fold:
    """Return the fold with which the readable log begins: empty, or that of the newest kept snapshot up to a version.

    Args:
        store: where it lives.
        conversation: its id.
        until: the last version that is wanted.
        without: versions of the compactions that are taken back later.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    base = await store.load_base(conversation, until)
    if base is None or base.snapshot is None:
        return Fold(conversation, without)
    return await restored(store, conversation, base.snapshot, base.events, without)


async def restored(
    store: EventStore,
    conversation: str,
    snapshot: Snapshot | None,
    events: Sequence[Event],
    without: Collection[int] = (),
) -> Fold:
    """Restore the fold of a stored conversation; what the snapshot of an earlier release lacks is read from the log.

    Raises:
        ConversationNotFound: there is no such conversation.
        HistoryNeeded: an event behind the snapshot takes back a compaction.
    """
    calls = reported = changes = None
    if snapshot is not None and not counts_calls(snapshot):
        # The removed events lie before the window of every snapshot that is left, so their calls are counted first.
        calls = (await store.scavenged(conversation)).get(CALLED, 0)
        async for _ in store.read(conversation, until=snapshot.version, types=[CALLED]):
            calls += 1
    if snapshot is not None and not has_reports(snapshot):
        reported = NO_REPORTS
        async for event in store.read(conversation, until=snapshot.version, types=REPORTING):
            reported = reported.after(event.version, event.payload)
    if snapshot is not None and not has_changes(snapshot):
        read = store.read(conversation, until=snapshot.version, types=DECIDING)
        changes = changes_in([(event.version, event.payload) async for event in read])
    work = partial(restore, conversation, snapshot, events, without, calls=calls, reported=reported, changes=changes)
    return await off_loop(len(events), work)


async def _scavenged(store: EventStore, conversation: str, version: int) -> HistoryUnavailable:
    """Return the error for a version that cannot be folded since history was scavenged."""
    base = await base_fold(store, conversation)
    last = (await store.info(conversation)).version
    return HistoryUnavailable(conversation, version, max(1, base.version), last, scavenged=True)


async def check_version(store: EventStore, conversation: str, version: int) -> None:
    """Check that the log has a version.

    Raises:
        ConversationNotFound: there is no such conversation.
        HistoryUnavailable: there is no such version, or not yet.
    """
    last = (await store.info(conversation)).version
    if not 1 <= version <= last:
        raise HistoryUnavailable(conversation, version, 1, last)


async def fold_past(store: EventStore, conversation: str, version: int) -> Fold:
    """Fold a conversation as it was at a version.

    Raises:
        ConversationNotFound: there is no such conversation.
        HistoryUnavailable: the log does not hold that version, or not all before it.
    """
    await check_version(store, conversation, version)
    fold = await fold_near(store, conversation, until=version)
    if fold.version != version:  # its newest events were lost
        raise HistoryUnavailable(conversation, version, 1, fold.version)
    return fold


def compactions_over(in_force: Mapping[int, Covers], versions: Collection[int]) -> list[int]:
    """Return the versions of the compactions in force that cover any of these blocks, or one of these compactions.

    The newest comes first; ``in_force`` is from `compactions_in_force`.
    """
    chain: set[int] = set()
    for version, covers in in_force.items():
        if chain.intersection(covers.summaries) or any(block in covers for block in versions):
            chain.add(version)
    return sorted(chain, reverse=True)


async def compactions_in_force(store: EventStore, conversation: str, *, after: int = 0) -> dict[int, Covers]:
    """Return the ranges of each compaction in force, by its version, oldest first; undone ones are left out.

    ``after`` is the version of a block: what covers it, or was undone of that, is behind it.
    """
    reverted = {version for _, versions in await undos(store, conversation, after=after) for version in versions}
    return {
        event.version: event.payload.covers
        async for event in store.read(conversation, after=after, types=["compaction.completed"])
        if isinstance(event.payload, CompactionCompleted) and event.version not in reverted
    }


def versions_to_revert(
    conversation: str, in_force: Mapping[int, Covers], version: int | None, *, cascade: bool
) -> list[int]:
    """Return the versions of the compactions to undo, newest first: the newest one, or the one at ``version``.

    Args:
        conversation: named in the errors.
        in_force: the ranges of each compaction in force, oldest first (`compactions_in_force`).
        version: the compaction's version; the newest unless given.
        cascade: undo the later compactions that cover it, too.

    Raises:
        UndoUnavailable: there is no such compaction, or it was undone already.
        CompactionCovered: a later one covers it, and ``cascade`` is False.
    """
    if not in_force:
        raise UndoUnavailable(conversation, "none is in force; `timeline show` lists what happened")
    newest = max(in_force)
    wanted = newest if version is None else version
    if wanted not in in_force:
        raise UndoUnavailable(
            conversation,
            f"none in force is at version {wanted}; those in force are at {', '.join(map(str, in_force))}",
        )
    chain = {wanted}
    for later, covers in in_force.items():
        if later > wanted and chain.intersection(covers.summaries):
            chain.add(later)
    if len(chain) > 1 and not cascade:
        raise CompactionCovered(wanted, min(chain - {wanted}))
    return sorted(chain, reverse=True)
