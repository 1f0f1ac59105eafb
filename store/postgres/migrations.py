"""Migrate the schema of a PostgreSQL store: ordered steps, each in one transaction, under an advisory lock.

A store of a later version is refused. One of an earlier version is migrated when it is opened for writing by a role
that may do so; for a role that may not, an administrator runs `timeline migrate`, or what `timeline migrate --sql`
prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import asyncpg

from timeline.errors import NotAStore, StoreCorrupt, StoreError, StoreTooNew, StoreTooOld

from . import create, partition_policies

if TYPE_CHECKING:
    from collections.abc import Callable

    from .address import ServerAddress
    from .connections import Connection

MIGRATIONS: Final[tuple[tuple[str, Callable[[int], list[str]]], ...]] = (
    ("create the tables", create.statements),
    ("keep tenants apart in each partition", partition_policies.statements),
)
"""The steps in order, each as its statements by the number of partitions; the first has number 1. A released step is
never changed."""
_LOCK: Final = 0x544C_4E45
"""``TLNE``: the first key of the advisory lock of a migration; the second one is the schema's."""
_WAITING: Final = "SET LOCAL lock_timeout TO '5s'"
"""How long a step waits for each lock: behind one that a long query or a dump holds up, every append waits as well."""
_RECORD: Final = (
    'CREATE TABLE IF NOT EXISTS migrations (number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL,'
    " at timestamptz NOT NULL DEFAULT now())"
)
_ENCODING: Final = "SELECT current_setting('server_encoding')"
ENOUGH: Final = "UTF8"
"""The encoding of a database that holds every text."""
_OURS: Final = frozenset({"conversations", "events", *create.WITH_TENANT, "store_meta", "migrations"})
_RESTORE: Final = "Restore the database with the tools of its server."
_HAS_SCHEMA: Final = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)"
_NAMES: Final = (
    "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')"
)
"""Of tables, and of all else that a table cannot have the name of, such as a view."""
_IS_OUR_RECORD: Final = (
    "SELECT EXISTS (SELECT 1 FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
    " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = $1 AND c.relname = 'migrations' AND c.relkind = 'r' AND a.attname = 'number'"
    " AND NOT a.attisdropped)"
)
"""Many applications have a table of that name. Asked of the catalogue, which a role without rights may read as well."""


async def schema_version(connection: Connection, address: ServerAddress) -> int:
    """Return the number of the newest migration that was applied; 0 where there is no store yet.

    Raises:
        StoreTooNew: a later version of this library wrote the store.
        NotAStore: the schema holds another application's tables of the same names.
        StoreCorrupt: the store has lost the record of its migrations.
    """
    names = {name for (name,) in await connection.fetch(_NAMES, address.schema)}
    if "migrations" not in names:
        if names >= _OURS - {"migrations"}:
            raise StoreCorrupt(f"{address.where}: the table migrations is missing. {_RESTORE}")
        if taken := sorted(_OURS & names):
            raise _another(address, taken[0])
        return 0
    if not await connection.fetchval(_IS_OUR_RECORD, address.schema):
        raise _another(address, "migrations")
    version = await connection.fetchval(f"SELECT max(number) FROM {address.quoted_schema}.migrations")  # noqa: S608 - checked name
    if version is None:
        raise StoreCorrupt(
            f"{address.where}: the store has no record of its migrations. If only a part of what `timeline migrate"
            " --sql` prints was run, and nothing was stored yet, drop its tables in the schema"
            f" {address.quoted_schema}, and run `timeline migrate`. Otherwise the record was lost: {_RESTORE}"
        )
    if version > len(MIGRATIONS):
        raise StoreTooNew(
            f"{address.where}: a later version of timeline-engine wrote this store (schema {version}, this version "
            f"knows {len(MIGRATIONS)}). Upgrade timeline-engine; nothing was changed."
        )
    return int(version)


def _another(address: ServerAddress, name: str) -> NotAStore:
    return NotAStore(
        f"{address.where}: the schema {address.schema!r} is not a timeline store, and has a table or view {name!r}. It"
        " was not changed. Give the store a schema of its own: ?schema=NAME."
    )


async def check_version(connection: Connection, address: ServerAddress) -> None:
    """Check that a store can be used without a migration.

    Raises:
        StoreTooOld: it needs one, or there is no store yet.
        StoreTooNew, NotAStore, StoreCorrupt: as for `schema_version`.
    """
    if await schema_version(connection, address) < len(MIGRATIONS):
        await _check_leads(connection, address)
        raise too_old(address)


