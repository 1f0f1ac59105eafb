"""A store in a fork of its process: the fork is refused, the parent goes on unharmed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from textwrap import dedent, indent
from typing import TYPE_CHECKING

import pytest

from tests.crowd import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PARENT = """
import asyncio, gc, multiprocessing, os, sys
from tests.store.test_event_loops import CALLS
from timeline import Timeline, open_store, sync
from timeline.blocks import UserPrompt
from timeline.errors import ForkedProcess
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events

FILE = sys.argv[1]

def refused(call):
    try:
        call()
    except ForkedProcess as error:
        assert "Open the store only after the fork" in str(error), error
        return True
    return False

def driven(awaitable):
    # A fork has no running loop; what is refused at once needs none.
    awaitable.__await__().send(None)

def in_fork(child):
    pid = os.fork()
    if not pid:
        code = 1
        try:
            child()
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

async def main(where):
    store = await open_store(where)
    await store.append("a", events(2))
    timeline = await Timeline.open(store, "c")
    await timeline.append(UserPrompt(text="one"))
{body}
    assert (await store.append("a", events(1))).version == 3
    await timeline.append(UserPrompt(text="two"))
    assert len(timeline.window.items) == 2
    assert [event.version async for event in store.read("a")] == [1, 2, 3]
    await store.aclose()

asyncio.run(main({where}))
print("done")
"""


def _run(body: str, file: Path, where: str = "FILE") -> None:
    script = PARENT.replace("{body}", indent(dedent(body), "    ")).replace("{where}", where)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("where", ["FILE", "'memory://'"])
def test_a_fork_is_refused_by_every_method_at_once(tmp_path: Path, where: str) -> None:
    """Of the store, of an iterator that was begun before, and of a conversation."""
    body = """
    begun = store.read("a", page=1)
    await anext(begun)

    def child():
        for name, call in CALLS.items():
            assert refused(lambda: driven(call(store))), name
        assert refused(lambda: driven(anext(begun)))
        say = lambda: timeline.append(UserPrompt(text="x"))
        for call in (timeline.render, timeline.catch_up, timeline.compact, say):
            assert refused(lambda: driven(call()))

    assert in_fork(child) == 0
    """
    _run(body, tmp_path / "agent.db", where)


def test_a_new_event_loop_in_a_fork_is_refused_too(tmp_path: Path) -> None:
    """Nor may the fork open the same file: SQLite would find the parent's connection and lock nothing."""
    body = """
    async def use():
        await store.info("a")

    async def again(readonly):
        await SQLiteStore.open(FILE, readonly=readonly)

    async def other():
        async with await SQLiteStore.open(FILE + "-other") as own:
            await own.append("a", events(1))

    def child():
        assert refused(lambda: asyncio.run(use()))
        assert refused(lambda: asyncio.run(again(False)))
        assert refused(lambda: asyncio.run(again(True)))
        asyncio.run(other())

    assert await asyncio.to_thread(in_fork, child) == 0
    """
    _run(body, tmp_path / "agent.db")


@pytest.mark.parametrize("end", ["del store, timeline; gc.collect()", "sys.exit()", "pass"])
def test_the_parent_is_not_harmed_however_a_fork_ends(tmp_path: Path, end: str) -> None:
    """The fork drops the store, or ends with or without the interpreter's clean-up, while the parent appends."""
    body = """
    def child():
        global store, timeline
        END

    globals().update(store=store, timeline=timeline)
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    await store.append("b", events(5))
    await asyncio.to_thread(process.join)
    assert process.exitcode == 0
    assert os.path.exists(FILE + "-wal"), "a connection that is left open by a fork keeps its log"
    """
    _run(body.replace("END", end), tmp_path / "agent.db")


def test_a_killed_parent_leaves_no_lock_with_its_fork(tmp_path: Path) -> None:
    """The fork has no copy of the lock: another process takes its turn at once."""
    script = """
import asyncio, os, sys, time
from timeline.store.sqlite.store import SQLiteStore

async def main():
    store = await SQLiteStore.open(sys.argv[1])
    inside = store.database.writer.submit(lambda _: time.sleep(60), 1)  # in its turn
    await asyncio.sleep(0.3)
    if not os.fork():
        print("forked", flush=True)
        time.sleep(60)
    time.sleep(60)

asyncio.run(main())
"""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "agent.db")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "forked\n"
        parent.kill()
        parent.wait()
        append = """
import asyncio, os, signal, sys
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events

async def main():
    async with await SQLiteStore.open(sys.argv[1], busy_timeout=1.0) as store:
        print((await store.append("a", events(1))).version)

asyncio.run(main())
"""
        done = subprocess.run(
            [sys.executable, "-c", append, str(tmp_path / "agent.db")],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        os.killpg(parent.pid, signal.SIGKILL)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_blocking_store_in_a_fork_is_refused_and_left_in_peace(tmp_path: Path) -> None:
    """Calls, iterators that were begun, and the end of the ``with`` block raise instead of waiting for ever."""
    script = """
import os, sys
from timeline import sync
from timeline.errors import ForkedProcess

pid = None
try:
    with sync.open_store(sys.argv[1]) as store:
        timeline = sync.Timeline.open(store, "c")
        timeline.append({"type": "user.prompt", "text": "one"})
        begun = store.read("c", page=1)
        next(begun)
        pid = os.fork()
        if not pid:
            for call in (store.head, timeline.render, lambda: timeline.version, lambda: next(begun)):
                try:
                    call()
                except ForkedProcess:
                    print("refused", flush=True)
        else:
            os.waitpid(pid, 0)
            timeline.append({"type": "user.prompt", "text": "two"})
            print(len(list(store.read("c"))), flush=True)
except ForkedProcess:
    assert pid == 0
    print("left", flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "agent.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["refused"] * 4 + ["left", "3"], "")
