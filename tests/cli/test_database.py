from __future__ import annotations

import os
import sqlite3
import subprocess
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions
from timeline.cli.exits import Exit
from timeline.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Done

PATH = "ar:turn_1.user.prompt"
READING = [
    ["ls"],
    ["show", sessions.SESSION],
    ["render", sessions.SESSION],
    ["read", sessions.SESSION, PATH],
    ["digests"],
    ["verify"],
    ["verify", sessions.SESSION],
    ["export", sessions.SESSION],
]
CHANGING = [["render", sessions.SESSION, "--record"], ["compact", sessions.SESSION, "--max-tokens", "1500"]]
NOBODY = 65_534


def test_the_commands_to_copy_work_for_paths_with_spaces(
    run: Callable[..., Done], db: Path, recording: Path, tmp_path: Path
) -> None:
    """Each path is one word of the shell, of the database as of the backup."""
    spaced = tmp_path / "my $(agents).db"
    run("ls", "--db", spaced).fails(Exit.DATABASE, f"timeline import FILE --db '{spaced}'")
    assert run("import", recording).code == Exit.OK
    assert run("backup", "--to", spaced).code == Exit.OK
    assert f"timeline restore '{spaced}' --yes --db {db}" in run("restore", spaced).out


@pytest.mark.parametrize("words", [*READING, *CHANGING, ["search", "part"]], ids=" ".join)
@pytest.mark.parametrize("empty", [False, True])
def test_a_missing_database_is_told_and_never_made(
    run: Callable[..., Done], db: Path, words: list[str], *, empty: bool
) -> None:
    """A command that needs what is stored says how to begin, and makes or fills no file."""
    if empty:
        db.touch()
    run(*words, "--json").fails(Exit.DATABASE, str(db), "timeline import")
    assert [(f.name, f.stat().st_size) for f in db.parent.iterdir()] == ([(db.name, 0)] if empty else [])


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_reading_commands_leave_the_file_as_it_is(
    run: Callable[..., Done], recording: Path, db: Path, words: list[str]
) -> None:
    """What only reads changes no byte of the database."""
    run("import", recording)
    before = db.read_bytes()
    assert run(*words).code == 0
    assert db.read_bytes() == before


def _text(file: Path) -> None:
    file.write_text("not a database at all, " * 100, encoding="utf-8")


def _foreign(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")


@pytest.mark.parametrize("make", [_text, _foreign])
@pytest.mark.parametrize("words", [["ls"], ["verify"], ["import"], ["simulate"], ["demo", "--db"]], ids=" ".join)
def test_a_file_that_is_no_store_is_told_and_left_alone(
    run: Callable[..., Done], recording: Path, db: Path, make: Callable[[Path], None], words: list[str]
) -> None:
    """Another program's file is never written to."""
    make(db)
    before = db.read_bytes()
    more = {"import": [recording], "simulate": [recording], "demo": [db]}.get(words[0], [])
    run(*words, *more).fails(Exit.DATABASE, str(db), "not a timeline store")
    assert db.read_bytes() == before


@pytest.mark.parametrize("words", [["ls"], ["compact", sessions.SESSION], ["import"]], ids=" ".join)
def test_a_database_of_a_later_version_is_told_and_left_alone(
    run: Callable[..., Done], recording: Path, db: Path, words: list[str]
) -> None:
    """A newer schema gives one line that says to upgrade."""
    run("import", recording)
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'the future')")
    before = db.read_bytes()
    run(*words, *([recording] if words == ["import"] else [])).fails(Exit.DATABASE, "Upgrade")
    assert db.read_bytes() == before


