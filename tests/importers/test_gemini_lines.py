"""Gemini CLI sessions as lines, written as the tool's recorder writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.importers.gemini_writer import Writer
from tests.importers.session import blocks, kinds
from timeline import open_store
from timeline.blocks import ToolResult
from timeline.errors import ImportFailed
from timeline.events import ModelCalled, ParentLink
from timeline.importers import Recording, read_recording
from timeline.importers.gemini_cli import read_gemini_cli
from timeline.importers.gemini_lines import read_gemini_lines
from timeline.portable.recordings import import_recording
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path


def texts(recording: Recording) -> list[str]:
    """Return the texts of a recording's prompts and answers."""
    return [b.text for b in blocks(recording) if b.type in {"user.prompt", "assistant.completion"}]


def spoken() -> Writer:
    """Write two turns, the first one with thoughts and two calls."""
    writer = Writer()
    writer.info()
    writer.user("Read it.")
    writer.think("Reading", "First the file.")
    writer.gemini("I read it.")
    writer.call("a", "one line")
    writer.call("b", "no line")
    writer.gemini("Done.")
    writer.user("Thanks.")
    writer.gemini("You are welcome.")
    return writer


def test_a_session_of_lines_is_read_like_the_document_of_its_messages(tmp_path: Path) -> None:
    """Each message once, in its place, as it was written last."""
    writer = spoken()
    (recording,) = read_recording(writer.write(tmp_path))
    assert (recording.id, recording.title, recording.report.format) == ("session-1", "Read it.", "gemini-cli")
    assert kinds(recording)[:8] == [
        "user.prompt",
        "assistant.reasoning",
        "assistant.completion",
        "react.tool.call",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "react.tool.result",
    ]
    assert [b.text for b in blocks(recording) if isinstance(b, ToolResult)] == ["one line", "no line"]
    used = [e.payload.usage for e in recording.events if isinstance(e.payload, ModelCalled)]
    assert used == [Usage(input_tokens=202, output_tokens=15, cache_read_tokens=1000)] * 3
    document = {"sessionId": "session-1", "projectHash": "7e89", "messages": writer.messages}
    (alike,) = read_gemini_cli(document, "x")
    assert recording.events == alike.events
    assert recording.report.findings == []


def test_the_summary_that_the_client_wrote_later_is_the_title() -> None:
    """It is a change of the session's head."""
    writer = spoken()
    writer.change(summary="Reading a file")
    writer.change(directories=["/repo"])
    (recording,) = read_gemini_lines(writer.text().encode(), "x")
    assert recording.title == "Reading a file"


async def test_a_session_that_has_grown_adds_what_is_new(tmp_path: Path) -> None:
    """At every line: a call that was still running gets its result later."""
    writer = spoken()
    grown, whole = tmp_path / "grown.jsonl", tmp_path / "whole.jsonl"
    whole.write_text(writer.text(), encoding="utf-8")
    async with open_store("memory://") as store:
        for end in range(2, len(writer.lines) + 1):
            grown.write_text("".join(f"{line}\n" for line in writer.lines[:end]), encoding="utf-8")
            try:
                (recording,) = read_recording(grown)
            except ImportFailed:
                assert end < 5
                continue
            await import_recording(store, recording)
        (recording,) = read_recording(whole)
        assert (await import_recording(store, recording)).events == 0
        assert (await store.info("session-1")).version == len(recording.events) + 1


def test_a_rewind_is_where_another_branch_begins() -> None:
    """The newest comes first; what was left is a conversation too, and keeps the session's id."""
    writer = Writer()
    writer.user("Build it.")
    writer.gemini("In Go.")
    second = writer.user("Test it.")
    writer.gemini("It fails.")
    writer.rewind(second)
    third = writer.user("Build it in Rust.")
    writer.gemini("In Rust.")
    newest, oldest = read_gemini_lines(writer.text().encode(), "x")
    assert texts(newest) == ["Build it.", "In Go.", "Build it in Rust.", "In Rust."]
    assert texts(oldest) == ["Build it.", "In Go.", "Test it.", "It fails."]
    assert (newest.id, oldest.id) == (f"session-1.branch-{third['id']}", "session-1")
    assert newest.parent == ParentLink(conversation="session-1", relation="fork")
    assert oldest.parent is None
    assert newest.report.counts["branch"] == 1
    assert newest.report.counts["rolled_back"] == 1


