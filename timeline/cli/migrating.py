"""`timeline migrate`: make a store, bring one up to date, or print the SQL for an administrator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline import open_store
from timeline.cli import output
from timeline.cli.database import check_there
from timeline.cli.exits import UsageProblem
from timeline.cli.output import say
from timeline.errors import MissingExtra
from timeline.store.addresses import check_address, is_server, without_password
from timeline.store.opening import file_of
from timeline.store.sqlite.examining import schema_of

if TYPE_CHECKING:
    from types import ModuleType

    from timeline.cli.shapes import MigratedRow


async def print_sql(db: str, partitions: int | None) -> None:
    """Print the SQL that makes the store, or what its schema lacks; of a server that is away, the SQL of a new store.

    Raises:
        UsageProblem: the database is a file.
    """
    check_address(db)
    if not is_server(db):
        raise UsageProblem(f"--sql: {without_password(db)} is not a server. `timeline migrate` upgrades a file.")
    output.write((await _migrating().migration_sql(db, partitions=partitions)).rstrip())


async def migrate(db: str, partitions: int | None, *, as_json: bool) -> None:
    """Bring the schema up to date, and print what was done.

    Raises:
        UsageProblem: partitions are asked of a file.
    """
    row = await _on_server(db, partitions) if is_server(db) else await _on_file(db, partitions)
    if as_json:
        output.write_json(row)
    elif row["before_schema"] == row["schema"]:
        say(f"{row['store']}: the schema is up to date ({row['schema']})")
    elif row["before_schema"] == 0:
        say(f"{row['store']}: made the tables of a new store, schema {row['schema']}")
    else:
        say(f"{row['store']}: brought from schema {row['before_schema']} to {row['schema']}")


async def _on_server(db: str, partitions: int | None) -> MigratedRow:
    done = await _migrating().bring_up_to_date(db, partitions=partitions)
    return {"store": done.where, "before_schema": done.before, "schema": done.schema, "partitions": done.partitions}


async def _on_file(db: str, partitions: int | None) -> MigratedRow:
    if partitions is not None:
        raise UsageProblem("--partitions is for a store on a server; a file has none.")
    check_there(db)
    before = await schema_of(file_of(db))
    async with open_store(db):
        pass
    return {"store": db, "before_schema": before, "schema": await schema_of(file_of(db)), "partitions": 0}


def _migrating() -> ModuleType:
    try:
        from timeline.store.postgres import migrating  # noqa: PLC0415 - it needs an extra
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise MissingExtra("asyncpg", "postgres") from error
    return migrating
