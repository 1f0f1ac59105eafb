from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlmodel import Field, Session, SQLModel, create_engine, select

from store.files import connect_writer
from store.migrations import MIGRATIONS, migrate
from store.sqlite import SQLiteStore
from store.tables import EventRow, ddl
from store.testing import events

FROZEN = Path(__file__).parent / "schema-1.sql"


def _schema(connection: sqlite3.Connection) -> str:
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    return "\n".join(" ".join(sql.split()) for (sql,) in sorted(rows)) + "\n"


def test_the_schema_is_the_one_that_was_released(tmp_path: Path) -> None:
    """Migration 1 is frozen: what it makes today is what it made in the first release."""
    with closing(connect_writer(tmp_path / "agent.db", "full", 1.0)) as connection:
        assert _schema(connection) == FROZEN.read_text()


def test_the_migrations_are_recorded_by_name(tmp_path: Path) -> None:
    """A database knows which steps made it, and running them again changes nothing."""
    with closing(connect_writer(tmp_path / "agent.db", "full", 1.0)) as connection:
        recorded = connection.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()
        assert recorded == [(number, name) for number, (name, _) in enumerate(MIGRATIONS, 1)]
        before = connection.total_changes
        migrate(connection, tmp_path / "agent.db")
        assert connection.total_changes == before


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is one transaction: either it is there with its name, or not at all."""

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        connection.execute("nonsense")

    monkeypatch.setattr("store.migrations.MIGRATIONS", (*MIGRATIONS, ("break", broken)))
    with closing(sqlite3.connect(tmp_path / "agent.db", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, tmp_path / "agent.db")
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        assert "half" not in names
        assert connection.execute("SELECT number FROM migrations").fetchall() == [(1,)]


async def test_a_store_can_be_queried_with_sqlmodel(tmp_path: Path) -> None:
    """The classes describe the real tables."""
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
    assert "CREATE TABLE events" in "".join(ddl())
