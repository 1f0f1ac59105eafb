"""Work on a private copy of a store: a temporary database of SQLite's own, a file without a name.

An examination, a rehearsal and a repair find out there what they would change. The copy goes with its connection.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from timeline.errors import StoreLocked

from ..failures import DRIVER_ERRORS, store_error
from . import statements
from .carrying import Mended, batches
from .carrying import mended as mended_copy
from .connection import know_packed
from .database import nothing

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.ports import Finding

    from .database import Database

T = TypeVar("T")

_BATCH: Final = 256 * 1024
"""Characters that a batch of a repair writes, by estimate."""
_COPIES: Final = 20
"""Copies that a repair makes at most, where others rewrite older events while it works."""


async def on_copy(database: Database, work: Callable[[sqlite3.Connection], T]) -> T:
    """Do work on a private copy of the database, which goes with it."""

    def work_and_close(copy: sqlite3.Connection) -> T:
        with closing(copy):
            return work(copy)

    return await asyncio.shield(await _making(database, work_and_close))


async def mend_by_copy(database: Database) -> list[Finding]:
    """Make the store what a copy of it is that was mended, a batch at a time; return what was found.

    A batch takes some tens of milliseconds of the writer, but for an index of SQLite's own that is damaged, which is
    made anew in one go.

    Raises:
        StoreLocked: it was changed again and again meanwhile.
    """
    await database.do(nothing)
    for _ in range(_COPIES):
        mended = await _mended(database)
        try:
            if await _carried(database, mended):
                return mended.found
        finally:
            await asyncio.to_thread(mended.close)
    raise StoreLocked(f"{database.file}: it was changed again and again while it was repaired. Repair it again.")


async def _mended(database: Database) -> Mended:
    making = await _making(database, partial(mended_copy, where=database.where))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(_close_copy)
        raise


async def _carried(database: Database, mended: Mended) -> bool:
    """Run the batches that make the store what its copy is; return whether the copy is still of the store."""
    every = batches(mended)
    batch = next(every, None)
    while batch is not None:
        reached = await database.do(partial(mended.run, batch), _BATCH)
        if reached is None:
            return False
        try:
            batch = every.send(reached)
        except StopIteration:
            batch = None
    return True


async def _making(database: Database, work: Callable[[sqlite3.Connection], T]) -> asyncio.Task[T]:
    """Begin work on a private copy of the database; the work closes it, unless it fails or keeps the copy."""
    await database.rows(statements.STORE)  # the store is open, and its file in its place
    # Cancelling the caller does not reach the copy: it must not be closed under a thread that works on it.
    done_there = asyncio.create_task(_done(database, work))
    done_there.add_done_callback(lambda done: done.cancelled() or done.exception())
    return done_there


async def _done(database: Database, work: Callable[[sqlite3.Connection], T]) -> T:
    copy = sqlite3.connect("", isolation_level=None, check_same_thread=False, factory=_Copy)
    know_packed(copy)
    try:
        await database.reader.backup(copy)
        return await asyncio.to_thread(work, copy)
    except asyncio.CancelledError:  # by the end of the event loop, which cancels every task
        with suppress(sqlite3.ProgrammingError):  # the work had just ended, and closed the copy
            copy.interrupt()
        raise
    except BaseException as error:
        copy.close()
        if isinstance(error, DRIVER_ERRORS):
            raise store_error(error, database.file) from error
        raise


class _Copy(sqlite3.Connection):
    """The connection to a copy; it closes when nobody holds it any more, if nobody closed it before.

    A thread cannot be cancelled with the task that waits for it. It goes on for a while, and SQLite crashes where a
    connection is closed under a thread that is inside: so the last one that lets go closes it.
    """

    def __del__(self) -> None:
        self.close()


def _close_copy(made: asyncio.Task[Mended]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()
