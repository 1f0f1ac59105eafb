"""Read a log in several steps although content may be removed from it meanwhile.

What others append does not disturb a reader: it reads up to a version. But a redaction, a scavenge and an erasure
change what lies before that version, so that one step may have read what the next one lacks.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from timeline.errors import RemovedMeanwhile, StoreCorrupt, TimelineError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.ports import EventStore

T = TypeVar("T")

Removals: TypeAlias = object
"""Equal to another one of the same log if nothing of that was removed in between."""
_MOST_TRIES: Final = 5
"""How often a log is read if content is removed each time meanwhile."""


async def removals(store: EventStore, conversation: str) -> Removals:
    """Return what changes whenever content of a log is removed.

    Every log that a redaction changes gets an event, the forks that share the content too. An erasure takes the parent
    from a fork that keeps a copy. Of a log whose redactions do not read, it is unknown what was removed.

    Raises:
        ConversationNotFound: there is no such conversation.
        ConversationErased: it was erased.
    """
    with suppress(StoreCorrupt):  # whoever reads the log says so
        info = await store.info(conversation)
        redactions = [event.version async for event in store.read(conversation, types=["block.redacted"])]
        return info.parent, info.base, redactions, await store.scavenged(conversation)
    return None


async def undisturbed(store: EventStore, read: Callable[[], Awaitable[T]], *conversations: str) -> T:
    """Return what ``read`` returns, or raise what it raises, as of a time at which nothing was removed.

    It reads again where content of a conversation was removed meanwhile.

    Raises:
        ConversationNotFound: there is no such conversation.
        ConversationErased: one was erased.
    """
    for _ in range(_MOST_TRIES - 1):
        before = [await removals(store, each) for each in conversations]
        failed: TimelineError | None = None
        try:
            found = await read()
        except TimelineError as error:
            failed = error
        if [await removals(store, each) for each in conversations] == before:
            if failed is not None:
                raise failed
            return found
    return await read()


async def check_undisturbed(store: EventStore, conversation: str, before: Removals, cure: str) -> None:
    """Check that nothing was removed from a log since `removals` returned ``before``.

    It is for a reader that has handed on what it read, and cannot begin again.

    Raises:
        RemovedMeanwhile: content was removed; ``cure`` says what to do.
        ConversationErased: it was erased.
    """
    if await removals(store, conversation) != before:
        raise RemovedMeanwhile(conversation, cure)
