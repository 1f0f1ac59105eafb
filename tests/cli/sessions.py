"""Small recordings for the command line's tests: Claude Code sessions, written row by row."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

BEGAN: Final = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
SESSION: Final = "session-1"


def rows(turns: int = 3, steps: int = 6, *, words: int = 90) -> list[dict[str, Any]]:
    """Make a session: in each turn a prompt, some tool calls with results of so many words, and an answer."""
    made: list[dict[str, Any]] = []
    for turn in range(1, turns + 1):
        made.append(_row(len(made), "user", {"role": "user", "content": f"Task {turn}: make part {turn} work."}))
        for step in range(1, steps + 1):
            made += _step(len(made), f"{turn}-{step}", words)
        made.append(_answer(len(made), [{"type": "text", "text": f"Part {turn} works."}]))
    return made


def subagent(parent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make the rows of a side chain that belongs to a session."""
    begun = len(parent)
    prompt = _row(begun, "user", {"role": "user", "content": "Search the code."})
    answer = _answer(begun + 1, [{"type": "text", "text": "Found it."}])
    for row, before in ((prompt, None), (answer, prompt["uuid"])):
        row |= {"isSidechain": True, "agentId": "helper", "parentUuid": before}
    return [prompt, answer]


def text_of(made: list[dict[str, Any]]) -> str:
    """Write rows as the lines of a file."""
    return "".join(json.dumps(row) + "\n" for row in made)


def write(folder: Path, made: list[dict[str, Any]] | None = None, name: str = "session.jsonl") -> Path:
    """Write a session file."""
    file = folder / name
    file.write_text(text_of(rows() if made is None else made), encoding="utf-8")
    return file


def _step(number: int, name: str, words: int) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"toolu_{name}", "name": "Bash", "input": {"command": f"make part-{name}"}}
    output = " ".join(f"line{n}-{name}" for n in range(words // 4))
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": output}
    said = {"type": "text", "text": f"I run step {name}."}
    return [_answer(number, [said, call]), _row(number + 1, "user", {"role": "user", "content": [result]})]


def _answer(number: int, parts: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 20}
    message = {"id": f"msg_{number}", "model": "claude-x", "role": "assistant", "content": parts, "usage": usage}
    return _row(number, "assistant", message)


def _row(number: int, type_: str, message: dict[str, Any]) -> dict[str, Any]:
    at = (BEGAN + timedelta(seconds=10 * number)).isoformat().replace("+00:00", "Z")
    return {
        "parentUuid": f"uuid-{number - 1}" if number else None,
        "isSidechain": False,
        "sessionId": SESSION,
        "type": type_,
        "message": message,
        "uuid": f"uuid-{number}",
        "timestamp": at,
    }
