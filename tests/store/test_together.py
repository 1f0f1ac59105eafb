from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import examples
from timeline.errors import (
    ConversationNotFound,
    DuplicateEvent,
    HistoryUnavailable,
    InvalidBlock,
    PathTaken,
    StoreError,
    StoreFull,
    StoreLocked,
    VersionConflict,
)
from timeline.frozen import sha256_hex
from timeline.ports import Appended, Expected, Snapshot
from timeline.store.codec import encode
from timeline.store.memory import MemoryStore
from timeline.store.sqlite import writer as writing
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, compaction, events, fork
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from hypothesis.strategies import SearchStrategy

    from timeline.events import NewEvent
    from timeline.ports import EventStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    """A store in a file."""
    async with await SQLiteStore.open(tmp_path / "agent.db", busy_timeout=0.05) as store:
        yield store


async def _run(store: SQLiteStore, work: Any) -> Any:
    """Run a function on the connection that writes."""
    assert store.database.writer is not None
    return await asyncio.wrap_future(store.database.writer.submit(work))


@asynccontextmanager
async def _waiting(store: SQLiteStore) -> AsyncIterator[None]:
    """Keep the writer busy, so that what is appended meanwhile waits together."""
    assert store.database.writer is not None
    go_on = Event()
    busy = store.database.writer.submit(lambda _: go_on.wait(10))
    try:
        yield
        await asyncio.sleep(0)  # the tasks that were made here begin, and queue their appends
    finally:
        go_on.set()
    await asyncio.wrap_future(busy)


async def _together(store: SQLiteStore, *appends: Coroutine[Any, Any, Appended]) -> list[Appended | BaseException]:
    """Make appends that wait for the writer together; return what came of each."""
    async with _waiting(store):
        tasks = [asyncio.create_task(append) for append in appends]
    return await asyncio.gather(*tasks, return_exceptions=True)


async def _traced(store: SQLiteStore) -> list[str]:
    """Give a list that fills with the statements that end or divide transactions."""
    seen: list[str] = []
    words = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")

    def note(statement: str) -> None:
        if statement.startswith(words):
            seen.append(statement)

    await _run(store, lambda connection: connection.set_trace_callback(note))
    return seen


async def test_appends_that_wait_together_are_one_transaction(store: SQLiteStore) -> None:
    """Old and new conversations, values and snapshots: one commit for all, in the order in which they came."""
    await store.append("a", events(2))
    value, snapshot = {sha256_hex("text"): "text"}, Snapshot(version=5, window_start=5, blocks=(1,))
    traced = await _traced(store)
    places = await _together(
        store,
        store.append("a", [block_event("p3"), block_event("p4")], expected=2),
        store.append("b", [block_event("p1")], expected=Expected.NO_STREAM, values=value),
        store.append("a", [compaction(1, 4)], expected=Expected.STREAM_EXISTS, snapshot=snapshot),
        store.append("b", events(1)),
        store.append("a", events(3), expected=5),
    )
    assert places == [Appended(3, 4, 4), Appended(1, 1, 5), Appended(5, 5, 6), Appended(2, 2, 7), Appended(6, 8, 10)]
    await _run(store, lambda _: None)
    packed_behind = ["BEGIN IMMEDIATE", "COMMIT"]
    assert [s for s in traced if not s.endswith("batch")] == ["BEGIN IMMEDIATE", "COMMIT", *packed_behind]
    assert [(e.conversation, e.version, e.position) async for e in store.read_all(after=2)] == [
        *(("a", 3, 3), ("a", 4, 4), ("b", 1, 5), ("a", 5, 6), ("b", 2, 7)),
        *(("a", version, version + 2) for version in (6, 7, 8)),
    ]
    assert await store.values(value) == value
    window = await store.load_window("a")
    assert (window.snapshot, window.info.version, window.info.window_start) == (snapshot, 8, 5)
    assert [(await store.info(name)).updated_at for name in "ab"] == [
        [e async for e in store.read(name)][-1].at for name in "ab"
    ]


async def test_conversations_that_are_opened_together_are_listed_in_the_order_in_which_they_came(
    store: SQLiteStore,
) -> None:
    """Not by their names or times: as if each had been opened alone."""
    opened = ["b", "a", "c", "b", "d"]
    await _together(store, *(store.append(name, events(1)) for name in opened))
    assert [info.id async for info in store.conversations()] == ["b", "a", "c", "d"]


async def test_an_append_that_comes_alone_has_a_plain_transaction(store: SQLiteStore) -> None:
    """Nothing but begin and commit: waiting together is never paid for by those who do not."""
    traced = await _traced(store)
    await store.append("a", events(2))
    assert traced == ["BEGIN IMMEDIATE", "COMMIT"]


