"""Appends to PostgreSQL, on a server that waits for its disk: what grouping gives, what plain asyncpg takes."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from tests.bench.rows import Row, against
from tests.bench.together import syncs
from tests.bench.tool_results import TEXT as LONG
from tests.bench.tool_results import event
from tests.postgres import without
from tests.postgres_server import Server, new_folder
from timeline.events.chain import START
from timeline.ports import Expected
from timeline.store.codec import encode
from timeline.store.postgres import statements
from timeline.store.postgres.appending import AppendGroup
from timeline.store.postgres.escaping import key_of
from timeline.store.postgres.log_head import Head
from timeline.store.postgres.store import PostgresStore
from timeline.store.sealing import seal
from timeline.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from tests.bench.rows import Timed
    from timeline.events import NewEvent
    from timeline.ports import EventStore

    Connection = asyncpg.Connection[asyncpg.Record]

PART: Final = "PostgreSQL"
TASKS: Final = 64
ROUNDS: Final = 40
"""Appends of each of the tasks in one measurement: enough that the first and the last group do not decide it."""
ALONE: Final = 64
"""Appends of one task in one measurement."""
MANY: Final = 100
TEXT: Final = "What a tool said, or a model: a line or two of it. " * 4
"""Of single events; those of a larger append have about 1 KB, as in the row of SQLite."""
SLOW_DISK: Final = 300
"""Syncs a second below which the disk decides, and neither a file nor rows without hashes are faster."""
PAIRS: Final = 61
WINDOW: Final = 1_000
PLAIN: Final = """
WITH moved AS (UPDATE conversations SET version = $1, updated_at = $2, head = $3 WHERE key = $4)
INSERT INTO events (conversation, version, position, event_id, type, schema_version, at, path, turn_id, tokens, payload,
    checksum, salt, link)
SELECT * FROM unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::uuid[], $9::text[], $10::bigint[], $11::text[],
    $12::text[], $13::text[], $14::bigint[], $15::text[], $16::text[], $17::bytea[], $18::bytea[])
"""
"""The least that writes the same into the same tables: one statement, without a look at what is there."""
PLAINLY: Final = "`asyncpg`: `unnest`, encoded rows"
ENCODING: Final = "`asyncpg`: `unnest`, each payload written by `json.dumps` and hashed once before"
_PAYLOADS, _CHECKSUMS = 14, 15
"""Places of two columns among the parameters of `PLAIN`."""
_NUMBERS: Final = count(1)


def rows() -> Iterator[Row]:
    """Measure appends together, alone and in bulk, a window's load, and what it costs to wake others."""
    with lasting_server() as server, TemporaryDirectory() as folder, asyncio.Runner() as runner:
        run = runner.run
        url = server.url(schema="bench")
        store = run(PostgresStore.open(url))
        file = run(SQLiteStore.open(Path(folder) / "bench.db"))
        plain = run(asyncpg.connect(without(url, "schema"), server_settings={"search_path": "bench"}))
        raw = _Raw(plain)
        together = partial(_wall, run, partial(_append, store, TASKS, ROUNDS))
        one = partial(_wall, run, partial(_append, store, 1, ALONE))

        def allowed() -> float:
            """Return the seconds that the appends of all tasks may take."""
            fed = run(raw.statement(TASKS, ROUNDS))
            return max(one() / ALONE * TASKS * ROUNDS / 20, fed / 0.7)

        limit = "the slower of 20 times one task and 0.7 of the append's statement fed with 64 at once"
        yield _row(f"{TASKS} tasks that append single events, speed", limit, (together, allowed), 1.0)
        in_file = partial(_wall, run, partial(_append, file, TASKS, ROUNDS))
        row = _row(f"{TASKS} tasks that append single events, speed", "the SQLite store", (together, in_file), 0.9)
        slow = syncs(Path(folder)) < SLOW_DISK
        yield row._replace(applies=slow)
        one_raw = partial(_fed, run, raw.inserts, 1, ALONE)
        yield _row("one task that appends single events, speed", PLAINLY, (one, one_raw), 0.6)
        bulk = partial(_wall, run, partial(_append, store, 1, 10, MANY))
        bulk_raw = partial(_fed, run, raw.inserts, MANY, 10)
        what = f"{MANY} events of 1 KB an append, speed"
        row = _row(what, PLAINLY, (bulk, bulk_raw), 0.9)
        yield row._replace(applies=slow)  # where the disk takes no time, encoding and hashing the events is a third
        yield _row(what, ENCODING, (bulk, partial(_fed, run, raw.encoding, MANY, 10)), 0.9)
        for each in (store, file):
            run(each.append("window", [event(number) for number in range(WINDOW)]))
        load, load_file = (partial(_wall, run, partial(_loaded, each)) for each in (store, file))
        yield against(PART, f"a window of {WINDOW:,} events", "the SQLite store", (load, load_file), 1.3)
        run(plain.close())
        run(store.aclose())
        run(file.aclose())


