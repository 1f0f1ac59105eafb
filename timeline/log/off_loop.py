"""Run long pure work in a thread, so that the event loop serves other conversations meanwhile: `off_loop`.

Only work on values runs this way: windows, blocks and events are frozen, and the loop takes over what the work returns.
So a render that is cancelled meanwhile leaves nothing half done, and nothing here needs a lock.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import anyio.to_thread
from anyio.lowlevel import RunVar

from timeline.log.collector import collector_at_rest

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

WORTH_A_THREAD: Final = 400
"""Work that walks so many items gets a thread; with fewer items it takes a few milliseconds at most."""
_LIMITER: Final[RunVar[anyio.CapacityLimiter]] = RunVar("timeline.off_loop")


async def off_loop(items: int, work: Callable[[], T]) -> T:
    """Return what ``work`` returns; run it in a thread where it walks many items.

    An event loop has one such thread at a time. Threads take turns at the interpreter, a few milliseconds each, and the
    loop would wait for a turn of every one of them.

    Args:
        items: how many items the work walks.
        work: reads frozen values, and changes nothing that other code holds.
    """
    return work() if items < WORTH_A_THREAD else await in_thread(work)


async def in_thread(work: Callable[[], T]) -> T:
    """Return what ``work`` returns, run in the event loop's thread for such work."""
    return await anyio.to_thread.run_sync(partial(_undisturbed, work), limiter=_limiter())


def _undisturbed(work: Callable[[], T]) -> T:
    with collector_at_rest():
        return work()


def _limiter() -> anyio.CapacityLimiter:
    try:
        return _LIMITER.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(1)
        _LIMITER.set(limiter)
        return limiter
