# ruff: noqa: S608 - the texts are put together from constants and checked names, never from input
"""The files of a store's tables: how large they are, and how they are rewritten without what was removed.

A row that is overwritten or deleted stays in its table's file, unseen: VACUUM frees its place, and leaves the bytes
there until something is written over them. So the tables are rewritten, each behind a lock that lets nobody read or
append meanwhile. A table that is large is not, since agents would wait: the owner gets the command for a quiet time.

A rewriting keeps what some transaction, however old, may still see. So it begins only once no such one is left.
"""

from __future__ import annotations

import asyncio
import json
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

import asyncpg

from timeline.errors import StoreCorrupt, StoreLocked, StoreReadOnly

from ..settings import DUE
from .failures import DRIVER_ERRORS, store_error
from .statements import OWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .connections import Connection
    from .database import Database

CONTENT: Final = (
    "conversations",
    "events",
    "snapshots",
    "bases",
    "waypoints",
    "stored_values",
    "compactions",
    "digest_entries",
    "facts",
    "search_index",
)
"""The tables that hold what was said, or what was made of it."""
AT_ONCE: Final = 256 * 1024 * 1024
"""Bytes of a table that is rewritten while agents wait: about a second's work, and some more on a slow disk. That of
the words takes several seconds, for its index; searches wait for it, and no append does."""
FILES: Final = "files"
"""The setting that holds the numbers of the files which the last removal left its bytes in."""
_PATIENCE: Final = 5.0
"""Seconds to wait for transactions that began before a removal."""
_LOCK_PATIENCE: Final = "1s"
"""How long to wait for the lock of a table: appends wait behind that."""
_TRIES: Final = 5
_PAUSE: Final = 0.1
_OURS: Final = (
    "WITH RECURSIVE ours (oid) AS (SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = $1 AND c.relname = ANY($2::text[])"
    " UNION ALL SELECT i.inhrelid FROM ours JOIN pg_inherits AS i ON i.inhparent = ours.oid)"
)
_SIZE: Final = (
    "SELECT coalesce(sum(pg_relation_size(r.oid)), 0)::bigint"
    " FROM {} JOIN pg_class AS c ON c.oid = ours.oid AND c.relkind = 'r'"
    " CROSS JOIN LATERAL unnest(ARRAY[c.oid, c.reltoastrelid]) AS t (oid) CROSS JOIN LATERAL"
    " (SELECT t.oid UNION ALL SELECT i.indexrelid FROM pg_index AS i WHERE i.indrelid = t.oid) AS r"
)
"""Looks up each of the files: joined by one of several conditions, each table would be held against all of the
database's, which is most of what an erasure takes where there are partitions, or other schemas."""
SIZE_OF_STORE: Final = f"{_OURS} {_SIZE.format('ours')}"
"""The bytes of the tables named in parameter 2 of schema parameter 1, with their indexes and long values."""
_SIZE_OF_COPIES: Final = _SIZE.format(
    "(SELECT oid FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relname = ANY($1::text[])) AS ours"
)
_TABLES: Final = (
    f"{_OURS} SELECT t.relname, k.relname, pg_relation_filenode(t.oid),"
    " pg_relation_size(t.oid) + coalesce(pg_relation_size(nullif(t.reltoastrelid, 0)), 0),"
    " pg_has_role(t.relowner, 'USAGE') FROM ours JOIN pg_class AS t ON t.oid = ours.oid AND t.relkind = 'r'"
    " LEFT JOIN pg_index AS i ON i.indrelid = t.oid AND i.indisprimary LEFT JOIN pg_class AS k ON k.oid = i.indexrelid"
    " ORDER BY t.relname"
)
_STILL_SEEN: Final = (
    "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_all_tables WHERE schemaname = $1 AND relname = ANY($2)"
)
SETTING: Final = f"SELECT value FROM settings WHERE name = $1 AND {OWN}"
_SET: Final = (
    "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name, tenant) DO UPDATE SET value = excluded.value"
)
_SET_ONCE: Final = "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name, tenant) DO NOTHING"
_UNSET: Final = f"DELETE FROM settings WHERE name = ANY($1::text[]) AND {OWN}"


class Table(NamedTuple):
    """A table, or a partition of one: its primary key, the number of its file, its bytes, whether it is the role's.

    A person may have dropped the key, of which the table's file is rewritten in the order.
    """

    name: str
    key: str | None
    file: int
    size: int
    ours: bool


async def size_of(connection: Connection, schema: str) -> int:
    """Return the bytes of the tables and their indexes; what the server notes about their free space is left out."""
    return int(await connection.fetchval(SIZE_OF_STORE, schema, list(CONTENT)))


async def size_now(database: Database) -> int:
    """Return the same, of an open store at this moment."""
    async with database.moment() as connection:
        return await size_of(connection, database.address.schema)


async def size_of_copies(connection: Connection, names: Sequence[str]) -> int:
    """Return the same of the session's own temporary tables."""
    return int(await connection.fetchval(_SIZE_OF_COPIES, list(names)))


async def tables(connection: Connection, schema: str) -> list[Table]:
    """Return the tables and partitions that hold what was said."""
    return [Table(*row) for row in await connection.fetch(_TABLES, schema, list(CONTENT))]


