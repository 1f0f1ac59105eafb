# ruff: noqa: ASYNC220, ASYNC240 - a test may wait for the file system
from __future__ import annotations

import asyncio
import errno
import logging
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from timeline import open_store
from timeline.errors import NotAStore, StoreClosed, StoreError, StoreFull, StoreLocked, StoreReadOnly, StoreTooNew
from timeline.store.migrations import APPLICATION_ID
from timeline.store.private_files import sync_file
from timeline.store.sqlite import files, lock_files
from timeline.store.sqlite.connection import is_open_here
from timeline.store.sqlite.files import connect_writer
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from timeline.store.durability import Durability

    Unprivileged = Callable[[Path], AbstractContextManager[None]]


async def _store_with(file: Path, count: int) -> None:
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(count))


async def test_a_missing_file_and_an_empty_database_become_stores(tmp_path: Path) -> None:
    """The first open makes the file; the next one finds what was appended."""
    (tmp_path / "empty.db").touch()
    with closing(sqlite3.connect(tmp_path / "vacuum.db")) as empty:
        empty.execute("PRAGMA auto_vacuum = INCREMENTAL")
    names = {"missing.db", "empty.db", "vacuum.db", "odd name ?#%é.db"}
    for name in names:
        await _store_with(tmp_path / name, 3)
        async with await SQLiteStore.open(str(tmp_path / name)) as store:
            assert await versions(store, "a") == [1, 2, 3]
    assert {file.name for file in tmp_path.iterdir()} == names


@pytest.mark.parametrize("readonly", [False, True])
async def test_a_path_that_can_hold_no_file_is_named_with_the_cure(tmp_path: Path, readonly: bool) -> None:  # noqa: FBT001
    """A folder, or a file in a missing folder, is a clear error and leaves nothing behind."""
    with pytest.raises(StoreError, match=r"is a folder. Name a file in it, for example .*agent\.db"):
        await SQLiteStore.open(tmp_path, readonly=readonly)
    with pytest.raises(StoreError, match=r"the folder .*nowhere does not exist"):
        await SQLiteStore.open(tmp_path / "nowhere" / "agent.db", readonly=readonly)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no folder that is in use")
async def test_a_relative_path_in_a_working_directory_that_was_removed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended in an error of Python's that names no path. A whole path opens as ever."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"agent\.db: the working directory was removed"):
            await open_store("agent.db", readonly=readonly)
    async with open_store(tmp_path / "agent.db"):
        pass
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("readonly", [True, False])
async def test_a_file_with_a_second_name_is_refused(tmp_path: Path, readonly: bool) -> None:  # noqa: FBT001
    """Two processes that open it by different names have two logs for one database, and damage it."""
    file, other = tmp_path / "agent.db", tmp_path / "other.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(1))
        other.hardlink_to(file)
        with pytest.raises(StoreError, match=r"more than one name.*symbolic link"):
            await SQLiteStore.open(other, readonly=readonly)
        other.unlink()
        await store.append("a", events(1))
    async with await SQLiteStore.open(file) as store:
        assert await versions(store, "a") == [1, 2]


async def test_reading_a_store_that_is_not_there_does_not_make_one(tmp_path: Path) -> None:
    """`readonly` opens what exists, and nothing else."""
    with pytest.raises(StoreError, match="there is no store to read"):
        await SQLiteStore.open(tmp_path / "agent.db", readonly=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize(
    "content", [b"x", b"x" * 511, b"\x00" * 5_000, b"hello\n" * 1_000, b"SQLite format 3\x00" + b"junk" * 200]
)
async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes, readonly: bool) -> None:  # noqa: FBT001
    """A text, zeros or a fake header is `NotAStore`, byte for byte as it was, without side files."""
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(NotAStore, match=r"notes\.txt is not a timeline store.* It was not changed"):
        await SQLiteStore.open(file, readonly=readonly)
    assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("journal", ["wal", "delete"])
async def test_a_database_of_something_else_is_left_alone(tmp_path: Path, journal: str, readonly: bool) -> None:  # noqa: FBT001
    """Somebody else's SQLite file is not a place for our tables, even if it has a table called events."""
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute(f"PRAGMA journal_mode = {journal}")
        other.execute("CREATE TABLE events (x)")
    before = file.read_bytes()
    with pytest.raises(NotAStore, match="it is a SQLite database of something else"):
        await SQLiteStore.open(file, readonly=readonly)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("readonly", [False, True])
