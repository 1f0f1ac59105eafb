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
    call = calls[find_call(conversation, calls, number)]
    before = next((known.version for known in reversed(calls) if known.version < call.version), 1)
    events = [event async for event in store.read(conversation, after=before - 1, until=call.version - 1)]
    answers = call.called.answers
    contexts = await store.read_versions(conversation, [] if answers is None else [answers])
    return beginning(events, [*contexts, *events], call.called, call.version)


def beginning(events: Iterable[Event], contexts: Iterable[Event], called: ModelCalled, version: int) -> int:
    """Return the version right before a call.

    Args:
        events: those since the call before, that one included.
        contexts: events among which is the context that the call answers, if it was recorded.
        called: the call.
        version: its version.
    """
    # What was said while the model was answering is not in the context that the call was sent.
    answered = {e.version: e.payload.version for e in contexts if isinstance(e.payload, ContextRendered)}
    until = min(version - 1, answered.get(called.answers or 0, version))
    return max((event.version for event in events if event.version <= until and _precedes(event.payload)), default=1)


def _precedes(payload: Payload) -> bool:
    """Return whether a call may directly follow an event: it is neither part of its response nor decided for it."""
    if isinstance(payload, BlockAppended):
        return type(payload.block) not in RESPONSE_BLOCKS
    return isinstance(payload, (*HAPPENED, ConversationOpened))
