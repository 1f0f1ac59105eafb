"""`TimelineSession`: the SDK's session over a timeline, and the hook that renders before every call of a model.

The SDK asks a session for its items at the start of a run, and adds what came after each step; but one run makes many
calls, and its tool loop is where a context grows. So the context is rendered in ``call_model_input_filter``, the last
hook before a call. It is never given back to the SDK as history, or it would be stored as if a user had said it.

Where both the hook and the SDK bring the same item, it is appended once: what came ahead of the SDK is remembered until
the SDK adds it too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import anyio

from timeline.agent.list_follower import own_words
from timeline.errors import ConversationNotFound, InvalidArgument, VersionConflict, needs
from timeline.events import BlocksHidden, ModelCalled, ParentLink, Replacement, event_id, event_ids
from timeline.integrations.framework_requests import framework_request
from timeline.integrations.openai_agents.history import POPPED, key_of, stored_items, window
from timeline.integrations.openai_agents.items import (
    model_of,
    read_items,
    read_output,
    schemas_of,
    usage_of,
    wire_of_agent,
)
from timeline.log.protocol import Draft
from timeline.log.stopwatch import Stopwatch
from timeline.ports import SystemClock
from timeline.timeline import Timeline

with needs("openai-agents"):
    from agents import FunctionTool, RunConfig, RunHooks, SessionSettings
    from agents.handoffs import get_conversation_history_wrappers
    from agents.models.fake_id import FAKE_RESPONSES_ID
    from agents.run import ModelInputData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents import Agent, ModelResponse, RunContextWrapper, TResponseInputItem
    from agents.run import CallModelData

    from timeline.blocks import Block
    from timeline.integrations.openai_agents.history import Stored
    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext
    from timeline.wire.request import Request


class TimelineSession:
    """A session of the OpenAI Agents SDK, whose items are a timeline's log. Open it with `TimelineSession.open`.

    Several sessions, in several processes too, may be open on one id. One that was cleared goes on in a conversation of
    its own, ``<id>~2`` and so on; what was said before stays readable where it is.

    Attributes:
        session_id: of the session; also the id of its first conversation.
        session_settings: the SDK's; its limit holds where a call gives none.
        timeline: the conversation that the session is in now.
        context: of the newest call of a model; None before the first.
    """

    def __init__(
        self, store: EventStore, session_id: str, timeline: Timeline, settings: SessionSettings, options: dict[str, Any]
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = settings
        self._store = store
        self._options = options
        self._clock = options.get("clock") or SystemClock()
        self._lock = anyio.Lock()
        self._watch: Stopwatch | None = None
        """Measures the call of a model that the newest context was rendered for."""
        self._is_calling = False
        """Whether a call of the model began that has no response yet; known only where a run has these hooks."""
        self._be_in(timeline)

    @classmethod
    async def open(
        cls, store: EventStore, session_id: str, *, session_settings: SessionSettings | None = None, **options: Any
    ) -> Self:
        """Open a session, or begin it.

        Args:
            store: where it lives; the caller closes it.
            session_id: its id.
            session_settings: the SDK's.
            options: as for `Timeline.open`: ``policy``, ``summarizer``, ``hooks``, ``clock``, ``counter``, ``title``.

        Raises:
            StoreError: the store cannot be read or written.
            InvalidArgument: one of the options is something else than it should be.
        """
        conversation = await _newest(store, session_id, session_id)
        timeline = await Timeline.open(store, conversation, **options)
        return cls(store, session_id, timeline, session_settings or SessionSettings(), options)

    def _be_in(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.context: RenderedContext | None = None
        self._request: Request | None = None
        self._follower = timeline.list_follower()
        self._responses: set[str] = {FAKE_RESPONSES_ID}
        self._ahead: Counter[str] = Counter()
        self._known: Counter[str] = Counter()
        self._known_until: int | None = None
        self._read: list[tuple[Any, list[Block]]] = []

    # The SDK's protocol

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items of the session, oldest first, each as it was added.

        With a limit the newest ones, but none that a model could not be sent without an older one: no output without
        its call, nothing that a thought led to without the thought. So there may be fewer.

        Without a limit the whole log is read: covered items are asked for as well, so that neither the window nor an
        index can answer. With one the cost is that of the newest items.

        Args:
            limit: most items; that of the settings unless given, or all.

        Raises:
            StoreError: the store cannot be read.
        """
        async with self._lock:
            await self._go_on()
            settings = self.session_settings
            most = limit if limit is not None else settings.limit if settings is not None else None
            return [stored.item for stored in await self._stored(most)]  # type: ignore[misc]  # theirs are TypedDicts

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items; those that a model call brought ahead of the SDK are in the log already.

        Raises:
            StoreError: the store refused; nothing was written.
        """
        async with self._lock:
            await self._go_on()
            new: list[list[Block]] = []
            for blocks in read_items(items, str(event_id(self._clock.now()))):
                key = key_of(blocks)
                if self._ahead[key] > 0:
                    self._ahead[key] -= 1
                else:
                    new.append(blocks)
            await self._follower.append(new)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item back and return it; None where there is none.

        The log keeps it, out of sight of later calls of `get_items` and of the model.

        Raises:
            StoreError: the store refused.
        """
        async with self._lock:
            await self._go_on()
            while True:
                version = (await self._store.info(self.timeline.id)).version
                found = await stored_items(self._store, self.timeline.id, newest=1)
                if not found:
                    return None
                gone = tuple(Replacement(version=v) for v in found[-1].versions)
                try:
                    await self.timeline.catch_up()
                    await self.timeline.decide(
                        [BlocksHidden(mode="omit", reason=POPPED, blocks=gone)],
                        at=None,
                        ids=[event_id(self._clock.now())],
                        expected=version,
                    )
                except VersionConflict:
                    continue  # another writer appended: then another item is the newest
                self._known[found[-1].key] -= 1
                return found[-1].item  # type: ignore[return-value]  # theirs are TypedDicts

    async def clear_session(self) -> None:
        """Begin anew: the session has no items afterwards. What was said stays in the conversation that it was in.

        Raises:
            StoreError: the store refused.
        """
        async with self._lock:
            await self._go_on()
            if not await stored_items(self._store, self.timeline.id, newest=1):
                return
            options = {"policy": self.timeline.policy, **self._options}
            link = ParentLink(conversation=self.timeline.id, relation="fork")
            following = _next(self.session_id, self.timeline.id)
            self._be_in(await Timeline.open(self._store, following, **{**options, "parent": link}))

    # A run

    def run_config(self, base: RunConfig | None = None) -> RunConfig:
        """Return a run's configuration with this session's `call_model_input_filter`.

        Args:
            base: what else is configured.

        Raises:
            InvalidArgument: ``base`` has such a filter already.
        """
        base = base or RunConfig()
        if base.call_model_input_filter is not None:
            raise InvalidArgument(
                "base", "has a call_model_input_filter; call the session's own in it, and return what that returns"
            )
        return replace(base, call_model_input_filter=self.call_model_input_filter)

    async def call_model_input_filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Append the new items of the SDK's list, and return the rendered context in their place.

        The render compacts first if that is due. The SDK keeps its own list; only this one call is changed.

        Raises:
            ContextOverflow, BudgetImpossible: as `Timeline.render`.
            StoreError: the store refused.
        """
        async with self._lock:
            if self._is_calling:  # and it has no response: the SDK, or the application, tries again
                await self._failed("no response came")
            await self._go_on()
            instructions = data.model_data.instructions
            await self._take(data.model_data.input)
            wire = wire_of_agent(data.agent)
            context = await self.timeline.render(system=instructions, tools=schemas_of(data.agent, wire))
            settings = vars(data.agent.model_settings)
            self._request = framework_request(context, wire, model_of(data.agent), settings)
            self.context = context
            self._watch = Stopwatch(self._clock)
        shown = context.to_openai_responses()["input"]
        return ModelInputData(input=shown or data.model_data.input, instructions=instructions)

    def hooks(self) -> RunHooks[Any]:
        """Return hooks that record each response with its usage; give them to ``Runner.run``.

        A run that has hooks of its own calls `record_response` in their ``on_llm_end``.
        """
        return _Recording(self)

    async def record_response(self, response: ModelResponse, *, model: str = "") -> list[Block]:
        """Append a response with its usage; return the blocks.

        Without this call the items still come with the SDK's next step, but without usage: then the state of the
        provider's cache is unknown, and two responses in a row may be taken for one. Its duration is the time since
        `call_model_input_filter` returned.

        Args:
            response: the response that the SDK passes to the hook ``on_llm_end``.
            model: its name, if known.

        Raises:
            StoreError: the store refused; nothing was written.
        """
        watch, self._watch = self._watch, None
        duration = None if watch is None else watch.duration()
        async with self._lock:
            self._is_calling = False
            await self._go_on()
            at = self._clock.now()
            sent, self._request = self._request, None
            response_id = response.response_id or ""
            if not response_id or response_id in self._responses:  # a placeholder of the SDK, or of a careless server
                response_id = f"response.{event_id(at)}"
            self._responses.add(response_id)
            read = read_output(response.to_input_items(), response_id)
            blocks = [block for own in read for block in own]
            rendered = self.timeline.window.rendered
            called = ModelCalled(
                model=model,
                response_id=response_id,
                usage=usage_of(response),
                answers=sent.context if sent is not None else rendered.version if rendered is not None else None,
                duration=duration,
                request=None if sent is None else sent.recorded(),
            )
            sizes = await self.timeline.count(blocks)
            ids = event_ids(at, len(blocks) + 1)
            drafts = [Draft(id_, None, block, n) for id_, block, n in zip(ids[:-1], blocks, sizes, strict=True)]
            stored = await self.timeline.extend([*drafts, Draft(ids[-1], None, payload=called)])
            self._ahead.update(key_of(own) for own in read)
            return stored

    async def record_failure(self, error: BaseException) -> None:
        """Record that the newest call of the model failed; call it where a run raises an error of the model's client.

        The SDK has no hook for it. Without this call a failed one is recorded when the next one begins, if the run has
        the session's hooks, and its error is not known. Where no call is under way, nothing is recorded.

        Args:
            error: what was raised.

        Raises:
            StoreError: the store refused; nothing was written.
        """
        async with self._lock:
            if self._request is not None:
                await self._failed(str(error) or type(error).__name__)

    async def _failed(self, words: str) -> None:
        watch, self._watch = self._watch, None
        duration = None if watch is None else watch.duration()
        await self.timeline.record_model_call(error=words, request=self._request, duration=duration)
        self._request, self._is_calling = None, False

    def _calling(self) -> None:
        self._is_calling = True

    def recall_tool(self) -> FunctionTool:
        """Return a tool for the agent, with which its model reads any path that its context prints."""
        tool = self.timeline.recall_tool("openai_responses")

        async def invoke(context: Any, arguments: str) -> str:
            del context
            return await self.timeline.recall_tool("openai_responses").handle(arguments)

        schema: dict[str, Any] = tool.schema
        return FunctionTool(
            name=tool.name,
            description=schema["description"],
            params_json_schema=schema["parameters"],
            on_invoke_tool=invoke,
        )

    async def _go_on(self) -> None:
        """Move to the newest conversation of the session: another process may have cleared it."""
        newest = await _newest(self._store, self.session_id, self.timeline.id)
        if newest != self.timeline.id:
            self._be_in(await Timeline.open(self._store, newest, **self._options))

    async def _stored(self, limit: int | None) -> list[Stored]:
        """Return the items that a run begins with; they are known when they come back in its list."""
        if limit is not None and limit <= 0:
            found: list[Stored] = []
        elif limit is None:
            found = await stored_items(self._store, self.timeline.id)
        else:  # one more tells whether the window begins behind a thought
            found = window(await stored_items(self._store, self.timeline.id, newest=limit + 1), limit)
        await self._learn()
        self._known |= Counter(stored.key for stored in found)
        self._ahead.clear()  # of a run that is over
        return found

    async def _learn(self) -> list[str]:
        """Read the events appended since the last call; return the keys of the newest items, oldest first."""
        if self._known_until is None:
            self._known_until = (await self._store.info(self.timeline.id)).version
            return []
        new = await stored_items(self._store, self.timeline.id, after=self._known_until)
        if new:
            self._known_until = max(new[-1].versions)
        self._known.update(stored.key for stored in new)
        return [stored.key for stored in new]

    async def _take(self, items: Sequence[Any]) -> None:
        """Append the items of the SDK's list that are not in the log."""
        if self._known_until is None:  # no run began with this session's items: the list is a whole history
            self._known = Counter(stored.key for stored in await stored_items(self._store, self.timeline.id))
        await self._learn()
        own = own_words(self.timeline.window)
        markers = get_conversation_history_wrappers()
        left = self._known.copy()
        read = self._decoded(items, str(event_id(self._clock.now())))
        prompts = await self._new_prompts(items, read)
        new: list[list[Block]] = []
        for number, blocks in enumerate(read):
            key = key_of(blocks)
            if any(block.text in own or all(mark in block.text for mark in markers) for block in blocks):
                continue  # this library's words, or the SDK's own summary of what the log holds already
            if number < prompts and left[key] > 0:
                left[key] -= 1
            else:
                new.append(blocks)
        await self._follower.append(new)
        self._ahead.update(map(key_of, new))

    async def _new_prompts(self, items: Sequence[Any], read: Sequence[list[Block]]) -> int:
        """Return the number of the first item that is news whatever it says: a prompt that does not end the log.

        The same words may have been said before, and that part of the history be left out of the list.
        """
        first = len(items)
        while first and isinstance(items[first - 1], dict) and items[first - 1].get("role") == "user":
            first -= 1
        said = [key_of(blocks) for blocks in read[first:]]
        if not said:
            return len(items)
        ending = [stored.key for stored in await stored_items(self._store, self.timeline.id, newest=len(said))]
        known = max(n for n in range(min(len(said), len(ending)) + 1) if ending[len(ending) - n :] == said[:n])
        return first + known

    def _decoded(self, items: Sequence[Any], batch: str) -> list[list[Block]]:
        """Read a list; what the last one began with is not read again."""
        same = 0
        while same < min(len(items), len(self._read)) and self._read[same][0] == items[same]:
            same += 1
        rest = read_items(items[same:], batch)
        self._read = [*self._read[:same], *zip(items[same:], rest, strict=True)]
        return [blocks for _, blocks in self._read]


class _Recording(RunHooks[Any]):
    """Hooks that record."""

    def __init__(self, session: TimelineSession) -> None:
        self._session = session

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        """Note that the model is called."""
        del context, agent, system_prompt, input_items
        self._session._calling()  # noqa: SLF001 - these are its own hooks

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Record a response."""
        del context
        await self._session.record_response(response, model=model_of(agent))


def _next(session_id: str, conversation: str) -> str:
    """Return the id of the conversation that a session is in once it was cleared."""
    number = conversation.removeprefix(f"{session_id}~") if conversation != session_id else "1"
    return f"{session_id}~{int(number) + 1}"


async def _newest(store: EventStore, session_id: str, conversation: str) -> str:
    """Return the newest conversation of a session, from one of them on."""
    while True:
        following = _next(session_id, conversation)
        try:
            await store.info(following)
        except ConversationNotFound:
            return conversation
        conversation = following
