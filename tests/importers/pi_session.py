"""A pi session to write: entries of the recorded shapes, with ids and times that count up, in a tree or one by one."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from tests.importers.session import START

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

USAGE: Final = {"input": 3, "output": 7, "cacheRead": 1000, "cacheWrite": 50, "totalTokens": 1060, "cost": {"total": 1}}


class PiSession:
    """Collects entries; each method adds one behind the newest and returns it, so that a test may spoil it."""

    def __init__(self, id_: str = "pi-1", version: int = 3) -> None:
        self.version = version
        header: dict[str, Any] = {"type": "session", "id": id_, "timestamp": _iso(START), "cwd": "/home/user"}
        self.entries: list[dict[str, Any]] = [header | ({"version": version} if version > 1 else {})]
        self.leaf: str | None = None

    def entry(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Add an entry behind the leaf, which it becomes."""
        number = len(self.entries)
        entry: dict[str, Any] = {"type": type_}
        if self.version > 1:
            entry |= {"id": f"{number:08x}", "parentId": self.leaf}
            self.leaf = entry["id"]
        entry |= {"timestamp": _iso(START + timedelta(seconds=number)), **fields}
        self.entries.append(entry)
        return entry

    def message(self, role: str, **fields: Any) -> dict[str, Any]:
        """Add a message, which began half a second before its entry was written."""
        began = START + timedelta(seconds=len(self.entries) - 0.5)
        return self.entry("message", message={"role": role, **fields, "timestamp": int(began.timestamp() * 1000)})

    def user(self, content: Any) -> dict[str, Any]:
        """Add what the user says."""
        return self.message("user", content=content)

    def answer(self, *parts: dict[str, Any], stop: str = "stop", **fields: Any) -> dict[str, Any]:
        """Add a response."""
        facts = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-4-5", "usage": dict(USAGE)}
        return self.message("assistant", content=list(parts), **{**facts, "stopReason": stop, **fields})

    def result(self, call_id: str, text: str = "done", *, is_error: bool = False, **fields: Any) -> dict[str, Any]:
        """Add a tool result."""
        told = {"toolCallId": call_id, "toolName": "bash", "content": [{"type": "text", "text": text}]}
        return self.message("toolResult", **{**told, "isError": is_error, **fields})

    def compaction(self, summary: str, first_kept: str = "", **fields: Any) -> dict[str, Any]:
        """Add a compaction that kept what begins at an entry."""
        return self.entry("compaction", summary=summary, firstKeptEntryId=first_kept, tokensBefore=160_000, **fields)

    def text(self) -> str:
        """Return the file: an entry a line."""
        return "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in self.entries)

    def write(self, folder: Path, name: str = "session.jsonl") -> Path:
        """Write the file."""
        path = folder / name
        path.write_text(self.text(), encoding="utf-8")
        return path


def call(id_: str, name: str = "bash", **arguments: Any) -> dict[str, Any]:
    """Make a tool call."""
    return {"type": "toolCall", "id": id_, "name": name, "arguments": arguments}


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
