"""The lifecycle stream: what happens to contexts, live and from any point of the log (seed 004).

The stream is told from the log. Nothing is queued: whoever reads slowly reads later from the log, and whoever comes
back goes on behind the version, or the position, that was read last. Events of one conversation come by version, events
of a whole store by position.
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
from timeline.log.wakeups import sleeper

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
"""Seconds between two looks at what other processes appended."""
_PAGE: Final = 200


class _Source(Protocol):
    """Where the log's events come from: one conversation, or all."""

    @property
    def conversation(self) -> str | None:
        """Which conversation; None for all."""
        ...

    async def end(self) -> int:
        """Return where the log ends now."""
        ...

    def read(self, after: int, until: int) -> AsyncIterator[Event]:
        """Read what tells something behind a place; ``until`` is where the log ended before."""
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
        del until  # what came since is told now, and not again: it is behind what was read last
        return self._store.read_all(after=after, types=TYPES, page=_PAGE)

    def place(self, event: Event) -> int:
        return event.position


def follow(
    store: EventStore, conversation: str | None = None, *, after: int | None = None, interval: float = INTERVAL
) -> AsyncIterator[LifecycleEvent]:
    """Follow what happens to the contexts of a conversation, or of all conversations of a store.

    The stream goes on until it is closed, or the store is: then it ends. Leaving it costs nothing: it has no task and
    no queue. What this process appends through a `Timeline` is told at once. For what comes by other ways, the end of
    the log is looked up each ``interval``, which costs one look-up of an index, however long the log is.

    Several events may come of one version: begin again behind a version when all of it was dealt with.

    Args:
        store: where they live.
        conversation: only this one; by version, and a fork's with what it shares with its parent. All of them, by
            position, unless given.
        after: begin behind this version, or this position where no conversation is named; 0 is the beginning. What is
            appended after the first step of the iteration, unless given.
        interval: seconds between two looks.

    Raises:
        InvalidArgument: one of them is no such number.
        ConversationNotFound: there is no such conversation.
        StoreError: the store cannot be read.
    """
    _check(after, interval)
    return _follow(store, _source(store, conversation), after, interval)


def recorded(store: EventStore, conversation: str | None = None, *, after: int = 0) -> AsyncIterator[LifecycleEvent]:
    """Tell what happened to the contexts up to now, and end: the beginning of what `follow` tells.

    Args:
        store: where they live.
        conversation: only this one; all of them unless given.
        after: begin behind this version, or this position where no conversation is named.

    Raises:
        InvalidArgument: it is no such number.
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
    """Return where the log ends, at once where that is behind a place, else after a sleep."""
    with sleeper(store, source.conversation, TYPES) as here:  # known before it looks: nothing comes in between
        end = await source.end()
        if end <= place:
            await here.sleep(interval)
    return end


async def _page(source: _Source, after: int, end: int) -> tuple[list[Event], int]:
    """Read a page of events; return them, and the place to go on behind."""
    events: list[Event] = []
    reading = source.read(after, end)
    async for event in reading:
        events.append(event)
        if len(events) == _PAGE:
            break
    if (aclose := getattr(reading, "aclose", None)) is not None:  # what is left half read holds nothing here
        await aclose()
    if len(events) == _PAGE:
        return events, source.place(events[-1])
    return events, max(end, source.place(events[-1])) if events else end
