from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.importers.session import blocks, kinds
from timeline.blocks import ToolResult
from timeline.importers import Recording, read_recording

if TYPE_CHECKING:
    from pathlib import Path

Fields = dict[str, Any]

THREAD = "0199a213-81c0-7800-8aa1-bbab2a035a53"
BEGINS = {"type": "thread.started", "thread_id": THREAD}
TURN = {"type": "turn.started"}
SUMS = {
    "type": "turn.completed",
    "usage": {"input_tokens": 24_763, "cached_input_tokens": 24_448, "output_tokens": 122},
}


def item(number: int, kind: str, event: str = "completed", **fields: Any) -> Fields:
    """Return an event about an item."""
    return {"type": f"item.{event}", "item": {"id": f"item_{number}", "type": kind, **fields}}


def command(number: int, event: str, output: str = "", status: str = "in_progress", code: int | None = None) -> Fields:
    """Return an event about a command."""
    told = {"command": "bash -lc ls", "aggregated_output": output, "exit_code": code, "status": status}
    return item(number, "command_execution", event, **told)


def read(folder: Path, *events: Fields) -> Recording:
    """Read a stream."""
    file = folder / "run.jsonl"
    file.write_text("".join(f"{json.dumps(event, separators=(',', ':'))}\n" for event in events), encoding="utf-8")
    [recording] = read_recording(file)
    return recording


def test_an_item_is_read_once_as_its_last_event_has_it(tmp_path: Path) -> None:
    """A command starts and is completed; what it gave is its result."""
    said = item(0, "reasoning", text="**Scanning**"), item(2, "agent_message", text="Done.")
    ran = command(1, "started"), command(1, "completed", "ls: no\n", "failed", 2)
    recording = read(tmp_path, BEGINS, TURN, said[0], *ran, said[1], SUMS)
    assert (recording.id, recording.report.format) == (f"run-{THREAD}", "codex-exec")
    assert kinds(recording) == [
        "assistant.reasoning",
        "react.tool.call",
        "react.tool.result",
        "assistant.completion",
    ]
    [result] = [block for block in blocks(recording) if isinstance(block, ToolResult)]
    assert (result.text, result.exit_status, result.is_error) == ("ls: no\n", 2, True)
    assert recording.report.counts["missing_usage"] == 1


def test_calls_of_servers_and_patches_have_their_results(tmp_path: Path) -> None:
    """Of a patch the stream says how it went, and nothing more."""
    answer = {"content": [{"type": "text", "text": "two"}], "structured_content": None}
    asked: Fields = {"server": "github", "tool": "search_issues", "arguments": {"q": "x"}}
    searched = item(0, "mcp_tool_call", **asked, result=answer, error=None, status="completed")
    patched = item(1, "file_change", changes=[{"path": "/p/a.py", "kind": "update"}], status="completed")
    recording = read(tmp_path, BEGINS, TURN, searched, patched)
    results = [block for block in blocks(recording) if isinstance(block, ToolResult)]
    assert [(block.name, block.text) for block in results] == [
        ("github__search_issues", "two"),
        ("apply_patch", "completed"),
    ]


def test_a_call_that_was_under_way_when_the_run_ended_is_open(tmp_path: Path) -> None:
    """And the report says how it ended."""
    fails = {"type": "turn.failed", "error": {"message": "stream disconnected"}}
    recording = read(tmp_path, BEGINS, TURN, command(0, "started"), fails)
    assert kinds(recording) == ["react.tool.call"]
    assert (recording.report.counts["unanswered_call"], recording.report.counts["aborted_turn"]) == (1, 1)
