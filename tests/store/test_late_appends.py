"""A process of a release before the chain had the file open while a later one upgraded it, and appends without links.

Nothing is wrong with such events, and the next append links them. A conversation may have no next append.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.downgrade import append_without_link
from timeline.audit.deep import repair, verify_deep
from timeline.audit.proof import prove
from timeline.audit.verify import verify
from timeline.errors import StoreCorrupt
from timeline.portable import copy_conversation
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
async def head(tmp_path: Path) -> bytes:
    """Write three events that are linked, and two that are not; return the head of the three."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(3))
        kept = await store.chain_head("a")
    for _ in range(2):
        append_without_link(file)
    return kept


async def test_what_an_earlier_release_appended_meanwhile_is_no_damage(tmp_path: Path, head: bytes) -> None:
    """It is counted as not proved, and a head from before proves all up to itself."""
    async with await SQLiteStore.open(tmp_path / "agent.db", readonly=True) as store:
        report = await verify(store, "a", head=head)
    assert (report.chain, report.proved, report.unproved, report.proved_until) == (0, 3, 2, 3)


async def test_events_whose_links_were_taken_are_damage(tmp_path: Path, head: bytes) -> None:
    """The head of the row is the one of an event that has no link any more."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(1))
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE events SET salt = NULL, c = NULL, link = NULL WHERE version > 3")
    async with await SQLiteStore.open(file, readonly=True) as store:
        problems = (await prove(store, "a", kept_head=head)).problems
    assert all(f"version {version} has lost its link" in problems[version - 4] for version in (4, 5, 6))
    assert "the head of its row is not the link of version 3" in problems[-1]


async def test_a_repair_links_what_an_earlier_release_appended_meanwhile(tmp_path: Path, head: bytes) -> None:
    """What was linked before keeps its links."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        [found] = (await verify_deep(store)).differences
        assert "program of an earlier version" in found.problem
        await repair(store, dry_run=False)
        proof = await prove(store, "a", kept_head=head)
        assert (proof.proved, proof.unproved, proof.found, proof.problems) == (5, 0, 3, [])
        assert (await verify_deep(store)).differences == ()


async def test_a_copy_names_the_command_that_links_what_has_no_link(tmp_path: Path, head: bytes) -> None:
    """What a chain does not hold could not be continued in the other store."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        with pytest.raises(StoreCorrupt, match=r"event 4 .* has no link.*`timeline repair --yes`"):
            await copy_conversation(store, "a", MemoryStore())
        await repair(store, dry_run=False)
        [copied] = await copy_conversation(store, "a", into := MemoryStore())
        assert (copied.version, copied.head) == (5, await into.chain_head("a"))
    assert head != copied.head


async def test_a_conversation_that_lost_its_head_keeps_its_links(tmp_path: Path, head: bytes) -> None:
    """A repair of an earlier release forgets the head of such a conversation: opening the file links the rest alone."""
    file = tmp_path / "agent.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE conversations SET head = NULL")
    async with await SQLiteStore.open(file) as store:
        proof = await prove(store, "a", kept_head=head)
    assert (proof.proved, proof.found, proof.problems) == (5, 3, [])
