# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The commands that care for a database as a whole: their options and help.

Their work is in `timeline.cli.care`, `copying` and `migrating`.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from timeline.cli.options import DEFAULT_DATABASE, AsJson, Db
from timeline.cli.running import run


def backup(
    *,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FILE", help="The file to write (default: beside the database, named by the time)."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Copy the database into one file, while programs use it.

    Use this instead of a plain copy, which misses the newest events. The copy is read back to its end before it gets
    its name; only you may read it.
    """
    from timeline.cli import care

    run(care.back_up(db, to, force=force, as_json=as_json))


def restore(
    source: Annotated[Path, typer.Argument(metavar="FROM", help="A backup, or any copy of a database.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; the replaced files are kept beside it.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Replace the database, damaged or not, by a backup.

    Without --yes this is a dry run: it reads the backup to its end, and prints what the database would lose. Close all
    programs that use the database first. Never copy a backup over a database yourself: the old -wal file beside it
    would destroy the copy.
    """
    from timeline.cli import care

    run(care.restore(source, db, yes=yes, as_json=as_json))


def doctor(*, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> int:
    """Print what takes up room in the database, what retention would free, and what to mend.

    Changes nothing. The exit code is 1 if there is something to mend.
    """
    from timeline.cli import care

    return run(care.doctor(db, as_json=as_json))


def copy(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Only these conversations (default: all).")
    ] = None,
    *,
    source: Annotated[str, typer.Option("--from", metavar="PATH_OR_URL", help="The store to read.")],
    target: Annotated[
        str, typer.Option("--to", metavar="PATH_OR_URL", help="The store to write; a missing file is made.")
    ],
    as_json: AsJson = False,
) -> int:
    """Copy conversations from one store into another, event for event.

    What the target has already is compared and not written again, so run it again after an interruption, or to bring
    over what came since. Each event is read back and compared; in the end both stores have the same heads. A
    conversation whose history was scavenged is reported and not copied.
    """
    from timeline.cli import copying

    return run(copying.copy(source, target, ids or [], as_json=as_json))


def migrate(
    *,
    sql: Annotated[
        bool, typer.Option("--sql", help="Only print the SQL that is still to be run, for an administrator.")
    ] = False,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", metavar="N", min=0, help="Spread the events of a new store over N tables."),
    ] = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Make a store on a PostgreSQL server, or bring one up to date.

    The role in the URL needs the right to create tables; programs can then use a role that only reads and writes rows.
    A file needs no such step: a program that opens it upgrades it.
    """
    from timeline.cli import migrating

    if sql and as_json:
        raise typer.BadParameter("--sql prints SQL, not JSON. Leave out one of --sql and --json.")
    if sql:
        run(migrating.print_sql(db, partitions))
    else:
        run(migrating.migrate(db, partitions, as_json=as_json))


COMMANDS = (backup, restore, copy, migrate, doctor)
"""The order of these commands in `timeline --help`."""
