"""Remove what lies before the windows of conversations, in bounded steps, or rehearse it.

Each step is one transaction of the store and leaves it readable; a run that ends early, however it ends, is gone on
with by the next one. One runner at a time has the lease, which it renews while it works: two would do no harm, and do
the same work twice.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import anyio

from timeline import checks
from timeline.blocks import instant_text
from timeline.errors import ScavengeInProgress, VersionConflict
from timeline.fold.snapshot import is_complete, take_snapshot
from timeline.log.history import restored
from timeline.log.stored import busy
from timeline.log.times import after
from timeline.ports import Removal, SystemClock
from timeline.retention.plan import SOMETHING_MAY_GO, Stays, hindrance, nothing_went, stays
from timeline.retention.setting import kept

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from datetime import datetime

    from timeline.ports import Clock, EventStore

STEP: Final = 500
"""Events of one step: some ten milliseconds in which no append of this process is written."""
LEASE: Final = timedelta(seconds=5)
"""How long a lease lasts unless it is renewed; a runner that was killed keeps others out for so long."""
_RENEWED_AFTER: Final = 1.5
_PAUSE: Final = 0.1
_TRIES: Final = 16


@dataclass(frozen=True, slots=True)
class Budget:
    """How much one run may do; without a bound, all that there is.

    Attributes:
        events: most events that are removed.
        seconds: time after which no further step begins. Removing texts and rewriting the file are one step each, and
            take as long as the store is large.
    """

    events: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises:
            InvalidArgument: one of them is no number above 0.
        """
        if self.events is not None:
            checks.positive("events", self.events)
        if self.seconds is not None:
            checks.seconds("seconds", self.seconds)


@dataclass(frozen=True, slots=True)
class ScavengedConversation:
    """What went of one conversation, or would go.

    Attributes:
        conversation: its id.
        stays: why nothing went; empty where something did.
        events: number of events; ``size`` are the bytes of their payloads.
        first: the first version of which something went; ``last`` the last one; 0 where nothing did.
        fork: the fork whose shared past, right before ``first``, stays for it.
    """

    conversation: str
    stays: Stays
    events: int = 0
    size: int = 0
    first: int = 0
    last: int = 0
    fork: str | None = None


@dataclass(frozen=True, slots=True)
class ScavengeReport:
    """What a run removed, or a rehearsal would.

    Attributes:
        done: whether nothing is left to do; False where the budget ended first.
        conversations: every conversation that was looked at.
        values: number of content-addressed texts (system prompts, tools, tails, policies) that nothing names any more;
            ``value_size`` are their bytes.
        before: bytes of the store's file before; ``after`` those after. Both are 0 where it was not rewritten.
    """

    done: bool
    conversations: tuple[ScavengedConversation, ...]
    values: int = 0
    value_size: int = 0
    before: int = 0
    after: int = 0

    @property
    def events(self) -> int:
        """The number of events that went."""
        return sum(found.events for found in self.conversations)

    @property
    def size(self) -> int:
        """The bytes of the payloads that went."""
        return sum(found.size for found in self.conversations)


async def rehearse(
    store: EventStore, conversations: Iterable[str] | None = None, *, clock: Clock | None = None
) -> ScavengeReport:
    """Return what `scavenge` would remove; the store stays as it is.

    The figures are those of the real run: it is played on a private copy of the store, which takes as much room in the
    folder for temporary files as the store does, and is gone afterwards.

    Args:
        store: the store.
        conversations: ids of the conversations to look at; all unless given.
        clock: gives the time at which leases of compactions end.

    Raises:
        ConversationNotFound: there is no such conversation.
        StoreError: the store cannot be read.
    """
    now = (clock or SystemClock()).now()
    reasons = {id_: await stays(store, id_, now) for id_ in await _ids(store, conversations)}
    played = await store.rehearse([id_ for id_, reason in reasons.items() if not reason])
    found = tuple(_found(id_, reason, played.removals.get(id_, Removal())) for id_, reason in reasons.items())
    goes = played.values or any(of_one.events for of_one in found)
    # A run that was killed may have left bytes of what it removed: the next one rewrites the file even so.
    rewritten = goes or played.after < played.before
    before, after = (played.before, played.after) if rewritten else (0, 0)
    return ScavengeReport(True, found, played.values, played.value_size, before, after)


