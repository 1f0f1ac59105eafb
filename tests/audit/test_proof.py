from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.scenes import AT
from timeline.audit.proof import prove
from timeline.audit.verify import verify
from timeline.events import BlockRedacted, NewEvent, Rewritten, event_id
from timeline.events.chain import SIZE, START, commitment, link
from timeline.events.encoding import checksum
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, events, fork

if TYPE_CHECKING:
    from pathlib import Path

WORD = "hello"


async def _stored(file: Path) -> bytes:
    """Write a conversation of seven events, and return its head."""
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [*events(3), block_event("p", WORD), *events(3)])
        return await store.chain_head("a")


def _forge(file: Path) -> None:
    """Change an event as whoever knows the library would: with its checksum, commitment and all links behind it."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE events SET payload = replace(payload, 'hello', 'olleh') WHERE path = 'p'")
        before = START
        for position, *place, payload, salt in connection.execute(
            "SELECT position, version, event_id, type, schema_version, at, payload, salt FROM events ORDER BY version"
        ).fetchall():
            version, id_, type_, schema_version, at = place
            hashed = checksum("a", version, id_, type_, schema_version, at, payload)
            c = commitment(salt, hashed)
            before = link(before, "a", version, id_, type_, schema_version, at, c)
            changed = (hashed, c, before, position)
            connection.execute("UPDATE events SET checksum = ?, c = ?, link = ? WHERE position = ?", changed)
        connection.execute("UPDATE conversations SET head = ?", (before,))


def _exchange(file: Path) -> str:
    """Give an event another content, and leave its link as it was; return the new checksum."""
    with closing(sqlite3.connect(file)) as connection, connection:
        *place, payload, salt, hashed = connection.execute(
            "SELECT version, event_id, type, schema_version, at, payload, salt, checksum FROM events WHERE path = 'p'"
        ).fetchone()
        version, id_, type_, schema_version, at = place
        payload = payload.replace(WORD, "olleh")
        new = checksum("a", version, id_, type_, schema_version, at, payload)
        changed = (payload, new, commitment(salt, hashed))
        connection.execute("UPDATE events SET payload = ?, checksum = ?, salt = NULL, c = ? WHERE path = 'p'", changed)
    return new


async def test_a_chain_that_was_computed_anew_is_found_against_a_kept_head(tmp_path: Path) -> None:
    """By itself it is sound, and nothing else would find it."""
    file = tmp_path / "agent.db"
    head = await _stored(file)
    _forge(file)
    async with await SQLiteStore.open(file, readonly=True) as store:
        assert (await prove(store, "a")).problems == []
        (problem,) = (await prove(store, "a", kept_head=head)).problems
        assert head.hex() in problem
        assert (await verify(store, "a", head=head)).chain == 1


async def test_a_kept_head_proves_the_log_up_to_its_event(tmp_path: Path) -> None:
    """The log goes on behind it."""
    file = tmp_path / "agent.db"
    head = await _stored(file)
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(2))
        proof = await prove(store, "a", kept_head=head)
    assert (proof.found, proof.proved, proof.problems) == (7, 9, [])
    assert len(proof.head) == SIZE


async def test_a_kept_head_does_not_prove_what_a_redaction_behind_it_put_in_the_place_of_another(
    tmp_path: Path,
) -> None:
    """Whoever can write can append a redaction; one before the head is proved with its checksums."""
    file = tmp_path / "agent.db"
    head = await _stored(file)
    redaction = BlockRedacted(version=0, erased=True, rewritten=(Rewritten(version=4, checksum=_exchange(file)),))
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [NewEvent(id=event_id(AT), at=AT, payload=redaction)])
        proof = await prove(store, "a", kept_head=head)
        assert (proof.problems, proof.found, proof.rewritten, proof.rewritten_behind) == ([], 7, 1, [4])
        report = await verify(store, "a", head=head)
        assert (report.proved_until, report.rewritten_behind) == (7, (4,))
        later = await prove(store, "a", kept_head=await store.chain_head("a"))
        assert (later.found, later.rewritten, later.rewritten_behind) == (8, 1, [])


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE events SET salt = NULL WHERE version = 3", "version 3 was rewritten, and no redaction says so"),
        ("UPDATE events SET salt = zeroblob(16) WHERE version = 3", "version 3 is not what followed version 2"),
        ("UPDATE events SET link = NULL WHERE version = 3", "version 3 has lost its link"),
        ("UPDATE events SET link = NULL, c = NULL, salt = NULL WHERE version = 1", "version 1 has no link"),
        ("UPDATE events SET c = zeroblob(33) WHERE version = 3", "version 3 is not what followed version 2"),
        ("UPDATE events SET at = '2026-01-01T00:00:00.000009Z' WHERE version = 3", "version 3 is not what followed"),
        ("UPDATE events SET position = 99 WHERE version = 3", "version 4 is at position 4, before the one in front"),
        ("DELETE FROM events WHERE version = 7", "the log ends at version 6, and its row says 7"),
        ("UPDATE conversations SET head = zeroblob(33)", "the head of its row is not the link of version 7"),
    ],
)
async def test_each_break_of_a_chain_is_named(tmp_path: Path, statement: str, problem: str) -> None:
    """With the version, and the cure."""
    file = tmp_path / "agent.db"
    await _stored(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)
    async with await SQLiteStore.open(file, readonly=True) as store:
        found = (await prove(store, "a")).problems
    assert any(problem in each for each in found), found
    assert all("`timeline restore FILE`" in each for each in found)


async def test_a_log_that_was_cut_off_and_goes_on_stays_broken(tmp_path: Path) -> None:
    """The next event follows the head that was stored, not the event that happens to be the newest."""
    file = tmp_path / "agent.db"
    await _stored(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM events WHERE version > 5")
        connection.execute("UPDATE conversations SET version = 5")
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(3))
        (problem,) = (await prove(store, "a")).problems
    assert "version 6 is not what followed version 5" in problem


async def test_a_fork_is_proved_with_what_it_shares() -> None:
    """Its parent's events up to the base, then its own."""
    store = MemoryStore()
    await store.append("a", events(5))
    await store.append("b", [fork("a", 3), *events(2)])
    proof = await prove(store, "b")
    assert (proof.proved, proof.problems, proof.head) == (6, [], await store.chain_head("b"))
