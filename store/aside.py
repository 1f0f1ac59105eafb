"""Work on long texts in a thread, so that the event loop goes on: deadlines are kept, and other questions answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")

_MOST_AT_ONCE: Final = 256 * 1024
"""Characters that are worked on while the event loop waits: some 30 ms."""


async def at_its_size(work: Callable[[], T], rows: Iterable[Sequence[Any]]) -> T:
    """Do work on some rows, in a thread where their text is long.

    A caller that is cancelled does not wait for the thread, which goes on to its end.
    """
    size = sum(len(text) for row in rows for text in row if isinstance(text, str))
    return await asyncio.to_thread(work) if size > _MOST_AT_ONCE else work()
