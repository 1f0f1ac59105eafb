"""The messages of a whole conversation, for a runtime that keeps its history in the log alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.events import BlockAppended, BlockRedacted, UnknownPayload
from timeline.fold.fold import Fold
from timeline.log.history import disowned_versions
from timeline.log.in_turns import in_turns
from timeline.log.off_loop import off_loop
from timeline.planning.hide import is_notice
from timeline.projection.project import Projector
from timeline.wire import MESSAGES, encoder
from timeline.wire.neutral import NeutralContext

if TYPE_CHECKING:
    from timeline.agent.messages import MessageWire
    from timeline.events import Payload
    from timeline.ports import EventStore


async def whole_messages(store: EventStore, conversation: str, wire: MessageWire, *, model: str) -> list[Any]:
    """Return what was said, in a provider's form. See `Timeline.messages`."""
    encode = encoder(wire)
    disowned = await disowned_versions(store, conversation)
    fold = Fold(conversation)
    async for event in in_turns(store.read(conversation)):
        if event.version not in disowned and _is_said(event.payload):
            fold.apply(event.version, event.at, event.payload)
    window = fold.window

    def work() -> list[Any]:
        entries, _ = Projector().entries(window)
        if not entries:  # without entries, the request would begin with a line in the user's name
            return []
        messages: list[Any] = encode(NeutralContext(entries=tuple(entries), model=model))[MESSAGES[wire]]
        return messages

    return await off_loop(len(window.items), work)


def _is_said(payload: Payload) -> bool:
    """Return whether a payload appends a block that was said, or redacts one; the runtime's notices were not said."""
    if isinstance(payload, BlockAppended):
        return not is_notice(payload.block)
    return isinstance(payload, UnknownPayload | BlockRedacted)
