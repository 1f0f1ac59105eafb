"""Copy a store while programs use it, and put a copy in the place of a store's file.

A copy of the file alone lacks what is in the write-ahead log. If a copy is put beside an old log, SQLite takes it for
the database of that log, and destroys it (https://sqlite.org/howtocorrupt.html). Both functions read through SQLite,
write a private draft into the target folder, check the draft to its end, and give it its name in one step.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.databases import database_uri, is_database
from timeline.errors import NotAStore, StoreCorrupt, StoreError

from ..failures import DRIVER_ERRORS, hard_linked, in_use, store_error, unwritable
from ..file_calls import fcntl
from ..private_files import make_private, sync_file, sync_names, take_over_mode
from . import statements
from .connection import Connection, check_not_inherited, is_open_here
from .copying import PATIENCE, Holding, copy_store, draft_beside, read_whole
from .files import exists
from .identity import content_of
from .reading import connect_alone
from .turns import Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHARED: Final = (510, 0x4000_0002)
"""Length and start of a range of bytes; every open connection of SQLite in WAL mode locks some of them."""


class Backup(NamedTuple):
    """A backup that was written: its file, and what it holds."""

    file: Path
    holds: Holding


class Restored(NamedTuple):
    """What a restore does, or did.

    Attributes:
        file: the database.
        holds: what the backup holds.
        before: what the database held; None where there was none, or none that reads.
        problem: why what was there does not read; empty otherwise.
        loses: the conversations that end earlier in the backup, with both versions; 0 for one that it lacks.
        done: whether it was done; False for a dry run.
        kept: the files that were replaced, under the names that they have now.
        returns: the conversations of which the backup holds content that was ``erased`` or ``redacted`` since.
    """

    file: Path
    holds: Holding
    before: Holding | None
    problem: str
    loses: dict[str, tuple[int, int]]
    done: bool
    kept: list[Path]
    returns: dict[str, str]


async def back_up(source: Path, to: Path | None, *, force: bool) -> Backup:
    """Copy a store into a file; see `timeline.store.backup`."""
    exists(source, readonly=True)
    target = to if to is not None else _named_by_time(source, "backup")
    _check_target(source, target, force=force)
    try:
        with draft_beside(target, "backup") as draft:
            await asyncio.to_thread(copy_store, source, draft)
            holds = await read_whole(draft, str(source))
            _check_target(source, target, force=force)
            await asyncio.to_thread(_give_name, draft, target)
    except OSError as error:
        raise _unwritable(target, error) from error
    return Backup(target, holds)


async def put_back(from_: Path, database: Path, *, yes: bool) -> Restored:
    """Put a copy in the place of a store's file; see `timeline.store.restore`."""
    file = _real(database)
    exists(from_, readonly=True)
    _check_replaceable(from_, file)
    try:
        with draft_beside(file, "restore") as draft:
            await asyncio.to_thread(copy_store, from_, draft)
            holds = await read_whole(draft, str(from_))
            before, problem = await asyncio.to_thread(_glance, file)
            after = holds.versions
            lost = {id_: (version, after.get(id_, 0)) for id_, version in (before.versions if before else {}).items()}
            loses = {id_: versions for id_, versions in lost.items() if versions[1] < versions[0]}
            returns = await asyncio.to_thread(_returning, file, holds.versions)
            planned = Restored(file, holds, before, problem, loses, done=False, kept=[], returns=returns)
            if not yes:
                return planned
            # Cancelling the caller does not reach the files: what has begun is finished.
            work = asyncio.create_task(asyncio.to_thread(_replace, file, draft, holds))
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
            try:
                kept = await asyncio.shield(work)
            except asyncio.CancelledError:
                await asyncio.wait([work])
                raise
    except OSError as error:
        raise _unwritable(file, error) from error
    return planned._replace(done=True, kept=kept)


