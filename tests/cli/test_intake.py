from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

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


def test_a_bad_file_does_not_keep_the_others_out(run: Callable[..., Done], recording: Path, tmp_path: Path) -> None:
    """Each bad file is one line on standard error; the exit code tells, and the good ones are imported."""
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    done = run("import", empty, recording, tmp_path / "missing.jsonl", "--json")
    assert done.code == Exit.USAGE
    assert [line.split(": ")[1] for line in done.err.splitlines()] == [str(empty), str(tmp_path / "missing.jsonl")]
    assert [row["id"] for row in done.json] == [sessions.SESSION]


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


def test_simulate_reports_one_object_with_sound_counts(simulated: dict[str, Any]) -> None:
    """The report has the stable keys, its steps have figures, and nothing is broken."""
    keys = {"id", "renders", "compactions", "hides", "orphans", "uncovered", "no_progress", "over_limit"}
    assert keys | {"typed_errors", "steps", "subagents"} <= set(simulated)
    broken = ("orphans", "uncovered", "no_progress", "over_limit", "typed_errors")
    assert {name: simulated[name] for name in broken} == dict.fromkeys(broken, 0)
    assert len(simulated["steps"]) == simulated["compactions"]
    assert all(step["after_tokens"] < step["before_tokens"] for step in simulated["steps"])
    assert simulated["subagents"] == []


def test_simulate_reports_side_chains_as_subagents(run: Callable[..., Done], tmp_path: Path) -> None:
    """A subagent's conversation is simulated too, and reported under the main one in the same shape."""
    made = sessions.rows(1)
    report = run("simulate", sessions.write(tmp_path, made + sessions.subagent(made)), "--json").json
    (helper,) = report["subagents"]
    assert set(helper) == set(report) - {"subagents"}
    assert "helper" in helper["id"]
    assert helper["renders"] == 1
    assert {row["id"] for row in run("ls", "--json").json} == {report["id"], helper["id"]}


def test_simulating_again_begins_a_new_conversation(run: Callable[..., Done], recording: Path) -> None:
    """Two tries of one recording stand side by side."""
    ids = [run("simulate", recording, "--json").json["id"] for _ in range(2)]
    assert len(set(ids)) == 2
    assert [row["id"] for row in run("ls", "--json").json] == ids


def test_simulate_says_what_to_type_next(run: Callable[..., Done], recording: Path, db: Path) -> None:
    """A person gets a table of the compactions, and commands that work as printed."""
    done = run("simulate", recording, "--max-tokens", 1500)
    steps = [line.partition("timeline ")[2] for line in done.out.splitlines() if "  timeline " in line]
    assert [step.split()[0] for step in steps] == ["render", "read", "verify"]
    assert all(str(db) in step for step in steps)
    assert "over trigger" in done.out
    assert [run(*step.split()).code for step in steps] == [0, 0, 0]


def test_a_system_prompt_comes_from_a_file_or_from_the_words(
    run: Callable[..., Done], recording: Path, tmp_path: Path
) -> None:
    """`--system` takes a file where there is one, else the text itself; both count in the context."""
    file = tmp_path / "system.txt"
    file.write_text("You are terse.", encoding="utf-8")
    run("import", recording)
    bodies = [
        run("render", sessions.SESSION, "--wire", "anthropic", "--system", system).json
        for system in (file, "You are terse.")
    ]
    assert bodies[0] == bodies[1]
    assert json.dumps(bodies[0]["system"]).count("You are terse.") == 1


def test_a_system_file_that_is_no_text_is_refused(run: Callable[..., Done], recording: Path, tmp_path: Path) -> None:
    """A binary file as system prompt gives one line."""
    file = tmp_path / "system.bin"
    file.write_bytes(b"\xff\xfe\x00")
    run("simulate", recording, "--system", file).fails(Exit.USAGE, "UTF-8")


def test_a_simulation_in_memory_prints_no_commands_that_could_not_work(
    run: Callable[..., Done], recording: Path
) -> None:
    """With `--db memory://` the report is all there is."""
    done = run("simulate", recording, "--db", "memory://")
    assert done.code == 0
    assert "Next" not in done.out


def test_a_context_that_cannot_fit_is_counted_and_told(run: Callable[..., Done], recording: Path) -> None:
    """Under a policy that never compacts, renders above the limit are counted as typed errors, not raised."""
    report = run("simulate", recording, "--policy", "none", "--max-tokens", 1000, "--json").json
    assert report["typed_errors"] > 0
    assert report["errors"][0]["type"] == "ContextOverflow"
    assert report["over_limit"] == 0
