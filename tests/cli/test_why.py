from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cli import sessions
from timeline import sync
from timeline.blocks import UserPrompt
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

PROMPT = "ar:turn_1.user.prompt"
RESULT = "tc:turn_1.toolu_1-1.result"


def test_why_has_its_documented_keys(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """By path and by address it is the same answer."""
    row = run("why", simulated["id"], RESULT, "--json").json
    assert set(row) == {
        "conversation",
        "address",
        "path",
        "type",
        "at_version",
        "call",
        "state",
        "since_version",
        "since_at",
        "decided_by",
        "reason",
        "in_words",
        "facts",
        "compaction_number",
        "summaries",
        "retold",
        "shown_as",
        "ways_back",
    }
    step = simulated["steps"][0]
    assert (row["state"], row["since_version"], row["compaction_number"]) == ("covered", step["version"], 1)
    assert row["shown_as"]["path"] == simulated["steps"][-1]["summary_path"]
    assert run("why", simulated["id"], row["address"], "--json").json == row
    assert run("why", f"{simulated['id']}{row['address']}", "--json").json == row


def test_why_prints_the_commands_that_show_a_covered_block_again(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """Typed in as they are printed, they work."""
    out = run("why", simulated["id"], RESULT).out
    first, last = simulated["steps"][0]["version"], simulated["steps"][-1]["version"]
    assert f"because   compaction 1 (over trigger): {simulated['steps'][0]['before_tokens']:,} -> " in out
    assert f"shown as  @{last} {simulated['steps'][-1]['summary_path']}: " in out
    assert f"     0  @{first}  compaction 1 (over trigger), " in out
    assert "        lost: line0-1-1" in out
    assert f"        and so have @{simulated['steps'][1]['version']}" in out
    commands = [
        line.split()[1:] for line in out.replace("Next:", "     ").splitlines() if line.startswith("       timeline ")
    ]
    assert [words[0] for words in commands] == ["read", "undo", "diff"]
    assert commands[1][1:5] == [simulated["id"], "--version", str(first), "--cascade"]
    assert run(*commands[2]).out.splitlines()[2].startswith(f"summary: @{first} (compaction 1) -> @{last}")
    assert all(run(*words).code == Exit.OK for words in commands)
    assert run("why", simulated["id"], RESULT).out.splitlines()[1].startswith("visible at version")


def test_why_answers_for_a_version(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """A block that came later is not there yet."""
    out = run("why", simulated["id"], RESULT, "--at", 3).out
    assert "not yet at version 3\n" in out
    assert "it came later, at version" in out


def test_why_answers_for_a_call(run: Callable[..., Done], db: Path) -> None:
    """A constraint was there at the first call, and was hidden from the second."""
    with sync.open_store(db) as store:
        timeline = sync.Timeline.open(store, "cards")
        timeline.append(UserPrompt(text="Never use a database."))
        for _ in range(2):
            request = timeline.render().request("anthropic", model="claude-opus-5", max_tokens=9)
            timeline.record_model_call(request=request)
            timeline.hide("@2", text="[a constraint]")
    first, second = (run("why", "cards@2", "--call", n, "--json").json for n in (1, 2))
    assert [(row["call"], row["state"]) for row in (first, second)] == [(1, "visible"), (2, "hidden")]
    assert run("why", "cards@2", "--call", 2).out.splitlines()[1].startswith("hidden at call 2, version ")


def test_why_of_a_hidden_block_prints_what_is_shown_and_how_to_reveal_it(
    run: Callable[..., Done], recording: Path
) -> None:
    """In an import, where nothing is compacted."""
    run("import", recording)
    run("hide", sessions.SESSION, PROMPT, "--text", "[the task]")
    out = run("why", sessions.SESSION, PROMPT).out
    assert "shown as  its replacement: [the task]\n" in out
    assert f"       timeline reveal {sessions.SESSION} @2" in out


def test_why_refuses_what_it_cannot_answer_in_one_line(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """An unknown block, call or version, and two versions at once."""
    run("why", simulated["id"], "@1").fails(Exit.NOT_FOUND, "version 1 is not a block")
    run("why", simulated["id"], RESULT, "--call", 999).fails(Exit.NOT_FOUND, "call 999")
    run("why", simulated["id"], RESULT, "--at", 9_999).fails(Exit.NOT_FOUND, "it holds the versions")
    run("why", simulated["id"], RESULT, "--at", 5, "--call", 1).fails(Exit.USAGE, "Leave out one of --at and --call")
    run("why", simulated["id"]).fails(Exit.USAGE, "Name a block")


def test_diff_shows_how_the_summary_changed(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Between two contexts, and of two summaries by their addresses; the JSON is the same difference."""
    before, after = (f"@{step['version']}" for step in simulated["steps"][:2])
    lone = run("diff", simulated["id"], before, after, "--json").json
    assert set(lone) == {"before", "after", "lines"}
    assert (lone["before"]["address"], lone["after"]["compaction_number"]) == (before, 2)
    assert {line["kind"] for line in lone["lines"]} & {"added", "removed", "changed"}
    contexts = run("diff", simulated["id"], "--list", "--json").json
    old = next(c for c in contexts if c["projected_from"] > simulated["steps"][0]["version"])
    both = run("diff", simulated["id"], f"#{old['number']}", "last", "--json").json
    assert both["summary"] == lone
    printed = run("diff", simulated["id"], before, after).out
    assert all(line["text"].strip() in printed for line in lone["lines"])
    assert (
        f"summary: {before} (compaction 1) -> {after} (compaction 2)"
        in run("diff", simulated["id"], f"#{old['number']}", "last").out
    )


def test_diff_of_a_block_that_is_no_summary_is_refused(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """One line says what it is, and where the summaries are listed."""
    version = simulated["steps"][0]["version"]
    run("diff", simulated["id"], f"@{version}", "@2").fails(
        Exit.USAGE, "@2 is not a summary but a user.prompt", "digests"
    )
