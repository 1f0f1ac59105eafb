"""A follower in a process of its own: ``python -m tests.followers URL INTERVAL``.

It prints ``ready``, and then for each event of the store its position and the moment it saw it, by the clock that all
processes share. It ends when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parent.parent
TYPES: Final = frozenset({"block.appended"})


class Follower:
    """The process, seen from the one that appends."""

    def __init__(self, url: str, interval: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.followers", url, str(interval)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", self._process.communicate()[1]

    def saw(self, count: int) -> Iterator[tuple[int, int]]:
        """Wait for so many events; give the position of each, and the nanoseconds at which it was seen."""
        assert self._process.stdout is not None
        for _ in range(count):
            position, moment = self._process.stdout.readline().split()
            yield int(position), int(moment)

    def end(self) -> None:
        """Let it end; it must have met no error."""
        complaint = self._process.communicate(timeout=60)[1]
        assert self._process.returncode == 0, complaint


async def _follow(url: str, interval: float) -> None:
    from timeline import open_store  # noqa: PLC0415 - the other side of the pipe needs none of it
    from timeline.lifecycle.sources import AllConversations, later_end, page  # noqa: PLC0415

    async with open_store(url) as store:
        source = AllConversations(store, TYPES)
        place = await source.end()
        ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        _say("ready")
        while True:
            looking = asyncio.create_task(later_end(source, place, interval))
            await asyncio.wait({looking, ended}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                looking.cancel()
                await asyncio.wait({looking})
                return
            if (end := looking.result()) > place:
                events, place = await page(source, place, end)
                moment = time.monotonic_ns()
                for event in events:
                    _say(f"{event.position} {moment}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_follow(sys.argv[1], float(sys.argv[2])))