async def freeable(store: EventStore, now: datetime, *, idle: timedelta | None = None) -> int:
    """Return by how many bytes the store's file would shrink if all conversations had the retention ``window``.

    Found out as `rehearse` does. Conversations under a legal hold stay, and those that are being compacted.

    Args:
        store: the store.
        now: the time; leases of compactions that end before it are over.
        idle: count only conversations to which nothing was appended for so long.

    Raises:
        StoreError: the store cannot be read.
    """
    found = [info async for info in store.conversations()]
    wanted = [info.id for info in found if idle is None or now - info.updated_at >= idle]
    held = [id_ for id_ in wanted if (await kept(store, id_)).legal_hold or await hindrance(store, id_, now)]
    may = [id_ for id_ in wanted if id_ not in set(held)]
    played = await store.rehearse(may)
    return max(0, played.before - played.after) if may else 0


async def scavenge(
    store: EventStore,
    conversations: Iterable[str] | None = None,
    *,
    budget: Budget | None = None,
    clock: Clock | None = None,
) -> ScavengeReport:
    """Remove what lies before the windows of conversations whose retention is ``window``, for good.

    What stays in any case: what a window shows (carried blocks too), what a fork shares, conversations under a legal
    hold or with a compaction in progress, compactions with their summaries and digests, and every version, id and path,
    which stay taken. Windows, renders and appends go on as before. What is gone is a `HistoryUnavailable` afterwards.

    Args:
        store: the store.
        conversations: ids of the conversations to look at; all unless given.
        budget: how much to do; a later run goes on.
        clock: gives the time at which leases end.

    Raises:
        ConversationNotFound: there is no such conversation.
        ScavengeInProgress: another process is at it.
        StoreError: the store failed; what was removed before is removed, and another run goes on.

    Example:
        ```python
        from timeline import Timeline, open_store
        from timeline.retention import Budget, scavenge

        store = await open_store("memory://")
        timeline = await Timeline.open(store, "cards")
        await timeline.set_retention("window")
        report = await scavenge(store, budget=Budget(events=10_000, seconds=5))
        assert (report.done, report.events) == (True, 0)  # nothing lies before the window yet
        ```
    """
    run = _Run(store, budget or Budget(), clock or SystemClock())
    ids = await _ids(store, conversations)
    async with run.lease():
        return await run.scavenge(ids)


async def _ids(store: EventStore, conversations: Iterable[str] | None) -> list[str]:
    if conversations is None:
        return [info.id async for info in store.conversations()]
    return [(await store.info(id_)).id for id_ in dict.fromkeys(conversations)]


async def _complete_snapshot(store: EventStore, id_: str) -> None:
    """Write the snapshot of an earlier release anew with what it lacks, before the events that say it are removed.

    It begins again if an append came in between: a new snapshot would bring back content that was redacted just then.
    """
    for _ in range(_TRIES):
        stored = await store.load_window(id_)
        snapshot = stored.snapshot
        if snapshot is None or is_complete(snapshot):
            return
        events = [event for event in stored.events if event.version <= snapshot.version]
        made = take_snapshot(await restored(store, id_, snapshot, events))
        try:
            await store.replace_snapshot(id_, made, expected=stored.info.version)
        except VersionConflict:
            continue
        return
    raise busy(id_)


def _found(conversation: str, reason: Stays, removal: Removal) -> ScavengedConversation:
    if not removal.events:
        return ScavengedConversation(conversation, reason or nothing_went(removal), fork=removal.fork)
    return ScavengedConversation(
        conversation, "", removal.events, removal.size, removal.first, removal.last, removal.fork
    )


