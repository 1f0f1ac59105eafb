"""A server whose disk is full: a small file system under its tables, or under its write-ahead log."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.depth import at_night
from tests.postgres import with_query
from tests.postgres_server import account, run
from timeline import open_store
from timeline.errors import AppendUncertain, StoreError, StoreFull, StoreUnavailable
from timeline.store.postgres import committing, database
from timeline.store.testing import block_event, events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.postgres_server import Server
    from timeline.events import NewEvent
    from timeline.ports import EventStore


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[None]:
    """Mount an empty file system of a few megabytes, which the server may write to."""
    place.mkdir()
    if mounted(place, f"size={megabytes}m").returncode:
        pytest.skip("this machine lets nobody mount a file system, and so has no small disk")
    try:
        if owner := account():
            os.chown(place, owner["user"], owner["group"])
        place.chmod(0o700)
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def mounted(place: Path, options: str) -> subprocess.CompletedProcess[bytes]:
    """Mount a file system in memory, or change the one that is there."""
    return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, check=False)


def noise() -> NewEvent:
    """Return an event with a text that cannot be compressed."""
    return block_event(text=random.Random().randbytes(10_000).hex())


async def filled(store: EventStore) -> tuple[int, StoreError]:
    """Append until that is refused; return how many appends were acknowledged, and the error."""
    for number in range(100_000):
        try:
            await store.append("a", [noise()])
        except StoreError as error:
            return number, error
    raise AssertionError("the disk is not small")


async def test_a_full_disk_is_said_and_the_store_goes_on_once_there_is_room(own_postgres: Server) -> None:
    """Appends are refused with the cure, reads go on, nothing acknowledged is lost; with room the same append goes."""
    place = own_postgres.folder / "disk"
    with small_disk(place, 6):
        connection = await asyncpg.connect(own_postgres.url())
        await connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
        url = with_query(own_postgres.url(), default_tablespace="small")
        async with open_store(url) as store:
            written, error = await filled(store)
            assert isinstance(error, StoreFull)
            assert "free some space" in str(error)
            with pytest.raises(StoreFull):
                await store.append("new", [noise()])
            assert await versions(store, "a") == list(range(1, written + 1))
            assert mounted(place, "remount,size=100m").returncode == 0
            assert (await store.append("a", events(1), expected=written)).version == written + 1
            assert await store.examine() == []
        await connection.execute("DROP SCHEMA timeline CASCADE")
        await connection.execute("DROP TABLESPACE small")
        await connection.close()


@at_night
async def test_a_full_disk_of_the_log_ends_the_server_and_loses_nothing(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL ends where it cannot write its log: the append is uncertain; after a start all is there, once."""
    for module in (committing, database):
        monkeypatch.setattr(module, "PATIENCE", 1.0)
    place, log = own_postgres.folder / "disk", own_postgres.data / "pg_wal"
    own_postgres.stop()
    with small_disk(place, 36):
        run("cp", "--recursive", f"{log}/.", place)
        shutil.rmtree(log)
        log.symlink_to(place)
        own_postgres.start()
        async with open_store(own_postgres.url()) as store:
            written, error = await filled(store)
            assert isinstance(error, AppendUncertain | StoreUnavailable | StoreFull)
            again = getattr(error, "arguments", {"conversation": "a", "events": events(1)})
            assert mounted(place, "remount,size=200m").returncode == 0
            (own_postgres.data / "postmaster.pid").unlink(missing_ok=True)
            await asyncio.to_thread(own_postgres.start)
            assert (await store.append(**again)).version == written + 1
            assert await versions(store, "a") == list(range(1, written + 2))
        own_postgres.stop()
