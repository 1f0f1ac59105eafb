"""Change a store's file behind its back, in any row and any byte, and compare all that it reads before and after.

An edit is one row of any table, the tables that SQLite keeps for itself included, or one byte of the file. What is read
goes through the public interface alone; an error is what that read answers, by its type and text.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tests.scenes import AT, Scribe, after, answer, call, exchange, prompt, result, small_policy, turn
from timeline import Timeline, open_store
from timeline.blocks import ToolCall, ToolResult
from timeline.errors import TimelineError
from timeline.events import appended_block
from timeline.frozen import canonical_json
from timeline.retention import scavenge
from timeline.store.sqlite import packing

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from timeline.ports import EventStore

POLICY: Final = small_policy(max_tokens=4_000, keep_recent_tokens=400)
WORDS: Final = ("abc", "make", "main.py", "failed", "summary")
_NEVER: Final = ("sqlite_stat1", "sqlite_stat4")
"""Tables whose rows only guide SQLite's plans."""


async def make(path: Path, *, scavenged: bool = True) -> None:
    """Write a store that has rows in every table: compactions, an undo, a fork, packed events, facts, an index."""
    with patch.multiple(packing, LEAST_EVENTS=4, NEWEST=8):
        async with open_store(path) as store:
            await _conversation(store, "c")
            timeline = await Timeline.open(store, "c", policy=POLICY, summarizer=Scribe())
            fork = await timeline.fork(conversation="fork")
            await fork.append(*turn(40), *_work("g", "src/fork.py"))
            await _conversation(store, "other")
            if scavenged:
                await _conversation(store, "old")
                old = await Timeline.open(store, "old", policy=POLICY, summarizer=Scribe())
                await old.set_retention("window")
                await scavenge(store, ["old"])
            await store.set_retention("window")
            await everything(store)


def _work(id_: str, file: str) -> list[Any]:
    return [
        ToolCall(call_id=f"{id_}1", name="Read", arguments={"file_path": file}),
        ToolResult(call_id=f"{id_}1", text=f"def main_{id_}(): pass"),
        ToolCall(call_id=f"{id_}2", name="Bash", arguments={"command": f"make {id_}"}),
        ToolResult(call_id=f"{id_}2", text=f"failed {id_}", is_error=True, exit_status=2),
    ]


async def _conversation(store: EventStore, id_: str) -> None:
    timeline = await Timeline.open(store, id_, policy=POLICY, summarizer=Scribe(), title=f"About {id_}", now=AT)
    await timeline.append(*turn(1_500), *_work("a", "src/app/main.py"))
    await timeline.render(system="S", tools=[{"name": "run"}], ephemeral=["noon"], now=after(1))
    await timeline.append(prompt(20), *exchange("x", 1_500), *exchange("b", 1_000), *exchange("d", 400))
    await timeline.render(system="S", now=after(2))
    await timeline.record_model_call(model="m")
    await timeline.append(call("e"), call("f"))
    await timeline.append(result("f"), result("e", 1_500), answer(1_000, response_id="m1"))
    await timeline.render(system="S", now=after(3))
    await timeline.append(*turn(1_000), *_work("h", "src/app/other.py"), *turn(400))
    await timeline.render(system="S", now=after(4))


async def reads(path: Path) -> dict[str, str]:
    """Return everything that a store reads, by what was asked."""
    try:
        async with open_store(path, readonly=True) as store:
            return await everything(store)
    except TimelineError as error:
        return {"open": f"error {type(error).__name__}: {error}"}


async def everything(store: EventStore) -> dict[str, str]:
    """Return everything that an open store reads, by what was asked."""
    seen: dict[str, str] = {}

    async def ask(what: str, answered: Awaitable[object]) -> object:
        try:
            found = await answered
        except TimelineError as error:
            seen[what] = f"error {type(error).__name__}: {error}"
            return None
        seen[what] = _text(found)
        return found

    infos = await ask("conversations", _all(store.conversations()))
    await ask("head", store.head())
    await ask("retention", store.retention())
    await ask("all", _all(store.read_all()))
    ids = [info.id for info in infos] if isinstance(infos, list) else []
    for id_ in ids:
        await _of_conversation(store, id_, ask)
    await ask("digests", _all(store.digests(reverted=None)))
    await ask("digests of Bash", _all(store.digests(tool="Bash")))
    await ask("digests of files", _all(store.digests(path_glob="src/**/*.py")))
    await ask("facts", _all(store.facts()))
    for word in WORDS:
        await ask(f"search {word}", _all(store.search(word)))
    return seen


