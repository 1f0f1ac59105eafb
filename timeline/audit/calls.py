"""Model calls by number: the request, built again from the log and compared with its hash, and the reply.

The log keeps no body. A call names the recorded context from which it was made. That context is built again and encoded
by the call's wire, with its model and parameters. The sha256 of the bytes then proves that it is the same body.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from timeline.audit.decisions import DECISIONS, CallDecision, decision_of
from timeline.audit.recorded_calls import find_call, recorded_calls
from timeline.audit.redacting import erased_events
from timeline.audit.replay import (
    RecordedContext,
    overwritten_blocks,
    rebuilt,
    sound_values,
    without_proof,
)
from timeline.blocks import instant_text
from timeline.errors import CallUnavailable, ContextUnavailable
from timeline.events import CompactionReverted, ContextRendered, ModelCalled, appended_block
from timeline.fold.turns import RESPONSE_BLOCKS
from timeline.frozen import sha256_hex
from timeline.log.history import base_fold, fold_near
from timeline.log.in_turns import in_turns
from timeline.log.undisturbed import removed_since, seen, undisturbed
from timeline.projection.cache_break import Cause
from timeline.projection.diff import PrefixBreaks
from timeline.projection.project import Projector
from timeline.wire import WIRES, encoder_number
from timeline.wire.request import body_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from datetime import datetime

    from timeline.audit.recorded_calls import RecordedCall
    from timeline.blocks import Block
    from timeline.events import CallRequest, Event
    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext
    from timeline.usage import Usage
    from timeline.wire.neutral import NeutralContext

SCAVENGED: Final = Cause("unavailable", "not known: the call before was scavenged")
"""The cause for the first call behind scavenged events."""


@dataclass(frozen=True, slots=True)
class Call:
    """A model call: what it was sent, what came back, and what led to it. `Timeline.call` returns one.

    Attributes:
        n: its number in the conversation, from 1; failed calls and retries count.
        version: of its event.
        at: time of that event.
        wire: the wire format that it was sent in; empty where its request was not recorded.
        model: id of the model that was asked; of a call without a recorded request, the one that answered.
        answered_by: id of the model that answered, as the provider reported it; empty where it did not.
        parameters: the parameters of the request besides the model.
        request: the body, built again; None where that cannot be proved, for the reason ``unproved``.
        text: the body as the compact JSON that ``sha256`` is of; None as for ``request``.
        sha256: hash of the body as it was recorded; empty where it was not.
        body: whether ours was sent, or one that a framework made of the same context by itself.
        unproved: why there is no ``request``; None if there is one.
        context: version of the recorded context that it answers; None where there is none.
        reply: the blocks of the response.
        usage: the tokens that the provider reported.
        finish_reason: why it ended, in the provider's word; ``error`` for a failed call.
        error: first words of the error of a failed call.
        duration: seconds that it took; None where that was not measured.
        decisions: what changed the context since the call before, oldest first; where that call was scavenged, since
            the version from which on the log is whole.
        cause: why the provider's cached prefix of the call before did not hold; None where it did, and for the first
            call. Its kinds are those of `diff`, and ``wire``, ``model``, or ``unavailable`` where one of the two
            contexts cannot be built again, or the call before was scavenged.
    """

    number: int
    version: int
    at: datetime
    wire: str
    model: str
    answered_by: str
    parameters: dict[str, Any]
    request: dict[str, Any] | None = field(repr=False)
    text: str | None = field(repr=False)
    sha256: str
    body: Literal["ours", "framework"]
    unproved: str | None
    context: int | None
    reply: tuple[Block, ...] = field(repr=False)
    usage: Usage
    finish_reason: str | None
    error: str
    duration: float | None
    decisions: tuple[CallDecision, ...]
    cause: Cause | None

    def proved(self) -> str:
        """Return the body as the compact JSON that the recorded sha256 is of.

        Raises:
            CallUnavailable: it cannot be built again, or differs from what was recorded.
        """
        if self.text is None:
            raise CallUnavailable(self.number, self.unproved or "request")
        return self.text

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of `timeline call --json`."""
        return {
            "number": self.number,
            "version": self.version,
            "at": instant_text(self.at),
            "wire": self.wire,
            "model": self.model,
            "answered_by": self.answered_by,
            "parameters": self.parameters,
            "request": self.request,
            "sha256": self.sha256,
            "body": self.body,
            "unproved": self.unproved,
            "context": self.context,
            "reply": [block.dump() for block in self.reply],
            "usage": self.usage.model_dump(mode="json"),
            "finish_reason": self.finish_reason,
            "error": self.error,
            "duration": self.duration,
            "decisions": [decision.dump() for decision in self.decisions],
            "cause": None
            if self.cause is None
            else {"kind": self.cause.kind, "text": self.cause.text, "version": self.cause.version},
        }


