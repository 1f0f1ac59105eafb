from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions
from timeline import Timeline, open_store
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def _checksum(conversation: str, line: dict[str, Any]) -> str:
    """Hash a line as the format's description says, without the library."""
    payload = json.dumps(line["payload"], separators=(",", ":"), ensure_ascii=False)
    parts = [conversation, line["version"], line["id"], line["type"], line["schema_version"], line["at"], payload]
    return sha256("\n".join(map(str, parts)).encode()).hexdigest()


def test_the_native_format_holds_every_event_as_it_is_stored(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """A header line, then an event a line; each checksum can be computed from its line."""
    header, *lines = map(json.loads, run("export", simulated["id"]).out.splitlines())
    assert (header["format"], header["format_version"]) == ("timeline-events", 1)
    assert header["conversation"] == simulated["id"]
    assert header["version"] == len(lines)
    assert [line["version"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line for line in lines if _checksum(simulated["id"], line) != line["checksum"]] == []


def test_the_native_format_names_the_parent_of_what_a_fork_shares(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path
) -> None:
    """The whole log of a fork is exported; shared lines say whose they are, and every checksum can be computed."""

    async def forked() -> tuple[str, int]:
        async with open_store(db) as store:
            timeline = await Timeline.open(store, simulated["id"])
            return (await timeline.fork(at=5)).id, 5

    id_, base = asyncio.run(forked())
    header, *lines = map(json.loads, run("export", id_).out.splitlines())
    assert header["version"] == len(lines) > base
    assert [line.get("conversation") for line in lines] == [simulated["id"]] * base + [None] * (len(lines) - base)
    assert [line for line in lines if _checksum(line.get("conversation", id_), line) != line["checksum"]] == []


def test_the_native_format_brings_the_values_that_contexts_refer_to(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """Policies and prompts of recorded contexts are in the header, under their hashes."""
    header, *lines = map(json.loads, run("export", simulated["id"], "--json").out.splitlines())
    wanted = {line["payload"]["policy"] for line in lines if line["type"] == "context.rendered"}
    assert wanted == set(header["values"])
    assert all(sha256(text.encode()).hexdigest() == hash_ for hash_, text in header["values"].items())


def test_a_transcript_shows_every_block_with_its_state(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Markdown has a heading a turn, and each block's path, state and text."""
    rows = run("show", simulated["id"], "--json").json
    out = run("export", simulated["id"], "--format", "markdown").out
    assert out.startswith("# Task 1: make part 1 work.\n")
    assert all(f"`{row['path']}` · {row['state']}" in out for row in rows if row["path"])
    assert "Task 3: make part 3 work." in out
    assert "### Call: Bash" in out


def test_a_transcript_survives_texts_that_hold_fences(run: Callable[..., Done], tmp_path: Path) -> None:
    """A text with a fence of its own stands inside a longer one."""
    made = sessions.rows(1, 1)
    made[0]["message"]["content"] = "````\ncode\n````"
    run("import", sessions.write(tmp_path, made))
    assert "`````\n````\ncode\n````\n`````\n" in run("export", sessions.SESSION, "--format", "markdown").out


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
def test_a_providers_messages_hold_the_whole_conversation(
    run: Callable[..., Done], simulated: dict[str, Any], wire: str
) -> None:
    """What is covered is there in full, no summary stands in its place, and nothing is marked for a cache."""
    text = run("export", simulated["id"], "--format", wire).out
    body = json.loads(text)
    assert all(f"Task {turn}: make part {turn} work." in text for turn in (1, 2, 3))
    assert "line21-1-1" in text
    assert "Summary of the earlier conversation" not in text
    assert "cache_control" not in text
    assert len(body["messages"]) > 30


def test_a_file_appears_when_it_is_complete(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """`-o` writes what standard output would get, over what was there, and leaves nothing else behind."""
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / "log.jsonl"
    file.write_text("old", encoding="utf-8")
    done = run("export", simulated["id"], "-o", file)
    assert (done.code, done.out) == (0, "")
    assert file.read_text(encoding="utf-8") == run("export", simulated["id"], "-o", "-").out
    assert [f.name for f in folder.iterdir()] == ["log.jsonl"]


def test_a_failed_export_leaves_the_old_file_alone(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path, db: Path
) -> None:
    """When the log cannot be read to its end, a transcript that was there stays as it was."""
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / "transcript.md"
    file.write_text("old", encoding="utf-8")
    _damage(db, 5)
    run("export", simulated["id"], "--format", "markdown", "-o", file).fails(Exit.DATABASE, "damaged")
    assert file.read_text(encoding="utf-8") == "old"
    assert [f.name for f in folder.iterdir()] == ["transcript.md"]


def test_a_device_is_written_to_and_not_replaced(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """`-o /dev/null` leaves the device a device; a link is followed, not replaced."""
    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    assert run("export", simulated["id"], "-o", null).code == 0
    assert null.is_symlink()
    assert null.resolve().is_char_device()


def test_a_file_that_cannot_be_written_is_told_in_one_line(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """A missing folder, or a folder in place of a file, gives exit code 2."""
    run("export", simulated["id"], "-o", tmp_path / "no" / "log.jsonl").fails(Exit.USAGE, "log.jsonl")
    run("export", simulated["id"], "-o", tmp_path).fails(Exit.USAGE, str(tmp_path))


def test_damaged_events_are_left_out_and_told(run: Callable[..., Done], simulated: dict[str, Any], db: Path) -> None:
    """The native format rescues every event that still reads; the exit code and one line say what is missing."""
    whole = run("export", simulated["id"]).out.splitlines()
    _damage(db, 5, 6, 9)
    done = run("export", simulated["id"])
    assert done.code == Exit.DATABASE
    assert done.err.count("\n") == 1
    assert "5, 6, 9" in done.err
    assert done.out.splitlines() == [line for version, line in enumerate(whole) if version not in {5, 6, 9}]


def _damage(db: Path, *versions: int) -> None:
    with closing(sqlite3.connect(db)) as connection, connection:
        for version in versions:
            connection.execute("UPDATE events SET checksum = 'x' WHERE version = ?", (version,))
