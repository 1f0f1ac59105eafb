"""Marks beside a database by which a process sees whether the one that writes a summary still runs.

The writer holds an ``flock`` of ``agent.db-lease-…`` from before it asks for the lease until that ends, and writes the
version and expiry that it asks for into it, which no other lease has, of a restored backup either.
The kernel frees the lock when the process ends, in whatever way, since its forks close their copies of the file; the
file stays, and says whose lease it was. So death is proved, never supposed: by a file with this very lease that nobody
holds. A missing file proves nothing, since the writer may be of an earlier release, or on a machine whose locks do not
come here.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from timeline.blocks import instant_text
from timeline.ports import NO_MARK

from ..file_calls import fcntl
from ..private_files import OWNER_ONLY
from .lock_files import LOCKS_FILES

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from timeline.ports import LeaseMark

_DIGITS: Final = 16
"""Hexadecimal digits that name a conversation: its id may hold what no file name may."""
_LONGEST: Final = 64
"""Bytes that are read of a mark; it has fewer."""


class FileMark:
    """The mark of a lease that this process holds. Closed, or collected with its owner, it no longer counts."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = open(  # noqa: SIM115 - held for as long as the lease
            path, "wb", buffering=0, opener=lambda name, flags: os.open(name, flags & ~os.O_TRUNC, OWNER_ONLY)
        )
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.truncate(0)
        except OSError:
            self._file.close()
            raise
        _HELD.add(self)

    def name(self, version: int, expires_at: datetime) -> None:
        """Say which lease is asked for, in the place of what was said before."""
        with suppress(OSError):  # A full disk: then nobody sees that this process died, and all wait for the expiry.
            self._file.seek(0)
            self._file.truncate()
            self._file.write(_written(version, expires_at))

    def forget(self) -> None:
        """Close this process's copy of the parent's file, after a fork; the parent keeps its mark."""
        self._file.close()

    def close(self) -> None:
        """Remove the mark; a second call does nothing."""
        if not self._file.closed:
            with suppress(OSError):
                os.unlink(self._path)  # noqa: PTH108 - as in `lock_files`
            self._file.close()


_HELD: Final[WeakSet[FileMark]] = WeakSet()


def mark(database: Path, conversation: str) -> LeaseMark:
    """Mark that this process is about to take a conversation's lease.

    Where that cannot be, `NO_MARK`: no locks, a folder that may not be written to, another process that holds the mark.
    Others then wait until the lease expires.
    """
    if not LOCKS_FILES:
        return NO_MARK
    try:
        return FileMark(_path(database, conversation))
    except OSError:
        return NO_MARK


def holder_died(database: Path, conversation: str, version: int, expires_at: datetime) -> bool:
    """Return whether the process that took this lease is known to have ended."""
    if not LOCKS_FILES:
        return False
    try:
        with open(_path(database, conversation), "rb", buffering=0) as found:  # noqa: PTH123 - as above
            fcntl.flock(found, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return found.read(_LONGEST) == _written(version, expires_at)
    except OSError:
        return False


def _written(version: int, expires_at: datetime) -> bytes:
    return f"{version} {instant_text(expires_at)}".encode()


def _path(database: Path, conversation: str) -> str:
    digits = sha256(conversation.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{os.path.realpath(database)}-lease-{digits}"


def _forget_all() -> None:
    for held in list(_HELD):
        held.forget()
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
