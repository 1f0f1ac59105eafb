"""A plugin of pytest that puts `TimelineSessionStore` in the place of the SDK's own store, `InMemorySessionStore`.

It is loaded into a run of the SDK's own tests (``-p timeline_in_place``), in a process of its own. A store that a test
makes is ours, on a store of timelines in memory. Nothing of the tests is changed.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

import claude_agent_sdk
import claude_agent_sdk._internal.session_store
import pytest

from timeline.home import Home
from timeline.integrations.claude_agent_sdk import TimelineSessionStore
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

OWN_STORE = "TIMELINE_OWN_STORE"
"""Variable of the environment under which the SDK's store stays: what fails then fails without us."""
USED = "timeline"
"""Property of a test's report: it made a store of ours."""
_made: list[int] = [0]


class InMemorySessionStore(TimelineSessionStore):
    """Ours, with what the SDK's has for tests: looking at the lines without waiting, and setting times."""

    def __init__(self) -> None:
        _made[0] += 1
        self._place = MemoryStore()
        self._loop: Any = None
        self._mtimes: dict[str, int] = {}
        super().__init__(self._place)

    def _enter(self) -> None:
        """Let the store be used in the next event loop: a test calls it from several, one after the other."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._place._home = Home("the store in memory")
            self._open.clear()

    def clear(self) -> None:
        """Forget all sessions."""
        self.__init__()  # type: ignore[misc]

    async def append(self, key: Any, entries: Any) -> None:
        """See `TimelineSessionStore`."""
        self._enter()
        await super().append(key, entries)

    async def load(self, key: Any) -> Any:
        """See `TimelineSessionStore`."""
        self._enter()
        return await super().load(key)

    async def list_sessions(self, project_key: str) -> Any:
        """See `TimelineSessionStore`; with the times that a test set."""
        self._enter()
        found = await super().list_sessions(project_key)
        return [{**one, "mtime": self._mtimes.get(f"{project_key}/{one['session_id']}", one["mtime"])} for one in found]

    async def list_session_summaries(self, project_key: str) -> Any:
        """See `TimelineSessionStore`."""
        self._enter()
        return await super().list_session_summaries(project_key)

    async def delete(self, key: Any) -> None:
        """See `TimelineSessionStore`."""
        self._enter()
        await super().delete(key)

    async def list_subkeys(self, key: Any) -> Any:
        """See `TimelineSessionStore`."""
        self._enter()
        return await super().list_subkeys(key)

    def get_entries(self, key: Any) -> list[Any]:
        """Return the lines of a transcript; none of one that is not there."""
        return _now(lambda: self.load(key)) or []

    @property
    def size(self) -> int:
        """The number of sessions."""
        return int(_now(self._count))

    async def _count(self) -> int:
        self._enter()
        found: list[Any] = [event.payload async for event in self._place.read_all(types=["framework.record"])]
        keys = [record.data for record in found]
        projects = {data["project_key"] for data in keys if data is not None}
        return sum([len(await self.list_sessions(project)) for project in projects])


def _now(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine to its end from code that cannot wait."""
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(asyncio.run(work())))
    thread.start()
    thread.join()
    return done[0]


def pytest_configure() -> None:
    """Take the place, before any test module is imported."""
    if os.environ.get(OWN_STORE):
        return
    for module in (claude_agent_sdk, claude_agent_sdk._internal.session_store):
        vars(module)["InMemorySessionStore"] = InMemorySessionStore


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Note in a test's report whether it made a store of ours."""
    del item
    _made[0] = 0
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """See `pytest_runtest_protocol`."""
    item.user_properties.append((USED, str(_made[0])))
