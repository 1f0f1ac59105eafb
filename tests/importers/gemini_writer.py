"""A Gemini CLI session as version 0.40 writes it: lines, in the order in which its recorder appends them.

It keeps the session in memory as the recorder does, and appends a message anew as a whole whenever that changes: the
tokens come behind the text, each call when it ends, its result as it was sent to the model behind that.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Writer:
    """Writes one session; ``lines`` are those of its file."""

    def __init__(self, session: str = "session-1", **head: Any) -> None:
        self.lines: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self._thoughts: list[dict[str, Any]] = []
        self._count = 0
        times = {"startTime": self._at(), "lastUpdated": self._at()}
        self.append({"sessionId": session, "projectHash": "7e89", **times, "kind": "main", **head})

    def _at(self) -> str:
        return f"2026-04-10T02:{self._count // 60:02}:{self._count % 60:02}.500Z"

    def append(self, value: dict[str, Any]) -> None:
        """Append one line."""
        self._count += 1
        self.lines.append(json.dumps(value, separators=(",", ":"), ensure_ascii=False))

    def change(self, **changes: Any) -> None:
        """Change the session's own fields."""
        self.append({"$set": changes})

    def _push(self, message: dict[str, Any]) -> None:
        if not any(known is message for known in self.messages):
            self.messages.append(message)
        self.append(deepcopy(message))

    def _message(self, type_: str, content: Any, **fields: Any) -> dict[str, Any]:
        message = {"id": f"m{self._count}", "timestamp": self._at(), "type": type_, "content": content, **fields}
        self._push(message)
        self.change(lastUpdated=self._at())
        return message

    def user(self, text: str = "Add a line.") -> dict[str, Any]:
        """The user says something."""
        return self._message("user", [{"text": text}])

    def info(self, text: str = "Update available") -> dict[str, Any]:
        """The client says something to the user alone."""
        return self._message("info", text)

    def think(self, subject: str, description: str = "") -> None:
        """Queue a thought for the message to come."""
        self._thoughts.append({"subject": subject, "description": description, "timestamp": self._at()})

    def gemini(self, text: str = "") -> dict[str, Any]:
        """The model answers, and its usage follows."""
        thoughts, self._thoughts = self._thoughts, []
        message = self._message("gemini", text, thoughts=thoughts, tokens=None, model="gemini-3-pro")
        message["tokens"] = {"input": 1200, "output": 10, "cached": 1000, "thoughts": 5, "tool": 2, "total": 1217}
        self._push(message)
        return message

    def call(self, id_: str, output: str = "done", name: str = "read_file") -> None:
        """The newest message of the model calls a tool: the call when it ended, then its result as it was sent."""
        message = self.messages[-1]
        calls = message.setdefault("toolCalls", [])
        told: dict[str, Any] = {
            "id": id_,
            "name": name,
            "args": {"file_path": "a.txt"},
            "status": "success",
            "timestamp": self._at(),
        }
        calls.append(told)
        self._push(message)
        told["result"] = [{"functionResponse": {"id": id_, "name": name, "response": {"output": output}}}]
        self._push(message)

    def rewind(self, message: dict[str, Any]) -> None:
        """The user goes back to before a message."""
        del self.messages[next(n for n, known in enumerate(self.messages) if known is message) :]
        self.append({"$rewindTo": message["id"]})

    def text(self) -> str:
        """Return the file."""
        return "".join(f"{line}\n" for line in self.lines)

    def write(self, folder: Path, name: str = "session-2026-04-10T02-00-7e89.jsonl") -> Path:
        """Write the file."""
        path = folder / name
        path.write_text(self.text(), encoding="utf-8")
        return path
