"""Migrate the schema: ordered steps, their names kept in the database; those that a store lacks are one transaction.

A store of a later version is refused; a store of an earlier version is migrated when it is opened for writing.
A migration never rewrites rows of the log. `store.sqlite.removing`, `rewriting` and `erasing` do, on request,
`store.sqlite.packing`, which stores the same payload in less room, and `store.sqlite.chaining`, which links what
earlier releases wrote.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from timeline.errors import NotAStore, StoreCorrupt, StoreTooNew, StoreTooOld

from ..failures import RESTORE
from ..sqlite import statements
from . import digests, indexes, tables
from .steps import CHAIN, CREATE, ERASURES, FACTS, FORKS, IDENTITY, PACKING, RARE, RETENTION, WAYPOINTS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path


def running(script: Sequence[str]) -> Callable[[sqlite3.Connection], None]:
    """Return a migration that runs these statements."""

    def apply(connection: sqlite3.Connection) -> None:
        for statement in script:
            connection.execute(statement)

    return apply


MIGRATIONS: Final[tuple[tuple[str, Callable[[sqlite3.Connection], None]], ...]] = (
    ("create the tables", running(CREATE)),
    ("let forks share what was appended before them", running(FORKS)),
    ("keep digests as rows", digests.apply),
    ("let appended blocks pass the indexes of rare events", running(RARE)),
    ("give the store a name of its own", running(IDENTITY)),
    ("let history be removed on request", running(RETENTION)),
    ("keep facts as rows", running(FACTS)),
    ("make room for packed payloads", running(PACKING)),
    ("make room for the chain", running(CHAIN)),
    ("remember erased conversations", running(ERASURES)),
    ("keep snapshots of the past", running(WAYPOINTS)),
)
"""The steps in order; the first has number 1. A released step is never changed."""
STEPS: Final = tuple(apply for _, apply in MIGRATIONS)

APPLICATION_ID: Final = 0x544C_4E45
"""``TLNE`` in the header of the file: this SQLite database is a timeline store (https://sqlite.org/pragma.html)."""
log: Final = logging.getLogger("timeline.store")


def migrate(connection: sqlite3.Connection, file: Path) -> None:
    """Bring a new or an older store to the newest schema; drop added triggers, and make changed indexes anew.

    All steps are one transaction: a store that was interrupted is as it was. A disk syncs four times for each, and a
    new store of its own for each conversation would wait for fifty of these.

    Raises:
        StoreTooNew: a later version of this library wrote it; nothing was changed.
        NotAStore: the database has another application's tables.
        StoreCorrupt: it holds no record of its migrations.
    """
    version = schema_version(connection, file)
    _drop_triggers(connection, file)
    if version == len(MIGRATIONS):
        _mend_indexes(connection)
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Check again inside the transaction: another process may be opening the same new file.
        there = schema_version(connection, file)
        for number, (name, apply) in enumerate(MIGRATIONS[there:], there + 1):
            apply(connection)
            connection.execute("INSERT INTO migrations (number, name) VALUES (?, ?)", (number, name))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _drop_triggers(connection: sqlite3.Connection, file: Path) -> None:
    """Drop added triggers before anything is written: one could copy a block to where no redaction reaches it."""
    for name in tables.triggers(connection):
        connection.execute(tables.drop(name))
        log.warning("%s: the trigger %r was removed: it would have changed what is written", file, name)


def _mend_indexes(connection: sqlite3.Connection) -> None:
    """Make the indexes anew that were dropped or changed: statements name them, and would be refused."""
    if not indexes.different(connection, STEPS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for name in indexes.different(connection, STEPS):
            indexes.make(connection, STEPS, name)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def check_version(connection: sqlite3.Connection, file: Path) -> None:
    """Check that a store can be read without a migration.

    Raises:
        StoreTooNew: a later version of this library wrote it.
        StoreTooOld: it needs a migration, which only a writer can apply.
        StoreCorrupt: it holds no record of its migrations.
    """
    version = schema_version(connection, file)
    if version < len(MIGRATIONS):
        raise StoreTooOld(
            f"{file}: an earlier version of timeline-engine wrote this store; opening it for writing brings it up to "
            "date. Make the file and its folder writable and try again; in Python, open it once without readonly."
        )


def schema_version(connection: sqlite3.Connection, file: Path) -> int:
    """Return the number of the newest migration that was applied; 0 in an empty database.

    Raises:
        StoreTooNew, NotAStore: as for `migrate`.
        StoreCorrupt: it holds no record of its migrations, or a view in the place of a table.
    """
    # Read the mark first, then the tables: another process commits both at once, maybe between these two reads.
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    found = connection.execute("SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view')").fetchall()
    names = {name for name, type_ in found if type_ == "table"}
    if instead := {name.casefold() for name, type_ in found if type_ == "view"}.intersection(tables.names(STEPS)):
        # Its statement is another program's, and may never end.
        raise StoreCorrupt(f"{file}: a view was put in the place of the table {min(instead)}. {RESTORE}.")
    if "migrations" not in names:
        if application == APPLICATION_ID:
            raise StoreCorrupt(f"{file}: the store has lost its tables. {RESTORE}.")
        if names:
            raise NotAStore(
                f"{file} is not a timeline store: it holds other tables. It was not changed; name another file."
            )
        return 0
    (version,) = connection.execute(statements.SCHEMA_VERSION).fetchone()
    if version is None:
        raise StoreCorrupt(f"{file}: the store has lost the record of its migrations. {RESTORE}.")
    if version > len(MIGRATIONS):
        raise StoreTooNew(
            f"{file}: a later version of timeline-engine wrote this store (schema {version}, this version knows "
            f"{len(MIGRATIONS)}). Upgrade timeline-engine; nothing was changed."
        )
    return int(version)
