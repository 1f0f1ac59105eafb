from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def test_a_copied_store_answers_every_command_alike(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """A new file is made; a second run finds everything there."""
    id_, other = simulated["id"], tmp_path / "other.db"
    done = run("copy", "--from", db, "--to", other, "--json").json
    (row,) = done["conversations"]
    assert (row["id"], row["known"], row["problem"], done["not_copied"]) == (id_, 0, None, 0)
    assert row["events"] == row["version"]
    for words in (("export", id_), ("show", id_, "--json"), ("render", id_, "--json"), ("verify", "--deep", "--json")):
        assert run(*words, "--db", other).out == run(*words).out
    again = run("copy", "--from", db, "--to", other)
    assert "0 events copied and read back, 1 conversation" in again.out
    assert row["head"][:16] in again.out


def test_a_missing_source_is_named_by_its_own_option(run: Callable[..., Done], tmp_path: Path) -> None:
    """There is no `--db` to name another one with, and no store is made."""
    missing, other = tmp_path / "none.db", tmp_path / "other.db"
    run("copy", "--from", missing, "--to", other).fails(Exit.DATABASE, "name another with --from")
    run("copy", "--from", "memory://", "--to", other).fails(Exit.DATABASE, "Name a database file with --from.")
    assert not other.exists()


def test_one_conversation_is_copied_with_what_it_shares(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """A fork comes with its parent up to where both part."""
    id_, other = simulated["id"], tmp_path / "other.db"
    assert run("fork", id_, "--at", "6", "--as", "branch").code == 0
    rows = run("copy", "branch", "--from", db, "--to", other, "--json").json["conversations"]
    assert (rows[0]["id"], rows[0]["version"]) == (id_, 6)
    assert run("export", "branch", "--db", other).out == run("export", "branch").out


def test_what_several_conversations_share_is_copied_and_counted_once(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """Two forks and their parent, one of them named twice, are three conversations."""
    id_, other = simulated["id"], tmp_path / "other.db"
    for at in ("6", "4"):
        assert run("fork", id_, "--at", at, "--as", f"branch-{at}").code == 0
    named = ("branch-6", "branch-4", id_, "branch-6")
    done = run("copy", *named, "--from", db, "--to", other, "--json").json
    parts = [(row["id"], row["known"]) for row in done["conversations"]]
    assert parts == [(id_, 0), ("branch-6", 0), ("branch-4", 0), (id_, 6)]
    assert "0 events copied and read back, 3 conversations" in run("copy", *named, "--from", db, "--to", other).out


def test_a_file_is_not_copied_into_itself_by_another_of_its_names(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """It would find everything there, and look like a copy that was made."""
    link = tmp_path / "link.db"
    link.symlink_to(db)
    for name in (db, link, f"sqlite:////{db}", db.parent / ".." / db.parent.name / db.name):
        run("copy", simulated["id"], "--from", db, "--to", name).fails(Exit.USAGE, "name the same store")


def test_a_damaged_conversation_is_named_and_the_others_are_copied(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """The exit status is that of a damaged database; with a row that cannot be listed as well."""
    id_, other = simulated["id"], tmp_path / "other.db"
    with closing(sqlite3.connect(db)) as connection:
        assert run("fork", id_, "--at", "6", "--as", "branch").code == 0
        connection.execute("UPDATE events SET checksum = '00' WHERE conversation = 1 AND version = 9")
        connection.commit()
        done = run("copy", "--from", db, "--to", other)
        done.fails(Exit.DATABASE, f"event 9 of conversation '{id_}'", "is damaged", "timeline restore")
        assert "branch" in done.out
        assert "1 problem, see above" in done.out
        connection.execute("UPDATE conversations SET created_at = 'then' WHERE id = 'branch'")
        connection.commit()
    done = run("copy", "--from", db, "--to", other, "--json")
    assert done.code == Exit.DATABASE
    assert [(row["id"], row["events"]) for row in done.json["conversations"]] == [(id_, 0)]
    assert done.json["not_copied"] == 2
    assert "the row of conversation 'branch' is damaged" in done.err


def test_what_cannot_be_copied_is_said_in_a_line(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """No store, the same store, and an id that is not there."""
    del simulated
    other = tmp_path / "other.db"
    run("copy", "--from", tmp_path / "none.db", "--to", other).fails(Exit.DATABASE, "there is no database")
    run("copy", "--from", db, "--to", db).fails(Exit.USAGE, "the same store")
    missing = run("copy", "nobody", "--from", db, "--to", other)
    assert missing.code == Exit.NOT_FOUND
    assert "nobody" in missing.err
    assert not other.exists()
