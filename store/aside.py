"""Work on long texts in a thread, so that the event loop goes on: deadlines are kept, and other questions answered."""

from __future__ import annotations

import asyncio
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .codec import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from timeline.events import Event

    from .codec import Row

T = TypeVar("T")

_MOST_AT_ONCE: Final = 256 * 1024
"""Characters that are worked on while the event loop waits: some 30 ms."""
_SECONDS: Final = 0.004
"""How long events are read before other tasks have a turn. A task that waits for a timer runs in the third turn."""
_PAYLOAD: Final = 6
"""Place of the payload in the row of an event."""


async def at_its_size(work: Callable[[], T], rows: Iterable[Sequence[Any]]) -> T:
    """Do work on some rows, in a thread where their text is long.

    A caller that is cancelled does not wait for the thread, which goes on to its end.
    """
    size = sum(len(text) for row in rows for text in row if isinstance(text, str))
    return await asyncio.to_thread(work) if size > _MOST_AT_ONCE else work()


async def decoded(conversation: str, row: Row, where: str) -> Event:
    """Read an event from its row, as `decode` does, in a thread where it is long."""
    work, payload = partial(decode, conversation, row, where), row[_PAYLOAD]
    is_long = isinstance(payload, str) and len(payload) > _MOST_AT_ONCE  # a damaged row may hold any other type
    return await asyncio.to_thread(work) if is_long else work()


async def all_decoded(conversation: str, rows: Iterable[Row], where: str) -> list[Event]:
    """Read the events of a page from their rows, as `decoded` does; others have turns between them."""
    events, end = [], monotonic() + _SECONDS
    for row in rows:
        events.append(await decoded(conversation, row, where))
        if monotonic() > end:
            await asyncio.sleep(0)
            end = monotonic() + _SECONDS
    return events
