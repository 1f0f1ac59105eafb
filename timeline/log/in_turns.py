"""Read long logs on the event loop without holding it: `in_turns`."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from anyio.lowlevel import checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator

T = TypeVar("T")

_SECONDS: Final = 0.01
"""How long a reader works before others have a turn: shorter than a frame of a page that is drawn meanwhile."""


async def in_turns(items: AsyncIterable[T]) -> AsyncIterator[T]:
    """Yield what is read, and let others run every ten milliseconds of the work that is done with it.

    A store reads by pages: without this, all that is done with a page of events is one stretch on the loop. Work on a
    single item that takes long by itself belongs to `timeline.log.off_loop`.
    """
    end = monotonic() + _SECONDS
    async for item in items:
        yield item
        if monotonic() > end:
            await checkpoint()
            end = monotonic() + _SECONDS