@contextmanager
def lasting_server() -> Iterator[Server]:
    """Run a server that waits for its disk, as one in production does."""
    server = Server(new_folder(), lasting=True)
    try:
        server.make()
        yield server
    finally:
        server.remove()


def _row(what: str, limit: str, works: tuple[Timed, Timed], bar: float) -> Row:
    return against(PART, what, limit, works, bar, least=True, most=PAIRS)


def _wall(run: Callable[[Any], float], work: Callable[[], Any]) -> float:
    return run(work())


def _fed(run: Callable[[Any], float], work: Callable[[int, int], Awaitable[float]], events: int, times: int) -> float:
    return run(work(events, times))


async def _append(store: EventStore, tasks: int, rounds: int, events: int = 1) -> float:
    """Append to a conversation a task; return the seconds."""
    text = LONG if events > 1 else TEXT
    made = [[[event(next(_NUMBERS), text) for _ in range(events)] for _ in range(rounds)] for _ in range(tasks)]

    async def work(task: int) -> None:
        for each in made[task]:
            await store.append(f"task {task}", each)

    start = perf_counter()
    await asyncio.gather(*map(work, range(tasks)))
    return perf_counter() - start


async def _loaded(store: EventStore) -> float:
    start = perf_counter()
    window = await store.load_window("window")
    taken = perf_counter() - start
    assert len(window.events) == WINDOW
    return taken


def _events(events: int) -> list[NewEvent]:
    return [event(next(_NUMBERS), LONG if events > 1 else TEXT) for _ in range(events)]


class _Raw:
    """A connection of asyncpg that is given rows which are encoded already, in conversations of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._heads: dict[str, Head] = {}

    async def statement(self, together: int, times: int) -> float:
        """Run the store's statement with the appends of so many conversations; return the seconds."""
        names = [f"raw {number}" for number in range(together)]
        groups = [await self._parameters(names, 1) for _ in range(times)]
        start = perf_counter()
        for parameters in groups:
            await self._connection.fetchrow(statements.APPEND, *parameters, 0)
        return perf_counter() - start

    async def inserts(self, events: int, times: int) -> float:
        """Insert so many events at a time, into one conversation, and nothing else; return the seconds."""
        made = [await self._plain(events) for _ in range(times)]
        start = perf_counter()
        for parameters in made:
            await self._connection.execute(PLAIN, *parameters)
        return perf_counter() - start

    async def encoding(self, events: int, times: int) -> float:
        """Insert as `inserts` does, and write each payload as JSON and hash it before; return the seconds."""
        made = [await self._plain(events) for _ in range(times)]
        objects = [[json.loads(payload) for payload in parameters[_PAYLOADS]] for parameters in made]
        start = perf_counter()
        for parameters, payloads in zip(made, objects, strict=True):
            texts = [json.dumps(payload, separators=(",", ":"), ensure_ascii=False) for payload in payloads]
            parameters[_PAYLOADS] = texts
            parameters[_CHECKSUMS] = [sha256(text.encode()).hexdigest() for text in texts]
            await self._connection.execute(PLAIN, *parameters)
        return perf_counter() - start

    async def _plain(self, events: int) -> list[Any]:
        head = self._heads.get("raw") or await self._open("raw")
        batch = encode("raw", _events(events), Expected.ANY, {}, None)
        sealed = seal(batch, head.version, head.link)
        ids, types, forms, ats, paths, turns, tokens, payloads = map(list, zip(*batch.drafts, strict=True))
        versions = list(range(head.version + 1, head.version + events + 1))
        positions = [-next(_NUMBERS) for _ in range(events)]  # below those of the store
        head = self._heads["raw"] = replace(head, version=versions[-1], link=sealed.links[-1])
        of_events = [[head.key] * events, versions, positions, ids, types, forms, ats, paths, turns, tokens, payloads]
        return [versions[-1], ats[-1], head.link, head.key, *of_events, sealed.checksums, sealed.salts, sealed.links]

    async def _parameters(self, names: Sequence[str], events: int) -> list[Any]:
        group = AppendGroup()
        for name in names:
            head = self._heads[name] = self._heads.get(name) or await self._open(name)
            group.add(encode(name, _events(events), Expected.ANY, {}, None), head)
        return group.parameters()

    async def _open(self, name: str) -> Head:
        values = (key_of(name), name, 0, "", None, "", None, 0, 1, START)
        return Head(await self._connection.fetchval(statements.INSERT_CONVERSATION, *values))
