"""Conversations in the form of ShareGPT."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.importers.session import blocks
from timeline.blocks import ToolCall, ToolResult
from timeline.errors import ImportFailed
from timeline.importers import read_recording

if TYPE_CHECKING:
    from pathlib import Path


def said(*parts: tuple[str, str]) -> dict[str, Any]:
    """Make a conversation."""
    return {"id": "c", "conversations": [{"from": who, "value": text} for who, text in parts]}


CARDS = said(("system", "You build."), ("human", "Build cards."), ("gpt", "Done."))
TOOLS = said(
    ("human", "List them."),
    ("function_call", '{"name": "ls", "arguments": {"path": "."}}'),
    ("observation", "cards.py"),
    ("function_call", "look"),
    ("gpt", "One."),
)


def test_a_conversation_a_line_or_a_list_of_them_is_read_under_the_same_ids(tmp_path: Path) -> None:
    """Data sets come in both forms."""
    listed, lines = tmp_path / "set.json", tmp_path / "set.jsonl"
    listed.write_text(json.dumps([CARDS, TOOLS]), encoding="utf-8")
    lines.write_text(f"{json.dumps(CARDS)}\n{json.dumps(TOOLS)}\n", encoding="utf-8")
    [cards, _] = read_recording(listed)
    assert [block.type for block in blocks(cards)] == ["system.message", "user.prompt", "assistant.completion"]
    assert [one.id for one in read_recording(listed)] == [one.id for one in read_recording(lines)]


def test_calls_and_what_came_of_them_are_texts(tmp_path: Path) -> None:
    """A text that is no call keeps its words as the arguments."""
    file = tmp_path / "one.json"
    file.write_text(json.dumps(TOOLS, indent=1), encoding="utf-8")
    [recording] = read_recording(file)
    calls = [block for block in blocks(recording) if isinstance(block, ToolCall)]
    [result] = [block for block in blocks(recording) if isinstance(block, ToolResult)]
    assert [(call.name, call.arguments) for call in calls] == [("ls", {"path": "."}), ("unknown", "look")]
    assert (result.call_id, result.text) == (calls[0].call_id, "cards.py")


@pytest.mark.parametrize("name", ["resourceSpans", "resource_spans"])
def test_a_trace_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    """It has spans, and no conversation; the message says what to give instead."""
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({name: [{"scopeSpans": []}]}), encoding="utf-8")
    with pytest.raises(ImportFailed, match="OpenTelemetry"):
        read_recording(file)
