"""The writing connection together with the file that it was opened on: nothing is answered for any other file.

Every piece of work is done first and then held against the file, before its answer goes out. A database that was
swapped is left at once, in such a way that what takes its place stays whole, and is never written to again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import uuid4

from ..failures import moved
from . import statements
from .identity import Change

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .identity import Identity

log: Final = logging.getLogger("timeline.store")
log.addHandler(logging.NullHandler())

T = TypeVar("T")


class Held:
    """A connection and the identity of its file. ``file`` names the store in errors."""

    def __init__(self, connection: sqlite3.Connection, identity: Identity, file: Path) -> None:
        self.connection = connection
        self.identity = identity
        self._file = file
        self._change: Change | None = None

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work on the connection, and return its answer if the file is still where it was.

        Raises:
            StoreMoved: it is not, now or at an earlier call. The work may be done, in the old file.
        """
        if self._change is not None:
            raise moved(self._file, self._change)
        try:
            result = work(self.connection)
        except Exception as error:
            if change := self._changed():
                raise moved(self._file, change) from error
            raise
        if change := self._changed():
            raise moved(self._file, change)
        return result

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database, as far as nobody is in the way."""
        if self._changed():
            return
        # Asked before: what another process appends meanwhile may not be copied.
        last = self._tend(statements.LAST_GIVEN)
        found = self._tend("PRAGMA wal_checkpoint(PASSIVE)")
        if last and found and found[1] == found[2]:
            self.identity.copied(last[0])

    def close(self) -> None:
        """Leave the file tidy, and close the connection."""
        if self._changed():
            return
        if self.connection.total_changes:
            self._tend("PRAGMA optimize")
            self._tend("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()

    def _changed(self) -> Change | None:
        """Return what happened to the file. When that is found, the connection is closed."""
        if self._change is None:
            self._change = self.identity.change()
            if self._change is not None:
                log.error("%s", moved(self._file, self._change))
                try:
                    self._leave(self._change)
                except OSError as error:
                    log.warning("%s: the files beside it could not be put away: %s", self._file, error)
        return self._change

    def _leave(self, change: Change) -> None:
        """Close the connection to a file that was swapped, so that it spoils nothing that is there instead.

        A write-ahead log that stays beside another database is taken for that one's own, and damages it
        (https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use). The reading
        connection is still open, so SQLite does not take this one for the last, which would copy the log by itself.
        """
        identity = self.identity
        match change:
            case Change.GONE | Change.REPLACED:
                # Into the old file, wherever it is: what was renamed holds everything that was acknowledged.
                found = self._tend("PRAGMA wal_checkpoint(TRUNCATE)")
                self.connection.close()
                if found and not found[0] and identity.has_log():
                    _remove(identity.log)
                    self._remove_index()
            case Change.OVERWRITTEN:
                # The log completes a database that is no more, and is kept, but not where SQLite would find it.
                self.connection.close()
                if identity.has_log():
                    os.replace(identity.log, f"{identity.log}.{uuid4().hex[:8]}")  # noqa: PTH105 - as all of these
                    self._remove_index()
            case Change.BESIDE:
                # A log that is there is read by the next to open the database. One that is gone is copied while there
                # is somebody who has it, unless others have begun another one.
                if not identity.has_log() and not _has_content(identity.log):
                    self._tend("PRAGMA wal_checkpoint(PASSIVE)")
                self.connection.close()

    def _remove_index(self) -> None:
        if self.identity.has_index():
            _remove(self.identity.index)

    def _tend(self, statement: str) -> tuple[int, ...] | None:
        """Do housekeeping; return SQLite's answer: of a checkpoint ``(busy, pages in the log, pages copied)``.

        When it fails, nothing is lost, and the next append or open meets the cause (a full disk).
        """
        try:
            rows = self.connection.execute(statement).fetchall()
        except sqlite3.Error as error:
            log.warning("%s: %s failed: %s", self._file, statement, error)
            return None
        return rows[0] if rows else None


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - as above


def _has_content(path: str) -> bool:
    return os.path.exists(path) and os.path.getsize(path) > 0  # noqa: PTH110, PTH202 - as above