async def note_removal(connection: Connection, schema: str, size: int) -> None:
    """Note in the open transaction that a rewriting is due, of which files, and the size to compare with."""
    await connection.execute(_SET_ONCE, DUE, str(size))
    files = sorted(table.file for table in await tables(connection, schema))
    await connection.execute(_SET, FILES, json.dumps(files))


async def shrink(database: Database) -> tuple[int, int] | None:
    """Rewrite the tables that a removal left bytes in; return the size before and after, None where none is due.

    Raises:
        StoreLocked: a transaction may still see what was removed, a table is too large, or its lock did not come.
        StoreReadOnly: the role does not own the tables.
        StoreCorrupt: a table has lost its key.
        StoreError: the database failed, or ended the rewriting; what was removed stays removed.
    """
    try:
        return await _shrunk(database)
    except DRIVER_ERRORS as error:
        # Not in the words of a refused write, "nothing was written": the removal was committed before.
        message = (str(error) or type(error).__name__).splitlines()[0]
        raise type(store_error(error, database.where))(
            f"{database.where}: what was removed is no longer read, and its bytes are still in the files of the tables,"
            f" which the server did not rewrite to the end. Try again (PostgreSQL: {message})."
        ) from error


async def _shrunk(database: Database) -> tuple[int, int] | None:
    schema, quoted = database.address.schema, database.address.quoted_schema
    due = await database.rows(SETTING, DUE)
    if not due:
        return None
    files = await database.rows(SETTING, FILES)
    left = set(json.loads(files[0][0])) if files else set()
    async with database.connection() as connection:
        old = [table for table in await tables(connection, schema) if table.file in left and table.size]
    _check_may(database, quoted, old)
    _check_keys(database, old)
    await _wait_until_unseen(database, quoted, old)
    _check_small(database, quoted, old)
    for table in old:
        await _rewrite(database, table)
    async with database.connection() as connection:
        for table in old:
            await connection.execute(f'VACUUM {quoted}."{table.name}"')
        after = await size_of(connection, schema)
    await database.do(lambda connection: connection.execute(_UNSET, [DUE, FILES]))
    return int(due[0][0]), after


def _by_hand(quoted: str, old: Sequence[Table]) -> str:
    return "VACUUM (FULL) " + ", ".join(f"{quoted}.{table.name}" for table in old)


def _check_may(database: Database, quoted: str, old: Sequence[Table]) -> None:
    if not all(table.ours for table in old):
        raise StoreReadOnly(
            f"{database.where}: what was removed is no longer read, and its bytes are still in the files of the tables,"
            f" which only their owner may rewrite. Have the owner run {_by_hand(quoted, old)}; then this again."
        )


def _check_keys(database: Database, old: Sequence[Table]) -> None:
    if lacking := [table.name for table in old if table.key is None]:
        raise StoreCorrupt(
            f"{database.where}: what was removed is no longer read, and its bytes are still in the files of the tables,"
            f" which cannot be rewritten: {lacking[0]} has lost its key. `timeline repair --yes` makes it anew; then"
            " this again."
        )


def _check_small(database: Database, quoted: str, old: Sequence[Table]) -> None:
    if large := [table for table in old if table.size > AT_ONCE]:
        raise StoreLocked(
            f"{database.where}: what was removed is no longer read, and its bytes are still in the files of the tables."
            f" {large[0].name} has {large[0].size:,} bytes: nobody could append while it is rewritten. At a quiet time,"
            f" run {_by_hand(quoted, large)}; then this again."
        )


async def _wait_until_unseen(database: Database, quoted: str, old: Sequence[Table]) -> None:
    """Wait until no transaction can see what was removed: a rewriting would keep that.

    Events are overwritten, and texts deleted, by removals alone, so that the rows of theirs which VACUUM must leave say
    it. Those of a table that was rewritten do not count: it was waited for then, and no VACUUM corrects what the server
    counts of it.
    """
    kept = [table.name for table in old if table.name.startswith(("events", "stored_values"))]
    until = monotonic() + _PATIENCE
    while kept:
        async with database.connection() as connection:
            for name in kept:
                await connection.execute(f'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {quoted}."{name}"')
            if not await connection.fetchval(_STILL_SEEN, database.address.schema, kept):
                return
        if monotonic() > until:
            raise StoreLocked(
                f"{database.where}: what was removed is no longer read, and its bytes are still in the files of the "
                "tables: a transaction that began before, in this database or on a standby, may still see it. Try"
                " again once it has ended (see pg_stat_activity.xact_start)."
            )
        await asyncio.sleep(_PAUSE)


async def _rewrite(database: Database, table: Table) -> None:
    """Rewrite a table in the order of its key, which a conversation's window is read in."""
    statement = f'CLUSTER {database.address.quoted_schema}."{table.name}" USING "{table.key}"'
    for attempt in range(_TRIES):
        try:
            async with database.begun() as connection:
                await connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_PATIENCE}'")
                await connection.execute(statement)
        except asyncpg.LockNotAvailableError as error:
            if attempt == _TRIES - 1:
                raise StoreLocked(
                    f"{database.where}: what was removed is no longer read, and its bytes are still in the file of the "
                    f"table {table.name}, which others use without a pause. Try again."
                ) from error
            await asyncio.sleep(_PAUSE)
        else:
            return
