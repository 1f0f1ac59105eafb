"""`timeline migrate` on a server: make a store, or bring one up to date, or print the SQL that does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from timeline.errors import StoreCorrupt, StoreError, StoreUnavailable

from . import create
from .address import MOST_PARTITIONS, ServerAddress, parse
from .database import Database
from .migrations import MIGRATIONS, check_encoding, migrate, schema_version, sql

if TYPE_CHECKING:
    from .connections import Connection


class Migrated(NamedTuple):
    """What became of a schema: its version before (0: there was no store) and now, and the names of the steps."""

    where: str
    before: int
    schema: int
    steps: list[str]
    partitions: int


async def bring_up_to_date(url: str, *, partitions: int | None = None) -> Migrated:
    """Make a store in a schema, or bring the store in it to this version.

    Args:
        url: the store's URL; its role needs the right to create a schema, or to create tables in the one there is.
        partitions: over how many tables a new store spreads its events; the URL's own setting unless given.

    Raises:
        StoreTooOld: the role may not create what is missing.
        StoreTooNew: a later version of this library wrote the store.
        NotAStore: the schema holds an application's tables of the same names; it was not changed.
        StoreCorrupt: the store has lost the record of its migrations, or of its partitions.
        StoreError: the server cannot be reached or used, the store has another number of partitions, or the database
            another encoding than UTF-8.
    """
    address = _address(url, partitions)
    async with Database(address).alone() as connection:
        steps = await migrate(connection, address)
        there = await _partitions(connection, address)
    _check_partitions(address, partitions, there)
    return Migrated(address.where, len(MIGRATIONS) - len(steps), len(MIGRATIONS), steps, there)


async def migration_sql(url: str, *, partitions: int | None = None) -> str:
    """Write the SQL of the steps that a schema lacks, for an administrator to run; nothing is changed.

    Where the server cannot be reached, it is that of all steps, for a new store. A comment says what it is.

    Raises:
        StoreTooNew: a later version of this library wrote the store.
        NotAStore: the schema holds an application's tables of the same names.
        StoreCorrupt: the store has lost the record of its migrations, or of its partitions.
        StoreError: the URL cannot be used, the server refused the role, the store has another number of partitions, or
            the database another encoding than UTF-8.
    """
    address = _address(url, partitions)
    try:
        async with Database(address).alone() as connection:
            there = await schema_version(connection, address)
            if there:
                _check_partitions(address, partitions, await _partitions(connection, address))
            else:
                await check_encoding(connection, address)
    except StoreUnavailable:
        return f"-- {address.where} cannot be reached: all steps, for a new store\n{sql(address)}"
    if there == len(MIGRATIONS):
        return f"-- {address.where}: the schema is up to date ({there})\n"
    return f"-- {address.where}: from schema {there} to {len(MIGRATIONS)}\n{sql(address, there)}"


async def _partitions(connection: Connection, address: ServerAddress) -> int:
    """Return the number of partitions of the store that is there.

    Raises:
        StoreCorrupt: it has lost that.
    """
    there = await connection.fetchval(f"SELECT partitions FROM {address.quoted_schema}.store_meta")  # noqa: S608 - checked name
    if there is None:
        raise StoreCorrupt(f"{address.where}: {create.NO_META}.")
    return int(there)


def _check_partitions(address: ServerAddress, wanted: int | None, there: int) -> None:
    if wanted is not None and there != wanted:
        raise StoreError(
            f"{address.where}: the store has {there or 'no'} partitions, and their number cannot be changed. Make a "
            "new store in another schema, and bring the conversations over by `timeline copy`."
        )


def _address(url: str, partitions: int | None) -> ServerAddress:
    address = parse(url)
    if partitions is None:
        return address
    if partitions > MOST_PARTITIONS:
        raise StoreError(f"{address.where}: a store has at most {MOST_PARTITIONS} partitions.")
    return replace(address, partitions=partitions)
