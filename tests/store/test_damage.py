# ruff: noqa: ASYNC240 - a test may wait for the file system
from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from timeline.errors import NotAStore, StoreCorrupt, StoreError
from timeline.frozen import sha256_hex
from timeline.ports import Snapshot
from timeline.store.sqlite import identity, packing
from timeline.store.sqlite.connection import Connection
from timeline.store.sqlite.cut_off import length_before
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, compaction, events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from pathlib import Path

MARK = "a sentence that is easy to find"


async def _damaged(file: Path, old: bytes, new: bytes, *, window_start: int = 8) -> None:
    """Make a store with ten events, the fifth of which holds the mark, and change bytes in its file.

    What lies before the window is packed.
    """
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [*events(4), block_event("p5", MARK), *events(5)])
        await store.append("b", events(3), values={sha256_hex("a value"): "a value"})
        await store.append(
            "a", events(1), snapshot=Snapshot(version=11, window_start=window_start, state={"x": "a state"})
        )
    content = file.read_bytes()
    assert content.count(old) == 1
    file.write_bytes(content.replace(old, new))


@pytest.mark.parametrize("new", [MARK.upper().encode(), b"\xff" * len(MARK), b"\x00" * len(MARK)])
async def test_a_flipped_byte_in_a_payload_is_reported_with_its_place(tmp_path: Path, new: bytes) -> None:
    """Whatever the bytes become, the event is named by conversation, version and position; the others still read."""
    await _damaged(tmp_path / "agent.db", MARK.encode(), new, window_start=4)
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await _the_fifth_is_damaged(store)
        with pytest.raises(StoreCorrupt, match="event 5"):
            await store.load_window("a")


async def _the_fifth_is_damaged(store: SQLiteStore) -> None:
    for read in (versions(store, "a"), store.find("a", "p5"), store.read_versions("a", [4, 5])):
        with pytest.raises(StoreCorrupt, match=r"agent\.db: event 5 of conversation 'a' \(position 5\)"):
            await read
    assert [e.version async for e in store.read("a", until=4)] == [1, 2, 3, 4]
    assert [e.version async for e in store.read("a", after=5)] == [6, 7, 8, 9, 10, 11]
    assert await versions(store, "b") == [1, 2, 3]


async def test_a_flipped_byte_in_a_packed_payload_is_reported_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its bytes in turn: it damages that event alone, and no window; or it changes nothing that is read."""
    file = tmp_path / "agent.db"
    monkeypatch.setattr(packing, "LEAST_EVENTS", 1)
    await _damaged(file, b"a value", b"a value")
    whole = file.read_bytes()
    with closing(sqlite3.connect(file)) as connection:
        (body,) = connection.execute("SELECT packed FROM events WHERE conversation = 1 AND version = 5").fetchone()
    start, harmless = whole.index(body), []
    for place in range(len(body)):
        file.write_bytes(whole[: start + place] + bytes([body[place] ^ 0x55]) + whole[start + place + 1 :])
        async with await SQLiteStore.open(file, readonly=True) as store:
            assert [e.version for e in (await store.load_window("a")).events] == [8, 9, 10, 11]
            try:
                (read,) = await store.read_versions("a", [5])
                assert read.payload == block_event("p5", MARK).payload
                harmless.append(place)
            except StoreCorrupt:
                await _the_fifth_is_damaged(store)
    assert len(harmless) <= 1  # the bits behind the end


async def test_a_flipped_byte_in_a_value_or_a_snapshot_is_reported(tmp_path: Path) -> None:
    """Values and snapshots have their hashes too."""
    await _damaged(tmp_path / "one.db", b"a value", b"A value")
    async with await SQLiteStore.open(tmp_path / "one.db") as store:
        with pytest.raises(StoreCorrupt, match=r"one\.db: the stored value"):
            await store.values([sha256_hex("a value")])
    await _damaged(tmp_path / "two.db", b"a state", b"A state")
    async with await SQLiteStore.open(tmp_path / "two.db") as store:
        with pytest.raises(StoreCorrupt, match=r"two\.db: the snapshot of conversation 'a'"):
            await store.load_window("a")


async def test_a_window_with_a_hole_is_not_handed_out(tmp_path: Path) -> None:
    """An event that vanished from the window is noticed: versions have no gaps."""
    await _damaged(tmp_path / "agent.db", b"a value", b"a value")
    with closing(sqlite3.connect(tmp_path / "agent.db")) as connection:
        connection.execute("DELETE FROM events WHERE version = 9")
        connection.commit()
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        with pytest.raises(StoreCorrupt, match="events of the window of conversation 'a' are missing"):
            await store.load_window("a")


async def test_a_damaged_header_is_not_taken_for_a_store(tmp_path: Path) -> None:
    """Without its first bytes a store cannot be told from any other file, and is not changed."""
    file = tmp_path / "agent.db"
    await _damaged(file, b"SQLite format 3\x00", b"SQLITE FORMAT 3\x00")
    content = file.read_bytes()
    with pytest.raises(NotAStore):
        await SQLiteStore.open(file)
    assert file.read_bytes() == content


async def test_a_store_that_lost_its_tables_says_so(tmp_path: Path) -> None:
    """A file with our mark and without our tables is damaged, not new."""
    file = tmp_path / "agent.db"
    await _damaged(file, b"a value", b"a value")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM migrations")
        connection.commit()
    with pytest.raises(StoreCorrupt, match="lost the record of its migrations"):
        await SQLiteStore.open(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TABLE migrations")
    with pytest.raises(StoreCorrupt, match="lost its tables"):
        await SQLiteStore.open(file)


async def test_a_damaged_page_with_the_newest_position_is_no_file_that_was_swapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By that position a file is known that was overwritten while it was open; here nobody has written to it since."""
    monkeypatch.setattr(identity, "_AT_REST", 0.01)
    file = tmp_path / "agent.db"
    await _damaged(file, b"a value", b"a value")
    with closing(sqlite3.connect(file)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_sequence'")
        ((size,),) = connection.execute("PRAGMA page_size")
    content = bytearray(file.read_bytes())
    content[(page - 1) * size : page * size] = bytes(size)
    file.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="the database is damaged"):
        await SQLiteStore.open(file)
    assert file.read_bytes() == content


