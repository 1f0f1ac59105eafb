from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.importers.session import blocks, kinds
from timeline.blocks import ToolResult
from timeline.events import ModelCalled
from timeline.importers import ImportedCompaction, Recording, read_recording
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

Fields = dict[str, Any]

SESSION = "9f8e7d6c-5b4a-4321-9abc-def012345678"
USAGE = {
    "promptTokenCount": 5_000,
    "candidatesTokenCount": 30,
    "thoughtsTokenCount": 10,
    "cachedContentTokenCount": 4_000,
}


class Session:
    """Writes records as Qwen Code does: each names the one before it, a second later."""

    def __init__(self) -> None:
        self.records: list[Fields] = []

    def record(self, type_: str, *parts: Fields, **fields: Any) -> str:
        """Add a record, and return its id."""
        number = len(self.records)
        id_ = f"00000000-0000-0000-0000-{number:012}"
        before = self.records[-1]["uuid"] if self.records else None
        role = "model" if type_ == "assistant" else "user"
        own = {
            "uuid": id_,
            "parentUuid": before,
            "sessionId": SESSION,
            "timestamp": f"2026-05-20T00:00:{number:02}.000Z",
        }
        place = {"type": type_, "cwd": "/p", "version": "0.19.11", "gitBranch": "main"}
        said = {"message": {"role": role, "parts": list(parts)}} if parts else {}
        self.records.append({**own, **place, **said, **fields})
        return id_

    def system(self, subtype: str, **payload: Any) -> None:
        """Add a record of the client's own."""
        self.record("system", subtype=subtype, systemPayload=payload)

    def read(self, folder: Path) -> Recording:
        """Write the file and read it."""
        file = folder / f"{SESSION}.jsonl"
        file.write_text("".join(f"{json.dumps(record)}\n" for record in self.records), encoding="utf-8")
        [recording] = read_recording(file)
        return recording


def text(words: str, **fields: Any) -> Fields:
    """Return a part."""
    return {"text": words, **fields}


def test_what_was_said_called_and_answered_is_read(tmp_path: Path) -> None:
    """Claude Code's rows have the same ids: a record of the client's may come first."""
    session = Session()
    session.system("session_model", modelId="qwen3-coder-plus", authType="qwen")
    session.record("user", text("List the files"), provenance="real_user")
    call = {"functionCall": {"id": "call_1", "name": "run_shell_command", "args": {"command": "ls"}}}
    said = text("Look.", thought=True), text("I look."), call
    session.record("assistant", *said, model="qwen3-coder-plus", usageMetadata=USAGE)
    answer = {"functionResponse": {"id": "call_1", "name": "run_shell_command", "response": {"output": "Exit Code: 2"}}}
    session.record("tool_result", answer, toolCallResult={"callId": "call_1", "status": "error"})
    recording = session.read(tmp_path)
    assert (recording.id, recording.report.format, recording.title) == (SESSION, "qwen-code", "List the files")
    assert kinds(recording) == [
        "user.prompt",
        "assistant.reasoning",
        "assistant.completion",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
    ]
    [model] = [event.payload for event in recording.events if isinstance(event.payload, ModelCalled)]
    assert (model.model, model.usage) == (
        "qwen3-coder-plus",
        Usage(input_tokens=1_000, output_tokens=40, cache_read_tokens=4_000),
    )
    [result] = [block for block in blocks(recording) if isinstance(block, ToolResult)]
    assert (result.exit_status, result.is_error) == (2, True)


def test_what_a_rewind_left_stands_aside_and_is_reported(tmp_path: Path) -> None:
    """The conversation is the chain that ends with the newest record."""
    session = Session()
    asked = session.record("user", text("The capital?"))
    session.record("assistant", text("Lyon"))
    session.record("system", subtype="rewind", parentUuid=asked, systemPayload={"truncatedCount": 1})
    session.record("assistant", text("Paris"))
    recording = session.read(tmp_path)
    assert [block.text for block in blocks(recording)] == ["The capital?", "Paris"]
    assert recording.report.counts["branch"] == 1


def test_a_compression_is_a_summary_that_keeps_the_tail_of_its_history(tmp_path: Path) -> None:
    """Its new history begins with the summary and an answer to it, and ends with what was said last, word for word."""
    session = Session()
    session.record("user", text("The capital?"))
    session.record("assistant", text("Paris"))
    summary = {"role": "user", "parts": [text("<state_snapshot>asked</state_snapshot>")]}
    history = [summary, {"role": "model", "parts": [text("Got it.")]}, {"role": "model", "parts": [text("Paris")]}]
    session.system("chat_compression", info={"originalTokenCount": 4_096}, compressedHistory=history)
    recording = session.read(tmp_path)
    assert recording.events[-1].payload == ImportedCompaction("<state_snapshot>asked</state_snapshot>", "", 4_096, 1)


def test_what_the_client_says_in_the_users_role_is_no_prompt(tmp_path: Path) -> None:
    """A notification, for example; what the user wrote while the model was at work is one."""
    session = Session()
    session.record("user", text("List the files"))
    session.record("user", text("<task-notification>"), subtype="notification")
    session.record("user", text("and the folders"), subtype="mid_turn_user_message")
    assert kinds(session.read(tmp_path)) == ["user.prompt", "client.message", "user.prompt"]


def test_a_session_that_was_branched_off_names_the_one_it_comes_from(tmp_path: Path) -> None:
    """Each of its copied records does."""
    session = Session()
    session.record("user", text("Hello"), forkedFrom={"sessionId": "other", "messageUuid": "m"})
    session.system("custom_title", customTitle="A talk", titleSource="manual")
    recording = session.read(tmp_path)
    assert recording.parent is not None
    assert (recording.parent.conversation, recording.parent.relation, recording.title) == ("other", "fork", "A talk")
