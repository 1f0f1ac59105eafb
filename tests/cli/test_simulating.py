from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.cli import sessions
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


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


def test_several_policies_and_limits_are_tried_in_every_combination(run: Callable[..., Done], recording: Path) -> None:
    """A list of reports, each with the file, policy and limit, what it took, and the refusals by type."""
    words = ("--policy", "keep_last", "--policy", "none", "--max-tokens", 1500, "--max-tokens", 1_000_000)
    rows = run("simulate", recording, *words, "--json").json
    assert [(row["policy"], row["max_tokens"]) for row in rows] == [
        ("keep_last", 1500),
        ("keep_last", 1_000_000),
        ("none", 1500),
        ("none", 1_000_000),
    ]
    assert {row["file"] for row in rows} == {str(recording)}
    assert all(row["seconds"] > 0 and row["subagents"] == [] for row in rows)
    assert all(sum(row["refusals"].values()) == row["typed_errors"] for row in rows)
    assert rows[2]["refusals"].keys() == {"ContextOverflow"}
    assert rows[3]["refusals"] == {}
    assert {row["id"] for row in run("ls", "--json").json} == {row["id"] for row in rows}


def test_one_of_several_runs_is_told_as_it_would_be_alone(run: Callable[..., Done], recording: Path) -> None:
    """The same keys and figures; the keys of the row come on top."""
    alone = run("simulate", recording, "--max-tokens", 1500, "--json").json
    _, row = run("simulate", recording, "--policy", "none", "--policy", "balanced", "--max-tokens", 1500, "--json").json
    assert set(row) - set(alone) == {"file", "policy", "max_tokens", "seconds", "refusals"}
    assert {**alone, "id": row["id"]} == {key: row[key] for key in alone}


def test_several_files_give_a_table_with_a_row_each(run: Callable[..., Done], tmp_path: Path) -> None:
    """Subagents are counted into the row of their file; what was refused is told by type."""
    first = sessions.write(tmp_path, name="a.jsonl")
    second = sessions.write(tmp_path, [*sessions.rows(1), *sessions.subagent(sessions.rows(1))], "b.jsonl")
    done = run("simulate", first, second, "--policy", "none", "--max-tokens", 1000)
    lines = done.out.splitlines()
    assert done.code == 0
    assert lines[0].split()[:4] == ["file", "policy", "limit", "renders"]
    assert [line.split()[0] for line in lines[1:3]] == ["a.jsonl", "b.jsonl"]
    assert "ContextOverflow" in lines[1]
    assert lines[4] == "All 2 files"
    renders = [int(line.split()[column]) for line, column in ((lines[1], 3), (lines[2], 3), (lines[6], 2))]
    assert renders[0] + renders[1] == renders[2]
    assert int(lines[2].split()[3]) == len([row for row in sessions.rows(1) if row["type"] == "assistant"]) + 1


def test_a_bad_file_among_several_is_reported_and_the_others_are_run(
    run: Callable[..., Done], recording: Path, tmp_path: Path
) -> None:
    """Exit code 2, one line for the bad one, the report of the good one."""
    bad = tmp_path / "bad.jsonl"
    bad.write_text("no recording", encoding="utf-8")
    done = run("simulate", bad, recording, "--json")
    assert done.code == Exit.USAGE
    assert [row["file"] for row in done.json] == [str(recording)]
    assert done.err.count("\n") == 1
    assert str(bad) in done.err


def test_nothing_is_run_when_one_of_the_policies_does_not_hold(
    run: Callable[..., Done], recording: Path, db: Path
) -> None:
    """All of them are made before the first recording is fed."""
    run("simulate", recording, "--policy", "none", "--policy", "nope").fails(Exit.USAGE, "nope")
    assert not db.exists()


def test_a_policys_file_is_tried_by_its_name(run: Callable[..., Done], recording: Path, tmp_path: Path) -> None:
    """The commands that are printed work under it: the new conversation keeps it."""
    file = tmp_path / "mine.toml"
    file.write_text('preset = "cut_point"\nkeep_recent = 0.1\nmax_tokens = 1_500\n', encoding="utf-8")
    done = run("simulate", recording, "--policy", file)
    steps = [line.partition("timeline ")[2] for line in done.out.splitlines() if "  timeline " in line]
    assert steps[0].startswith("render session-1.cut_point-1500 --db ")
    assert "of 1,500" in run(*steps[0].split()).out
    assert [run(*step.split()).code for step in steps] == [0, 0, 0]