@pytest.mark.parametrize("words", [["show", sessions.SESSION], ["export", sessions.SESSION]], ids=" ".join)
def test_a_cut_off_database_is_told_in_one_line(
    run: Callable[..., Done], tmp_path: Path, db: Path, words: list[str]
) -> None:
    """Half a database file gives exit code 4 and no traceback."""
    run("import", sessions.write(tmp_path, sessions.rows(20)))
    with db.open("r+b") as file:
        file.truncate(db.stat().st_size // 2)
    done = run(*words)
    assert done.code == Exit.DATABASE
    assert done.err.startswith("timeline: ")
    assert done.err.count("\n") == 1


def test_a_damaged_event_is_told_in_one_line(run: Callable[..., Done], recording: Path, db: Path) -> None:
    """An event that does not match its checksum is named, and what else is stored still reads."""
    run("import", recording)
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE events SET checksum = 'x' WHERE path = ?", (PATH,))
    run("read", sessions.SESSION, PATH, "--json").fails(Exit.DATABASE, "damaged")
    assert run("ls").code == 0


def test_a_locked_database_is_told_after_a_while_and_loses_nothing(
    run: Callable[..., Done], recording: Path, db: Path
) -> None:
    """While another process writes, a command that writes gives up with one line; reading goes on."""
    run("import", recording)
    before = run("export", sessions.SESSION).out
    with closing(sqlite3.connect(db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        run("compact", sessions.SESSION, "--max-tokens", 1500).fails(Exit.DATABASE, "another process", "again")
        assert run("export", sessions.SESSION).out == before
        other.execute("ROLLBACK")
    assert run("compact", sessions.SESSION, "--max-tokens", 1500).code == 0


@contextmanager
def _read_only(db: Path) -> Iterator[None]:
    """Let nobody write to a database or its folder; root is asked to be somebody else meanwhile."""
    for parent in db.parents:
        if parent == Path(tempfile.gettempdir()):
            break
        parent.chmod(parent.stat().st_mode | 0o055)
    db.chmod(0o444)
    db.parent.chmod(0o555)
    if root := os.geteuid() == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        db.parent.chmod(0o755)
        db.chmod(0o644)


def test_a_read_only_database_can_be_read_and_is_not_written(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path
) -> None:
    """Without the right to write, reading works, and what would write says so in one line."""
    for command in ("show", "verify", "compact"):
        # Somebody else may not read the checkout either: what the commands import has to be there before.
        assert run(command, "nobody").code == Exit.NOT_FOUND
    before = db.read_bytes()
    with _read_only(db):
        assert run("show", simulated["id"], "--json").code == 0
        assert run("verify", simulated["id"]).code == 0
        done = run("compact", simulated["id"], "--max-tokens", 1500)
    assert done.code == Exit.DATABASE
    assert "Nothing was written" in done.err
    assert db.read_bytes() == before


def test_an_unknown_id_is_answered_with_those_like_it(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """The ids of recordings are long: their first characters are typed, or copied out of a narrow table."""
    run("show", simulated["id"][:8]).fails(Exit.NOT_FOUND, f"Did you mean {simulated['id']}")
    run("compact", f"{simulated['id']}!").fails(Exit.NOT_FOUND, f"Did you mean {simulated['id']}")
    run("read", "nobody@2").fails(Exit.NOT_FOUND, "`timeline ls`")


def test_a_full_disk_is_told_and_keeps_what_is_stored(
    run: Callable[..., Done], recording: Path, tmp_path: Path, command: list[str], db: Path
) -> None:
    """When the file system takes no more, a command says so in one line, and what was there still verifies."""
    resource = pytest.importorskip("resource", reason="limits the size of a file")
    run("import", recording)
    before = run("export", sessions.SESSION).out
    limit = db.stat().st_size + 40_000

    def least() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    big = sessions.write(tmp_path, sessions.rows(50), "big.jsonl")
    done = subprocess.run(
        [*command, "simulate", str(big)], capture_output=True, text=True, check=False, preexec_fn=least
    )
    assert done.returncode == Exit.DATABASE, done.stderr
    assert done.stderr.count("\n") == 1
    assert run("export", sessions.SESSION).out == before
    assert run("verify").code == 0


@pytest.mark.parametrize("words", [["import"], ["simulate"]], ids=" ".join)
def test_a_database_that_goes_away_meanwhile_is_told_in_one_line(
    run: Callable[..., Done], recording: Path, db: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """The file is deleted while a command writes to it: one line says so, and nothing is reported as stored."""
    append = SQLiteStore.append

    def append_to_nothing(*args: Any, **options: Any) -> Any:
        db.unlink(missing_ok=True)
        return append(*args, **options)

    monkeypatch.setattr(SQLiteStore, "append", append_to_nothing)
    run(*words, recording).fails(Exit.DATABASE, str(db), "was deleted or renamed while it was open")
