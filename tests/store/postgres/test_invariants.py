"""What holds of any log holds of one on a server: the searches and the state machine, each story in an empty store."""

from __future__ import annotations

import asyncio
import inspect
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.depth import at_night, examples, sampled
from tests.invariants import test_machine
from tests.invariants.places import elsewhere
from tests.postgres import with_query
from tests.store.postgres.test_tenants import member_url
from tests.store.test_forks import STEPS, check_forks, check_long_line, play_forks
from timeline import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["member_url"]
MODULES: Final = (
    *("accounts", "counts", "cut", "determinism", "fold", "forks", "going_back", "hiding", "lifecycle"),
    *("overflow", "render", "replay", "stages", "times", "undo", "wires"),
)
PART: Final = 20
"""A search plays the part of the examples that it has in memory: at night, as many as a whole one in CI."""
BY_DAY: Final = frozenset(
    {
        "test_a_fork_and_its_parent_go_on_without_each_other",
        "test_undoing_all_gives_the_full_log",
        "test_the_window_is_what_a_naive_fold_of_the_whole_log_says",
    }
)
"""The searches that are played at every depth: the contract asks a store most of what the others do."""


def searches() -> Iterator[Callable[[], None]]:
    """Yield the searches that open a new store for each story."""
    for name in MODULES:
        module = import_module(f"tests.invariants.test_{name}")
        for one in vars(module).values():
            searched = getattr(one, "is_hypothesis_test", False) and one.__module__ == module.__name__
            if searched and not inspect.signature(one).parameters:
                yield one


def fewer(whole: settings) -> settings:
    """Return the settings of a search with a part of its examples."""
    enough = max(1, whole.max_examples // PART)
    return settings(whole, max_examples=enough)


@pytest.fixture
def tenants(member_url: str) -> Iterator[str]:
    """The URLs of ever new tenants, of which each has an empty store."""
    return (with_query(member_url, tenant=str(number)) for number in count(1))


@sampled
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "search",
    [pytest.param(one, id=one.__name__, marks=() if one.__name__ in BY_DAY else at_night) for one in searches()],
)
def test_what_holds_in_memory_holds_on_a_server(
    search: Any, tenants: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search is played with fewer examples."""
    name = "_hypothesis_internal_use_settings"
    monkeypatch.setattr(search, name, fewer(getattr(search, name)))
    with elsewhere(tenants):
        search()


@sampled
@settings(
    max_examples=examples(2),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(STEPS)
def test_a_fork_reads_as_a_copy_of_its_parent_would(tenants: Iterator[str], steps: Any) -> None:
    """Whatever is forked of whatever."""

    async def story() -> None:
        async with open_store(next(tenants)) as store:
            await check_forks(store, await play_forks(store, steps))

    asyncio.run(story())


@at_night
def test_a_long_line_of_forks_is_read_as_one_log(tenants: Iterator[str]) -> None:
    """Two hundred forks, each of the one before."""

    async def story() -> None:
        async with open_store(next(tenants)) as store:
            await check_long_line(store)

    asyncio.run(story())


@sampled
@pytest.mark.timeout(3_600)
def test_a_state_machine_agrees_with_the_naive_fold_on_a_server(tenants: Iterator[str]) -> None:
    """Two timelines and a fork of a conversation, whatever they do."""

    class ServerMachine(test_machine.TimelineMachine):
        def place(self) -> str:
            """Return the URL of a new tenant."""
            return next(tenants)

    run_state_machine_as_test(ServerMachine, settings=fewer(test_machine.TestTimelineInSQLite.settings))