async def decisions_before(
    store: EventStore, conversation: str, calls: Sequence[RecordedCall]
) -> list[tuple[CallDecision, ...]]:
    """Return the decisions before each of all calls of a conversation, as `Call.decisions` has them."""
    types = [cls.model_fields["type"].default for cls in DECISIONS]
    events = [event async for event in store.read(conversation, types=types)]
    whole = (await store.info(conversation)).first_version
    return [_decisions(call, _call_before(calls, place), events, whole) for place, call in enumerate(calls)]


async def read_call(store: EventStore, conversation: str, number: int) -> Call:
    """Return a model call by its number.

    Raises:
        ConversationNotFound: there is no such conversation.
        CallNotFound: there is no such call.
    """

    async def read() -> Call:
        calls = await recorded_calls(store, conversation)
        place = find_call(conversation, calls, number)
        [call] = [call async for call in _built(store, conversation, calls, range(place, place + 1))]
        return call

    return await undisturbed(store, read, conversation)


async def read_calls(store: EventStore, conversation: str) -> AsyncIterator[Call]:
    """Iterate over all model calls of a conversation, oldest first, in one pass over its log.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    number = 0
    while True:
        before = await seen(store, conversation)
        calls = await recorded_calls(store, conversation)
        first = bisect_right(calls, number, key=lambda call: call.number)
        async with aclosing(_built(store, conversation, calls, range(first, len(calls)))) as built:  # type: ignore[type-var]  # a generator
            async for call in built:
                if _may_be_of_before(call) and await removed_since(store, conversation, before):
                    break  # begin again with this call, as it is now
                yield call
                number = call.number
            else:
                return


def _may_be_of_before(call: Call) -> bool:
    """Return whether a call may have been read partly before, partly after content of its context was removed."""
    return call.unproved == "mismatch" or (call.unproved == "redacted" and bool(call.sha256))


async def answered_by(store: EventStore, conversation: str, calls: Sequence[RecordedCall], version: int) -> int | None:
    """Return the number of the call whose response a block is part of; None where it is part of none.

    Args:
        store: holds the conversation.
        conversation: its id.
        calls: all of its calls.
        version: the block's.
    """
    behind = bisect_right(calls, version, key=lambda call: call.version)
    for place in (behind, behind - 1):  # `record` appends a response before its call; some frameworks append it behind
        if not 0 <= place < len(calls):
            continue
        since = calls[place - 1].version if place else 0
        after = calls[place + 1].version if place + 1 < len(calls) else None
        until = None if after is None else after - 1
        events = [event async for event in store.read(conversation, after=since, until=until)]
        asked = next((appended_block(event.payload) for event in events if event.version == version), None)
        if asked is not None and asked in _reply(calls[place], since, after, events):
            return calls[place].number
    return None


def proved_body(number: int, neutral: NeutralContext, request: CallRequest) -> str:
    """Build the body of a recorded request from its context, as compact JSON, and compare the hashes.

    Raises:
        CallUnavailable: the wire's encoder has another number and writes other bytes, the hash was erased, or the body
            has another one.
    """
    if not request.sha256:  # exported without what is redacted, see `timeline.audit.redacting`
        raise CallUnavailable(number, "redacted")
    if request.wire not in WIRES:
        raise CallUnavailable(number, "wire")
    text = body_text(neutral, request)
    # Most contexts have the same bytes under every number of an encoder, and then the hash proves it.
    if sha256_hex(text) != request.sha256:
        raise CallUnavailable(number, "mismatch" if encoder_number(request.wire) == request.encoder else "wire")
    return text


async def _built(
    store: EventStore, conversation: str, calls: Sequence[RecordedCall], places: range
) -> AsyncIterator[Call]:
    """Build the calls at consecutive places, each with the decisions since the call before."""
    erased = await erased_events(store, conversation)
    calls = [_without_redacted(call, erased) for call in calls]
    first = max(0, places.start - 1)
    contexts = _Contexts(store, conversation, erased)
    await contexts.find(calls[first : places.stop])
    whole = (await store.info(conversation)).first_version
    breaks = PrefixBreaks()
    earlier: RenderedContext | str | None = None
    for place in places:
        call, before = calls[place], _call_before(calls, place)
        after = calls[place + 1].version if place + 1 < len(calls) else None
        since = 0 if before is None else min(before.called.answers or before.version, before.version)
        until = None if after is None else after - 1
        events = [erased.get(e.version, e) async for e in store.read(conversation, after=since, until=until)]
        context = _for_model(await contexts.of(call), call)
        if before is not None and place == places.start:
            earlier = _for_model(await contexts.of(before), before)
        contexts.forget(before)
        yield _call(
            call,
            context,
            reply=_reply(call, 0 if before is None else before.version, after, events),
            decisions=_decisions(call, before, events, whole),
            cause=_cause(before, earlier, call, context, breaks),
        )
        earlier = context


def _call_before(calls: Sequence[RecordedCall], place: int) -> RecordedCall | None:
    """Return the call right before the one at a place; None for the first one, and where it was scavenged."""
    earlier = calls[place - 1] if place else None
    return earlier if earlier is not None and earlier.number == calls[place].number - 1 else None


def _without_redacted(call: RecordedCall, erased: Mapping[int, Event]) -> RecordedCall:
    """Return a call without the hash of a body with redacted content, and without the words of its error."""
    erased_event = erased.get(call.version)
    return (
        call._replace(called=erased_event.payload)
        if erased_event is not None and isinstance(erased_event.payload, ModelCalled)
        else call
    )


class _Contexts:
    """The recorded contexts of some calls, built in one pass over the log; each is kept until its last use."""

    def __init__(self, store: EventStore, conversation: str, erased: Mapping[int, Event]) -> None:
        self._store = store
        self._erased = erased
        self._conversation = conversation
        self._there: dict[int, RecordedContext] = {}
        self._not_there: dict[int, str] = {}
        """Why there is no context in an event that is there."""
        self._wanted: dict[int, int] = {}
        self._built: dict[int, RenderedContext | str] = {}
        self._pass: AsyncIterator[tuple[int, RenderedContext | str]] | None = None

    async def find(self, calls: Sequence[RecordedCall]) -> None:
        """Read the records of the contexts that the calls answer."""
        for call in calls:
            if call.called.answers is not None:
                self._wanted[call.called.answers] = call.number
        events = await self._store.read_versions(self._conversation, self._wanted)
        redacted = await overwritten_blocks(self._store, self._conversation)
        for event in [self._erased.get(event.version, event) for event in events]:
            if isinstance(event.payload, ContextRendered) and 0 <= event.payload.version < event.version:
                rendered = without_proof(event.payload, event.version, redacted)
                self._there[event.version] = RecordedContext(0, event.version, event.at, rendered)
            else:  # a later release recorded it, or the log was changed
                is_later = event.type == "context.rendered" and not isinstance(event.payload, ContextRendered)
                self._not_there[event.version] = "projection" if is_later else "mismatch"
        self._pass = _rebuilding(self._store, self._conversation, list(self._there.values()))

    async def of(self, call: RecordedCall) -> RenderedContext | str:
        """Return a call's context, or the reason why there is none."""
        answers = call.called.answers
        if answers is None:
            return "unrecorded"
        if answers not in self._there:
            return self._not_there.get(answers, "retention")
        while answers not in self._built and self._pass is not None:
            version, built = await anext(self._pass)
            self._built[version] = built
        return self._built[answers]

    def forget(self, call: RecordedCall | None) -> None:
        """Drop the context of a call, unless a later call was made from it, too."""
        if call is not None and call.called.answers is not None and self._wanted[call.called.answers] <= call.number:
            self._built.pop(call.called.answers, None)


