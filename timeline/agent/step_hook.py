"""`StepHook`: put a timeline behind an agent loop that prepares its message list before each step.

Such a loop calls ``prepare_step`` for the messages to send and ``on_step_finish`` with the response, as in the
keep-last design (001) [keep_last]. Some loops pass their whole history every time, others the list that the last call
returned, with the messages since; both work, also if the application appends or records by itself in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from timeline import checks
from timeline.agent.deduplication import (
    TextsInOne,
    content_key,
    content_keys,
    from_where_a_log_begins,
    new_messages,
)
from timeline.agent.messages import read_messages, read_system
from timeline.agent.recording import answering, append_in_turns, record_response
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.checks import given
from timeline.content.native import NATIVE
from timeline.events import ModelCalled, appended_block
from timeline.log.stopwatch import Stopwatch
from timeline.planning.tail import shows_stages
from timeline.projection.project import Projector
from timeline.wire import MESSAGES, encoder
from timeline.wire.call_ids import CallIds
from timeline.wire.neutral import NeutralContext
from timeline.wire.responses import read_response

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.agent.messages import MessageWire
    from timeline.blocks import Block
    from timeline.engine.conversation import Conversation
    from timeline.fold.window import Item
    from timeline.frozen import JsonInput
    from timeline.projection.context import RenderedContext
    from timeline.wire.request import Request

    ContentKeys = list[tuple[str, ...]]

_APART: Final = "openai_responses"
"""The wire that has a system prompt beside its items, and takes one among them, too."""
_MARKED: Final = frozenset({"anthropic", "ai_sdk"})
"""The wires whose messages bear cache markers. The form of a message must not change as the markers move on, or the
provider's prefix changes."""

_MAYBE_UNSENT: Final = frozenset({"assistant.reasoning", "assistant.part", NATIVE})
"""Types of blocks of a response that a request leaves out if its provider would not take them back."""


class Render(Protocol):
    """`Timeline.render`, as far as a step needs it."""

    async def __call__(
        self, *, system: JsonInput = None, tools: Sequence[JsonInput] = (), now: datetime | None = None
    ) -> RenderedContext:
        """Return the context to send now."""
        ...


