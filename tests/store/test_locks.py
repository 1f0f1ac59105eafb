# ruff: noqa: ASYNC220 - a test may wait for its child
from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from pathlib import Path

APPEND = """
import asyncio, sys
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events

async def main():
    async with await SQLiteStore.open(sys.argv[1]) as store:
        await store.append("a", events(1))

asyncio.run(main())
"""

HOLD = """
import asyncio, sys
from contextlib import suppress
from pathlib import Path
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events
from timeline.errors import TimelineError
from timeline.importers import read_recording
from timeline.policy.files import load_policy
from timeline.portable import read_copies

async def look(file, how):
    with suppress(TimelineError):
        if how == "write":
            await (await SQLiteStore.open(file)).aclose()
        elif how == "read":
            await (await SQLiteStore.open(file, readonly=True)).aclose()
        elif how == "import":
            read_copies(Path(file)) or read_recording(file)
        elif how == "policy":
            load_policy(file)

async def main():
    store = await SQLiteStore.open(sys.argv[1])
    await store.append("a", events(2))
    await look(sys.argv[1], sys.argv[2])
    print("ready", flush=True)
    sys.stdin.readline()
    appended = await store.append("a", events(1))
    print(appended.version, flush=True)
    sys.stdin.readline()

asyncio.run(main())
"""


def _append_elsewhere(file: Path) -> None:
    subprocess.run([sys.executable, "-c", APPEND, str(file)], check=True, timeout=60)


@pytest.mark.parametrize("readonly", [False, True])
async def test_a_second_store_of_a_process_takes_no_lock_from_the_first(tmp_path: Path, readonly: bool) -> None:  # noqa: FBT001
    """What a first store appends after a second one was closed and another process came and went is there for all."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as first:
        await first.append("a", events(2))
        await (await SQLiteStore.open(file, readonly=readonly)).aclose()
        _append_elsewhere(file)
        assert (await first.append("a", events(1))).version == 4
        async with await SQLiteStore.open(file, readonly=True) as reader:
            assert await versions(reader, "a") == [1, 2, 3, 4]


@pytest.mark.parametrize("how", ["write", "read", "import", "policy"])
async def test_whatever_looked_at_the_file_nothing_is_lost_in_a_crash(tmp_path: Path, how: str) -> None:
    """A process looks at its own open database in any way, another one appends, the first appends and is killed."""
    file = tmp_path / "agent.db"
    command = [sys.executable, "-c", HOLD, str(file), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        _append_elsewhere(file)
        holder.stdin.write("append\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "4\n"
        holder.kill()
    async with await SQLiteStore.open(file) as store:
        assert await versions(store, "a") == [1, 2, 3, 4]