@pytest.mark.parametrize("kept", [600, 4_096, 8_192, 20_000, 0.5, 0.9])
async def test_a_truncated_file_is_corrupt_or_reads_only_what_is_whole(tmp_path: Path, kept: float) -> None:
    """Whatever is cut off, no call ends in anything but a store error or events that are whole."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        for _ in range(20):
            await store.append("a", events(10, text="x" * 500))
    content = file.read_bytes()
    file.write_bytes(content[: int(kept * len(content)) if kept < 1 else int(kept)])
    with pytest.raises(StoreCorrupt):
        await _read_all(file)


async def test_a_file_whose_end_is_missing_says_how_long_it_was_and_reads_as_a_copy_of_that_length(
    tmp_path: Path,
) -> None:
    """Only what was on the missing pages does not read."""
    file = tmp_path / "agent.db"
    for name in ("first", "second"):  # the first close ends with a page of the schema
        async with await SQLiteStore.open(file) as store:
            for number in range(20):
                await store.append(f"{name} {number}", events(10, "hello " * 100))
    whole = file.stat().st_size
    os.truncate(file, whole - 3 * 4_096)
    with pytest.raises(StoreCorrupt, match=f"truncate --size {whole} COPY"):
        await _read_all(file)
    os.truncate(file, whole)
    async with await SQLiteStore.open(file, readonly=True) as store:
        assert len(await versions(store, "first 3")) == 10


async def test_the_length_of_a_file_that_is_open_here_is_not_looked_up(tmp_path: Path) -> None:
    """A descriptor of it that is closed would drop the locks of the store that has it open."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(10, "hello " * 100))
    whole = file.stat().st_size
    os.truncate(file, whole - 4_096)
    connection = sqlite3.connect(file, factory=Connection)
    assert length_before(file) is None
    connection.close()
    assert length_before(file) == whole


async def _read_all(file: Path) -> None:
    async with await SQLiteStore.open(file) as store:
        await versions(store, "a")
        await store.load_window("a")


async def test_random_damage_never_ends_in_another_error(tmp_path: Path) -> None:
    """Bytes changed anywhere: every call answers, or raises a store error; what it answers is unharmed."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        written = events(120, text="x" * 300)
        await store.append("a", written)
    whole, chance = file.read_bytes(), random.Random(7)
    for _ in range(40):
        content = bytearray(whole)
        for _ in range(chance.choice([1, 8, 200])):
            content[chance.randrange(len(content))] = chance.randrange(256)
        file.write_bytes(content)
        try:
            async with await SQLiteStore.open(file, readonly=True) as store:
                read = [e async for e in store.read("a")]
        except StoreError:
            continue
        assert [(e.id, e.payload) for e in read] == [(e.id, e.payload) for e in written[: len(read)]]


async def test_a_torn_write_ahead_log_loses_whole_appends_from_its_end_only(tmp_path: Path) -> None:
    """Cut anywhere, the log's good part is used: a prefix of the appends, each one whole."""
    torn = tmp_path / "torn.db"
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        for _ in range(12):
            await store.append("a", events(5))
        database = (tmp_path / "agent.db").read_bytes()
        log = (tmp_path / "agent.db-wal").read_bytes()
    seen = set()
    for size in [0, 20, *range(5_000, len(log), len(log) // 15), len(log) - 1, len(log)]:
        torn.write_bytes(database)
        (tmp_path / "torn.db-wal").write_bytes(log[:size])
        async with await SQLiteStore.open(torn) as store:
            read = [e.version async for e in store.read_all()]
            assert len(read) % 5 == 0
            assert read == list(range(1, len(read) + 1))
            assert (await store.append("a", events(1))).version == len(read) + 1
            seen.add(len(read))
        with closing(sqlite3.connect(torn)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert {0, 60} <= seen
    assert len(seen) > 5


async def test_an_index_of_types_that_leads_to_another_event_is_reported(tmp_path: Path) -> None:
    """Neither a read of a conversation nor one of all conversations gives an event that was not asked for."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [*events(2), compaction(1, 2)])
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        indexes = connection.execute("SELECT * FROM sqlite_schema WHERE name LIKE 'events_rare%'").fetchall()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_schema WHERE name LIKE 'events_rare%'")
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("UPDATE events SET type = 'block.redacted' WHERE version = 3")  # past both indexes
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", indexes)
    async with await SQLiteStore.open(file, readonly=True) as store:
        for read in (store.read("a", types={"compaction.completed"}), store.read_all(types={"compaction.completed"})):
            with pytest.raises(StoreCorrupt, match="leads to event 3 of conversation 'a', which was not asked for"):
                _ = [event async for event in read]
