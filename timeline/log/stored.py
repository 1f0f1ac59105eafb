"""A conversation's log in a store, with its fold kept in step: `StoredLog`, which all writers of this process use.

An append goes to the store first, and then into the fold: the fold moves only once the store has acknowledged the whole
batch. Where another process appended first, the log reads its events and tries again.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from timeline.blocks import stem
from timeline.display.logs import logger_of
from timeline.errors import (
    ConversationNotFound,
    HistoryUnavailable,
    PathTaken,
    StoreLocked,
    StoreMoved,
    VersionConflict,
)
from timeline.events import BlockRedacted, CompactionReverted, NewEvent, block_appended, event_id, event_ids, new_event
from timeline.fold.fold import Fold, HistoryNeeded
from timeline.fold.snapshot import is_due, take_snapshot
from timeline.home import Home
from timeline.log.append_queue import AppendQueue
from timeline.log.bringing_back import as_they_were
from timeline.log.dry_run import DryRunLog
from timeline.log.history import (
    asked_of,
    compactions_in_force,
    compactions_over,
    first_prompt,
    fold_near,
    load_fold,
    record_within,
)
from timeline.log.late_redactions import leave_no_copy, repeat_in_fork
from timeline.log.off_loop import off_loop
from timeline.log.times import time_of_append
from timeline.log.wakeups import notify
from timeline.ports import NO_MARK, Expected, MarkingStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from timeline.blocks import Block
    from timeline.events import ConversationOpened, Covers, Event, Payload, PolicyChanged
    from timeline.fold.turns import Turns
    from timeline.log.protocol import Decision, Departure, Draft, Log
    from timeline.ports import Clock, EventStore, LeaseMark, Snapshot, TokenCounter
    from timeline.queries import FactRecord

Adopted: TypeAlias = "tuple[PolicyChanged, Mapping[str, str]]"
"""The event that names the policy of a log that names none, and the policy's text by its hash."""
Placing: TypeAlias = "Callable[[Turns], Awaitable[Sequence[Draft]]]"
"""Makes drafts in the turns of a fold."""
_LOGGER: Final = logger_of("timeline")
_TRIES: Final = 200
"""How often an append tries again behind other writers before it gives up: about a second if they never pause."""


