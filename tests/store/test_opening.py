# ruff: noqa: ASYNC240 - a test may wait for the file system
from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import traceback
from itertools import count
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from timeline import store
from timeline.errors import InvalidArgument, StoreClosed, StoreError, StoreReadOnly
from timeline.store import open_store
from timeline.store.addresses import is_mistyped, is_server, without_password, without_passwords_in
from timeline.store.memory import MemoryStore
from timeline.store.opening import file_of
from timeline.store.postgres.address import parse
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import cancelled_at, events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_store_is_entered_or_awaited(tmp_path: Path) -> None:
    """`async with` closes the store at its end; an awaited store is closed by its owner."""
    async with open_store(tmp_path / "agent.db") as entered:
        await entered.append("a", events(2))
    with pytest.raises(StoreClosed):
        await entered.info("a")
    awaited = await open_store(str(tmp_path / "agent.db"))
    assert await versions(awaited, "a") == [1, 2]
    await awaited.aclose()


async def test_urls_name_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slashes and a relative path, four and an absolute one, with and without the driver's name."""
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:///one.db", "sqlite+aiosqlite:///two.db", f"sqlite:///{tmp_path}/three.db", "four.db"):
        async with open_store(url) as opened:
            assert isinstance(opened, SQLiteStore)
            await opened.append("a", events(1))
    assert {file.name for file in tmp_path.iterdir()} == {"one.db", "two.db", "three.db", "four.db"}


@pytest.mark.parametrize("name", ["memory://", "agent.db", "postgresql://nobody@localhost/x"])
def test_without_an_event_loop_of_asyncio_no_store_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Another library, such as trio, drives a coroutine as this test does; it could not wait for what comes next."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=r"needs a running event loop of asyncio.*trio\.to_thread"):
        next(open_store(name).__await__())
    assert list(tmp_path.iterdir()) == []


async def test_memory_is_a_new_store_each_time() -> None:
    """Two memory stores share nothing."""
    async with open_store("memory://") as one, open_store("memory://") as two:
        assert isinstance(one, MemoryStore)
        await one.append("a", events(1))
        assert [info async for info in two.conversations()] == []


@pytest.mark.parametrize(
    ("url", "cure"),
    [
        ("postgresql://", "Write postgresql://user@host:5432/database"),
        ("postgresql://127.0.0.1:1/x", "cannot be reached"),
        ("postgresql+asyncpg://127.0.0.1:1/x", "cannot be reached"),
        ("postgres://127.0.0.1:port/x", "Write postgresql://user:password@host:5432/database"),
        ("postgresql://127.0.0.1:1/x?sslmode=yes", "must be one of"),
        ("postgresql://127.0.0.1:1/x?target_session_attrs=leader", "any, primary, standby"),
        ("postgresql://ann:p@ss@127.0.0.1:1/x", "as %2F %3F"),
        ("mysql://localhost/x", "no store of the kind 'mysql'"),
        ("sqlite://", "write sqlite:///folder/agent.db"),
        ("sqlite://host/x.db", "write sqlite:///folder/agent.db"),
        ("sqlite:///:memory:", "or memory://"),
        (":memory:", "write memory://"),
        ("memory:", "write memory://"),
        ("sqlite:agent.db", "write sqlite:///agent.db, or the path alone"),
        ("sqlite:/folder/agent.db", "write sqlite:///agent.db"),
        ("file:agent.db", "write sqlite:///agent.db"),
        ("sqlite:///x.db?mode=ro", "write sqlite:///folder/agent.db"),
        ("memory://name", "takes no name"),
    ],
)
async def test_a_url_that_cannot_be_opened_says_what_can(url: str, cure: str) -> None:
    """One line with the cure, when the store is entered."""
    with pytest.raises(StoreError) as refused:
        await open_store(url)
    assert cure in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:sesame@127.0.0.1:1/x",
        "postgresql://ann:sesame@127.0.0.1:port/x",
        "postgresql://ann:x@sesame@127.0.0.1:1/x",
        "postgresql://ann@127.0.0.1:1/x?password=sesame&tenant=none",
        "postgresql://127.0.0.1:1/x?listen_url=postgresql://ann:sesame@127.0.0.1/x",
        "postgresql://ann:sesame?@127.0.0.1:1/x",
        "postgresql://ann:sesame/@127.0.0.1:1/x",
        "postgresql://ann:sesame@127.0.0.1:1/x?schema=a-b",
        "mysql://ann:sesame@127.0.0.1/x",
        "postgresql://ann:sesame/x",
        "postgresql://127.0.0.1:1/x?user=ann:y&Password=sesame",
        "sqlite:///x.db?password=sesame",
    ],
)
async def test_no_error_shows_a_password(url: str) -> None:
    """Nor does any exception behind it, whichever part of the URL is wrong."""
    assert "sesame" not in without_password(url)
    with pytest.raises(StoreError) as refused:
        await open_store(url)
    assert "sesame" not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(StoreError) as refused:
        file_of(url)
    assert "sesame" not in str(refused.value)
    if is_server(url):
        with contextlib.suppress(StoreError):
            assert "sesame" not in repr(parse(url))


