from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import examples
from timeline import open_store
from timeline.errors import InvalidArgument, InvalidFilter, SearchUnavailable, StoreClosed, StoreCorrupt
from timeline.events import BlockRedacted, appended_block
from timeline.ports import Rewriting
from timeline.store.memory import MemoryStore
from timeline.store.search import scanning
from timeline.store.sqlite import query_statements
from timeline.store.sqlite import search as indexing
from timeline.store.sqlite.connection import know_packed
from timeline.store.sqlite.search import FORM
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, compaction, event, events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from timeline.events import NewEvent
    from timeline.ports import EventStore
    from timeline.queries import Found


async def _found(store: EventStore, text: str, **filters: Any) -> list[Found]:
    return [found async for found in store.search(text, **filters)]


async def _paths(store: EventStore, text: str, **filters: Any) -> list[str]:
    return [found.path for found in await _found(store, text, **filters)]


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_a_single_text_for_a_list_of_types_is_refused(tmp_path: Path, kind: str) -> None:
    """A file looked for its letters and found nothing; in memory it was a text that the type is a part of."""
    async with open_store("memory://" if kind == "memory" else str(tmp_path / "agent.db")) as store:
        await store.append("c", [block_event("login")])
        with pytest.raises(InvalidFilter, match=r"types.*put a single one into brackets"):
            await _found(store, "login", types="user.prompt")
        for read in (store.read("c", types="block.appended"), store.read_all(types="block.appended")):
            with pytest.raises(InvalidArgument, match=r"types.*put a single one into brackets"):
                await anext(aiter(read))


@contextmanager
def _unwritable(folder: Path) -> Iterator[None]:
    """Take away the right to write to a folder and the files in it."""
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield
    folder.chmod(0o755)


