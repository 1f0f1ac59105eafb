"""Follow what happens to contexts, live or from any point of the log: renders, hiding, compactions, overflows (004).

The stream is derived from the log, and nothing is queued: a slow reader reads from the log later, and a reader that
comes back goes on behind the last version, or position, that it read. Events of one conversation are ordered by
version, events of a whole store by position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from timeline import checks
from timeline.errors import InvalidArgument, StoreClosed
from timeline.lifecycle.events import (
    TYPES,
    CompactionCompleteEvent,
    CompactionErrorEvent,
    CompactionPruneEvent,
    CompactionStartEvent,
    CompactionSummarizeEvent,
    ContextOverflowEvent,
    ContextUsageEvent,
    LifecycleEvent,
    lifecycle_of,
)
from timeline.log.wakeups import waiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.events import Event
    from timeline.ports import EventStore

__all__ = [
    "INTERVAL",
    "CompactionCompleteEvent",
    "CompactionErrorEvent",
    "CompactionPruneEvent",
    "CompactionStartEvent",
    "CompactionSummarizeEvent",
    "ContextOverflowEvent",
    "ContextUsageEvent",
    "LifecycleEvent",
    "follow",
    "lifecycle_of",
    "recorded",
]

INTERVAL: Final = 1.0
"""Seconds between two looks for the appends of other processes."""
_PAGE: Final = 200


class _Source(Protocol):
    """Where events of the log come from: one conversation, or all of a store."""

    @property
    def conversation(self) -> str | None:
        """The conversation's id; None for all."""
        ...

    async def end(self) -> int:
        """Return the place of the newest event: a version, or a position."""
        ...

    def read(self, after: int, until: int) -> AsyncIterator[Event]:
        """Read the events of `TYPES` behind a place; ``until`` is a known end of the log."""
        ...

    def place(self, event: Event) -> int:
        """Return an event's place."""
        ...


class _One:
    def __init__(self, store: EventStore, conversation: str) -> None:
        self._store, self.conversation = store, conversation

    async def end(self) -> int:
        return (await self._store.info(self.conversation)).version

    def read(self, after: int, until: int) -> AsyncIterator[Event]:
        return self._store.read(self.conversation, after=after, until=until, types=TYPES, page=_PAGE)

    def place(self, event: Event) -> int:
        return event.version


class _All:
    conversation = None

    def __init__(self, store: EventStore) -> None:
        self._store = store

    async def end(self) -> int:
        return await self._store.head()

    def read(self, after: int, until: int) -> AsyncIterator[Event]:
        del until  # newer events may come along: the next read begins behind them
        return self._store.read_all(after=after, types=TYPES, page=_PAGE)

    def place(self, event: Event) -> int:
        return event.position


def follow(
    store: EventStore, conversation: str | None = None, *, after: int | None = None, interval: float = INTERVAL
) -> AsyncIterator[LifecycleEvent]:
    """Follow what happens to the contexts of a conversation, or of all conversations of a store.

    The stream ends when it is closed, or the store is. Leaving it costs nothing: it has no task and no queue. Appends
    of this process through a `Timeline` come at once. For appends of other processes it looks up the end of the log
    every ``interval``, at the cost of one index look-up, however long the log is.

    One version may yield several events: go on behind a version only when all of them are done.

    Args:
        store: the store of the conversations.
        conversation: follow only this one, by version; a fork's stream includes the past that it shares with its
            parent. All conversations, by position, unless given.
        after: begin behind this version, or this position if no conversation is given; 0 is the beginning. Unless
            given, the stream begins with the first append after the first step of the iteration.
        interval: seconds between two looks at the log.

    Raises:
        InvalidArgument: ``after`` is no version, or ``interval`` no number of seconds.
        ConversationNotFound: there is no such conversation.
        StoreError: the store cannot be read.
    """
    _check(after, interval)
    return _follow(store, _source(store, conversation), after, interval)


def recorded(store: EventStore, conversation: str | None = None, *, after: int = 0) -> AsyncIterator[LifecycleEvent]:
    """Read what happened to the contexts up to now, and end: the same events as `follow` yields, without waiting.

    Args:
        store: the store of the conversations.
        conversation: read only this one; all of them unless given.
        after: begin behind this version, or this position if no conversation is given.

    Raises:
        InvalidArgument: ``after`` is no version.
        ConversationNotFound: there is no such conversation.
        StoreError: the store cannot be read.
    """
    _check(after, INTERVAL)
    return _recorded(_source(store, conversation), after)


def _check(after: int | None, interval: float) -> None:
    if after is not None and (not isinstance(after, int) or isinstance(after, bool) or after < 0):
        raise InvalidArgument("after", f"{after!r} is no version: 0 is the beginning")
    if isinstance(interval, bool) or not isinstance(interval, int | float) or not interval > 0:
        raise InvalidArgument("interval", f"{interval!r} is no number of seconds above 0")


def _source(store: EventStore, conversation: str | None) -> _Source:
    if conversation is None:
        return _All(store)
    checks.text("conversation", conversation)
    return _One(store, conversation)


async def _recorded(source: _Source, after: int) -> AsyncIterator[LifecycleEvent]:
    end = await source.end()
    while after < end:
        events, after = await _page(source, after, end)
        for event in events:
            if source.place(event) <= end:
                for told in lifecycle_of(event):
                    yield told


async def _follow(
    store: EventStore, source: _Source, after: int | None, interval: float
) -> AsyncIterator[LifecycleEvent]:
    end = await source.end()
    place = end if after is None else after
    while True:
        try:
            while place >= end:
                end = await _later_end(store, source, place, interval)
            events, place = await _page(source, place, end)
        except StoreClosed:
            return
        for event in events:
            for told in lifecycle_of(event):
                yield told


async def _later_end(store: EventStore, source: _Source, place: int, interval: float) -> int:
    """Return the log's end.

    If nothing is newer than ``place``, first sleep for the interval or until an append; the caller then asks again.
    """
    with waiting(
        store, source.conversation, TYPES
    ) as here:  # before the look: an append right after it wakes the sleeper
        end = await source.end()
        if end <= place:
            await here.sleep(interval)
    return end


async def _page(source: _Source, after: int, end: int) -> tuple[list[Event], int]:
    """Read a page of events; return them with the place behind which to go on."""
    events: list[Event] = []
    reading = source.read(after, end)
    async for event in reading:
        events.append(event)
        if len(events) == _PAGE:
            break
    if (
        aclose := getattr(reading, "aclose", None)
    ) is not None:  # a reading left half way would hold the store's resources
        await aclose()
    if len(events) == _PAGE:
        return events, source.place(events[-1])
    return events, max(end, source.place(events[-1])) if events else end
