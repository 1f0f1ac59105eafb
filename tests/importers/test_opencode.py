from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.importers.session import blocks, kinds
from timeline.blocks import ToolResult
from timeline.events import ModelCalled
from timeline.importers import ImportedCompaction, ImportedHide, Recording, read_recording
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

Fields = dict[str, Any]

SESSION = "ses_3ffca45a2ffef1fjbYFDGFsNIm"
BEGAN = 1_769_530_047_072
"""Milliseconds since 1970 at which the session was created."""
TOKENS = {"input": 3, "output": 120, "reasoning": 30, "cache": {"read": 11_000, "write": 800}}
STEP = {"type": "step-start", "snapshot": "f2a6"}
FINISH = {"type": "step-finish", "reason": "tool-calls", "cost": 0.01, "tokens": TOKENS}


def message(number: int, role: str, *parts: Fields, **info: Any) -> Fields:
    """Return a message as `opencode export` writes it; each comes a second behind the one before it."""
    id_ = f"msg_{number:04}"
    own = {"id": id_, "sessionID": SESSION, "role": role, "time": {"created": BEGAN + number * 1_000}}
    named = [{"id": f"prt_{number:04}_{n}", "sessionID": SESSION, "messageID": id_, **p} for n, p in enumerate(parts)]
    return {"info": {**own, **info}, "parts": named}


def user(number: int, *parts: Fields) -> Fields:
    """Return a message of the user."""
    model = {"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}
    return message(number, "user", *parts, agent="build", model=model)


def assistant(number: int, *parts: Fields, **info: Any) -> Fields:
    """Return a response of the model."""
    own = {"modelID": "claude-sonnet-4-5", "providerID": "anthropic", "mode": "build", "agent": "build", "cost": 0.01}
    return message(number, "assistant", *parts, **{**own, "tokens": TOKENS, "finish": "tool-calls", **info})


def said(text: str, **fields: Any) -> Fields:
    """Return a text."""
    return {"type": "text", "text": text, **fields}


def tool(call_id: str, **state: Any) -> Fields:
    """Return a call with what came of it."""
    done = {"status": "completed", "input": {"filePath": "/p/plan.md"}, "output": "1| plan", "title": "plan.md"}
    at = {"start": BEGAN + 2_100, "end": BEGAN + 2_600}
    return {"type": "tool", "callID": call_id, "tool": "read", "state": {**done, "metadata": {}, "time": at, **state}}


def read(folder: Path, *messages: Fields, **info: Any) -> Recording:
    """Read an exported session."""
    session = {"id": SESSION, "version": "1.1.36", "title": "Heartbeat plan", "time": {"created": BEGAN}, **info}
    file = folder / "session.json"
    document = {"info": session, "messages": [*messages], "todos": []}
    file.write_text(json.dumps(document, indent=2), encoding="utf-8")
    [recording] = read_recording(file)
    return recording


def test_a_response_has_its_thought_call_result_and_figures(tmp_path: Path) -> None:
    """The result at the time at which its tool ended; thoughts are billed as output."""
    thought = {"type": "reasoning", "text": "Look.", "metadata": {"anthropic": {"signature": "c2ln"}}}
    recording = read(tmp_path, user(1, said("Fix it")), assistant(2, STEP, thought, tool("toolu_1"), FINISH))
    assert (recording.id, recording.title, recording.report.format) == (SESSION, "Heartbeat plan", "opencode")
    assert kinds(recording) == [
        "user.prompt",
        "assistant.reasoning",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
    ]
    [call] = [event.payload for event in recording.events if isinstance(event.payload, ModelCalled)]
    assert (call.model, call.finish_reason) == ("claude-sonnet-4-5", "tool-calls")
    assert call.usage == Usage(input_tokens=3, output_tokens=150, cache_read_tokens=11_000, cache_write_5m_tokens=800)
    assert recording.events[-1].at == datetime.fromtimestamp((BEGAN + 2_600) / 1_000, UTC)


def test_what_the_client_adds_to_a_prompt_is_no_prompt(tmp_path: Path) -> None:
    """A file that was named is read by the client, which says so; the file itself is in no request."""
    file = {"type": "file", "mime": "text/plain", "filename": "plan.md", "url": "file:///p/plan.md"}
    parts = said("Read @plan.md"), said("Called the Read tool", synthetic=True), file, said("shown only", ignored=True)
    recording = read(tmp_path, user(1, *parts))
    assert [(block.type, block.text) for block in blocks(recording)] == [
        ("user.prompt", "Read @plan.md"),
        ("client.message", "Called the Read tool"),
    ]


def test_a_tool_that_failed_and_one_that_still_runs(tmp_path: Path) -> None:
    """The first has an error for a result, the second none yet."""
    failed, runs = tool("toolu_1", status="error", error="Tool execution aborted"), tool("toolu_2", status="running")
    recording = read(tmp_path, user(1, said("Fix it")), assistant(2, STEP, failed, runs))
    results = [block for block in blocks(recording) if isinstance(block, ToolResult)]
    assert [(block.text, block.is_error) for block in results] == [("Tool execution aborted", True)]
    assert recording.report.counts["unanswered_call"] == 1


def test_a_picture_that_a_tool_gave_is_kept_with_its_result(tmp_path: Path) -> None:
    """The model was sent it."""
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}
    recording = read(tmp_path, user(1, said("Look")), assistant(2, STEP, tool("toolu_1", attachments=[picture])))
    [result] = [block for block in blocks(recording) if isinstance(block, ToolResult)]
    assert "iVBORw0KGgo=" in json.dumps(result.data)


