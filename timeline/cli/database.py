"""Opening the database that `--db` names: read-only where a command only reads, and never made by mistake."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from timeline import open_store
from timeline.errors import StoreError, StoreTooOld

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.ports import EventStore


@asynccontextmanager
async def reading(db: str) -> AsyncIterator[EventStore]:
    """Open a database that is there, read-only. One of an earlier version is brought up to date first.

    Raises:
        StoreError: it is not there, or cannot be read.
    """
    _check_there(db)
    try:
        store = await open_store(db, readonly=True)
    except StoreTooOld:
        async with open_store(db):
            pass
        store = await open_store(db, readonly=True)
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def only_reading(db: str) -> AsyncIterator[EventStore]:
    """Open a database that is there for somebody who must not change it in any way, an upgrade included.

    Raises:
        StoreError: it is not there, cannot be read, or was written by an earlier version.
    """
    _check_there(db)
    try:
        store = await open_store(db, readonly=True)
    except StoreTooOld as error:
        cure = f"Bring it up to date with `timeline ls{db_option(db)}`."
        raise StoreTooOld(f"{db}: an earlier version wrote this database, and here it is only read. {cure}") from error
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def changing(db: str) -> AsyncIterator[EventStore]:
    """Open a database that is there, to append to what it holds.

    Raises:
        StoreError: it is not there, or cannot be opened.
    """
    _check_there(db)
    async with open_store(db) as store:
        yield store


@asynccontextmanager
async def adding(db: str) -> AsyncIterator[EventStore]:
    """Open a database, or make it, for recordings: what a power loss takes away can be imported again.

    Raises:
        StoreError: it cannot be opened or made.
    """
    async with open_store(db, durability="normal") as store:
        yield store


def lasts(db: str) -> bool:
    """Say whether what is written to a database can be read by the next command."""
    return not db.startswith("memory://")


def db_option(db: str) -> str:
    """Return the option that names a database, for a command to type next."""
    return f" --db {quote(db)}"


def _check_there(db: str) -> None:
    """Refuse a missing file with the words of the command line."""
    if db.startswith("memory://"):
        raise StoreError(f"{db} is empty when a command begins. Name a database file with --db or TIMELINE_DB.")
    if "://" in db or Path(db).is_dir():
        return
    if not Path(db).exists() or Path(db).stat().st_size == 0:
        raise StoreError(
            f"{db}: there is no database. Make one with `timeline import FILE --db {db}`, or name another with --db."
        )