async def _rebuilding(
    store: EventStore, conversation: str, recorded: Sequence[RecordedContext]
) -> AsyncIterator[tuple[int, RenderedContext | str]]:
    """Build recorded contexts in the order in which they were projected: each with its version, or why it cannot be."""
    values = await sound_values(store, recorded)
    projector = Projector()
    waiting = sorted(recorded, key=lambda context: context.rendered.version)
    if not waiting:
        return
    # An empty fold, unless history was scavenged: contexts from before the kept snapshot cannot be built then.
    fold = await base_fold(store, conversation)
    for context in [context for context in waiting if context.rendered.version < fold.version]:
        waiting.remove(context)
        yield context.version, "retention"
    if waiting:  # what a snapshot gets wrong, the fingerprints show
        fold = await fold_near(store, conversation, until=waiting[0].rendered.version)
    reader = in_turns(store.read(conversation, after=fold.version))
    for context in waiting:
        while fold.version < context.rendered.version:
            event = await anext(reader)
            if isinstance(event.payload, CompactionReverted):
                # Behind an undo the fold must not have its compactions: fold again up to here, without them.
                fold = await fold_near(store, conversation, until=event.version - 1, without=event.payload.versions)
            fold.apply(event.version, event.at, event.payload)
        try:
            yield context.version, rebuilt(conversation, context, fold.window, values, projector)
        except ContextUnavailable as gap:
            yield context.version, gap.reason


