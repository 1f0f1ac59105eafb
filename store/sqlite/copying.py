"""Copy a store into a file of its own, and read a copy to its end.

The copy is made by SQLite's backup in one step: one read transaction, in which appends of other connections go on. What
is in the write-ahead log is in the copy; the copy has no log.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from timeline.databases import database_uri
from timeline.errors import StoreCorrupt, StoreTooOld

from ..failures import DRIVER_ERRORS, store_error
from ..migrations import schema_version
from ..private_files import make_private, sync_file
from .connection import check_not_inherited
from .holding import log
from .identity import content_of
from .reading import connect_alone
from .store import SQLiteStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .broken_off import Content

PATIENCE: Final = 5.0
"""Seconds to wait for a turn at a store."""
_BESIDE: Final = ("-wal", "-shm", "-journal", "-lock", "-queue")
_PAGE: Final = 2_000
_OF_WRITING: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
"""Error codes that are about the file that is written: it may be on another disk."""


class Holding(NamedTuple):
    """What a store holds.

    Attributes:
        store: its name; a copy has that of the original.
        versions: its conversations with their versions.
        events: how many events it holds.
        position: the highest position that it gave to an event.
        schema: the number of its schema.
        size: bytes of the database file.
    """

    store: str | None
    versions: dict[str, int]
    events: int
    position: int
    schema: int
    size: int


class _Marks(NamedTuple):
    """What the file itself says."""

    content: Content
    schema: int
    size: int


@contextmanager
def draft_beside(file: Path, purpose: str) -> Iterator[Path]:
    """Yield a private, empty file in a file's folder; remove it, and what is beside it, unless it was moved away."""
    draft = file.with_name(f".{file.name}.{uuid4().hex[:8]}.{purpose}")
    make_private(draft)
    try:
        yield draft
    finally:
        for ending in ("", *_BESIDE):
            _remove(draft.with_name(draft.name + ending))


def _remove(left: Path) -> None:
    """Remove what is left of a draft; a failure of that does not hide the result or the error before it."""
    try:
        left.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s is left over, and may be deleted: %s", left, error.strerror)


def copy_store(source: Path, draft: Path) -> None:
    """Copy a store, whatever programs do with it meanwhile, into an empty file; return when the disk has the copy.

    Raises:
        StoreCorrupt: the database is damaged, or so is the copy.
        StoreError: the store cannot be read, or the copy cannot be written.
    """
    check_not_inherited(source)
    with closing(connect_alone(source, PATIENCE)) as connection:
        try:
            with closing(sqlite3.connect(database_uri(draft, "mode=rw"), uri=True, isolation_level=None)) as copy:
                copy.execute("PRAGMA journal_mode = OFF")  # a draft that is not finished is thrown away
                copy.execute("PRAGMA synchronous = OFF")
                connection.backup(copy)
        except DRIVER_ERRORS as error:
            of_copy = getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_WRITING
            raise store_error(error, draft if of_copy else source) from error
    sync_file(draft)


async def read_whole(file: Path, where: str) -> Holding:
    """Read everything in a private copy, and check it; ``where`` names the copy in errors.

    Raises:
        StoreCorrupt: a page, an index or an event of it is damaged.
        StoreError: it cannot be read.
    """
    await asyncio.to_thread(_check_pages, file, where)
    try:
        return await _read(file)
    except StoreTooOld:
        # Read as this version reads it, by a copy of its own: the copy stays one for the version that wrote it.
        with draft_beside(file, "reading") as newer:
            await asyncio.to_thread(shutil.copyfile, file, newer)
            await (await SQLiteStore.open(newer)).aclose()
            found = await _read(newer)
        marks = await asyncio.to_thread(_marks, file)
        return found._replace(schema=marks.schema, size=marks.size)


async def _read(file: Path) -> Holding:
    events = 0
    async with await SQLiteStore.open(file, readonly=True) as store:
        versions = {info.id: info.version async for info in store.conversations()}
        async for _ in store.read_all(page=_PAGE):
            events += 1
    marks = await asyncio.to_thread(_marks, file)
    return Holding(marks.content.store, versions, events, marks.content.last, marks.schema, marks.size)


def _check_pages(file: Path, where: str) -> None:
    try:
        with closing(sqlite3.connect(database_uri(file, "mode=ro&immutable=1"), uri=True)) as connection:
            problems = [problem for (problem,) in connection.execute("PRAGMA integrity_check(1)")]
    except DRIVER_ERRORS as error:
        raise store_error(error, file) from error
    if problems != ["ok"]:
        raise StoreCorrupt(
            f"{where}: the database is damaged ({problems[0]}). `timeline verify` says what still reads, `timeline "
            "export --all` writes it; `timeline restore` puts a backup in its place."
        )


def _marks(file: Path) -> _Marks:
    try:
        with closing(sqlite3.connect(database_uri(file, "mode=ro&immutable=1"), uri=True)) as connection:
            return _Marks(content_of(str(file)), schema_version(connection, file), file.stat().st_size)
    except DRIVER_ERRORS as error:
        raise store_error(error, file) from error
