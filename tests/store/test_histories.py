from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.depth import DEPTH, Depth, sampled
from tests.histories import Operation, Players, logs_of, problems
from timeline import open_store

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = {Depth.QUICK: 1, Depth.FULL: 1.5, Depth.NIGHT: 120}[DEPTH]
LOG = {"a": ["1", "2", "3"]}


def append(name: str, ids: str, **parts: Any) -> Operation:
    """Make an append of events with these ids; acknowledged, unless it says otherwise."""
    return Operation(name, "a", **{"ids": list(ids), "outcome": "ok", "version": 0, **parts})


FIRST = append("first", "1", begin=0, end=10, version=1)
SECOND = append("second", "23", begin=20, end=30, version=3)


@pytest.mark.parametrize(
    ("played", "problem"),
    [
        ([FIRST, SECOND], None),
        ([FIRST, SECOND, Operation("look", "a", 5, end=6, outcome="ok", version=0)], None),
        ([FIRST, SECOND, Operation("look", "a", 5, end=25, outcome="ok", version=3)], None),
        ([FIRST, append("second", "23", begin=20, outcome="unknown")], None),
        ([FIRST, SECOND, append("never", "9", begin=5, outcome="unknown")], None),
        ([FIRST, SECOND, append("late", "9", begin=31, end=32, outcome="failed", version=3)], None),
        ([FIRST, SECOND, Operation("look", "a", 31, end=32, outcome="ok", version=1)], "ended before version"),
        ([FIRST, SECOND, Operation("look", "a", 11, end=12, outcome="ok", version=3)], "look ended before version 3"),
        ([FIRST, SECOND, Operation("look", "a", 11, end=25, outcome="ok", version=2)], "in the middle of an append"),
        ([FIRST, SECOND, Operation("look", "a", 31, end=32, outcome="ok", version=4)], "the log ends at 3"),
        ([FIRST, SECOND, append("lost", "9", begin=31, end=32, version=4)], "lost was acknowledged at version 4"),
        ([FIRST, SECOND, append("refused", "9", begin=21, end=22, outcome="failed", version=1)], None),
        ([append("first", "1", begin=0, end=10, outcome="failed"), SECOND], "first was refused, and is at"),
        ([FIRST, append("second", "239", begin=20, outcome="unknown")], "there in part"),
        ([FIRST], "nobody appended 2"),
        ([append("first", "1", begin=40, end=50, version=1), SECOND], "second ended before version 3"),
    ],
)
def test_the_checker_finds_what_no_order_explains(played: list[Operation], problem: str | None) -> None:
    """Lost, doubled and torn appends, looks into the past, and looks at what was never there."""
    found = problems(played, LOG)
    assert (found == []) if problem is None else any(problem in one for one in found), found


def test_the_checker_finds_an_event_twice() -> None:
    """What was retried is in the log once."""
    assert problems([FIRST], {"a": ["1", "1"]}) != []


def test_two_looks_do_not_go_back() -> None:
    """A second look, begun after the first one ended, sees what that one saw."""
    newer = Operation("newer", "a", 21, end=22, outcome="ok", version=3)
    older = Operation("older", "a", 23, end=24, outcome="ok", version=1)
    assert problems([FIRST, SECOND, older], LOG) == []
    assert problems([FIRST, SECOND, newer, older], LOG) != []


@sampled
@pytest.mark.timeout(4 * SECONDS + 120)
async def test_several_processes_on_a_file_agree_on_one_log(tmp_path: Path) -> None:
    """Appends with and without an expected version, conflicts and looks of three processes have an order."""
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    async with open_store(url):
        players = Players(url, tmp_path)
        try:
            for _ in range(3):
                await asyncio.to_thread(players.join)
            await asyncio.sleep(SECONDS)
            operations = await asyncio.to_thread(players.end)
        finally:
            players.kill()
    async with open_store(url) as store:
        logs = await logs_of(store)
    assert problems(operations, logs) == []
    assert {operation.outcome for operation in operations} == {"ok", "failed"}
