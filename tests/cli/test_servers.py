from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tests.postgres import schema_of, without
from timeline.cli.exits import Exit
from timeline.store.postgres import examining

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

PASSWORD = "open-sesame"  # noqa: S105 - the server of the tests trusts everybody
OF_THE_PLACE = {"at", "created_at", "updated_at", "last_compaction_at", "head", "position", "duration", "covered_at"}
OF_THE_PLACE |= {"before_bytes", "after_bytes", "log", "fingerprint", "context_hash", "seconds", "server"}
"""What differs between two stores to which the same was done: times, places in the store, heads of chains, sizes, what
only a server has."""
READING = (
    "ls --json",
    "show {id} --json",
    "show {id}",
    "render {id} --json",
    "render {id} --explain --json",
    "render {id} --wire anthropic",
    "calls {id} --json",
    "call {id} 2 --json",
    "facts --json",
    "facts --record --json",
    "digests --json",
    "search part --json",
    "why {block} --json",
    "read {block} --json",
    "verify --json",
    "verify --deep --json",
    "export {id}",
    "export --all",
    "export {id} --format markdown",
    "simulate {id} --json",
    "retention --json",
    "find-subject step --json",
)
WRITING = (
    "undo {id} --json",
    "undo {id} --json",
    "pin {block} --json",
    "unpin {block} --json",
    "go-back {block} --json",
    "reveal {block} --json",
    "hide {block} --json",
    "redact {id} @4 --yes --json",
    "compact {id} --json",
    "fork {id} --at 6 --as branch --json",
    "fork {id} --at 4 --as early --json",
    "fork branch --at 5 --as twig --json",
    "redact {id} @2 --yes --json",
    "retention {id} window --json",
    "scavenge --yes --json",
    "erase branch --yes --forks copy --json",
    "repair --json",
    "repair --yes --json",
    "ls --json",
    "show {id} --json",
    "verify --deep --json",
)


def same(value: Any) -> Any:
    """Return what a command printed without what differs between two stores to which the same was done."""
    if isinstance(value, dict):
        return {key: same(each) for key, each in value.items() if key not in OF_THE_PLACE}
    if isinstance(value, list):
        return [same(each) for each in value]
    return round(value, 12) if isinstance(value, float) else value


def printed(done: Done) -> Any:
    """Return the JSON of a command's output, of a line each where it is written so, or the text."""
    try:
        return json.loads(done.out)
    except ValueError:
        return done.out


@pytest.fixture
def server(run: Callable[..., Done], simulated: dict[str, Any], db: Path, postgres_url: str) -> str:
    """Copy the simulated session to a server; return its URL, with a password."""
    assert run("copy", simulated["id"], "--from", db, "--to", postgres_url).code == 0
    return postgres_url.replace("postgres@", f"postgres:{PASSWORD}@", 1)


def test_commands_answer_on_a_server_as_on_a_file(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that read print the same, and those that write do; the URL's password is in no output."""
    named = {"id": simulated["id"], "block": simulated["id"] + "@4"}
    for line in (*READING, *WRITING):
        words = [word.format(**named) for word in line.split()]
        monkeypatch.setenv("TIMELINE_DB", str(db))
        wanted = run(*words)
        monkeypatch.setenv("TIMELINE_DB", server)
        found = run(*words)
        assert wanted.code == found.code == 0, (line, wanted.err, found.err)
        assert same(printed(found)) == same(printed(wanted)), line
        assert PASSWORD not in found.out + found.err, line


def test_what_only_a_file_has_is_refused_with_the_cure(
    run: Callable[..., Done], simulated: dict[str, Any], server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A backup is pg_dump's or a copy; a suggested command names the server without its password."""
    id_ = simulated["id"]
    monkeypatch.setenv("TIMELINE_DB", server)
    for words in (("backup",), ("restore", tmp_path / "copy.db")):
        refused = run(*words)
        refused.fails(Exit.DATABASE, "pg_dump", "timeline copy --from URL --to FILE")
        assert PASSWORD not in refused.err
    assert run("erase", id_).out.rstrip().endswith("timeline erase … --yes")
    monkeypatch.setenv("TIMELINE_DB", "agent.db")
    assert "timeline erase … --yes --db 'postgresql://postgres@/" in run("erase", id_, "--db", server).out


async def test_doctor_names_what_holds_up_readers_of_a_server(
    run: Callable[..., Done], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes by table, what retention would free, and a transaction that writes for long."""
    connection = await asyncpg.connect(without(server, "schema"))
    process = connection.get_server_pid()
    monkeypatch.setattr(examining, "LONG", 0)
    held = ""
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_current_xact_id()")
            while f"process {process} of database" not in held:  # the oldest may be that of another test, for a moment
                found = await asyncio.to_thread(run, "doctor", "--json", "--db", server)
                row = found.json
                (held,) = [finding["text"] for finding in row["remarks"] if finding["code"] == "transaction"]
    finally:
        await connection.close()
    assert found.code == Exit.NOT_SO
    assert row["server"].startswith("PostgreSQL ")
    assert sum(row["sizes"].values()) == row["bytes"]
    assert row["sizes"]["events"] > 0 < row["events"]
    assert PASSWORD not in found.out


async def test_a_repair_of_a_server_names_no_command_that_it_refuses(
    run: Callable[..., Done], server: str, postgres_url: str
) -> None:
    """A restore takes a file alone."""
    connection = await asyncpg.connect(without(postgres_url, "schema"))
    try:
        await connection.execute(f"SET search_path TO {schema_of(postgres_url)}")
        await connection.execute("DELETE FROM events WHERE version = 3")
    finally:
        await connection.close()
    done = await asyncio.to_thread(run, "repair", "--db", server)
    assert "Restore the database with the tools of its server" in done.out + done.err
    assert "timeline restore" not in done.out + done.err


async def test_bytes_that_remain_in_the_tables_are_no_success(
    run: Callable[..., Done], simulated: dict[str, Any], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older transaction may still see them. Exit code and words say so, until the same command reaches the files."""
    monkeypatch.setenv("TIMELINE_DB", server)
    monkeypatch.setattr("timeline.store.postgres.table_files._PATIENCE", 0.2)
    other = await asyncpg.connect(without(server, "schema"))
    try:
        for command in (("redact", simulated["id"], "@2"), ("erase", simulated["id"])):
            assert (await asyncio.to_thread(run, *command)).code == Exit.OK
            await other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
            held = await asyncio.to_thread(run, *command, "--yes")
            await other.execute("ROLLBACK")
            done = await asyncio.to_thread(run, *command, "--yes")
            assert (held.code, done.code) == (Exit.NOT_SO, Exit.OK)
            assert "the bytes are still in the files of its tables" in " ".join(held.out.split())
            assert "the bytes are still" not in done.out
    finally:
        await other.close()
