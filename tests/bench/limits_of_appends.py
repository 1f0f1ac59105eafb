"""Benchmarks of an append of 100 on a memory file system: against raw `sqlite3` with one index, and with counting."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.bench.kinds import APPENDS, EVENTS, Maker, results
from tests.bench.kinds import appended as kinds_event
from tests.bench.logs import START, recorded_text, sized_blocks
from tests.bench.rows import MOST_PAIRS, against, cpu
from timeline import policies
from timeline.ports import Expected
from timeline.store.codec import encode
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline
from timeline.tokens import get_counter
from timeline.tokens.counter import load_encoding
from timeline.tokens.vocabulary import VOCABULARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row
    from timeline.events import NewEvent

MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a file system in memory, where there is one
STORED: Final = 5.0
COUNTING: Final = 1.3
_NUMBERS: Final = count()


def rows() -> Iterator[Row]:
    """Measure all rows here."""
    where = MEMORY if MEMORY.is_dir() else None
    with TemporaryDirectory(dir=where) as folder, asyncio.Runner() as runner:
        store = runner.run(SQLiteStore.open(Path(folder) / "ours.db"))
        with closing(_raw(Path(folder) / "raw.db")) as connection:
            yield _stored(runner, store, connection)
            yield _counted(runner, store, connection)
        runner.run(store.aclose())


def _stored(runner: asyncio.Runner, store: SQLiteStore, connection: sqlite3.Connection) -> Row:
    maker = Maker()

    def ours() -> float:
        appends = [results(maker)[1] for _ in range(APPENDS)]

        async def append_all() -> None:
            for events in appends:
                await store.append("bench", events)

        return cpu(lambda: runner.run(append_all()))

    def raw() -> float:
        return _inserted(connection, [results(maker)[1] for _ in range(APPENDS)])

    what = "`EventStore.append` of 100, on a file system in memory"
    return against("Appends", what, "raw `sqlite3` with one index", (ours, raw), STORED)


def _counted(runner: asyncio.Runner, store: SQLiteStore, connection: sqlite3.Connection) -> Row:
    tiktoken = load_encoding("o200k_base", pattern=VOCABULARIES["o200k_base"].pattern)
    counter = get_counter("o200k_base")
    policy = policies.cut_point(max_tokens=10_000_000)
    timeline = runner.run(Timeline.open(store, "counted", policy=policy, counter=counter, now=START))
    text = recorded_text(400_000)
    made = [sized_blocks(EVENTS, first=EVENTS * n, text=text) for n in range(MOST_PAIRS + 1)]
    appended, counted = iter(made), iter(made)

    def ours() -> float:
        blocks = next(appended)

        async def append() -> None:
            await timeline.append(*blocks, now=START)

        return cpu(lambda: runner.run(append()))

    def allowed() -> float:
        blocks = next(counted)
        texts = [block.countable() for block in blocks]
        alone = cpu(lambda: [tiktoken.encode(each) for each in texts])
        placed = [block.placed(turn_id="turn_1", path=f"b:{next(_NUMBERS)}", at=START) for block in blocks]
        return STORED * _inserted(connection, [[kinds_event(block, 300) for block in placed]]) + COUNTING * alone

    what = "`Timeline.append` of 100 counted blocks, on a file system in memory"
    limit = f"{STORED:g} times raw `sqlite3` and {COUNTING:g} times tiktoken alone"
    return against("Appends", what, limit, (ours, allowed), 1.0)


def _inserted(connection: sqlite3.Connection, appends: list[list[NewEvent]]) -> float:
    """Insert the events of appends, encoded already, with nothing else that the store keeps of them."""
    batches = [encode("raw", events, Expected.ANY, {}, None).drafts for events in appends]
    rows = [[(next(_NUMBERS), draft.event_id, draft.payload) for draft in batch] for batch in batches]

    def insert_all() -> None:
        for batch in rows:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO events VALUES (?, ?, ?)", batch)
            connection.execute("COMMIT")

    return cpu(insert_all)


def _raw(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE events (version INTEGER, event_id TEXT, payload TEXT)")
    connection.execute("CREATE UNIQUE INDEX by_id ON events (event_id)")
    return connection