async def test_of_appends_together_each_is_refused_for_itself(store: SQLiteStore) -> None:
    """Every kind of refusal, among appends that are written; what was refused leaves nothing behind."""
    known = [block_event("p1"), block_event("p2")]
    await store.append("a", known)
    changed = known[0].model_copy(update={"payload": block_event(text="changed").payload})
    lost = {sha256_hex("lost"): "lost"}
    traced = await _traced(store)
    outcomes = await _together(
        store,
        store.append("a", [block_event("p3")]),
        store.append("a", events(1), expected=2, values=lost),
        store.append("a", [block_event("p4"), block_event("p1")], values=lost),
        store.append("a", [block_event("p4")]),
        store.append("a", [block_event("p3")], values=lost, snapshot=Snapshot(version=9, window_start=9)),
        store.append("a", [changed, known[1]]),
        store.append("a", known),
        store.append("b", [fork("nobody", 1)]),
        store.append("c", [fork("a", 99)]),
        store.append("d", [fork("a", 4), block_event("p5")]),
        store.append("d", [block_event("p3")]),
        store.append("a", [block_event("p5")], expected=4),
        store.append("", events(1)),
    )
    written = [(3, 3), (4, 4), (1, 2), (5, 6), (5, 5)]
    assert [(o.first_version, o.version) for o in outcomes if isinstance(o, Appended)] == written
    assert [type(o) for o in outcomes if isinstance(o, Exception)] == [
        *(VersionConflict, PathTaken, PathTaken, DuplicateEvent, ConversationNotFound, HistoryUnavailable, PathTaken),
        InvalidBlock,
    ]
    assert [s for s in traced if not s.endswith("batch")] == ["BEGIN IMMEDIATE", "COMMIT"]
    assert [(info.id, info.version) async for info in store.conversations()] == [("a", 5), ("d", 6)]
    assert await store.values(lost) == {}
    assert (await store.load_window("a")).snapshot is None


NAMES = st.sampled_from(["a", "b", "c"])
EXPECTED: SearchStrategy[int | Expected] = st.sampled_from([Expected.ANY, *Expected]) | st.integers(0, 6)
PATHS = st.sampled_from(["", "", "p", "q", "r"])
APPENDS = st.lists(st.tuples(NAMES, EXPECTED, st.lists(st.integers(0, 11), min_size=1, max_size=3, unique=True)))


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(PATHS, min_size=12, max_size=12), APPENDS, st.lists(st.booleans(), min_size=12, max_size=12))
def test_appends_together_come_out_as_one_after_another(
    paths: list[str], appends: list[tuple[str, int | Expected, list[int]]], forks: list[bool]
) -> None:
    """Whatever waits together, also the same events again: each outcome, and every event, is as the memory store's."""
    made = [fork("a", 1) if n % 6 == 5 and forks[n] else block_event(path) for n, path in enumerate(paths)]

    def calls(store: EventStore) -> list[Coroutine[Any, Any, Appended]]:
        return [store.append(name, [made[n] for n in which], expected=e) for name, e, which in appends]

    async def play() -> None:
        with TemporaryDirectory() as folder:
            async with await SQLiteStore.open(Path(folder) / "agent.db", durability="normal") as store:
                model = MemoryStore()
                one_by_one = [
                    _named(o) for call in calls(model) for o in await asyncio.gather(call, return_exceptions=True)
                ]
                assert [_named(o) for o in await _together(store, *calls(store))] == one_by_one
                assert [e async for e in store.read_all()] == [e async for e in model.read_all()]
                assert [i async for i in store.conversations()] == [i async for i in model.conversations()]

    asyncio.run(play())


def _named(outcome: Appended | BaseException) -> object:
    return outcome if isinstance(outcome, Appended) else (type(outcome), str(outcome))


