"""Iterate over a log's events of some types from the newest one back: `newest_first`.

What is looked for there is mostly near the end. So it costs what lies behind it, and not the history before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection

    from timeline.events import Event
    from timeline.ports import EventStore

_FIRST: Final = 64
"""Versions of a log's end that are read first; each further part has twice as many."""


async def newest_first(
    store: EventStore, conversation: str, types: Collection[str] | None, *, until: int
) -> AsyncGenerator[Event]:
    """Iterate over the events of some types (None: all) up to a version, the newest first.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    end, part = until, _FIRST
    while end > 0:
        after = max(0, end - part)
        read = store.read(conversation, after=after, until=end, types=types)
        for event in reversed([event async for event in read]):
            yield event
        end, part = after, 2 * part
