"""Files that only their owner may read: what is said in a conversation is nobody else's business."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .file_calls import fcntl

if TYPE_CHECKING:
    from pathlib import Path

OWNER_ONLY: Final = 0o600
_FLAGS: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of one platform each."""


def make_private(file: Path) -> None:
    """Make an empty file that only its owner may read and write, whatever the umask.

    SQLite gives the files beside a database the mode of the database.

    Raises:
        FileExistsError: there is a file; its mode stays as it is.
        OSError: it cannot be made.
    """
    # The file is new, so no connection of this process holds a lock on it that this close could drop.
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, OWNER_ONLY))
    file.chmod(OWNER_ONLY)  # a umask may have taken more


def take_over_mode(draft: Path, file: Path) -> None:
    """Give a file that is to replace another one the mode of that, and its owner where this process may."""
    try:
        of = file.stat()
    except FileNotFoundError:
        return
    draft.chmod(stat.S_IMODE(of.st_mode))
    found = draft.stat()
    if (found.st_uid, found.st_gid) != (of.st_uid, of.st_gid) and not os.geteuid():
        os.chown(draft, of.st_uid, of.st_gid)


def sync_file(file: Path) -> None:
    """Wait until the disk has a file that no connection has open, and its name in the folder."""
    _sync(file, os.O_RDWR)
    sync_names(file.parent)


def sync_names(folder: Path) -> None:
    """Wait until the disk has the names of a folder: what was made, renamed and removed there."""
    if hasattr(os, "O_DIRECTORY"):  # Windows opens no folder
        _sync(folder, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | _FLAGS)
    try:
        _flush(descriptor)
    finally:
        os.close(descriptor)


def _flush(descriptor: int) -> None:
    whole = getattr(fcntl, "F_FULLFSYNC", None)  # of macOS, where fsync ends when the drive has the bytes in a cache
    if whole is not None:
        with suppress(OSError):  # a file system that has no such call, or a failure of the disk, which fsync reports
            fcntl.fcntl(descriptor, whole)
            return
    os.fsync(descriptor)