class StoredLog:
    """The log of one conversation in a store. Appends take turns; a reader of ``fold.window`` never waits.

    Each event without a time of its own gets the clock's at its append, or that of the newest event that this log has
    read if that is later. So the times of its own events never decrease with the version.
    """

    def __init__(self, store: EventStore, fold: Fold, clock: Clock) -> None:
        self._store = store
        self._fold = fold
        self._clock = clock
        self._home = Home(f"conversation {fold.conversation!r}")
        self._lock = anyio.Lock()
        self._unnamed: Adopted | None = None
        self._kept = 0
        """Version of the newest snapshot that this log wrote."""
        self._newest: UUID | None = None
        """The id of the event that the fold ends with, unless the window was loaded with it."""
        self.screen: Callable[[Payload], Payload] | None = None
        """Returns what the application's hook leaves of an event before it is written; None changes nothing."""
        self._queue = AppendQueue(self._lock)

    @classmethod
    async def load(cls, store: EventStore, conversation: str, clock: Clock) -> StoredLog:
        """Read a conversation's window from its snapshot on.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        return cls(store, await load_fold(store, conversation), clock)

    @classmethod
    async def begin(
        cls,
        store: EventStore,
        conversation: str,
        clock: Clock,
        opened: ConversationOpened,
        *,
        values: Mapping[str, str],
        at: datetime,
    ) -> StoredLog:
        """Begin a conversation; if another writer began it first, open that one."""
        with suppress(VersionConflict):
            return await cls.begin_new(store, conversation, clock, opened, values=values, at=at)
        return await cls.load(store, conversation, clock)

    @classmethod
    async def begin_new(
        cls,
        store: EventStore,
        conversation: str,
        clock: Clock,
        opened: ConversationOpened,
        *,
        values: Mapping[str, str],
        at: datetime,
        drafts: Sequence[Draft] = (),
        counter: str = "",
    ) -> StoredLog:
        """Begin a conversation, in one transaction with the blocks that it begins with.

        Args:
            store: holds it.
            conversation: its id.
            clock: gives the times of what is appended later.
            opened: its first event.
            values: what that names.
            at: the time of its first event, and of the drafts that have none.
            drafts: its first blocks.
            counter: the name of the counter of their tokens.

        Raises:
            VersionConflict: the id is in use.
        """
        fold = Fold(conversation)
        fold.apply(1, at, opened)
        times = [draft.at or at for draft in drafts]
        placed = [(draft.block, time) for draft, time in zip(drafts, times, strict=True) if draft.block is not None]
        blocks = _events(drafts, times, fold.address(placed), counter)
        events = [NewEvent(id=event_id(at), at=at, payload=opened), *blocks]
        await store.append(conversation, events, expected=Expected.NO_STREAM, values=values)
        notify(store, conversation, blocks)
        return await cls.load(store, conversation, clock)

    @classmethod
    async def begin_fork(
        cls,
        store: EventStore,
        fold: Fold,
        conversation: str,
        clock: Clock,
        opened: ConversationOpened,
        *,
        redacted: Sequence[BlockRedacted] = (),
        values: Mapping[str, str],
        at: datetime | None,
    ) -> StoredLog:
        """Open a fork: a conversation that shares the events of ``fold``, its parent's, and goes on behind them.

        Redactions that the parent made behind the fork's version are repeated in the append that opens the fork, so
        that it never shows the content. `redact_late` repeats those that were made since ``fold`` was read.

        Raises:
            VersionConflict: the id is in use.
        """
        at = time_of_append(clock, at, fold.at)
        twin = fold.copy(conversation)
        payloads = (opened, *redacted)
        for version, payload in enumerate(payloads, start=fold.version + 1):
            twin.apply(version, at, payload)
        ids = event_ids(at, len(payloads))
        events = [NewEvent(id=id_, at=at, payload=payload) for id_, payload in zip(ids, payloads, strict=True)]
        await store.append(
            conversation, events, expected=Expected.NO_STREAM, values=values, snapshot=take_snapshot(twin)
        )
        twin.restored_from = twin.version
        log = cls(store, twin, clock)
        log._newest = events[-1].id
        return log

    async def redact_late(self, redacted: Sequence[BlockRedacted]) -> None:
        """Append the redactions that the parent made while this fork began, and go on from the log as it is now."""
        fork, began = self._fold.conversation, self._fold.version
        async with self._lock:
            for _ in range(_TRIES):
                with suppress(VersionConflict):
                    await repeat_in_fork(self._store, fork, redacted, began=began, at=self._time(None))
                    break
            else:
                raise busy(fork)
            self._replace_fold(await load_fold(self._store, fork))
            await leave_no_copy(self._store, fork)

    @property
    def fold(self) -> Fold:
        """The fold of the log, as far as it was read."""
        return self._fold

    def adopt(self, changed: PolicyChanged | None, values: Mapping[str, str]) -> None:
        """Name a policy ahead of this log's next append or decision, unless the log names one by then.

        None calls it off. By waiting, a conversation that is only read stays as it is.
        """
        self._unnamed = None if changed is None else (changed, values)

    def dry_run(self, now: datetime) -> DryRunLog:
        """Return a log for a dry run at a moment, which goes on from here and writes nothing."""
        return DryRunLog(self._store, self._fold.copy(), now, self.screen)

    def _time(self, given: datetime | None, least: datetime | None = None) -> datetime:
        """Return the time of the next event. Ask under the lock, in each try: another writer's event may be later."""
        return time_of_append(self._clock, given, self._fold.at, least)

    async def catch_up(self) -> None:
        """Fold the events that other writers appended."""
        self._home.check()
        async with self._lock:
            await self._follow()

    async def since(self, version: int) -> list[Event]:
        """Return the events after a version."""
        return [event async for event in self._store.read(self._fold.conversation, after=version)]

    async def paths_taken(self, stems: Collection[str]) -> set[str]:
        """Return the paths in use that begin with one of the stems."""
        return await self._store.paths_taken(self._fold.conversation, stems)

    async def first_prompt(self) -> str | None:
        """Return what the user's first message says."""
        return await first_prompt(self._store, self._fold.conversation)

    async def fact_record(self, covers: Covers) -> FactRecord:
        """Return the record that the store has of the blocks of these versions."""
        return await record_within(self._store, self._fold.conversation, covers)

    async def asked(self, covers: Covers) -> FactRecord:
        """Return the record of what the store's prompts ask for."""
        return await asked_of(self._store, self._fold.conversation, covers)

    def mark_lease(self) -> LeaseMark:
        """Mark the lease that this process is about to take, where the store can."""
        store = self._store
        return store.mark_lease(self._fold.conversation) if isinstance(store, MarkingStore) else NO_MARK

    def holder_died(self, version: int, expires_at: datetime) -> bool:
        """Return whether the process that took the lease of this version and expiry is known to have ended."""
        store = self._store
        return isinstance(store, MarkingStore) and store.holder_died(self._fold.conversation, version, expires_at)

    def check_home(self) -> None:
        """Check that this log is used in its own process and event loop.

        Raises:
            ForkedProcess: this process is a fork of its own.
            WrongEventLoop: another event loop runs here than its own.
        """
        self._home.check()

    async def append(self, drafts: Sequence[Draft], *, counter: str) -> list[Block]:
        """Address the blocks among the drafts and append all in one transaction; return the blocks as stored.

        Appends that wait for one another are written together. If covered history already uses a path, or another
        writer appended first, it tries again with what it knows then. Drafts whose ids the log already holds, as the
        same append, are not written again.

        Raises:
            PathTaken: a block came with a path of its own, which is in use.
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        self._home.check()
        if self.screen is not None:
            drafts = [d if d.payload is None else d._replace(payload=self.screen(d.payload)) for d in drafts]
        return await self._queue.append(drafts, counter, self._append)

    async def _append(self, drafts: Sequence[Draft], counter: str) -> list[Block]:
        if drafts:
            await self._settle(drafts[0].at)
        own_paths = {draft.block.path for draft in drafts if draft.block is not None and draft.block.path}
        avoid: set[str] = set()
        for _ in range(_TRIES):
            times = self._times(drafts)
            blocks = [(draft.block, at) for draft, at in zip(drafts, times, strict=True) if draft.block is not None]
            addressed = self._fold.address(blocks, avoid=avoid)
            events = _events(drafts, times, addressed, counter)
            snapshot = self._due_snapshot()
            try:
                await self._store.append(
                    self._fold.conversation, events, expected=self._fold.version, snapshot=snapshot
                )
            except VersionConflict as conflict:
                await self._overtaken(conflict)
            except PathTaken as error:
                if error.path in own_paths:  # the caller chose the path, so another one must not take its place
                    raise
                taken = next(b for b in addressed if b.path == error.path)
                avoid |= {error.path, *await self.paths_taken([stem(taken).rpartition(".")[0]])}
            else:
                self._kept = self._kept if snapshot is None else snapshot.version
                _apply(self._fold, events)
                self._newest = events[-1].id
                notify(self._store, self._fold.conversation, events)
                return addressed
        raise busy(self._fold.conversation)

    def _due_snapshot(self) -> Snapshot | None:
        """Return a snapshot of the log as it is, if the last one is far behind; it is written with the next append."""
        return take_snapshot(self._fold) if is_due(self._fold, max(self._kept, self._fold.restored_from)) else None

    def _times(self, drafts: Sequence[Draft]) -> list[datetime]:
        """Return the time of each draft: its own, or that of this append, which is not before the event in front."""
        times: list[datetime] = []
        newest = self._fold.at
        for draft in drafts:
            newest = time_of_append(self._clock, draft.at, newest)
            times.append(newest)
        return times

    async def commit(
        self,
        payloads: Sequence[Payload],
        *,
        at: datetime | None,
        expected: int | None = None,
        values: Mapping[str, str] | None = None,
        snapshot: bool = False,
        ids: Sequence[UUID] = (),
    ) -> int:
        """Append payloads in one transaction, at ``expected`` or at the log's end; return the first one's version.

        The events get ``ids``, one each, and the time ``at``, where these are given.

        Raises:
            VersionConflict: the log is not at ``expected``.
            StoreLocked: other writers were faster each time.
        """
        self._home.check()
        async with self._lock:
            await self._settle(at)
            for _ in range(_TRIES):
                if expected is not None and expected != self._fold.version:
                    raise VersionConflict(self._fold.conversation, expected, self._fold.version)
                events = _dated(payloads, self._time(at), ids)
                try:
                    return await self._write(events, values or {}, snapshot=snapshot)
                except VersionConflict as conflict:
                    await self._overtaken(conflict)
        raise busy(self._fold.conversation)

    async def decide(
        self,
        choose: Decision,
        *,
        at: datetime | None,
        least: datetime | None = None,
        snapshot: bool = False,
        values: Mapping[str, str] | None = None,
    ) -> bool:
        """Choose events from the log and append them under one lock; return whether any were appended.

        ``values`` are stored along with them.

        ``choose`` runs under the lock: no append of this process comes between its look at the log and its own events.
        It may read the log but not append to it, and runs again when another process was faster. It gets the time of
        the events: ``at`` if given, or else that of the append, which is not before ``least``.

        Raises:
            VersionConflict: other processes were faster each time.
        """
        self._home.check()
        async with self._lock:
            for tries_left in reversed(range(_TRIES)):
                time = self._time(at, least)
                payloads = await choose(time)
                if payloads and await self._settle(at):
                    time = self._time(at, least)
                    payloads = await choose(time)  # the log is longer now
                if not payloads:
                    return False
                try:
                    await self._write(_dated(payloads, time), values or {}, snapshot=snapshot)
                except VersionConflict as conflict:
                    if not tries_left:
                        raise
                    await self._overtaken(conflict)
                else:
                    break
        return True

    async def _write(self, events: Sequence[NewEvent], values: Mapping[str, str], *, snapshot: bool) -> int:
        if self.screen is not None:
            events = [_screened(event, self.screen) for event in events]
        fold = self._fold
        ahead = await off_loop(len(fold.stored), partial(_ahead, fold, events)) if snapshot else None
        appended = await self._store.append(
            fold.conversation,
            events,
            expected=fold.version,
            values=values,
            snapshot=None if ahead is None else ahead[1],
        )
        if ahead is not None and ahead[0].counts_as(fold):
            self._fold = ahead[0]  # this fold has applied the events already, off the loop
        else:
            _apply(fold, events)
        self._kept = self._kept if ahead is None else ahead[1].version
        if events:
            self._newest = events[-1].id
        notify(self._store, self._fold.conversation, events)
        return appended.first_version

    async def revert(
        self, choose: Callable[[], Awaitable[list[int]]], *, at: datetime | None, policy: str
    ) -> list[int]:
        """Undo the compactions that ``choose`` names, go on without them, and return their versions.

        ``choose`` runs under the lock, on a log that is up to date, and again when another process was faster.

        Raises:
            VersionConflict: other processes were faster each time.
        """
        self._home.check()
        async with self._lock:
            for tries_left in reversed(range(_TRIES)):
                await self._follow()
                versions = await choose()
                last = self._fold.version
                # Fold before anything is appended: where history was scavenged, folding fails, and so must the undo.
                fold = await fold_near(self._store, self._fold.conversation, until=last, without=versions)
                if await self._settle(at):
                    continue  # the log is longer now
                try:
                    await self._revert(fold, CompactionReverted(versions=tuple(versions), policy=policy), at)
                except VersionConflict as conflict:
                    if not tries_left:
                        raise
                    await self._overtaken(conflict)
                else:
                    break
        return versions

    async def go_back(
        self, choose: Callable[[], Awaitable[Departure]], place: Placing, *, at: datetime | None, counter: str
    ) -> list[Block]:
        """Leave a tail of the log and append what follows in its place, in one transaction; return the new blocks.

        Compactions that cover any of it are undone in the same append, without a hold: the next render may compact what
        is left. Where their originals were scavenged they stay.

        Args:
            choose: returns what is left, under the lock and on a log that is up to date; it runs again when another
                process was faster.
            place: makes the drafts of the new blocks, in the turns that there are when the tail is left.
            at: time of the events.
            counter: name of the counter of the drafts' tokens.

        Raises:
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        self._home.check()
        async with self._lock:
            await self._settle(at)
            avoid: set[str] = set()
            for _ in range(_TRIES):
                await self._follow()
                departure = await choose()
                fold, undone = await self._without_compactions_over(departure)
                back = await as_they_were(self._store, fold.conversation, fold.stored, departure.revived)
                # The tail is omitted last: the turn goes on from what is shown then.
                decisions = [*undone, *back, *departure.omission()]
                time = self._time(at)
                last = self._fold.version
                events = _dated(decisions, time)
                _apply(fold, events)
                drafts = await place(fold.turns)
                times = [draft.at or time for draft in drafts]
                blocks = [(draft.block, t) for draft, t in zip(drafts, times, strict=True) if draft.block is not None]
                addressed = fold.address(blocks, avoid=avoid)
                appended = _events(drafts, times, addressed, counter)
                _apply(fold, appended)
                if not events and not appended:
                    return []
                try:
                    await self._go_on_with(fold, [*events, *appended], last)
                except VersionConflict as conflict:
                    await self._overtaken(conflict)
                except PathTaken as error:
                    avoid.add(error.path)
                else:
                    return addressed
        raise busy(self._fold.conversation)

    async def _without_compactions_over(self, departure: Departure) -> tuple[Fold, list[Payload]]:
        """Return the fold without the compactions over what is left, and the event that undoes them."""
        id_ = self._fold.conversation
        if not departure.versions:
            return self._fold.copy(), []
        in_force = await compactions_in_force(self._store, id_, after=min(departure.versions))
        versions = compactions_over(in_force, departure.versions)
        if not versions:
            return self._fold.copy(), []
        try:
            fold = await fold_near(self._store, id_, until=self._fold.version, without=versions)
        except HistoryUnavailable:
            _LOGGER.warning("conversation %s: abandoned blocks stay in a summary, because its originals are gone", id_)
            return self._fold.copy(), []
        return fold, [CompactionReverted(versions=tuple(versions))]

    async def _revert(self, fold: Fold, reverted: CompactionReverted, given: datetime | None) -> None:
        """Append an undo, and go on with the fold without the compactions."""
        last, events = self._fold.version, _dated([reverted], self._time(given))
        _apply(fold, events)
        await self._go_on_with(fold, events, last)

    async def _go_on_with(self, fold: Fold, events: Sequence[NewEvent], last: int) -> None:
        """Append events behind ``last`` that another fold of this log has applied, and go on with that fold.

        A snapshot of it comes along, so that no reader folds the whole log.
        """
        await self._store.append(fold.conversation, events, expected=last, snapshot=take_snapshot(fold))
        self._replace_fold(fold)
        self._kept, self._newest = fold.version, events[-1].id
        notify(self._store, fold.conversation, events)

    def _replace_fold(self, fold: Fold) -> None:
        """Go on with another fold of this log, which counts as this one does."""
        fold.count_as(self._fold)
        self._fold, self._newest = fold, None
        self._kept = max(self._kept, fold.restored_from)

    async def _settle(self, given: datetime | None) -> bool:
        """Name the policy of a log that names none, see `adopt`; return whether the log moved.

        It comes before the first append or decision, since these are counted and decided under the policy.

        Raises:
            StoreLocked: other writers were faster each time.
        """
        if self._unnamed is None:
            return False
        changed, values = self._unnamed
        before = self._fold.version
        for _ in range(_TRIES):
            if self._fold.window.policy is not None:
                break
            try:
                await self._write(_dated([changed], self._time(given)), values, snapshot=False)
                break
            except VersionConflict as conflict:
                await self._overtaken(conflict)
        else:
            raise busy(self._fold.conversation)
        self._unnamed = None
        return self._fold.version != before

    async def _overtaken(self, conflict: VersionConflict) -> None:
        """Read what another writer appended first.

        Raises:
            StoreMoved: the log no longer holds what was read of it, or written to it.
        """
        if conflict.actual < self._fold.version:
            raise went_back(self._fold.conversation, self._fold.version, f"ends at version {conflict.actual}")
        await self._follow()

    async def _follow(self) -> None:
        """Fold what other writers appended.

        Raises:
            StoreMoved: the log no longer holds what was read of it, or written to it.
        """
        fold = self._fold
        is_first = True
        async for event in self._store.read(fold.conversation, after=fold.version):
            if is_first:
                await self._check_same()
                is_first = False
            if not _went_on(fold, event):
                self._replace_fold(await load_fold(self._store, fold.conversation))
                self._newest = event.id if event.version == self._fold.version else None
                return
            self._newest = event.id

    async def _check_same(self) -> None:
        """Check that the log still holds the event that the fold ends with: what others appended may be in its place.

        Raises:
            StoreMoved: another one is there.
        """
        fold = self._fold
        for event in await self._store.read_versions(fold.conversation, [fold.version]):  # none, if it was scavenged
            is_same = event.at == fold.at if self._newest is None else event.id == self._newest
            if not is_same:
                raise went_back(fold.conversation, fold.version, "has another event there")


