# ruff: noqa: ASYNC251 - a test may wait for its children
"""Several processes full of tasks on one file: `tests.crowd`."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pytest

from tests import newest_sqlite
from tests.crowd import SQLITES, Crowd, Member, check_log
from tests.depth import DEPTH, Depth, at_night, sampled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = {Depth.QUICK: 3, Depth.FULL: 3, Depth.NIGHT: 600}[DEPTH]
"""A turn takes about a millisecond: three seconds are some three thousand of them, with every core busy."""
KILLS = {Depth.QUICK: 4, Depth.FULL: 4, Depth.NIGHT: 400}[DEPTH]
PROCESSES = 4
STARVED = 10
"""No process does less than this part of the fastest, on a machine that does other work too."""
HERE = [
    pytest.param(name, marks=at_night if name == "newest" else ())
    for name in SQLITES
    if name != "newest" or newest_sqlite.THERE
]


@pytest.fixture(params=HERE)
def crowd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crowd]:
    """A crowd of processes that use the machine's SQLite, or the newest; what they wrote is large."""
    crowd = Crowd(tmp_path / "agent.db", request.param)
    yield crowd
    for member in crowd.members:
        member.process.kill()
        member.process.wait()
    for file in tmp_path.iterdir():
        file.unlink()


@sampled
@pytest.mark.timeout(6 * SECONDS + 60)
async def test_a_crowd_of_processes_loses_nothing_and_starves_nobody(crowd: Crowd) -> None:
    """Every acknowledged append is in the log once, in order; each process gets a fair part of the time."""
    counts = crowd.play(PROCESSES, SECONDS)
    assert await check_log(crowd) == sum(counts)
    assert max(counts) <= STARVED * min(counts), counts
    assert _sound(crowd.file)


@sampled
@pytest.mark.timeout(3 * KILLS + 60)
async def test_processes_that_are_killed_lose_nothing_and_leave_no_lock(crowd: Crowd) -> None:
    """Killed at random moments and followed by others: the crowd goes on, and the file stays sound."""
    draw = random.Random(17)
    playing = [crowd.join() for _ in range(PROCESSES)]
    for member in playing:
        member.begin(3_600)
    for _ in range(KILLS):
        sleep(draw.uniform(0.05, 0.5))
        victim = playing.pop(draw.randrange(len(playing)))
        victim.process.kill()
        victim.process.communicate()
        playing.append(crowd.join())
        playing[-1].begin(3_600)
        _all_go_on(playing)
    for member in playing:
        member.process.kill()
        member.process.communicate()
    assert await check_log(crowd) > 0
    assert _sound(crowd.file)
    assert {file.name for file in crowd.file.parent.iterdir()} == {
        crowd.file.name,
        *(member.notes.name for member in crowd.members),
    }


def _all_go_on(playing: list[Member]) -> None:
    """Wait until each process had another append acknowledged."""
    before = [member.total() for member in playing]
    deadline = monotonic() + 30
    while any(member.total() <= count for member, count in zip(playing, before, strict=True)):
        assert monotonic() < deadline
        sleep(0.01)


def _sound(file: Path) -> bool:
    with closing(sqlite3.connect(file)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))
