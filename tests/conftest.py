"""Set-up that all tests share: how deep they go, the servers that they have, and that nothing leaves this machine."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import outside, postgres_server, temporary
from tests.depth import DEPTH, VARIABLE, Depth, register_searches, selects
from tests.postgres import own_postgres, postgres_url  # noqa: F401 - fixtures of all tests

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

register_searches()

# Where the environment forbids bytecode, each worker and each process that a test starts compiles every SDK anew, which
# is most of what collecting the tests costs. Python's own habit is kept for the tests: compile once, beside the source.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell makes what it runs in the background deaf to ctrl-C, and so would be each command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_LONG = 600
"""Seconds that only those tests are given that take longest: they run the tests of a framework."""

outside.watch()
temporary.keep_within_reach()


@pytest.hookimpl(tryfirst=True)  # before the plugin reads its option
def pytest_configure(config: pytest.Config) -> None:
    """Describe the marks of depth; a search of the night takes longer than the limit that others have."""
    config.addinivalue_line("markers", "from_depth(depth): a run that is shallower does not select the test")
    config.addinivalue_line("markers", "sampled: a quick run plays a fixed part of the test")
    if DEPTH is Depth.NIGHT and config.option.timeout is None:
        config.option.timeout = 3600
    if postgres_server.begin_run():
        config.add_cleanup(postgres_server.end_run)


def pytest_report_header() -> list[str]:
    """Print how deep this run goes, and which servers it has."""
    depth = f"depth: {DEPTH.label} ({VARIABLE} = {' | '.join(depth.label for depth in Depth)})"
    return [depth, postgres_server.header()]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without the garbage collector: what is made stays, and its walks take a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@given(st.none())
def begin_to_search(_: None) -> None:
    """Let Hypothesis make its source of random numbers, and check who refers to it, while the collector sees that.

    From Python 3.14 on it finds nobody once all is frozen, and the first search of each process would fail.
    """


def pytest_collection_finish() -> None:
    """Leave what collecting the tests made out of garbage collection: two million objects, walked again and again."""
    begin_to_search()
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this depth does not play, and begin with what may take long: nobody waits for it at the end."""
    if deeper := [item for item in items if not selects(DEPTH, item)]:
        config.hook.pytest_deselected(items=deeper)
        items[:] = [item for item in items if selects(DEPTH, item)]
    items.sort(key=_is_short)


def _is_short(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("timeout")
    return mark is None or mark.args[0] < _LONG


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the clients of all SDKs be made in no time."""
    outside.trust_one_authority(tmp_path_factory.mktemp("trusted"))


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine() -> Iterator[None]:
    """A test that tries to reach another machine fails, also where a library swallows the refusal."""
    outside.ATTEMPTS.clear()
    yield
    assert not outside.ATTEMPTS
