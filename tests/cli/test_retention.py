from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.depth import full_depth
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

FIRST = "ar:turn_1.user.prompt"


def test_retention_shows_and_sets_what_is_kept(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Of the database, and of a conversation, which goes before it; nothing is removed."""
    id_ = simulated["id"]
    assert run("retention", "--json").json["store"] == "keep"
    assert "the database: window" in run("retention", "window").out
    row = run("retention", id_, "--json").json
    assert row == {"id": id_, "retention": "window", "own": None, "legal_hold": False, "first_version": 1}
    assert run("retention", id_, "keep", "--hold", "--json").json["own"] == "keep"
    shown = run("retention", id_).out
    assert "legal hold" in shown
    assert "itself" in shown
    row = run("retention", id_, "store", "--no-hold", "--json").json
    assert (row["retention"], row["own"], row["legal_hold"]) == ("window", None, False)
    assert run("read", id_, FIRST).code == 0


def test_retention_refuses_what_it_does_not_know(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """With the cure; nothing is set."""
    run("retention", simulated["id"], "forever").fails(Exit.USAGE, "keep or window")
    run("retention", "none", "window").fails(Exit.NOT_FOUND, "none")
    run("retention", "--hold").fails(Exit.USAGE, "ID --hold")
    assert run("retention", "--json").json["store"] == "keep"


def test_scavenge_is_a_dry_run_that_says_what_goes_and_what_stays(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path
) -> None:
    """Without --yes the file is as it was; its figures are those of the run with --yes."""
    stays = run("scavenge")
    assert "its retention is keep" in stays.out
    run("retention", "window")
    before = db.read_bytes()
    dry = run("scavenge", "--json").json
    told = run("scavenge").out
    assert db.read_bytes() == before
    assert "would go" in told
    assert f"timeline scavenge --yes --db {db}" in told
    done = run("scavenge", "--yes", "--json").json
    assert {**dry, "dry_run": False} == done
    assert set(done) == {
        *("dry_run", "done", "events", "payload_bytes", "values", "value_bytes"),
        *("before_bytes", "after_bytes", "conversations"),
    }
    [row] = done["conversations"]
    assert set(row) == {"id", "stays", "events", "payload_bytes", "first", "last", "fork"}
    assert (row["id"], row["stays"], row["first"]) == (simulated["id"], None, 1)
    assert done["events"] == row["events"] > 0
    assert db.stat().st_size == done["after_bytes"] < len(before)
    again = run("scavenge", "--yes")
    assert "nothing more before its window can go" in again.out


def test_after_a_scavenge_every_command_says_what_is_missing(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """The window, digests and what is left are shown as before."""
    id_ = simulated["id"]
    run("retention", "window")
    window = run("export", id_, "--wire", "anthropic", "--window").out
    digests = run("digests", "--json").json
    events = run("scavenge", "--yes", "--json").json["events"]
    assert run("export", id_, "--wire", "anthropic", "--window").out == window
    assert run("digests", "--json").json == digests
    for words in (("read", id_, FIRST), ("show", id_, "--at", 3), ("render", id_, "--at", 3), ("undo", id_)):
        run(*words).fails(Exit.NOT_FOUND, "scavenge", "backup")
    run("fork", id_, "--at", 3).fails(Exit.NOT_FOUND, "scavenge")
    run("lab", id_, "--policy", "none", "--call", 2).fails(Exit.NOT_FOUND, "scavenge", "backup", id_)
    assert f"{events} events before the window were scavenged" in run("show", id_).out
    verified = run("verify", id_)
    assert verified.code == 0
    assert f"{events} events were scavenged" in verified.out
    assert "cannot be rebuilt: retention" in verified.out
    assert f"{events} events before the window were scavenged" in run("export", id_, "--format", "markdown").out
    assert f"{events} events before the window" in run("export", id_, "--wire", "anthropic").err
    exported = tmp_path / "log.jsonl"
    done = run("export", id_, "-o", exported)
    assert (done.code, "scavenged" in done.err) == (0, True)
    refused = run("import", exported, "--db", tmp_path / "other.db")
    assert (refused.code, "scavenged" in refused.err) == (Exit.USAGE, True)


def test_a_dry_run_speaks_of_no_smaller_file_where_nothing_goes(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """The run with --yes rewrites no file then, and says so in the same figures."""
    for setting in ("keep", "window", "window"):  # the second run with window finds nothing left
        run("retention", simulated["id"], setting)
        dry, told = run("scavenge", "--json").json, run("scavenge").out
        done = run("scavenge", "--yes", "--json").json
        assert {**dry, "dry_run": False} == done
        assert ("the file would go from" in told) == bool(done["events"])


def test_a_budget_is_for_the_run_with_yes(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """It ends early, says so, and the next run goes on."""
    del simulated
    run("retention", "window")
    run("scavenge", "--events", 5).fails(Exit.USAGE, "--yes")
    whole = run("scavenge", "--json").json["events"]
    part = run("scavenge", "--yes", "--events", 5)
    assert "run it again" in part.out
    assert run("scavenge", "--yes", "--json").json["events"] == whole - 5


def test_scavenge_looks_only_at_what_is_named(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """And refuses an id that it does not know, before anything goes."""
    run("retention", "window")
    run("scavenge", simulated["id"], "none", "--yes").fails(Exit.NOT_FOUND, "none")
    assert run("scavenge", simulated["id"], "--json").json["events"] > 0


@pytest.mark.parametrize("statements", [60, *(pytest.param(n, marks=full_depth) for n in (1, 20, 200))])
def test_a_killed_scavenge_is_ended_by_the_next_one(
    run: Callable[..., Done], simulated: dict[str, Any], command: list[str], db: Path, statements: int
) -> None:
    """A process that is killed in the middle leaves a store that reads, and a turn that is over soon."""
    run("retention", "window")
    whole = run("scavenge", "--json").json["events"]
    script = _KILLED.format(statements=statements)
    killed = subprocess.run([command[0], "-c", script, str(db)], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert run("verify", simulated["id"]).code == 0
    assert run("scavenge", "--yes", "--json").json["done"]
    gone = run("verify", simulated["id"], "--json").json
    assert (gone["ok"], gone["scavenged"]) == (True, whole)


_KILLED = """
import asyncio, os, signal, sys
from datetime import timedelta
from timeline.retention import scavenge, scavenging
from timeline.store.sqlite.store import SQLiteStore

scavenging.LEASE = timedelta(seconds=0.5)  # which the next one waits for

async def main():
    store = await SQLiteStore.open(sys.argv[1])
    seen = 0

    def kill(statement):
        nonlocal seen
        seen += 1
        if seen == {statements}:
            os.kill(os.getpid(), signal.SIGKILL)

    await store.database.do(lambda connection: connection.set_trace_callback(kill))
    await scavenge(store)

asyncio.run(main())
"""
