"""A plugin of pytest that puts `TimelineSession`, with its filter and hooks, in the place of the SDK's own sessions.

It is loaded into a run of the SDK's own tests (``-p timeline_in_place``), in a process of its own. A session that a
test makes with the SDK's constructor is ours, on a store in memory; a run that is given one has its configuration and
its hooks. Nothing of the tests is changed.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
from dataclasses import replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import agents
import agents.memory
import agents.memory.sqlite_session
import pytest
from agents import RunConfig, RunHooks, SessionSettings
from agents.memory.session_settings import coerce_session_settings
from agents.run import AgentRunner, CallModelData

from timeline.home import Home
from timeline.integrations.openai_agents import TimelineSession
from timeline.integrations.openai_agents.history import stored_items
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

OWN_SESSIONS = "TIMELINE_OWN_SESSIONS"
"""Variable of the environment under which the SDK's sessions stay: what fails then fails without us."""
USED = "timeline"
"""Property of a test's report: it made a session of ours."""
_FILES: dict[str, MemoryStore] = {}
"""A store for each file that a test names: a second session on it goes on where the first one ended."""
_made: list[int] = [0]


class InPlace(TimelineSession):
    """Our session, opened by the first call that needs it: a constructor cannot wait."""

    def __init__(self, session_id: str, store: MemoryStore, history: list[Any], settings: Any) -> None:
        _made[0] += 1
        self.session_id = session_id
        self.session_settings = settings
        self._place = store
        self._history = list(history)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def _opened(self) -> None:
        if self._loop is asyncio.get_running_loop():
            return
        is_first = self._loop is None
        _rehome(self._place)
        self._loop = asyncio.get_running_loop()
        settings = self.session_settings
        made = await TimelineSession.open(self._place, self.session_id)
        vars(self).update(vars(made))
        self.session_settings = settings
        if is_first and self._history:
            await TimelineSession.add_items(self, self._history)

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> Any:
        """See `TimelineSession`."""
        await self._opened()
        return await super().get_items(limit, wrapper=wrapper)

    async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
        """See `TimelineSession`."""
        await self._opened()
        await super().add_items(items, wrapper=wrapper)

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """See `TimelineSession`."""
        await self._opened()
        return await super().pop_item(wrapper=wrapper)

    async def clear_session(self, *, wrapper: Any = None) -> None:
        """See `TimelineSession`."""
        await self._opened()
        await super().clear_session(wrapper=wrapper)

    async def call_model_input_filter(self, data: Any) -> Any:
        """See `TimelineSession`."""
        await self._opened()
        return await super().call_model_input_filter(data)


def _rehome(store: MemoryStore) -> None:
    """Let a store be used in the next event loop: the tests call one session from several, one after the other."""
    store._home = Home("the store in memory")
    store._home._loop = None


