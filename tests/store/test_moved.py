# ruff: noqa: ASYNC240 - a test may wait for the file system and its child
from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from timeline import Timeline
from timeline.blocks import UserPrompt
from timeline.errors import StoreMoved
from timeline.store.sqlite import writer as writing
from timeline.store.sqlite.identity import BESIDE_EVERY
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from pathlib import Path

WORDS = {
    "deleted": "was deleted or renamed while it was open",
    "all deleted": "was deleted or renamed while it was open",
    "renamed": "was deleted or renamed while it was open",
    "folder renamed": "was deleted or renamed while it was open",
    "replaced by another store": "another file was put in the place of the database",
    "replaced by a backup": "another file was put in the place of the database",
    "replaced by a link": "another file was put in the place of the database",
    "overwritten by another store": "was overwritten while it was open",
    "overwritten by a backup": "was overwritten while it was open",
    "overwritten by a text": "was overwritten while it was open",
    "emptied": "was overwritten while it was open",
    "log deleted": "-wal or -shm, was deleted or replaced",
    "index deleted": "-wal or -shm, was deleted or replaced",
    "log and index deleted": "-wal or -shm, was deleted or replaced",
}
"""Each way to swap a file, and what the error says of it."""

DELETED = {
    "deleted": [""],
    "all deleted": ["", "-wal", "-shm"],
    "log deleted": ["-wal"],
    "index deleted": ["-shm"],
    "log and index deleted": ["-wal", "-shm"],
}


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def _swap(file: Path, how: str) -> None:
    """Do with an open database what it cannot take; ``other.db`` and ``backup.db`` are beside it."""
    other, backup = file.with_name("other.db"), file.with_name("backup.db")
    match how.split():
        case ["renamed"]:
            file.rename(file.with_name("renamed.db"))
        case ["folder", "renamed"]:
            file.parent.rename(file.parent.with_name("renamed"))
        case ["replaced", "by", "a", "link"]:
            file.unlink()
            file.symlink_to(other)
        case ["replaced", "by", _, what, *_]:
            (backup if what == "backup" else other).replace(file)
        case ["overwritten", "by", "a", "text"]:
            file.write_text("notes\n" * 3_000)
        case ["overwritten", "by", _, what, *_]:
            shutil.copyfile(backup if what == "backup" else other, file)
        case ["emptied"]:
            os.truncate(file, 0)
        case [*_, "deleted"]:
            for found in DELETED[how]:
                _beside(file, found).unlink()