def _dated(payloads: Sequence[Payload], at: datetime, ids: Sequence[UUID] = ()) -> list[NewEvent]:
    """Return the events of one time, under ``ids`` if given."""
    own_ids = ids or [event_id(at) for _ in payloads]
    return [NewEvent(id=id_, at=at, payload=payload) for id_, payload in zip(own_ids, payloads, strict=True)]


def _screened(event: NewEvent, screen: Callable[[Payload], Payload]) -> NewEvent:
    payload = screen(event.payload)
    return event if payload is event.payload else new_event(event.id, event.at, payload)


def _events(
    drafts: Sequence[Draft], times: Sequence[datetime], addressed: Sequence[Block], counter: str
) -> list[NewEvent]:
    """Return an event for each draft, in order, with the addressed blocks in the places of theirs."""
    placed = iter(addressed)
    return [
        new_event(draft.id, at, draft.payload or block_appended(next(placed), draft.tokens, counter))
        for draft, at in zip(drafts, times, strict=True)
    ]


def _apply(fold: Fold, events: Sequence[NewEvent]) -> None:
    for version, event in enumerate(events, start=fold.version + 1):
        fold.apply(version, event.at, event.payload)


def _went_on(fold: Fold, event: Event) -> bool:
    """Apply what another writer appended; return False where the fold has to be made anew."""
    # Events in between were compacted and scavenged since; or a redaction rewrote events folded before.
    if event.version != fold.version + 1 or type(event.payload) is BlockRedacted:
        return False
    try:
        fold.apply(event.version, event.at, event.payload)
    except HistoryNeeded:
        return False
    return True


