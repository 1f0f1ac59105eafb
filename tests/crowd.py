"""A crowd: processes full of tasks that append to one conversation; what each was acknowledged survives its end.

Each task numbers what it appends, and notes the last number that was acknowledged in a file that its process has mapped
into memory: a process that is killed leaves it as it was.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from timeline.store.durability import Durability

ROOT: Final = Path(__file__).parent.parent
TASKS: Final = 16
SQLITES: Final = {
    "machine": "from tests.crowd import child; child()",
    "newest": "from tests.newest_sqlite import use; use(); from tests.crowd import child; child()",
}
"""What a process runs, by the SQLite that it uses."""


@dataclass
class Member:
    """One process of a crowd."""

    name: str
    process: subprocess.Popen[str]
    notes: Path

    def begin(self, seconds: float) -> None:
        """Let it append for so long; it was ready, and ends by itself."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def end(self, seconds: float = 0) -> str:
        """Wait for its end, which comes after so many seconds; return what it complained of."""
        return self.process.communicate(timeout=seconds + 120)[1]

    def acknowledged(self) -> list[int]:
        """Return the last number of each task that was acknowledged."""
        return list(memoryview(self.notes.read_bytes()).cast("Q"))

    def total(self) -> int:
        """Return how many appends were acknowledged."""
        return sum(self.acknowledged())


@dataclass
class Crowd:
    """The processes that ever appended to a database, those that were killed too."""

    file: Path
    sqlite: str = "machine"
    durability: Durability = "full"
    members: list[Member] = field(default_factory=list)

    def join(self) -> Member:
        """Start a process, and wait until it has the database open."""
        name = f"p{len(self.members)}"
        notes = self.file.with_name(f"notes-{name}")
        notes.write_bytes(bytes(8 * TASKS))
        command = [sys.executable, "-c", SQLITES[self.sqlite], str(self.file), str(notes), name, self.durability]
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        member = Member(name, process, notes)
        self.members.append(member)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
        return member

    def play(self, processes: int, seconds: float) -> list[int]:
        """Let so many processes append at the same time; return how many appends of each were acknowledged."""
        playing = [self.join() for _ in range(processes)]
        for member in playing:
            member.begin(seconds)
        assert [member.end(seconds) for member in playing] == [""] * processes
        return [member.total() for member in playing]


async def check_log(crowd: Crowd) -> int:
    """Check that the log holds each acknowledged append once, in the order of its task; return its length.

    The one append that a task of a killed process had under way may be there too.
    """
    from timeline.events import BlockAppended  # noqa: PLC0415 - children come first to choose their SQLite
    from timeline.store.sqlite.store import SQLiteStore  # noqa: PLC0415

    found: defaultdict[tuple[str, int], int] = defaultdict(int)
    length = 0
    async with await SQLiteStore.open(crowd.file) as store:
        async for event in store.read("a", page=5_000):
            length += 1
            assert event.version == length
            assert isinstance(event.payload, BlockAppended)
            name, *numbers = event.payload.block.text.split()
            task, number = map(int, numbers)
            assert number == found[name, task] + 1, (name, task, number)
            found[name, task] += 1
    for member in crowd.members:
        killed = member.process.returncode != 0
        for place, last in enumerate(member.acknowledged()):
            assert last <= found[member.name, place] <= last + killed, (member.name, place)
    return length


def child() -> None:
    """Be one process of a crowd."""
    file, notes, name, durability = sys.argv[1:]
    descriptor = os.open(notes, os.O_RDWR)
    numbers = memoryview(mmap.mmap(descriptor, 8 * TASKS)).cast("Q")
    os.close(descriptor)
    asyncio.run(_append(file, numbers, name, durability))  # type: ignore[arg-type]


async def _append(file: str, numbers: memoryview[int], name: str, durability: Durability) -> None:
    from timeline.blocks import UserPrompt  # noqa: PLC0415 - see `check_log`
    from timeline.events import BlockAppended, NewEvent, event_id  # noqa: PLC0415
    from timeline.store.sqlite.store import SQLiteStore  # noqa: PLC0415

    async def work(task: int) -> None:
        number = 0
        while monotonic() < until:
            number += 1
            at = datetime.now(UTC)
            block = BlockAppended(block=UserPrompt(text=f"{name} {task} {number}"), tokens=1, counter="c")
            await store.append("a", [NewEvent(id=event_id(at), at=at, payload=block)])
            numbers[task] = number

    async with await SQLiteStore.open(file, durability=durability) as store:
        print("ready", flush=True)
        seconds = float(sys.stdin.readline())
        until = monotonic() + seconds
        await asyncio.gather(*map(work, range(TASKS)))
