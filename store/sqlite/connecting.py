"""The two connections of a SQLite store: a thread that writes, and an aiosqlite connection that reads."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

import aiosqlite

from ..failures import DRIVER_ERRORS, moved, store_error
from ..identity import Change
from . import statements
from .files import ReadConnection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .writer import Writer

T = TypeVar("T")


async def started(writer: Writer) -> Writer:
    """Wait until a writer has its connection; stop it where that fails."""
    try:
        await asyncio.wrap_future(writer.opened)
    except BaseException:
        writer.stop()
        raise
    return writer


async def connect_reader(address: str, file: Path, busy_timeout: float, name: str | None) -> aiosqlite.Connection:
    """Open the connection that reads.

    Args:
        address: the file's URI, of `files.reading_uri`.
        file: names the store in errors.
        busy_timeout: seconds to wait for another process.
        name: the name of the store that the writer has open; None: there is no writer.

    Raises:
        StoreMoved: the file is another store's than the writer's.
        StoreError: what the database says.
    """
    connection = _in_daemon(
        partial(
            aiosqlite.connect,
            address,
            uri=True,
            isolation_level=None,
            timeout=busy_timeout,
            factory=ReadConnection,
        )
    )
    try:
        await connection
        # Something is read at once, so that SQLite holds the file for this connection as long as it is open.
        await _check_name(connection, file, name)
    except BaseException as error:
        await connection.close()
        if isinstance(error, DRIVER_ERRORS):
            raise store_error(error, file) from error
        raise
    return connection


async def _check_name(connection: aiosqlite.Connection, file: Path, name: str | None) -> None:
    [(found,)] = await connection.execute_fetchall(statements.STORE)
    if name not in {None, found}:
        raise moved(file, Change.REPLACED)


def _in_daemon(build: Callable[[], T]) -> T:
    """Build an object in a daemon thread: the thread that the object makes for itself is then a daemon too.

    An aiosqlite connection that nobody closes would otherwise keep the interpreter from exiting.
    """
    built: Future[T] = Future()
    Thread(target=lambda: built.set_result(build()), daemon=True).start()
    return built.result()
