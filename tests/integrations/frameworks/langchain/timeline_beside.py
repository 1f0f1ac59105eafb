"""A plugin of pytest that adds `TimelineMiddleware` to every agent that LangChain's own tests build.

It is loaded into a run of LangChain's tests (``-p timeline_beside``), in a process of its own. `create_agent` gets our
middleware as the last one of its list, next to the model, over stores in memory. Nothing of the tests is changed. At
the end of each run the log has what the agent's state has, each message once; after each test the logs are verified.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Final

import langchain.agents
import langchain.agents.factory
import pytest
from langgraph.config import get_config

import timeline.sync
from timeline.agent.deduplication import content_key
from timeline.integrations.langchain import TimelineMiddleware
from timeline.integrations.langchain_messages import divide_request, read_messages
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

WITHOUT_OURS: Final = "TIMELINE_WITHOUT_OURS"
"""Variable of the environment under which no middleware is added: what fails then fails without us."""
USED: Final = "timeline"
"""Property of a test's report: how many agents with our middleware were built in it."""


class Beside:
    """The stores of one test: one for its event loop, and one for agents that it calls without ``await``."""

    def __init__(self) -> None:
        self.agents = 0
        self.awaited = MemoryStore()
        self._stack = ExitStack()
        self._conversations: set[str] = set()
        self._runs: list[Any] = []
        """One object of each run, held so that no two of them have one id."""

    @cached_property
    def blocking(self) -> timeline.sync.Store:
        """The store with a loop of its own, opened when it is first used."""
        with _may_block():
            return self._stack.enter_context(timeline.sync.open_store("memory://"))

    def middleware(self) -> TimelineMiddleware:
        """Return the middleware of another agent, whose conversations are its own."""
        self.agents += 1
        own = self.agents

        def conversation(config: Any) -> str:
            told = config["configurable"]
            run = told["__pregel_runtime"].control
            self._runs.append(run)
            # An agent that is called without a thread begins a conversation with each call.
            named = f"{own}:{told.get('thread_id') or id(run)}"
            self._conversations.add(named)
            return named

        return InEither(self, conversation)

    def verify(self) -> None:
        """Verify what agents wrote that were called without ``await``."""
        if "blocking" in vars(self):
            with _may_block():
                for name in self._conversations:
                    report = timeline.sync.Timeline.open(self.blocking, name).verify()
                    assert report.ok, report

    async def verify_awaited(self) -> None:
        """Verify what agents wrote that were called with ``await``."""
        for name in self._conversations:
            report = await (await Timeline.open(self.awaited, name)).verify()
            assert report.ok, report

    def close(self) -> None:
        """Close the store with a loop of its own."""
        with _may_block():
            self._stack.close()


class InEither(TimelineMiddleware):
    """Our middleware, over the store that fits the call: a coroutine may call an agent without ``await``."""

    def __init__(self, beside: Beside, conversation: Callable[[Any], str]) -> None:
        super().__init__(beside.awaited, conversation=conversation, recall=False)
        self._beside = beside
        self._named = conversation

    @cached_property
    def _blocking(self) -> TimelineMiddleware:
        return TimelineMiddleware(self._beside.blocking, conversation=self._named, recall=False)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """See `TimelineMiddleware`."""
        with _may_block():
            return self._blocking.wrap_model_call(request, handler)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """See `TimelineMiddleware`."""
        with _may_block():
            self._blocking.after_agent(state, runtime)
            made = timeline.sync.Timeline.open(self._beside.blocking, self._named(get_config()))
            _has_each_once(state, made.window.items)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """See `TimelineMiddleware`."""
        await super().aafter_agent(state, runtime)
        made = await Timeline.open(self._beside.awaited, self._named(get_config()))
        _has_each_once(state, made.window.items)


def _has_each_once(state: Any, items: Iterable[Any]) -> None:
    """Check that a log shows what a state has, as often; a state that was summarised has less than its log."""
    told = divide_request(state["messages"], ())
    said = Counter(content_key(block) for own in read_messages(told.conversation, is_begun=True) for block in own)
    shown = Counter(content_key(item.block) for item in items if item.state != "omitted")
    assert {key: shown[key] for key in said} == said


@contextmanager
def _may_block() -> Iterator[None]:
    """Let this thread wait in an event loop: who calls an agent without ``await`` there makes the loop wait anyway."""
    before, _blockbuster._skip.value = _blockbuster._skip.value, True
    try:
        yield
    finally:
        _blockbuster._skip.value = before


_blockbuster: Final[Any] = importlib.import_module("blockbuster.blockbuster")  # with LangChain's tests, not with ours
_test: list[Beside] = [Beside()]
_create_agent: Final[Callable[..., Any]] = langchain.agents.factory.create_agent


@wraps(_create_agent)
def _with_ours(*given: Any, middleware: Any = (), **named: Any) -> Any:
    return _create_agent(*given, middleware=[*middleware, _test[0].middleware()], **named)


def pytest_configure() -> None:
    """Take the place, before any test module is imported."""
    if not os.environ.get(WITHOUT_OURS):
        for module in (langchain.agents, langchain.agents.factory):
            vars(module)["create_agent"] = _with_ours


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give each test stores of its own, and verify the logs that it wrote."""
    if isinstance(item, pytest.Function):
        beside = _test[0] = Beside()
        awaits = inspect.iscoroutinefunction(item.obj)
        item.obj = _verified_awaited(item.obj, beside) if awaits else _verified(item.obj, beside)


def _verified(test: Callable[..., None], beside: Beside) -> Callable[..., None]:
    @wraps(test)
    def verified(*given: Any, **named: Any) -> None:
        test(*given, **named)
        beside.verify()

    return verified


def _verified_awaited(test: Callable[..., Awaitable[None]], beside: Beside) -> Callable[..., Awaitable[None]]:
    @wraps(test)
    async def verified(*given: Any, **named: Any) -> None:
        await test(*given, **named)
        await beside.verify_awaited()
        beside.verify()

    return verified


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Note in a test's report whether an agent with our middleware was built in it."""
    item.user_properties.append((USED, str(_test[0].agents)))
    _test[0].close()
