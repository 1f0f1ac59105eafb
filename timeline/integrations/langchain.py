"""LangChain: a timeline as the middleware of an agent.

    from langchain.agents import create_agent
    from timeline.integrations.langchain import TimelineMiddleware

    agent = create_agent(model, tools, middleware=[TimelineMiddleware(store)])

Before each call of the model, the middleware appends the agent's new messages to the log of its thread, and sends the
model the context that the log renders to. It changes nothing in the agent's own state. It appends a reply once the
agent has accepted it (at the next call, or at the end of the run), because other middleware or a human may change it
until then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired

import anyio

from timeline.agent.recall import schema
from timeline.content.native import is_server_result
from timeline.errors import InvalidArgument, needs
from timeline.integrations.conversations import Conversations, Ours, Theirs
from timeline.integrations.framework_requests import framework_request, tools_for, wire_of
from timeline.integrations.langchain_messages import divide_request, is_summary, read_messages, to_messages
from timeline.log.recall_form import RECALL
from timeline.log.stopwatch import Stopwatch
from timeline.log.uncancelled import run_uncancelled
from timeline.ports import SystemClock
from timeline.usage import Usage
from timeline.wire.foreign import plain
from timeline.wire.openai_chat import parts_of
from timeline.wire.usage import count_of

with needs("langchain"):
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.tools import BaseTool, StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.config import get_config
    from langgraph.managed.is_last_step import RemainingStepsManager

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain_core.messages import AnyMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.runtime import Runtime
    from pydantic import JsonValue

    from timeline.integrations.conversations import Followed, Steps
    from timeline.integrations.langchain_messages import RequestParts
    from timeline.lifecycle.observer import Observer
    from timeline.policy.model import Policy
    from timeline.ports import EventStore, Hooks, Summarizer
    from timeline.projection.context import RenderedContext
    from timeline.sync import Store
    from timeline.wire.request import Request


class _State(AgentState[Any]):
    """The agent's state, and how many steps the run has left, which no state and no output has."""

    remaining_steps: NotRequired[Annotated[int, PrivateStateAttr, RemainingStepsManager]]


class TimelineMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Sends the model the context of a timeline. Put it last in the list, so that nothing changes its context.

    A call that the model refuses for its size is made once more, with a smaller context. One middleware serves any
    number of threads at a time.

    Args:
        store: an open store. One from `timeline.open_store` serves agents that are called with ``await`` in the same
            event loop; one from `timeline.sync.open_store` serves all agents.
        policy: when to compact, and how; as for `Timeline.open`.
        summarizer: asked first for summaries; as for `Timeline.open`.
        hooks: functions of the application around compactions.
        observer: watches renders and compactions, for traces and metrics.
        conversation: the id of the conversation, or a function that returns it for the run's config; by default the id
            of the thread. Agents that share a thread, such as an agent that is another one's tool, need an id each.
        recall: whether the model gets the tool that reads summarised and hidden blocks.
    """

    state_schema: type[_State] = _State

    def __init__(
        self,
        store: EventStore | Store,
        *,
        policy: Policy | None = None,
        summarizer: Summarizer | None = None,
        hooks: Hooks | None = None,
        observer: Observer | None = None,
        conversation: str | Callable[[RunnableConfig], str] | None = None,
        recall: bool = True,
    ) -> None:
        super().__init__()
        self._conversations = Conversations(store, policy=policy, summarizer=summarizer, hooks=hooks, observer=observer)
        self._conversation = conversation
        self.tools: Sequence[BaseTool] = [self._recall_tool()] if recall else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Send the model the context of the thread's log.

        Raises:
            ContextRefused: the model refused the smaller context too.
            ContextOverflow, BudgetImpossible: as `Timeline.render`.
            InvalidArgument: the run names no thread, or the agent is called without ``await`` and the store belongs to
                an event loop.
            StoreError: the store cannot be read or written.
        """
        return self._conversations.carry_out(self._call(request, handler, []))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """See `wrap_model_call`."""
        attempts: list[_Attempt] = []
        try:
            return await self._conversations.carry_out_async(self._call(request, handler, attempts))
        except anyio.get_cancelled_exc_class():
            if attempts and not attempts[-1].is_recorded:
                cancelled = attempts[-1].failed("cancelled")
                await run_uncancelled(self._conversations.carry_out_async(cancelled))
            raise

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Append the last messages of the run."""
        del runtime
        self._conversations.carry_out(self._caught_up(state, divide_request(state["messages"], ())))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """See `after_agent`."""
        del runtime
        await self._conversations.carry_out_async(self._caught_up(state, divide_request(state["messages"], ())))

    def _call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any], attempts: list[_Attempt]
    ) -> Steps[ModelResponse[Any]]:
        """Render and call; if the model refuses the context for its size, call once more with a smaller one."""
        request_parts = divide_request(request.messages, request.state["messages"])
        timeline = (yield from self._caught_up(request.state, request_parts)).timeline
        wire = wire_of(request.model)
        system, tools = _system_of(request, request_parts.leading), tools_for(wire, map(_schema_of, request.tools))
        render = partial(timeline.render, system=system, tools=tools, ephemeral=request_parts.passing)
        context: RenderedContext = yield Ours(render)
        earlier: RenderedContext | None = None
        while True:
            messages = [*request_parts.leading, *to_messages(context.neutral, request_parts.conversation)]
            sent = framework_request(context, wire, _name_of(request.model), _settings_of(request))
            attempt = _Attempt(timeline, sent)
            attempts.append(attempt)
            try:
                reply: ModelResponse[Any] = yield Theirs(partial(handler, request.override(messages=messages)))
            except Exception as error:
                attempt.is_recorded = True  # by one of the next steps, even if the run is cancelled meanwhile
                smaller = yield Ours(partial(timeline.after_refusal, context, error, earlier=earlier, request=sent))
                if smaller is None:
                    yield from attempt.failed(str(error) or type(error).__name__)
                    raise
                context, earlier = smaller, context
            else:
                yield from attempt.answered(reply)
                return reply

    def _caught_up(self, state: AgentState[Any], request_parts: RequestParts) -> Steps[Followed]:
        """Append the agent's new messages to the thread's conversation, and return it."""
        followed = yield from self._conversations.opened(self._id())
        is_begun = yield Ours(lambda: bool(followed.timeline.window.items))
        read = read_messages(request_parts.conversation, is_begun=is_begun)
        ids = [message.id or "" for message in request_parts.conversation]
        yield Ours(partial(followed.follower.take, read, ids=ids, whole=_is_whole(state)))
        return followed

    def _id(self) -> str:
        config = get_config()
        if isinstance(self._conversation, str):
            return self._conversation
        if self._conversation is not None:
            return self._conversation(config)
        thread = config.get("configurable", {}).get("thread_id")
        if thread is None:
            raise InvalidArgument(
                "conversation",
                'is not known: call the agent with config={"configurable": {"thread_id": …}}, or give the '
                "middleware a conversation",
            )
        return str(thread)

    def _recall_tool(self) -> BaseTool:
        """Return the tool that reads a path of the calling conversation."""
        described: Any = schema("anthropic")  # there only the path is required

        def read(**arguments: Any) -> str:
            return self._conversations.carry_out(self._recalled(arguments))

        async def read_async(**arguments: Any) -> str:
            return await self._conversations.carry_out_async(self._recalled(arguments))

        return StructuredTool.from_function(
            func=read,
            coroutine=read_async,
            name=RECALL,
            description=described["description"],
            args_schema=described["input_schema"],
        )

    def _recalled(self, arguments: dict[str, Any]) -> Steps[str]:
        followed = yield from self._conversations.opened(self._id())
        tool = followed.timeline.recall_tool("anthropic")
        answer: str = yield Ours(partial(tool.handle, arguments))
        return answer


def _is_whole(state: AgentState[Any]) -> bool:
    """Return whether the state has the whole history, also where it shares nothing with the log.

    It does where a checkpointer has earlier checkpoints of the thread: an application that empties such a state begins
    anew. The first run of a thread may be one whose checkpoints were lost, and a summary replaces what is lost.
    """
    config = get_config()
    metadata = config.get("metadata", {})
    if "checkpoint_id" in metadata:
        return True  # the application chose it
    left: Any = state.get("remaining_steps")
    is_first = left is None or left + metadata["langgraph_step"] <= config["recursion_limit"]
    return not is_first and not any(map(is_summary, state["messages"]))


@dataclass(slots=True)
class _Attempt:
    """A call of the model, from when it begins on; ``is_recorded`` once the log has it."""

    timeline: Any
    request: Request
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    watch: Stopwatch = field(default_factory=lambda: Stopwatch(SystemClock()))
    is_recorded: bool = False

    def failed(self, words: str) -> Steps[None]:
        """Record that it failed."""
        yield from self._recorded(partial(self.timeline.record_model_call, error=words))

    def answered(self, reply: ModelResponse[Any]) -> Steps[None]:
        """Record it with its usage."""
        message = next((message for message in reply.result if message.type == "ai"), None)
        metadata = message.response_metadata if message is not None else {}
        finish = metadata.get("finish_reason") or metadata.get("stop_reason")
        model = metadata.get("model_name") or metadata.get("model")
        yield from self._recorded(
            partial(
                self.timeline.record_model_call,
                usage_of(message),
                model=model if isinstance(model, str) else "",
                response_id=None if message is None else message.id,
                finish_reason=finish if isinstance(finish, str) else None,
                server_tools=message is not None and any(map(is_server_result, parts_of(message.content))),
            )
        )

    def _recorded(self, record: Callable[..., Any]) -> Steps[None]:
        self.is_recorded = True
        took = {"started_at": self.started_at, "duration": self.watch.duration(), "request": self.request}
        yield Ours(partial(record, **took), whole=True)  # what was answered was paid for


def _system_of(request: ModelRequest[Any], leading: Sequence[AnyMessage]) -> JsonValue:
    """Return what the render counts as the system prompt: the content of a single message, or the texts of several."""
    own = [] if request.system_message is None else [request.system_message]
    contents = [plain(message.content) for message in (*own, *leading)]
    return contents[0] if len(contents) == 1 else ("\n\n".join(str(m.text) for m in (*own, *leading)) or None)


def _name_of(model: Any) -> str:
    """Return the id of a model."""
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else ""


def _settings_of(request: ModelRequest[Any]) -> dict[str, Any]:
    """Return what the model is called with besides its context: its own settings, and those of the call."""
    own = {name: getattr(request.model, name, None) for name in ("temperature", "max_tokens", "top_p")}
    return {**own, **request.model_settings}


def _schema_of(tool: Any) -> dict[str, Any]:
    """Return the schema of a tool as chat completions have it; a provider's own tool is its schema already."""
    schema: dict[str, Any] = tool if isinstance(tool, dict) else convert_to_openai_tool(tool)
    return schema


_TIERS: Final = ("", "priority_", "flex_")
"""OpenAI's service tiers, as LangChain writes them in front of what a cache answered or took in."""


def _of_any_tier(details: Any, name: str) -> int:
    return sum(count_of(details, f"{tier}{name}") for tier in _TIERS)


def usage_of(message: Any) -> Usage:
    """Return a message's usage; LangChain's ``input_tokens`` include tokens read from and written to the cache."""
    usage = getattr(message, "usage_metadata", None)
    details = usage.get("input_token_details") if isinstance(usage, dict) else None
    read, hour = _of_any_tier(details, "cache_read"), count_of(details, "ephemeral_1h_input_tokens")
    minutes = count_of(details, "ephemeral_5m_input_tokens")
    written = minutes if minutes or hour else _of_any_tier(details, "cache_creation")
    return Usage(
        input_tokens=max(0, count_of(usage, "input_tokens") - read - written - hour),
        output_tokens=count_of(usage, "output_tokens"),
        cache_read_tokens=read,
        cache_write_5m_tokens=written,
        cache_write_1h_tokens=hour,
    )
