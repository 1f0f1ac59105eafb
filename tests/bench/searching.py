"""Benchmarks of search: the first one of a database, which makes its index, against plain FTS5 over the same texts."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.bench.kinds import START, appended
from tests.bench.logs import recorded_text, sized_blocks
from tests.bench.rows import against, cpu
from timeline.store.search.scanning import text_of
from timeline.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row

BLOCKS: Final = 48_000
TOGETHER: Final = 2_000
ASKED: Final = "scheduler timeout"


def rows() -> Iterator[Row]:
    """Measure all rows here."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        file = Path(folder) / "bench.db"
        runner.run(_written(file, BLOCKS))
        first, plain = partial(_first, runner, file), partial(_plain, _texts(file), Path(folder), count())
        what, limit = f"first search over {BLOCKS:,} blocks", "plain FTS5 of the same texts"
        yield against("Search", what, limit, (first, plain), 4.0, most=15)


def _first(runner: asyncio.Runner, file: Path) -> float:
    """Search a database whose index was dropped."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("DROP TABLE IF EXISTS search_index")
        connection.execute("DELETE FROM search_progress")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    async def search(store: SQLiteStore) -> None:
        _ = [found async for found in store.search(ASKED)]

    store = runner.run(SQLiteStore.open(file, durability="normal"))
    taken = cpu(lambda: runner.run(search(store)))
    runner.run(store.aclose())
    return taken


def _plain(texts: list[str], folder: Path, numbers: Iterator[int]) -> float:
    """Index the texts in a database of its own, in one transaction, and search."""

    def index() -> None:
        with closing(sqlite3.connect(folder / f"plain {next(numbers)}.db", isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("CREATE VIRTUAL TABLE found USING fts5 (text, content = '', tokenize = 'ascii')")
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO found (rowid, text) VALUES (?, ?)", enumerate(texts, 1))
            connection.execute("COMMIT")
            connection.execute("SELECT rowid FROM found (?) ORDER BY rank LIMIT 1000", (ASKED,)).fetchall()

    return cpu(index)


async def _written(file: Path, blocks: int) -> None:
    text = recorded_text(400_000)
    async with await SQLiteStore.open(file, durability="normal") as store:
        for first in range(0, blocks, TOGETHER):
            made = sized_blocks(min(TOGETHER, blocks - first), first=first, text=text)
            placed = [
                block.model_copy(update={"path": f"b:{first + n}", "turn_id": "turn_1", "at": START})
                for n, block in enumerate(made)
            ]
            await store.append(f"bench {first // 16_000}", [appended(block, 300) for block in placed])


def _texts(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        payloads = connection.execute("SELECT payload FROM events ORDER BY position").fetchall()
    return [found.text for (payload,) in payloads if (found := text_of(payload)) is not None]
