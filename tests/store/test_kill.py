# ruff: noqa: ASYNC220, ASYNC221 - a test may wait for its child
from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from pathlib import Path

APPEND_FOR_EVER = """
import asyncio, sys
from datetime import UTC, datetime
from timeline.store.sqlite.store import SQLiteStore
from timeline.blocks import UserPrompt
from timeline.events import BlockAppended, NewEvent, event_id

def made(count):
    at = datetime.now(UTC)
    block = UserPrompt(text="x" * 800)
    return [NewEvent(id=event_id(at), at=at, payload=BlockAppended(block=block, tokens=1, counter="c"))
            for _ in range(count)]

async def append(store):
    size = 0
    while True:
        size = size % 7 + 1
        appended = await store.append("a", made(size))
        print(appended.version, flush=True)

async def main():
    store = await SQLiteStore.open(sys.argv[1], durability=sys.argv[2])
    await asyncio.gather(*(append(store) for _ in range(int(sys.argv[3]))))

asyncio.run(main())
"""

FORGET = """
import asyncio, sys
from datetime import UTC, datetime
from timeline.store import open_store
from timeline.events import NewEvent, event_id
from timeline.events.other_payloads import HookFailed

async def main():
    global kept
    store = await open_store(sys.argv[1])
    if sys.argv[2] == "global":
        kept = store
    at = datetime.now(UTC)
    await store.append("a", [NewEvent(id=event_id(at), at=at, payload=HookFailed(hook="x", error="y"))])
    assert (await store.info("a")).version == 1
    if sys.argv[2] == "raise":
        raise SystemExit("on purpose")

asyncio.run(main())
print("done")
"""


@pytest.mark.parametrize(("durability", "tasks"), [("full", 1), ("full", 16), ("normal", 1)])
async def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path, durability: str, tasks: int) -> None:
    """Killed at any moment, the store holds every acknowledged append, whole, without a gap, and goes on."""
    file, chance = tmp_path / "agent.db", random.Random(f"{durability} {tasks}")
    command = [sys.executable, "-c", APPEND_FOR_EVER, str(file), durability, str(tasks)]
    await (await SQLiteStore.open(file)).aclose()  # With the tables made, the children start faster.
    for _ in range(3 if durability == "full" else 2):
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert child.stdout is not None
        acknowledged = int(child.stdout.readline())
        time.sleep(chance.uniform(0.0, 0.3))  # noqa: ASYNC251 - the child has its own processor
        child.kill()
        acknowledged = max([acknowledged, *map(int, child.stdout.read().split())])
        child.wait()
        child.stdout.close()
        async with await SQLiteStore.open(file) as store:
            stored = await versions(store, "a")
            assert stored == list(range(1, len(stored) + 1))
            assert len(stored) >= acknowledged
            assert (await store.info("a")).version == len(stored)
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("how", ["local", "global", "raise"])
async def test_a_script_that_forgets_to_close_its_store_exits(tmp_path: Path, how: str) -> None:
    """No thread of the store keeps the interpreter alive, nothing is printed, and what was acknowledged is there."""
    file = tmp_path / "agent.db"
    await (await SQLiteStore.open(file)).aclose()  # With the tables made, the script starts faster.
    command = [sys.executable, "-c", FORGET, str(file), how]
    script = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert script.stderr.strip() == ("on purpose" if how == "raise" else "")
    assert script.stdout.strip() == ("" if how == "raise" else "done")
    async with await SQLiteStore.open(file) as store:
        assert await versions(store, "a") == [1]
