"""A repair of a large store: appends go on between its batches, and whatever comes in between is no reason to lie."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import DEPTH, sampled
from tests.killed import killed
from tests.scenes import Scribe, small_policy
from timeline import Timeline, open_store
from timeline.audit.deep import repair, verify_deep
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.forgetting import find_subject
from timeline.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.blocks import Block

DAMAGE: Final = (
    "UPDATE conversations SET title = 'x'",
    "UPDATE compactions SET before_tokens = before_tokens + 1",
    "DELETE FROM digest_entries",
    "UPDATE facts SET subject = subject || 'x'",
    "UPDATE search_progress SET position = -1",
)
CONVERSATIONS: Final = 6
STEP: Final = 3
MOST: Final = 25 // DEPTH.step
"""Kills that are looked at."""
INTERRUPTED: Final = """
import asyncio, os, signal, sys
from pathlib import Path
from threading import Timer
from timeline.store.sqlite.private_copy import on_copy
from timeline.store.sqlite.store import SQLiteStore

COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000000) SELECT count(*) FROM n"

async def work(file, seconds):
    async with await SQLiteStore.open(Path(file), durability="normal") as store:
        Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
        await on_copy(store.database, lambda copy: copy.execute(COUNT).fetchall())

asyncio.run(work(sys.argv[1], float(sys.argv[2])))
"""
"""A program that works on a copy for seconds, and is interrupted after so many of them."""


async def _make(file: Path) -> None:
    policy = small_policy(max_tokens=4_000, keep_recent_tokens=400)
    async with await SQLiteStore.open(file, durability="normal") as store:
        for number in range(CONVERSATIONS):
            timeline = await Timeline.open(store, f"c{number}", policy=policy, summarizer=Scribe(), title="Tests")
            blocks: list[Block] = [UserPrompt(text=f"Run test {number} of the many that there are. " * 10)]
            for n in range(60):
                call = ToolCall(
                    call_id=f"{n}", name="Bash", arguments={"command": f"pytest tests/test_{number}_{n}.py"}
                )
                blocks += [call, ToolResult(call_id=f"{n}", text=f"failed {n} in src/{n}.py\n" * 20, is_error=True)]
            await timeline.append(*blocks)
            await timeline.compact()
        assert [hit async for hit in store.search("failed")]
        assert [fact async for fact in store.facts()]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store in which everything that is derived is wrong."""
    file = tmp_path_factory.mktemp("damaged") / "agent.db"
    asyncio.run(_make(file))
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in DAMAGE:
            assert connection.execute(statement).rowcount > 0, statement
    return file


async def test_appends_go_on_while_a_store_is_repaired(tmp_path: Path, damaged: Path) -> None:
    """Each waits for one batch, not for the repair; all of them are there, and in everything that is derived."""
    file = tmp_path / "agent.db"
    shutil.copy(damaged, file)
    async with await SQLiteStore.open(file, durability="normal") as store:
        timeline = await Timeline.open(store, "new")
        mending = asyncio.create_task(store.mend())
        said = 0
        while not mending.done():
            said += 1
            await timeline.append(UserPrompt(text=f"Meanwhile {said}."))
            await asyncio.sleep(0)
        assert {found.what for found in mending.result()} == {"conversations", "digests", "facts", "search"}
        await repair(store, dry_run=False)
        report = await verify_deep(store)
        assert (report.ok, report.differences) == (True, ())
        assert (await store.info("new")).version > said > 20


@sampled
async def test_killed_between_any_two_statements_a_repair_leaves_a_readable_store_and_a_rerun_ends_it(
    tmp_path: Path, damaged: Path
) -> None:
    """No event is changed, and what the rerun leaves is what one repair leaves."""
    file = tmp_path / "agent.db"
    shutil.copy(damaged, file)
    log = _log(file)
    async with await SQLiteStore.open(file, durability="normal") as store:
        async with killed(store, tmp_path, every=STEP) as left:
            await repair(store, dry_run=False)
        facts = [fact async for fact in store.facts()]
    assert len(left) > 4, "states of the files that differ"
    for half in left[:: max(1, len(left) // MOST)]:
        assert _log(half) == log
        async with await SQLiteStore.open(half) as store:
            assert len([info async for info in store.conversations()]) == CONVERSATIONS
            assert len([event async for event in store.read_all()]) == len(log)
            done = await repair(store, dry_run=False)
            assert done.left == ()
            assert (await verify_deep(store)).ok, half
            assert [fact async for fact in store.facts()] == facts, half


async def test_what_is_redacted_while_a_store_is_repaired_does_not_come_back(tmp_path: Path, damaged: Path) -> None:
    """The copy that the repair works from still has it; the batches of that copy are not carried out."""
    file = tmp_path / "agent.db"
    shutil.copy(damaged, file)
    async with await SQLiteStore.open(file, durability="normal") as store:
        timeline = await Timeline.open(store, "c3", create=False)
        [place, *_] = [each.place async for each in find_subject(store, "pytest tests/test_3_7.py", ["c3"])]
        mending = asyncio.create_task(store.mend())
        await asyncio.sleep(0)
        await timeline.append(UserPrompt(text="Wait for a batch of it."))
        await timeline.redact(place, "a secret", text="test_3_7")
        await mending
        await repair(store, dry_run=False)
        assert [each async for each in find_subject(store, "test_3_7")] == []
        assert (await verify_deep(store)).ok
    assert b"test_3_7" not in file.read_bytes()


@pytest.mark.parametrize("steps", [0, 1, 3, 10, 30, 100])
async def test_a_repair_that_is_cancelled_leaves_a_store_that_works(tmp_path: Path, damaged: Path, steps: int) -> None:
    """It can be repaired, and closed, at once."""
    file = tmp_path / "agent.db"
    shutil.copy(damaged, file)
    async with await SQLiteStore.open(file, durability="normal") as store:
        mending = asyncio.create_task(store.mend())
        for _ in range(steps):
            await store.append("new", [])
        mending.cancel()
        with suppress(asyncio.CancelledError):
            await mending
        await repair(store, dry_run=False)
        assert (await verify_deep(store)).ok


@pytest.mark.parametrize("seconds", [0, 0.002, 0.01, 0.1, 0.5])
def test_an_interrupt_while_a_thread_is_inside_a_copy_is_no_crash(
    tmp_path: Path, damaged: Path, seconds: float
) -> None:
    """The end of the event loop cancels every task, but no thread: the process ends by the interrupt, and soon."""
    file = tmp_path / "agent.db"
    shutil.copy(damaged, file)
    command = [sys.executable, "-c", INTERRUPTED, str(file), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGINT, done.stderr
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")
    assert "Exception ignored" not in done.stderr


def _log(file: Path) -> list[object]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT * FROM events ORDER BY position").fetchall()


async def test_the_texts_of_a_context_that_was_recorded_by_hashes_are_not_missed(tmp_path: Path) -> None:
    """The store never had them; the text of the policy is there, and is missed."""
    file = tmp_path / "agent.db"
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "c")
        await timeline.append(UserPrompt(text="Begin."))
        await timeline.render(system="S", tools=[{"name": "run"}], ephemeral=("Noon.",), record="hash")
        report = await verify_deep(store)
        assert (report.ok, report.differences) == (True, ())
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM stored_values")
    async with open_store(file) as store:
        assert {each.what for each in (await verify_deep(store)).differences} == {"values"}
