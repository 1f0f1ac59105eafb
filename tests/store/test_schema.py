from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from sqlmodel import Field, Session, SQLModel, create_engine, select

from timeline.errors import StoreCorrupt
from timeline.store.migrations import APPLICATION_ID, MIGRATIONS, migrate, schema_version
from timeline.store.migrations.steps import CREATE
from timeline.store.sqlite.files import connect_writer
from timeline.store.sqlite.schema import EventRow
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, events
from timeline.store.testing.samples import versions

FROZEN = Path(__file__).parent / "schema-1.sql"


def _schema(connection: sqlite3.Connection) -> str:
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    return "\n".join(" ".join(sql.split()) for (sql,) in sorted(rows)) + "\n"


def _shape(connection: sqlite3.Connection, table: str) -> list[object]:
    """What SQLite says of a table: columns, keys, indexes with their conditions, and whether it is strict."""
    indexes = connection.execute(f"PRAGMA index_list({table})").fetchall()
    listed = connection.execute("SELECT * FROM pragma_table_list WHERE name = ?", (table,)).fetchall()
    (sql,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    return [
        listed,
        "AUTOINCREMENT" in sql,
        connection.execute(f"PRAGMA table_xinfo({table})").fetchall(),
        sorted(connection.execute(f"PRAGMA foreign_key_list({table})").fetchall(), key=str),
        sorted((name, unique, origin, *_index(connection, name)) for _, name, unique, origin, _ in indexes),
    ]


def _index(connection: sqlite3.Connection, name: str) -> list[str]:
    columns = connection.execute(f"PRAGMA index_xinfo({name})").fetchall()
    # A key of a table without rowids is an index that the schema does not list.
    (sql,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone() or ("",)
    return [str(columns), " ".join((sql or "").split())]


def _first_release(file: Path) -> sqlite3.Connection:
    """Make a store as the first release made it: by its frozen schema."""
    connection = sqlite3.connect(file, isolation_level=None)
    for statement in sorted(FROZEN.read_text().splitlines(), key=lambda text: "CREATE TABLE" not in text):
        connection.execute(statement)
    connection.execute("INSERT INTO migrations VALUES (1, 'create the tables')")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    return connection


def test_the_first_migration_is_the_one_that_was_released() -> None:
    """Migration 1 is frozen: what it makes today is what it made in the first release."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in CREATE:
            connection.execute(statement)
        assert _schema(connection) == FROZEN.read_text()


def test_the_migrations_make_the_tables_that_the_classes_describe(tmp_path: Path) -> None:
    """Table by table: columns with types and defaults, keys, indexes, strictness."""
    engine = create_engine("sqlite://")
    with closing(connect_writer(tmp_path / "agent.db", "full", 1.0)) as held, engine.connect() as described:
        EventRow.metadata.create_all(described)
        plain = described.connection.driver_connection
        assert isinstance(plain, sqlite3.Connection)
        for table in EventRow.metadata.tables:
            assert _shape(held.connection, table) == _shape(plain, table)
    engine.dispose()


async def test_a_store_of_the_first_release_is_brought_up_to_date(tmp_path: Path) -> None:
    """Its conversations are as they were and share nothing; until it is opened for writing, the cure is named."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(tmp_path / "new.db") as new:
        await new.append("a", [*events(2), block_event("p")])
    with closing(_first_release(file)) as old:
        old.execute("ATTACH ? AS new", (str(tmp_path / "new.db"),))
        for table in ("conversations", "events"):
            columns = ", ".join(name for _, name, *_ in old.execute(f"PRAGMA main.table_info({table})"))
            old.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}")  # noqa: S608 - own names
    with pytest.raises(StoreCorrupt, match="opening it for writing brings it up to date"):
        await SQLiteStore.open(file, readonly=True)
    async with await SQLiteStore.open(file) as store:
        assert await versions(store, "a") == [1, 2, 3]
        assert (await store.info("a")).base == 0
        assert (await store.append("a", events(1), expected=3)).version == 4


def test_the_migrations_are_recorded_by_name(tmp_path: Path) -> None:
    """A database knows which steps made it, and running them again changes nothing."""
    with closing(connect_writer(tmp_path / "agent.db", "full", 1.0)) as held:
        connection = held.connection
        recorded = connection.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()
        assert recorded == [(number, name) for number, (name, _) in enumerate(MIGRATIONS, 1)]
        before = connection.total_changes
        migrate(connection, tmp_path / "agent.db")
        assert connection.total_changes == before


@pytest.mark.parametrize("statement", [1, 2, 3])
def test_a_store_that_another_process_makes_meanwhile_is_no_damaged_one(tmp_path: Path, statement: int) -> None:
    """Before whichever statement of the look at a new file the tables come to be, the look sees all or nothing."""
    file, seen = tmp_path / "agent.db", count(1)
    with (
        closing(sqlite3.connect(file, isolation_level=None)) as looking,
        closing(sqlite3.connect(file, isolation_level=None)) as making,
    ):
        looking.set_trace_callback(lambda _: migrate(making, file) if next(seen) == statement else None)
        assert schema_version(looking, file) in {0, len(MIGRATIONS)}
        assert schema_version(looking, file) == len(MIGRATIONS)


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps that a store lacks are one transaction: it has all of them, or is what it was."""

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        connection.execute("nonsense")

    monkeypatch.setattr("timeline.store.migrations.MIGRATIONS", (*MIGRATIONS, ("break", broken)))
    with closing(sqlite3.connect(tmp_path / "agent.db", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, tmp_path / "agent.db")
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == []
        assert connection.execute("PRAGMA application_id").fetchone() == (0,)


async def test_a_store_can_be_queried_with_sqlmodel(tmp_path: Path) -> None:
    """The classes read the real tables."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await store.append("a", events(3))
    engine = create_engine(f"sqlite:///{tmp_path / 'agent.db'}")
    with Session(engine) as session:
        rows = session.exec(select(EventRow).order_by(EventRow.version)).all()  # type: ignore[arg-type] # a column
        assert [(row.version, row.type, row.tokens) for row in rows] == [(n, "block.appended", 7) for n in (1, 2, 3)]
    engine.dispose()


def test_an_application_may_use_the_same_table_names() -> None:
    """The store's classes have a registry of their own: an `events` table of the application is its own business."""

    class Event(SQLModel, table=True):
        __tablename__ = "events"
        id: int | None = Field(default=None, primary_key=True)

    assert Event.metadata.tables["events"] is not EventRow.metadata.tables["events"]