async def test_a_store_of_a_later_version_is_refused(tmp_path: Path, readonly: bool) -> None:  # noqa: FBT001
    """An unknown migration means an unknown schema: upgrade, do not guess."""
    file = tmp_path / "agent.db"
    await _store_with(file, 1)
    with closing(sqlite3.connect(file)) as later:
        later.execute("INSERT INTO migrations VALUES (99, 'from the future')")
        later.commit()
    with pytest.raises(StoreTooNew, match="schema 99"):
        await SQLiteStore.open(file, readonly=readonly)


async def test_a_locked_database_is_waited_for_and_then_reported(tmp_path: Path) -> None:
    """While another process writes, an append waits for the busy timeout; reads go on; afterwards all is well."""
    file = tmp_path / "agent.db"
    await _store_with(file, 1)
    async with await SQLiteStore.open(file, busy_timeout=0.05) as store:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreLocked, match=r"agent\.db: another process is writing"):
                await store.append("a", events(1))
            assert await versions(store, "a") == [1]
            assert (await store.append("a", [])).version == 1
            other.execute("ROLLBACK")
        assert (await store.append("a", events(1))).version == 2


async def test_a_full_database_keeps_what_it_has_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    """The append that does not fit writes nothing; a small one, or a later one, is written."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await store.append("a", events(3))
        assert store.database.writer is not None

        def limit(connection: sqlite3.Connection, spare: int) -> None:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages + spare}")

        await asyncio.wrap_future(store.database.writer.submit(lambda connection: limit(connection, 2)))
        large = events(200, text="x" * 2_000)
        with pytest.raises(StoreFull, match="What was stored is intact"):
            await store.append("a", large)
        assert await versions(store, "a") == [1, 2, 3]
        assert (await store.append("a", events(1), expected=3)).version == 4
        await asyncio.wrap_future(store.database.writer.submit(lambda connection: limit(connection, 100_000)))
        assert (await store.append("a", large, expected=4)).version == 204


async def test_a_read_only_store_reads_and_refuses_to_write(tmp_path: Path) -> None:
    """`readonly` reads everything and changes nothing."""
    file = tmp_path / "agent.db"
    await _store_with(file, 3)
    before = file.read_bytes()
    async with await SQLiteStore.open(file, readonly=True) as store:
        assert await versions(store, "a") == [1, 2, 3]
        assert len((await store.load_window("a")).events) == 3
        with pytest.raises(StoreReadOnly, match="in Python, open it without readonly"):
            await store.append("a", events(1))
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


async def test_reading_moves_nothing_that_a_killed_writer_left(tmp_path: Path) -> None:
    """Events that are still in the write-ahead log are read, and stay there until a writer opens the store."""
    copy = tmp_path / "copy"
    copy.mkdir()
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await store.append("a", events(3))
        for name in ("agent.db", "agent.db-wal"):
            (copy / name).write_bytes((tmp_path / name).read_bytes())
    before = {name: (copy / name).read_bytes() for name in ("agent.db", "agent.db-wal")}
    async with await SQLiteStore.open(copy / "agent.db", readonly=True) as store:
        assert await versions(store, "a") == [1, 2, 3]
    assert {name: (copy / name).read_bytes() for name in before} == before


async def test_several_readers_leave_no_side_file(tmp_path: Path) -> None:
    """Whichever of them closes last takes the side files away; a writer between them loses nothing."""
    file = tmp_path / "agent.db"
    await _store_with(file, 2)
    async with await SQLiteStore.open(file, readonly=True) as one:
        async with await SQLiteStore.open(file, readonly=True) as two:
            assert await versions(two, "a") == [1, 2]
        await _store_with(file, 2)
        assert await versions(one, "a") == [1, 2, 3, 4]
    assert list(tmp_path.iterdir()) == [file]
    async with await SQLiteStore.open(file, readonly=True) as store:
        assert await versions(store, "a") == [1, 2, 3, 4]


async def test_a_read_only_store_follows_a_writer(tmp_path: Path) -> None:
    """A reader beside a writer sees each append as soon as it is acknowledged."""
    async with (
        await SQLiteStore.open(tmp_path / "agent.db") as store,
        await _opened_after_an_append(store, tmp_path / "agent.db") as reader,
    ):
        for version in range(2, 6):
            await store.append("a", events(1))
            assert (await reader.info("a")).version == version


async def _opened_after_an_append(store: SQLiteStore, file: Path) -> SQLiteStore:
    await store.append("a", events(1))
    return await SQLiteStore.open(file, readonly=True)


@pytest.mark.parametrize("readonly", [False, True])
async def test_a_file_in_a_read_only_folder_can_be_read(
    tmp_path: Path,
    unprivileged: Unprivileged,
    readonly: bool,  # noqa: FBT001
) -> None:
    """Where no side file can be made the store is read all the same, says so, and an append raises."""
    file = tmp_path / "agent.db"
    await _store_with(file, 3)
    file.chmod(0o444)
    tmp_path.chmod(0o555)
    with unprivileged(tmp_path):
        async with await SQLiteStore.open(file, readonly=readonly) as store:
            assert await versions(store, "a") == [1, 2, 3]
            assert readonly or any("may not be written to" in advised for advised in store.advice)
            with pytest.raises(StoreReadOnly):
                await store.append("a", events(1))
    tmp_path.chmod(0o755)


async def test_a_read_only_file_in_a_writable_folder_can_be_read(tmp_path: Path, unprivileged: Unprivileged) -> None:
    """A file without write permission opens, reads, and refuses appends."""
    file = tmp_path / "agent.db"
    await _store_with(file, 3)
    file.chmod(0o444)
    tmp_path.chmod(0o777)
    with unprivileged(tmp_path):
        async with await SQLiteStore.open(file) as store:
            assert await versions(store, "a") == [1, 2, 3]
            with pytest.raises(StoreReadOnly):
                await store.append("a", events(1))
            assert await versions(store, "a") == [1, 2, 3]


async def test_unfinished_changes_that_cannot_be_read_are_not_passed_over(
    tmp_path: Path, unprivileged: Unprivileged
) -> None:
    """A copy whose newest events are still in the write-ahead log is not read without them."""
    copy = tmp_path / "copy"
    copy.mkdir()
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await store.append("a", events(3))
        for name in ("agent.db", "agent.db-wal"):
            (copy / name).write_bytes((tmp_path / name).read_bytes())
            (copy / name).chmod(0o444)
    copy.chmod(0o555)
    with unprivileged(copy), pytest.raises(StoreError, match=r"its newest events are still in agent\.db-wal"):
        await SQLiteStore.open(copy / "agent.db")
    copy.chmod(0o755)
    for name in ("agent.db", "agent.db-wal"):
        (copy / name).chmod(0o644)
    async with await SQLiteStore.open(copy / "agent.db") as store:
        assert await versions(store, "a") == [1, 2, 3]


async def test_a_store_cannot_be_made_where_nothing_may_be_written(tmp_path: Path, unprivileged: Unprivileged) -> None:
    """A missing file in a read-only folder is `StoreReadOnly`, with the cure."""
    tmp_path.chmod(0o555)
    with unprivileged(tmp_path), pytest.raises(StoreReadOnly, match="Make the file and its folder writable"):
        await SQLiteStore.open(tmp_path / "agent.db")
    tmp_path.chmod(0o755)


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_durability_is_what_sqlite_is_told(tmp_path: Path, durability: Durability, level: int) -> None:
    """``full`` syncs at every commit, ``normal`` at checkpoints; both in WAL mode, in a marked file."""
    with closing(connect_writer(tmp_path / "agent.db", durability, 1.0)) as held:
        connection = held.connection
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


@pytest.mark.parametrize(("durability", "each_commit"), [("full", 1), ("normal", 0)])
def test_on_macos_sqlite_waits_for_the_disk_and_not_for_the_cache_of_the_drive(
    tmp_path: Path, durability: Durability, each_commit: int
) -> None:
    """``full`` at every commit; both before and behind a copy of the log, which could damage the database otherwise."""
    with closing(connect_writer(tmp_path / "agent.db", durability, 1.0)) as held:
        assert held.connection.execute("PRAGMA fullfsync").fetchone() == (each_commit,)
        assert held.connection.execute("PRAGMA checkpoint_fullfsync").fetchone() == (1,)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no fcntl")
@pytest.mark.parametrize("known", [True, False])
def test_a_file_is_on_the_disk_and_not_only_in_the_cache_of_the_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    """As macOS has it, by a call of its own; by the usual one where a file system does not know that."""
    import fcntl  # noqa: PLC0415 - Windows has none

    calls: list[int | str] = []

    def flush(_: int, call: int) -> None:
        calls.append(call)
        if not known:
            raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", flush)
    monkeypatch.setattr(os, "fsync", lambda _: calls.append("fsync"))
    (tmp_path / "agent.db").touch()
    sync_file(tmp_path / "agent.db")
    assert calls == ([51, 51] if known else [51, "fsync"] * 2)  # of the file, and of its folder


async def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    """A name that means nothing is not taken for a weaker promise."""
    with pytest.raises(StoreError, match="durability must be 'full' or 'normal'"):
        await SQLiteStore.open(tmp_path / "agent.db", durability="fast")  # type: ignore[arg-type] # on purpose


async def test_an_old_sqlite_is_advised_about_where_there_is_no_flock_and_a_very_old_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The WAL-reset race of versions before 3.51.3 is said once in the log and by each store, unless turns prevent it.

    Warnings stay silent.
    """
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.51.2 (test)")
    async with await SQLiteStore.open(tmp_path / "one.db") as store:
        assert store.advice == []
    monkeypatch.setattr(files, "LOCKS_FILES", False)
    with caplog.at_level(logging.WARNING, "timeline.store"):
        for name in ("one.db", "two.db"):
            async with await SQLiteStore.open(tmp_path / name) as store:
                assert [advised for advised in store.advice if "3.51.2 (test)" in advised] == store.advice
                assert len(store.advice) == 1
    assert caplog.text.count("3.51.2 (test)") == 1
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
    async with await SQLiteStore.open(tmp_path / "one.db") as store:
        assert store.advice == []
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 2))
    with pytest.raises(StoreError, match="too old"):
        await SQLiteStore.open(tmp_path / "one.db")


