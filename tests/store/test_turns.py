# ruff: noqa: ASYNC240 - a test may wait for the file system
"""Turns at a database, and the two files by which processes take them."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from time import sleep
from typing import TYPE_CHECKING

import pytest

from tests.no_more_files import no_more_files
from tests.scenes import AT
from timeline.errors import StoreError, StoreLocked
from timeline.store.sqlite.lock_files import LockFiles
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.sqlite.turns import Turn
from timeline.store.testing import events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

HOLD = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1] + "-lock", os.O_RDONLY | os.O_CREAT)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of a database."""
    return tmp_path / "agent.db"


@pytest.fixture
def stuck(file: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that takes its turn and keeps it."""
    command = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


async def test_a_turn_that_does_not_come_is_reported_in_time(file: Path, request: pytest.FixtureRequest) -> None:
    """An append and a second opening raise after the busy timeout, reads go on; so does all when the turn is free."""
    async with await SQLiteStore.open(file, busy_timeout=0.1) as store:
        await store.append("a", events(1))
        stuck = request.getfixturevalue("stuck")
        for _ in range(2):
            with pytest.raises(StoreLocked, match=r"another process is writing.*did not come within 0\.1 s"):
                await store.append("a", events(1))
        with pytest.raises(StoreLocked):
            await SQLiteStore.open(file, busy_timeout=0.1)
        assert await versions(store, "a") == [1]
        stuck.kill()
        stuck.wait()
        assert (await store.append("a", events(1))).version == 2


WRITES: dict[str, Callable[[SQLiteStore], Awaitable[object]]] = {
    "append": lambda store: store.append("a", events(1)),
    "remove": lambda store: store.remove("a"),
    "remove_values": lambda store: store.remove_values(),
    "shrink": lambda store: store.shrink(),
    "set_retention": lambda store: store.set_retention("window"),
    "take_lease": lambda store: store.take_lease("me", AT, AT + timedelta(seconds=9)),
    "replace_snapshot": lambda store: store.replace_snapshot("a", None),
    "replace_waypoints": lambda store: store.replace_waypoints("a", []),
    "erase": lambda store: store.erase("a"),
}


@pytest.mark.parametrize("name", WRITES)
async def test_whatever_writes_or_copies_the_log_waits_for_its_turn(
    file: Path, request: pytest.FixtureRequest, name: str
) -> None:
    """Beside the writer of another process, an early SQLite damages the file."""
    async with await SQLiteStore.open(file, busy_timeout=0.1) as store:
        await store.append("a", events(1))
        request.getfixturevalue("stuck")
        with pytest.raises(StoreLocked, match="did not come"):
            await WRITES[name](store)


async def test_a_store_is_closed_also_if_its_turn_does_not_come(file: Path, request: pytest.FixtureRequest) -> None:
    """Without tidying up; nothing is lost."""
    store = await SQLiteStore.open(file, busy_timeout=0.1)
    await store.append("a", events(3))
    stuck = request.getfixturevalue("stuck")
    await store.aclose()
    stuck.kill()
    stuck.wait()
    async with await SQLiteStore.open(file) as again:
        assert await versions(again, "a") == [1, 2, 3]


async def test_what_is_appended_while_the_turn_is_waited_for_goes_in_with_it(
    file: Path, request: pytest.FixtureRequest
) -> None:
    """One commit for all that waits when the turn comes, without what was cancelled meanwhile."""
    async with await SQLiteStore.open(file, busy_timeout=30) as store:
        await store.append("a", events(1))
        before = _commits(file)
        stuck = request.getfixturevalue("stuck")
        appends = [asyncio.create_task(store.append("a", events(1))) for _ in range(2)]
        await asyncio.sleep(0)
        queue = os.open(f"{file}-queue", os.O_RDONLY)
        while _free(queue):
            pass
        appends += [asyncio.create_task(store.append("a", events(1))) for _ in range(8)]
        await asyncio.sleep(0)
        appends[1].cancel()
        appends[-1].cancel()
        stuck.kill()
        outcomes = await asyncio.gather(*appends, return_exceptions=True)
        assert [getattr(outcome, "version", None) for outcome in outcomes] == [2, None, *range(3, 10), None]
        assert await versions(store, "a") == list(range(1, 10))
        assert _commits(file) == before + 1
        os.close(queue)


def _commits(file: Path) -> int:
    """Count the commits in a write-ahead log: the frames of this log that give the database's size after them."""
    log = file.with_name("agent.db-wal").read_bytes()
    page, salts = struct.unpack_from(">8xI4x8s", log)
    frames = [struct.unpack_from(">4xI8s", log, start) for start in range(32, len(log), 24 + page)]
    return sum(size > 0 for size, of in frames if of == salts)


def test_who_gives_the_turn_up_comes_behind_those_that_wait(file: Path) -> None:
    """Two openings of the files are two processes to the kernel."""
    one, two = LockFiles(str(file)), LockFiles(str(file))
    assert one.try_take()
    assert not two.try_take()
    waiting = threading.Thread(target=two.take)
    waiting.start()
    while _free(one._queue):
        pass
    one.give()
    assert not one.try_take()
    waiting.join()
    assert not one.try_take()
    two.give()
    assert one.try_take()


def _free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return True


@pytest.mark.parametrize("how", ["deleted", "replaced", "moved away"])
def test_only_the_file_at_the_path_counts(file: Path, how: str) -> None:
    """A lock file that is deleted or swapped is noticed at the next turn, by those that wait for it too."""
    one, two = LockFiles(str(file)), LockFiles(str(file))
    inside: list[LockFiles] = []

    def take(lock: LockFiles) -> None:
        for _ in range(20):
            lock.take()
            inside.append(lock)
            sleep(0.001)
            assert inside == [lock]
            inside.clear()
            lock.give()

    assert one.try_take()
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(take, two)]
        while _free(one._queue):
            pass
        _swap(file.with_name("agent.db-lock"), how)
        waiting += [pool.submit(take, LockFiles(str(file)))]
        one.give()
        waiting += [pool.submit(take, one)]
        for each in waiting:
            each.result(30)
    assert one.try_take()
    assert not two.try_take()


