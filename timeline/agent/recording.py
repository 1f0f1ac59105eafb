"""Record what an agent's loop brings: a provider's messages, a model's replies, and its calls.

Event ids are derived from the recorded content, so that to record the same reply or the same keyed message a second
time adds nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from timeline import checks
from timeline.agent.messages import placed_in_turns, read_messages, waiting_calls
from timeline.checks import given
from timeline.errors import DuplicateEvent, InvalidArgument
from timeline.events import ModelCalled, appended_block, derived_event_id
from timeline.frozen import repair_text
from timeline.log.protocol import Draft
from timeline.wire.chat_thoughts import asked_as
from timeline.wire.request import Request

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from timeline.agent.messages import MessageWire
    from timeline.blocks import Block
    from timeline.engine.conversation import Conversation
    from timeline.projection.context import RenderedContext
    from timeline.usage import Usage
    from timeline.wire.responses import ModelResponse

_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_OF_ERROR: Final = 200
"""Characters of an error that a failed call keeps."""


async def append_in_turns(
    conversation: Conversation, messages: Sequence[Sequence[Block]], at: datetime | None, *, ids: Sequence[UUID] = ()
) -> list[Block]:
    """Append the blocks of messages in the turns that they open or belong to, under ``ids`` if given."""
    blocks = placed_in_turns(messages, conversation.log.fold.turns)
    return await conversation.append_new(blocks, at, ids=ids)


async def append_messages(
    conversation: Conversation,
    messages: Sequence[Any],
    at: datetime | None,
    *,
    wire: MessageWire | None,
    keys: Sequence[str] | None,
) -> list[Block]:
    """Append a provider's messages, without those whose key was appended before. See `Timeline.append_messages`.

    Raises:
        InvalidBlock: a message is not valid; nothing was written.
        InvalidArgument: there is no such form, or there is not one key for each message.
    """
    checks.sequence("messages", messages)
    if keys is not None:
        _check_keys(keys, len(messages))
    names = keys or conversation.new_names(len(messages), at)
    id_ = conversation.id
    firsts = [stable_ids(1, id_, "message", name)[0] for name in names]
    # Ask before blocks are placed in turns: a known message, which is left out, must not open a turn.
    known = await conversation.store.known_ids(id_, firsts) if keys else set()
    new = [n for n, first in enumerate(firsts) if first not in known]
    read = read_messages(
        messages,
        wire=wire,
        names=names,
        since=new[0] if new else len(messages),
        earlier=lambda: waiting_calls(conversation.window),
    )
    ids = [stable_ids(len(blocks), id_, "message", name) for name, blocks in zip(names, read, strict=True)]
    return await append_in_turns(
        conversation, [read[n] for n in new], at, ids=list(chain.from_iterable(ids[n] for n in new))
    )


async def record_response(
    conversation: Conversation,
    response: ModelResponse,
    at: datetime | None,
    *,
    started_at: datetime | None,
    duration: float | None,
    request: Request | None,
) -> list[Block]:
    """Append a response's blocks and its `model.called`; return the stored blocks, even of a known response."""
    await conversation.recorded()  # the record of a context must come before its answer
    *ids, called_id = stable_ids(len(response.blocks) + 1, conversation.id, "response", response.key())
    called = answering(conversation, _of_model(response.called, request), started_at, duration, request)
    blocks = response.blocks if request is None else [asked_as(block, request.model) for block in response.blocks]
    drafts = await conversation.drafts(blocks, ids, at)
    drafts.append(Draft(called_id, at, payload=called))
    try:
        return await conversation.log.append(drafts, counter=conversation.counter.name)
    except DuplicateEvent:
        stored = await _stored_response(conversation, called_id, len(ids))
        if stored is None:
            raise
        return stored


def _of_model(called: ModelCalled, request: Request | None) -> ModelCalled:
    """Return a call with the model of its request, where the reply names none, as Bedrock's do not."""
    return called if called.model or request is None else called.model_copy(update={"model": request.model})


