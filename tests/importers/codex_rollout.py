"""A Codex rollout to write: rows of the published shapes, with times and totals that count up."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.importers.session import START
from timeline.importers.codex import read_codex

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.importers import Recording


class Rollout:
    """Collects rows; each method adds one and returns it, so that a test may spoil it."""

    def __init__(self, id_: str = "codex-1", **header: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        self.total = 0
        self.row("session_meta", id=id_, timestamp="2026-01-20T09:00:00Z", cwd="/repo", source="cli", **header)
        self.row("turn_context", cwd="/repo", model="gpt-5.2-codex", approval_policy="never")

    def row(self, type_: str, **payload: Any) -> dict[str, Any]:
        """Add a row in its envelope."""
        at = (START + timedelta(seconds=len(self.rows) + 1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        self.rows.append({"timestamp": at, "type": type_, "payload": payload})
        return self.rows[-1]

    def item(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Add an item of the conversation."""
        return self.row("response_item", type=type_, **fields)

    def event(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Add what the client showed."""
        return self.row("event_msg", type=type_, **fields)

    def user(self, text: str, *parts: dict[str, Any]) -> dict[str, Any]:
        """Add what the user, or the client for them, says, with its echo."""
        row = self.item("message", role="user", content=[{"type": "input_text", "text": text}, *parts])
        self.event("user_message", message=text)
        return row

    def answer(self, text: str) -> dict[str, Any]:
        """Add a text of the model, with its echo."""
        self.event("agent_message", message=text)
        return self.item("message", role="assistant", content=[{"type": "output_text", "text": text}])

    def agent(
        self, author: str, recipient: str, *parts: dict[str, Any], triggers: bool | None = None
    ) -> dict[str, Any]:
        """Add a message of another agent, behind the row about its delivery that newer versions write."""
        if triggers is not None:
            self.row("inter_agent_communication_metadata", trigger_turn=triggers)
        return self.item("agent_message", author=author, recipient=recipient, content=list(parts))

    def think(self, text: str) -> dict[str, Any]:
        """Add encrypted reasoning."""
        summary = [{"type": "summary_text", "text": text}]
        return self.item("reasoning", summary=summary, content=None, encrypted_content="gAAAAAB")

    def call(self, call_id: str, name: str = "shell", **arguments: Any) -> dict[str, Any]:
        """Add a call of a function."""
        return self.item("function_call", name=name, arguments=json.dumps(arguments), call_id=call_id)

    def result(self, call_id: str, output: Any = "done") -> dict[str, Any]:
        """Add the result of a call."""
        return self.item("function_call_output", call_id=call_id, output=output)

    def count(self, input_tokens: int = 1000, cached: int = 600, output: int = 40) -> dict[str, Any]:
        """Add what a call cost."""
        self.total += input_tokens + output
        last = {"input_tokens": input_tokens, "cached_input_tokens": cached, "output_tokens": output}
        total = {"input_tokens": self.total, "total_tokens": self.total}
        return self.event("token_count", info={"total_token_usage": total, "last_token_usage": last})

    def text(self) -> str:
        """Return the file: a row a line."""
        return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in self.rows)

    def write(self, folder: Path, name: str = "rollout.jsonl") -> Path:
        """Write the file."""
        path = folder / name
        path.write_text(self.text(), encoding="utf-8")
        return path

    def read(self) -> Recording:
        """Read the conversation without a file."""
        return read_codex(self.text().encode(), "file")[0]
