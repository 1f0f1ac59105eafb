"""Detect that a store's file was swapped: compare the open file with the one at its path now.

SQLite keeps writing to the file that it opened, even after that was deleted, renamed or replaced, and later readers do
not find those appends. The file system reveals it (device and inode, of the database and of the two files beside it)
and, where a file was overwritten in its place, the store's name in its own table.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from enum import Enum
from pathlib import Path
from time import monotonic, sleep
from typing import Final, TypeAlias

from timeline.databases import database_uri
from timeline.errors import StoreCorrupt

from . import statements
from .broken_off import Content, content_by, content_with_log, is_out_of_reach

Node: TypeAlias = tuple[int, int]
"""``(st_dev, st_ino)``."""

BESIDE_EVERY: Final = 0.05
"""Least seconds between two checks of the files beside the database. The check may be late: once it finds the log
deleted, the appends in it are copied into the database. A check at every append costs some 2 % of a fast append for
each call of `os.stat`."""
_AT_REST: Final = 0.5
"""Seconds without a change after which a file counts as no longer written to."""
_PAUSE: Final = 0.02
"""Seconds between two reads of a file whose content is inconsistent."""


class Change(Enum):
    """What happened to the files of an open database, in words that follow the file's name."""

    GONE = "the database file was deleted or renamed while it was open"
    REPLACED = "another file was put in the place of the database while it was open"
    OVERWRITTEN = "the database file was overwritten while it was open"
    BESIDE = "a file beside it that belongs to the open database, -wal or -shm, was deleted or replaced"


class Place:
    """The file at a path, as it was when this object was made."""

    def __init__(self, file: Path) -> None:
        self.file: Path = file.absolute()
        self._node = found_node(str(self.file))

    def change(self) -> Change | None:
        """Return what happened to the file; None where it is the same.

        Raises:
            OSError: the file system does not say what is at the path.
        """
        found = _at(str(self.file))
        if found is None:
            return Change.GONE
        return None if _node(found) == self._node else Change.REPLACED


class Identity:
    """The files of one open database, as they were when it was opened.

    Args:
        file: the database's path; it may be a symbolic link.
        opened: its `os.stat` right after SQLite had opened it.
        connection: a connection in WAL mode.

    Raises:
        sqlite3.Error: the store's name cannot be read.
    """

    def __init__(self, file: Path, opened: os.stat_result, connection: sqlite3.Connection) -> None:
        stored = connection.execute(statements.STORE).fetchone()
        if stored is None:
            raise StoreCorrupt(
                f"{file}: the store has lost its name. Put a backup in its place with `timeline restore FILE`."
            )
        self.store: str = stored[0]
        self._file = str(file.absolute())
        self._inode, self._device = opened.st_ino, opened.st_dev
        real = os.path.realpath(self._file)
        self.log: str = f"{real}-wal"
        self.index: str = f"{real}-shm"
        self._log_node, self._index_node = found_node(self.log), found_node(self.index)
        self._written, self._size = -1, -1
        self._opened = (opened.st_mtime_ns, opened.st_size)
        self._content = Content(None, 0)
        self._beside_until = 0.0

    def change(self) -> Change | None:
        """Return what happened to the files; None where all are the same. Costs one call of `os.stat`, mostly.

        Raises:
            sqlite3.Error: the file makes no sense, and is as it was when it was opened; or it cannot be read now.
            OSError: the file system does not say what is at the path.
        """
        found = _at(self._file)
        if found is None:
            return Change.GONE
        if found.st_ino != self._inode or found.st_dev != self._device:
            return Change.REPLACED
        if (now := monotonic()) >= self._beside_until:
            if not (self.has_log() and self.has_index()):
                return Change.BESIDE
            self._beside_until = now + BESIDE_EVERY
        if found.st_mtime_ns != self._written or found.st_size != self._size:
            # The database file changed: by a checkpoint of its write-ahead log, if it is still the same file.
            if not self._goes_on():
                return Change.OVERWRITTEN
            self._written, self._size = found.st_mtime_ns, found.st_size
        return None

    def copied(self, last: int) -> None:
        """Record that this process has just copied everything up to a position into the database."""
        try:
            found = os.stat(self._file)  # noqa: PTH116 - as above
        except OSError:
            return  # `change` reports what happened.
        self._written, self._size = found.st_mtime_ns, found.st_size
        self._content = Content(self.store, last)

    def has_log(self) -> bool:
        """Return whether the write-ahead log that the database was opened with is still in its place."""
        return found_node(self.log) == self._log_node

    def has_index(self) -> bool:
        """Return whether the index of the write-ahead log is still in its place."""
        return found_node(self.index) == self._index_node

    def _goes_on(self) -> bool:
        """Return whether the database file is still this store's, and no older copy.

        A file that is being written to (another process checkpoints) may be inconsistent, and is read again
        until it is consistent or no longer written to.
        """
        written, since = -1, monotonic()
        while True:
            content, damage = None, None
            try:
                content = content_of(self._file)
                named = content.store == self.store or content.store is self._content.store is None
                if named and content.last >= self._content.last:
                    self._content = content
                    return True
            except sqlite3.Error as error:
                damage = error
            found = _at(self._file)
            if found is None:
                return False
            if found.st_mtime_ns != written:
                written, since = found.st_mtime_ns, monotonic()
            elif monotonic() - since >= _AT_REST:
                if damage is not None and is_out_of_reach(damage):
                    raise damage  # It was not looked into: nothing is known of it.
                if damage is None or self._is_whole_with_its_log():
                    return damage is not None
                if (found.st_mtime_ns, found.st_size) == self._opened:
                    # Nobody wrote to it since: it was damaged before, and no log is to be put away.
                    raise damage
                return False
            sleep(_PAUSE)

    def _is_whole_with_its_log(self) -> bool:
        """Return whether the file is this store's own, and a copy of the log into it was only broken off."""
        found = content_with_log(self._file) if self.has_log() else None
        return found is not None and found.store == self.store and found.last >= self._content.last


def _at(path: str) -> os.stat_result | None:
    """Return the `os.stat` of what is at a path; None where nothing is.

    Raises:
        OSError: the file system does not say: the folder may not be searched, or the disk failed.
    """
    try:
        return os.stat(path)  # noqa: PTH116 - half of what `Path.stat` costs, for each append
    except (FileNotFoundError, NotADirectoryError):
        return None


def found_node(path: str) -> Node | None:
    """Return device and inode of a file; None where none can be found."""
    try:
        return _node(os.stat(path))  # noqa: PTH116 - as above
    except OSError:
        return None


def _node(found: os.stat_result) -> Node:
    return found.st_dev, found.st_ino


def content_of(file: str) -> Content:
    """Read the database file alone, without its write-ahead log."""
    with closing(sqlite3.connect(database_uri(Path(file), "mode=ro&immutable=1"), uri=True)) as connection:
        # The first page may already hold the file's later length: see `timeline.databases`.
        connection.execute("PRAGMA writable_schema = ON")
        return content_by(connection)