def _asked(file: Path, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(statement, parameters).fetchall()


WORDS = st.sampled_from(["error", "Error", "main.py", "getUserName", "user", "会话", "ünï", "AND", "\u0130", "x" * 70])
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
QUERIES = st.lists(
    WORDS | st.sampled_from(['"', "*", "OR", "user*", '"user name"', "\ud800", "-", "(", "UserName"]),
    min_size=1,
    max_size=4,
).map(" ".join)


@settings(max_examples=examples(40), deadline=None)
@given(
    texts=st.lists(st.tuples(st.sampled_from("ab"), TEXTS), min_size=1, max_size=8),
    redacted=st.lists(st.integers(1, 9), max_size=3),
    queries=st.lists(QUERIES, min_size=2, max_size=6),
    conversation=st.sampled_from(["a", None]),
    indexed=st.integers(0, 8),
)
def test_a_database_finds_what_memory_finds(
    texts: list[tuple[str, str]], redacted: list[int], queries: list[str], conversation: str | None, indexed: int
) -> None:
    """The same blocks with the same snippets, ranks and order, wherever the first search falls between the appends."""
    appends = [("a", block_event("first", "error"))]
    appends += [(name, block_event(f"p{n}", text)) for n, (name, text) in enumerate(texts)]
    appends += [("a", event(BlockRedacted(version=version))) for version in redacted]

    async def answers(store: EventStore) -> list[Any]:
        for number, (name, written) in enumerate(appends):
            await store.append(name, [written])
            if number == indexed:
                await _found(store, "error")
        return [await _answer(store, query, conversation) for query in queries]

    async def both() -> None:
        with TemporaryDirectory() as folder:
            async with await SQLiteStore.open(Path(folder) / "agent.db", durability="normal") as stored:
                assert await answers(stored) == await answers(MemoryStore())

    asyncio.run(both())


async def _answer(store: EventStore, query: str, conversation: str | None) -> Any:
    try:
        found = await _found(store, query, conversation=conversation)
    except InvalidFilter as refused:
        return str(refused)
    return [(hit.path, hit.snippet, pytest.approx(hit.rank)) for hit in found]


async def test_appends_leave_the_index_to_searches(tmp_path: Path) -> None:
    """A database that is never searched has no index at all, and an append after a search does not touch it."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(3))
        assert _asked(file, "SELECT name FROM sqlite_schema WHERE name LIKE 'search_index%'") == []
        assert len(await _found(store, "hello")) == 3
        await store.append("a", events(2))
        assert _asked(file, query_statements.PROGRESS, FORM) == [(3,)]
        assert len(await _found(store, "hello")) == 5
        assert _asked(file, query_statements.PROGRESS, FORM) == [(5,)]


async def test_what_another_connection_appended_is_found(tmp_path: Path) -> None:
    """Two stores on one file index for each other, whoever searches first."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as one, await SQLiteStore.open(file) as two:
        await one.append("a", [block_event("p", "word one")])
        assert await _paths(two, "word") == ["p"]
        await two.append("b", [block_event("q", "word two")])
        await one.append("a", [block_event("r", "word three")])
        results = await asyncio.gather(*(_paths(store, "word") for store in (one, two, one, two)))
        assert results == [["r", "q", "p"]] * 4


async def test_the_index_is_made_in_slices_between_which_appends_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long catch-up is many short transactions; a search that is left in the middle loses nothing."""
    monkeypatch.setattr(indexing, "SLICE", 200)
    async with await SQLiteStore.open(tmp_path / "agent.db", durability="normal") as store:
        await store.append("a", [block_event(f"p{n}", f"word {n}") for n in range(60)])
        search = asyncio.create_task(_paths(store, "word", page=7))
        await asyncio.sleep(0.01)
        await store.append("b", [block_event("late", "another")])
        search.cancel()
        await asyncio.gather(search, return_exceptions=True)
        assert len(await _paths(store, "word")) == 60
        assert await _paths(store, "another") == ["late"]


async def test_appends_do_not_wait_until_the_index_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database's first search indexes on a connection of its own, and the writer goes on between two slices."""
    monkeypatch.setattr(indexing, "SLICE", 2_000)
    async with await SQLiteStore.open(tmp_path / "agent.db", durability="normal") as store:
        await store.append("a", [block_event(f"p{n}", f"word {n} " * 20) for n in range(3_000)])
        search = asyncio.create_task(_paths(store, "word"))
        await asyncio.sleep(0.05)
        for number in range(10):
            await store.append("b", [block_event(f"q{number}", "another")])
            assert not search.done()
        assert len(await search) == 1_000
        assert len(await _paths(store, "another")) == 10


async def test_a_store_is_closed_while_its_index_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search that waited is refused, no connection is left, and the next search goes on."""
    monkeypatch.setattr(indexing, "SLICE", 2_000)
    monkeypatch.chdir(tmp_path)
    store = await SQLiteStore.open(Path("agent.db"), durability="normal")
    monkeypatch.chdir(tmp_path.parent)  # the file is the one that was opened
    await store.append("a", [block_event(f"p{n}", f"word {n} " * 20) for n in range(3_000)])
    search = asyncio.create_task(_paths(store, "word"))
    await asyncio.sleep(0.05)
    await store.aclose()
    with pytest.raises(StoreClosed):
        await search
    assert os.listdir(tmp_path) == ["agent.db"]  # noqa: PTH208 - in an async function
    async with await SQLiteStore.open(tmp_path / "agent.db") as again:
        assert len(await _paths(again, "word")) == 1_000


@pytest.mark.parametrize("change", ["redacted", "erased", "indexed"])
async def test_what_changes_while_texts_are_cut_is_not_indexed_as_it_was(tmp_path: Path, change: str) -> None:
    """A slice that was read before a redaction, an erasure or another search is thrown away."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [block_event(f"p{n}", f"secret {n}") for n in range(4)])
        with closing(sqlite3.connect(file, isolation_level=None)) as beside:
            know_packed(beside)
            cut = indexing.cut_slice(beside, 4)
            match change:
                case "redacted":
                    tombstone = block_event("p2", "nothing").payload
                    await store.rewrite([Rewriting("a", 4, [], {3: tombstone}, (3,), lambda snapshot: snapshot)])
                case "erased":
                    await store.erase("a")
                case _:
                    assert len(await _paths(store, "secret")) == 4
            before = _asked(file, query_statements.PROGRESS, FORM)
            assert indexing.enter_slice(beside, cut) == (before[0][0] if before else 0)
            assert _asked(file, query_statements.PROGRESS, FORM) == before
        assert len(await _paths(store, "secret")) == {"redacted": 3, "erased": 0, "indexed": 4}[change]


async def test_long_runs_of_events_without_text_are_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice ends after so many events too, and goes on behind them."""
    monkeypatch.setattr(indexing, "MOST_EVENTS", 3)
    async with await SQLiteStore.open(tmp_path / "agent.db", durability="normal") as store:
        await store.append("a", [block_event("p", "word"), *(event(BlockRedacted(version=99)) for _ in range(10))])
        await store.append("a", [block_event("q", "word")])
        assert await _paths(store, "word") == ["q", "p"]


@pytest.mark.parametrize("indexed", [0, 1, 4])
async def test_a_store_that_may_not_write_scans_what_the_index_lacks(
    tmp_path: Path, indexed: int, unprivileged: Callable[[Path], AbstractContextManager[None]]
) -> None:
    """Read-only by choice or by permission, with an index that is missing, behind or complete: all is found."""
    file = tmp_path / "agent.db"
    written: list[NewEvent] = [block_event("p", "word"), block_event("gone", "word"), event(BlockRedacted(version=2))]
    async with await SQLiteStore.open(file) as store:
        for number, each in enumerate([*written, block_event("q", "word word")], 1):
            await store.append("a", [each])
            if number == indexed:
                await _found(store, "word")
    async with await SQLiteStore.open(file, readonly=True) as store:
        assert sorted(await _paths(store, "word")) == ["p", "q"]
        assert await _paths(store, "word", conversation="a", types=["user.prompt"], page=1) == await _paths(
            store, "word"
        )
        assert await _paths(store, "other") == []
    with _unwritable(tmp_path), unprivileged(tmp_path):
        async with await SQLiteStore.open(file) as store:
            assert sorted(await _paths(store, "word")) == ["p", "q"]


async def test_a_search_waits_for_no_other_writer_for_ever(tmp_path: Path) -> None:
    """While another process holds the write lock, what the index lacks is scanned."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file, busy_timeout=0.05) as store:
        await store.append("a", [block_event("p", "word")])
        await _found(store, "word")
        await store.append("a", [block_event("q", "word")])
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert sorted(await _paths(store, "word")) == ["p", "q"]
            other.execute("ROLLBACK")


async def test_the_words_of_what_was_redacted_leave_the_index(tmp_path: Path) -> None:
    """Not only the hit is hidden: no word of the block is left in the file's index."""
    file = tmp_path / "agent.db"
    vocabulary = "CREATE VIRTUAL TABLE temp.v USING fts5vocab (main, search_index, 'row')"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [block_event("p", "password hunter2"), block_event("q", "harmless")])
        await _found(store, "harmless")
        await store.append("a", [event(BlockRedacted(version=1))])
        await _found(store, "harmless")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(vocabulary)
        terms = {term for (term,) in connection.execute("SELECT term FROM v")}
        connection.execute("INSERT INTO search_index (search_index) VALUES ('integrity-check')")
    assert "harmless" in terms
    assert not terms & {"password", "hunter2"}