async def check_encoding(connection: Connection, address: ServerAddress) -> None:
    """Check that a database may hold a new store.

    One that is there already may be used in any encoding: it holds the texts that it was given so far.

    Raises:
        StoreError: some texts of a store could not be written to it.
    """
    encoding = await connection.fetchval(_ENCODING)
    if encoding != ENOUGH:
        raise StoreError(
            f"{address.where}: the database has the encoding {encoding}, in which not every text can be stored. Make"
            " the store in another one: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0."
        )


async def _check_leads(connection: Connection, address: ServerAddress) -> None:
    """Check that a server whose schema lacks steps is no standby: it gets them from its primary, and takes none here.

    Raises:
        StoreTooOld: it is one.
    """
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        raise StoreTooOld(
            f"{address.where}: the server is a standby, and has no store of this version in the schema "
            f"{address.schema!r} yet. It lags, or its primary has none: wait until it has caught up, or run `timeline "
            "migrate --db URL` with the URL of the primary."
        )


async def migrate(connection: Connection, address: ServerAddress) -> list[str]:
    """Bring a new or an older store to the newest schema; return the names of the steps that were applied.

    Raises:
        StoreTooNew, NotAStore, StoreCorrupt: as for `schema_version`; nothing was changed.
        StoreTooOld: the role may not create what is missing, or the server is a standby.
        StoreError: there is no store yet, and the database has another encoding than UTF-8.
    """
    done: list[str] = []
    there = await schema_version(connection, address)  # who may not read this lacks a right, and not a migration
    if there < len(MIGRATIONS):
        await _check_leads(connection, address)
    if not there:
        await check_encoding(connection, address)
    try:
        for number in range(there + 1, len(MIGRATIONS) + 1):
            async with connection.transaction(isolation="read_committed"):  # it sees what it waited for
                await connection.execute("SET LOCAL synchronous_commit TO on")  # whatever the store's durability
                await connection.execute(_locking(address))
                # Asked first: IF NOT EXISTS wants the right to create one even where it is there.
                if not await connection.fetchval(_HAS_SCHEMA, address.schema):
                    await connection.execute(f"CREATE SCHEMA {address.quoted_schema}")
                # Again behind the lock: another process may be making the same store.
                if await schema_version(connection, address) < number:
                    await connection.execute(";\n".join(_step(number, address)))
                    done.append(MIGRATIONS[number - 1][0])
    except asyncpg.InsufficientPrivilegeError as error:
        raise too_old(address) from error
    return done


def sql(address: ServerAddress, after: int = 0) -> str:
    """Write the statements of the steps behind a version, for an administrator to run."""
    first = [] if after else [_making_schema(address)]
    steps = [
        ";\n".join(["BEGIN", _locking(address), _before(number, address), *_step(number, address), "COMMIT"]) + ";\n"
        for number in range(after + 1, len(MIGRATIONS) + 1)
    ]
    return "\n".join([*first, *steps])


def too_old(address: ServerAddress) -> StoreTooOld:
    """Return the error for a store that needs a migration which may not be made here."""
    return StoreTooOld(
        f"{address.where}: the schema {address.schema!r} holds no store of this version yet, and may not be changed "
        "here. Have an administrator run `timeline migrate --db URL`, or what `timeline migrate --db URL --sql` prints."
    )


def _locking(address: ServerAddress) -> str:
    return f"SELECT pg_advisory_xact_lock({_LOCK}, hashtext('{address.schema}'))"


def _making_schema(address: ServerAddress) -> str:
    """Write the statement that makes the schema where it is not there: IF NOT EXISTS wants the right to it even so."""
    return f"""DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = '{address.schema}') THEN
        CREATE SCHEMA {address.quoted_schema};
    END IF;
END $$;
"""  # noqa: S608 - checked name


def _before(number: int, address: ServerAddress) -> str:
    """Write what `migrate` checks before a step: psql goes on with the next step behind one that failed."""
    if number == 1:
        wrong = f"current_setting('server_encoding') <> '{ENOUGH}'"
        problem = f"no store was made: the database has another encoding than {ENOUGH}"
    else:
        done = f"SELECT 1 FROM {address.quoted_schema}.migrations WHERE number = {number - 1}"  # noqa: S608 - checked name
        wrong = f"NOT EXISTS ({done})"
        problem = f"step {number} was not run: step {number - 1} of the schema is missing"
    return f"DO $$ BEGIN IF {wrong} THEN RAISE EXCEPTION '{problem}'; END IF; END $$"


def _step(number: int, address: ServerAddress) -> list[str]:
    name, statements = MIGRATIONS[number - 1]
    return [
        f"SET LOCAL search_path TO {address.quoted_schema}",
        _WAITING,
        _RECORD,
        *statements(address.partitions),
        f"INSERT INTO migrations (number, name) VALUES ({number}, '{name}')",  # noqa: S608 - a constant name
    ]