MISTYPED = [
    "postgresql://ann:sesame?x@127.0.0.1:1/x?listen_url=postgresql://ann:y@127.0.0.1/x",
    "postgresql://ann:x@sesame?y@127.0.0.1:1/x",
    "postgresql://ann@127.0.0.1:1/x;password=sesame",
    "postgresql:/ann:sesame@127.0.0.1/x",
    "postgresql:ann:sesame@127.0.0.1/x",
    "postgresql//ann:sesame@127.0.0.1/x",
    "postgres+asyncpg:/ann:sesame@127.0.0.1/x",
    "jdbc:postgresql://127.0.0.1/x?user=ann&password=sesame",
    "POSTGRESQL://ann:sesame@127.0.0.1/x",
    " postgresql://ann:sesame@127.0.0.1/x",
    "host=127.0.0.1 user=ann password=sesame dbname=x",
    "user=ann PASSWORD = 'open sesame'",
    "ann:sesame@127.0.0.1/x;password=sesame",
]
"""Addresses of PostgreSQL that none of its drivers takes for a URL, or that a store would take for a file."""


@pytest.mark.parametrize("url", MISTYPED)
async def test_a_mistyped_address_of_a_server_is_no_file(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named as one, with how to write it, and nothing that may be a password; no file of that name is made."""
    monkeypatch.chdir(tmp_path)
    refusals = []
    with pytest.raises(StoreError) as refused:
        await open_store(url)
    refusals.append(refused.value)
    with pytest.raises(StoreError) as refused:
        file_of(url)
    refusals.append(refused.value)
    with pytest.raises(StoreError) as refused:
        parse(url)
    refusals.append(refused.value)
    for refusal in refusals:
        assert "Write postgresql://user:password@host:5432/database, with / ?" in str(refusal)
        assert "sesame" not in "".join(traceback.format_exception(refusal))
    assert list(tmp_path.iterdir()) == []


async def test_a_url_that_became_a_path_is_named_as_one() -> None:
    """`Path` takes a slash of it away."""
    with pytest.raises(StoreError, match=r"^postgresql:…: this is not a PostgreSQL URL"):
        await open_store(PurePosixPath("postgresql://ann:sesame@127.0.0.1/x"))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann@[::1]:5432,b:1/x?host=/x/y&schema=z",
        "postgresql:///x?host=/tmp/run",
        "postgresql://127.0.0.1:5432/x",
        "sqlite:////folder/a@b.db",
        "postgres/agent.db",
        "compass=1.db",
    ],
)
def test_what_holds_no_password_is_shown_as_it_is(url: str) -> None:
    """An address, or a path that reminds of one."""
    assert (is_mistyped(url), without_password(url), without_passwords_in(url)) == (False, url, url)


def test_a_password_that_looks_like_a_setting_is_one() -> None:
    """Before the server's name, it is the user's own."""
    url = "postgresql://ann:password=sesame@127.0.0.1/x"
    assert (is_mistyped(url), without_password(url)) == (False, "postgresql://ann@127.0.0.1/x")


async def test_a_file_whose_name_looks_like_a_setting_is_opened_by_its_url(tmp_path: Path) -> None:
    """As any other name is."""
    async with open_store(f"sqlite:///{tmp_path}/password=1.db") as opened:
        await opened.append("a", events(1))
    assert (tmp_path / "password=1.db").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux alone")
@pytest.mark.parametrize("given", [None, 5, b"agent.db", ["agent.db"], "agent\0.db"])
async def test_what_is_no_path_and_no_url_is_named(given: Any) -> None:
    """A variable that is not set gives None, and the error was one of the operating system's functions."""
    with pytest.raises(InvalidArgument, match="'url_or_path'"):
        await open_store(given)


async def test_a_file_is_opened_whose_name_is_not_in_utf_8(tmp_path: Path) -> None:
    """Nor need the locale know UTF-8: the file's name is bytes, which Python and SQLite read each in its way."""
    named = tmp_path / os.fsdecode(b"m\xfcsli.db")
    for _ in range(2):
        async with open_store(named) as opened:
            assert await opened.head() == 0
    assert named.is_file()


async def test_a_file_that_has_a_second_name_is_not_opened(tmp_path: Path) -> None:
    """A process that opens it by the other one would keep another log, and both would damage the file."""
    file = tmp_path / "agent.db"
    async with open_store(file):
        pass
    (tmp_path / "second.db").hardlink_to(file)
    with pytest.raises(StoreError, match="more than one name"):
        await open_store(file)


async def test_options_reach_the_store(tmp_path: Path) -> None:
    """`readonly` and `durability` are those of `SQLiteStore.open`."""
    async with open_store(tmp_path / "agent.db", durability="normal") as opened:
        await opened.append("a", events(1))
    async with open_store(tmp_path / "agent.db", readonly=True) as opened:
        with pytest.raises(StoreReadOnly):
            await opened.append("a", events(1))
    with pytest.raises(StoreError, match="nothing to read"):
        await open_store("memory://", readonly=True)


async def test_an_opening_that_is_cancelled_ends_its_thread_in_peace(tmp_path: Path) -> None:
    """The writer, which is still connecting, closes what it opened; nothing is raised in its thread."""
    opening = asyncio.create_task(SQLiteStore.open(tmp_path / "agent.db"))
    await asyncio.sleep(0)
    (writer,) = [thread for thread in threading.enumerate() if thread.name.endswith(f"{tmp_path / 'agent.db'}")]
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await asyncio.to_thread(writer.join)
    assert not list(tmp_path.glob("*-wal"))


@pytest.mark.parametrize("readonly", [False, True])
async def test_an_opening_that_is_cancelled_anywhere_leaves_nothing_beside_the_file(
    tmp_path: Path,
    readonly: bool,  # noqa: FBT001
) -> None:
    """The reader, too, is closed before the writer, which removes the log and the lock files."""
    for suspension in count(1):
        file = tmp_path / str(suspension) / "agent.db"
        file.parent.mkdir()
        if readonly:
            await (await SQLiteStore.open(file)).aclose()

        async def opened(file: Path = file, suspension: int = suspension) -> SQLiteStore:
            return await cancelled_at(SQLiteStore.open(file, readonly=readonly), suspension)

        [outcome] = await asyncio.gather(asyncio.create_task(opened()), return_exceptions=True)
        if isinstance(outcome, SQLiteStore):
            await outcome.aclose()
            assert suspension > 2
            return
        assert isinstance(outcome, asyncio.CancelledError)
        for thread in threading.enumerate():
            if thread.name.endswith(str(file)):
                await asyncio.to_thread(thread.join)
        assert {left.name for left in file.parent.iterdir()} <= {"agent.db"}


def test_importing_the_package_is_light() -> None:
    """`import timeline.store` brings neither a database library nor the SQLite store."""
    heavy = {"sqlmodel", "sqlalchemy", "aiosqlite", "timeline.store.sqlite.store", "timeline.store.sqlite.schema"}
    script = f"import sys, timeline.store; print(sorted({heavy!r} & set(sys.modules)))"
    assert _printed(script) == "[]"


def test_a_store_is_made_and_opened_without_sqlmodel(tmp_path: Path) -> None:
    """The classes of the tables are for queries of one's own; opening a store takes milliseconds."""
    script = (
        "import asyncio, sys\nfrom store import open_store\n"
        "async def main():\n    async with open_store(sys.argv[1]): pass\n"
        "asyncio.run(main())\nprint(sorted({'sqlmodel', 'sqlalchemy'} & set(sys.modules)))"
    )
    assert _printed(script, str(tmp_path / "agent.db")) == "[]"
    assert _printed(script, str(tmp_path / "agent.db")) == "[]"


def test_the_public_names_are_there() -> None:
    """Every name of `__all__` can be imported, the lazy ones too, and nothing else pretends to."""
    assert [getattr(store, name).__name__ for name in store.__all__] == store.__all__
    with pytest.raises(AttributeError, match="no attribute 'PostgresStore'"):
        _ = store.PostgresStore  # type: ignore[attr-defined]


def _printed(script: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