def test_a_summary_is_a_compaction_that_keeps_the_tail(tmp_path: Path) -> None:
    """The message that asked for it is the client's own, and in no request once it is there."""
    asks = {"type": "compaction", "auto": True, "tail_start_id": "msg_0002"}
    summary = assistant(4, STEP, said("We fixed it."), summary=True, finish="stop")
    recording = read(tmp_path, user(1, said("Fix it")), assistant(2, STEP, said("Done.")), user(3, asks), summary)
    [made] = [event.payload for event in recording.events if isinstance(event.payload, ImportedCompaction)]
    assert made == ImportedCompaction("We fixed it.", "auto", 11_003, 1)
    assert [block.text for block in blocks(recording)] == ["Fix it", "Done."]


def test_an_output_that_was_cleared_is_hidden_from_then_on(tmp_path: Path) -> None:
    """The client sends a line for it; the log has it in full."""
    cleared = tool("toolu_1", time={"start": BEGAN + 2_100, "end": BEGAN + 2_600, "compacted": BEGAN + 3_500})
    recording = read(
        tmp_path, user(1, said("Fix it")), assistant(2, STEP, cleared), user(3, said("On")), user(4, said("Go"))
    )
    kept = [event.payload for event in recording.events if not isinstance(event.payload, ModelCalled)]
    assert kept[-2] == ImportedHide(("toolu_1",))


def test_a_response_that_failed_says_why_and_is_not_sent_again(tmp_path: Path) -> None:
    """What came before the error went into no later request, unless the user broke the response off."""
    overloaded = {"name": "APIError", "data": {"message": "overloaded"}}
    aborted = {"name": "MessageAbortedError", "data": {"message": "aborted"}}
    half = assistant(2, STEP, said("I beg"), error=overloaded)
    stopped = assistant(3, STEP, said("I stop"), error=aborted)
    recording = read(tmp_path, user(1, said("Fix it")), half, stopped)
    assert [block.text for block in blocks(recording)] == ["Fix it", "I stop"]
    calls = [event.payload for event in recording.events if isinstance(event.payload, ModelCalled)]
    assert [(call.finish_reason, call.error) for call in calls] == [("error", "overloaded"), ("error", "aborted")]


def test_a_message_that_is_damaged_is_reported_and_costs_nothing_else(tmp_path: Path) -> None:
    """It is no object, or says nothing of itself."""
    broken: Any = ["torn", {"parts": []}]
    recording = read(tmp_path, user(1, said("Fix it")), *broken, user(4, said("Now")))
    assert [block.text for block in blocks(recording)] == ["Fix it", "Now"]
    assert recording.report.counts["invalid"] == 2


def test_messages_that_the_user_took_back_are_reported(tmp_path: Path) -> None:
    """They stay in the log; the client removes them with the next prompt."""
    recording = read(
        tmp_path, user(1, said("Fix it")), user(2, said("No")), user(3, said("Yes")), revert={"messageID": "msg_0002"}
    )
    assert recording.report.counts["rolled_back"] == 2


def test_a_session_of_a_subagent_names_the_one_that_began_it(tmp_path: Path) -> None:
    """The call that did is in no field."""
    recording = read(tmp_path, user(1, said("Look")), parentID="ses_parent")
    assert recording.parent is not None
    assert (recording.parent.conversation, recording.parent.relation) == ("ses_parent", "subagent")
