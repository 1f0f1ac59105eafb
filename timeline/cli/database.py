"""Open the database that `--db` names: read-only for commands that only read, and never created by mistake.

A file of an earlier version is upgraded where it is opened. A schema on a server belongs to others, too: only `migrate`
and the commands that would make a new store change it.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from timeline import open_store
from timeline.errors import ConversationNotFound, StoreError, StoreTooOld
from timeline.store.addresses import check_address, is_server, with_setting, without_password

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.ports import EventStore

_MOST_NEAR: Final = 3
_MOST_LISTED: Final = 20_000
"""Conversations that are looked at: an unknown id is answered within a second in a store of any size."""
_MOST_COMPARED: Final = 1_000
"""Ids that are compared letter by letter, which takes long."""


@asynccontextmanager
async def reading(db: str, named_by: str = "--db") -> AsyncIterator[EventStore]:
    """Open an existing database read-only. A file of an earlier version is upgraded first.

    Args:
        db: the database.
        named_by: the option that names it, for an error.
    """
    check_there(db, named_by)
    try:
        store = await open_store(db, readonly=True)
    except StoreTooOld:
        if is_server(db):
            raise
        async with open_store(db):
            pass
        store = await open_store(db, readonly=True)
    try:
        async with _near_ids_named(store):
            yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def only_reading(db: str) -> AsyncIterator[EventStore]:
    """Open an existing database read-only, without upgrading it. `timeline mcp` must not change the database."""
    check_there(db)
    try:
        store = await open_store(db, readonly=True)
    except StoreTooOld as error:
        if is_server(db):
            raise
        cure = f"Bring it up to date with `timeline ls{db_option(db)}`."
        raise StoreTooOld(f"{db}: an earlier version wrote this database, and `mcp` only reads. {cure}") from error
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def changing(db: str) -> AsyncIterator[EventStore]:
    """Open an existing database to append to its conversations."""
    check_there(db)
    async with open_store(with_setting(db, "migrate", "no") if is_server(db) else db) as store, _near_ids_named(store):
        yield store


@asynccontextmanager
async def _near_ids_named(store: EventStore) -> AsyncIterator[None]:
    """Name the ids nearest to one that the store does not have."""
    try:
        yield
    except ConversationNotFound as error:
        raise ConversationNotFound(error.conversation, await _near_ids(store, error.conversation)) from None


@asynccontextmanager
async def adding(db: str) -> AsyncIterator[EventStore]:
    """Open or create a database for recordings.

    Commits are not flushed to disk one by one: events lost by a power failure can be imported again.
    """
    async with open_store(db, durability="normal") as store:
        yield store


def lasts(db: str) -> bool:
    """Return whether the next command can read what this one writes; a database in memory ends with the command."""
    return not db.startswith("memory://")


def db_option(db: str) -> str:
    """Return the `--db` option for a suggested command; none where it would hold a password that TIMELINE_DB holds."""
    shown = without_password(db)
    return "" if shown != db and os.environ.get("TIMELINE_DB") == db else f" --db {quote(shown)}"


def check_there(db: str, named_by: str = "--db") -> None:
    """Refuse a missing database with an error that names the command to make one.

    Args:
        db: the database.
        named_by: the option that names it.

    Raises:
        StoreError: it is missing, or a mistyped URL of a server.
    """
    check_address(db)
    if db.startswith("memory://"):
        or_by = " or TIMELINE_DB" if named_by == "--db" else ""
        raise StoreError(f"{db} is empty whenever a command begins. Name a database file with {named_by}{or_by}.")
    if "://" in db or Path(db).is_dir():
        return
    if not Path(db).exists() or Path(db).stat().st_size == 0:
        what = "the file is empty, so there is no database in it" if Path(db).exists() else "there is no database"
        make = f"`timeline import FILE --db {quote(db)}`"
        raise StoreError(f"{db}: {what}. Make one with {make}, or name another with {named_by}.")


async def _near_ids(store: EventStore, unknown: str) -> list[str]:
    """Return ids that begin with an unknown one, or else those that are most like it; the likeliest first."""
    begun: list[str] = []
    ids: list[str] = []
    async for info in store.conversations():
        if len(ids) == _MOST_LISTED or len(begun) == _MOST_NEAR:
            break
        ids.append(info.id)
        if unknown and info.id.startswith(unknown):
            begun.append(info.id)
    return begun or get_close_matches(unknown, ids[:_MOST_COMPARED], n=_MOST_NEAR, cutoff=0.75)
