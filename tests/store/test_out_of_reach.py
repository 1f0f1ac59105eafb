"""What the system refuses for a while: to open one more file, to search a folder, to open a file for writing."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.no_more_files import no_more_files
from timeline.databases import database_uri
from timeline.errors import AppendUncertain, StoreError, VersionConflict
from timeline.store.sqlite import files, identity
from timeline.store.sqlite.connection import is_open_here
from timeline.store.sqlite.foreign_logs import check_log
from timeline.store.sqlite.reading import LoneReadConnection
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.sqlite.turns import Turn
from timeline.store.testing import events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path


@pytest.fixture(autouse=True)
def at_rest_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for a file that cannot be read."""
    monkeypatch.setattr(identity, "_AT_REST", 0.05)


async def _changed_by_another(folder: Path) -> SQLiteStore:
    """Return a store with two events whose log another connection copied, so that its next append looks into it."""
    store = await SQLiteStore.open(folder / "agent.db")
    await store.append("a", events(2))
    with closing(sqlite3.connect(folder / "agent.db")) as other:
        other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return store


async def test_a_file_that_cannot_be_looked_into_was_not_overwritten(tmp_path: Path) -> None:
    """Its log stays where it is, and the store goes on when files can be opened again."""
    async with await _changed_by_another(tmp_path) as store:
        with no_more_files(), pytest.raises(StoreError, match="cannot be opened"):
            await store.append("a", events(1))
        assert (tmp_path / "agent.db-wal").exists()
        await store.append("a", events(1))
        assert await versions(store, "a") == [1, 2, 3, 4]


async def test_an_append_behind_which_the_file_cannot_be_seen_is_uncertain(tmp_path: Path) -> None:
    """It is in the log; appended again, it is there once."""
    async with await _changed_by_another(tmp_path) as store:
        with no_more_files(), pytest.raises(AppendUncertain) as doubt:
            await store.append("a", events(1), expected=2)
        await store.append(**doubt.value.arguments)
        assert await versions(store, "a") == [1, 2, 3]


async def test_a_refused_append_stays_refused_where_the_file_cannot_be_seen(tmp_path: Path) -> None:
    """It was not written, wherever the file is."""
    async with await _changed_by_another(tmp_path) as store:
        with no_more_files(), pytest.raises(VersionConflict):
            await store.append("a", events(1), expected=7)


async def test_a_folder_that_may_not_be_searched_for_a_while_ends_no_store(
    tmp_path: Path, unprivileged: Callable[[Path], AbstractContextManager[None]]
) -> None:
    """The file is not gone: reads and appends go on with the permission."""
    folder = tmp_path / "private"
    folder.mkdir()
    async with await SQLiteStore.open(folder / "agent.db") as store:
        await store.append("a", events(1))
        folder.chmod(0o000)
        try:
            with unprivileged(tmp_path), pytest.raises(StoreError, match="does not say whether it is still there"):
                await versions(store, "a")
        finally:
            folder.chmod(0o700)
        assert await versions(store, "a") == [1]


async def test_a_store_that_is_opened_with_few_files_left_writes_or_says_why_not(tmp_path: Path) -> None:
    """It was opened for reading only, for as long as it lived, with advice about permissions that were there."""
    await (await SQLiteStore.open(tmp_path / "agent.db")).aclose()
    outcomes: list[type[StoreError] | None] = []
    for number in range(12):
        with no_more_files(but=number):
            try:
                async with await SQLiteStore.open(tmp_path / "agent.db") as store:
                    await store.append("a", events(1))
            except StoreError as error:
                outcomes.append(type(error))
            else:
                outcomes.append(None)
    assert set(outcomes) == {StoreError, None}


async def test_a_reader_that_could_not_be_opened_has_nothing_open(tmp_path: Path) -> None:
    """Its error held the connection, and a restore was refused because a program has the file open."""
    file = tmp_path / "agent.db"
    await (await SQLiteStore.open(file)).aclose()
    turn = Turn(file, 1.0)
    with no_more_files(but=1), pytest.raises(sqlite3.OperationalError) as kept:
        LoneReadConnection(turn, file)
    assert not is_open_here(file)
    assert kept.value
    turn.close()


async def test_a_log_that_cannot_be_read_for_want_of_files_is_an_error_of_the_store(tmp_path: Path) -> None:
    """A store that was killed has one, which is looked at before SQLite is; the error was the system's own."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await store.append("a", events(1))
        for ending in ("", "-wal"):
            shutil.copyfile(f"{tmp_path / 'agent.db'}{ending}", f"{tmp_path / 'left.db'}{ending}")
    outcomes: list[type[StoreError] | None] = []
    for number in range(6):
        with no_more_files(but=number):
            try:
                check_log(tmp_path / "left.db")
            except StoreError as error:
                outcomes.append(type(error))
            else:
                outcomes.append(None)
    assert set(outcomes) == {StoreError, None}


async def test_a_file_that_was_opened_for_reading_instead_is_no_open_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite does so, without a word, where the system once would not open it for writing."""
    await (await SQLiteStore.open(tmp_path / "agent.db")).aclose()
    monkeypatch.setattr(files, "database_uri", lambda file, query: database_uri(file, query.replace("rwc", "ro")))
    with pytest.raises(StoreError, match="though both may be written to"):
        await SQLiteStore.open(tmp_path / "agent.db")


@pytest.mark.parametrize(
    ("name", "leads_to", "cure"),
    [
        ("loop.db", "loop.db", "Too many levels of symbolic links.*Check the path"),
        ("link.db", "missing/agent.db", "missing does not exist. Make it first"),
        ("n" * 300, None, "File name too long.*Check the path"),
    ],
    ids=["loop", "missing folder", "long name"],
)
async def test_a_path_that_leads_to_no_file_is_an_error_with_the_cure(
    tmp_path: Path, name: str, leads_to: str | None, cure: str
) -> None:
    """A link that leads to itself came out as an error of Python's own."""
    if leads_to is not None:
        (tmp_path / name).symlink_to(leads_to)
    with pytest.raises(StoreError, match=cure):
        await SQLiteStore.open(tmp_path / name)


async def test_a_folder_that_may_not_be_searched_is_an_error_of_the_store(
    tmp_path: Path, unprivileged: Callable[[Path], AbstractContextManager[None]]
) -> None:
    """It was the system's own."""
    folder = tmp_path / "private"
    folder.mkdir(0o000)
    try:
        with unprivileged(tmp_path), pytest.raises(StoreError, match="Permission denied"):
            await SQLiteStore.open(folder / "agent.db")
    finally:
        folder.chmod(0o700)
