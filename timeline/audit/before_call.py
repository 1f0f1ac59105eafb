"""Where a model call begins: the version of the log at which all is there that it answers, and nothing of it.

What a policy decided for the call comes behind that version, so that another policy can decide in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.audit.calls import find_call, recorded_calls
from timeline.events import BlockAppended, ContextRendered, ConversationOpened, ModelCalled
from timeline.events.other_payloads import StageApproved, StageEntered, StageRewound
from timeline.fold.turns import RESPONSE_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.events import Event, Payload
    from timeline.ports import EventStore

HAPPENED: Final = (ModelCalled, StageEntered, StageApproved, StageRewound)
"""What happens to a conversation besides its blocks, whichever policy decides."""


async def version_before_call(store: EventStore, conversation: str, number: int) -> int:
    """Return the version right before a model call.

    Raises:
        ConversationNotFound: there is no such conversation.
        CallNotFound: it has no model call of this number.
    """
    calls = await recorded_calls(store, conversation)
    place = find_call(conversation, calls, number)
    call = calls[place]
    answers = call.called.answers
    until = sent(call.called, call.version, await store.read_versions(conversation, [answers] if answers else []))
    for before in reversed([1, *(known.version for known in calls[:place])]):  # a retry was sent what its call was sent
        events = [event async for event in store.read(conversation, after=before - 1, until=until)]
        if (version := newest_that_precedes(events)) is not None:
            return version
    return 1


def sent(called: ModelCalled, version: int, events: Iterable[Event]) -> int:
    """Return the last version of the log that a call may have been sent.

    What was said while the model was answering is not in the context that the call was sent.

    Args:
        called: the call.
        version: its version.
        events: among which is the context that it answers, if it was recorded.
    """
    contexts = {event.version: event.payload for event in events}
    context = contexts.get(called.answers or 0)
    return min(version - 1, context.version) if isinstance(context, ContextRendered) else version - 1


def newest_that_precedes(events: Iterable[Event]) -> int | None:
    """Return the version of the newest event that a call may directly follow; None without any."""
    return max((event.version for event in events if _precedes(event.payload)), default=None)


def _precedes(payload: Payload) -> bool:
    """Return whether a call may directly follow an event: it is neither part of its response nor decided for it."""
    if isinstance(payload, BlockAppended):
        return type(payload.block) not in RESPONSE_BLOCKS
    return isinstance(payload, (*HAPPENED, ConversationOpened))
