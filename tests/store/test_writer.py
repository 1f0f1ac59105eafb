from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import CancelledError
from threading import Event
from typing import TYPE_CHECKING

import pytest

from timeline.errors import StoreClosed
from timeline.store.sqlite import writer as writing
from timeline.store.sqlite.files import connect_writer
from timeline.store.sqlite.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from timeline.store.sqlite.holding import BoundConnection


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    """A writer on a store with one table more."""

    def connect() -> BoundConnection:
        held = connect_writer(tmp_path / "test.db", "full", 5.0)
        held.connection.execute("CREATE TABLE t (x)")
        return held

    writer = Writer(connect, "test.db")
    writer.opened.result(10)
    yield writer
    writer.stop()
    writer.stopped.result(10)


def _insert(connection: sqlite3.Connection) -> int:
    connection.execute("INSERT INTO t VALUES (1)")
    return _count(connection)


def _count(connection: sqlite3.Connection) -> int:
    (rows,) = connection.execute("SELECT count(*) FROM t").fetchone()
    return int(rows)


async def _result(job: Future[int]) -> int:
    return await asyncio.wrap_future(job)


def test_jobs_run_one_after_another_in_the_order_of_submission(writer: Writer) -> None:
    """Each job sees what the ones before it did."""
    assert [job.result(10) for job in [writer.submit(_insert) for _ in range(5)]] == [1, 2, 3, 4, 5]


def test_a_failing_job_fails_its_own_caller_only(writer: Writer) -> None:
    """The error comes out of the job's future, and the next job runs."""
    failing = writer.submit(lambda connection: connection.execute("nonsense"))
    assert isinstance(failing.exception(10), sqlite3.OperationalError)
    assert writer.submit(_insert).result(10) == 1


async def test_a_job_that_was_begun_completes_although_its_caller_is_cancelled(writer: Writer) -> None:
    """Cancelling the task does not reach the thread: the transaction ends by itself."""
    begun, go_on = Event(), Event()

    def slow(connection: sqlite3.Connection) -> int:
        connection.execute("BEGIN IMMEDIATE")
        begun.set()
        go_on.wait(10)
        rows = _insert(connection)
        connection.execute("COMMIT")
        return rows

    job = writer.submit(slow)
    task = asyncio.create_task(_result(job))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert await asyncio.wrap_future(writer.submit(_count)) == 1
    assert job.result(10) == 1


async def test_a_job_that_still_waits_is_dropped_with_its_caller(writer: Writer) -> None:
    """What was cancelled before it was begun is never run."""
    go_on = Event()
    writer.submit(lambda _: go_on.wait(10))
    waiting = writer.submit(_insert)
    task = asyncio.create_task(_result(waiting))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert await asyncio.wrap_future(writer.submit(_count)) == 0
    with pytest.raises(CancelledError):
        waiting.result(10)


def test_stopping_finishes_what_is_queued_and_refuses_more(writer: Writer) -> None:
    """Jobs before the stop run; a job after it is told that the store is closed; a second stop does nothing."""
    jobs = [writer.submit(_insert) for _ in range(3)]
    writer.stop()
    writer.stop()
    assert [job.result(10) for job in jobs] == [1, 2, 3]
    writer.stopped.result(10)
    writer._thread.join(10)
    assert not writer._thread.is_alive()
    with pytest.raises(StoreClosed):
        writer.submit(_insert)


def test_a_connection_that_cannot_be_opened_is_reported() -> None:
    """The error waits for whoever asks whether the writer is open, and the thread ends."""

    def connect() -> BoundConnection:
        raise sqlite3.OperationalError("no")

    writer = Writer(connect, "test.db")
    assert isinstance(writer.opened.exception(10), sqlite3.OperationalError)
    writer.stopped.result(10)


def test_the_write_ahead_log_is_copied_back_as_it_grows(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After enough has been written, the rows are in the database file itself, while the store is open."""
    monkeypatch.setattr(writing, "CHECKPOINT_AFTER", 100_000)
    before = (tmp_path / "test.db").stat().st_size

    def insert(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 60_000,))

    writer.submit(insert, 60_000).result(10)
    writer.submit(_count).result(10)
    assert (tmp_path / "test.db").stat().st_size == before
    writer.submit(insert, 60_000).result(10)
    writer.submit(_count).result(10)
    assert (tmp_path / "test.db").stat().st_size >= before + 120_000
