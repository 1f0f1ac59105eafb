from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.downgrade import append_without_link, before_chain
from timeline.events.chain import SALT, START, commitment, commitments, given, link, links, random_salts, remains
from timeline.events.encoding import checksum, checksums
from timeline.ports import Expected, Snapshot
from timeline.store.migrations import migrate
from timeline.store.sqlite import chaining
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, compaction, events
from timeline.store.testing.samples import fork

if TYPE_CHECKING:
    from pathlib import Path


def rows(file: Path, conversation: str) -> list[Any]:
    """Return the chained columns of a conversation's own events, each with its commitment."""
    with closing(sqlite3.connect(file)) as connection:
        found = connection.execute(
            "SELECT e.version, event_id, type, schema_version, at, checksum, salt, e.c, link FROM events AS e"
            " JOIN conversations AS o ON o.key = e.conversation WHERE o.id = ? ORDER BY e.version",
            (conversation,),
        ).fetchall()
    return [(*row[:7], given(row[6], row[5], row[7]), row[8]) for row in found]


def head(file: Path, conversation: str) -> bytes:
    """Return the head that the conversation's row holds."""
    with closing(sqlite3.connect(file)) as connection:
        (found,) = connection.execute("SELECT head FROM conversations WHERE id = ?", (conversation,)).fetchone()
        return bytes(found)


def proved(file: Path, conversation: str, before: bytes = START) -> bytes:
    """Compute the chain of a conversation anew, event by event, as the module's docstring says; return its head."""
    for version, id_, type_, schema_version, at, hashed, salt, c, stored in rows(file, conversation):
        assert len(salt) == SALT
        assert commitment(salt, hashed) == c
        before = link(before, conversation, version, id_, type_, schema_version, at, c)
        assert before == stored, version
    assert head(file, conversation) == before
    return before


def test_a_link_covers_each_of_its_parts() -> None:
    """No two of them have the same link, also where their texts are the same when they are joined."""
    told = (START, "a", 1, "id", "type", 1, "2026", b"c")
    others = [
        (b"\x01" * 33, *told[1:]),
        (START, "b", *told[2:]),
        (*told[:2], 2, *told[3:]),
        (*told[:3], "other", *told[4:]),
        (*told[:4], "types", *told[5:]),
        (*told[:5], 2, *told[6:]),
        (*told[:6], "2027", *told[7:]),
        (*told[:7], b"d"),
        (START, "e\na", 1, "id", "typ", 1, "2026", b"c"),
    ]
    assert len({link(*parts) for parts in (told, *others)}) == len(others) + 1


def test_a_commitment_depends_on_salt_and_payload() -> None:
    """The same payload twice does not look the same."""
    assert commitment(b"a" * SALT, "x") != commitment(b"b" * SALT, "x")
    assert commitment(b"a" * SALT, "x") != commitment(b"a" * SALT, "y")
    salts = random_salts(3)
    assert len({salts[:SALT], salts[SALT : 2 * SALT], salts[2 * SALT :]}) == 3


def test_events_that_are_hashed_together_have_the_hashes_that_each_has_alone() -> None:
    """Whatever else is among them: other conversations, other letters, a payload that is hashed in parts."""
    written = [
        ("id 1", "type", 1, "2026", "path", "turn", 3, "{}"),
        ("id 2", "typ\ne", 2, "2027", None, None, None, "ä" * 1_000_001),
        ("id 3", "type", 1, "2026", None, None, 0, '"\U0001f600"'),
    ]
    conversations, versions, salts = ["a", "ü", "a"], [7, 1, 8], [bytes([n]) * SALT for n in range(3)]
    together = checksums(conversations, versions, written)
    heads = {"a": b"h" * 33, "ü": START}
    linked = links(heads, conversations, versions, written, commitments(salts, together))
    alone = {"a": b"h" * 33, "ü": START}
    for place, (conversation, version, event) in enumerate(zip(conversations, versions, written, strict=True)):
        hashed = checksum(conversation, version, *event[:4], event[7])
        c = commitment(salts[place], hashed)
        alone[conversation] = link(alone[conversation], conversation, version, *event[:4], c)
        assert (together[place], linked[place]) == (hashed, alone[conversation])
    assert heads == alone


def test_what_is_left_of_an_erased_event_is_vouched_for() -> None:
    """Its type, and its path, or that it had none."""
    told = [("type", "path"), ("other", "path"), ("type", ""), ("type", None)]
    assert len({remains(START, type_, path) for type_, path in told}) == len(told)