async def test_an_index_of_another_form_is_made_anew(tmp_path: Path) -> None:
    """When the rules of cutting change, the next search starts from the beginning of the log."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [block_event("p", "word")])
        await _found(store, "word")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE search_progress SET form = ?", (FORM + 1,))
    async with await SQLiteStore.open(file, readonly=True) as store:
        assert await _paths(store, "word") == ["p"]
    async with await SQLiteStore.open(file) as store:
        assert await _paths(store, "word") == ["p"]
    assert _asked(file, "SELECT form, position FROM search_progress") == [(FORM, 1)]


async def test_without_fts5_the_error_names_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a search needs it: the store opens, appends and answers all else."""
    missing = query_statements.CREATE_INDEX.replace("USING fts5", "USING fts5_that_is_not_there")
    monkeypatch.setattr(query_statements, "CREATE_INDEX", missing)
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await store.append("a", [*events(2), compaction(1, 2)])
        with pytest.raises(SearchUnavailable, match="Use a Python whose SQLite has it"):
            await _found(store, "hello")
        assert [digest.version async for digest in store.digests()] == [3]
        assert (await store.append("a", events(1))).version == 4


async def test_a_damaged_event_is_named_when_it_is_found_and_stops_no_other(tmp_path: Path) -> None:
    """Text that was changed in the file is not shown as found; what is no JSON is not searched."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [block_event("p", "word one"), block_event("q", "word two"), block_event("r", "three")])
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE events SET payload = replace(payload, 'one', 'lie') WHERE version = 1")
        connection.execute("UPDATE events SET payload = 'word' WHERE version = 2")
    async with await SQLiteStore.open(file) as store:
        assert await _paths(store, "three") == ["r"]
        with pytest.raises(StoreCorrupt, match="event 1 of conversation 'a'"):
            await _found(store, "word")


async def test_a_search_gives_at_most_a_thousand_blocks(tmp_path: Path) -> None:
    """The best thousand; with an index and without one."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file, durability="normal") as store:
        await store.append("a", [block_event(f"p{n}", "word") for n in range(1_100)])
        found = await _paths(store, "word", page=400)
        assert found == [f"p{n}" for n in range(1_099, 99, -1)]
        memory = MemoryStore()
        await memory.append("a", [block_event(f"p{n}", "word") for n in range(1_100)])
        assert await _paths(memory, "word") == found


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_search_knows_the_beginning_of_a_long_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """With an index and without one; the whole block is read as ever."""
    monkeypatch.setattr(scanning, "MOST_CHARACTERS", 100)
    async with open_store("memory://" if kind == "memory" else tmp_path / "agent.db") as store:
        await store.append("c", [block_event("p1", "first " + "word " * 30 + "last")])
        assert await _paths(store, "first") == ["p1"]
        assert await _paths(store, "last") == []
        found = await store.find("c", "p1")
        assert found is not None
        block = appended_block(found.payload)
        assert block is not None
        assert block.text.endswith("last")
