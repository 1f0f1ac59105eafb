"""Pages that a disk lost: what is derived from the log is made anew, and what is not is left as it is, and named."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pytest

from tests.store.tampering import make, reads
from timeline import Timeline, open_store
from timeline.audit.deep import repair, verify_deep
from timeline.blocks import UserPrompt
from timeline.store.sqlite.broken_trees import made_anew

if TYPE_CHECKING:
    from pathlib import Path

PAGE: Final = 4096
MAPPED_BY_ONE: Final = PAGE // 5
"""Pages of which one page of the map says who refers to them; it stands before them."""
BROKEN: Final = (
    *("sqlite_autoindex_conversations_1", "sqlite_autoindex_events_1", "sqlite_autoindex_events_2", "events_path"),
    *("events_rare", "events_rare_within", "sqlite_autoindex_stored_values_1", "sqlite_autoindex_settings_1"),
    *("sqlite_autoindex_erased_1", "sqlite_autoindex_waypoints_1", "facts_within", "compactions", "digest_entries"),
    *("facts", "facts_progress", "search_progress", "snapshots", "waypoints", "search_index_config"),
    *("search_index_data", "search_index_docsize", "search_index_idx", "conversations_unchained"),
)
"""Indexes, and tables of which every row follows from the log."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Make a store of which all that is derived can be made anew; return it with everything that it reads."""
    file = tmp_path_factory.mktemp("sound") / "agent.db"
    asyncio.run(make(file, scavenged=False))
    return file, asyncio.run(reads(file))


def _lose(file: Path, name: str) -> None:
    """Fill the first page of a table or an index with zeros, as a disk does that lost it."""
    with closing(sqlite3.connect(file)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchall()
    content = bytearray(file.read_bytes())
    content[(root - 1) * PAGE : root * PAGE] = bytes(PAGE)
    file.write_bytes(content)


async def _is_sound(file: Path) -> bool:
    async with open_store(file, readonly=True) as store:
        return (await verify_deep(store)).ok


@pytest.mark.parametrize("name", BROKEN)
async def test_a_lost_page_of_what_is_derived_is_made_anew(
    tmp_path: Path, sound: tuple[Path, dict[str, str]], name: str
) -> None:
    """The dry run says that nothing is left to a backup; behind the repair everything reads as before."""
    file = tmp_path / "agent.db"
    shutil.copy(sound[0], file)
    _lose(file, name)
    async with open_store(file, readonly=True) as store:
        assert "file" in {each.what for each in await store.examine()}
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert done.left == ()
    assert any(each.what == "file" for each in done.mended)
    assert await _is_sound(file)
    seen = await reads(file)
    # A lost snapshot is replaced by one of the end of the log, from which the same is shown.
    same = [asked for asked in seen if name != "snapshots" or not asked.endswith(" window")]
    assert [asked for asked in same if seen[asked] != sound[1][asked]] == []
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_a_repair_that_was_killed_before_it_left_out_the_lost_pages_is_ended_by_the_next(
    tmp_path: Path, sound: tuple[Path, dict[str, str]]
) -> None:
    """Pages that belong to nobody are all that such a kill leaves."""
    file = tmp_path / "agent.db"
    shutil.copy(sound[0], file)
    _lose(file, "sqlite_autoindex_events_1")
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        assert made_anew(connection, ()) == ["events"]
        ((said,), *_) = connection.execute("PRAGMA integrity_check").fetchall()
        assert "never used" in said
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert (done.left, {each.what for each in done.mended}) == ((), {"file"})
    assert await _is_sound(file)
    assert await reads(file) == sound[1]


@pytest.mark.parametrize("content", [bytes(PAGE), b"\x05\x00\x00\x00\x07" * (PAGE // 5) + b"\x00"])
async def test_a_lost_map_of_the_pages_tears_nothing_that_is_whole(
    tmp_path: Path, sound: tuple[Path, dict[str, str]], content: bytes
) -> None:
    """SQLite moves pages by it when it makes a table: the file is written anew before."""
    file = tmp_path / "agent.db"
    whole = sound[0].read_bytes()
    file.write_bytes(whole[:PAGE] + content + whole[2 * PAGE :])  # the second page is the first of the map
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert (done.left, {each.what for each in done.mended}) == ((), {"file"})
    assert await _is_sound(file)
    assert await reads(file) == sound[1]


async def _large(file: Path) -> None:
    """Write a store with a second page of the map, and with rows of many pages."""
    words = random.Random(1)
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "large")
        for _ in range(16):
            await timeline.append(UserPrompt(text=words.randbytes(150_000).hex()))


@pytest.mark.parametrize("page", [2, MAPPED_BY_ONE + 3])
async def test_a_lost_map_of_a_large_file_is_made_anew(tmp_path: Path, page: int) -> None:
    """SQLite goes by the map to rows of many pages, so that its check of the file comes to no end."""
    file = tmp_path / "agent.db"
    await _large(file)
    whole = file.read_bytes()
    file.write_bytes(whole[: (page - 1) * PAGE] + bytes(PAGE) + whole[page * PAGE :])
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert (done.left, {each.what for each in done.mended}) == ((), {"file"})
    assert await _is_sound(file)


async def test_a_lost_map_beside_a_lost_page_of_the_log_rewrites_nothing(tmp_path: Path) -> None:
    """What only a backup has is named, and the file stays as it was."""
    file = tmp_path / "agent.db"
    await _large(file)
    _lose(file, "stored_values")
    content = bytearray(file.read_bytes())
    content[PAGE : 2 * PAGE] = bytes(PAGE)
    file.write_bytes(content)
    async with open_store(file) as store:
        assert (await repair(store, dry_run=False)).left != ()
    assert file.read_bytes()[2 * PAGE :] == content[2 * PAGE :]


async def test_a_lost_page_of_the_log_is_left_and_an_index_beside_it_is_made_anew(
    tmp_path: Path, sound: tuple[Path, dict[str, str]]
) -> None:
    """What only a backup has keeps nothing else from being mended."""
    file = tmp_path / "agent.db"
    shutil.copy(sound[0], file)
    _lose(file, "stored_values")
    _lose(file, "sqlite_autoindex_events_2")
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert "pages of events or of its indexes are broken" in {each.problem for each in done.mended}
    assert "values" in {each.what for each in done.left}
    async with open_store(file) as store:
        again = await repair(store)
    assert "pages of events or of its indexes are broken" not in {each.problem for each in again.mended}


async def test_a_dry_run_that_cannot_know_whether_an_event_is_damaged_says_so(
    tmp_path: Path, sound: tuple[Path, dict[str, str]]
) -> None:
    """Nothing leads to the events while their index is broken: what is left is unknown until it is made anew."""
    file = tmp_path / "agent.db"
    shutil.copy(sound[0], file)
    _lose(file, "sqlite_autoindex_events_1")
    async with open_store(file, readonly=True) as store:
        planned = await repair(store)
    assert {each.what for each in planned.left} == {"unknown"}
    async with open_store(file) as store:
        assert (await repair(store, dry_run=False)).left == ()
        assert (await repair(store)).left == ()


async def test_facts_of_scavenged_events_are_not_dropped_for_a_lost_page(tmp_path: Path) -> None:
    """Their rows are all that is left of them: those that still read stay, and the loss is named."""
    file = tmp_path / "agent.db"
    await make(file)
    _lose(file, "facts")
    content = _root(file, "facts")
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert "facts" in {each.what for each in done.left}
    assert _root(file, "facts") == content


def _root(file: Path, name: str) -> int:
    with closing(sqlite3.connect(file)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchall()
    return int(root)
