"""The one thread that writes: a queue of functions, each run to its end on the store's only writing connection.

A caller that is cancelled while its function waits takes it out of the queue; one that is cancelled while it runs
changes nothing: the function ends its own transaction. Nobody else can leave a transaction open, because nobody else
has the connection. (Committing several waiting appends at once would be a change of `_run` alone.)
"""

from __future__ import annotations

import logging
import sqlite3
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from .failures import closed

if TYPE_CHECKING:
    from collections.abc import Callable

log: Final = logging.getLogger("timeline.store")
log.addHandler(logging.NullHandler())

T = TypeVar("T")

CHECKPOINT_AFTER: Final = 4 * 1024 * 1024
"""Characters written, by estimate, after which the write-ahead log is copied into the database (1,000 pages)."""
_PER_COMMIT: Final = 32 * 1024
"""What a commit writes besides its text: some eight pages of tables and indexes."""


class _Job(NamedTuple):
    future: Future[Any]
    work: Callable[[sqlite3.Connection], Any]
    size: int


class Writer:
    """Owns the writing connection and its thread. ``where`` names the store in errors."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], where: str) -> None:
        self._connect = connect
        self._where = where
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = Lock()
        self._stopping = False
        self._written = 0
        self.opened: Future[None] = Future()
        """Done when the connection is open; holds the error if it could not be opened."""
        self.stopped: Future[None] = Future()
        """Done when the connection is closed and the thread ends."""
        # A daemon: a program that forgets to close its store must still exit. What was acknowledged is on the disk.
        self._thread = Thread(target=self._run, name=f"timeline-store-writer {where}", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[sqlite3.Connection], T], size: int = 0) -> Future[T]:
        """Queue a function; ``size`` is how many characters it will write, if it writes.

        Raises:
            StoreClosed: `stop` was called.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._stopping:
                raise closed(self._where)
            self._jobs.put(_Job(future, work, size))
        return future

    def stop(self) -> None:
        """Let the thread finish what is queued, close the connection and end. Calling it again does nothing."""
        with self._lock:
            if not self._stopping:
                self._stopping = True
                self._jobs.put(None)

    def _run(self) -> None:
        try:
            connection = self._connect()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for `opened`
            self.opened.set_exception(error)
            self.stopped.set_result(None)
            return
        self.opened.set_result(None)
        while (job := self._jobs.get()) is not None:
            if job.future.set_running_or_notify_cancel():
                self._do(connection, job)
            # A job holds its caller's events; an idle thread must not keep them alive.
            del job
            self._checkpoint_when_due(connection)
        self._close(connection)
        self.stopped.set_result(None)

    def _do(self, connection: sqlite3.Connection, job: _Job) -> None:
        try:
            result = job.work(connection)
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the job
            job.future.set_exception(error)
        else:
            job.future.set_result(result)
            self._written += job.size + _PER_COMMIT if job.size else 0

    def _checkpoint_when_due(self, connection: sqlite3.Connection) -> None:
        if self._written >= CHECKPOINT_AFTER:
            self._written = 0
            self._tend(connection, "PRAGMA wal_checkpoint(PASSIVE)")

    def _close(self, connection: sqlite3.Connection) -> None:
        if connection.total_changes:
            self._tend(connection, "PRAGMA optimize")
            self._tend(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def _tend(self, connection: sqlite3.Connection, pragma: str) -> None:
        # Housekeeping: when it fails, nothing is lost and the next append or open meets the cause (a full disk).
        try:
            connection.execute(pragma).fetchall()
        except sqlite3.Error as error:
            log.warning("%s: %s failed: %s", self._where, pragma, error)
