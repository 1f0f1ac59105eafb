"""What leaves a window is packed behind the append that moved it: smaller on disk, and the same to every reader."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.downgrade import before_packing
from timeline.blocks import ToolCall
from timeline.events import BlockAppended, BlockRedacted, BlocksHidden, Replacement
from timeline.ports import Snapshot
from timeline.store.packing import packed, packed_whole, unpacked, unpacked_whole
from timeline.store.sqlite import packing
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, compaction, event, events, fork
from timeline.store.testing.facts import command, found

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.events import Event

TEXT = "def read(self) -> str:\n    return self.lines\n" * 20


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a packing wait for no more than one event."""
    monkeypatch.setattr(packing, "LEAST_EVENTS", 1)


def _asked(file: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


def _packed(file: Path) -> list[int]:
    """Return the versions whose payloads are packed; of a scavenged one the column vouches for its facts."""
    rows = _asked(file, "SELECT version FROM events WHERE packed IS NOT NULL AND checksum <> '' ORDER BY 1")
    return [version for (version,) in rows]


async def _compacted(store: SQLiteStore, count: int = 10) -> list[Event]:
    """Append blocks to a conversation and move its window behind them; return all its events as they were before."""
    await store.append("a", [block_event(f"p{n}", f"{n} {TEXT}") for n in range(1, count + 1)])
    before = [e async for e in store.read("a")]
    snapshot = Snapshot(version=count + 1, window_start=count)
    await store.append("a", [compaction(1, count - 1)], snapshot=snapshot)
    return before


@given(st.text() | st.binary().map(lambda noise: noise.decode(errors="replace")))
def test_a_packed_payload_is_the_same_payload(text: str) -> None:
    """Whatever it holds; where packing gains nothing it is left as it is."""
    body = packed(text.encode())
    assert body is None or (unpacked(body) == text and len(body) < len(text.encode()))


def test_a_payload_of_a_few_hundred_bytes_is_packed_to_less_than_half() -> None:
    """Packer and reader know beforehand what payloads look like."""
    block = ToolCall(call_id="toolu_01", name="Bash", arguments={"command": "make"}, path="tc:turn_1.toolu_01.call")
    text = event(BlockAppended(block=block, tokens=9, counter="o200k_base")).payload.model_dump_json().encode()
    body = packed(text)
    assert body is not None
    assert len(body) < len(text) / 2


def test_a_text_that_unpacks_to_more_than_a_store_holds_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few megabytes that somebody put into a row could take all memory; the checksum reports the empty text."""
    body, whole = packed(b"a" * 100_001), packed_whole("a" * 100_001)
    assert body is not None
    monkeypatch.setattr("timeline.store.packing._MOST", 100_001)
    assert len(unpacked(body)) == len(unpacked_whole(whole)) == 100_001
    monkeypatch.setattr("timeline.store.packing._MOST", 100_000)
    assert len(unpacked(body)) == len(unpacked_whole(whole)) == 0


async def test_what_a_compaction_covers_is_packed_and_reads_the_same(tmp_path: Path) -> None:
    """Events, blocks by path, searches and facts; the window itself, and the compaction, stay as they are."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        before = await _compacted(store)
        await store.append("a", events(1))  # comes behind the packing
        assert _packed(file) == list(range(1, 10))
        assert [e async for e in store.read("a", until=10)] == before
        assert await store.find("a", "p3") == before[2]
        assert await store.read_versions("a", [2, 5]) == [before[1], before[4]]
        assert [e async for e in store.read_all()][:10] == before
        assert [hit.version async for hit in store.search("3")] == [3]
    async with await SQLiteStore.open(file, readonly=True) as reader:
        assert [e async for e in reader.read("a", until=10)] == before


async def test_packing_a_database_makes_it_smaller(tmp_path: Path) -> None:
    """The pages that become free are the next appends'."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await _compacted(store, 400)
        await store.append("a", events(1))
    size = file.stat().st_size
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [block_event(text=TEXT) for _ in range(200)])
    assert file.stat().st_size <= size


async def test_an_append_of_blocks_packs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent waits for it."""
    file = tmp_path / "agent.db"
    monkeypatch.setattr(packing, "NEWEST", 5)
    async with await SQLiteStore.open(file) as store:
        for _ in range(10):
            await store.append("a", [block_event(text=TEXT)])
    assert _packed(file) == []


async def test_behind_a_hide_all_but_the_newest_events_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that hides for long, and compacts late, has a small database too."""
    file = tmp_path / "agent.db"
    monkeypatch.setattr(packing, "NEWEST", 5)
    hidden = event(BlocksHidden(reason="pressure", blocks=(Replacement(version=1, text="hidden"),)))
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [block_event(text=TEXT) for _ in range(10)])
        before = [e async for e in store.read("a")]
        await store.append("a", [hidden])
        await store.append("a", events(1))
        assert _packed(file) == list(range(1, 7))
        assert [e async for e in store.read("a", until=10)] == before


async def test_a_packing_waits_for_enough_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its slices is a transaction of its own."""
    file = tmp_path / "agent.db"
    monkeypatch.setattr(packing, "LEAST_EVENTS", 10)
    async with await SQLiteStore.open(file) as store:
        await _compacted(store)
        await store.append("a", events(1))
        assert _packed(file) == []
        await store.append("a", [compaction(1, 11, round_=2)], snapshot=Snapshot(version=13, window_start=12))
        await store.append("a", events(1))
        assert _packed(file) == list(range(1, 11))


async def test_closing_leaves_later_slices_to_the_next_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost, nothing is packed twice, and the close waits for one slice at most."""
    file = tmp_path / "agent.db"
    monkeypatch.setattr(packing, "MOST_EVENTS", 2)
    async with await SQLiteStore.open(file) as store:
        before = await _compacted(store)
    assert _packed(file)[:2] == [1, 2]
    monkeypatch.setattr(packing, "MOST_EVENTS", 1_000)
    async with await SQLiteStore.open(file) as store:
        assert [e async for e in store.read("a", until=10)] == before
        await store.append("a", [compaction(1, 10, round_=2)], snapshot=Snapshot(version=12, window_start=10))
        await store.append("a", events(1))
        assert _packed(file) == list(range(1, 10))
        assert [e async for e in store.read("a", until=10)] == before


PACK = """
import asyncio, sys
from timeline.ports import Snapshot
from timeline.store.sqlite import packing
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import compaction

packing.MOST_EVENTS, packing.LEAST_EVENTS = 3, 1

async def main():
    store = await SQLiteStore.open(sys.argv[1])
    await store.append("a", [compaction(1, 59)], snapshot=Snapshot(version=61, window_start=60))
    print("compacted", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [0.0, 0.005, 0.01, 0.02])
async def test_a_process_that_is_killed_while_it_packs_loses_nothing(tmp_path: Path, after: float) -> None:
    """Each event is read as it was, packed or not, and the next compaction packs the rest."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [block_event(f"p{n}", f"{n} {TEXT}") for n in range(1, 61)])
        before = [e async for e in store.read("a")]
    with subprocess.Popen([sys.executable, "-c", PACK, str(file)], stdout=subprocess.PIPE) as child:  # noqa: ASYNC220 - a test may wait for its child
        assert child.stdout is not None
        assert child.stdout.readline() == b"compacted\n"
        await asyncio.sleep(after)
        child.kill()
    async with await SQLiteStore.open(file, readonly=True) as reader:
        assert [e async for e in reader.read("a", until=60)] == before
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [compaction(1, 60, round_=2)], snapshot=Snapshot(version=62, window_start=61))
        await store.append("a", events(1))
        assert [e async for e in store.read("a", until=60)] == before
    assert _packed(file) == list(range(1, 61))
    assert _asked(file, "PRAGMA integrity_check") == [("ok",)]


async def test_appends_are_served_between_two_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many tasks that append while much is packed, none waits for the end of it."""
    file = tmp_path / "agent.db"
    monkeypatch.setattr(packing, "MOST_EVENTS", 1)
    async with await SQLiteStore.open(file) as store:
        before = await _compacted(store, 400)
        await asyncio.gather(*(store.append(f"c{n}", events(1)) for n in range(5)))
        assert len(_packed(file)) < 399
        assert [e async for e in store.read("a", until=400)] == before


async def test_a_payload_that_is_not_worth_it_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice, and each later packing, goes on where the one before it ended, in every conversation of the file."""
    file = tmp_path / "agent.db"
    tried: list[bytes] = []
    monkeypatch.setattr(packing, "packed", tried.append)
    monkeypatch.setattr(packing, "MOST_EVENTS", 3)
    async with await SQLiteStore.open(file) as store:
        for name in ("a", "b"):
            await store.append(name, [block_event(f"{name}{n}", f"{name}{n}") for n in range(10)])
        for name in ("a", "b"):
            await store.append(name, [compaction(1, 9)], snapshot=Snapshot(version=11, window_start=10))
            await store.append(name, [block_event(f"{name}10", f"{name}10")])
            await store.append(name, [compaction(1, 12, round_=2)], snapshot=Snapshot(version=13, window_start=13))
            await store.append(name, events(1))
    assert len(tried) == len(set(tried)) == 2 * 11


async def test_a_fork_reads_what_its_parent_packed_and_packs_its_own(tmp_path: Path) -> None:
    """Each conversation packs its own events alone."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        before = await _compacted(store)
        await store.append("b", [fork("a", 8), *(block_event(f"q{n}", TEXT) for n in range(5))])
        await store.append("b", [compaction(1, 12)], snapshot=Snapshot(version=15, window_start=13))
        await store.append("b", events(1))
        assert _packed(file) == [*range(1, 10), *range(10, 13)]
        assert [e.payload async for e in store.read("b", until=8)] == [e.payload for e in before[:8]]
        assert (await store.find("b", "p2")) == before[1]


async def test_scavenging_removes_what_is_packed(tmp_path: Path) -> None:
    """With its facts kept and its words out of the search, as of a payload that was never packed."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [*command("1", "make one"), block_event("p", f"unheard {TEXT}"), *events(2)])
        assert [hit.version async for hit in store.search("unheard")] == [3]
        await store.append("a", [compaction(1, 3)], snapshot=Snapshot(version=6, window_start=4))
        await store.append("a", events(1))
        assert _packed(file) == [1, 2, 3]
        rehearsed = await store.rehearse(["a"])
        removal = await store.remove("a")
        assert removal.events == rehearsed.removals["a"].events == 3
        assert removal.size > len(TEXT)
        assert _packed(file) == []
        assert [hit.version async for hit in store.search("unheard")] == []
        assert [fact.subject for fact in await found(store, kind="command")] == ["make one"]


async def test_facts_and_searches_that_come_later_read_what_is_packed(tmp_path: Path) -> None:
    """Calls by path and by id, and what was redacted meanwhile."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        call = ToolCall(call_id="9", name="bash", arguments={"command": "make nine"}, path="own")
        await store.append("a", [event(BlockAppended(block=call, tokens=1, counter="c"))])
        await store.append("a", [*command("1", "make one"), *command("2", "make two"), *events(1)])
        await store.append("a", [compaction(1, 5)], snapshot=Snapshot(version=7, window_start=6))
        await store.append("a", [*command("9", "other")[1:], event(BlockRedacted(version=2))])
        assert _packed(file) == [1, 2, 3, 4, 5]
        made = [(f.subject, f.version) for f in await found(store, kind="command")]
        assert made == [("make two", 5), ("make nine", 8)]
        assert [hit.version async for hit in store.search("two")] == [4]


async def test_a_store_of_the_release_before_is_packed_behind_its_next_compaction(tmp_path: Path) -> None:
    """Opening it rewrites nothing; what was compacted before is packed then, too."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        before = await _compacted(store)
    before_packing(file)
    async with await SQLiteStore.open(file) as store:
        assert _packed(file) == []
        assert [e async for e in store.read("a", until=10)] == before
        await store.append("a", [compaction(1, 10, round_=2)], snapshot=Snapshot(version=12, window_start=10))
        await store.append("a", events(1))
        assert _packed(file) == list(range(1, 10))
        assert [e async for e in store.read("a", until=10)] == before
