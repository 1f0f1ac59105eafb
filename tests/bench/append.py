"""`SQLiteStore.append` against plain `sqlite3`: same tables, same durability, rows that are encoded already."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.bench.rows import against, cpu
from timeline.blocks import ToolResult
from timeline.events import BlockAppended, NewEvent, event_id
from timeline.ports import Expected
from timeline.store.codec import encode
from timeline.store.sqlite import statements
from timeline.store.sqlite.files import connect_writer
from timeline.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from tests.bench.rows import Row

EVENTS = 100
APPENDS = 10
BAR = 0.5
TEXT = "".join(f'{n:3} |     def line_{n}(self) -> str:  # "quoted"\n' for n in range(22))
START = datetime(2026, 1, 1, tzinfo=UTC)


def rows() -> Iterator[Row]:
    """Measure the speed of an append of 100 counted events of about 1 KB, as a share of plain `sqlite3`'s."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        store = runner.run(SQLiteStore.open(Path(folder) / "ours.db"))
        connection = connect_writer(Path(folder) / "plain.db", "full", 5.0).connection
        connection.execute("PRAGMA wal_autocheckpoint = 1000")  # as plain sqlite3 has it; our writer checkpoints itself
        numbers = count(1)
        ours, plain = partial(_ours, runner, store, numbers), partial(_plain, connection, numbers)
        what = "`EventStore.append` of 100, speed"
        yield against("Appends", what, "`sqlite3`: same tables, encoded rows", (ours, plain), BAR, least=True)
        connection.close()
        runner.run(store.aclose())


def _ours(runner: asyncio.Runner, store: SQLiteStore, numbers: Iterator[int]) -> float:
    batches = _batches(numbers)

    async def append_all() -> None:
        for batch in batches:
            await store.append("bench", batch)

    return cpu(lambda: runner.run(append_all()))


def _plain(connection: sqlite3.Connection, numbers: Iterator[int]) -> float:
    key, version, *_ = connection.execute(statements.HEAD, ("bench",)).fetchone() or (None, 0)
    if key is None:
        key = connection.execute(statements.INSERT_CONVERSATION, ("bench", 0, "", None, "", "", None, 0)).lastrowid
    encoded = []
    for batch in _batches(numbers):
        drafts = encode("bench", batch, Expected.ANY, {}, None).drafts
        encoded.append([(key, version + n, *d, d.checksum("bench", version + n)) for n, d in enumerate(drafts, 1)])
        version += len(drafts)

    def insert_all() -> None:
        for rows in encoded:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(statements.INSERT_EVENTS[1], rows)
            connection.execute("COMMIT")

    taken = cpu(insert_all)
    connection.execute(statements.UPDATE_CONVERSATION, (version, "", key))
    return taken


def _batches(numbers: Iterator[int]) -> list[list[NewEvent]]:
    return [[event(next(numbers)) for _ in range(EVENTS)] for _ in range(APPENDS)]


def event(number: int, text: str = TEXT) -> NewEvent:
    """Make the event of a tool's result."""
    at = START + timedelta(milliseconds=137 * number)
    call = f"toolu_{number:020}"
    block = ToolResult(
        call_id=call,
        name="Read",
        text=text,
        path=f"tc:turn_1.{call}.result",
        turn_id="turn_1",
        at=at,
        response_id="r_1",
    )
    return NewEvent(id=event_id(at), at=at, payload=BlockAppended(block=block, tokens=300, counter="o200k_base"))
