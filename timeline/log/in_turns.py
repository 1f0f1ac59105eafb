"""Read long logs on the event loop without holding it: `in_turns`."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from anyio.lowlevel import checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator

T = TypeVar("T")

_SECONDS: Final = 0.01
"""How long a reader works before others have a turn: less than a page takes to draw a frame."""


async def in_turns(items: AsyncIterable[T]) -> AsyncIterator[T]:
    """Yield what is read, and let other tasks run after every ten milliseconds of the caller's work.

    A store reads by pages. Without this function, the work on all events of a page would hold the loop without a pause.
    Work that takes long for a single item belongs in `timeline.log.off_loop`.
    """
    end = monotonic() + _SECONDS
    async for item in items:
        yield item
        if monotonic() > end:
            await checkpoint()
            end = monotonic() + _SECONDS