async def test_without_flock_the_stores_of_one_process_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows: nothing is made beside the database, and two stores of a file get in nobody's way."""
    monkeypatch.setattr(lock_files, "LOCKS_FILES", False)
    async with (
        await SQLiteStore.open(tmp_path / "agent.db") as one,
        await SQLiteStore.open(tmp_path / "agent.db") as two,
    ):
        await asyncio.gather(*(store.append("a", events(1)) for _ in range(20) for store in (one, two)))
        assert await versions(one, "a") == list(range(1, 41))
        assert not list(tmp_path.glob("*-lock"))
    assert [file.name for file in tmp_path.iterdir()] == ["agent.db"]


async def test_readers_cannot_write(tmp_path: Path) -> None:
    """The reading connection refuses to write, whatever it is sent."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        with pytest.raises(StoreReadOnly):
            await store.database.rows("DELETE FROM conversations")


async def test_a_clean_close_leaves_one_file(tmp_path: Path) -> None:
    """After a close everything is in the database file; closing again, or using it, is harmless and clear."""
    store = await SQLiteStore.open(tmp_path / "agent.db")
    await store.append("a", events(10))
    assert (tmp_path / "agent.db-wal").exists()
    await store.aclose()
    await store.aclose()
    assert [file.name for file in tmp_path.iterdir()] == ["agent.db"]
    with pytest.raises(StoreClosed, match="Open it again with open_store"):
        await store.info("a")


async def test_a_store_that_was_forgotten_is_mentioned(tmp_path: Path) -> None:
    """A store that is collected without a close warns of it, as an open file does, and its thread ends."""
    store = await SQLiteStore.open(tmp_path / "agent.db")
    await store.append("a", events(1))
    writer = store.database.writer
    assert writer is not None
    with pytest.warns(ResourceWarning, match="the store was not closed"):
        del store
    await asyncio.wrap_future(writer.stopped)


@pytest.mark.parametrize("readonly", [False, True])
async def test_a_store_that_was_forgotten_leaves_no_thread_and_no_open_file(tmp_path: Path, *, readonly: bool) -> None:
    """A server that opens one for each request and closes none had a thread and some files more with each."""
    await _store_with(tmp_path / "agent.db", 1)
    threads = set(threading.enumerate())
    store = await SQLiteStore.open(tmp_path / "agent.db", readonly=readonly)
    assert len(await versions(store, "a")) == 1
    begun = [each for each in set(threading.enumerate()) - threads if not each.name.startswith("asyncio_")]
    assert begun  # beside those of `asyncio.to_thread`, which serve the whole loop
    with pytest.warns(ResourceWarning, match="the store was not closed"):
        del store
    for thread in begun:
        await asyncio.to_thread(thread.join, 10)
    assert not any(thread.is_alive() for thread in begun)
    assert not is_open_here(tmp_path / "agent.db")


OPEN_AND_APPEND = """
import asyncio, sys
from datetime import UTC, datetime
from timeline.store.sqlite.store import SQLiteStore
from timeline.events import NewEvent, event_id
from timeline.events.other_payloads import HookFailed

async def main():
    async with await SQLiteStore.open(sys.argv[1], busy_timeout=30) as store:
        for _ in range(20):
            at = datetime.now(UTC)
            payload = HookFailed(hook="x", error="y")
            await store.append("a", [NewEvent(id=event_id(at), at=at, payload=payload) for _ in range(2)])

asyncio.run(main())
"""


async def test_several_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    """One of them makes the tables, the others wait; every append of each is written."""
    command = [sys.executable, "-c", OPEN_AND_APPEND, str(tmp_path / "agent.db")]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        _, complaint = await asyncio.to_thread(process.communicate)
        assert process.returncode == 0, complaint.decode()
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        assert await versions(store, "a") == list(range(1, 121))
