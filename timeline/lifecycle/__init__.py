"""Follow what happens to contexts, live or from any point of the log: renders, hiding, compactions, overflows (004).

The stream is derived from the log, and nothing is queued: a slow reader reads from the log later, and a reader that
comes back goes on behind the last version, or position, that it read. Events of one conversation are ordered by
version, events of a whole store by position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
from timeline.lifecycle.sources import AllConversations, OneConversation, later_end, page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.lifecycle.sources import Source
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


def follow(
    store: EventStore, conversation: str | None = None, *, after: int | None = None, interval: float = INTERVAL
) -> AsyncIterator[LifecycleEvent]:
    """Follow what happens to the contexts of a conversation, or of all conversations of a store.

    The stream ends when the stream or the store is closed. Leaving it costs nothing: it has no task and no queue.
    Appends of this process through a `Timeline` come at once. For appends of other processes the stream looks at the
    end of the log every ``interval`` seconds, at the cost of one index look-up, however long the log is.

    One version may yield several events: resume after a version only when you have handled all of its events.

    Args:
        store: the store of the conversations.
        conversation: follow only this one, by version; a fork's stream includes the past that it shares with its
            parent. By default all conversations, by position.
        after: begin after this version, or after this position if no conversation is given; 0 is the beginning. By
            default the stream begins with the first append after the first step of the iteration.
        interval: seconds between two looks at the log.

    Raises:
        InvalidArgument: ``after`` is no version, or ``interval`` no number of seconds.
        ConversationNotFound: there is no such conversation.
        StoreError: the store cannot be read.
    """
    check(after, interval)
    return _follow(_source(store, conversation), after, interval)


def recorded(store: EventStore, conversation: str | None = None, *, after: int = 0) -> AsyncIterator[LifecycleEvent]:
    """Read what happened to the contexts up to now, and end: the same events as `follow` yields, without waiting.

    Args:
        store: the store of the conversations.
        conversation: read only this one; by default all.
        after: begin after this version, or after this position if no conversation is given.

    Raises:
        InvalidArgument: ``after`` is no version.
        ConversationNotFound: there is no such conversation.
        StoreError: the store cannot be read.
    """
    check(after, INTERVAL)
    return _recorded(_source(store, conversation), after)


def check(after: int | None, interval: float) -> None:
    """Check where a stream is to begin, and how often it looks.

    Raises:
        InvalidArgument: ``after`` is no version, or ``interval`` no number of seconds.
    """
    if after is not None and (not isinstance(after, int) or isinstance(after, bool) or after < 0):
        raise InvalidArgument("after", f"{after!r} is not a version: 0 is the beginning")
    if isinstance(interval, bool) or not isinstance(interval, int | float) or not interval > 0:
        raise InvalidArgument("interval", f"{interval!r} is not a number of seconds above 0")


def _source(store: EventStore, conversation: str | None) -> Source:
    if conversation is None:
        return AllConversations(store, TYPES)
    checks.text("conversation", conversation)
    return OneConversation(store, conversation, TYPES)


async def _recorded(source: Source, after: int) -> AsyncIterator[LifecycleEvent]:
    end = await source.end()
    while after < end:
        events, after = await page(source, after, end)
        for event in events:
            if source.place(event) <= end:
                for lifecycle_event in lifecycle_of(event):
                    yield lifecycle_event


async def _follow(source: Source, after: int | None, interval: float) -> AsyncIterator[LifecycleEvent]:
    end = await source.end()
    place = end if after is None else after
    while True:
        try:
            while place >= end:
                end = await later_end(source, place, interval)
            events, place = await page(source, place, end)
        except StoreClosed:
            return
        for event in events:
            for lifecycle_event in lifecycle_of(event):
                yield lifecycle_event