def _real(file: Path) -> Path:
    """Return the database to which a path leads: its side files are beside it, and not beside a link to it."""
    return Path(os.path.realpath(file))


def _named_by_time(file: Path, what: str) -> Path:
    stem = f"{file.name}.{what}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    names = (file.with_name(stem if number == 1 else f"{stem}-{number}") for number in range(1, 1_000))
    return next(name for name in names if not name.exists())


def _check_target(source: Path, target: Path, *, force: bool) -> None:
    if target.is_dir() or not target.parent.is_dir():
        raise StoreError(f"{target}: it names no file in a folder that exists. Name a file to write.")
    if target.exists() and target.samefile(source):
        raise StoreError(f"{target}: this is the database itself. Name another file to write.")
    if target.exists() and not target.is_file():
        raise StoreError(f"{target}: it is a device or a pipe, which a backup never replaces. Name a file to write.")
    if target.exists() and not force:
        raise StoreError(f"{target}: the file exists already. Name another one, or replace it with --force.")
    for ending in ("-wal", "-shm"):
        if (beside := target.with_name(target.name + ending)).exists():
            raise StoreError(
                f"{beside}: it belongs to a database that is open, or was not closed, and would spoil a backup of that "
                "name. Name another file to write."
            )


def _give_name(draft: Path, target: Path) -> None:
    draft.replace(target)
    try:
        sync_file(target)
    except OSError as error:
        raise StoreError(
            f"{target}: the backup is there, but the system does not say whether the disk has it ({error.strerror}). "
            "Check the disk, and make it again with --force."
        ) from error


def _unwritable(file: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{error.filename or file}: {error.strerror or error}. Nothing was replaced. Check the folder and the disk."
    )


def _check_replaceable(source: Path, file: Path) -> None:
    """Check that a file is a store, damaged or not, or nothing at all."""
    if file.is_dir() or not file.parent.is_dir():
        raise StoreError(f"{file}: it names no file in a folder that exists. Name the database file.")
    if not file.exists():
        return
    if not file.is_file():
        raise StoreError(f"{file}: it is a device or a pipe, which a restore never replaces. Name the database file.")
    if file.samefile(source):
        raise StoreError(f"{file}: this is the backup itself. Name the database to replace with --db.")
    if file.stat().st_nlink > 1:
        raise hard_linked(file)
    try:
        exists(file, readonly=False)
    except NotAStore:
        if is_database(file):
            raise
    except StoreCorrupt:
        return  # it is to be replaced because it is damaged


def _glance(file: Path) -> tuple[Holding | None, str]:
    """Return what the store at a path holds, or why it cannot be read; no event is read."""
    if not file.exists() or not file.stat().st_size:
        return None, ""
    try:
        with closing(connect_alone(file, PATIENCE)) as connection:
            versions = dict(connection.execute("SELECT id, version FROM conversations"))
            ((events,),) = connection.execute("SELECT count(*) FROM events")
            ((position,),) = connection.execute(statements.LAST_GIVEN)
            ((schema,),) = connection.execute(statements.SCHEMA_VERSION)
            return Holding(None, versions, events, position, schema, file.stat().st_size), ""
    except DRIVER_ERRORS as error:
        return None, str(store_error(error, file))
    except StoreError as error:
        return None, str(error)


def _replace(file: Path, draft: Path, holds: Holding) -> list[Path]:
    """Put a checked draft in the place of a database; return the names of what was replaced.

    With these steps, in this order, a kill leaves the old store or the new one:

    1. The files are copied aside.
    2. SQLite moves the old log into the old database, so that the log is no part of the store any more.
    3. The log is removed.
    4. The draft gets the name.
    """
    check_not_inherited(file)
    try:
        turn = Turn(file, PATIENCE)
    except OSError as error:
        raise unwritable(error, file) from error
    try:
        with turn:
            with _alone(file):
                kept = _keep(file)
            _move_log(file)
            take_over_mode(draft, file)
            with _alone(file):
                for ending in ("-wal", "-shm"):
                    file.with_name(file.name + ending).unlink(missing_ok=True)
                sync_names(file.parent)  # Else a power loss may leave the new database beside the old log.
                draft.replace(file)
            _check_replaced(file, holds, kept)
    finally:
        turn.close()
    return kept


