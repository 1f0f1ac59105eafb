from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.importers.session import blocks, kinds
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult
from timeline.events import ModelCalled
from timeline.importers import Recording, read_recording

if TYPE_CHECKING:
    from pathlib import Path

Fields = dict[str, Any]

SESSION = "5b1c0f7e-6c7e-4f7e-9a51-0a6d5a1f6a20"


def event(second: int, type_: str, **fields: Any) -> Fields:
    """Return an event of the stream."""
    return {"type": type_, "timestamp": f"2026-03-04T09:08:{second:02}.000Z", **fields}


BEGINS = event(0, "init", session_id=SESSION, model="gemini-3-pro")
ASKED = event(1, "message", role="user", content="Build cards.")
SUMS = {"total_tokens": 2600, "input_tokens": 2500, "output_tokens": 100, "cached": 0, "tool_calls": 1}


def said(second: int, piece: str) -> Fields:
    """Return a piece of an answer."""
    return event(second, "message", role="assistant", content=piece, delta=True)


def called(second: int, id_: str, **parameters: Any) -> Fields:
    """Return a call."""
    return event(second, "tool_use", tool_name="read_file", tool_id=id_, parameters=parameters)


def gave(second: int, id_: str, status: str = "success", **fields: Any) -> Fields:
    """Return the result of a call."""
    return event(second, "tool_result", tool_id=id_, status=status, **fields)


def read(folder: Path, *events: Fields) -> Recording:
    """Read a stream."""
    file = folder / "run.jsonl"
    file.write_text("".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in events), encoding="utf-8")
    [recording] = read_recording(file)
    return recording


def test_the_pieces_of_an_answer_are_one_text_of_the_response_that_calls(tmp_path: Path) -> None:
    """A response ends with the first result of its calls; two calls of one response have both results behind it."""
    calls = called(4, "a", file_path="a.md"), called(4, "b", file_path="b.md")
    results = gave(5, "a", output="A"), gave(6, "b", output="B")
    recording = read(tmp_path, BEGINS, ASKED, said(2, "I look "), said(3, "first."), *calls, *results, said(7, "Done."))
    assert (recording.id, recording.title) == (f"run-{SESSION}", "Build cards.")
    assert recording.report.format == "gemini-cli-stream"
    assert kinds(recording) == [
        "user.prompt",
        "assistant.completion",
        "react.tool.call",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "react.tool.result",
        "assistant.completion",
        "ModelCalled",
    ]
    texts = [block.text for block in blocks(recording) if isinstance(block, AssistantCompletion)]
    assert texts == ["I look first.", "Done."]
    [first, _] = [block for block in blocks(recording) if isinstance(block, ToolCall)]
    assert (first.name, first.arguments) == ("read_file", {"file_path": "a.md"})
    models = {one.payload.model for one in recording.events if isinstance(one.payload, ModelCalled)}
    assert models == {"gemini-3-pro"}


def test_a_failed_call_has_its_output_or_else_the_words_of_its_error(tmp_path: Path) -> None:
    """A call that succeeds may say nothing."""
    error = {"type": "invalid_tool_params", "message": "no such file"}
    calls = [called(2, "a"), called(2, "b"), called(2, "c")]
    results = gave(3, "a", "error", error=error), gave(3, "b", "error", output="shown", error=error), gave(3, "c")
    recording = read(tmp_path, BEGINS, ASKED, *calls, *results)
    found = [(block.text, block.is_error) for block in blocks(recording) if isinstance(block, ToolResult)]
    assert found == [("no such file", True), ("shown", True), ("", False)]


def test_a_run_that_failed_says_how_and_its_sums_are_no_usage_of_a_response(tmp_path: Path) -> None:
    """A warning says why a run ended, too."""
    warns = event(3, "error", severity="warning", message="Loop detected, stopping execution")
    ends = event(4, "result", status="error", error={"type": "Error", "message": "quota"}, stats=SUMS)
    recording = read(tmp_path, BEGINS, ASKED, said(2, "I look."), warns, ends)
    found = {(one["kind"], one["detail"]) for one in recording.report.findings}
    assert found == {
        ("aborted_turn", "Loop detected, stopping execution"),
        ("aborted_turn", "quota"),
        ("missing_usage", "of the whole run only: 2,500 tokens in, 100 out"),
    }


def test_what_a_program_wrote_before_the_run_takes_no_time_from_it(tmp_path: Path) -> None:
    """A harness puts lines of its own into the file, and further keys into each line."""
    before = {"type": "message", "role": "user", "content": "Cards, please.", "ts": "2026-03-04T09:07:00"}
    strange = (
        event(3, "telemetry"),
        event(3, "tool_result", status="success"),
        event(3, "message", role="user", content=""),
    )
    recording = read(tmp_path, before, {**BEGINS, "ts": "2026-03-04T09:08:00"}, ASKED, said(2, "Done."), *strange)
    assert kinds(recording) == ["user.prompt", "user.prompt", "assistant.completion", "ModelCalled"]
    assert {one.at.year for one in recording.events} == {2026}
    assert (recording.report.counts["missing_time"], recording.report.counts["unknown_record"]) == (1, 3)
