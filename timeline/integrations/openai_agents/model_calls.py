"""A call of the model under way: what it was sent, from its filter to its response, and the retry in between.

The SDK makes a call in one task: filter, request, retries, hooks. So the call is known in that context, also where
several agents run on one session at a time.
"""

from __future__ import annotations

import asyncio
import weakref
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from timeline.errors import needs
from timeline.log.stopwatch import Stopwatch
from timeline.ports import SystemClock

with needs("openai-agents"):
    from agents import ModelRetrySettings, ModelSettings, RetryDecision

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agents import Agent, RetryPolicyContext
    from agents.run import ModelInputData

    from timeline.blocks import Block
    from timeline.integrations.openai_agents.beside import Beside
    from timeline.integrations.openai_agents.called_model import CalledModel
    from timeline.integrations.openai_agents.history import Stored
    from timeline.projection.context import RenderedContext
    from timeline.wire.request import Request

_MOST: Final = 1_000
"""Retries that the SDK counts to; how many there are is the policy's to say, which knows the agent."""


TaskOf: TypeAlias = "Callable[[], asyncio.Task[Any] | None]"
"""Returns the task of a run, as long as anything else holds it."""


def no_task() -> None:
    """Return the task of a run of which nothing is known."""


def _task_here() -> TaskOf:
    """Return the task here without holding it: it holds what its context has, and so the call and all that it sent."""
    task = asyncio.current_task()
    return no_task if task is None else weakref.ref(task)


@dataclass(slots=True, eq=False)
class Call:
    """A call of the model.

    Attributes:
        owner: stands for the session that it is made on.
        agent: whose model is called.
        context: what was rendered for it.
        request: what the log keeps of what it was sent.
        data: what the SDK sends: the SDK reads its input anew at each attempt.
        beside: what is sent beside the context.
        listed: the items of the SDK's list, each with its blocks.
        model: the model.
        watch: measures it.
        earlier: the context that was refused for its size, if one was.
        is_open: whether it has neither a response nor an error yet.
        has_begun: whether it is certain that the model was called; known only where a run has the session's hooks.
        task_of: returns the task of the run that it belongs to.
        run: the SDK's context of the run; None where nobody named it.
    """

    owner: object
    agent: Agent[Any]
    context: RenderedContext
    request: Request
    data: ModelInputData
    beside: Beside
    listed: Sequence[tuple[Any, list[Block]]]
    model: CalledModel
    watch: Stopwatch = field(default_factory=lambda: Stopwatch(SystemClock()))
    earlier: RenderedContext | None = None
    is_open: bool = True
    has_begun: bool = False
    task_of: TaskOf = field(default_factory=_task_here)
    run: object = None

    def restart(self) -> None:
        """Begin to measure anew: the model is called again."""
        self.watch = Stopwatch(SystemClock())

    def is_left(self) -> bool:
        """Return whether the run that it belongs to goes on without it: nothing of it comes any more."""
        return ended(self.task_of())


CALL: Final[ContextVar[Call | None]] = ContextVar("timeline_call", default=None)
"""The call that this context makes."""


@dataclass(slots=True, eq=False)
class Begun:
    """A run that a session gave its items to; its first call follows, before that of any agent inside a tool.

    Attributes:
        owner: stands for the session.
        items: what it gave.
        run: the SDK's context of the run; None where nobody named it.
        has_called: whether the run has called a model.
        listed: the SDK's list at its newest call.
        agent: name of the agent that made it.
    """

    owner: object
    items: Sequence[Stored]
    run: object = None
    has_called: bool = False
    listed: Sequence[Any] = ()
    agent: str = ""

    def is_first_call(self, owner: object) -> bool:
        """Return whether a session's filter is called for the first time since; from then on it is not."""
        is_first = self.owner is owner and not self.has_called
        self.has_called = self.has_called or is_first
        return is_first

    def is_of(self, listed: Sequence[Any], agent: str) -> bool:
        """Return whether a later call is of this run: its list goes on with a reply, or another agent has taken over.

        That one's list may be what a filter made of the run's.
        """
        before = len(self.listed)
        goes_on = len(listed) > before and listed[:before] == [*self.listed] and listed[before].get("role") != "user"
        return goes_on or agent != self.agent


BEGUN: Final[ContextVar[Begun | None]] = ContextVar("timeline_begun", default=None)
"""The newest run that began in this context."""


def ended(task: asyncio.Task[Any] | None) -> bool:
    """Return whether a run is over, for the code that asks: its task ended, or is here, where nothing waits for it."""
    return task is None or task.done() or task is asyncio.current_task()


Shrink: TypeAlias = "Callable[[Call, BaseException], Awaitable[bool]]"
"""Makes the context of a call smaller that was refused for its size; returns whether it did."""


def with_retry(settings: ModelSettings | None, shrink: Shrink) -> ModelSettings:
    """Return settings under which a call that is refused for its size is made once more, with a smaller context.

    All other retries are those of the settings and of the agent, as many as they allow. A run that allows none
    (``max_retries=0``) has none, not those of the provider's client either: so it wants it. Of an agent that allows
    none the client's remain: the SDK merges the run's settings over the agent's before it says which agent is called.

    Args:
        settings: those of a run, if it has any.
        shrink: makes the context of a call smaller.
    """
    settings = settings or ModelSettings()
    theirs = settings.retry or ModelRetrySettings()
    if theirs.max_retries == 0:
        return settings
    retry = replace(theirs, max_retries=_MOST, policy=_smaller_once(settings.retry, shrink))
    return replace(settings, retry=retry)


def _smaller_once(of_run: ModelRetrySettings | None, shrink: Shrink) -> Callable[[RetryPolicyContext], Any]:
    """Return a policy for retries; a function, since the SDK copies settings with all that an object holds."""

    async def policy(context: RetryPolicyContext) -> bool | RetryDecision:
        call = CALL.get()
        if call is not None and await shrink(call, context.error):
            return RetryDecision(retry=True, delay=0.0)
        theirs = _merged(None if call is None else call.agent.model_settings.retry, of_run)
        most = theirs.max_retries or 0
        attempt = context.attempt - (0 if call is None or call.earlier is None else 1)
        if theirs.policy is None or attempt > most:
            return False
        decided: Any = theirs.policy(replace(context, attempt=attempt, max_retries=most))
        decision: bool | RetryDecision = await decided if isawaitable(decided) else decided
        return decision

    if of_run is not None and of_run.policy is not None:
        vars(policy).update(vars(of_run.policy))  # what the SDK noted on it
    return policy


def _merged(agents: ModelRetrySettings | None, runs: ModelRetrySettings | None) -> ModelRetrySettings:
    """Return the settings for retries that a call has: those of the run go before those of the agent."""
    merged = ModelSettings(retry=agents).resolve(ModelSettings(retry=runs)).retry
    return merged or ModelRetrySettings()
