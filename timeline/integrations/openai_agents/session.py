"""`TimelineSession`: the SDK's session over a timeline, and the hook that renders before every call of a model.

The SDK asks a session for its items at the start of a run, and adds what came after each step. But one run makes many
calls, and the context grows in its tool loop. So the context is rendered in ``call_model_input_filter``, the last hook
before a call. It is never given back to the SDK as history, since the SDK would store it as if a user had said it.

The log takes what the SDK adds, and nothing else. A reply is in it once the SDK has accepted it; a rejected one is
appended as omitted. What the SDK's list has beyond the log (a handoff's or another filter's words, a tool's output that
waits for a guardrail) is sent with this one call, and kept nowhere.
"""

from __future__ import annotations

from dataclasses import replace
from inspect import isawaitable
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import anyio
from pydantic import ValidationError

from timeline import checks
from timeline.agent.disowned import append_disowned
from timeline.content.native import has_server_results
from timeline.errors import ContextRefused, ConversationNotFound, InvalidArgument, needs
from timeline.events import REJECTED, ModelCalled, ParentLink, event_id
from timeline.integrations.framework_requests import framework_request
from timeline.integrations.openai_agents.beside import beside
from timeline.integrations.openai_agents.branches import left_behind
from timeline.integrations.openai_agents.called_model import RUN, called_model
from timeline.integrations.openai_agents.going_back import (
    Popping,
    go_back_to,
    leave,
    leave_all,
    went_on_elsewhere,
)
from timeline.integrations.openai_agents.history import key_of, stored_items
from timeline.integrations.openai_agents.items import (
    read_items,
    read_output,
    schemas_of,
    usage_of,
)
from timeline.integrations.openai_agents.known import Known
from timeline.integrations.openai_agents.model_calls import BEGUN, CALL, Begun, Call, no_task, with_retry
from timeline.integrations.openai_agents.originals import as_items
from timeline.integrations.openai_agents.replies import Replies, Reply, of_response
from timeline.log.protocol import Draft
from timeline.log.uncancelled import run_uncancelled
from timeline.ports import SystemClock
from timeline.timeline import Timeline

with needs("openai-agents"):
    from agents import FunctionTool, RunConfig, RunHooks, SessionSettings
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
    from agents.models.fake_id import FAKE_RESPONSES_ID
    from agents.run import ModelInputData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents import Agent, ModelResponse, RunContextWrapper, TResponseInputItem
    from agents.memory import SessionInputCallback
    from agents.run import CallModelData

    from timeline.blocks import Block
    from timeline.integrations.openai_agents.called_model import CalledModel
    from timeline.integrations.openai_agents.history import Stored
    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext
    from timeline.wire.request import Request


