"""The lease of a compaction: one writer at a time writes a summary, and one that died blocks no other for long.

The lease is an event, ``compaction.started``. Its version is the fencing token, which the event that ends the
compaction names. The fold decides who holds the lease, so that all writers agree. A start while another lease runs is
void. A start after that lease expired takes over, and an end under the old lease is ignored. Where the store knows that
the process of a lease has ended (`MarkingStore`), the next writer that would wait for the lease ends it (ADR 0098).
Elsewhere the lease lasts 2 minutes.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import anyio

from timeline.display.logs import logger_of
from timeline.engine.summarizing import NO_OUTLAY
from timeline.errors import CompactionInProgress, StoreError, VersionConflict, described
from timeline.events.other_payloads import CompactionFailed
from timeline.log.stored import busy
from timeline.log.times import after
from timeline.log.uncancelled import run_uncancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from timeline.engine.summarizing import Outlay
    from timeline.events.other_payloads import CompactionStarted
    from timeline.log.protocol import Log
    from timeline.ports import LeaseMark

_LOGGER: Final = logger_of("timeline")
LEASE: Final = timedelta(seconds=120)
"""How long a summary may take before another writer may begin one."""
_POLL: Final = 0.1
"""Seconds between two looks at a log that another writer is compacting."""
_DIED: Final = "the process that wrote the summary ended before it"
_OWN: Final[ContextVar[frozenset[tuple[str, int]]]] = ContextVar("_OWN", default=frozenset())
"""Leases of the compactions that the current task is part of, as the code of a hook or a summarizer is."""
_UNRECORDED: Final[WeakKeyDictionary[Log, CompactionFailed]] = WeakKeyDictionary()
"""Ends of compactions that the store could not record. No one works under their leases any more."""


async def take_turn(log: Log, now: datetime, at: datetime | None, *, wait: bool) -> datetime:
    """Wait until no other writer compacts; return the time from which a lease of one's own may run.

    It waits for a lease at most as long as a lease lasts, even if its writer's clock is ahead.

    Args:
        log: the log of the conversation.
        now: the time of the call.
        at: the time of its events; None for that of each append.
        wait: wait, instead of raising `CompactionInProgress`.

    Raises:
        CompactionInProgress: another writer compacts and ``wait`` is False, or the caller is a hook or summarizer of
            the compaction in progress, and would wait for itself.
        StoreError: an earlier compaction's end could not be recorded, and still cannot.
    """
    if (unrecorded := _UNRECORDED.get(log)) is not None:
        await _record(log, unrecorded, at)
        _UNRECORDED.pop(log, None)
    watched, since = 0, 0.0
    while (lease := log.fold.window.lease) is not None and now < lease.expires_at:
        if await end_of_dead(log, at):
            continue
        if not wait or (log.fold.conversation, lease.version) in _OWN.get():
            raise CompactionInProgress(log.fold.conversation, lease.version, lease.expires_at)
        if lease.version != watched:
            watched, since = lease.version, anyio.current_time()
            _LOGGER.warning(
                "conversation %s: waiting for the compaction that another writer began at version %d, until %s at most",
                *(log.fold.conversation, lease.version, lease.expires_at.isoformat(timespec="seconds")),
            )
        if anyio.current_time() - since >= min(lease.expires_at - now, LEASE).total_seconds():
            return lease.expires_at
        await anyio.sleep(_POLL)
        await log.catch_up()
    return now


async def end_of_dead(log: Log, at: datetime | None) -> bool:
    """End the lease of a process that died, if the store knows that it did; return whether the lease was ended.

    The end is an event like that of any failed compaction, so that every fold of the log says the same.
    """
    lease = log.fold.window.lease
    if lease is None or not log.holder_died(lease.version, lease.expires_at):
        return False
    _LOGGER.warning(
        "conversation %s: the process that began a compaction at version %d has ended; its lease is given up",
        *(log.fold.conversation, lease.version),
    )
    await _record(log, CompactionFailed(reason="failed", detail=_DIED, lease=lease.version), at)
    return not holds(log, lease.version)


@contextmanager
def within(log: Log, lease: int | None) -> Iterator[None]:
    """Mark a lease as one's own for the code in this block: a hook that compacts must not wait for itself."""
    own = _OWN.set(_OWN.get() if lease is None else _OWN.get() | {(log.fold.conversation, lease)})
    try:
        yield
    finally:
        _OWN.reset(own)


async def begin(
    log: Log, mark: LeaseMark, least: datetime, at: datetime | None, started: Callable[[datetime], CompactionStarted]
) -> int | None:
    """Ask for the lease; return its version, or None if another writer was faster.

    A cancellation waits until the append is over, and then releases the lease. Otherwise the log could hold a lease
    whose version no one knows, so that no one could release it.

    Args:
        log: the log of the conversation.
        mark: shows other processes that this one runs, see `Log.mark_lease`. It names the lease before that is in the
            log, so that a kill at no moment leaves a lease that nobody sees the end of.
        least: the time that `take_turn` returned; a lease that begins before it would be void.
        at: the time of the event; None for that of the append. The lease runs from the event's time.
        started: makes the event, given the time at which the lease expires.
    """
    versions: list[int] = []

    async def ask() -> None:
        asked = 0

        async def start(time: datetime) -> Sequence[CompactionStarted]:
            nonlocal asked
            asked, until = log.fold.version + 1, after(time, LEASE)
            mark.name(asked, until)
            return [started(until)]

        try:
            await log.decide(start, at=None if at is None else max(at, least), least=least)
        except VersionConflict:
            raise busy(log.fold.conversation) from None
        versions.append(asked)

    try:
        await run_uncancelled(ask())
    except anyio.get_cancelled_exc_class() as cancelled:
        for version in versions:
            await release(log, version, cancelled, at)
        raise
    return next((version for version in versions if holds(log, version)), None)


def holds(log: Log, lease: int | None) -> bool:
    """Return whether a lease still counts; always True for None, a compaction that needs no lease."""
    current = log.fold.window.lease
    return lease is None or (current is not None and current.version == lease)


async def release(
    log: Log,
    lease: int | None,
    error: BaseException,
    at: datetime | None,
    *,
    outlay: Outlay = NO_OUTLAY,
) -> None:
    """Give a lease back after an error or a cancellation, shielded from that cancellation.

    Where the store cannot record that now, for example on a full disk, this log's next compaction records it. For all
    other writers the lease expires by itself.

    Args:
        log: the log of the conversation.
        lease: the lease's version; None, or one that no longer counts, does nothing.
        error: why the compaction ended; it is recorded.
        at: the time of the record; None for that of the append.
        outlay: what the compaction has cost until then; it is recorded too.
    """
    if lease is None or not holds(log, lease):
        return
    cancelled = isinstance(error, anyio.get_cancelled_exc_class())
    failed = CompactionFailed(
        reason="cancelled" if cancelled else "failed",
        detail="" if cancelled else described(error),
        lease=lease,
        usage=outlay.usage,
        unanswered=outlay.unanswered,
        duration=outlay.duration,
    )

    try:
        await run_uncancelled(_record(log, failed, at))
    except StoreError:
        _UNRECORDED[log] = failed


async def _record(log: Log, failed: CompactionFailed, at: datetime | None) -> None:
    async def still_held(_: datetime) -> Sequence[CompactionFailed]:
        return [failed] if holds(log, failed.lease) else []  # the commit may have ended the lease just before

    await log.decide(still_held, at=at)
