"""The recording that the documents' commands work on: a Claude Code session of three turns, some 30,000 tokens."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SESSION: Final = "flashcards"
"""The conversation's id."""
START: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TURNS: Final = {
    "Build a flashcard app with spaced repetition. Keep the scheduler free of any database.": 14,
    "Cards must survive a restart. Store them in SQLite and keep the tests green.": 12,
    "Add an import of CSV files; a broken line must not stop it.": 10,
}
"""Each prompt, and how many files the agent reads, changes or tests for it."""


def write_recording(folder: Path, turns: Mapping[str, int] = TURNS, *, idle: timedelta = timedelta(0)) -> Path:
    """Write `session.jsonl` into a folder and return its path.

    Args:
        folder: that is there.
        turns: each prompt, and the steps that the agent takes for it.
        idle: between a turn's end and the next prompt, beyond the time of a step.
    """
    rows: list[dict[str, Any]] = []
    calls = 0
    for turn, (prompt, steps) in enumerate(turns.items()):
        first = len(rows)
        _add(rows, "user", prompt)
        for step in range(steps):
            calls += 1
            _add_step(rows, calls, step)
        _add(rows, "assistant", [{"type": "text", "text": f"Done: {prompt.partition('.')[0].lower()}."}], usage=calls)
        for number, row in enumerate(rows[first:], first + 1):
            at = START + timedelta(seconds=20 * number) + turn * idle
            row["timestamp"] = at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    file = folder / "session.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def _add_step(rows: list[dict[str, Any]], calls: int, step: int) -> None:
    name = ("cards", "scheduler", "storage", "csv_import")[calls % 4]
    file = f"src/{name}.py"
    code = "\n".join(f"def {name}_{calls}_{n}(card: Card) -> Card:\n    return card.moved({n})\n" for n in range(30))
    tool, arguments, result = (
        ("Read", {"file_path": file}, code),
        ("Write", {"file_path": file, "content": code}, f"File written: {file}"),
        (
            "Bash",
            {"command": f"pytest tests/test_{name}.py"},
            f"Exit code 1\nFAILED test_{name}_{calls}: due date is late",
        ),
    )[step % 3]
    use = {"type": "tool_use", "id": f"toolu_{calls:02}", "name": tool, "input": arguments}
    _add(rows, "assistant", [{"type": "text", "text": f"Step {calls}: {tool} {file}."}, use], usage=calls)
    answer = {"type": "tool_result", "tool_use_id": use["id"], "content": result, "is_error": tool == "Bash"}
    _add(rows, "user", [answer])


def _add(rows: list[dict[str, Any]], role: str, content: Any, usage: int = 0) -> None:
    number = len(rows) + 1
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        spent = {"input_tokens": 10, "cache_read_input_tokens": 700 * usage, "output_tokens": 80}
        message |= {"id": f"msg_{number:03}", "model": "claude-opus-4-5", "usage": spent, "stop_reason": None}
    parent = f"{SESSION}-{number - 1:03}" if rows else None
    row: dict[str, Any] = {"type": role, "message": message, "uuid": f"{SESSION}-{number:03}", "sessionId": SESSION}
    rows.append({**row, "parentUuid": parent, "isSidechain": False, "version": "2.1.7"})