def _ahead(fold: Fold, events: Sequence[NewEvent]) -> tuple[Fold, Snapshot]:
    """Return a fold as it will be once the events are in the log, and its snapshot."""
    ahead = fold.copy()
    _apply(ahead, events)
    return ahead, take_snapshot(ahead)


def busy(conversation: str) -> StoreLocked:
    """Return the error of an append that came behind other writers in each try."""
    return StoreLocked(
        f"{_TRIES} appends to conversation {conversation!r} came too late: other writers are busy. Try again."
    )


def went_back(conversation: str, version: int, found: str) -> StoreMoved:
    """Return the error of a log that has lost what was acknowledged, or read."""
    return StoreMoved(
        f"Conversation {conversation!r} was read up to version {version}, and {found} now: an older copy of the store"
        " was restored, or a server took over that lacks the newest appends. Nothing was written. Open the conversation"
        " again, and append what is missing."
    )


async def addressed_block(log: Log, block: Block, at: datetime, counter: TokenCounter) -> Payload:
    """Return the event of a block that comes with a decision, with a path that is free in the whole log."""
    taken = await log.paths_taken([stem(block, log.fold.turns.turn_for(block))])
    (addressed,) = log.fold.address([(block, at)], avoid=taken)
    return block_appended(addressed, counter.count(addressed.countable()), counter.name)


async def begin_free(
    store: EventStore, begin: Callable[[str], Awaitable[StoredLog]], id_: str | None, wanted: str
) -> StoredLog:
    """Begin a log under an id; where none is given, under a free one that is made of the wanted one.

    Raises:
        VersionConflict: the given id is in use.
    """
    if id_ is not None:
        return await begin(id_)
    while True:
        with suppress(VersionConflict):  # another writer took the free id just now
            return await begin(await free_id(store, wanted))


async def free_id(store: EventStore, wanted: str) -> str:
    """Return the wanted id if it is free, else the first free one of ``wanted~2``, ``wanted~3`` and so on."""
    number, id_ = 1, wanted
    while True:
        try:
            await store.info(id_)
        except ConversationNotFound:
            return id_
        number += 1
        id_ = f"{wanted}~{number}"
