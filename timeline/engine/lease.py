"""The lease of a compaction: one at a time writes a summary, and one that died holds nobody up for long.

The lease is an event, ``compaction.started``: its version is the fencing token that whatever ends the compaction names.
The fold decides who holds it, so that all writers agree: a start while another's lease runs is void, one after its
expiry takes over, and what was written under a lease that was taken over ends nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import anyio

from timeline.errors import CompactionInProgress, StoreError, described
from timeline.events.other_payloads import CompactionFailed
from timeline.log.uncancelled import shielded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from timeline.engine.summarizing import Asked
    from timeline.events.other_payloads import CompactionStarted
    from timeline.log.protocol import Log

LEASE: Final = timedelta(seconds=120)
"""How long a summary may take before somebody else may begin one."""
_POLL: Final = 0.1
"""Seconds between two looks at a log that somebody else is compacting."""


_OWN: Final[ContextVar[frozenset[tuple[str, int]]]] = ContextVar("_OWN", default=frozenset())
"""Leases of the compactions that this very code runs in: that of a hook, or of a summarizer."""


_UNTOLD: Final[WeakKeyDictionary[Log, CompactionFailed]] = WeakKeyDictionary()
"""Ends of compactions that the store could not take: nobody works under these leases any more."""


async def take_turn(log: Log, now: datetime, *, wait: bool) -> datetime:
    """Wait until nobody else compacts; return the moment at which one's own lease may begin.

    No lease is waited for longer than a lease lasts, whatever its writer's clock said.

    Raises:
        CompactionInProgress: somebody does, and ``wait`` is False; or it is the compaction that waits for the caller.
        StoreError: an earlier compaction's end could not be recorded, and still cannot.
    """
    if (untold := _UNTOLD.get(log)) is not None:
        await _tell(log, untold, now)
        _UNTOLD.pop(log, None)
    watched, since = 0, 0.0
    while (lease := log.fold.window.lease) is not None and now < lease.expires_at:
        if not wait or (log.fold.conversation, lease.version) in _OWN.get():
            raise CompactionInProgress(log.fold.conversation, lease.version, lease.expires_at)
        if lease.version != watched:
            watched, since = lease.version, anyio.current_time()
        if anyio.current_time() - since >= min(lease.expires_at - now, LEASE).total_seconds():
            return lease.expires_at
        await anyio.sleep(_POLL)
        await log.catch_up()
    return now


@contextmanager
def within(log: Log, lease: int | None) -> Iterator[None]:
    """Let what runs in here know that the lease is its own, so that it does not wait for itself."""
    own = _OWN.set(_OWN.get() if lease is None else _OWN.get() | {(log.fold.conversation, lease)})
    try:
        yield
    finally:
        _OWN.reset(own)


async def begin(log: Log, at: datetime, started: Callable[[datetime], CompactionStarted]) -> int | None:
    """Ask for the lease; return its version, or None where somebody else was faster.

    ``started`` makes its event, given the moment at which it expires.

    A cancellation comes through afterwards: whoever holds a lease knows of it, and can give it back.
    """
    versions: list[int] = []

    async def ask() -> None:
        versions.append(await log.commit([started(at + LEASE)], at=at))

    try:
        await shielded(ask())
    except anyio.get_cancelled_exc_class() as cancelled:
        for version in versions:
            await release(log, version, cancelled, at)
        raise
    return next((version for version in versions if holds(log, version)), None)


def holds(log: Log, lease: int | None) -> bool:
    """Say whether a lease still counts; what needs none holds it always."""
    current = log.fold.window.lease
    return lease is None or (current is not None and current.version == lease)


async def release(
    log: Log, lease: int | None, error: BaseException, now: datetime, *, asked: Asked | None = None
) -> None:
    """Give a lease back that an error or a cancellation ended, out of reach of the cancellation itself.

    ``asked`` is what its requests for summaries came to.

    Where the store cannot record that now, a full disk for example, it is done when this log is next compacted; for
    everybody else the lease expires by itself.
    """
    if lease is None or not holds(log, lease):
        return
    cancelled = isinstance(error, anyio.get_cancelled_exc_class())
    failed = CompactionFailed(
        reason="cancelled" if cancelled else "failed",
        detail="" if cancelled else described(error),
        lease=lease,
        usage=None if asked is None else asked.spent,
        unanswered=0 if asked is None else asked.unanswered,
    )

    try:
        await shielded(_tell(log, failed, now))
    except StoreError:
        _UNTOLD[log] = failed


async def _tell(log: Log, failed: CompactionFailed, now: datetime) -> None:
    async def still_held() -> Sequence[CompactionFailed]:
        return [failed] if holds(log, failed.lease) else []  # not where the compaction itself was written just then

    await log.decide(still_held, at=now)
