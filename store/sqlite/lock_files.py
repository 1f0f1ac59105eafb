"""The two files beside a database by which processes take turns at it: ``agent.db-lock`` and ``agent.db-queue``.

The process that has the turn holds an ``flock`` of the first file. Who waits for it holds that of the second one, and
all others wait for the second: so a process that gives its turn up and wants it again comes behind those that wait.
Two locks of one file would do, but ``flock`` knows no parts of files, and record locks (``fcntl``) are lost as soon as
any descriptor of the file is closed. The kernel frees an ``flock`` when its process ends, in whatever way.

Either file may be deleted or swapped at any time: a lock counts only where the file at the path is still the locked
one. The last process to close the database deletes both.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, Protocol

from ..file_calls import fcntl
from ..private_files import OWNER_ONLY

if TYPE_CHECKING:
    from .identity import Node

LOCKS_FILES: Final = fcntl is not None
"""Whether this platform has ``flock``. Without it only the stores of one process take turns."""


class Lock(Protocol):
    """What takes turns with other processes."""

    def try_take(self) -> bool:
        """Take the turn if no process has it or waits for it; return whether it was taken."""

    def take(self) -> None:
        """Wait for the turn, however long."""

    def give(self) -> None:
        """Give the turn up."""

    def remove(self) -> None:
        """Delete the files, in a turn."""

    def close(self) -> None:
        """Close the files; gives up the turn."""


class NoLock:
    """What a platform without ``flock`` has: no other process is asked."""

    def try_take(self) -> bool:
        """Return True."""
        return True

    def take(self) -> None:
        """Wait for nobody."""

    def give(self) -> None:
        """Do nothing."""

    def remove(self) -> None:
        """Do nothing: there is no file."""

    def close(self) -> None:
        """Do nothing."""


class LockFiles:
    """The two files as this process has them open; only one thread at a time may use them.

    Args:
        database: the database's real path.

    Raises:
        OSError: a file cannot be made or opened, or (by any method) its file system has no locks.
    """

    def __init__(self, database: str) -> None:
        self._database = database
        self._lock_path, self._queue_path = f"{database}-lock", f"{database}-queue"
        self._lock, self._lock_node = self._opened(self._lock_path)
        try:
            self._queue, self._queue_node = self._opened(self._queue_path)
        except OSError:
            os.close(self._lock)
            raise

    def try_take(self) -> bool:
        """Take the turn if no process has it or waits for it; return whether it was taken."""
        while _try_lock(self._queue):
            taken = _try_lock(self._lock)
            fcntl.flock(self._queue, fcntl.LOCK_UN)
            if not taken:
                return False
            if self._counts():
                return True
        return False

    def take(self) -> None:
        """Wait for the turn, however long."""
        while True:
            fcntl.flock(self._queue, fcntl.LOCK_EX)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            fcntl.flock(self._queue, fcntl.LOCK_UN)
            if self._counts():
                return

    def give(self) -> None:
        """Give the turn up."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def remove(self) -> None:
        """Delete the files, in a turn. Who waits for them finds that out, and makes new ones."""
        for path, node in ((self._queue_path, self._queue_node), (self._lock_path, self._lock_node)):
            with suppress(OSError):  # In a folder that may not be changed they stay, and do no harm.
                found = os.stat(path)  # noqa: PTH116 - see `identity`
                if (found.st_dev, found.st_ino) == node and not found.st_size:
                    os.unlink(path)  # noqa: PTH108 - see `identity`

    def close(self) -> None:
        """Close the files; gives up the turn, except in a forked process, whose descriptors are copies."""
        for descriptor in (self._lock, self._queue):
            with suppress(OSError):  # It is closed all the same; what was not written is said, and nothing was to be.
                os.close(descriptor)

    def _counts(self) -> bool:
        """Return whether the file just locked is the one at the path; open the one that is there, if it is another."""
        try:
            return self._is_at_its_path() or self._open_again()
        except OSError:
            self.give()  # The turn is not ours, and nobody is to wait for us.
            raise

    def _is_at_its_path(self) -> bool:
        try:
            found = os.stat(self._lock_path)  # noqa: PTH116 - see `identity`
        except FileNotFoundError:
            # Without its folder, that was moved with the locked file and the database in it: see `holding`.
            return not os.path.isdir(os.path.dirname(self._lock_path))  # noqa: PTH112, PTH120 - see `identity`
        return (found.st_dev, found.st_ino) == self._lock_node

    def _open_again(self) -> Literal[False]:
        # The new ones first: where they cannot be opened, the numbers of closed ones would be those of other files.
        lock, lock_node = self._opened(self._lock_path)
        try:
            queue, queue_node = self._opened(self._queue_path)
        except OSError:
            os.close(lock)
            raise
        self.close()
        self._lock, self._lock_node, self._queue, self._queue_node = lock, lock_node, queue, queue_node
        return False

    def _opened(self, path: str) -> tuple[int, Node]:
        """Open a lock file, or make it, as readable as the database is; before that is made, by its owner alone."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
        except PermissionError as refusal:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                raise refusal from None  # It may not be made.
        found = os.fstat(descriptor)
        with suppress(OSError):
            of = _stat(self._database)
            mode = OWNER_ONLY if of is None else stat.S_IMODE(of.st_mode)
            if not found.st_size and stat.S_IMODE(found.st_mode) != mode:
                os.fchmod(descriptor, mode)
            if of is not None and found.st_uid != of.st_uid and not os.geteuid():
                os.fchown(descriptor, of.st_uid, of.st_gid)
        return descriptor, (found.st_dev, found.st_ino)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - see `identity`
    except FileNotFoundError:
        return None


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