def _check_replaced(file: Path, holds: Holding, kept: list[Path]) -> None:
    """Check that the file with the name of the database is now on disk, and is the one that was restored.

    Raises:
        StoreCorrupt: it reads as another one.
        StoreError: the disk does not say.
    """
    was = f"what was replaced is {', '.join(map(str, kept)) or 'nothing'}"
    try:
        sync_file(file)
        found = content_of(str(file))
    except (OSError, *DRIVER_ERRORS) as error:
        raise StoreError(
            f"{file}: the backup is in its place, but the system does not confirm that it is on the disk ({error}). "
            f"Check the disk, and restore again; {was}."
        ) from error
    if (found.store, found.last) != (holds.store, holds.position):
        raise StoreCorrupt(f"{file}: the restored file reads differently from what was written. Check the disk; {was}.")


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Hold the lock that SQLite takes to be alone with a database.

    Raises:
        StoreLocked: a connection has it open.
    """
    if is_open_here(file):
        raise in_use(file)
    if fcntl is None or not file.exists():  # Windows lets nobody replace an open file
        yield
        return
    # No connection of this process has the file open, so no lock is dropped by the close.
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, *_SHARED)
        except BlockingIOError:
            raise in_use(file) from None
        yield
    finally:
        os.close(descriptor)


def _keep(file: Path) -> list[Path]:
    """Copy a database and its log beside them, as they are; return the names of the copies."""
    if not any(file.with_name(file.name + ending).exists() for ending in ("", "-wal")):
        return []
    name = _named_by_time(file, "replaced")
    kept = []
    for ending in ("-wal", ""):  # the database last: where it is, its log is
        old, copy = file.with_name(file.name + ending), name.with_name(name.name + ending)
        if old.exists():
            make_private(copy)
            shutil.copyfile(old, copy)
            sync_file(copy)
            kept.append(copy)
    return kept[::-1]


def _move_log(file: Path) -> None:
    """Let SQLite move an old log into its database. A log that it cannot read belongs to no readable store.

    Raises:
        StoreLocked: a program has just opened the database.
    """
    if not file.exists() or not file.with_name(f"{file.name}-wal").exists():
        return
    connect = partial(sqlite3.connect, uri=True, isolation_level=None, timeout=PATIENCE, factory=Connection)
    try:
        with closing(connect(database_uri(file, "mode=rw"))) as connection:
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except DRIVER_ERRORS as error:
        problem = store_error(error, file)
        if not isinstance(problem, StoreCorrupt):
            raise problem from error
    else:
        if busy:
            raise in_use(file)


def _returning(file: Path, versions: Mapping[str, int]) -> dict[str, str]:
    """Return the conversations of a copy that the store has ``erased`` since, or of which it has ``redacted`` content.

    Args:
        file: the store; for one that cannot be read, none are returned.
        versions: the conversations of the copy with their versions.
    """
    if not file.exists() or not file.stat().st_size:
        return {}
    found: dict[str, str] = {}
    try:
        with closing(connect_alone(file, PATIENCE)) as connection:
            # Stores of earlier versions keep no list of erased conversations.
            lists_erased = connection.execute(statements.HAS_ERASED).fetchone() is not None
            for id_, version in versions.items():
                if lists_erased and connection.execute(statements.ERASED, (id_,)).fetchone():
                    found[id_] = "erased"
                elif connection.execute(statements.REDACTED_BEHIND, (id_, version)).fetchone():
                    found[id_] = "redacted"
    except (*DRIVER_ERRORS, StoreError):
        return {}
    return found
