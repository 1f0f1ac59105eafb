from __future__ import annotations

import shutil
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.downgrade import before_facts
from timeline.cli.exits import Exit
from timeline.ports import SystemClock
from timeline.store.sqlite import files
from timeline.store.sqlite.findings import file_system, findings
from timeline.store.sqlite.sizes import CLASSES
from timeline.sync import backup, open_store, restore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def _bytes(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_backup_and_restore_bring_back_a_conversation(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """The backup is private and never written over; a restore is a dry run that says what is lost, until --yes."""
    id_, copy = simulated["id"], tmp_path / "copy.db"
    made = run("backup", "--to", copy, "--json").json
    assert (made["file"], made["conversations"], made["bytes"]) == (str(copy), 1, copy.stat().st_size)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    run("backup", "--to", copy).fails(Exit.DATABASE, "--force")
    assert "read to the end" in run("backup", "--to", copy, "--force").out
    shown = run("show", id_, "--json").out
    assert run("fork", id_, "--as", "branch").code == 0
    before = _bytes(db.parent)
    planned = run("restore", copy, "--json").json
    assert planned["dry_run"]
    assert [(lost["id"], lost["restored"]) for lost in planned["loses"]] == [("branch", 0)]
    said = run("restore", copy).out
    assert "branch" in said
    assert f"timeline restore {copy} --yes --db {db}" in said
    assert _bytes(db.parent) == before
    done = run("restore", copy, "--yes", "--json").json
    assert {**planned, "dry_run": False, "kept": done["kept"]} == done
    assert run("show", id_, "--json").out == shown
    run("show", "branch").fails(Exit.NOT_FOUND, "branch")
    assert run("show", "branch", "--db", done["kept"][0]).code == 0


def test_a_restore_names_what_it_would_bring_back(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """Who erased it has to do so again."""
    id_, copy = simulated["id"], tmp_path / "copy.db"
    run("fork", id_, "--as", "branch")
    run("backup", "--to", copy)
    assert run("erase", "branch", "--yes").code == 0
    assert run("redact", id_, "@2", "--yes").code == 0
    told = {(row["id"], row["what"]) for row in run("restore", copy, "--json").json["returns"]}
    assert told == {(id_, "redacted"), ("branch", "erased")}
    said = run("restore", copy).out
    assert "erased since it was made: branch." in said
    assert "redact it again" in said


def test_a_restore_over_a_damaged_database_says_what_is_wrong_with_it(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """And mends it."""
    copy = tmp_path / "copy.db"
    assert run("backup", "--to", copy).code == 0
    db.write_bytes(bytes(db.stat().st_size))
    run("ls").fails(Exit.DATABASE)
    assert "the database cannot be read" in run("restore", copy).out
    assert run("restore", copy, "--yes").code == 0
    assert run("verify", simulated["id"]).code == 0


def test_backup_and_restore_refuse_what_is_not_there(run: Callable[..., Done], db: Path, tmp_path: Path) -> None:
    """A missing database, and a missing backup."""
    run("backup").fails(Exit.DATABASE, "there is no database")
    run("restore", tmp_path / "none.db").fails(Exit.DATABASE, "no store to read")
    assert not db.exists()


def test_backup_and_restore_work_without_a_loop(simulated: dict[str, Any], db: Path, tmp_path: Path) -> None:
    """As `timeline.sync` offers them."""
    made = backup(db, tmp_path / "copy.db")
    assert list(made.holds.versions) == [simulated["id"]]
    assert restore(made.file, db, yes=True).done
    with open_store(db) as store:
        assert [info.id for info in store.conversations()] == [simulated["id"]]


def test_doctor_accounts_for_every_byte_and_changes_none(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path
) -> None:
    """The classes add up to the file; what retention would free is what a scavenge then frees."""
    assert run("search", "part").code == 0
    db.chmod(0o600)
    before = _bytes(db.parent)
    found = run("doctor", "--json")
    assert found.code == 0
    row = found.json
    assert list(row["sizes"]) == [*CLASSES]
    assert sum(row["sizes"].values()) == row["bytes"] == db.stat().st_size
    assert min(row["sizes"][name] for name in ("payload", "values", "digests", "search", "indexes")) > 0
    assert _bytes(db.parent) == before
    said = run("doctor").out
    assert "payload" in said
    assert f"{row['would_free']['window']:,} bytes" in said
    assert run("retention", "window").code == 0
    done = run("scavenge", "--yes", "--json").json
    freed = done["before_bytes"] - done["after_bytes"]
    assert row["would_free"]["window"] == pytest.approx(freed, abs=4096)
    assert freed > 0
    del simulated


def test_doctor_knows_what_was_idle_for_long(
    run: Callable[..., Done], simulated: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conversation to which something was appended within 90 days would keep its history."""
    del simulated
    row = run("doctor", "--json").json
    newest = datetime.fromisoformat(run("ls", "--json").json[0]["updated_at"]).astimezone(UTC)
    for days, freed in ((89, 0), (91, row["would_free"]["window"])):
        monkeypatch.setattr(SystemClock, "now", lambda _, days=days: newest + timedelta(days=days))
        assert run("doctor", "--json").json["would_free"]["window_90_days_idle"] == freed


def test_doctor_warns_of_a_database_that_others_may_read(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path
) -> None:
    """With the cure, and the exit code of something to mend; nothing is changed by itself."""
    del simulated
    db.chmod(0o644)
    found = run("doctor", "--json")
    assert found.code == Exit.NOT_SO
    (warned,) = [finding for finding in found.json["remarks"] if finding["level"] == "warning"]
    assert warned["code"] == "mode"
    assert f"chmod 600 {db}" in warned["text"]
    assert stat.S_IMODE(db.stat().st_mode) == 0o644


def test_doctor_leaves_a_store_of_an_earlier_version_as_it_is(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path
) -> None:
    """It says what the next open for writing does, and that the earlier version refuses the file then."""
    del simulated
    before_facts(db)
    before = db.read_bytes()
    row = run("doctor", "--json").json
    assert (row["schema"], row["would_free"]) == (6, None)
    assert "schema" in {finding["code"] for finding in row["remarks"]}
    assert db.read_bytes() == before


def test_doctor_names_a_log_that_a_killed_program_left_and_what_a_restore_kept(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """Both are notes: nothing is wrong."""
    assert run("backup", "--to", tmp_path / "copy.db").code == 0
    assert run("restore", tmp_path / "copy.db", "--yes").code == 0
    left = tmp_path / "left.db"
    with open_store(db) as store:
        store.set_retention("window")
        for ending in ("", "-wal"):
            shutil.copyfile(f"{db}{ending}", f"{left}{ending}")
    left.chmod(0o600)
    assert {finding["code"] for finding in run("doctor", "--json").json["remarks"]} >= {"beside"}
    assert {finding["code"] for finding in run("doctor", "--db", left, "--json").json["remarks"]} >= {"log"}
    del simulated


def test_where_there_is_no_flock_doctor_warns_of_an_old_sqlite_in_a_sentence(
    run: Callable[..., Done], simulated: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows; it ends with one full stop."""
    assert simulated
    monkeypatch.setattr(files, "LOCKS_FILES", False)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    assert "Let one process write, or upgrade SQLite.\n" in run("doctor").out


def test_a_large_log_and_a_network_file_system_are_warned_of(tmp_path: Path) -> None:
    """By its size, and by the table of what is mounted."""
    file, mounts = tmp_path / "agent.db", tmp_path / "mountinfo"
    with closing(sqlite3.connect(file)):
        file.touch()
    file.chmod(0o600)
    with (tmp_path / "agent.db-wal").open("wb") as log:
        log.truncate(65 * 1024 * 1024)
    assert "log" in {found.code for found in findings(file, 99) if found.level == "warning"}
    mounts.write_text(
        "21 1 0:1 / / rw - ext4 /dev/sda rw\n"
        f"22 1 0:2 / {tmp_path} rw shared:1 - nfs4 server:/x rw\n"
        f"23 1 0:3 / {tmp_path}/other rw - ext4 /dev/sdb rw\n"
    )
    assert file_system(file, mounts) == "nfs4"
    assert file_system(tmp_path.parent / "b.db", mounts) == "ext4"
    assert file_system(file, tmp_path / "none") is None
