from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from timeline.errors import StoreMoved
from timeline.store.sqlite.files import connect_writer

if TYPE_CHECKING:
    from pathlib import Path


def test_housekeeping_that_fails_fails_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A checkpoint that cannot run is logged; work goes on."""
    with closing(connect_writer(tmp_path / "agent.db", "full", 1.0)) as held:
        held.connection.execute("BEGIN IMMEDIATE")  # A checkpoint inside of a transaction is refused.
        held.checkpoint()
        held.connection.execute("ROLLBACK")
        assert "wal_checkpoint(PASSIVE) failed" in caplog.text
        held.run(lambda connection: connection.execute("CREATE TABLE u (x)"))


def test_the_error_of_work_on_a_file_that_is_gone_says_that_it_is_gone(tmp_path: Path) -> None:
    """What SQLite says then is a consequence; an error of work on a file that is there is its own."""
    held = connect_writer(tmp_path / "agent.db", "full", 1.0)
    with pytest.raises(sqlite3.OperationalError):
        held.run(lambda connection: connection.execute("nonsense"))
    (tmp_path / "agent.db").unlink()
    with pytest.raises(StoreMoved) as raised:
        held.run(lambda connection: connection.execute("nonsense"))
    assert isinstance(raised.value.__cause__, sqlite3.OperationalError)
    with pytest.raises(StoreMoved):
        held.run(lambda connection: connection.execute("SELECT 1"))
    held.close()


def test_what_takes_the_place_of_a_file_that_cannot_be_put_away_is_reported_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the file's folder may not be changed, the error is that of the swap; the log says what stays."""

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    held = connect_writer(tmp_path / "agent.db", "full", 1.0)
    (tmp_path / "agent.db").rename(tmp_path / "renamed.db")
    monkeypatch.setattr("os.unlink", refuse)
    with pytest.raises(StoreMoved):
        held.run(lambda connection: connection.execute("SELECT 1"))
    assert "the files beside it could not be put away" in caplog.text


def test_the_error_of_work_keeps_no_cursor_open(tmp_path: Path) -> None:
    """As long as somebody held the error, the log could not be copied, and a failed read failed all that came after."""

    def work(connection: sqlite3.Connection) -> None:
        rows = connection.execute("SELECT * FROM sqlite_schema")
        assert next(rows)
        connection.execute("nonsense")

    with closing(connect_writer(tmp_path / "agent.db", "full", 1.0)) as held:
        with pytest.raises(sqlite3.OperationalError) as kept:
            held.run(work)
        assert held.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
        assert kept.value