def test_a_stored_conversation_runs_again_from_a_call_and_nothing_is_written(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """The new conversation is in memory unless it is to be kept."""
    id_ = simulated["id"]
    before = run("ls", "--json").json
    words = ("simulate", id_, "--call", 9, "--policy", "keep_last", "--max-tokens", 30_000)
    report = run(*words, "--json").json
    assert report["renders"] == simulated["renders"] - 8
    assert run("ls", "--json").json == before
    kept = run(*words, "--keep", "--json").json
    assert kept == report
    assert [row["id"] for row in run("ls", "--json").json] == [id_, kept["id"]]
    assert run("verify").code == Exit.OK


def test_an_exported_log_runs_again_like_the_stored_one(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """The file needs no database."""
    file = tmp_path / "log.jsonl"
    run("export", simulated["id"], "-o", file)
    stored = run("simulate", simulated["id"], "--call", 5, "--json").json
    assert run("simulate", file, "--call", 5, "--db", tmp_path / "no.db", "--json").json == stored
    assert not (tmp_path / "no.db").exists()


def test_a_call_of_a_recording_or_one_that_is_not_there_is_refused_with_the_cure(
    run: Callable[..., Done], simulated: dict[str, Any], recording: Path
) -> None:
    """Each message says what to type instead."""
    refused = run("simulate", recording, "--call", 3)
    assert (refused.code, "timeline export" in refused.err) == (Exit.USAGE, True)
    missing = run("simulate", simulated["id"], "--call", 900)
    assert missing.code != Exit.OK
    assert "the nearest are" in missing.err
    assert run("simulate", simulated["id"], "--pauses", "-1").code == Exit.USAGE
    run("simulate", simulated["id"], "--pauses", "1e300").fails(Exit.USAGE, "the year 9999")
    nothing = run("simulate", "nothing")
    assert "no such file, and no conversation" in nothing.err


def test_fork_goes_on_from_a_call_under_another_policy(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """The fork has the policy for good."""
    row = run("fork", simulated["id"], "--call", 4, "--policy", "keep_last", "--as", "b", "--json").json
    assert (row["conversation"], row["decision"]) == ("b", "fork")
    assert "policy keep_last" in run("render", "b").out
    assert run("fork", simulated["id"], "--call", 4, "--at", 3).code == Exit.USAGE


def test_the_lab_takes_a_stored_conversation_from_a_call_on(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """A row for each call that is left."""
    words = ("lab", simulated["id"], "--policy", "none", "--max-tokens", 20_000, "--calls", "--json")
    whole = run(*words).json["runs"][0]["rows"]
    rows = run(*words, "--call", 9).json["runs"][0]["rows"]
    assert [row["number"] for row in rows] == [row["number"] for row in whole][8:]


def test_the_lab_takes_a_fork_alone(run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path) -> None:
    """What it shares with its parent is its own past; the parent's part is no conversation by itself."""
    words = ("--policy", "none", "--max-tokens", 20_000)
    fork = run("simulate", simulated["id"], "--call", 5, *words, "--keep", "--json").json["id"]
    shown = [*words, "--calls", "--jobs", 1, "--json"]
    [whole] = run("lab", simulated["id"], *shown).json["runs"]
    [alone] = run("lab", fork, *shown).json["runs"]
    assert (alone["conversation"], alone["calls"]) == (fork, whole["calls"])
    [rest] = run("lab", fork, *shown, "--call", 9).json["runs"]
    assert [row["number"] for row in rest["rows"]] == [row["number"] for row in whole["rows"]][8:]
    file = tmp_path / "both.jsonl"
    run("export", "--all", "-o", file)
    assert [one["conversation"] for one in run("lab", file, *shown).json["runs"]] == [simulated["id"], fork]
