from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

from tests.cli import sessions
from timeline import Timeline, open_store
from timeline.blocks import UserPrompt
from timeline.cli.exits import Exit
from timeline.events import BlockRedacted, NewEvent, event_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def _native(done: Done) -> list[dict[str, Any]]:
    """Return the lines of an exported log."""
    return [json.loads(line) for line in done.out.splitlines()]


def test_only_its_owner_may_read_an_export(run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path) -> None:
    """Whatever the umask; a file that is replaced keeps its mode."""
    file, known = tmp_path / "log.jsonl", tmp_path / "known.jsonl"
    known.write_text("")
    known.chmod(0o640)
    before = os.umask(0)
    try:
        assert run("export", simulated["id"], "-o", file).code == 0
        assert run("export", simulated["id"], "-o", known, "--force").code == 0
    finally:
        os.umask(before)
    assert [stat.S_IMODE(made.stat().st_mode) for made in (file, known)] == [0o600, 0o640]


def test_the_native_format_comes_back_event_for_event(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """A log that is exported, imported into an empty database and exported again is the same, and so is its report."""
    file, other = tmp_path / "log.jsonl", tmp_path / "other.db"
    run("fork", simulated["id"], "--at", 9)
    assert run("export", "--all", "-o", file).code == 0
    imported = run("import", file, "--db", other, "--json").json
    assert [row["known"] for row in imported] == [0, 0]
    assert run("export", "--all", "--db", other).out == file.read_text(encoding="utf-8")
    assert run("verify", "--db", other, "--json").json == run("verify", "--json").json
    assert [row["events"] for row in run("import", file, "--db", other, "--json").json] == [0, 0]


def test_one_conversation_is_imported_under_another_id(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """Beside the first, which can be erased then; a file of several is refused with the reason."""
    file, fork = tmp_path / "log.jsonl", tmp_path / "fork.jsonl"
    assert run("export", simulated["id"], "-o", file).code == 0
    (done,) = run("import", file, "--as", "other", "--json").json
    assert done["id"] == "other"
    assert run("verify", "other").code == Exit.OK
    assert run("erase", simulated["id"], "--yes").code == 0
    assert [row["id"] for row in run("ls", "--json").json] == ["other"]
    run("import", file, "--as", "").fails(Exit.USAGE, "--as is blank")
    run("fork", "other", "--at", 9)
    assert run("export", "--all", "-o", fork).code == 0
    refused = run("import", fork, "--as", "third")
    assert refused.code == Exit.USAGE
    assert "--as names one conversation" in refused.err
    assert "third" not in run("ls").out


def test_a_log_is_exported_line_by_line(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """A line that opens it, then texts and events, gapless; --json says the same."""
    opening, *lines = _native(run("export", simulated["id"]))
    events = [line for line in lines if line["timeline"] == "event"]
    assert (opening["timeline"], opening["format"], opening["conversation"]) == ("log", 1, simulated["id"])
    assert [event["version"] for event in events] == list(range(1, opening["version"] + 1))
    wanted = {event["payload"]["policy"] for event in events if event["type"] == "context.rendered"}
    assert wanted <= {line["hash"] for line in lines if line["timeline"] == "value"}
    assert run("export", simulated["id"], "--json").out == run("export", simulated["id"]).out


def test_an_import_that_ends_before_the_log_does_says_where(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """What stands before a damaged line is imported; one line and the exit code tell of the rest."""
    file, other = tmp_path / "log.jsonl", tmp_path / "other.db"
    lines = run("export", simulated["id"]).out.splitlines()
    file.write_text("\n".join(line for line in lines if '"version":5,' not in line), encoding="utf-8")
    done = run("import", file, "--db", other, "--json")
    assert (done.code, [row["events"] for row in done.json]) == (Exit.USAGE, [4])
    assert "version 5 is missing or damaged" in done.err
    assert done.err.count("\n") == 1


def test_one_conversation_or_all_of_them_are_named(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Neither, or both, is wrong usage; and so is what only fits another format."""
    run("export").fails(Exit.USAGE, "--all")
    run("export", simulated["id"], "--all").fails(Exit.USAGE, "--all")
    run("export", "--all", "--format", "markdown").fails(Exit.USAGE, "--format jsonl")
    run("export", simulated["id"], "--window").fails(Exit.USAGE, "--window")
    run("export", simulated["id"], "--characters", 5).fails(Exit.USAGE, "--characters")
    run("export", simulated["id"], "--format", "atif", "--window").fails(Exit.USAGE, "--window")
    run("export", simulated["id"], "--wire", "morse").fails(Exit.USAGE, "morse", "anthropic")
    for other in ("markdown", "atif"):
        run("export", simulated["id"], "--format", other, "--wire", "anthropic").fails(Exit.USAGE, "two formats")
        run("export", simulated["id"], "--format", other, "--json").fails(Exit.USAGE, "two formats")
    run("export", simulated["id"], "--mode", "chat").fails(Exit.USAGE, "--html")
    run("export", simulated["id"], "--contexts", "all").fails(Exit.USAGE, "--html")


def _redact(db: Path, conversation: str, path: str) -> None:
    async def append() -> None:
        async with open_store(db) as store:
            found = await store.find(conversation, path)
            assert found is not None
            event = NewEvent(id=event_id(found.at), at=found.at, payload=BlockRedacted(version=found.version))
            await store.append(conversation, [event])

    asyncio.run(append())


@pytest.mark.parametrize(
    "shape",
    [
        [],
        ["--format", "markdown"],
        ["--format", "markdown", "--window"],
        ["--format", "atif"],
        ["--wire", "anthropic"],
        ["--wire", "openai-chat"],
        ["--wire", "openai-responses"],
        ["--wire", "anthropic", "--window"],
    ],
    ids=" ".join,
)
def test_what_is_redacted_is_in_no_export(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, shape: list[str]
) -> None:
    """A prompt that is redacted is gone from its place, from the title and from the summaries made of it."""
    assert "make part 1 work" in run("export", simulated["id"], *shape).out
    _redact(db, simulated["id"], "ar:turn_1.user.prompt")
    done = run("export", simulated["id"], *shape)
    assert done.code == 0
    assert "make part 1 work" not in done.out
    assert "[redacted]" in done.out


def test_a_log_without_what_is_redacted_says_so(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path, tmp_path: Path
) -> None:
    """One line tells how many events are not whole; verification says why contexts are not rebuilt."""
    _redact(db, simulated["id"], "ar:turn_1.user.prompt")
    file, other = tmp_path / "log.jsonl", tmp_path / "other.db"
    assert "without their redacted content" in run("export", simulated["id"], "-o", file).err
    run("import", file, "--db", other)
    done = run("verify", simulated["id"], "--db", other)
    assert done.code == 0
    assert "cannot be rebuilt: redacted" in done.out


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


def test_a_transcript_is_cut_where_that_is_wanted(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Each block's beginning, and how much more there is."""
    out = run("export", simulated["id"], "--format", "markdown", "--characters", 10).out
    assert "\nTask 1: ma\n… 15 more characters\n" in out
    assert len(out) < len(run("export", simulated["id"], "--format", "markdown").out)


def test_a_transcript_of_the_window_shows_what_the_model_sees(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """Summaries stand for what they cover; nothing that is covered is there."""
    run("hide", simulated["id"], "tc:turn_3.toolu_3-6.result")
    out = run("export", simulated["id"], "--format", "markdown", "--window").out
    assert "### Summary" in out
    assert " · covered" not in out
    assert "line21-3-6" not in out
    shown = [row["path"] for row in run("show", simulated["id"], "--json").json if row["state"] == "visible"]
    assert all(f"`{path}`" in out for path in shown)


def test_a_transcript_of_the_window_has_one_memory_digest(run: Callable[..., Done], db: Path) -> None:
    """The newest list is what the model sees; older ones are in the whole transcript alone."""

    async def work() -> None:
        async with await open_store(str(db)) as store:
            timeline = await Timeline.open(store, "paper")
            for stage in ("topic", "outline"):
                await timeline.enter_stage(stage)
                await timeline.append(UserPrompt(text=f"the {stage}"))
                await timeline.approve_stage(decision=f"{stage} settled")

    asyncio.run(work())
    assert run("export", "paper", "--format", "markdown", "--window").out.count("topic settled") == 1
    assert run("export", "paper", "--format", "markdown").out.count("topic settled") == 2


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "openai-responses", "gemini", "ai-sdk", "ai-sdk-ui"])
def test_a_providers_messages_hold_the_whole_conversation(
    run: Callable[..., Done], simulated: dict[str, Any], wire: str
) -> None:
    """What is covered is there in full, no summary stands in its place, and nothing is marked for a cache."""
    text = run("export", simulated["id"], "--wire", wire).out
    body = json.loads(text)
    assert all(f"Task {turn}: make part {turn} work." in text for turn in (1, 2, 3))
    assert "line21-1-1" in text
    assert "Summary of the earlier conversation" not in text
    assert "cache_control" not in text
    assert any(len(messages) >= 6 for messages in body.values())


def test_a_request_of_the_responses_api_is_read_again(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """It says the same when it is exported from the copy."""
    file = tmp_path / "items.json"
    run("export", simulated["id"], "--wire", "openai-responses", "-o", file)
    [copy] = run("import", file, "--json").json
    assert json.loads(file.read_text()) == run("export", copy["id"], "--wire", "openai-responses").json


def test_a_providers_messages_of_the_window_are_what_it_would_be_sent(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """The summary stands for what it covers, as in a render without a decision."""
    text = run("export", simulated["id"], "--wire", "anthropic", "--window").out
    assert "Summary of the earlier conversation" in text
    assert "line21-1-1" not in text


def test_a_file_appears_when_it_is_complete(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """`-o` writes what standard output would get, over what was there if forced, and leaves nothing else behind."""
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / "log.jsonl"
    file.write_text("old", encoding="utf-8")
    run("export", simulated["id"], "-o", file).fails(Exit.USAGE, "exists already", "--force")
    assert file.read_text(encoding="utf-8") == "old"
    done = run("export", simulated["id"], "-o", file, "--force")
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
    run("export", simulated["id"], "--format", "markdown", "-o", file, "--force").fails(Exit.DATABASE, "damaged")
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


def test_a_pipe_without_a_name_of_its_own_is_written_to(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """`-o /dev/stdout | gzip`, and a shell's `-o >(gzip)`: the name leads to a pipe, its resolved path to nothing."""
    on_standard_output = run("export", simulated["id"]).out
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, ThreadPoolExecutor() as reader:
        heard = reader.submit(pipe.read)
        done = run("export", simulated["id"], "-o", f"/dev/fd/{writing}")
        os.close(writing)
        assert (done.code, done.err) == (0, "")
        assert heard.result() == on_standard_output.encode()


def test_a_file_that_cannot_be_written_is_told_in_one_line(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """A missing folder, or a folder in place of a file, gives exit code 2."""
    run("export", simulated["id"], "-o", tmp_path / "no" / "log.jsonl").fails(Exit.USAGE, "log.jsonl")
    run("export", simulated["id"], "-o", tmp_path).fails(Exit.USAGE, str(tmp_path))


def test_damaged_events_are_left_out_and_told(run: Callable[..., Done], simulated: dict[str, Any], db: Path) -> None:
    """The native format rescues every event that still reads; the exit code and one line say what is missing."""
    whole = _native(run("export", simulated["id"]))
    _damage(db, 5, 6, 9)
    done = run("export", simulated["id"])
    assert done.code == Exit.DATABASE
    assert done.err.count("\n") == 1
    assert "5, 6, 9" in done.err
    assert _native(done) == [line for line in whole if line["timeline"] != "event" or line["version"] not in {5, 6, 9}]


def _damage(db: Path, *versions: int) -> None:
    with closing(sqlite3.connect(db)) as connection, connection:
        for version in versions:
            connection.execute("UPDATE events SET checksum = 'x' WHERE version = ?", (version,))


def test_an_export_never_replaces_a_database(run: Callable[..., Done], simulated: dict[str, Any], db: Path) -> None:
    """Also with --force the log's own database, or another, stays what it is."""
    before = run("show", simulated["id"]).out
    run("export", "--all", "-o", db, "--force").fails(Exit.USAGE, db.name, "never replaces")
    assert run("show", simulated["id"]).out == before


def test_a_conversation_is_one_html_file_named_by_id_and_version(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what is not in it; it replaces nothing unless it is told to."""
    monkeypatch.chdir(tmp_path)
    id_ = simulated["id"]
    version = next(row["version"] for row in run("ls", "--json").json if row["id"] == id_)
    done = run("export", id_, "--html")
    assert (done.code, done.out) == (0, "")
    [file] = tmp_path.glob("*.html")
    assert file.name == f"{id_}-v{version}.html"
    assert f"wrote {file.name}" in done.err
    assert "not in the file: " in done.err
    page = file.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert not re.findall(r"(?:src|href)=\"(?!data:)[^\"]", page), "it names nothing beside it"
    run("export", id_, "--html").fails(2, "exists already")
    assert run("export", id_, "--html", "--force", "--mode", "chat").code == 0
    assert len(file.read_bytes()) < len(page.encode())


def test_what_an_html_file_is_shared_without_is_listed(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """Each place with the kind and the first characters, for a person to look over."""
    done = run("export", simulated["id"], "--html", "--redact", "--yes", "-o", tmp_path / "shared.html")
    assert done.code == 0
    assert "Look over them, and at the file, before you share it" in done.err


def test_what_would_be_taken_out_is_listed_before_a_file_is_written(run: Callable[..., Done], tmp_path: Path) -> None:
    """The list comes first, with the beginning of each finding alone; the file comes with --yes."""
    secret, chat, shared = "ghp_" + "aB3dE6gH9j" * 3 + "kL2mN5", tmp_path / "chat.json", tmp_path / "shared.html"
    chat.write_text(json.dumps([{"role": "user", "content": f"use {secret} in /home/ada/app"}]), encoding="utf-8")
    [imported] = run("import", chat, "--json").json
    done = run("export", imported["id"], "--html", "--redact", "-o", shared)
    assert done.code == 0
    assert not shared.exists()
    for said in ("github", "use «ghp_… 40 characters» in ~", "home folder", "Nothing was written", "--yes", "--keep"):
        assert said in done.out
    assert secret not in done.out + done.err
    assert run("export", imported["id"], "--html", "--redact", "--yes", "-o", shared).code == 0
    assert secret not in shared.read_text(encoding="utf-8")
    run("export", imported["id"], "--redact").fails(2, "--redact goes with --html")
    run("export", imported["id"], "--html", "--yes").fails(2, "--yes and --keep go with --redact")


def test_a_false_alarm_is_kept_by_its_name(run: Callable[..., Done], tmp_path: Path) -> None:
    """The name is the one that the dry run lists; another is refused, and no file is written."""
    chat, shared = tmp_path / "chat.json", tmp_path / "shared.html"
    chat.write_text(json.dumps([{"role": "user", "content": "look in /home/ada/app"}]), encoding="utf-8")
    [imported] = run("import", chat, "--json").json
    asked = ("export", imported["id"], "--html", "--redact")
    [name] = re.findall(r"^([0-9a-f]{8})\thome folder", run(*asked).out, re.MULTILINE)
    assert run(*asked, "--keep", name, "--yes", "-o", shared).code == 0
    assert "nothing would be taken out" in run(*asked, "--keep", name).out
    run(*asked, "--keep", "00000000", "--yes", "-o", tmp_path / "none.html").fails(2, "00000000")
    assert not (tmp_path / "none.html").exists()


def test_a_conversation_with_a_long_id_is_one_file_like_any_other(
    run: Callable[..., Done], simulated: dict[str, Any], tmp_path: Path
) -> None:
    """A store takes an id of any length; what the inspector is asked has bounds, which are for requests."""
    id_ = "long " * 1_000
    assert run("fork", simulated["id"], "--as", id_).code == 0
    for words, name in ((("--html",), "log.html"), (("--format", "bundle", "--yes"), "log.zip")):
        done = run("export", id_, *words, "-o", tmp_path / name)
        assert (done.code, done.out) == (0, ""), done.err
        assert (tmp_path / name).stat().st_size


def test_a_bug_bundle_is_listed_before_it_is_written(run: Callable[..., Done], tmp_path: Path) -> None:
    """The list comes first; with --yes the zip, whose log imports again."""
    secret, chat, packed = "ghp_" + "aB3dE6gH9j" * 3 + "kL2mN5", tmp_path / "chat.json", tmp_path / "bug.zip"
    chat.write_text(json.dumps([{"role": "user", "content": f"use {secret} in /home/ada/app"}]), encoding="utf-8")
    [imported] = run("import", chat, "--json").json
    asked = ("export", imported["id"], "--format", "bundle", "-o", packed)
    done = run(*asked)
    assert done.code == 0
    assert "Nothing was written" in done.out
    assert not packed.exists()
    assert run(*asked, "--yes").code == 0
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600
    with ZipFile(packed) as files:
        assert not [name for name in files.namelist() if secret.encode() in files.read(name)]
        files.extract("log.jsonl", tmp_path)
    other = tmp_path / "other.db"
    assert run("import", tmp_path / "log.jsonl", "--db", other).code == 0
    assert run("verify", "--db", other).code == 0
    run(*asked, "--wire", "anthropic").fails(2, "--format bundle goes with")
    run("export", "--all", "--format", "bundle").fails(2, "one conversation")


@pytest.mark.parametrize(
    "words",
    [("--wire", "anthropic"), ("--format", "markdown"), ("--window",), ("--characters", "5"), ("--json",)],
)
def test_html_goes_with_no_other_format(run: Callable[..., Done], simulated: dict[str, Any], words: tuple[str]) -> None:
    """One file is one format."""
    run("export", simulated["id"], "--html", *words).fails(2, "--html goes with")
    run("export", "--all", "--html").fails(2, "one conversation")