class TimelineSession:
    """A session of the OpenAI Agents SDK, whose items are a timeline's log. Open it with `TimelineSession.open`.

    Several sessions may be open on one id, in several processes, too. Items that are popped or cleared are abandoned:
    they stay readable in the same conversation. Sessions that an earlier release cleared go on in a conversation of
    their own, ``<id>~2`` and so on.

    Attributes:
        session_id: the session's id, which is also the id of its first conversation.
        session_settings: the SDK's settings; their limit holds for calls that give none.
        timeline: the conversation that the session is in now.
        context: the context of the newest model call; None before the first.
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
        # In place of the session: a context would keep that, and it its calls, for as long as the task runs.
        self._own = object()
        self._be_in(timeline)

    @classmethod
    async def open(
        cls,
        store: EventStore,
        session_id: str,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Open a session, or begin it.

        Args:
            store: holds the session; the caller closes it.
            session_id: its id.
            session_settings: the SDK's settings.
            options: as for `Timeline.open`: ``policy``, ``summarizer``, ``hooks``, ``clock``, ``counter``, ``title``.

        Raises:
            StoreError: the store cannot be read or written.
            InvalidArgument: one of the options is not what it should be.
        """
        checks.awaited_store(store)
        settings = _settings(session_settings or SessionSettings())
        conversation = await _newest(store, session_id, session_id)
        timeline = await Timeline.open(store, conversation, **options)
        return cls(store, session_id, timeline, settings, options)

    def _be_in(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.context: RenderedContext | None = None
        self._call: Call | None = None
        self._follower = timeline.list_follower()
        self._responses: set[str] = {FAKE_RESPONSES_ID}
        self._replies = Replies()
        self._known = Known(self._store, timeline.id)
        self._popping = Popping(timeline, self._store)
        self._read: list[tuple[Any, list[Block]]] = []
        self._added = 0
        """Items that were added since a model was called."""

    # The SDK's protocol

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        """Return the items of the session, oldest first, each as it was added.

        With a limit it returns exactly the newest items, as the SDK's own sessions do: the SDK compares them with what
        it added, and a run by itself leaves out a call or output without its other half.

        Without a limit it reads the whole log, since covered items are asked for, too. A run only gets the items that
        its contexts may show, from the newest compaction on, because the filter sends what the log shows, the summary
        included. So a run costs what its window costs.

        Args:
            limit: the most items; by default the limit of the settings, or all.
            wrapper: the run that asks; the SDK passes it.

        Raises:
            StoreError: the store cannot be read.
        """
        async with self._lock:
            await self._go_on()
            await self._reject(self._replies.left_behind(also_calls=wrapper is not None, going_on=wrapper))
            most = resolve_session_limit(limit, self.session_settings)
            after = 0 if wrapper is None or most is not None else await self._begins_at()
            found = await self._stored(most, after)
            begun = BEGUN.get()
            if wrapper is not None and (begun is None or begun.owner is not self._own or begun.run is not wrapper):
                BEGUN.set(Begun(self._own, found, wrapper))
            return [stored.item for stored in found]  # type: ignore[misc]  # TypedDicts

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: RunContextWrapper[Any] | None = None
    ) -> None:
        """Append items; the SDK has accepted what it adds.

        Items that were popped and come again unchanged are shown again, not stored twice. A second output of the same
        call means that an earlier `RunState` was resumed again: what followed the first output is abandoned.

        A run that is cancelled meanwhile waits for the append: its tools ran, and nobody else has their outputs.

        Raises:
            InvalidArgument: JSON cannot hold an item; nothing was written.
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        call = self._call
        if call is not None and wrapper is not None and call.run is wrapper:
            self._note_the_run(BEGUN.get(), call)  # the SDK makes a run's first call in a context of its own
        await run_uncancelled(self._add(items))

    async def _add(self, items: Sequence[TResponseInputItem]) -> None:
        async with self._lock:
            await self._go_on()
            new: list[list[Block]] = []
            for blocks in _readable(items, str(event_id(self._clock.now()))):
                response = self._replies.accept(key_of(blocks))
                new.append(blocks if response is None else of_response(blocks, response))
            self._added += len(new)
            if await went_on_elsewhere(self.timeline, self._store, new):
                self._known = Known(self._store, self.timeline.id)
            else:
                await self._follower.append(new)

    async def pop_item(self, *, wrapper: RunContextWrapper[Any] | None = None) -> TResponseInputItem | None:
        """Take the newest item back and return it; None if there is none.

        The item is abandoned: the log keeps it, but the model, summaries and later calls of `get_items` do not see it.
        A compaction that covers it is undone. `Timeline.reveal` brings it back, with what was popped before and after.

        Raises:
            StoreError: the store refused.
        """
        del wrapper
        async with self._lock:
            await self._go_on()
            found = await self._popping.pop()
            self._known = Known(self._store, self.timeline.id)
            return None if found is None else found.item  # type: ignore[return-value]  # theirs are TypedDicts

    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Begin anew: the session has no items afterwards; those that it had are abandoned, as if they were popped.

        If items are added again, those that are the same as the first ones of the session are shown again. If the
        beginning of the log was scavenged, summaries cannot be taken back; then the session goes on in a conversation
        of its own.

        Raises:
            StoreError: the store refused.
        """
        del wrapper
        async with self._lock:
            await self._go_on()
            await self._reject(self._replies.left_behind(also_calls=True))
            if (await self._store.info(self.timeline.id)).first_version == 1:
                await leave_all(self.timeline, self._store)
                self._known = Known(self._store, self.timeline.id)
                return
            if not await stored_items(self._store, self.timeline.id, newest=1):
                return
            options = {"policy": self.timeline.policy, **self._options}
            link = ParentLink(conversation=self.timeline.id, relation="fork")
            following = _next(self.session_id, self.timeline.id)
            self._be_in(await Timeline.open(self._store, following, **{**options, "parent": link}))

    # A run

    def run_config(self, base: RunConfig | None = None) -> RunConfig:
        """Return a run's configuration with this session's `call_model_input_filter`.

        A call that the model refuses for its size is made once more, with a smaller context. If a
        ``session_input_callback`` returns an earlier history, the session goes on from there.

        Args:
            base: the rest of the configuration; its settings for retries hold for all other errors.

        Raises:
            InvalidArgument: ``base`` has such a filter already.
        """
        base = base or RunConfig()
        if base.call_model_input_filter is not None:
            raise InvalidArgument(
                "base", "has a call_model_input_filter; call the session's own in it, and return what that returns"
            )
        settings = with_retry(base.model_settings, self._shrink)
        callback = None if base.session_input_callback is None else self._going_back(base.session_input_callback)

        async def filtered(data: CallModelData[Any]) -> ModelInputData:
            token = RUN.set(base)
            try:
                return await self.call_model_input_filter(data)
            finally:
                RUN.reset(token)

        return replace(
            base,
            call_model_input_filter=filtered,
            model_settings=settings,
            session_input_callback=callback,
        )

    def _going_back(self, callback: SessionInputCallback) -> SessionInputCallback:
        """Return a callback that abandons what the application's one goes back behind."""

        async def combined(history: list[Any], new: list[Any]) -> list[Any]:
            given, added = [*history], [*new]
            combined = callback(history, new)
            chosen: list[Any] = await combined if isawaitable(combined) else combined
            begun = BEGUN.get()
            if begun is not None and begun.owner is self._own and len(begun.items) == len(given):
                left = [begun.items[place] for place in left_behind(given, chosen, added)]
                if left:
                    async with self._lock:
                        await leave(self.timeline, left)
                        self._known = Known(self._store, self.timeline.id)
            return chosen

        return combined

    async def call_model_input_filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the rendered context instead of the SDK's list.

        The render compacts first if that is due. The SDK keeps its own list; only this one call changes. What the list
        has beyond the log is sent with this call. A list that has nothing of the log belongs to another agent, such as
        one that runs inside a tool, and is sent as it is.

        Raises:
            ContextOverflow, BudgetImpossible: as `Timeline.render`.
            StoreError: the store refused.
        """
        async with self._lock:
            await self._go_on()
            await self._close_left_calls()
            listed = self._decoded(data.model_data.input)
            keys = [key_of(blocks) for _, blocks in listed]
            begun = BEGUN.get()
            is_first = begun is not None and begun.is_first_call(self._own)
            if not is_first and not self._goes_on(begun, data):
                own = [(key, item) for key, (item, _) in zip(keys, listed, strict=True)]
                await go_back_to(self.timeline, self._store, own, self._added)
                self._known = Known(self._store, self.timeline.id)
            self._added = 0
            unknown = await self._unknown(data.model_data.input, keys)
            if len(unknown) == len(keys) and not is_first:
                CALL.set(None)
                return data.model_data
            extra = beside(listed, unknown)
            instructions, agent = data.model_data.instructions, data.agent
            model = called_model(agent, RUN.get())
            context = await self.timeline.render(
                system=instructions, tools=schemas_of(agent, model.wire), ephemeral=extra.texts
            )
            self.context = context
            shown = extra.behind(as_items(context, listed, plain=model.is_translated)) or data.model_data.input
            call = Call(
                owner=self._own,
                agent=agent,
                context=context,
                request=_request(context, model),
                data=ModelInputData(input=shown, instructions=instructions),
                beside=extra,
                listed=tuple(listed),
                model=model,
            )
        self._call = call
        CALL.set(call)
        self._note_the_run(begun, call)
        return call.data

    def _note_the_run(self, begun: Begun | None, call: Call) -> None:
        """Note where the run here is, so that its next call is known; where nothing began here, begin."""
        if begun is None or begun.owner is not self._own:
            begun = Begun(self._own, (), has_called=True)
            BEGUN.set(begun)
        begun.listed = [item for item, _ in call.listed]
        begun.agent = call.agent.name

    def _goes_on(self, begun: Begun | None, data: CallModelData[Any]) -> bool:
        """Return whether a call is a later one of the run here; or else the first of a `RunState` that is resumed."""
        return begun is not None and begun.owner is self._own and begun.is_of(data.model_data.input, data.agent.name)

    async def _shrink(self, call: Call, error: BaseException) -> bool:
        """Make the context of a call smaller that the model refused for its size; return whether it did.

        Raises:
            ContextRefused: the smaller one was refused too, or there is none.
        """
        if call.owner is not self._own:
            return False
        async with self._lock:
            try:
                smaller = await self.timeline.after_refusal(
                    call.context, error, earlier=call.earlier, request=call.request
                )
            except ContextRefused:
                call.is_open = False  # and the log has it
                raise
            if smaller is None:
                return False
            call.context, call.earlier = smaller, call.context
            call.request = _request(smaller, call.model)
            call.data.input = call.beside.behind(as_items(smaller, call.listed, plain=call.model.is_translated))
            call.restart()
            self.context = smaller
        return True

    def hooks(self) -> RunHooks[Any]:
        """Return hooks that record each response with its usage; give them to ``Runner.run``.

        A run that has hooks of its own calls `record_response` in their ``on_llm_end``.
        """
        return _Recording(self)

    async def record_response(
        self, response: ModelResponse, *, model: str = "", wrapper: RunContextWrapper[Any] | None = None
    ) -> None:
        """Record a call with its usage; its reply is appended when the SDK has accepted it.

        Without this the reply still comes with the SDK's next step, but without usage: the state of the provider's
        cache is unknown, two responses in a row may be taken for one, and a reply that a guardrail rejected is lost.
        The recorded duration is the time since `call_model_input_filter` returned.

        Args:
            response: the response that the SDK passes to the hook ``on_llm_end``.
            model: the model's name; by default that of the call's model.
            wrapper: the context that the SDK passes to the hook, which says which run the response belongs to.

        Raises:
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        call = self._call_here()
        duration = None if call is None else call.watch.duration()
        # What was answered was paid for: a run that is cancelled meanwhile waits until it is recorded.
        await run_uncancelled(self._answered(call, response, model, wrapper, duration))

    async def _answered(
        self,
        call: Call | None,
        response: ModelResponse,
        model: str,
        wrapper: RunContextWrapper[Any] | None,
        duration: float | None,
    ) -> None:
        async with self._lock:
            if call is not None:
                call.is_open = False
            at = self._clock.now()
            response_id = response.response_id or ""
            if not response_id or response_id in self._responses:  # a placeholder of the SDK, or of a careless server
                response_id = f"response.{event_id(at)}"
            self._responses.add(response_id)
            rendered = self.timeline.window.rendered
            answers = None if rendered is None else rendered.version
            read = read_output(response.to_input_items(), response_id)
            called = ModelCalled(
                model=model or ("" if call is None else call.model.name),
                response_id=response_id,
                usage=usage_of(response),
                answers=answers if call is None else call.request.answers,
                duration=duration,
                request=None if call is None else call.request.recorded(),
                server_tools=has_server_results(chain.from_iterable(read)),
            )
            await self.timeline.extend([Draft(event_id(at), None, payload=called)])
            left = [(key_of(blocks), blocks) for blocks in read]
            self._replies.add(Reply(wrapper, no_task if call is None else call.task_of, response_id, left))

    async def record_failure(self, error: BaseException) -> None:
        """Record what is left of a run that raised an error: a failed call, or a reply that a guardrail rejected.

        The SDK has no hook for either. Without this a failed call is recorded only when the next call begins, without
        its error, and only if the run has the session's hooks; a rejected reply is appended when the next run begins.
        If nothing is left, nothing is recorded.

        Args:
            error: the error that was raised.

        Raises:
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        async with self._lock:
            if self._call is not None and self._call.is_open:
                await self._failed(self._call, str(error) or type(error).__name__)
            await self._reject(self._replies.left_behind(also_calls=True))

    async def _failed(self, call: Call, words: str) -> None:
        call.is_open = False
        await self.timeline.record_model_call(error=words, request=call.request, duration=call.watch.duration())

    async def _close_left_calls(self) -> None:
        """Record a call as failed that has no response: the SDK, or the application, tries again."""
        call = self._call
        if call is not None and call.is_open and call.has_begun and call.is_left():
            await self._failed(call, "no response came")

    def _call_here(self) -> Call | None:
        """Return the open call of the code that asks."""
        here = CALL.get()
        call = here if here is not None and here.owner is self._own else self._call
        return call if call is not None and call.is_open else None

    async def _calling(self, wrapper: RunContextWrapper[Any]) -> None:
        """Note that the model is called: what the run neither added nor lists by now, it did not accept."""
        call = self._call_here()
        if call is None:
            return
        call.has_begun, call.run = True, wrapper
        async with self._lock:
            await self._reject(self._replies.passed_over(wrapper, {key_of(blocks) for _, blocks in call.listed}))

    async def _reject(self, items: Sequence[list[Block]]) -> None:
        """Append items that the SDK did not accept, omitted."""
        await append_disowned(self.timeline._conversation, items, REJECTED, None)  # noqa: SLF001 - of this library

    def recall_tool(self) -> FunctionTool:
        """Return a tool for the agent, with which its model reads back any path or address that its context prints."""
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

    async def _begins_at(self) -> int:
        """Return the version behind which all lies that a context may show, except for what summaries stand for."""
        await self.timeline.catch_up()
        window = self.timeline.window
        covered = max((last for summary in window.summaries for _, last in summary.covers.ranges), default=0)
        shown = min((item.version for item in window.items if not item.omitted), default=window.version + 1)
        return max(covered, shown - 1)

    async def _stored(self, limit: int | None, after: int) -> list[Stored]:
        """Return the items that a run begins with; they are known when they come back in its list."""
        if limit is None:
            return await stored_items(self._store, self.timeline.id, after=after)
        return await stored_items(self._store, self.timeline.id, newest=limit) if limit > 0 else []

    async def _unknown(self, items: Sequence[Any], keys: Sequence[str]) -> list[int]:
        """Return the numbers of the items that the log does not have.

        A prompt that the log does not end with is news, whatever it says: the same words may have been said before,
        and a stream adds its prompt later than it sends it.
        """
        first = len(items)
        while first and isinstance(items[first - 1], dict) and items[first - 1].get("role") == "user":
            first -= 1
        new_keys = list(keys[first:])
        if new_keys:
            ending = [stored.key for stored in await stored_items(self._store, self.timeline.id, newest=len(new_keys))]
            first += max(
                n for n in range(min(len(new_keys), len(ending)) + 1) if ending[len(ending) - n :] == new_keys[:n]
            )
        else:
            first = len(keys)
        return [*await self._known.missing(keys[:first]), *range(first, len(keys))]

    def _decoded(self, items: Sequence[Any]) -> list[tuple[Any, list[Block]]]:
        """Read a list; what the last one began with is not read again."""
        same = 0
        while same < min(len(items), len(self._read)) and self._read[same][0] == items[same]:
            same += 1
        rest = read_items(items[same:], "listed")
        self._read = [*self._read[:same], *zip(items[same:], rest, strict=True)]
        return self._read


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
        del agent, system_prompt, input_items
        await self._session._calling(context)  # noqa: SLF001 - these are its own hooks

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Record a response."""
        known = "" if self._session._call_here() else called_model(agent, None).name  # noqa: SLF001 - its own hooks
        await self._session.record_response(response, model=known, wrapper=context)


def _settings(given: SessionSettings | dict[str, Any]) -> SessionSettings:
    """Return settings of a session, which may come as a dictionary.

    Raises:
        InvalidArgument: they are none.
    """
    try:
        return coerce_session_settings(given)
    except (TypeError, ValueError) as error:
        raise InvalidArgument("session_settings", f"must be settings of the SDK's sessions: {error}") from error


def _readable(items: Sequence[Any], batch: str) -> list[list[Block]]:
    """Read items.

    Raises:
        InvalidArgument: an item is nothing that JSON can hold.
    """
    try:
        return read_items(items, batch)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise InvalidArgument("items", f"hold what JSON cannot, at {where}: {problem['msg']}") from error


def _request(context: RenderedContext, model: CalledModel) -> Request:
    """Return what the log keeps of a request that the SDK writes."""
    return framework_request(context, model.wire, model.name, model.settings)


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