async def test_every_append_is_chained(tmp_path: Path) -> None:
    """One event, many, of several conversations, and together with others."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(3))
        await store.append("b", events(120))
        await store.append("a", [block_event("p"), *events(2)])
    for conversation in ("a", "b"):
        proved(file, conversation)


async def test_each_event_has_a_salt_of_its_own(tmp_path: Path) -> None:
    """A redaction takes the salt of its event alone: with the salt of another one, the old content could be guessed."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(1))
        await store.append("a", events(120))
        await store.append("b", events(3))
    salts = [row[6] for conversation in ("a", "b") for row in rows(file, conversation)]
    assert len(set(salts)) == len(salts) == 124


async def test_a_fork_begins_with_its_parents_link_at_its_base(tmp_path: Path) -> None:
    """And that one's, of a fork of a fork, whoever appended it; the parent goes on by itself."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(6))
        await store.append("b", [fork("a", 4), *events(2)], expected=Expected.NO_STREAM)
        await store.append("c", [fork("b", 3), *events(2)], expected=Expected.NO_STREAM)
        await store.append("a", events(1))
    proved(file, "a")
    links = [row[-1] for row in rows(file, "a")]
    proved(file, "b", links[3])
    proved(file, "c", links[2])


async def test_a_scavenge_keeps_commitments_and_links(tmp_path: Path) -> None:
    """Without salt and checksum, which could prove a guess; type and path are vouched for."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [block_event("p1"), *events(3)])
        await store.append("a", events(1), snapshot=Snapshot(version=5, window_start=4, state={}))
        before = rows(file, "a")
        assert (await store.remove("a")).events == 3
        after = rows(file, "a")
    assert [row[-2:] for row in after] == [row[-2:] for row in before]
    assert after[0][5:7] == ("", remains(before[0][-1], "block.appended", "p1"))


async def _old_store(file: Path, *, scavenged: bool = False) -> None:
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [block_event("p1"), compaction(1, 1), *events(5)])
        await store.append("b", [fork("a", 6), *events(3)], expected=Expected.NO_STREAM)
        await store.append("c", [*events(4), block_event("q")])
        await store.append("c", events(1), snapshot=Snapshot(version=6, window_start=4, state={}))
        if scavenged:
            assert (await store.remove("c")).events == 3
    before_chain(file)


@pytest.mark.parametrize("slice_", [1, 3, 2_000])
async def test_an_old_store_is_chained_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slice_: int
) -> None:
    """In slices of any size, parents before their forks; what follows is linked behind."""
    monkeypatch.setattr(chaining, "SLICE", slice_)
    file = tmp_path / "agent.db"
    await _old_store(file)
    async with await SQLiteStore.open(file) as store:
        assert (await store.append("b", events(2))).version == 12
    for conversation in ("a", "c"):
        proved(file, conversation)
    proved(file, "b", rows(file, "a")[5][-1])
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT * FROM settings").fetchall() == []


async def test_a_chaining_that_is_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any slice: what is linked keeps its links."""
    monkeypatch.setattr(chaining, "SLICE", 2)
    file = tmp_path / "agent.db"
    await _old_store(file)
    done: list[Any] = []
    for stop in range(20):
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            if stop == 0:
                migrate(connection, file)
            if not chaining.is_unchained(connection):
                break
            chaining.chain_slice(connection)
        linked = [row for row in rows(file, "a") if row[-1] is not None]
        assert linked[: len(done)] == done
        done = linked
    assert stop > 5
    proved(file, "a")


async def test_what_was_scavenged_before_is_not_proved_and_the_chain_begins_behind_it(tmp_path: Path) -> None:
    """Its prefix has no links, and no salts that would pretend to prove it."""
    file = tmp_path / "agent.db"
    await _old_store(file, scavenged=True)
    async with await SQLiteStore.open(file) as store:
        await store.append("c", events(1))
    found = rows(file, "c")
    assert [row[6:] for row in found[:3]] == [(None, None, None)] * 3
    before = START
    for version, id_, type_, schema_version, at, _, _, c, stored in found[3:]:
        before = link(before, "c", version, id_, type_, schema_version, at, c)
        assert before == stored
    assert head(file, "c") == before


async def test_what_an_earlier_release_appends_meanwhile_is_chained_by_the_next_append(tmp_path: Path) -> None:
    """A process that had the file open before goes on writing without links."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(3))
        append_without_link(file)
        await store.append("a", events(2))
        await store.append("b", [fork("a", 4), *events(1)], expected=Expected.NO_STREAM)
    proved(file, "a")
    proved(file, "b", rows(file, "a")[3][-1])