async def _of_conversation(
    store: EventStore, id_: str, ask: Callable[[str, Awaitable[object]], Awaitable[object]]
) -> None:
    await ask(f"{id_} info", store.info(id_))
    events = await ask(f"{id_} events", _all(store.read(id_)))
    await ask(f"{id_} rendered", _all(store.read(id_, types=["context.rendered"])))
    await ask(f"{id_} compactions", _all(store.read(id_, types=["compaction.completed", "compaction.reverted"])))
    await ask(f"{id_} window", store.load_window(id_))
    await ask(f"{id_} facts", _all(store.facts(conversation=id_)))
    await ask(f"{id_} covered", _all(store.facts(conversation=id_, covered=True)))
    await ask(f"{id_} record", store.fact_record(id_))
    await ask(f"{id_} paths", store.paths_taken(id_, [""]))
    await ask(f"{id_} scavenged", store.scavenged(id_))
    await ask(f"{id_} shown", _shown(store, id_))
    for version in range(1, 46):
        await ask(f"{id_} @{version}", store.read_versions(id_, [version]))
    for event in events if isinstance(events, list) else []:
        block = appended_block(event.payload)
        if block is not None and block.path:
            await ask(f"{id_} at {block.path}", store.find(id_, block.path))


async def _shown(store: EventStore, id_: str) -> str:
    timeline = await Timeline.open(store, id_, policy=POLICY, create=False)
    return (await timeline.render(now=after(5), record=False)).neutral.canonical()


async def _all(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


def _text(found: object) -> str:
    if isinstance(found, set):
        return str(sorted(found))
    if isinstance(found, str):
        return found
    # Where an index is of an earlier form, ranks are counted without it: they differ from SQLite's in the last digit.
    return re.sub(r"rank=([-+.\de]+)", lambda rank: f"rank={float(rank[1]):.12g}", repr(found))


def blocks_of(seen: dict[str, str]) -> dict[str, str]:
    """Return what was read by version or by path: an answer there is that block, or an error."""
    return {what: text for what, text in seen.items() if " @" in what or " at " in what}


def tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of all tables whose rows can be changed."""
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    return sorted(name for (name,) in found if name not in _NEVER)


def edit_row(path: Path, chance: random.Random) -> str:
    """Change one column of one row, or delete a row; return what was done."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        while True:
            table = chance.choice(tables(connection))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608 - names of the schema
            if rows and (done := _edited(connection, table, columns, rows, chance)):
                return done


def _edited(
    connection: sqlite3.Connection, table: str, columns: list[str], rows: list[Any], chance: random.Random
) -> str:
    row = chance.choice(rows)
    where = " AND ".join(f'"{name}" IS ?' for name in columns)
    if chance.random() < 0.1:
        with suppress(sqlite3.Error):
            connection.execute(f'DELETE FROM "{table}" WHERE {where}', row)  # noqa: S608 - names of the schema
            return f"delete of {table} {_short(row)}"
    place = chance.randrange(len(columns))
    value = _other(row[place], [each[place] for each in rows], chance)
    if value == row[place]:
        return ""
    try:
        changed = connection.execute(f'UPDATE "{table}" SET "{columns[place]}" = ? WHERE {where}', (value, *row))  # noqa: S608
    except sqlite3.Error:
        return ""
    return f"{table}.{columns[place]} of {_short(row)} = {_short([value])}" if changed.rowcount == 1 else ""


def _other(value: Any, others: list[Any], chance: random.Random) -> Any:
    if chance.random() < 0.4 and any(other != value for other in others):
        return chance.choice([other for other in others if other != value])
    if chance.random() < 0.1:
        return None
    match value:
        case int():
            return chance.choice([value + 1, value - 1, 0, value + 1_000])
        case str():
            place = chance.randrange(len(value) + 1)
            return chance.choice(["", value[:place] + "x" + value[place + 1 :], value + "x"])
        case bytes():
            place = chance.randrange(len(value) + 1)
            return chance.choice([b"", value[:place] + b"x" + value[place + 1 :]])
    return chance.choice([1, "x", b"x"])


def _short(values: Any) -> str:
    return canonical_json([str(value)[:40] for value in values])


def flip_byte(path: Path, chance: random.Random) -> str:
    """Change one byte of the file; return which."""
    content = bytearray(path.read_bytes())
    place = chance.randrange(len(content))
    content[place] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return f"byte {place} (page {place // 4096 + 1})"