def _swap(lock: Path, how: str) -> None:
    match how:
        case "deleted":
            lock.unlink()
        case "replaced":
            lock.with_name("other").touch()
            lock.with_name("other").replace(lock)
        case _:
            lock.rename(lock.with_name("away"))


def test_stores_of_one_process_come_in_the_order_in_which_they_asked(file: Path) -> None:
    """They share one lock, and none of them passes another."""
    turns = [Turn(file, 10.0) for _ in range(6)]
    came: list[int] = []

    def take(number: int) -> None:
        with turns[number]:
            came.append(number)

    with ThreadPoolExecutor(5) as pool, turns[0]:
        for number in range(1, 6):
            pool.submit(take, number)
            while len(turns[0]._line._waiting) < number:
                pass
        take(0)  # inside of its own turn it has it already
    assert came == [0, 1, 2, 3, 4, 5]
    for turn in turns:
        turn.close()
        turn.close()
    assert list(file.parent.iterdir()) == []


async def test_a_file_of_that_name_that_holds_something_stays(file: Path) -> None:
    """The last store to close deletes lock files, which are empty, and nothing else."""
    beside = file.with_name("agent.db-lock")
    beside.write_text("notes")
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(1))
    assert {found.name for found in file.parent.iterdir()} == {"agent.db", "agent.db-lock"}
    assert beside.read_text() == "notes"


async def test_lock_files_are_as_readable_as_the_database(file: Path) -> None:
    """Whoever may use the database may take turns at it."""
    await (await SQLiteStore.open(file)).aclose()
    file.chmod(0o660)
    async with await SQLiteStore.open(file):
        modes = {found.stat().st_mode & 0o777 for found in file.parent.iterdir() if found.suffix != ".db"}
    assert modes == {0o660}


async def test_a_file_system_without_locks_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without turns several processes could damage the file: nothing is written, and the error says the cure."""

    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match=r"cannot lock agent\.db-lock \(No locks available\).*on a local disk"):
        await SQLiteStore.open(file)
    assert list(file.parent.iterdir()) == []
    monkeypatch.undo()
    async with await SQLiteStore.open(file) as store:
        assert (await store.append("a", events(1))).version == 1


def test_a_lock_file_that_cannot_be_opened_again_gives_up_no_descriptor(file: Path) -> None:
    """Its number would soon be that of another file, which the next turn would lock, and close."""
    lock = LockFiles(str(file))
    before = lock._lock, lock._queue
    file.with_name("agent.db-lock").unlink()
    with no_more_files(), pytest.raises(OSError, match="Too many open files"):
        lock.try_take()
    assert (lock._lock, lock._queue) == before
    assert lock.try_take()
    lock.close()


def test_a_turn_that_is_refused_for_want_of_files_names_them_and_not_the_file_system(file: Path) -> None:
    """The cure is another one, and the next turn comes."""
    turn = Turn(file, 1.0)
    file.with_name("agent.db-lock").unlink()
    with no_more_files(), pytest.raises(StoreError, match=r"Too many open files.*ulimit -n"):
        turn.__enter__()
    with turn:
        pass
    turn.close()


async def test_a_store_is_closed_also_where_the_system_complains_of_a_close(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system across a network says there what it could not write; who closed the store waited for ever."""
    store = await SQLiteStore.open(file)
    close = os.close

    def complain(descriptor: int) -> None:
        close(descriptor)
        if threading.current_thread().name.startswith("timeline-store-writer"):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "close", complain)
    await asyncio.wait_for(store.aclose(), 10)