def _call(
    call: RecordedCall,
    context: RenderedContext | str,
    *,
    reply: tuple[Block, ...],
    decisions: tuple[CallDecision, ...],
    cause: Cause | None,
) -> Call:
    called, request = call.called, call.called.request
    text: str | None = None
    unproved: str | None = None
    try:
        text = _proved(call, context)
    except CallUnavailable as gap:
        unproved = gap.reason
    return Call(
        number=call.number,
        version=call.version,
        at=call.at,
        wire="" if request is None else request.wire,
        model=called.model if request is None else request.model,
        answered_by=called.model,
        parameters={} if request is None else dict(request.parameters),
        request=None if text is None else json.loads(text),
        text=text,
        sha256="" if request is None else request.sha256,
        body="ours" if request is None else request.body,
        unproved=unproved,
        context=called.answers,
        reply=reply,
        usage=called.usage,
        finish_reason=called.finish_reason,
        error=called.error,
        duration=called.duration,
        decisions=decisions,
        cause=cause,
    )


def _proved(call: RecordedCall, context: RenderedContext | str) -> str:
    """Return a call's body as compact JSON.

    Raises:
        CallUnavailable: its request or its context was not recorded, or cannot be built again.
    """
    if call.called.request is None:
        raise CallUnavailable(call.number, "request")
    if isinstance(context, str):
        raise CallUnavailable(call.number, context)
    return proved_body(call.number, context.neutral, call.called.request)


def _reply(call: RecordedCall, since: int, until: int | None, events: Sequence[Event]) -> tuple[Block, ...]:
    """Return the blocks of a call's response: those with its id, or else those right before the call, or right behind.

    `record` appends them before the call, in one transaction. Where a framework keeps the messages, they come behind.
    """
    if call.called.finish_reason == "error":
        return ()
    blocks = [
        (event.version, block if type(block := appended_block(event.payload)) in RESPONSE_BLOCKS else None)
        for event in events
        if since < event.version and (until is None or event.version < until)
    ]
    id_ = call.called.response_id
    if id_ and (named := [block for _, block in blocks if block is not None and block.response_id == id_]):
        return tuple(named)
    before = _run([block for version, block in reversed(blocks) if version < call.version])
    return tuple(before[::-1] or _run([block for version, block in blocks if version > call.version]))


def _run(blocks: Iterable[Block | None]) -> list[Block]:
    found: list[Block] = []
    for block in blocks:
        if block is None:
            break
        found.append(block)
    return found


def _decisions(
    call: RecordedCall, before: RecordedCall | None, events: Sequence[Event], whole: int
) -> tuple[CallDecision, ...]:
    """Return the decisions between the context of the call before and this call's context.

    Where the call before was scavenged, the decisions begin with ``whole``, the version from which on all events are
    there. Earlier decisions that the log still has were made for scavenged calls.
    """
    since = before.called.answers or before.version if before is not None else whole - 1 if call.number > 1 else 0
    until = call.called.answers or call.version
    return tuple(
        decision_of(event) for event in events if since < event.version < until and isinstance(event.payload, DECISIONS)
    )


def _cause(
    before: RecordedCall | None,
    earlier: RenderedContext | str | None,
    call: RecordedCall,
    context: RenderedContext | str,
    breaks: PrefixBreaks,
) -> Cause | None:
    """Return why this call does not begin with the prefix that the provider cached for the call before."""
    if before is None or earlier is None:
        return SCAVENGED if call.number > 1 else None
    if isinstance(earlier, str) or isinstance(context, str):
        return Cause("unavailable", "not known: one of the two contexts cannot be built again")
    was, now = before.called.request, call.called.request
    if was is not None and now is not None:
        if was.wire != now.wire:
            return Cause("wire", f"the wire changed from {was.wire} to {now.wire}")
        if was.model != now.model:
            return Cause("model", f"the model changed from {was.model} to {now.model}")
    return breaks.between(earlier, context, "" if now is None else now.wire)


def _for_model(context: RenderedContext | str, call: RecordedCall) -> RenderedContext | str:
    """Return a context as it was sent to the model of a call, since a wire encodes by its model's rules."""
    if isinstance(context, str) or (request := call.called.request) is None:
        return context
    return context.model_copy(update={"neutral": context.neutral.model_copy(update={"model": request.model})})
