"""Pydantic AI: a timeline as a capability of an agent.

    from pydantic_ai import Agent
    from timeline.integrations.pydantic_ai import TimelineCapability

    agent = Agent(model, capabilities=[TimelineCapability(store)])

Before each attempt at a model request, the capability appends the new messages of the run's history to the log of its
conversation, and sends the model the context that the log renders to. It changes only the request on the wire, not the
history. It appends a response once the run has accepted it: at the next request, or at the end of the run, however it
ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from timeline.agent.recall import schema
from timeline.errors import InvalidArgument, needs
from timeline.integrations.conversations import Conversations, Ours
from timeline.integrations.framework_requests import framework_request, tools_for, wire_of
from timeline.integrations.pydantic_ai_messages import (
    id_of,
    parted,
    parted_request,
    read_units,
    said_for_once,
    said_in_front,
    to_messages,
)
from timeline.log.recall_form import RECALL
from timeline.log.stopwatch import Stopwatch
from timeline.log.uncancelled import run_uncancelled
from timeline.ports import SystemClock
from timeline.usage import Usage

with needs("pydantic-ai-slim", "pydantic-ai"):
    from pydantic_ai import RunContext, Tool
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.exceptions import RetryModelRequest
    from pydantic_ai.messages import (
        InstructionPart,
        ModelRequest,
        ModelResponse,
        NativeToolReturnPart,
        SystemPromptPart,
        ToolReturn,
        ToolReturnPart,
    )
    from pydantic_ai.tools import AgentDepsT
    from pydantic_ai.toolsets import FunctionToolset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import JsonValue
    from pydantic_ai.capabilities.abstract import WrapRunHandler
    from pydantic_ai.messages import ModelMessage, ToolCallPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AgentToolset
    from pydantic_ai.usage import RequestUsage

    from timeline.integrations.conversations import Followed, Steps
    from timeline.integrations.pydantic_ai_messages import Parted
    from timeline.lifecycle.observer import Observer
    from timeline.policy.model import Policy
    from timeline.ports import EventStore, Hooks, Summarizer
    from timeline.projection.context import RenderedContext
    from timeline.sync import Store
    from timeline.wire.request import Request


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt at a model request: the context that is sent, the refused one in whose place it came, and when.

    ``request`` is what the log keeps of it, None until the framework is given the context; ``watch`` measures it.
    """

    context: RenderedContext
    earlier: RenderedContext | None
    request: Request | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    watch: Stopwatch = field(default_factory=lambda: Stopwatch(SystemClock()))

    def took(self) -> dict[str, Any]:
        """Return what a record says of the request besides its answer."""
        return {"started_at": self.started_at, "duration": self.watch.duration(), "request": self.request}


