"""Read a log in several steps although content may be removed from it meanwhile.

What others append does not disturb a reader: it reads up to a version. But a redaction, a scavenge and an erasure
change what lies before that version, so that one step may have read what the next one lacks.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from timeline.errors import ConversationErased, RemovedMeanwhile, StoreCorrupt, TimelineError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from timeline.ports import ConversationInfo, EventStore

T = TypeVar("T")

_MOST_TRIES: Final = 5
"""How often a log is read if content is removed each time meanwhile."""


class LogAsSeen(NamedTuple):
    """What a log was before it was read, to find out later whether content was removed from it.

    Attributes:
        info: the facts about the conversation.
        scavenged: how many events of each type were removed until then.
    """

    info: ConversationInfo
    scavenged: Mapping[str, int]


async def seen(store: EventStore, conversation: str) -> LogAsSeen | None:
    """Return what a log is now; None where damage hides that: a read of the log reports the damage.

    Raises:
        ConversationNotFound: there is no such conversation.
        ConversationErased: it was erased.
    """
    with suppress(StoreCorrupt):
        info = await store.info(conversation)
        return LogAsSeen(info, await store.scavenged(conversation) if info.first_version > 1 else {})
    return None


async def removed_since(store: EventStore, conversation: str, before: LogAsSeen | None) -> bool:
    """Return whether content was removed from a log since.

    Each log that a redaction changes gets an event of it, the forks that share the content too. A fork that keeps a
    copy of an erased parent has no base any more.

    Raises:
        ConversationErased: the conversation was erased.
    """
    now = await seen(store, conversation)
    if before is None or now is None:
        return False
    if _past(now) != _past(before):
        return True
    if now.info.version > before.info.version:
        with suppress(StoreCorrupt):
            async for _ in store.read(conversation, after=before.info.version, types=["block.redacted"]):
                return True
    return False


def _past(log: LogAsSeen) -> tuple[object, ...]:
    return log.info.parent, log.info.base, log.info.first_version, log.scavenged


async def undisturbed(store: EventStore, read: Callable[[], Awaitable[T]], *conversations: str) -> T:
    """Return what ``read`` returns, or raise what it raises, as of a time at which nothing was removed.

    It reads again where content of one of the conversations was removed meanwhile.

    Raises:
        ConversationNotFound: there is no such conversation.
        ConversationErased: one was erased.
    """
    for _ in range(_MOST_TRIES - 1):
        before = {each: await seen(store, each) for each in conversations}
        failed: TimelineError | None = None
        try:
            found = await read()
        except TimelineError as error:
            failed = error
        if not any([await removed_since(store, each, log) for each, log in before.items()]):
            if failed is not None:
                raise failed
            return found
    return await read()


async def check_undisturbed(store: EventStore, conversation: str, before: LogAsSeen | None, cure: str) -> None:
    """Check that nothing was removed from a log since.

    It is for a reader that has handed on what it read, and cannot begin again.

    Raises:
        RemovedMeanwhile: content was removed, or the conversation erased; ``cure`` says what to do.
    """
    with suppress(ConversationErased):
        if not await removed_since(store, conversation, before):
            return
    raise RemovedMeanwhile(conversation, cure)
