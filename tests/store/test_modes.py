"""Who may read the files of a store: their owner, unless the database was there before and says otherwise."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
BESIDE = {"agent.db", "agent.db-wal", "agent.db-shm", "agent.db-lock", "agent.db-queue"}


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o277], ids=oct)
async def test_only_its_owner_may_read_a_new_store_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    """The database, its log, the log's index, and the files of its turns."""
    with _umask(mask):
        async with await SQLiteStore.open(tmp_path / "agent.db") as store:
            await store.append("a", events(3))
            assert _modes(tmp_path) == dict.fromkeys(BESIDE, 0o600)
        assert _modes(tmp_path) == {"agent.db": 0o600}


@pytest.mark.parametrize("mode", [0o640, 0o644, 0o600], ids=oct)
async def test_a_file_that_was_there_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    """Neither looser nor tighter, empty or a store; the files beside it are as readable as it is."""
    (tmp_path / "agent.db").touch()
    for _ in range(2):
        (tmp_path / "agent.db").chmod(mode)
        async with await SQLiteStore.open(tmp_path / "agent.db") as store:
            await store.append("a", events(3))
            assert _modes(tmp_path) == dict.fromkeys(BESIDE, mode)
    assert _modes(tmp_path) == {"agent.db": mode}


async def test_the_store_behind_a_link_is_private(tmp_path: Path) -> None:
    """The link leads to nothing yet: what is made there is for its owner alone."""
    (tmp_path / "link.db").symlink_to(tmp_path / "agent.db")
    with _umask(0):
        await (await SQLiteStore.open(tmp_path / "link.db")).aclose()
    assert stat.S_IMODE((tmp_path / "agent.db").stat().st_mode) == 0o600
