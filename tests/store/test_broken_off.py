"""A copy of the write-ahead log into the database that broke off: a full disk, or a process that was killed at it."""

from __future__ import annotations

import asyncio
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from timeline.errors import StoreMoved
from timeline.store import open_store
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events
from timeline.store.testing.samples import versions

EVENTS = 60
TEXT = "hello " * 500


def copy_half(database: str) -> None:
    """Copy the first pages of a database's log into it, in SQLite's order: those that it has room for."""
    log = Path(f"{database}-wal").read_bytes()
    (size,) = struct.unpack_from(">8xI", log)
    pages = {}
    for start in range(32, len(log) - size, size + 24):
        pages[struct.unpack_from(">I", log, start)[0]] = log[start + 24 : start + 24 + size]
    with Path(database).open("r+b") as file:
        for number in sorted(pages)[: len(pages) // 3]:
            file.seek((number - 1) * size)
            file.write(pages[number])


def _names(folder: Path) -> list[str]:
    return sorted(found.name for found in folder.iterdir())


async def _filled(store: SQLiteStore) -> None:
    """Append events, then collect SQLite's figures, as the end of a store does: its tables of tables grow by that."""
    for _ in range(EVENTS):
        await store.append("a", events(1, TEXT))
    await store.database.do(lambda connection: connection.execute("ANALYZE"))


async def _log(file: Path, left: Path) -> None:
    """Make a store whose events are in its log, as a process leaves it that is killed."""
    async with await SQLiteStore.open(file) as store:
        await _filled(store)
        await asyncio.to_thread(left.mkdir)
        for beside in ("", "-wal"):
            shutil.copyfile(f"{file}{beside}", left / f"agent.db{beside}")


async def test_a_store_whose_last_copy_broke_off_opens_with_everything(tmp_path: Path) -> None:
    """Its log is read, copied again, and not put away."""
    left = tmp_path / "left"
    await _log(tmp_path / "agent.db", left)
    copy_half(str(left / "agent.db"))
    async with open_store(left / "agent.db") as store:
        assert len(await versions(store, "a")) == EVENTS
        await store.append("a", events(1), expected=EVENTS)
        assert await store.examine() == []
    assert _names(left) == ["agent.db"]


async def test_a_copy_that_broke_off_in_another_process_is_no_swap(tmp_path: Path) -> None:
    """A store that is open goes on, and what it acknowledged is there."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await _filled(store)
        script = f"from {__name__} import copy_half; import sys; copy_half(sys.argv[1])"  # a process of its own:
        # closing any descriptor of the file would drop the locks that this one holds on it.
        await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script, str(file)], check=True)
        await store.append("a", events(1), expected=EVENTS)
    async with open_store(file) as store:
        assert len(await versions(store, "a")) == EVENTS + 1


async def test_a_file_that_makes_no_sense_with_its_log_either_was_overwritten(tmp_path: Path) -> None:
    """The log is kept under another name."""
    file = tmp_path / "agent.db"
    async with open_store(file) as store:
        await store.append("a", events(EVENTS, TEXT))
    async with open_store(file) as store:
        await store.append("a", events(1, TEXT))
        os.truncate(file, 64 * 1024)
        with pytest.raises(StoreMoved, match="overwritten"):
            await store.append("a", events(1))
    assert [name[:13] for name in _names(tmp_path)] == ["agent.db", "agent.db-wal."]