def test_branches_of_branches_name_the_one_that_they_come_from() -> None:
    """By the last message that they share with it."""
    writer = Writer()
    first = writer.user("One.")
    writer.gemini("First.")
    writer.rewind(writer.user("Two."))
    inner = writer.user("Three.")
    writer.gemini("Third.")
    writer.rewind(writer.user("Four."))
    writer.user("Five.")
    writer.rewind(first)
    writer.user("Six.")
    newest, fifth, third, oldest = read_gemini_lines(writer.text().encode(), "x")
    assert [texts(r)[-1] for r in (newest, fifth, third, oldest)] == ["Six.", "Five.", "Four.", "Two."]
    assert fifth.parent is not None
    assert third.parent is not None
    assert fifth.parent.conversation == third.id == f"session-1.branch-{inner['id']}"
    assert third.parent.conversation == "session-1"
    assert texts(newest) == ["Six."]


def test_a_rewind_that_nothing_follows_takes_nothing_away() -> None:
    """The session may go on from there; until then it is what was said."""
    writer = spoken()
    writer.rewind(writer.messages[-2])
    (recording,) = read_gemini_lines(writer.text().encode(), "x")
    assert texts(recording)[-1] == "You are welcome."
    assert recording.report.counts["rolled_back"] == 1


def test_a_history_that_the_client_put_in_place_of_the_old_one_follows_it() -> None:
    """As it does when it compresses; nothing that was said goes."""
    writer = spoken()
    writer.change(messages=[{"id": "s1", "timestamp": "2026-04-10T03:00:00Z", "type": "user", "content": "So far: …"}])
    writer.user("Go on.")
    (recording,) = read_gemini_lines(writer.text().encode(), "x")
    assert texts(recording)[-2:] == ["So far: …", "Go on."]
    assert texts(recording)[0] == "Read it."
    assert recording.report.counts["rolled_back"] == 1


@pytest.mark.parametrize("line", range(20))
def test_a_line_that_broke_off_costs_itself_alone(line: int) -> None:
    """Its neighbours are read, and so are all other messages."""
    writer = spoken()
    spoilt = [*writer.lines]
    spoilt[line] = spoilt[line][: len(spoilt[line]) // 2]
    recordings = read_gemini_lines("".join(f"{text}\n" for text in spoilt).encode(), "session-1")
    assert len(recordings) == 1
    assert len(blocks(recordings[0])) >= len(writer.messages) - 2
    assert recordings[0].report.counts["quarantined"] + recordings[0].report.counts["split"] >= 1


def test_a_session_is_recognised_by_any_of_its_lines(tmp_path: Path) -> None:
    """The head may be lost; the file's name is the id then."""
    writer = spoken()
    del writer.lines[0]
    (recording,) = read_recording(writer.write(tmp_path, "some-name.jsonl"))
    assert recording.id == "some-name"
    assert texts(recording)[0] == "Read it."


def test_a_session_in_which_nothing_was_said_is_refused(tmp_path: Path) -> None:
    """It has a head alone, or news to the user."""
    writer = Writer()
    for _ in range(2):
        with pytest.raises(ImportFailed, match="no message"):
            read_recording(writer.write(tmp_path))
        writer.info()


def test_an_unknown_line_is_reported() -> None:
    """With what it holds."""
    writer = spoken()
    writer.lines.append(json.dumps({"$future": 1}))
    (recording,) = read_gemini_lines(writer.text().encode(), "x")
    assert recording.report.findings == [{"kind": "unknown_record", "line": len(writer.lines), "detail": "$future"}]
