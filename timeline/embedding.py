"""What an agent runtime does with a conversation besides appending to it and rendering it: recording and reading back.

Each method of `Embedding` is thin: what a provider's reply or a recall answer looks like is told by modules of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio.to_thread
from pydantic import ValidationError

from timeline import checks
from timeline.agent.calibration import FACTS, Calibration, calibrate
from timeline.agent.injection import QUESTION, injected_pair
from timeline.agent.messages import placed_in_turns, read_messages
from timeline.agent.recall import RecallTool
from timeline.agent.streaming import StreamRecording
from timeline.blocks import with_media
from timeline.checks import moment
from timeline.errors import DuplicateEvent, InvalidArgument
from timeline.events import ModelCalled, appended_block, derived_event_id, event_id, event_ids
from timeline.log.protocol import Draft
from timeline.view import TimelineView
from timeline.wire.responses import read_response

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Sequence
    from uuid import UUID

    from timeline.agent.messages import MessageWire
    from timeline.agent.recall import RecallWire
    from timeline.blocks import Block
    from timeline.events import Usage
    from timeline.log.stored import StoredLog
    from timeline.wire.responses import ModelResponse

_THREAD_CHARACTERS: Final = 1_000_000
"""Counting more text than this (a tenth of a second) leaves the event loop for a thread, where it is slower."""

_MOST_RECALLED: Final = 4_000
_CALIBRATED_EVENTS: Final = 2_000
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Embedding(TimelineView):
    """The half of `timeline.Timeline` that decides nothing: an agent loop records its replies here."""

    _log: StoredLog
    _injected: tuple[str, ...] = ()
    """Texts for the tail of the next recorded render."""

    async def count(self, blocks: Sequence[Block]) -> list[int]:
        """Count blocks with the policy's counter; much text is counted off the event loop."""
        texts = [block.countable() for block in blocks]
        if sum(map(len, texts)) > _THREAD_CHARACTERS:
            counts = await anyio.to_thread.run_sync(self.counter.count_many, texts)
        else:
            counts = self.counter.count_many(texts)
        return [with_media(b, n) for n, b in zip(counts, blocks, strict=True)]

    async def record(
        self, reply: Any, *, started_at: datetime | None = None, now: datetime | None = None
    ) -> list[Block]:
        """Append a model's reply in one transaction: its blocks, and the `model.called` event; return the blocks.

        The same reply a second time adds nothing, and gives the blocks that are stored.

        Args:
            reply: an Anthropic message, an OpenAI chat completion or a Google content response (of several choices the
                first), or an OpenAI response, as the SDK's object or its dict.
            started_at: when the request was sent.
            now: the time of the blocks.

        Raises:
            UnknownResponse: the reply has another shape; nothing was written.
            StoreError: the store refused; nothing was written.
        """
        at = moment(now, self._clock)
        return await self._record_response(read_response(reply, unnamed=str(event_id(at))), started_at, at)

    def recording(
        self, stream: AsyncIterable[Any], *, started_at: datetime | None = None, now: datetime | None = None
    ) -> StreamRecording:
        """Return a stream that hands on every event of a model's stream, and is recorded when it ends.

        Enter it with ``async with`` and iterate over it. When the stream breaks, or the loop is left or cancelled, what
        arrived is recorded as one response, its completion marked with ``meta["interrupted"]``. A call whose arguments
        were cut off is not recorded as a call; the marked completion keeps it in its meta.

        Args:
            stream: of Anthropic message events, OpenAI chat chunks, OpenAI response events or Google content chunks.
            started_at: when the request was sent.
            now: the time of the blocks; the moment of recording unless given.
        """
        at = moment(now, self._clock)

        async def save(response: ModelResponse) -> list[Block]:
            return await self._record_response(response, started_at, moment(now, self._clock))

        return StreamRecording(stream, unnamed=str(event_id(at)), save=save)

    async def record_stream(
        self,
        stream: AsyncIterable[Any],
        *,
        on_event: Callable[[Any], object] | None = None,
        started_at: datetime | None = None,
        now: datetime | None = None,
    ) -> list[Block]:
        """Read a model's stream to its end and record it; return the blocks. See `recording`.

        Args:
            stream: of a provider's events.
            on_event: called with each event as it comes.
            started_at: when the request was sent.
            now: the time of the blocks.

        Raises:
            UnknownResponse: no event of a model's response came.
            StoreError: the store refused.
        """
        async with self.recording(stream, started_at=started_at, now=now) as recording:
            async for event in recording:
                if on_event is not None:
                    on_event(event)
        return recording.blocks

    async def append_messages(
        self,
        messages: Sequence[Any],
        *,
        wire: MessageWire | None = None,
        keys: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> list[Block]:
        """Append a provider's messages as blocks, in one transaction; return those that were appended.

        All of them are new, unless ``keys`` says otherwise: a key names a message for ever, and a message whose key was
        appended before is left out. So a history that grew can be given again as a whole.

        Args:
            messages: in the form of Anthropic's messages, OpenAI's chat, Google's contents, or the AI SDK's model or
                interface messages; contents may hold the SDK's objects.
            wire: which form it is; told by the messages unless given.
            keys: a key for each message, unique in the conversation.
            now: the time of the blocks.

        Raises:
            InvalidBlock: one of them is no message; nothing was written.
            InvalidArgument: there is no such form, or the keys do not name each of them.
            StoreError: the store refused; nothing was written.
        """
        at = moment(now, self._clock)
        checks.listed("messages", messages)
        if keys is not None:
            _check_keys(keys, len(messages))
        batch = str(event_id(at))
        names = keys or [f"{batch}_{number}" for number in range(len(messages))]
        read = read_messages(messages, wire=wire, names=names)
        ids = [stable_ids(len(blocks), self.id, "message", name) for name, blocks in zip(names, read, strict=True)]
        known = await self._store.known_ids(self.id, list(chain.from_iterable(ids))) if keys else set()
        new = [n for n, own in enumerate(ids) if not known.intersection(own)]
        return await self._append_read([read[n] for n in new], at, ids=list(chain.from_iterable(ids[n] for n in new)))

    async def inject(
        self,
        text: str,
        *,
        keep: Literal["nowhere", "pair"] = "nowhere",
        question: str = QUESTION,
        now: datetime | None = None,
    ) -> list[Block]:
        """Tell the model something that is neither its user's nor its tools', without touching the system prompt.

        Args:
            text: what to tell it.
            keep: ``nowhere``: it stands in the uncached tail of the next recorded render, and is gone after that.
                ``pair``: it is appended, as the assistant's answer to a question of the user's.
            question: what the user asks in a pair.
            now: the time of the pair.

        Returns:
            The blocks that were appended, none for a text that is kept nowhere.

        Raises:
            InvalidArgument: the text or the question is blank, or ``keep`` is something else.
            StoreError: the store refused; nothing was written.
        """
        checks.choice("keep", keep, ("nowhere", "pair"))
        checks.text("text", text)
        checks.text("question", question)
        blocks = injected_pair(text, self.window, question=question)
        if keep == "nowhere":
            self._injected = (*self._injected, text)
            return []
        return await self._append_new(blocks, moment(now, self._clock))

    def recall_tool(self, wire: RecallWire, *, max_tokens: int | None = None) -> RecallTool:
        """Return a tool by which the model reads back any path that its context prints.

        Args:
            wire: whose schema it has: ``anthropic``, ``openai_chat``, ``openai_responses``, ``gemini`` or ``ai_sdk``.
            max_tokens: most tokens of an answer; 4,000 unless given, or a tenth of the policy's limit where that is
                less.

        Raises:
            InvalidPolicy: there is no such wire.
            InvalidArgument: ``max_tokens`` is no number of tokens.
        """
        if max_tokens is not None:
            checks.positive("max_tokens", max_tokens)
        return RecallTool(
            wire,
            read=self.read,
            paths=self._log.paths_taken,
            count=self.count,
            counter=self.counter,
            max_tokens=max_tokens or min(_MOST_RECALLED, self.policy.max_tokens // 10),
        )

    async def calibration(self) -> Calibration:
        """Return how the provider's tokens compare with ours, from the newest model calls that were recorded.

        A policy counts by it as ``policy.calibrated(calibration.ratio)``.
        """
        newest = max(0, self.version - _CALIBRATED_EVENTS)
        return calibrate([event async for event in self._store.read(self.id, after=newest, types=FACTS)])

    async def record_model_call(
        self,
        usage: Usage | None = None,
        *,
        model: str = "",
        response_id: str | None = None,
        finish_reason: str | None = None,
        started_at: datetime | None = None,
        now: datetime | None = None,
    ) -> None:
        """Record a model call: what it used, how it ended, and (by version) the render it answers: the newest one.

        Raises:
            InvalidArgument: one of them is nothing that can be recorded.
            StoreError: the store refused; nothing was written.
        """
        fields: dict[str, Any] = {} if usage is None else {"usage": usage}
        try:
            called = ModelCalled(model=model, response_id=response_id, finish_reason=finish_reason, **fields)
        except ValidationError as error:
            first = error.errors()[0]
            raise InvalidArgument(".".join(map(str, first["loc"])), first["msg"]) from None
        await self._log.commit([self._answering(called, started_at)], at=moment(now, self._clock))

    async def _record_response(self, response: ModelResponse, started_at: datetime | None, at: datetime) -> list[Block]:
        *ids, called_id = stable_ids(len(response.blocks) + 1, self.id, "response", response.key())
        drafts = await self._drafts(response.blocks, ids, at)
        drafts.append(Draft(called_id, at, payload=self._answering(response.called, started_at)))
        try:
            return await self._log.append(drafts, counter=self.counter.name)
        except DuplicateEvent:
            stored = await self._recorded(called_id, len(ids))
            if stored is None:
                raise
            return stored

    async def _append_read(
        self, messages: Sequence[Sequence[Block]], at: datetime, *, ids: Sequence[UUID] = ()
    ) -> list[Block]:
        """Append the blocks of messages, in the turns that they open or belong to; with ``ids``, under these."""
        return await self._append_new(placed_in_turns(messages, self._log.fold.turns), at, ids=ids)

    async def _append_new(self, blocks: Sequence[Block], at: datetime, *, ids: Sequence[UUID] = ()) -> list[Block]:
        """Count blocks and append them in one transaction; with ``ids``, under these. No blocks, no transaction."""
        if not blocks:
            return []
        drafts = await self._drafts(blocks, ids or event_ids(at, len(blocks)), at)
        return await self._log.append(drafts, counter=self.counter.name)

    async def _recorded(self, called_id: UUID, blocks: int) -> list[Block] | None:
        """Return the blocks of a response that is in the log already: they stand right before its `model.called`."""
        calls = [e.version async for e in self._store.read(self.id, types=["model.called"]) if e.id == called_id]
        if not calls:
            return None
        events = await self._store.read_versions(self.id, range(calls[0] - blocks, calls[0]))
        return [block for event in events if (block := appended_block(event.payload)) is not None]

    async def _drafts(self, blocks: Sequence[Block], ids: Sequence[UUID], at: datetime) -> list[Draft]:
        sizes = await self.count(blocks)
        return [Draft(id_, b.at or at, b, tokens) for id_, b, tokens in zip(ids, blocks, sizes, strict=True)]

    def _answering(self, called: ModelCalled, started_at: datetime | None) -> ModelCalled:
        """Say when a model call began, and which render it answers."""
        rendered = self.window.rendered
        return called.model_copy(
            update={
                "started_at": None if started_at is None else moment(started_at, self._clock, "started_at"),
                "answers": None if rendered is None else rendered.version,
            }
        )


def _check_keys(keys: Sequence[str], messages: int) -> None:
    checks.texts("keys", keys)
    if len(keys) != messages:
        raise InvalidArgument("keys", f"there are {len(keys)} for {messages} messages")
    if len({*keys}) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidArgument("keys", f"{twice!r} names two messages; a key names one for ever")


def stable_ids(count: int, *parts: str) -> list[UUID]:
    """Make event ids that follow from what is recorded alone, and not from the time: recorded again, it is known."""
    return [derived_event_id(_NO_TIME, *parts, str(number)) for number in range(count)]
