"""Bind the writing connection to the file that it was opened on, so that no answer comes from another file.

Every piece of work is done first and the file is checked after it, before its answer goes out. If the file was swapped,
close the connection without damaging the file now at the path, and never write again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import suppress
from traceback import clear_frames
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import uuid4

from timeline.errors import StoreError

from ..failures import DRIVER_ERRORS, Unseen, moved, store_error, unseen
from . import statements
from .identity import Change

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .identity import Identity
    from .turns import Turn

log: Final = logging.getLogger("timeline.store")
log.addHandler(logging.NullHandler())

T = TypeVar("T")


class BoundConnection:
    """A connection, the identity of its file and its turns at it. ``file`` names the store in errors."""

    def __init__(self, connection: sqlite3.Connection, identity: Identity, turn: Turn, file: Path) -> None:
        self.connection = connection
        self.identity = identity
        self._turn = turn
        self._file = file
        self._change: Change | None = None

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work that writes, in a turn of its own; see `run`.

        Raises:
            StoreLocked: the turn did not come in time. Nothing was done.
            StoreMoved: as for `run`.
        """
        with self._turn:
            return self.run(work)

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work on the connection, and return its answer if the file is still the same.

        Raises:
            StoreMoved: the file was swapped, before now or at an earlier call. The work may be done, in the old file.
            Unseen: the work is done, and nobody can see now whether the file is still the same.
        """
        if self._change is not None:
            raise moved(self._file, self._change)
        try:
            result = work(self.connection)
        except Exception as error:
            # A cursor that the error's frames hold goes on reading: where a read failed, SQLite would answer all that
            # comes with that failure, and copies no log meanwhile.
            clear_frames(error.__traceback__)
            change = None
            with suppress(StoreError):  # What the work met says more than a file that cannot be looked at.
                change = self._changed()
            if change is not None:
                raise moved(self._file, change) from error
            raise
        # Check after the work, not before: the file may be swapped while the work runs.
        try:
            change = self._changed()
        except StoreError as error:
            raise Unseen(result, error) from error
        if change is not None:
            raise moved(self._file, change)
        return result

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database, as far as no other connection blocks it."""
        try:
            with self._turn:
                self._copy_log()
        except StoreError as late:
            log.warning("%s", late)

    def _copy_log(self) -> None:
        if self._changed():
            return
        # Read before the checkpoint, which may miss events that another process appends meanwhile.
        last = self._tend(statements.LAST_GIVEN)
        found = self._tend("PRAGMA wal_checkpoint(PASSIVE)")
        if last and found and found[1] == found[2]:
            self.identity.copied(last[0])

    def close(self) -> None:
        """Leave the file tidy, and close the connection.

        If the turn for that does not come, another connection is open, which will tidy up: SQLite copies the log only
        when the last one is closed.
        """
        try:
            with self._turn:
                if not self._changed() and self.connection.total_changes:
                    self._tend("PRAGMA optimize")
                    self._tend("PRAGMA wal_checkpoint(TRUNCATE)")
                self.connection.close()
        except StoreError as late:
            log.warning("%s", late)
            self.connection.close()
        self._turn.close()

    def _changed(self) -> Change | None:
        """Return the change to the file, if there is one; the connection is closed then.

        Raises:
            StoreCorrupt: the file is damaged.
            StoreError: it cannot be looked at now.
        """
        if self._change is None:
            try:
                self._change = self.identity.change()
            except DRIVER_ERRORS as damage:
                raise store_error(damage, self._file) from damage
            except OSError as error:
                raise unseen(self._file, error) from error
            if self._change is not None:
                log.error("%s", moved(self._file, self._change))
                try:
                    # In a turn: what is at the path now may be opened by another process at this moment.
                    with self._turn:
                        self._leave(self._change)
                except (OSError, StoreError) as error:
                    log.warning("%s: the files beside it could not be put away: %s", self._file, error)
        return self._change

    def _leave(self, change: Change) -> None:
        """Close the connection to a swapped file without damaging the file now at its path.

        SQLite takes a write-ahead log beside another database for that database's own, and damages it
        (https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use). The reading
        connection is still open, so SQLite does not take this connection for the last, which would copy the log by
        itself.
        """
        identity = self.identity
        match change:
            case Change.GONE | Change.REPLACED:
                # Into the old file, wherever it is: a renamed file then holds every acknowledged append.
                found = self._tend("PRAGMA wal_checkpoint(TRUNCATE)")
                self.connection.close()
                if found and not found[0] and identity.has_log():
                    _remove(identity.log)
                    self._remove_index()
            case Change.OVERWRITTEN:
                # The log completes a database that is gone; keep it, but where SQLite does not find it.
                self.connection.close()
                if identity.has_log():
                    os.replace(identity.log, f"{identity.log}.{uuid4().hex[:8]}")  # noqa: PTH105 - as all of these
                    self._remove_index()
            case Change.BESIDE:
                # A log still at its path is read by the next process. If it was deleted and no other was begun, copy it
                # now, while we have it open.
                if not identity.has_log() and not _has_content(identity.log):
                    self._tend("PRAGMA wal_checkpoint(PASSIVE)")
                self.connection.close()

    def _remove_index(self) -> None:
        if self.identity.has_index():
            _remove(self.identity.index)

    def _tend(self, statement: str) -> tuple[int, ...] | None:
        """Run a housekeeping statement and return SQLite's answer.

        A checkpoint's answer is ``(busy, pages in the log, pages copied)``. A failure loses nothing, and the next
        append or open meets its cause (a full disk).
        """
        try:
            rows = self.connection.execute(statement).fetchall()
        except sqlite3.Error as error:
            log.warning("%s: %s failed: %s", self._file, statement, error)
            return None
        return rows[0] if rows else None


class Guest(BoundConnection):
    """A connection beside the one that owns the file, which tidies up when it is closed."""

    def close(self) -> None:
        """Close the connection, in a turn if that comes."""
        try:
            with self._turn:
                self.connection.close()
        except StoreError as late:
            log.warning("%s", late)
            self.connection.close()
        self._turn.close()


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - as above


def _has_content(path: str) -> bool:
    return os.path.exists(path) and os.path.getsize(path) > 0  # noqa: PTH110, PTH202 - as above
