from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.importers.session import blocks, kinds, said, use
from timeline.blocks import ToolResult, UserPrompt
from timeline.events import ModelCalled
from timeline.importers import ImportedCompaction, read_recording

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.importers import Recording

Fields = dict[str, Any]

SESSION = "5a3e0f0e-9d51-4a6e-8f4c-2d3b1c0a9e77"
BEGINS = {"type": "system", "subtype": "init", "session_id": SESSION, "model": "claude-opus-4-5", "tools": ["Bash"]}
SUMS = {"type": "result", "subtype": "success", "is_error": False, "session_id": SESSION}


def message(role: str, *parts: Fields, of: str | None = None, id_: str = "", **fields: Any) -> Fields:
    """Return a message of the stream; ``of`` is the call that started the subagent that it is from."""
    inner: Fields = {"role": role, "content": list(parts)}
    if role == "assistant":
        inner |= {"id": id_, "model": "claude-opus-4-5", "usage": {"input_tokens": 3, "output_tokens": 1}}
    return {"type": role, "message": inner, "parent_tool_use_id": of, "session_id": SESSION, **fields}


def answer(call_id: str, text: str, **fields: Any) -> Fields:
    """Return a message with the result of a call."""
    return message("user", {"type": "tool_result", "tool_use_id": call_id, "content": text}, **fields)


def read(folder: Path, *messages: Fields) -> list[Recording]:
    """Read a stream."""
    file = folder / "run.jsonl"
    file.write_text("".join(f"{json.dumps(m, separators=(',', ':'))}\n" for m in messages), encoding="utf-8")
    return read_recording(file)


def test_a_stream_is_a_conversation_named_after_its_file_and_session(tmp_path: Path) -> None:
    """What the client adds in the user's role opens no turn, and parts of one response are one response."""
    [recording] = read(
        tmp_path,
        BEGINS,
        message("assistant", said("I look."), id_="m1"),
        message("assistant", use("c1", command="ls"), id_="m1"),
        answer("c1", "cards.py", tool_use_result={"stdout": "cards.py", "interrupted": False}),
        message("user", said("Base directory for this skill: /skills/cards"), isSynthetic=True),
        message("assistant", said("Done."), id_="m2"),
    )
    assert (recording.id, recording.report.format) == (f"run-{SESSION}", "claude-code-stream")
    assert kinds(recording) == [
        "assistant.completion",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "client.message",
        "assistant.completion",
        "ModelCalled",
    ]
    assert {block.turn_id for block in blocks(recording)} == {"turn_1"}
    [result] = [block for block in blocks(recording) if isinstance(block, ToolResult)]
    assert result.exit_status == 0


def test_a_list_of_messages_is_read_like_their_lines(tmp_path: Path) -> None:
    """A GitHub action keeps a run as one JSON list."""
    messages = [BEGINS, message("user", said("Count the cards.")), message("assistant", said("12."), id_="m1"), SUMS]
    lines = read(tmp_path, *messages)
    document = tmp_path / "run.json"
    document.write_text(json.dumps(messages, indent=2), encoding="utf-8")
    listed = read_recording(document)
    assert [(r.id, r.events) for r in listed] == [(r.id, r.events) for r in lines]


def test_a_subagent_is_a_conversation_of_its_own_under_the_call_that_started_it(tmp_path: Path) -> None:
    """Its messages name that call, and come between those of the main conversation."""
    main, side = read(
        tmp_path,
        message("assistant", use("c1", "Task", prompt="Count."), id_="m1"),
        message("user", said("Count."), of="c1"),
        message("assistant", use("c2", command="ls | wc -l"), id_="m2", of="c1"),
        answer("c2", "12", of="c1"),
        answer("c1", "There are 12."),
    )
    assert side.parent is not None
    assert (side.parent.conversation, side.parent.path) == (main.id, "tc:turn_1.c1.call")
    assert kinds(side) == ["user.prompt", "react.tool.call", "ModelCalled", "react.tool.result"]
    assert side.report.format == "claude-code-stream"


def test_a_compaction_takes_the_summary_behind_it(tmp_path: Path) -> None:
    """The stream writes the figures of a compaction under other names than a session does."""
    boundary = {"type": "system", "subtype": "compact_boundary", "session_id": SESSION}
    summary = "This session is being continued from a previous conversation that ran out of context. Cards."
    [recording] = read(
        tmp_path,
        message("user", said("Build it.")),
        {**boundary, "compact_metadata": {"trigger": "auto", "pre_tokens": 155_285}},
        message("user", said(summary), isSynthetic=True),
    )
    assert recording.events[-1].payload == ImportedCompaction(summary, "auto", 155_285)


def test_figures_of_the_whole_run_and_its_failure_are_reported(tmp_path: Path) -> None:
    """A message is printed before its response is complete, so that only the end knows what was put out."""
    end = {**SUMS, "is_error": True, "terminal_reason": "api_error", "usage": {"output_tokens": 5_621}}
    [recording] = read(tmp_path, message("assistant", said("Hm."), id_="m1"), end)
    by_kind = {finding["kind"]: finding["detail"] for finding in recording.report.findings}
    assert "5,621" in by_kind["missing_usage"]
    assert by_kind["aborted_turn"] == "api_error"
    [call] = [event.payload for event in recording.events if isinstance(event.payload, ModelCalled)]
    assert call.usage.input_tokens == 3


def test_messages_without_a_time_have_that_of_their_neighbours(tmp_path: Path) -> None:
    """Newer versions print times of some messages only."""
    [recording] = read(
        tmp_path,
        message("assistant", use("c1", command="ls"), id_="m1"),
        answer("c1", "cards.py", timestamp="2026-05-03T10:00:07.000Z"),
        message("assistant", said("Done."), id_="m2"),
    )
    assert {event.at.isoformat() for event in recording.events} == {"2026-05-03T10:00:07+00:00"}
    assert "missing_time" not in recording.report.counts


def test_a_prompt_that_the_client_replays_opens_a_turn(tmp_path: Path) -> None:
    """A harness that sends prompts as JSON sees them again in the stream."""
    [recording] = read(
        tmp_path,
        message("user", said("Build it."), isReplay=True),
        message("assistant", said("Built."), id_="m1"),
        message("user", said("Test it."), isReplay=True),
    )
    prompts = [block for block in blocks(recording) if isinstance(block, UserPrompt)]
    assert [prompt.turn_id for prompt in prompts] == ["turn_1", "turn_2"]