@dataclass(slots=True)
class _Run:
    """One run under way."""

    store: EventStore
    budget: Budget
    clock: Clock
    runner: str = field(default_factory=lambda: uuid4().hex)
    began: float = field(default_factory=monotonic)
    renewed: float = 0.0
    events: int = 0

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        """Wait for the lease, for as long as that of a killed runner lasts, and give it back at the end.

        A runner that works renews its lease. One that stays the same for so long is over, whatever time it ends at:
        the clock of whoever took it may have been ahead.
        """
        lasts = LEASE.total_seconds()
        seen, since = None, monotonic()
        deadline = since + lasts + 1
        while (ends := await self._take_lease()) is not None:
            if ends != seen:
                seen, since = ends, monotonic()
            elif monotonic() - since > lasts:
                await self.store.take_lease(self.runner, ends, ends)  # does nothing if it was renewed just now
            if monotonic() > deadline:
                raise ScavengeInProgress(instant_text(ends))
            await anyio.sleep(_PAUSE)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                now = self.clock.now()
                await self.store.take_lease(self.runner, now, now)

    async def _take_lease(self) -> datetime | None:
        now = self.clock.now()
        self.renewed = monotonic()
        return await self.store.take_lease(self.runner, now, after(now, LEASE))

    async def scavenge(self, ids: Iterable[str]) -> ScavengeReport:
        """Remove events, then texts, then rewrite the file, as far as the budget goes."""
        found: list[ScavengedConversation] = []
        for id_ in ids:
            if not self._goes_on():
                return ScavengeReport(False, tuple(found))
            whole, of_one = await self._conversation(id_)
            found.append(of_one)
            if not whole:
                return ScavengeReport(False, tuple(found))
        if not await self._next_step():
            return ScavengeReport(False, tuple(found))
        may_go = any(of_one.stays in SOMETHING_MAY_GO for of_one in found)
        values, value_size = await self.store.remove_values() if may_go else (0, 0)
        if not await self._next_step():
            return ScavengeReport(False, tuple(found), values, value_size)
        before, after = await self.store.shrink() or (0, 0)
        return ScavengeReport(True, tuple(found), values, value_size, before, after)

    async def _conversation(self, id_: str) -> tuple[bool, ScavengedConversation]:
        """Remove what may be removed of one conversation; return whether that was all of it."""
        done = Removal(done=False)
        while not done.done:
            # Asked before each step: a hold that is set meanwhile holds from the next step on.
            reason = await stays(self.store, id_, self.clock.now())
            if reason:
                return True, _found(id_, reason, done)
            if not await self._next_step():
                return False, _found(id_, "", done)
            if not done.reached:
                await _complete_snapshot(self.store, id_)
            step = await self.store.remove(id_, after=done.reached, most=self._most())
            self.events += step.events
            done = Removal(
                done.events + step.events,
                done.size + step.size,
                step.reached,
                step.last,
                step.first,
                step.fork,
                step.done,
            )
        return True, _found(id_, "", done)

    def _most(self) -> int:
        left = STEP if self.budget.events is None else self.budget.events - self.events
        return min(STEP, left)

    def _goes_on(self) -> bool:
        """Return whether the budget has room for another step."""
        in_time = self.budget.seconds is None or monotonic() - self.began < self.budget.seconds
        return in_time and (self.budget.events is None or self.events < self.budget.events)

    async def _next_step(self) -> bool:
        """Return whether another step may begin; the lease is renewed for it where that is due.

        Raises:
            ScavengeInProgress: another runner took over, since this one was too slow.
        """
        if not self._goes_on():
            return False
        if monotonic() - self.renewed > _RENEWED_AFTER and (ends := await self._take_lease()) is not None:
            raise ScavengeInProgress(instant_text(ends))
        return True
