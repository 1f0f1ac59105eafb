"""Compare recorded contexts by name, even those of two forks, to see what one was sent and the other was not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from timeline.audit.recorded_calls import find_contexts
from timeline.audit.replay import rebuild_contexts
from timeline.log.undisturbed import undisturbed
from timeline.projection.diff import diff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.audit.replay import RecordedContext
    from timeline.ports import EventStore
    from timeline.projection.diff import ContextDiff


class Side(NamedTuple):
    """A recorded context: the id of its conversation, and its name in it, as `Timeline.diff` takes it."""

    conversation: str
    name: str


async def diff_sides(
    store: EventStore, before: Side, after: Side, wires: Sequence[str] = ("anthropic",)
) -> tuple[ContextDiff, list[RecordedContext]]:
    """Compare two recorded contexts; return both, and the result.

    Raises:
        ConversationNotFound: there is no such conversation.
        ContextNotFound: a conversation has no recorded context of that name.
        CallNotFound: a conversation has no call of that number.
        CallUnavailable: the context of a call was not recorded.
        ContextUnavailable: a context cannot be rebuilt.
        InvalidArgument: there is no such wire format.
    """

    async def read() -> tuple[ContextDiff, list[RecordedContext]]:
        if before.conversation == after.conversation:
            chosen = await find_contexts(store, after.conversation, (before.name, after.name))
            return diff(*await rebuild_contexts(store, after.conversation, chosen), wires=wires), chosen
        chosen, built = [], []
        for conversation, name in (before, after):
            chosen += await find_contexts(store, conversation, [name])
            built += await rebuild_contexts(store, conversation, chosen[-1:])
        shared = await shared_versions(store, before.conversation, after.conversation)
        return diff(*built, wires=wires, shared=shared), chosen

    return await undisturbed(store, read, *{before.conversation, after.conversation})


async def shared_versions(store: EventStore, one: str, other: str) -> int:
    """Return the last version that the logs of two conversations have in common; 0 if they share nothing.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    mine, theirs = await _lineage(store, one), await _lineage(store, other)
    return max((min(last, theirs[id_]) for id_, last in mine.items() if id_ in theirs), default=0)


async def _lineage(store: EventStore, conversation: str) -> dict[str, int]:
    """Return a conversation and those whose past it shares, each with the last version that it shares."""
    found: dict[str, int] = {}
    id_, last = conversation, sys.maxsize
    while id_ not in found:
        found[id_] = last
        info = await store.info(id_)
        if info.parent is None or not info.base:
            break
        id_, last = info.parent.conversation, min(last, info.base)
    return found