def _now(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine to its end from code that cannot wait."""
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(asyncio.run(work())))
    thread.start()
    thread.join()
    return done[0]


class SQLiteSession(InPlace):
    """In place of the SDK's session in SQLite."""

    def __init__(
        self,
        session_id: str,
        db_path: Any = ":memory:",
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: Any = None,
    ) -> None:
        del sessions_table, messages_table
        store = MemoryStore() if str(db_path) == ":memory:" else _FILES.setdefault(str(db_path), MemoryStore())
        super().__init__(session_id, store, [], coerce_session_settings(session_settings or SessionSettings()))

    def close(self) -> None:
        """Close it: a store in memory needs none."""


class SimpleListSession(InPlace):
    """In place of the list that the SDK's tests keep their items in."""

    session_settings: Any = None

    def __init__(self, session_id: str = "test", history: Any = None) -> None:
        super().__init__(session_id, MemoryStore(), list(history or []), None)
        self._ignore_ids_for_matching = False

    @property
    def saved_items(self) -> list[Any]:
        """The items of the session, as the tests look at them."""
        if self._loop is None:
            return list(self._history)
        conversation = self.timeline.id
        _rehome(self._place)
        try:
            return [stored.item for stored in _now(lambda: stored_items(self._place, conversation))]
        finally:
            _rehome(self._place)

    @property
    def _items(self) -> list[Any]:
        return self.saved_items


class CountingSession(SimpleListSession):
    """One that counts how often an item is popped."""

    def __init__(self, session_id: str = "test", history: Any = None) -> None:
        super().__init__(session_id, history)
        self.pop_calls = 0

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """Count it."""
        self.pop_calls += 1
        return await super().pop_item(wrapper=wrapper)


class IdStrippingSession(CountingSession):
    """One that strips the ids of items, as hosted stores do."""

    def __init__(self, session_id: str = "test", history: Any = None) -> None:
        super().__init__(session_id, history)
        self._ignore_ids_for_matching = True

    async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
        """Strip the ids."""
        stripped = [{k: v for k, v in item.items() if k != "id"} if isinstance(item, dict) else item for item in items]
        await super().add_items(stripped, wrapper=wrapper)


class _Both(RunHooks[Any]):
    """The hooks of a test and those of the session."""

    def __init__(self, theirs: Any, ours: Any) -> None:
        self._hooks = (theirs, ours)

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return object.__getattribute__(self, name)
        hooks = object.__getattribute__(self, "_hooks")

        async def call(*args: Any, **named: Any) -> None:
            for each in hooks:
                await getattr(each, name)(*args, **named)

        return call


def _with_ours(named: dict[str, Any]) -> dict[str, Any]:
    """Add a session's filter and hooks to what a run is called with."""
    session = named.get("session")
    config = named.get("run_config") or RunConfig()
    if not isinstance(session, InPlace) or not isinstance(config, RunConfig):
        return named
    theirs = config.call_model_input_filter
    config = session.run_config(replace(config, call_model_input_filter=None))
    if theirs is not None:
        config = replace(config, call_model_input_filter=_both_filters(theirs, session))
    hooks, ours = named.get("hooks"), session.hooks()
    return {**named, "run_config": config, "hooks": ours if hooks is None else _Both(hooks, ours)}


def _both_filters(theirs: Callable[[Any], Any], session: InPlace) -> Callable[[Any], Any]:
    """Return a filter that calls the test's, and gives the session's what that returns."""

    async def both(data: Any) -> Any:
        changed = theirs(data)
        changed = await changed if isawaitable(changed) else changed
        given = CallModelData(model_data=changed, agent=data.agent, context=data.context)
        return await session.call_model_input_filter(given)

    return both


_RUN, _STREAMED = AgentRunner.run, AgentRunner.run_streamed


async def _run(self: Any, starting_agent: Any, input: Any, **named: Any) -> Any:  # noqa: A002 - the SDK's name
    return await _RUN(self, starting_agent, input, **_with_ours(named))


def _run_streamed(self: Any, starting_agent: Any, input: Any, **named: Any) -> Any:  # noqa: A002 - the SDK's name
    return _STREAMED(self, starting_agent, input, **_with_ours(named))


def pytest_configure() -> None:
    """Take the place, before any test module is imported."""
    if os.environ.get(OWN_SESSIONS):
        return
    runner: Any = AgentRunner
    runner.run, runner.run_streamed = _run, _run_streamed
    for module in (agents, agents.memory, agents.memory.sqlite_session):
        vars(module)["SQLiteSession"] = SQLiteSession
    simple = importlib.import_module("tests.utils.simple_session")  # of the SDK's tests: this runs in their folder
    for made in (SimpleListSession, CountingSession, IdStrippingSession):
        vars(simple)[made.__name__] = made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Note in a test's report whether it made a session of ours."""
    del item
    _made[0] = 0
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """See `pytest_runtest_protocol`."""
    item.user_properties.append((USED, str(_made[0])))