class TimelineCapability(AbstractCapability[AgentDepsT]):
    """Sends the model the context of a timeline. It is the innermost capability, so that nothing changes its context.

    A request that the model refuses for its size is made once more, with a smaller context. One capability serves any
    number of agents and runs at a time.

    Args:
        store: an open store. One from `timeline.open_store` serves runs that are awaited in the same event loop; one
            from `timeline.sync.open_store` serves all runs.
        policy: when to compact, and how; as for `Timeline.open`.
        summarizer: asked first for summaries; as for `Timeline.open`.
        hooks: functions of the application around compactions.
        observer: watches renders and compactions, for traces and metrics.
        conversation: the id of the conversation, or a function that returns it for the run's context; by default the
            run's ``conversation_id``.
        recall: whether the model gets the tool that reads summarised and hidden blocks.
    """

    def __init__(
        self,
        store: EventStore | Store,
        *,
        policy: Policy | None = None,
        summarizer: Summarizer | None = None,
        hooks: Hooks | None = None,
        observer: Observer | None = None,
        conversation: str | Callable[[RunContext[AgentDepsT]], str] | None = None,
        recall: bool = True,
    ) -> None:
        self._conversations = Conversations(store, policy=policy, summarizer=summarizer, hooks=hooks, observer=observer)
        self._conversation = conversation
        self._recall = recall
        self._attempts: dict[str, _Attempt] = {}
        """By run: the attempt that is being made."""
        self._histories: dict[str, list[ModelMessage]] = {}
        """By run: its history as the framework keeps it, which is another list than the one that a run begins with."""
        self._returned: dict[str, dict[str, ToolReturnPart]] = {}
        """By run: what its tools returned since its newest request, by the ids of their calls."""

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return None: a store cannot be serialized."""
        return None

    def get_ordering(self) -> CapabilityOrdering:
        """Return the innermost place, so that no other capability changes the rendered context."""
        return CapabilityOrdering(position="innermost")

    def get_toolset(self) -> AgentToolset[AgentDepsT] | None:
        """Return the tool that reads summarised and hidden blocks, if the model is to have it."""
        if not self._recall:
            return None
        described: Any = schema("anthropic")  # there only the path is required
        tool = Tool.from_schema(
            self._recalled, RECALL, described["description"], described["input_schema"], takes_ctx=True
        )
        return FunctionToolset([tool])

    async def prepare_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Replace the request's messages by the context of the conversation's log.

        Raises:
            ContextOverflow, BudgetImpossible: as `Timeline.render`.
            InvalidArgument: the run has no conversation.
            StoreError: the store refused.
        """
        self._histories[_run(ctx)] = ctx.messages
        self._returned.pop(_run(ctx), None)  # they are in the history by now
        last = request_context.messages[-1]
        if not isinstance(last, ModelRequest):
            return request_context  # it asks the provider to go on with a response that it holds
        history = parted_request(request_context.messages, ctx.messages)
        attempt = self._attempts.get(_run(ctx))
        if attempt is None or attempt.earlier is None:  # else the smaller context is there already
            context = await self._conversations.carry_out_async(
                self._rendered(self._id(ctx), history, _system_of(history, request_context), _tools_of(request_context))
            )
            attempt = _Attempt(context, None)
        wire, settings = wire_of(request_context.model), request_context.model_settings
        sent = framework_request(attempt.context, wire, request_context.model.model_name, dict(settings or {}))
        self._attempts[_run(ctx)] = _Attempt(attempt.context, attempt.earlier, sent)
        request_context.messages = to_messages(attempt.context.neutral, history, last)
        return request_context

    async def after_model_request(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Record the usage of a request."""
        del request_context
        attempt = self._attempts.pop(_run(ctx), None)
        took = {} if attempt is None else attempt.took()
        recorded = self._recorded(self._id(ctx), response, took)
        await run_uncancelled(self._conversations.carry_out_async(recorded))  # what was answered was paid for
        return response

    async def on_model_request_error(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Ask for another attempt with a smaller context if the model refused this one for its size.

        Raises:
            RetryModelRequest: the model refused the context; the framework makes the next attempt.
            ContextRefused: this was the second refusal, or no smaller context could be made.
        """
        del request_context
        attempt = self._attempts.pop(_run(ctx), None)
        if attempt is None:
            raise error
        smaller = await self._conversations.carry_out_async(self._refused(self._id(ctx), attempt, error))
        if smaller is None:
            raise error
        self._attempts[_run(ctx)] = _Attempt(smaller, attempt.context)
        raise RetryModelRequest

    async def after_tool_execute(
        self, ctx: RunContext[AgentDepsT], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, result: Any
    ) -> Any:
        """Note what a tool returned, since a run that ends before its next request has that in no history."""
        del tool_def, args
        content = result.return_value if isinstance(result, ToolReturn) else result
        part = ToolReturnPart(call.tool_name, content, call.tool_call_id)
        self._returned.setdefault(_run(ctx), {})[call.tool_call_id] = part
        return result

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Append the last messages of the run, even if it fails."""
        failure: BaseException | None = None
        try:
            return await handler()
        except BaseException as error:
            failure = error
            raise
        finally:
            unanswered = self._attempts.pop(_run(ctx), None)
            if unanswered is not None and unanswered.request is not None:
                failed = self._failed(self._id(ctx), unanswered, failure or "the run ended before its answer")
                await run_uncancelled(self._conversations.carry_out_async(failed))
            messages = self._histories.pop(_run(ctx), ctx.messages)
            left = _left_out(messages, self._returned.pop(_run(ctx), {}))
            caught_up = self._caught_up(self._id(ctx), parted(messages), left)
            await run_uncancelled(self._conversations.carry_out_async(caught_up))

    def _rendered(
        self, conversation: str, history: Parted, system: JsonValue, tools: Sequence[JsonValue]
    ) -> Steps[RenderedContext]:
        followed = yield from self._caught_up(conversation, history)
        render = partial(followed.timeline.render, system=system, tools=tools, ephemeral=said_for_once(history))
        context: RenderedContext = yield Ours(render)
        return context

    def _caught_up(
        self, conversation: str, history: Parted, left_out: Sequence[ToolReturnPart] = ()
    ) -> Steps[Followed]:
        """Append the new messages of a run's history to a conversation, and return it.

        Args:
            conversation: its id.
            history: of the run.
            left_out: results that the history is without. They have no ids: the framework may make the parts yet.
        """
        followed = yield from self._conversations.opened(conversation)
        is_begun = yield Ours(lambda: bool(followed.timeline.window.items))
        read = read_units([*history.conversation, *left_out], is_begun=is_begun)
        ids = [*map(id_of, history.conversation), *("" for _ in left_out)]
        yield Ours(partial(followed.follower.take, read, ids=ids))
        return followed

    def _recorded(self, conversation: str, response: ModelResponse, took: dict[str, Any]) -> Steps[None]:
        followed = yield from self._conversations.opened(conversation)
        yield Ours(
            partial(
                followed.timeline.record_model_call,
                usage_of(response.usage),
                model=response.model_name or "",
                response_id=response.provider_response_id,
                finish_reason=response.finish_reason,
                server_tools=any(isinstance(part, NativeToolReturnPart) for part in response.parts),
                **took,
            )
        )

    def _failed(self, conversation: str, attempt: _Attempt, error: BaseException | str) -> Steps[None]:
        """Record a request that failed."""
        followed = yield from self._conversations.opened(conversation)
        words = str(error) or type(error).__name__
        yield Ours(partial(followed.timeline.record_model_call, error=words, **attempt.took()))

    def _refused(self, conversation: str, attempt: _Attempt, error: Exception) -> Steps[RenderedContext | None]:
        followed = yield from self._conversations.opened(conversation)
        after = followed.timeline.after_refusal
        smaller: RenderedContext | None = yield Ours(
            partial(after, attempt.context, error, earlier=attempt.earlier, request=attempt.request)
        )
        if smaller is None:
            yield from self._failed(conversation, attempt, error)
        return smaller

    async def _recalled(self, ctx: RunContext[AgentDepsT], **arguments: Any) -> str:
        def steps() -> Steps[str]:
            followed = yield from self._conversations.opened(self._id(ctx))
            tool = followed.timeline.recall_tool("anthropic")
            answer: str = yield Ours(partial(tool.handle, arguments))
            return answer

        return await self._conversations.carry_out_async(steps())

    def _id(self, ctx: RunContext[AgentDepsT]) -> str:
        if isinstance(self._conversation, str):
            return self._conversation
        id_ = ctx.conversation_id if self._conversation is None else self._conversation(ctx)
        if not id_:
            raise InvalidArgument("conversation", "is not known: give the run a conversation_id")
        return id_


def _run(ctx: RunContext[Any]) -> str:
    return ctx.run_id or ""


def _left_out(messages: Sequence[ModelMessage], returned: Mapping[str, ToolReturnPart]) -> list[ToolReturnPart]:
    """Return what the tools of a history's last response returned, and the history is without.

    The framework adds results with the next request. A run that is left before it, also one that is cancelled while its
    consumer looks at a result, has run its tools and has no such request.
    """
    calls: list[str] = []
    answered: set[str] = set()
    for message in messages:
        if isinstance(message, ModelResponse):
            calls, answered = [call.tool_call_id for call in message.tool_calls], set()
        else:
            answered |= {getattr(part, "tool_call_id", "") for part in message.parts}
    return [returned[call] for call in calls if call in returned and call not in answered]


def _system_of(history: Parted, request: ModelRequestContext) -> JsonValue:
    """Return what the render counts as the system prompt: the history's, the instructions, what is put in front."""
    parameters, last = request.model_request_parameters, request.messages[-1]
    instruction_parts = parameters.instruction_parts
    instructions = InstructionPart.join(instruction_parts) if instruction_parts else getattr(last, "instructions", None)
    texts = [part.content for part in history.system if isinstance(part, SystemPromptPart)]
    return "\n\n".join(filter(None, [*texts, instructions, *said_in_front(history)])) or None


def _tools_of(request: ModelRequestContext) -> list[JsonValue]:
    """Return the schemas of the tools as the model receives them."""
    parameters = request.model_request_parameters
    schemas = map(_schema_of, (*parameters.function_tools, *parameters.output_tools))
    return tools_for(wire_of(request.model), schemas)


def _schema_of(tool: ToolDefinition) -> dict[str, Any]:
    parameters: Any = tool.parameters_json_schema
    function = {"name": tool.name, "description": tool.description or "", "parameters": parameters}
    return {"type": "function", "function": function}


def usage_of(usage: RequestUsage) -> Usage:
    """Return a usage; the framework's ``input_tokens`` include tokens read from and written to the cache."""
    read, written, hour = usage.cache_read_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens
    return Usage(
        input_tokens=max(0, usage.input_tokens - read - written),
        output_tokens=usage.output_tokens,
        cache_read_tokens=read,
        cache_write_5m_tokens=max(0, written - hour),
        cache_write_1h_tokens=hour,
    )