async def _opened(folder: Path) -> SQLiteStore:
    """Open a store with three events, of which one is in its write-ahead log alone, beside another store and a backup.

    The backup holds the first event.
    """
    async with await SQLiteStore.open(folder / "other.db") as other:
        await other.append("other", events(7))
    async with await SQLiteStore.open(folder / "agent.db") as store:
        await store.append("a", events(1))
    shutil.copyfile(folder / "agent.db", folder / "backup.db")
    async with await SQLiteStore.open(folder / "agent.db") as store:
        await store.append("a", events(1))
    store = await SQLiteStore.open(folder / "agent.db")
    await store.append("a", events(1))
    await asyncio.sleep(BESIDE_EVERY)  # The files beside the database are not looked for more often.
    return store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that may be renamed."""
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.mark.parametrize("how", WORDS)
async def test_a_file_that_was_swapped_acknowledges_nothing_more(folder: Path, how: str) -> None:
    """The next append raises, and all that follow, and every read; also when the file is put back."""
    store = await _opened(folder)
    _swap(folder / "agent.db", how)
    for _ in range(3):
        with pytest.raises(StoreMoved, match=WORDS[how]):
            await store.append("a", events(1))
    with pytest.raises(StoreMoved, match=WORDS[how]):
        await versions(store, "a")
    with pytest.raises(StoreMoved, match=WORDS[how]):
        await store.append("a", [])
    await store.aclose()


REOPENED = {
    "deleted": {},
    "all deleted": {},
    "renamed": {},
    "replaced by another store": {"other": 7},
    "replaced by a backup": {"a": 1},
    "replaced by a link": {"other": 7},
    "overwritten by another store": {"other": 7},
    "overwritten by a backup": {"a": 1},
    "emptied": {},
    "log deleted": {"a": 4},
    "index deleted": {"a": 4},
    "log and index deleted": {"a": 4},
}
"""What a store that is opened in the place of one that was swapped holds: conversations with their versions."""


async def _holds(store: SQLiteStore) -> dict[str, int]:
    return {info.id: info.version async for info in store.conversations()}


@pytest.mark.parametrize("closed_first", [True, False])
@pytest.mark.parametrize("how", REOPENED)
async def test_a_store_that_is_opened_in_its_place_works(folder: Path, how: str, closed_first: bool) -> None:  # noqa: FBT001
    """It holds what is there now and nothing of the other, takes appends, and is sound; others read it, too."""
    store = await _opened(folder)
    _swap(folder / "agent.db", how)
    with pytest.raises(StoreMoved):
        await store.append("a", events(1))
    if closed_first:
        await store.aclose()
    async with await SQLiteStore.open(folder / "agent.db") as reopened:
        assert await _holds(reopened) == REOPENED[how]
        assert (await reopened.append("new", events(2))).version == 2
    await store.aclose()
    with closing(sqlite3.connect(folder / "agent.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    async with await SQLiteStore.open(folder / "agent.db", readonly=True) as reader:
        assert await _holds(reader) == {**REOPENED[how], "new": 2}


@pytest.mark.parametrize("how", REOPENED)
async def test_a_store_that_is_only_closed_spoils_nothing_that_took_its_place(folder: Path, how: str) -> None:
    """Nothing is appended any more: the close finds that the file was swapped."""
    store = await _opened(folder)
    _swap(folder / "agent.db", how)
    await store.aclose()
    async with await SQLiteStore.open(folder / "agent.db") as reopened:
        held = await _holds(reopened)
        assert held == REOPENED[how] or (
            how in {"log deleted", "index deleted", "log and index deleted"} and held == {"a": 3}
        )
    with closing(sqlite3.connect(folder / "agent.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_file_that_was_renamed_holds_everything_that_was_appended(folder: Path) -> None:
    """Also what was in the write-ahead log only, under the old name; and no file is left behind there."""
    store = await _opened(folder)
    _swap(folder / "agent.db", "renamed")
    with pytest.raises(StoreMoved):
        await store.append("a", events(1))
    await store.aclose()
    async with await SQLiteStore.open(folder / "renamed.db") as renamed:
        assert await versions(renamed, "a") == [1, 2, 3, 4]
    assert {found.name for found in folder.iterdir()} == {"backup.db", "other.db", "renamed.db"}


async def test_the_log_of_a_file_that_was_overwritten_is_kept_under_another_name(folder: Path) -> None:
    """What it holds was acknowledged; beside another database it would damage that one."""
    store = await _opened(folder)
    _swap(folder / "agent.db", "overwritten by another store")
    before = (folder / "other.db").read_bytes()
    with pytest.raises(StoreMoved):
        await store.append("a", events(1))
    await store.aclose()
    assert (folder / "agent.db").read_bytes() == before
    (kept,) = (found for found in folder.iterdir() if found.name.startswith("agent.db-wal."))
    assert kept.stat().st_size > 0


@pytest.mark.parametrize("how", ["deleted", "renamed", "replaced by a backup", "overwritten by a backup"])
async def test_appends_that_wait_together_all_raise(folder: Path, how: str) -> None:
    """Not one of a group is acknowledged."""
    store = await _opened(folder)
    _swap(folder / "agent.db", how)
    answers = await asyncio.gather(*(store.append(f"c{n}", events(1)) for n in range(64)), return_exceptions=True)
    assert {type(answer) for answer in answers} == {StoreMoved}
    await store.aclose()


async def test_a_timeline_raises_and_goes_on_with_a_store_that_is_opened_again(folder: Path) -> None:
    """An application sees the same error, and the cure in it works."""
    store = await _opened(folder)
    timeline = await Timeline.open(store, "talk")
    await timeline.append(UserPrompt(text="one"))
    _swap(folder / "agent.db", "renamed")
    for _ in range(2):
        with pytest.raises(StoreMoved, match="open the store again"):
            await timeline.append(UserPrompt(text="two"))
    await store.aclose()
    (folder / "renamed.db").rename(folder / "agent.db")
    async with await SQLiteStore.open(folder / "agent.db") as again:
        timeline = await Timeline.open(again, "talk")
        await timeline.append(UserPrompt(text="three"))
        said = [item.block.text for item in timeline.window.items if isinstance(item.block, UserPrompt)]
        assert said in (["one", "three"], ["one", "two", "three"])


@pytest.mark.parametrize("how", ["deleted", "replaced by another store"])
async def test_a_store_that_is_only_read_raises_too(folder: Path, how: str) -> None:
    """What it would answer is what was there before."""
    await (await _opened(folder)).aclose()
    async with await SQLiteStore.open(folder / "agent.db", readonly=True) as reader:
        assert await versions(reader, "a") == [1, 2, 3]
        _swap(folder / "agent.db", how)
        for _ in range(2):
            with pytest.raises(StoreMoved, match=WORDS[how]):
                await versions(reader, "a")


COPY_BACK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
if sys.argv[2] == "vacuum":
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
"""


@pytest.mark.parametrize("how", ["checkpoint", "vacuum"])
async def test_checkpoints_are_no_swap(folder: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """The file changes with every checkpoint, the writer's own and those of other processes; also its pages move."""
    monkeypatch.setattr(writing, "CHECKPOINT_AFTER", 50_000)
    store = await _opened(folder)
    for number in range(4, 40):
        assert (await store.append("a", events(1))).version == number
        if number % 10 == 0:
            await asyncio.to_thread(
                subprocess.run, [sys.executable, "-c", COPY_BACK, str(folder / "agent.db"), how], check=True
            )
    await store.aclose()


async def test_a_path_that_is_relative_is_that_of_the_folder_in_which_it_was_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application may go elsewhere; and a link may lead to the file."""
    await (await _opened(folder)).aclose()
    (folder / "link.db").symlink_to("agent.db")
    monkeypatch.chdir(folder)
    async with await SQLiteStore.open("link.db") as store:
        monkeypatch.chdir("/")
        assert (await store.append("a", events(1))).version == 4
        assert await versions(store, "a") == [1, 2, 3, 4]
