"""Read the log for followers: the events of some types behind a place, of one conversation or of a whole store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from timeline.log.wakeups import waiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from timeline.events import Event
    from timeline.ports import EventStore

PAGE: Final = 200
"""Events that are read at a time unless another number is given."""


class Source(Protocol):
    """Where events of the log come from: one conversation, or all of a store."""

    store: EventStore
    types: Collection[str]
    """The types of the events that are read."""
    size: int
    """Events that are read at a time."""

    @property
    def conversation(self) -> str | None:
        """The conversation's id; None for all."""
        ...

    async def end(self) -> int:
        """Return the place of the newest event: a version, or a position."""
        ...

    def read(self, after: int, until: int) -> AsyncIterator[Event]:
        """Read the events of `types` behind a place; ``until`` is a known end of the log."""
        ...

    def place(self, event: Event) -> int:
        """Return an event's place."""
        ...


class OneConversation:
    """A conversation, by version."""

    def __init__(self, store: EventStore, conversation: str, types: Collection[str], size: int = PAGE) -> None:
        self.store: EventStore = store
        self.conversation: str = conversation
        self.types: Collection[str] = types
        self.size: int = size

    async def end(self) -> int:
        """Return its version."""
        return (await self.store.info(self.conversation)).version

    def read(self, after: int, until: int) -> AsyncIterator[Event]:
        """Read its events behind a version."""
        return self.store.read(self.conversation, after=after, until=until, types=self.types, page=self.size)

    def place(self, event: Event) -> int:
        """Return an event's version."""
        return event.version


class AllConversations:
    """All conversations of a store, by position."""

    conversation = None

    def __init__(self, store: EventStore, types: Collection[str]) -> None:
        self.store: EventStore = store
        self.types: Collection[str] = types
        self.size: int = PAGE

    async def end(self) -> int:
        """Return the position of the newest event."""
        return await self.store.head()

    def read(self, after: int, until: int) -> AsyncIterator[Event]:
        """Read the events behind a position."""
        del until  # events behind it may be returned, too: the next read begins behind them
        return self.store.read_all(after=after, types=self.types, page=self.size)

    def place(self, event: Event) -> int:
        """Return an event's position."""
        return event.position


async def later_end(source: Source, place: int, interval: float) -> int:
    """Return the log's end.

    If nothing is newer than ``place``, first sleep for the interval or until an append; the caller then asks again.
    """
    with waiting(
        source.store, source.conversation, source.types
    ) as here:  # begin to wait before the check: an append right after the check must wake this follower
        end = await source.end()
        if end <= place:
            await here.sleep(interval)
    return end


async def page(source: Source, after: int, end: int) -> tuple[list[Event], int]:
    """Read a page of events; return them with the place behind which to go on."""
    events: list[Event] = []
    reading = source.read(after, end)
    async for event in reading:
        events.append(event)
        if len(events) == source.size:
            break
    if (
        aclose := getattr(reading, "aclose", None)
    ) is not None:  # close the iterator: one that is left half read would hold the store's resources
        await aclose()
    if len(events) == source.size:
        return events, source.place(events[-1])
    return events, max(end, source.place(events[-1])) if events else end
