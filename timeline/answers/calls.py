"""The model calls of a conversation, a row each, and the context that one was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.audit.calls import decisions_before
from timeline.audit.recorded_calls import find_contexts, recorded_calls
from timeline.audit.replay import rebuild_contexts
from timeline.blocks import instant_text
from timeline.frozen import Frozen
from timeline.log.undisturbed import undisturbed
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline.audit.recorded_calls import RecordedCall
    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext


class CallRow(Frozen):
    """A model call: its number from 1, the version of its event, and the recorded context that it answers.

    ``wire`` and ``sha256`` are empty where its request was not recorded. ``decisions`` is how many changed the context
    since the call before; ``error`` is empty unless it failed.
    """

    number: int
    version: int
    at: str
    wire: str
    model: str
    sha256: str
    context: int | None
    usage: Usage
    duration: float | None
    decisions: int
    finish_reason: str | None
    error: str


def call_row(call: RecordedCall, decisions: int) -> CallRow:
    """Return the row of a call, with the number of decisions before it."""
    called, request = call.called, call.called.request
    return CallRow(
        number=call.number,
        version=call.version,
        at=instant_text(call.at),
        wire="" if request is None else request.wire,
        model=called.model if request is None else request.model,
        sha256="" if request is None else request.sha256,
        context=called.answers,
        usage=called.usage,
        duration=called.duration,
        decisions=decisions,
        finish_reason=called.finish_reason,
        error=called.error,
    )


async def call_rows(store: EventStore, conversation: str) -> list[CallRow]:
    """Return the rows of all calls of a conversation that are there, oldest first.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    calls = await recorded_calls(store, conversation)
    decided = await decisions_before(store, conversation, calls)
    return [call_row(call, len(before)) for call, before in zip(calls, decided, strict=True)]


async def context_of(store: EventStore, conversation: str, number: int) -> RenderedContext:
    """Return the context that a call was made from, with its system prompt, tools and tail.

    Raises:
        CallNotFound: there is no such call.
        CallUnavailable: its context was not recorded.
        ContextUnavailable: its context cannot be built again.
    """

    async def read() -> RenderedContext:
        chosen = await find_contexts(store, conversation, [f"call:{number}"])
        [context] = await rebuild_contexts(store, conversation, chosen)
        return context

    return await undisturbed(store, read, conversation)
