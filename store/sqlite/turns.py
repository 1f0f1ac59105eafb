"""Turns at a database: between them no two connections, of any process, open, write, copy its log or close at once.

SQLite locks too, but its waiters sleep and try again, which starves some of them; and versions before 3.51.3 damage a
file when one connection copies the write-ahead log while another begins it anew (https://sqlite.org/wal.html#walreset).
Each process holds the lock files of a database once, for all its stores of it (`lock_files`). Inside the process they
come in the order in which they asked.
"""

from __future__ import annotations

import os
from collections import deque
from queue import SimpleQueue
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, Self

from ..failures import not_locked, turn_too_late
from . import lock_files

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class Turn:
    """The turns of one store. Enter it around work; entering it again inside does nothing more.

    Only one thread at a time may use it.

    Args:
        file: the database; names the store in errors.
        patience: seconds to wait for a turn.

    Raises:
        OSError: a lock file cannot be made or opened.
    """

    def __init__(self, file: Path, patience: float) -> None:
        self._file = file
        self._patience = patience
        self._depth = 0
        self._left = False
        self._line = _join(os.path.realpath(file))

    def __enter__(self) -> Self:
        """Wait for the turn.

        Raises:
            StoreLocked: it did not come in time.
            StoreError: the file system has no locks.
        """
        if not self._depth:
            try:
                taken = self._line.take(self._patience)
            except OSError as error:
                raise not_locked(error, self._file) from error
            if not taken:
                raise turn_too_late(self._file, self._patience)
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            self._line.give()

    def close(self) -> None:
        """Leave for good, outside of a turn, when the store's connections are closed; a second call does nothing."""
        if not self._left:
            self._left = True
            _leave(self._line)


class _Line:
    """The stores of this process that take turns at one database, and the lock that they share."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.stores = 0
        self._lock: lock_files.Lock
        self._lock = lock_files.LockFiles(database) if lock_files.LOCKS_FILES else lock_files.NoLock()
        self._waiter = _Waiter(self._lock)
        self._guard = Lock()
        self._busy = False
        self._waiting: deque[Lock] = deque()

    def take(self, patience: float) -> bool:
        """Wait for the turn; return whether it came in time."""
        deadline = monotonic() + patience
        if not self._come_first(patience):
            return False
        taken = False
        try:
            taken = (self._waiter.idle and self._lock.try_take()) or self._waiter.take(deadline - monotonic())
        finally:
            if not taken:
                self._let_next()
        return taken

    def give(self) -> None:
        """Give the turn to the one that waits longest, in other processes first."""
        self._lock.give()
        self._let_next()

    def end(self) -> None:
        """Close the lock; delete its files if no connection is open any more, which the write-ahead log shows."""
        try:
            if self._waiter.idle and self._lock.try_take():
                if not os.path.exists(f"{self.database}-wal"):  # noqa: PTH110 - see `identity`
                    self._lock.remove()
                self._lock.give()
        except OSError:
            self._lock.remove()  # The file system has no locks: the files are of use to nobody.
        self._waiter.end()

    def forget(self) -> None:
        """Close this process's copies of the parent's descriptors, after a fork; the parent keeps its lock."""
        self._lock.close()

    def _come_first(self, patience: float) -> bool:
        """Wait until no other store of this process has the turn, or waited longer."""
        with self._guard:
            if not self._busy:
                self._busy = True
                return True
            own = Lock()
            own.acquire()
            self._waiting.append(own)
        if own.acquire(timeout=patience):
            return True
        with self._guard:
            if own not in self._waiting:
                return True  # It came just now.
            self._waiting.remove(own)
        return False

    def _let_next(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._busy = False


class _Waiter:
    """Waits for a lock in a thread of its own, because waiting for an ``flock`` has no deadline.

    A wait that is given up goes on, and keeps its place for the next one.
    """

    def __init__(self, lock: lock_files.Lock) -> None:
        self._lock = lock
        self._guard = Lock()
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._came = Lock()
        self._came.acquire()
        self._thread: Thread | None = None
        self._pending = self._wanted = self._ended = False
        self._error: OSError | None = None

    @property
    def idle(self) -> bool:
        """Whether no wait goes on."""
        return not self._pending

    def take(self, patience: float) -> bool:
        """Wait for the lock; return whether it came in time.

        Raises:
            OSError: the file system refused the lock.
        """
        if self._thread is None:
            self._thread = Thread(target=self._run, name="timeline-store-turn", daemon=True)
            self._thread.start()
        with self._guard:
            self._wanted = True
            if not self._pending:
                self._pending, self._error = True, None
                self._asked.put(True)
        if not self._came.acquire(timeout=max(0.0, patience)):
            with self._guard:
                if self._pending:
                    self._wanted = False
                    return False
            self._came.acquire()  # It came just now.
        if self._error is not None:
            raise self._error
        return True

    def end(self) -> None:
        """Close the lock, once no wait goes on."""
        with self._guard:
            self._ended = True
            if not self._pending:
                self._lock.close()
        self._asked.put(False)

    def _run(self) -> None:
        while self._asked.get():
            try:
                self._lock.take()
            except OSError as error:
                self._error = error
            with self._guard:
                self._pending = False
                if self._wanted:
                    self._came.release()
                elif self._ended:
                    self._lock.close()
                elif self._error is None:
                    self._lock.give()


_LINES: Final[dict[str, _Line]] = {}
_GUARD = Lock()


def _join(database: str) -> _Line:
    with _GUARD:
        line = _LINES.get(database)
        if line is None:
            line = _LINES[database] = _Line(database)
        line.stores += 1
        return line


def _leave(line: _Line) -> None:
    with _GUARD:
        line.stores -= 1
        if not line.stores:
            del _LINES[line.database]
            line.end()


def _forget_all() -> None:
    global _GUARD  # noqa: PLW0603 - a thread that is not in this process may hold the old one
    _GUARD = Lock()
    for line in _LINES.values():
        line.forget()
    _LINES.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
