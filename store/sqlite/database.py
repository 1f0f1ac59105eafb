"""The connections of a SQLite store: one thread writes, an aiosqlite connection reads; in WAL mode neither waits.

Every read is one statement whose rows are all fetched before the first is returned: no lock or cursor is ever held
between two pages. A file that is swapped while it is open is left at once, by both.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from contextlib import suppress
from functools import cache, partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Self, TypeVar

from timeline.errors import StoreError, StoreMoved, StoreReadOnly

from ..failures import DRIVER_ERRORS, Unseen, moved, reading_only, store_error, unseen
from ..open_database import OpenDatabase
from .connection import check_not_inherited
from .files import advice, check_working_directory, connect_writer, exists, started
from .holding import log
from .identity import Place
from .reading import open_alone, open_beside
from .writer import Writer

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    import aiosqlite

    from ..codec import Row
    from ..durability import Durability
    from .identity import Change

T = TypeVar("T")


class Database(OpenDatabase):
    """One store's connections, which the parts of the store share.

    Attributes:
        file: the database.
        where: names the store in errors.
        advice: warnings about this store and the SQLite library in use; mostly empty.
        place: the file as it was when it was opened.
        busy_timeout: seconds to wait for another process that is writing.
        writer: the queue of what writes; None where nothing may be written.
        reader: the connection that reads.
    """

    def __init__(  # noqa: PLR0917 - made by `open` alone
        self,
        file: Path,
        writer: Writer | None,
        reader: aiosqlite.Connection,
        place: Place,
        busy_timeout: float,
        advice: list[str],
    ) -> None:
        super().__init__(str(file))
        self.file = file
        self.advice: list[str] = advice
        self.place: Place = place
        self.busy_timeout: float = busy_timeout
        self.writer: Writer | None = writer
        self.reader: aiosqlite.Connection = reader
        self._moved: str | None = None
        """The error of a store whose file was swapped while it was open."""

    @classmethod
    async def open(cls, file: Path, durability: Durability, busy_timeout: float, *, readonly: bool) -> Self:
        """Open the connections of a store; see `SQLiteStore.open`."""
        check_working_directory(file)
        check_not_inherited(file)
        known = advice()
        writer = None
        if not readonly:
            try:
                writer = await started(Writer(partial(connect_writer, file, durability, busy_timeout), str(file)))
            except StoreReadOnly as refusal:
                if not exists(file, readonly=False):
                    raise
                known.append(str(refusal))
        try:
            place = Place(file)
            if writer is None:
                reader = await open_alone(file, busy_timeout)
            else:
                reader = await open_beside(file, busy_timeout, writer.opened.result())
        except BaseException:
            if writer is not None:
                writer.stop()
            raise
        for advised in known:
            _advise_once(advised)
        return cls(file, writer, reader, place, busy_timeout, known)

    async def rows(self, statement: str, *parameters: Any) -> list[Row]:
        """Run one statement that reads, with parameters by place, and return its rows; see `fetched`."""
        return await self.fetched(statement, parameters)

    async def fetched(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[Row]:
        """Run one statement that reads, and return its rows.

        A text that UTF-8 cannot encode is in no database: there are no rows.

        Raises:
            StoreMoved: the file was swapped.
            StoreError: the database cannot be read.
        """
        self.check_open()
        if self._moved is None and (change := self._change()):
            await self.leave(moved(self.file, change))
        if self._moved is not None:
            raise StoreMoved(self._moved)
        try:
            return [tuple(row) for row in await self.reader.execute_fetchall(statement, parameters)]
        except DRIVER_ERRORS as error:
            raise store_error(error, self.file) from error
        except UnicodeEncodeError:
            return []

    def _change(self) -> Change | None:
        try:
            return self.place.change()
        except OSError as error:
            raise unseen(self.file, error) from error

    async def do(self, work: Callable[[sqlite3.Connection], T], size: int = 0) -> T:
        """Do work on the writing connection; ``size`` is the number of characters that it writes, 0 of what only reads.

        Work that writes has its turn among the processes that have the file open: it is in nobody's way then.

        Raises:
            StoreReadOnly: the store is open for reading only.
            StoreError: the database failed; nothing was written.
        """
        return await self.written(self.check_writable().submit(work, size))

    async def written(self, job: Future[T]) -> T:
        """Wait for a job of a writer, and translate its errors."""
        try:
            return await asyncio.wrap_future(job)
        except DRIVER_ERRORS as error:
            raise store_error(error, self.file) from error
        except Unseen as error:
            raise type(error.problem)(f"{error} What was asked for is done.") from error
        except StoreMoved as error:
            await self.leave(error)
            raise

    async def leave(self, error: StoreMoved) -> None:
        """Close the connections to a swapped file, so that it does not block a store that is opened in its place."""
        if self._moved is None:
            self._moved = str(error)
            await self.reader.close()

    def check_writable(self) -> Writer:
        """Return the writer of a store that is open, and not for reading only.

        Raises:
            StoreReadOnly: it is.
        """
        self.check_open()
        if self.writer is None:
            raise reading_only(self.file)
        return self.writer

    async def _close(self) -> None:
        if self.writer is not None:
            # The writer leaves a swapped file first, while the reader still has it open: see `Held`.
            with suppress(StoreError):
                await self.written(self.writer.submit(nothing))
        # Close the reader first: the last connection to close removes the write-ahead log.
        try:
            await self.reader.close()
        finally:
            if self.writer is not None:
                self.writer.stop()
                await asyncio.wrap_future(self.writer.stopped)

    def __del__(self) -> None:
        if self._closing is None and not self._home.forked:
            if not sys.is_finalizing():  # no thread runs any more, and none can be started
                _let_go(self.writer, self.reader)
            warnings.warn(f"{self.file}: the store was not closed. Use `async with`.", ResourceWarning, 2, self)


def _let_go(writer: Writer | None, reader: aiosqlite.Connection) -> None:
    """Have connections that nobody closed closed, in the order of a close, and their threads ended.

    Not in this thread: aiosqlite notifies the event loop of the thread that stops a connection, and this one's may be
    closed by then.
    """
    if writer is None:
        Thread(target=reader.stop, daemon=True).start()
    else:
        writer.submit(nothing).add_done_callback(lambda _: reader.stop())
        writer.stop()


def nothing(_: sqlite3.Connection) -> None:
    """Ask the writer only whether the file is still there."""


@cache
def _advise_once(advised: str) -> None:
    log.warning("%s", advised)
