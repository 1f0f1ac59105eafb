"""A Claude Code session to write: rows of the recorded shapes, with uuids and times that count up."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline.events import BlockAppended
from timeline.importers import read_recording

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.blocks import Block
    from timeline.importers import RecordedEvent, Recording

START: Final = datetime(2026, 1, 20, 9, 0, tzinfo=UTC)
USAGE: Final = {
    "input_tokens": 3,
    "output_tokens": 7,
    "cache_read_input_tokens": 1000,
    "cache_creation_input_tokens": 50,
    "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 30},
}


class Session:
    """Collects rows; each method adds one row and returns it, so that a test may spoil it."""

    def __init__(self, id_: str = "session-1") -> None:
        self.id = id_
        self.rows: list[dict[str, Any]] = []

    def row(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Add a row with the envelope that every row has."""
        number = len(self.rows) + 1
        at = (START + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        envelope = {"parentUuid": None, "isSidechain": False, "sessionId": self.id, "version": "2.1.7"}
        row = {**envelope, "type": type_, "uuid": f"{self.id}-uuid-{number}", "timestamp": at, **fields}
        self.rows.append(row)
        return row

    def user(self, content: Any, **fields: Any) -> dict[str, Any]:
        """Add what the user, or the client for them, says."""
        return self.row("user", message={"role": "user", "content": content}, **fields)

    def answer(self, id_: str, *parts: dict[str, Any], model: str = "claude-opus-4-5", **fields: Any) -> dict[str, Any]:
        """Add parts of a response."""
        message = {"id": id_, "model": model, "role": "assistant", "content": list(parts), "usage": dict(USAGE)}
        return self.row("assistant", message={**message, "stop_reason": None}, **fields)

    def result(self, call_id: str, content: Any = "done", **fields: Any) -> dict[str, Any]:
        """Add a tool result."""
        part = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        part |= {k: fields.pop(k) for k in ("is_error",) if k in fields}
        return self.user([part], **fields)

    def text(self) -> str:
        """Return the file: a row a line."""
        return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in self.rows)

    def write(self, folder: Path, name: str = "session.jsonl") -> Path:
        """Write the file."""
        path = folder / name
        path.write_text(self.text(), encoding="utf-8")
        return path

    def read(self, folder: Path) -> Recording:
        """Write the file, and read its main conversation."""
        return read_recording(self.write(folder))[0]


def said(text: str) -> dict[str, Any]:
    """Make a text part."""
    return {"type": "text", "text": text}


def thought(text: str) -> dict[str, Any]:
    """Make a part of signed reasoning."""
    return {"type": "thinking", "thinking": text, "signature": "c2lnbmF0dXJl"}


def use(id_: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    """Make a tool call."""
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def read_document(folder: Path, document: Any, name: str = "chat.json") -> Recording:
    """Write a JSON document, and read it as a recording."""
    path = folder / name
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return read_recording(path)[0]


def block_of(event: RecordedEvent) -> Block | None:
    """Return an event's block, or None for another event."""
    return event.payload.block if isinstance(event.payload, BlockAppended) else None


def blocks(recording: Recording) -> list[Block]:
    """Return a recording's blocks in order."""
    return [block for event in recording.events if (block := block_of(event))]


def kinds(recording: Recording) -> list[str]:
    """Return what a recording's events are: the type of a block, the class of anything else."""
    found = [(block_of(event), event) for event in recording.events]
    return [block.type if block else type(event.payload).__name__ for block, event in found]
