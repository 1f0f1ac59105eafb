"""Follow one conversation for an interface: the lifecycle stream, with a usage figure after every append (004).

The steps follow from the log alone, like the stream: a client that comes back behind a version gets the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline import checks
from timeline.errors import InvalidArgument, StoreClosed
from timeline.events import BlockAppended, BlocksHidden, CompactionCompleted, ContextRendered
from timeline.fold.counts import plain_tokens
from timeline.lifecycle import INTERVAL, check
from timeline.lifecycle.events import TYPES, ContextUsageEvent, lifecycle_of, usage_figures
from timeline.lifecycle.progress import Progress
from timeline.lifecycle.sources import OneConversation, later_end, page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from timeline.events import Event, Payload
    from timeline.lifecycle.events import LifecycleEvent
    from timeline.ports import EventStore

__all__ = ["Present", "Step", "moved_by", "present", "steps"]

_LIVE: Final = TYPES | {"block.appended"}
_RARE: Final = TYPES - {"context.rendered"}
_PAGE: Final = 20
"""Most events that are held for a reader, since summaries may be long, and readers many and slow."""
_LOOK_BACK: Final = 200
"""Versions of the first look for the newest render; each further look takes twice as many."""


class Step(NamedTuple):
    """One version of the log, and its events. A step without events says that the log was read up to here."""

    version: int
    events: tuple[LifecycleEvent, ...] = ()


class Present(NamedTuple):
    """The state of a conversation's context now.

    Attributes:
        version: the version of the log that this is read from; `steps` goes on behind it.
        progress: the newest compaction, usage and problem.
        compactions: how many compactions it had, see `ConversationInfo.compactions`.
        last_compaction_at: the time of the newest one; None without one.
    """

    version: int
    progress: Progress
    compactions: int
    last_compaction_at: datetime | None


async def present(store: EventStore, conversation: str) -> Present:
    """Return the state of a conversation's context now, which an interface shows before it follows the `steps`.

    Raises:
        ConversationNotFound: there is no such conversation.
        StoreError: the store cannot be read.
    """
    info = await store.info(conversation)
    usage = await _usage_at(store, conversation, info.version)
    events: list[LifecycleEvent] = []
    async for event in store.read(conversation, until=info.version, types=_RARE):
        events += lifecycle_of(event)
    if usage is not None:
        events += [usage.rendered] if usage.latest is usage.rendered else [usage.rendered, usage.latest]
        events.sort(key=lambda one: one.version)
    progress = Progress()
    for one in events:
        progress = progress.after(one)
    return Present(info.version, progress, info.compactions, info.last_compaction_at)


async def steps(
    store: EventStore, conversation: str, *, after: int | None = None, interval: float = INTERVAL
) -> AsyncIterator[Step]:
    """Follow a conversation version by version; a version without events is left out.

    Between two looks at the log comes a step without events. The stream ends when it is closed, or the store is.

    Args:
        store: the store of the conversation.
        conversation: its id.
        after: begin behind this version; 0 is the beginning. The newest one unless given.
        interval: seconds between two looks at the log for the appends of other processes.

    Raises:
        InvalidArgument: ``after`` is no version of the conversation, or ``interval`` no number of seconds.
        ConversationNotFound: there is no such conversation.
        ConversationErased: the conversation was erased, perhaps while it was followed.
        StoreError: the store cannot be read.
    """
    check(after, interval)
    checks.text("conversation", conversation)
    source = OneConversation(store, conversation, _LIVE, _PAGE)
    end = await source.end()
    if after is not None and after > end:
        raise InvalidArgument("after", f"{after} is after the newest version of {conversation!r}, which is {end}")
    place = end if after is None else after
    usage = await _usage_at(store, conversation, place)
    while True:
        try:
            events, place = await page(source, place, end)
            for event in events:
                usage, step_events = _step(usage, event)
                if step_events:
                    yield Step(event.version, step_events)
            yield Step(place)
            end = await later_end(source, place, interval)
        except StoreClosed:
            return


@dataclass(frozen=True, slots=True)
class _Usage:
    """The usage at a version: that of the newest render, changed by the events behind it.

    Attributes:
        latest: the usage event at the version.
        rendered: the usage event of the render.
        ratio: the provider's tokens for one of the counter's.
    """

    latest: ContextUsageEvent
    rendered: ContextUsageEvent
    ratio: float

    def after(self, event: Event) -> _Usage:
        """Return the usage behind an event that is no render; the same object where the event does not change it."""
        moved = moved_by(event.payload)
        if not moved:
            return self
        tokens = max(0, self.latest.current_tokens + round(moved * self.ratio))
        own: dict[str, Any] = {
            "conversation": event.conversation,
            "version": event.version,
            "position": event.position,
            "at": event.at,
        }
        figures = usage_figures(tokens, self.latest.limit)
        moved_on = self.latest.model_copy(update={**own, **figures, "estimated": True})
        return replace(self, latest=moved_on)


def moved_by(payload: Payload) -> int:
    """Return by how many of the counter's tokens an event makes the context larger, without folding the log."""
    match payload:
        case BlockAppended(tokens=tokens, counter=unit):
            return plain_tokens(tokens, unit)
        case CompactionCompleted(before_tokens=before, after_tokens=after, counter=unit):
            return plain_tokens(after - before, unit)
        case BlocksHidden(pruned=pruned, counter=unit) if pruned is not None:
            return -plain_tokens(pruned.saved_tokens, unit)
        case _:
            return 0


def _step(usage: _Usage | None, event: Event) -> tuple[_Usage | None, tuple[LifecycleEvent, ...]]:
    """Return the usage behind an event, and the lifecycle events that follow from it."""
    events = lifecycle_of(event)
    if isinstance(event.payload, ContextRendered):
        return _rendered(event), tuple(events)
    moved = None if usage is None else usage.after(event)
    if moved is not None and moved is not usage:
        events.append(moved.latest)
    return moved, tuple(events)


def _rendered(event: Event) -> _Usage | None:
    """Return the usage of a recorded context; None where an earlier release recorded no limit."""
    payload = event.payload
    [rendered] = lifecycle_of(event)
    if not isinstance(payload, ContextRendered) or not isinstance(rendered, ContextUsageEvent) or not payload.limit:
        return None
    return _Usage(rendered, rendered, payload.ratio)


async def _usage_at(store: EventStore, conversation: str, version: int) -> _Usage | None:
    """Return the usage at a version; None where nothing was rendered up to it. It reads back to the newest render."""
    low, reach = version, _LOOK_BACK
    while low > 0:
        until, low, reach = low, max(0, low - reach), 2 * reach
        rendered = [e async for e in store.read(conversation, after=low, until=until, types={"context.rendered"})]
        if rendered:
            usage = _rendered(rendered[-1])
            rest = store.read(conversation, after=rendered[-1].version, until=version, types=_LIVE)
            async for event in rest:
                usage = None if usage is None else usage.after(event)
            return usage
    return None