class StepHook:
    """Prepares and saves the steps of one agent loop. `Timeline.step_hook` makes one.

    Attributes:
        context: context of the step that was prepared last; None before the first.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        render: Render,
        wire: MessageWire,
        system: JsonInput,
        tools: Sequence[JsonInput],
        model: str | None = None,
    ) -> None:
        self.context: RenderedContext | None = None
        self._conversation = conversation
        self._render = render
        self._wire = wire
        self._system = system
        self._tools = tools
        self._model = model
        self._seen: list[ContentKeys] = []
        """The content keys of the list that the last call got, and of the list that it returned."""
        self._version = 0
        """Version of the log when the last step was prepared."""
        self._began: int | None = None
        """Version of the log before the first step."""
        self._watch: Stopwatch | None = None
        """Measures the model call of the step that was prepared last."""

    async def prepare_step(self, *, messages: Sequence[Any], now: datetime | None = None) -> dict[str, list[Any]]:
        """Append the new messages of a loop, compact if that is due, and return the messages to send.

        Messages that the log holds already are not appended again, whether an earlier step, `on_step_finish`, `record`
        or `append` brought them. If the hook has no system prompt, a leading system message of an OpenAI list is it,
        and comes back at the head of the list.

        Where the model sees all that the list says and nothing else, the list's own messages come back as they are,
        save on wires whose messages bear cache markers: those come back in our form, marked.

        A list that goes back, behind an edited message or an answer that is asked for again, is not followed: what the
        log has stays in view. Fork the timeline there, and go on with a hook of the fork.

        Args:
            messages: the whole history in the hook's wire format; or the list that the last call returned, with the
                messages since.
            now: time of the appended blocks and the decisions.

        Returns:
            ``{"messages": […]}``, in the same wire format.

        Raises:
            InvalidBlock: a message is not valid; nothing was written.
            ContextOverflow, BudgetImpossible: as `Timeline.render`.
            StoreError: the store refused.
        """
        at = given(now)
        checks.sequence("messages", messages)
        system, rest = read_system(messages)
        read = await self._named(rest, at, 0)
        came = [tuple(map(content_key, blocks)) for blocks in read]
        if self._began is None:
            self._began = self._conversation.version
        new = await self._new(read, came, at)
        await append_in_turns(self._conversation, new, at)  # before the render, which has to count them
        self.context = await self._render(
            system=system if self._system is None else self._system, tools=self._tools, now=now
        )
        prepared: list[Any] = self.context.to_wire(self._wire, model=self._model)[MESSAGES[self._wire]]
        if self._wire == _APART and self._system is None:
            prepared = [*_leading(messages), *prepared]
        if self._is_whole(rest, came):
            prepared = [*messages] if self._system is None else [*_leading(prepared), *messages[-len(rest) :]]
        self._version = self._conversation.version
        self._seen = [came, [tuple(map(content_key, blocks)) for blocks in self._decoded(prepared, at)]]
        self._watch = Stopwatch(self._conversation.clock) if at is None else None
        return {"messages": prepared}

    async def on_step_finish(
        self, response: Any, *, request: Request | None = None, now: datetime | None = None
    ) -> list[Block]:
        """Save the response of a step; return the appended blocks, or the stored ones of a reply recorded before.

        The call's duration is the time since `prepare_step` returned.

        Args:
            response: the model's reply, as for `Timeline.record`; or an object or dict with ``messages``, the list of
                all messages that the loop's steps added so far.
            request: what the step sent, as ``context.request`` of this hook's context returned it. With messages
                instead of a reply, the call is recorded only if it is given.
            now: time of the blocks.

        Raises:
            UnknownResponse: the response is neither; nothing was written.
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        duration = None if self._watch is None else self._watch.duration()
        at, self._watch = given(now), None
        messages = response.get("messages") if isinstance(response, dict) else getattr(response, "messages", None)
        if not isinstance(messages, list | tuple):
            reply = read_response(response, unnamed=self._conversation.new_name(at))
            return await record_response(
                self._conversation, reply, at, started_at=None, duration=duration, request=request
            )
        began = self._began or 0
        since = await self._blocks(began)
        new = new_messages(await self._named(messages, at, began), content_keys(since), TextsInOne(since))
        stored = await append_in_turns(self._conversation, new, at)
        if request is not None:
            called = answering(self._conversation, ModelCalled(model=request.model), None, duration, request)
            await self._conversation.log.commit([called], at=at)
        return stored

    async def _new(self, read: Sequence[Sequence[Block]], came: ContentKeys, at: datetime | None) -> list[list[Block]]:
        """Return the blocks of a list that are not in the log."""
        known = max((seen for seen in self._seen if came[: len(seen)] == seen), key=len, default=None)
        if known is not None:
            since = await self._blocks(self._version)
            return new_messages(read[len(known) :], content_keys(since), TextsInOne(since))
        read = self._without_tail(read)
        if self._is_ours(read):
            return self._not_shown(read, at)
        first = (await self._conversation.store.info(self._conversation.id)).first_version
        blocks = await self._blocks(first - 1)
        appended = [*content_keys(blocks)]
        begun = read if first == 1 else from_where_a_log_begins(read, appended)
        new = new_messages(begun, appended, TextsInOne(blocks))
        if new == read[len(read) - len(new) :]:
            return new
        # A new message in front of a known one may be our form of a known message, which an earlier process returned.
        return min(new, self._not_shown(read, at), key=lambda messages: sum(map(len, messages)))

    def _not_shown(self, read: Sequence[Sequence[Block]], at: datetime | None) -> list[list[Block]]:
        """Return the blocks of a list in our form that the window neither shows nor holds as never sent."""
        shown = [content_key(block) for blocks in self._decoded(self._shown(), at) for block in blocks]
        blocks = (item.block for item in self._conversation.window.items)
        held = (content_key(block) for block in blocks if block.type in _MAYBE_UNSENT)
        shown_keys = {*shown}
        return new_messages(new_messages(read, shown), (key for key in held if key not in shown_keys))

    async def _blocks(self, version: int) -> list[Block]:
        blocks = (appended_block(event.payload) for event in await self._conversation.log.since(version))
        return [block for block in blocks if block is not None]

    def _without_tail(self, read: Sequence[Sequence[Block]]) -> list[list[Block]]:
        """Return a list without the texts about stages that an earlier process was given: nobody said them."""
        policy = self._conversation.policy
        if not self._conversation.window.stages:
            return [[*blocks] for blocks in read]
        left = [[b for b in blocks if type(b) is not UserPrompt or not shows_stages(b.text, policy)] for blocks in read]
        return [blocks for blocks in left if blocks]

    def _is_ours(self, read: Sequence[Sequence[Block]]) -> bool:
        """Return whether a list begins with a summary of this timeline, so that its covered messages are not in it."""
        summaries = [compaction.block.text for compaction in self._conversation.window.summaries]
        return any(text in block.text for blocks in read[:3] for block in blocks for text in summaries if text)

    def _is_whole(self, messages: Sequence[dict[str, Any]], came: ContentKeys) -> bool:
        """Return whether a list may be sent as it is: it says what the model is to see, and a provider takes it."""
        context, window = self.context, self._conversation.window
        if self._wire in _MARKED or context is None or context.neutral.ephemeral:
            return False
        if not messages or messages[0].get("role") != "user" or window.unanswered():
            return False
        if any(item.state != "visible" or item.is_summary or _is_loose(item) for item in window.items):
            return False
        return list(content_keys(item.block for item in window.items)) == [key for keys in came for key in keys]

    def _shown(self) -> list[dict[str, Any]]:
        """Return the messages of the window as it is now."""
        entries, _ = Projector().entries(self._conversation.window)
        if not entries:
            return []
        neutral = NeutralContext(entries=tuple(entries), model=self._model or "")
        shown: list[dict[str, Any]] = encoder(self._wire)(neutral)[MESSAGES[self._wire]]
        return shown

    def _decoded(self, messages: Sequence[Any], at: datetime | None) -> list[list[Block]]:
        _, rest = read_system(messages)
        return self._read(rest, at)

    async def _named(self, messages: Sequence[Any], at: datetime | None, version: int) -> list[list[Block]]:
        """Read messages. Calls without an id get the ids of the log's calls behind a version, if it has them."""
        ids = CallIds()
        read = self._read(messages, at, ids)
        if not ids.made:
            return read
        if self._is_ours(read):  # such a list has no covered messages
            blocks: Sequence[Block] = [item.block for item in self._conversation.window.items]
        else:
            first = (await self._conversation.store.info(self._conversation.id)).first_version
            blocks = await self._blocks(max(version, first - 1))
        return self._read(messages, at, CallIds(block for block in blocks if isinstance(block, ToolCall)))

    def _read(self, messages: Sequence[Any], at: datetime | None, ids: CallIds | None = None) -> list[list[Block]]:
        names = self._conversation.new_names(len(messages), at)
        return read_messages(messages, wire=self._wire, names=names, ids=ids)


def _leading(messages: Sequence[Any]) -> Sequence[Any]:
    """Return the system messages with which a list begins."""
    _, rest = read_system(messages)
    return messages[: len(messages) - len(rest)]


def _is_loose(item: Item) -> bool:
    """Return whether an item is a result without its call, which no provider takes as a result."""
    return type(item.block) is ToolResult and item.answers is None