def answering(
    conversation: Conversation,
    called: ModelCalled,
    started_at: datetime | None,
    duration: float | None,
    request: Request | None,
) -> ModelCalled:
    """Add to a model call when it began, how many seconds it took, its request, and which render it answers.

    It answers the render from which its request was made; without a request, the newest one.

    Raises:
        InvalidArgument: the request is none, or another conversation's, or the duration is not one.
    """
    if duration is not None:
        checks.duration("duration", duration)
    rendered = conversation.window.rendered
    answers = None if rendered is None else rendered.version
    if request is not None:
        checks.of_kind("request", request, Request, "must be what context.request(…) returned")
        if request.conversation != conversation.id:
            raise InvalidArgument("request", f"was made from a context of {request.conversation!r}; record it there")
        answers = request.answers
    answered = called.model_copy(
        update={
            "started_at": given(started_at, "started_at"),
            "duration": None if duration is None else round(float(duration), 3),
            "answers": answers,
            "request": None if request is None else request.recorded(),
        }
    )
    conversation.note_call(answered, request)
    return answered


async def record_failure(
    conversation: Conversation,
    error: BaseException,
    at: datetime | None,
    *,
    request: Request | None,
    context: RenderedContext,
    duration: float | None,
) -> None:
    """Append a failed model call: its request, the context from which that was made, and the error."""
    await conversation.recorded()
    model = "" if request is None else request.model
    failed = ModelCalled(model=model, finish_reason="error", error=first_words_of_error(error))
    called = answering(conversation, failed, None, duration, request)
    if request is None:
        called = called.model_copy(update={"answers": context.answered_as})
    await conversation.log.commit([called], at=at)


def model_called(
    model: str,
    response_id: str | None,
    finish_reason: str | None,
    usage: Usage | None,
    error: str,
    *,
    server_tools: bool,
) -> ModelCalled:
    """Make the event of a model call that an application describes.

    Raises:
        InvalidArgument: a part of it cannot be recorded.
    """
    checks.text("error", error)
    fields: dict[str, Any] = {"model": model, "response_id": response_id, "finish_reason": finish_reason}
    fields["server_tools"] = server_tools
    if error:
        fields |= {"finish_reason": finish_reason or "error", "error": first_words_of_error(error)}
    if usage is not None:
        fields["usage"] = usage
    try:
        return ModelCalled(**fields)
    except ValidationError as problem:
        first = problem.errors()[0]
        raise InvalidArgument(".".join(map(str, first["loc"])), first["msg"]) from None


def first_words_of_error(error: BaseException | str) -> str:
    """Return the first words of an error, on one line."""
    words = " ".join(repair_text(str(error)).split()) or type(error).__name__
    return words if len(words) <= _MOST_OF_ERROR else f"{words[: _MOST_OF_ERROR - 1]}…"


async def _stored_response(conversation: Conversation, called_id: UUID, blocks: int) -> list[Block] | None:
    """Return the stored blocks of a recorded response: those right before its `model.called`."""
    store, id_ = conversation.store, conversation.id
    calls = [event.version async for event in store.read(id_, types=["model.called"]) if event.id == called_id]
    if not calls:
        return None
    events = await store.read_versions(id_, range(calls[0] - blocks, calls[0]))
    return [block for event in events if (block := appended_block(event.payload)) is not None]


def _check_keys(keys: Sequence[str], messages: int) -> None:
    checks.sequence("keys", keys)
    checks.texts("keys", keys)
    for key in keys:
        checks.written("keys", key)
    if len(keys) != messages:
        raise InvalidArgument("keys", f"there are {len(keys)} for {messages} messages")
    if len({*keys}) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidArgument("keys", f"{twice!r} names two messages; a key names one for ever")


def stable_ids(count: int, *parts: str) -> list[UUID]:
    """Derive event ids from the recorded content alone, not from the time, so that a repetition is recognised."""
    return [derived_event_id(_NO_TIME, *parts, str(number)) for number in range(count)]
