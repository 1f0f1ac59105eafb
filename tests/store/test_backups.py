"""Backups of stores that are in use, and restoring them over whatever a crash or a copy left."""

# ruff: noqa: ASYNC220, ASYNC240 - a test may wait for the file system and its child
from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.downgrade import before_facts
from timeline import Timeline
from timeline.blocks import UserPrompt
from timeline.errors import NotAStore, StoreCorrupt, StoreError, StoreFull, StoreLocked
from timeline.events import NewEvent
from timeline.store import backup, restore
from timeline.store.memory import MemoryStore
from timeline.store.migrations import MIGRATIONS
from timeline.store.sqlite import backups
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.ports import EventStore


async def _store_with(file: Path, count: int, conversation: str = "a") -> None:
    async with await SQLiteStore.open(file) as store:
        await store.append(conversation, events(count))


async def _held(file: Path) -> dict[str, list[str]]:
    async with await SQLiteStore.open(file) as store:
        return await _ids(store)


async def _ids(store: EventStore) -> dict[str, list[str]]:
    return {info.id: [str(event.id) async for event in store.read(info.id)] async for info in store.conversations()}


def _is_sound(file: Path) -> bool:
    with closing(sqlite3.connect(file)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def _mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def _bytes(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without those by which processes take turns."""
    files = [file for file in folder.iterdir() if file.is_file() and not file.name.endswith(("-lock", "-queue"))]
    return {file.name: file.read_bytes() for file in files}


async def _crashed(folder: Path, first: int, more: int) -> Path:
    """Leave what a killed process leaves: a database, and beside it a log that holds the newest events."""
    file = folder / "agent.db"
    await _store_with(folder / "open.db", first)
    async with await SQLiteStore.open(folder / "open.db") as store:
        await store.append("a", events(more, text="y" * 500))
        for ending in ("", "-wal"):
            shutil.copyfile(f"{folder / 'open.db'}{ending}", f"{file}{ending}")
    (folder / "open.db").unlink()
    return file


async def test_a_backup_holds_what_the_store_holds_and_is_one_private_file(tmp_path: Path) -> None:
    """Also what is in the write-ahead log alone; nobody but the owner may read it, whatever the umask."""
    file, copy = tmp_path / "agent.db", tmp_path / "copy.db"
    before = os.umask(0)
    try:
        async with await SQLiteStore.open(file) as store:
            await store.append("a", events(5))
            made = await backup(file, copy)
            held = await _ids(store)
    finally:
        os.umask(before)
    assert (made.file, made.holds.events, made.holds.versions) == (copy, 5, {"a": 5})
    assert made.holds.size == copy.stat().st_size
    assert _mode(copy) == 0o600
    assert sorted(found.name for found in tmp_path.iterdir()) == ["agent.db", "copy.db"]
    assert await _held(copy) == held
    assert _is_sound(copy)


async def test_a_backup_without_a_name_is_beside_the_database(tmp_path: Path) -> None:
    """Named by the time; a second one in the same second gets another name."""
    await _store_with(tmp_path / "agent.db", 1)
    names = {(await backup(tmp_path / "agent.db")).file for _ in range(2)}
    assert len(names) == 2
    assert all(name.name.startswith("agent.db.backup-") for name in names)


async def test_a_backup_replaces_nothing_without_force(tmp_path: Path) -> None:
    """Neither a file, nor the database itself, nor the place of a database that is open."""
    file, copy = tmp_path / "agent.db", tmp_path / "copy.db"
    await _store_with(file, 2)
    copy.write_text("mine")
    with pytest.raises(StoreError, match="exists already"):
        await backup(file, copy)
    assert copy.read_text() == "mine"
    with pytest.raises(StoreError, match="the database itself"):
        await backup(file, file, force=True)
    await backup(file, copy, force=True)
    async with await SQLiteStore.open(copy), await SQLiteStore.open(file):
        with pytest.raises(StoreError, match="belongs to a database that is open"):
            await backup(file, copy, force=True)
    with pytest.raises(StoreError, match="no store to read"):
        await backup(tmp_path / "missing.db", tmp_path / "other.db")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["agent.db", "copy.db"]


async def test_a_store_of_an_earlier_version_is_backed_up_as_it_is(tmp_path: Path) -> None:
    """The release that wrote it can open the backup."""
    file, copy = tmp_path / "agent.db", tmp_path / "copy.db"
    await _store_with(file, 3)
    before_facts(file)
    made = await backup(file, copy)
    assert (made.holds.schema, made.holds.events) == (6, 3)
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT max(number) FROM migrations").fetchone() == (6,)
    assert len(MIGRATIONS) > 6


@pytest.mark.parametrize("where", ["page", "event"])
async def test_a_damaged_store_gives_no_backup(tmp_path: Path, where: str) -> None:
    """A page or an event that does not read: the good backup of before stays."""
    file, copy = tmp_path / "agent.db", tmp_path / "copy.db"
    await _store_with(file, 300)
    await backup(file, copy)
    good = copy.read_bytes()
    if where == "event":
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("UPDATE events SET payload = replace(payload, 'e', 'x') WHERE position = 200")
            connection.commit()
    else:
        with file.open("r+b") as opened:
            opened.seek(file.stat().st_size // 2)
            opened.write(b"\xff" * 6_000)
    with pytest.raises(StoreCorrupt):
        await backup(file, copy, force=True)
    assert copy.read_bytes() == good
    assert sorted(found.name for found in tmp_path.iterdir()) == ["agent.db", "copy.db"]


APPEND = """
import asyncio, sys
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events

async def go_on(store, conversation):
    while True:
        done = await store.append(conversation, events(3, text="x" * 400))
        print(conversation, done.version, flush=True)

async def main():
    store = await SQLiteStore.open(sys.argv[1], busy_timeout=30)
    await asyncio.gather(*(go_on(store, name) for name in "abcdefgh"))

asyncio.run(main())
"""


@contextmanager
def _appending(file: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen([sys.executable, "-c", APPEND, str(file)], stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def _acknowledged(child: subprocess.Popen[str], lines: int) -> dict[str, int]:
    assert child.stdout is not None
    said = [child.stdout.readline().split() for _ in range(lines)]
    return {conversation: int(version) for conversation, version in said}


async def test_a_backup_under_load_holds_all_that_was_acknowledged_before_it(tmp_path: Path) -> None:
    """A process full of tasks appends without a pause; each backup is sound, and a prefix of every conversation."""
    file = tmp_path / "agent.db"
    await _store_with(file, 1)
    with _appending(file) as child:
        for number in range(3):
            known = await asyncio.to_thread(_acknowledged, child, 60)
            made = await backup(file, tmp_path / f"{number}.db")
            assert all(made.holds.versions[name] >= version for name, version in known.items() if name != "a")
    at_the_end = await _held(file)
    for number in range(3):
        held = await _held(tmp_path / f"{number}.db")
        assert all(ids == at_the_end[name][: len(ids)] for name, ids in held.items())
        assert _is_sound(tmp_path / f"{number}.db")


async def test_a_restore_takes_away_the_log_that_a_crash_left(tmp_path: Path) -> None:
    """The store is the backup, sound, and goes on; what was there is kept beside, log and all, and reads."""
    file = await _crashed(tmp_path, 30, 20)
    was = tmp_path / "was"
    was.mkdir()
    for ending in ("", "-wal"):
        shutil.copyfile(f"{file}{ending}", f"{was / 'agent.db'}{ending}")
    held = await _held(was / "agent.db")
    await _store_with(tmp_path / "backup.db", 7)
    done = await restore(tmp_path / "backup.db", file, yes=True)
    assert (done.done, done.holds.events, done.loses) == (True, 7, {"a": (50, 7)})
    assert [kept.name.partition("-2")[0] for kept in done.kept] == ["agent.db.replaced"] * 2
    assert not (tmp_path / "agent.db-wal").exists()
    assert _is_sound(file)
    assert await _held(done.kept[0]) == held
    async with await SQLiteStore.open(file) as store:
        assert (await store.append("a", events(1), expected=7)).version == 8


async def test_a_dry_run_says_what_would_be_lost_and_changes_nothing(tmp_path: Path) -> None:
    """Conversations that end earlier in the backup, and those that it lacks."""
    file, copy = tmp_path / "agent.db", tmp_path / "backup.db"
    await _store_with(file, 3)
    await backup(file, copy)
    await _store_with(file, 2)
    await _store_with(file, 4, "b")
    before = _bytes(tmp_path)
    planned = await restore(copy, file)
    assert (planned.done, planned.kept, planned.problem) == (False, [], "")
    assert planned.loses == {"a": (5, 3), "b": (4, 0)}
    assert planned.before is not None
    assert (planned.before.events, planned.holds.events) == (9, 3)
    assert _bytes(tmp_path) == before


async def test_a_restore_names_what_was_erased_and_redacted_since_the_backup(tmp_path: Path) -> None:
    """It comes back with it: a redaction of before does not, nor does what the backup never held."""
    file, copy = tmp_path / "agent.db", tmp_path / "backup.db"
    async with await SQLiteStore.open(file) as store:
        for id_ in ("before", "redacted", "erased"):
            timeline = await Timeline.open(store, id_)
            await timeline.append(UserPrompt(text="A secret."))
        await (await Timeline.open(store, "before")).redact("@2", "asked for")
    await backup(file, copy)
    async with await SQLiteStore.open(file) as store:
        await (await Timeline.open(store, "redacted")).redact("@2", "asked for")
        await Timeline.open(store, "new")
        for id_ in ("erased", "new"):
            await store.erase(id_)
    assert (await restore(copy, file)).returns == {"redacted": "redacted", "erased": "erased"}
    assert (await restore(copy, file, yes=True)).returns == {"redacted": "redacted", "erased": "erased"}
    assert (await restore(copy, file)).returns == {}


@pytest.mark.parametrize("readonly", [False, True])
async def test_nothing_is_replaced_while_this_process_has_it_open(tmp_path: Path, readonly: bool) -> None:  # noqa: FBT001
    """A store that writes, and one that reads."""
    file, copy = tmp_path / "agent.db", tmp_path / "backup.db"
    await _store_with(file, 3)
    await backup(file, copy)
    async with await SQLiteStore.open(file, readonly=readonly) as store:
        with pytest.raises(StoreLocked, match="a program has it open"):
            await restore(copy, file, yes=True)
        assert await versions(store, "a") == [1, 2, 3]
    assert sorted(found.name for found in tmp_path.iterdir()) == ["agent.db", "backup.db"]


OPEN = """
import asyncio, sys
from timeline.store.sqlite.store import SQLiteStore

async def main():
    async with await SQLiteStore.open(sys.argv[1], readonly=sys.argv[2] == "True") as store:
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


@pytest.mark.parametrize("readonly", [False, True])
async def test_nothing_is_replaced_while_another_process_has_it_open(tmp_path: Path, readonly: bool) -> None:  # noqa: FBT001
    """Also where that one does nothing at the moment; when it has closed it, the restore is done."""
    file, copy = tmp_path / "agent.db", tmp_path / "backup.db"
    await _store_with(file, 3)
    await backup(file, copy)
    await _store_with(file, 1)
    command = [sys.executable, "-c", OPEN, str(file), str(readonly)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert await asyncio.to_thread(child.stdout.readline) == "open\n"
    with pytest.raises(StoreLocked, match="a program has it open"):
        await restore(copy, file, yes=True)
    child.communicate("\n")
    assert (await restore(copy, file, yes=True)).done
    async with await SQLiteStore.open(file) as store:
        assert await versions(store, "a") == [1, 2, 3]


BROKEN: Final = ["missing", "empty", "no header", "zeros", "cut", "only a log", "overwritten beside its log"]


async def _break(file: Path, how: str) -> None:
    log = file.with_name(f"{file.name}-wal")
    match how:
        case "missing":
            file.unlink()
            log.unlink()
        case "empty":
            os.truncate(file, 0)
        case "no header":
            file.write_bytes(b"no database" + file.read_bytes()[11:])
        case "zeros":
            file.write_bytes(bytes(file.stat().st_size))
        case "cut":
            os.truncate(file, file.stat().st_size // 3)
        case "only a log":
            file.unlink()
        case _:
            shutil.copyfile(file.with_name("backup.db"), file)


@pytest.mark.parametrize("how", BROKEN)
async def test_a_restore_mends_whatever_is_left_of_a_database(tmp_path: Path, how: str) -> None:
    """Damaged, missing, or copied over while its log was there: what is at the path afterwards is the backup alone."""
    file = await _crashed(tmp_path, 30, 20)
    await _store_with(tmp_path / "backup.db", 7)
    held = await _held(tmp_path / "backup.db")
    await _break(file, how)
    left = {ending for ending in ("", "-wal") if Path(f"{file}{ending}").exists()}
    done = await restore(tmp_path / "backup.db", file, yes=True)
    assert len(done.kept) == len(left)
    assert await _held(file) == held
    assert _is_sound(file)


@pytest.mark.parametrize("readonly", [False, True])
async def test_a_copy_that_was_put_over_a_database_is_not_opened_with_the_old_log(
    tmp_path: Path,
    readonly: bool,  # noqa: FBT001
) -> None:
    """Opened together, both would be lost: neither is touched, and the error says how to put a backup there."""
    file = tmp_path / "agent.db"
    await _store_with(file, 30)
    await backup(file, tmp_path / "backup.db")
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(300, text="y" * 900))
    left = tmp_path / "left"
    left.mkdir()
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(20, text="z" * 900))
        shutil.copyfile(f"{file}-wal", left / "agent.db-wal")
    shutil.copyfile(tmp_path / "backup.db", left / "agent.db")
    before = _bytes(left)
    for _ in range(2):
        with pytest.raises(StoreCorrupt, match=r"agent\.db-wal lay beside it.* `timeline restore FILE`"):
            await SQLiteStore.open(left / "agent.db", readonly=readonly)
        assert _bytes(left) == before
    done = await restore(tmp_path / "backup.db", left / "agent.db", yes=True)
    assert "lay beside it" in done.problem
    assert await _held(left / "agent.db") == await _held(tmp_path / "backup.db")


async def test_what_is_no_store_is_neither_restored_nor_replaced(tmp_path: Path) -> None:
    """Another application's database, a damaged backup, the database itself, a second name."""
    file, copy, other = tmp_path / "agent.db", tmp_path / "backup.db", tmp_path / "other.db"
    await _store_with(file, 3)
    await backup(file, copy)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(NotAStore):
        await restore(copy, other, yes=True)
    with pytest.raises(NotAStore):
        await restore(other, file, yes=True)
    with pytest.raises(StoreError, match="the backup itself"):
        await restore(file, file, yes=True)
    with pytest.raises(StoreError, match="no store to read"):
        await restore(tmp_path / "missing.db", file, yes=True)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("UPDATE events SET payload = replace(payload, 'e', 'x') WHERE position = 2")
        connection.commit()
    before = _bytes(tmp_path)
    with pytest.raises(StoreCorrupt):
        await restore(copy, file, yes=True)
    assert _bytes(tmp_path) == before
    (tmp_path / "second.db").hardlink_to(file)
    with pytest.raises(StoreError, match="more than one name"):
        await restore(copy, file, yes=True)


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe with a name")
async def test_a_pipe_or_a_device_is_replaced_by_nothing(tmp_path: Path) -> None:
    """Root could otherwise make a file of /dev/null; no copy of it is left beside."""
    file, copy, pipe = tmp_path / "agent.db", tmp_path / "backup.db", tmp_path / "pipe"
    await _store_with(file, 2)
    await backup(file, copy)
    os.mkfifo(pipe)
    for yes in (False, True):
        with pytest.raises(StoreError, match="a device or a pipe, which a restore never replaces"):
            await restore(copy, pipe, yes=yes)
    with pytest.raises(StoreError, match="a device or a pipe, which a backup never replaces"):
        await backup(file, pipe, force=True)
    assert pipe.is_fifo()
    assert {found.name for found in tmp_path.iterdir()} == {"agent.db", "backup.db", "pipe"}


async def test_a_restored_file_keeps_its_mode_and_a_link_to_it_goes_on_leading_there(tmp_path: Path) -> None:
    """Who may read the database is not decided by a restore; where there was none, only its owner may."""
    file, copy, link = tmp_path / "agent.db", tmp_path / "backup.db", tmp_path / "link.db"
    await _store_with(file, 3)
    await backup(file, copy)
    file.chmod(0o640)
    link.symlink_to(file)
    done = await restore(copy, link, yes=True)
    assert link.is_symlink()
    assert (done.file, _mode(file)) == (file, 0o640)
    assert [_mode(kept) for kept in done.kept] == [0o600]
    await restore(copy, tmp_path / "new.db", yes=True)
    assert _mode(tmp_path / "new.db") == 0o600


_WATCHED: dict[str, Any] = {}


def _watch(event: str, _: tuple[Any, ...]) -> None:
    if _WATCHED and not _WATCHED["busy"] and event.partition(".")[0] in {"open", "os", "shutil", "sqlite3", "fcntl"}:
        _WATCHED["busy"] = True
        try:
            folder: Path = _WATCHED["folder"]
            step = Path(tempfile.mkdtemp(dir=_WATCHED["to"]))
            for found in folder.iterdir():
                if not found.name.endswith(("-lock", "-queue", "-shm")):
                    shutil.copyfile(found, step / found.name)
        finally:
            _WATCHED["busy"] = False


@pytest.mark.parametrize("how", ["crashed", "closed", "zeros"])
async def test_killed_at_any_step_a_restore_leaves_the_old_store_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The files as they are before each call to the system are those that a kill there leaves."""
    folder, steps = tmp_path / "folder", tmp_path / "steps"
    folder.mkdir()
    steps.mkdir()
    file = await _crashed(folder, 30, 20)
    if how == "closed":
        await _held(file)
    await _store_with(tmp_path / "backup.db", 7)
    new = await _held(tmp_path / "backup.db")
    shutil.copytree(folder, tmp_path / "old")
    old = await _held(tmp_path / "old" / "agent.db")
    if how == "zeros":
        await _break(file, how)
    sys.addaudithook(_watch)
    replace = backups._replace

    def watched(*arguments: Any) -> list[Path]:
        _WATCHED.update(folder=folder, to=steps, busy=False)
        try:
            return replace(*arguments)
        finally:
            _WATCHED.clear()

    monkeypatch.setattr(backups, "_replace", watched)
    await restore(tmp_path / "backup.db", file, yes=True)
    found: list[str] = []
    for step in sorted(steps.iterdir(), key=lambda path: path.stat().st_mtime_ns):
        try:
            held = await _held(step / "agent.db")
        except StoreError:
            assert how == "zeros"
            found.append("damaged")
        else:
            assert _is_sound(step / "agent.db")
            found.append("old" if held == old else "new" if held == new else "neither")
    assert len(found) > 10
    assert list(dict.fromkeys(found)) == ["damaged" if how == "zeros" else "old", "new"]
    assert await _held(file) == new


STORY: Final = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from("abc"), st.integers(1, 4)),
        st.tuples(st.just("backup"), st.just(""), st.just(0)),
        st.tuples(st.just("crash"), st.just(""), st.just(0)),
        st.tuples(st.just("restore"), st.just(""), st.just(0)),
    ),
    max_size=12,
)


@given(story=STORY)
def test_a_restore_brings_back_what_the_memory_store_held_at_the_backup(story: list[tuple[str, str, int]]) -> None:
    """Whatever is appended, backed up, crashed and restored, in any order."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_live(story, Path(folder)))


async def _live(story: list[tuple[str, str, int]], folder: Path) -> None:
    file, copy = folder / "agent.db", folder / "copy.db"
    store, model = await SQLiteStore.open(file), MemoryStore()
    kept: dict[str, list[str]] = {}
    for what, conversation, count in story:
        if what == "append":
            batch = events(count)
            await store.append(conversation, batch)
            await model.append(conversation, batch)
        elif what == "backup":
            made = await backup(file, copy, force=True)
            kept = await _ids(model)
            assert made.holds.versions == {name: len(ids) for name, ids in kept.items()}
        elif what == "crash" or copy.exists():
            left = folder / "left"
            left.mkdir()
            for ending in ("", "-wal"):
                shutil.copyfile(f"{file}{ending}", f"{left / 'agent.db'}{ending}")
            await store.aclose()
            for ending in ("", "-wal"):
                (left / f"agent.db{ending}").replace(f"{file}{ending}")
            left.rmdir()
            if what == "restore":
                await restore(copy, file, yes=True)
                await model.aclose()
                model = await _remembered(copy)
            store = await SQLiteStore.open(file)
        assert await _ids(store) == await _ids(model)
    await store.aclose()
    await model.aclose()
    if copy.exists():
        assert await _held(copy) == kept


async def _remembered(copy: Path) -> MemoryStore:
    model = MemoryStore()
    async with await SQLiteStore.open(copy) as store:
        async for info in store.conversations():
            async for event in store.read(info.id):
                await model.append(info.id, [NewEvent(id=event.id, at=event.at, payload=event.payload)])
    return model


@pytest.mark.parametrize("what", ["backup", "restore"])
async def test_whichever_connection_cannot_be_opened_the_error_is_the_librarys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """That of the last ones came out as the driver's own."""
    file, copy = tmp_path / "agent.db", tmp_path / "copy.db"
    await _store_with(file, 1)
    await backup(file, copy)
    connect, left = sqlite3.connect, 0

    def refuse(*arguments: Any, **options: Any) -> sqlite3.Connection:
        nonlocal left
        left -= 1
        if not left:
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error
        opened: sqlite3.Connection = connect(*arguments, **options)
        return opened

    monkeypatch.setattr(sqlite3, "connect", refuse)
    for number in range(1, 40):
        left = number
        with suppress(StoreError):
            await (backup(file, copy, force=True) if what == "backup" else restore(copy, file, yes=True))
        if left > 0:
            break
    assert 10 < number < 39


async def test_a_backup_that_the_disk_may_not_have_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one before it was replaced; the error said that nothing was."""
    file, copy = tmp_path / "agent.db", tmp_path / "copy.db"
    await _store_with(file, 1)
    copy.write_bytes(b"")
    fsync = os.fsync

    def fail(descriptor: int) -> None:
        if copy.stat().st_size:
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="the backup is there, but"):
        await backup(file, copy, force=True)


async def test_a_restore_that_the_disk_may_not_have_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error said that nothing was replaced."""
    file, copy = tmp_path / "agent.db", tmp_path / "copy.db"
    await _store_with(copy, 1)
    fsync = os.fsync

    def fail(descriptor: int) -> None:
        if file.exists():
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="the backup is in its place, but"):
        await restore(copy, file, yes=True)


async def test_a_restore_whose_draft_cannot_be_removed_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a file beside it was said to have kept the database from being replaced."""
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - as it is called
        if path.name.endswith(".restore-shm"):
            raise OSError(errno.EIO, "Input/output error", str(path))
        unlink(path, missing_ok)

    await _store_with(tmp_path / "backup.db", 2)
    await _store_with(tmp_path / "agent.db", 3)
    monkeypatch.setattr(Path, "unlink", refuse)
    assert (await restore(tmp_path / "backup.db", tmp_path / "agent.db", yes=True)).done


async def test_the_disk_knows_that_the_old_log_is_gone_before_a_restored_database_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power loss left the new database beside the old log on a file system that does not keep the order of names."""
    file = await _crashed(tmp_path, 3, 2)
    await _store_with(tmp_path / "backup.db", 1)
    calls: list[str] = []
    unlink, replace, fsync = Path.unlink, Path.replace, os.fsync

    def record(name: str, path: Path) -> None:
        calls.append(f"{name} {'the folder' if path == tmp_path else path.name}")

    def unlinked(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - as it is called
        record("unlink", path)
        unlink(path, missing_ok)

    def replaced(path: Path, target: Path) -> Path:
        record("replace", target)
        return replace(path, target)

    def synced(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            record("sync", tmp_path)
        fsync(descriptor)

    monkeypatch.setattr(Path, "unlink", unlinked)
    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr(os, "fsync", synced)
    await restore(tmp_path / "backup.db", file, yes=True)
    named = calls.index(f"replace {file.name}")
    assert calls[named - 3 : named + 2] == [
        *(f"unlink {file.name}-wal", f"unlink {file.name}-shm", "sync the folder"),
        *(f"replace {file.name}", "sync the folder"),
    ]


async def test_a_backup_for_which_there_is_no_room_names_the_folder_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk of the database, which it named, may have room enough."""
    connect = sqlite3.connect

    def limited(database: str, **options: Any) -> sqlite3.Connection:
        opened: sqlite3.Connection = connect(database, **options)
        if "/elsewhere/" in database:
            opened.execute("PRAGMA max_page_count = 5")
        return opened

    await _store_with(tmp_path / "agent.db", 1)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(sqlite3, "connect", limited)
    with pytest.raises(StoreFull, match="/elsewhere/"):
        await backup(tmp_path / "agent.db", tmp_path / "elsewhere" / "copy.db")
