from __future__ import annotations

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


def test_one_conversation_is_copied_with_what_it_shares(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """A fork comes with its parent up to where both part."""
    id_, other = simulated["id"], tmp_path / "other.db"
    assert run("fork", id_, "--at", "6", "--as", "branch").code == 0
    rows = run("copy", "branch", "--from", db, "--to", other, "--json").json["conversations"]
    assert (rows[0]["id"], rows[0]["version"]) == (id_, 6)
    assert run("export", "branch", "--db", other).out == run("export", "branch").out


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
