"""Events that somebody deleted or edited: a repair leaves what tells of them, and says that only a backup has them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.store.tampering import make
from timeline import Timeline, open_store
from timeline.audit.deep import repair
from timeline.blocks import UserPrompt
from timeline.errors import StoreCorrupt

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_repair_names_the_event_that_it_cannot_mend(tmp_path: Path) -> None:
    """Its report says what is left to a backup, as the dry run before it does: nothing of it is in order."""
    file = tmp_path / "agent.db"
    await make(file, scavenged=False)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE events SET checksum = 'x' WHERE conversation = 1 AND version = 4")
    for dry_run in (True, False):
        async with open_store(file) as store:
            done = await repair(store, dry_run=dry_run)
        assert [each.what for each in done.left] == ["events", "events"]  # of the conversation and of its fork
        assert all("event 4 of conversation 'c'" in each.problem for each in done.left)


async def _two(file: Path) -> None:
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "root", title="The root")
        await timeline.append(UserPrompt(text="One."), UserPrompt(text="Two."))
        fork = await timeline.fork(conversation="fork", at=2, title="The fork")
        await timeline.append(UserPrompt(text="The root goes on."))
        await fork.append(UserPrompt(text="The fork goes on."))


@pytest.mark.parametrize(("id_", "lost"), [("root", 1), ("fork", 3)])
async def test_a_conversation_that_lost_its_first_event_is_no_fork_of_what_came_before(
    tmp_path: Path, id_: str, lost: int
) -> None:
    """A repair leaves its row, so that all other events read on; no event of a parent takes the lost one's place."""
    file = tmp_path / "agent.db"
    await _two(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "DELETE FROM events WHERE version = ? AND conversation = (SELECT key FROM conversations WHERE id = ?)",
            (lost, id_),
        )
    async with open_store(file) as store:
        before = await store.info(id_)
        done = await repair(store, dry_run=False)
        assert any(f"{id_!r} begins at version {lost + 1}" in each.problem for each in done.left)
        assert await store.info(id_) == before
        with pytest.raises(StoreCorrupt, match=f"event {lost} of conversation '{id_}' is missing"):
            await store.read_versions(id_, [lost])
        assert [event.version for event in await store.read_versions(id_, [lost + 1])] == [lost + 1]


async def test_a_row_that_knows_of_newer_events_is_not_said_to_be_made_anew(tmp_path: Path) -> None:
    """A repair leaves it, since it is what tells that they are missing."""
    file = tmp_path / "agent.db"
    await _two(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM events WHERE conversation = 1 AND version > 2")
    async with open_store(file) as store:
        for dry_run in (True, False):
            done = await repair(store, dry_run=dry_run)
            assert {each.what for each in done.mended} <= {"facts", "search"}
            assert any("its head is" in each.problem for each in done.left)


@pytest.mark.parametrize("number", [5, 9])
async def test_an_event_that_was_renumbered_leads_no_row_past_what_is_missing(tmp_path: Path, number: int) -> None:
    """The row stays, since with a higher version it would say that more events are missing."""
    file = tmp_path / "agent.db"
    await _two(file)
    async with open_store(file) as store:
        before = await store.info("root")
        assert before.version == 4
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE events SET version = ? WHERE conversation = 1 AND version = 4", (number,))
    async with open_store(file) as store:
        for dry_run in (True, False):
            done = await repair(store, dry_run=dry_run)
            assert any(f"has an event of version {number}" in each.problem for each in done.left)
        assert await store.info("root") == before
        assert [event.version for event in await store.read_versions("root", [1, 2, 3])] == [1, 2, 3]


async def test_a_repair_names_what_the_chain_does_not_prove(tmp_path: Path) -> None:
    """An event that reads, and is not the one that was appended, is damage that a repair leaves."""
    file = tmp_path / "agent.db"
    await _two(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE events SET link = zeroblob(32) WHERE conversation = 1 AND version = 3")
    for dry_run in (True, False):
        async with open_store(file) as store:
            done = await repair(store, dry_run=dry_run)
        assert [each.what for each in done.left] == ["events", "events"]
        assert "version 3 is not what followed version 2" in done.left[0].problem


async def test_a_row_that_lost_its_head_is_mended_and_no_damage_of_the_log(tmp_path: Path) -> None:
    """What the row says, and a repair makes anew, is not named as damage of the log as well."""
    file = tmp_path / "agent.db"
    await _two(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE conversations SET head = zeroblob(32) WHERE key = 1")
    for dry_run in (True, False):
        async with open_store(file) as store:
            done = await repair(store, dry_run=dry_run)
        assert done.left == ()
        assert any("its head is" in each.problem for each in done.mended)


@pytest.mark.parametrize("lost", ["b", "d", "bc", "abd", "abcd"])
async def test_conversations_that_lost_their_rows_are_all_counted(tmp_path: Path, lost: str) -> None:
    """Wherever they stood among the others: nothing else leads to their events."""
    file = tmp_path / "agent.db"
    async with open_store(file) as store:
        for id_ in "abcd":
            await (await Timeline.open(store, id_)).append(UserPrompt(text="Hello."))
        await store.check_listed()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany("DELETE FROM conversations WHERE id = ?", list(lost))
    async with open_store(file) as store:
        with pytest.raises(StoreCorrupt, match=f"rows are gone: {len(lost)} of them are not listed"):
            await store.check_listed()
