from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli import sessions
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def test_import_tells_what_it_added(run: Callable[..., Done], recording: Path) -> None:
    """Importing a session adds its events to the conversation of its id, and reports the format."""
    done = run("import", recording, "--json")
    (row,) = done.json
    assert done.code == 0
    assert set(row) == {"id", "events", "known", "report"}
    assert row["id"] == sessions.SESSION
    assert row["events"] > 0
    assert row["known"] == 0
    assert row["report"]["format"] == "claude-code"


def test_importing_twice_adds_nothing(run: Callable[..., Done], recording: Path) -> None:
    """The second import finds every event known."""
    (first,) = run("import", recording, "--json").json
    (second,) = run("import", recording, "--json").json
    assert (second["events"], second["known"]) == (0, first["events"])
    assert run("ls", "--json").json[0]["version"] == first["events"] + 1


def test_importing_a_file_that_has_grown_adds_what_is_new(run: Callable[..., Done], tmp_path: Path) -> None:
    """A session that went on is continued in the log."""
    made = sessions.rows(2)
    (first,) = run("import", sessions.write(tmp_path, made[:-4]), "--json").json
    (second,) = run("import", sessions.write(tmp_path, made), "--json").json
    assert second["events"] > 0
    assert second["known"] == first["events"]


def test_a_newer_snapshot_without_an_answer_of_the_log_is_said_with_the_way_out(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    """The answer was written again: the log has both, until somebody leaves one out."""
    chat = tmp_path / "chat.json"
    for id_, text in (("a1", "Lyon"), ("a2", "Paris")):
        said = [("u1", "user", "The capital?"), (id_, "assistant", text)]
        messages = [{"id": i, "role": role, "parts": [{"type": "text", "text": t}]} for i, role, t in said]
        chat.write_text(json.dumps({"id": "chat", "messages": messages}), encoding="utf-8")
        done = run("import", chat)
    assert "the file no longer has 1 of the log's blocks, or has them in other words (@3)" in done.err
    run("hide", "chat", "@3", "--omit")
    assert "@3" not in run("import", chat).err


def test_a_bad_file_does_not_keep_the_others_out(run: Callable[..., Done], recording: Path, tmp_path: Path) -> None:
    """Each bad file is one line on standard error; the exit code tells, and the good ones are imported."""
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    done = run("import", empty, recording, tmp_path / "missing.jsonl", "--json")
    assert done.code == Exit.USAGE
    assert [line.split(": ")[1] for line in done.err.splitlines()] == [str(empty), str(tmp_path / "missing.jsonl")]
    assert [row["id"] for row in done.json] == [sessions.SESSION]


def test_a_refused_conversation_does_not_keep_the_others_of_its_file_out(
    run: Callable[..., Done], recording: Path, tmp_path: Path
) -> None:
    """The database erased one of three."""
    file, other = tmp_path / "log.jsonl", tmp_path / "other.db"
    run("import", recording)
    for id_ in ("second", "third"):
        run("fork", sessions.SESSION, "--at", 3, "--as", id_)
    assert run("export", "--all", "-o", file).code == 0
    assert run("import", file, "--db", other).code == 0
    assert run("erase", "second", "--yes", "--db", other).code == 0
    done = run("import", file, "--db", other, "--json")
    assert done.code == Exit.NOT_FOUND
    assert "'second' was erased" in done.err
    assert [row["id"] for row in done.json] == [sessions.SESSION, "third"]


def test_an_export_that_is_to_be_masked_is_refused_once_and_makes_no_database(
    run: Callable[..., Done], recording: Path, tmp_path: Path
) -> None:
    """Its events prove themselves, so that no hook may change them."""
    file, other = tmp_path / "log.jsonl", tmp_path / "other.db"
    run("import", recording)
    run("fork", sessions.SESSION, "--at", 3, "--as", "second")
    run("export", "--all", "-o", file)
    for more in ((), ("--as", "third")):
        done = run("import", file, "--mask", "--db", other, *more)
        assert done.code == Exit.USAGE
        assert done.err.count("without --mask") == 1
    assert not other.exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf \n", "empty"),
        (b"hello\n", "format"),
        (b'{"a": 1}\n{"b": 2}\n', "format"),
        (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "format"),
        (b"[]", "format"),
    ],
)
@pytest.mark.parametrize("command", ["import", "simulate"])
def test_a_file_that_is_no_recording_is_refused_and_no_database_is_made(
    run: Callable[..., Done], db: Path, command: str, content: bytes, told: str
) -> None:
    """What cannot be read gives one line and exit code 2, and leaves no file behind."""
    file = db.parent.with_name("bad.jsonl")
    file.write_bytes(content)
    run(command, file).fails(Exit.USAGE, str(file), told)
    assert not list(db.parent.iterdir())


@pytest.mark.parametrize("command", ["import", "simulate"])
def test_a_folder_in_place_of_a_file_is_refused(run: Callable[..., Done], tmp_path: Path, command: str) -> None:
    """A folder gives one line that says how to name its files."""
    run(command, tmp_path).fails(Exit.USAGE, "folder")


def test_a_torn_line_and_invalid_utf_8_are_reported_and_cost_nothing_else(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    """A damaged file is imported as far as it goes; the report counts what was met."""
    whole = sessions.text_of(sessions.rows(1, 2)).encode()
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(whole.replace(b"I run step 1-1", b"I run \xff\xfe 1-1") + b'{"parentUuid":"x","type":"us')
    done = run("import", torn, "--json")
    (row,) = done.json
    counts = row["report"]["counts"]
    assert done.code == 0
    assert counts["torn"] == 1
    assert counts["encoding"] == 1
    (whole_row,) = run("import", sessions.write(tmp_path, sessions.rows(1, 2)), "--json").json
    assert whole_row["known"] == row["events"]
