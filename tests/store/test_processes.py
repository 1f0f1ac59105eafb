from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

from timeline.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from pathlib import Path

APPEND = """
import asyncio, sys
from datetime import UTC, datetime
from timeline.store.sqlite.store import SQLiteStore
from timeline.blocks import UserPrompt
from timeline.events import BlockAppended, NewEvent, event_id
from timeline.ports import Expected

TASKS, EACH = 64, 12

async def append(store):
    for _ in range(EACH):
        at = datetime.now(UTC)
        block = BlockAppended(block=UserPrompt(text="x" * 200), tokens=1, counter="c")
        event = NewEvent(id=event_id(at), at=at, payload=block)
        await store.append("a", [event], expected=Expected.ANY)
        print(event.id)

async def main():
    async with await SQLiteStore.open(sys.argv[1]) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        await asyncio.gather(*(append(store) for _ in range(TASKS)))

asyncio.run(main())
"""

COMPACT = """
import asyncio, sys
from contextlib import suppress
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import compaction
from timeline.errors import ConversationNotFound, VersionConflict
from timeline.ports import Expected, Snapshot

async def compact(store, first, version):
    event, snapshot = compaction(first, version), Snapshot(version=version + 1, window_start=version + 1)
    try:
        await store.append("a", [event], expected=version, snapshot=snapshot)
    except VersionConflict:
        await store.append("a", [event], expected=Expected.STREAM_EXISTS, snapshot=snapshot)
    return event.id

async def main():
    async with await SQLiteStore.open(sys.argv[1]) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        stop = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
        first = 1
        while not (stop.done() and first > 1):
            await asyncio.sleep(0.001)
            with suppress(ConversationNotFound):
                version = (await store.info("a")).version
                if version >= first:
                    print(await compact(store, first, version))
                    first = version + 1

asyncio.run(main())
"""


def _child(script: str, file: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, str(file)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _said(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline()


def _say(child: subprocess.Popen[str], word: str) -> None:
    assert child.stdin is not None
    child.stdin.write(f"{word}\n")
    child.stdin.flush()


async def test_processes_full_of_tasks_append_to_one_conversation_while_another_compacts_it(tmp_path: Path) -> None:
    """Two times 64 tasks, and snapshots all the while: what was acknowledged is there once, and no lock is met."""
    file = tmp_path / "agent.db"
    await (await SQLiteStore.open(file)).aclose()  # With the tables made, the children begin together.
    children = [_child(script, file) for script in (APPEND, APPEND, COMPACT)]
    for child in children:
        await asyncio.to_thread(_said, child)
    for child in children:
        _say(child, "go")
    told = [await asyncio.to_thread(child.communicate, timeout=60) for child in children[:2]]
    told.append(await asyncio.to_thread(children[2].communicate, "stop\n", timeout=60))
    assert [(child.returncode, err) for child, (_, err) in zip(children, told, strict=True)] == [(0, "")] * 3
    acknowledged = [out.split() for out, _ in told]
    assert [len(ids) for ids in acknowledged[:2]] == [64 * 12] * 2
    assert acknowledged[2]
    async with await SQLiteStore.open(file) as store:
        read = [event async for event in store.read("a")]
        window = await store.load_window("a")
    assert [event.version for event in read] == list(range(1, len(read) + 1))
    assert Counter(str(event.id) for event in read) == Counter(id_ for ids in acknowledged for id_ in ids)
    assert window.info.version == len(read)
    assert [event.version for event in window.events] == list(range(window.info.window_start, len(read) + 1))