async def test_when_the_commit_fails_all_of_them_fail_and_nothing_is_stored(store: SQLiteStore) -> None:
    """One error for all: also for whoever was refused by what was never committed."""
    await store.append("a", events(2))

    def break_commits(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE u (x REFERENCES conversations (key) DEFERRABLE INITIALLY DEFERRED)")
        connection.execute("CREATE TRIGGER t AFTER INSERT ON events BEGIN INSERT INTO u VALUES (-1); END")

    await _run(store, break_commits)
    appends = [store.append("a", events(1), expected=2), store.append("a", events(1), expected=2)]
    outcomes = await _together(store, *appends, store.append("b", events(1)))
    assert [type(outcome) for outcome in outcomes] == [StoreError] * 3
    assert all("FOREIGN KEY constraint failed" in str(outcome) for outcome in outcomes)
    with pytest.raises(StoreError, match="FOREIGN KEY constraint failed"):
        await store.append("a", events(1))
    await _run(store, lambda connection: connection.execute("DROP TRIGGER t"))
    assert [(info.id, info.version) async for info in store.conversations()] == [("a", 2)]
    assert (await store.append("a", events(1), expected=2)).version == 3


async def test_appends_together_that_meet_a_lock_are_all_told(store: SQLiteStore, tmp_path: Path) -> None:
    """The busy timeout is waited for once, and the error is each caller's; afterwards all is well."""
    await store.append("a", events(1))
    other = sqlite3.connect(tmp_path / "agent.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    outcomes = await _together(store, *(store.append("a", events(1)) for _ in range(5)))
    assert [type(outcome) for outcome in outcomes] == [StoreLocked] * 5
    other.close()
    assert (await store.append("a", events(1), expected=1)).version == 2


async def test_an_append_that_the_disk_has_no_room_for_fails_alone(store: SQLiteStore) -> None:
    """The others that waited with it are written, each in a transaction of its own."""
    await store.append("a", events(3))

    def limit(connection: sqlite3.Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 3}")

    await _run(store, limit)
    outcomes = await _together(
        store,
        store.append("a", events(1), expected=3),
        store.append("a", events(200, text="x" * 2_000)),
        store.append("a", events(1), expected=4),
    )
    assert [type(outcome) for outcome in outcomes] == [Appended, StoreFull, Appended]
    assert await versions(store, "a") == [1, 2, 3, 4, 5]


async def test_one_that_is_cancelled_while_it_waits_is_left_out(store: SQLiteStore) -> None:
    """What waits with it is written; its ids are free."""
    written = [events(1) for _ in range(3)]
    async with _waiting(store):
        tasks = [asyncio.create_task(store.append("a", each)) for each in written]
        await asyncio.sleep(0)
        tasks[1].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Appended, asyncio.CancelledError, Appended]
    assert await store.known_ids("a", [e.id for each in written for e in each]) == {written[0][0].id, written[2][0].id}
    assert (await store.append("a", written[1], expected=2)).repeated is False


async def test_one_that_is_cancelled_while_it_is_written_is_written(store: SQLiteStore) -> None:
    """Once the transaction has begun, nothing is taken out of it; the caller's cancellation is the caller's alone."""
    begun, go_on = Event(), Event()

    def stop() -> bool:
        begun.set()
        return go_on.wait(10)

    def stop_in_the_middle(connection: sqlite3.Connection) -> None:
        connection.create_function("stop", 0, stop)
        connection.execute("CREATE TEMP TRIGGER t AFTER INSERT ON events BEGIN SELECT stop(); END")

    await _run(store, stop_in_the_middle)
    async with _waiting(store):
        tasks = [asyncio.create_task(store.append("a", events(1))) for _ in range(3)]
    await asyncio.to_thread(begun.wait, 10)
    tasks[1].cancel()
    await asyncio.sleep(0)
    go_on.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Appended, asyncio.CancelledError, Appended]
    assert await versions(store, "a") == [1, 2, 3]


@pytest.mark.parametrize(
    ("count", "text", "groups"),
    [(3 * writing.MOST_TOGETHER - 1, "x", 3), (8, "x" * (writing.MOST_CHARACTERS // 2), 4)],
)
async def test_no_append_waits_for_more_than_a_few_others(
    store: SQLiteStore, count: int, text: str, groups: int
) -> None:
    """Those who wait are committed in groups of a bounded number and size."""
    await store.append("a", events(1))
    traced = await _traced(store)
    outcomes = await _together(store, *(store.append("a", events(1, text=text)) for _ in range(count)))
    assert [outcome.version for outcome in outcomes if isinstance(outcome, Appended)] == list(range(2, count + 2))
    assert traced.count("COMMIT") == groups


async def test_a_function_stands_between_the_appends_around_it(store: SQLiteStore) -> None:
    """It has its own transaction, sees what was appended before it, and nothing of what comes after."""
    await store.append("a", events(1))
    traced = await _traced(store)
    assert store.database.writer is not None
    async with _waiting(store):
        before = [asyncio.create_task(store.append("a", events(1))) for _ in range(2)]
        await asyncio.sleep(0)
        counted = store.database.writer.submit(lambda c: c.execute("SELECT count(*) FROM events").fetchone())
        after = [asyncio.create_task(store.append("a", events(1))) for _ in range(2)]
    await asyncio.gather(*before, *after)
    assert await asyncio.wrap_future(counted) == (3,)
    assert traced.count("COMMIT") == 2


async def test_closing_writes_all_who_wait(tmp_path: Path) -> None:
    """Appends that wait together when the store is closed are written and answered."""
    store = await SQLiteStore.open(tmp_path / "agent.db")
    made: list[list[NewEvent]] = [events(1) for _ in range(10)]
    async with _waiting(store):
        tasks = [asyncio.create_task(store.append("a", each)) for each in made]
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.aclose())
    assert [appended.version for appended in await asyncio.gather(*tasks)] == list(range(1, 11))
    await closing


def test_an_append_whose_loop_is_gone_is_written_and_harms_nobody(tmp_path: Path) -> None:
    """The loop ends before the answer: there is nobody left to answer, and the next loop goes on."""
    go_on = Event()

    async def leave() -> SQLiteStore:
        store = await SQLiteStore.open(tmp_path / "agent.db")
        assert store.database.writer is not None
        store.database.writer.submit(lambda _: go_on.wait(10))
        store.database.writer.append(encode("a", events(1), Expected.ANY, {}, None))
        return store

    async def go_on_elsewhere() -> int:
        async with await SQLiteStore.open(tmp_path / "agent.db") as store:
            return (await store.append("a", events(1))).version

    store = asyncio.run(leave())
    writer = store.database.writer
    assert writer is not None
    go_on.set()
    with pytest.warns(ResourceWarning):
        del store
    writer.stopped.result(10)
    assert asyncio.run(go_on_elsewhere()) == 2
