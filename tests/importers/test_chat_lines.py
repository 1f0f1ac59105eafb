from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.importers.session import blocks, kinds
from timeline import open_store
from timeline.blocks import ToolResult
from timeline.importers import Recording, read_recording
from timeline.portable.recordings import import_recording

if TYPE_CHECKING:
    from pathlib import Path

Fields = dict[str, Any]

ASKED = {"role": "user", "content": "Build cards."}
CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
}
GAVE = {"role": "tool", "tool_call_id": "a", "content": "cards.py"}
DONE = {"role": "assistant", "content": "Done."}


def read(folder: Path, *lines: Fields) -> list[Recording]:
    """Read a file of lines."""
    file = folder / "run.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return read_recording(file)


def test_a_message_a_line_is_one_conversation(tmp_path: Path) -> None:
    """The form of the messages is found as in a document; a line that is none is counted."""
    header = {"session": "s-1", "started": "2026-03-04"}
    [recording] = read(tmp_path, header, {"role": "system", "content": "You build."}, ASKED, CALLS, GAVE, DONE)
    assert (recording.report.format, recording.title) == ("openai-chat", "Build cards.")
    assert kinds(recording) == [
        "system.message",
        "user.prompt",
        "react.tool.call",
        "react.tool.result",
        "assistant.completion",
    ]
    assert recording.report.counts["unknown_record"] == 1
    [signed] = read(tmp_path, ASKED, {"role": "assistant", "content": [{"type": "thinking", "thinking": "So."}]})
    assert signed.report.format == "anthropic"


def test_each_line_with_messages_is_a_conversation_that_keeps_its_id(tmp_path: Path) -> None:
    """A data set grows by lines; a line that is there twice is one conversation."""
    first = {"id": 1, "messages": [ASKED, CALLS, GAVE, DONE], "reward": 1.0}
    second = {"id": 2, "messages": [{"role": "user", "content": "Draw them."}, DONE]}
    [alone] = read(tmp_path, {"note": "begin"}, first)
    empty = {"messages": [{"role": "user", "content": ""}]}
    [old, new] = read(tmp_path, first, second, first, empty, {"note": "end"})
    assert (old.id, old.title, new.title) == (alone.id, "Build cards.", "Draw them.")
    assert [block.text for block in blocks(old) if isinstance(block, ToolResult)] == ["cards.py"]
    assert (old.report.counts["duplicate_record"], old.report.counts["unknown_record"]) == (1, 2)
    assert old.report.lines == 4


def test_a_log_of_calls_has_a_conversation_for_each_request_and_its_reply(tmp_path: Path) -> None:
    """A gateway writes both into a line; a reply that failed is none."""
    reply = {"model": "m-1", "choices": [{"message": DONE}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    logged = {"at": 1, "request": {"messages": [ASKED]}, "response": reply}
    failed = {"at": 2, "request": {"messages": [ASKED]}, "response": {"error": "overloaded"}}
    [answered, unanswered] = read(tmp_path, logged, failed)
    assert kinds(answered) == ["user.prompt", "assistant.completion", "ModelCalled"]
    assert kinds(unanswered) == ["user.prompt"]


def test_lines_of_a_program_are_read_as_its_own_although_a_message_is_among_them(tmp_path: Path) -> None:
    """Plain messages come last, wherever they stand in the file."""
    row = {"type": "user", "sessionId": "s-1", "uuid": "u-1", "parentUuid": None, "message": ASKED}
    [recording] = read(tmp_path, ASKED, {**row, "timestamp": "2026-03-04T09:08:07Z", "isSidechain": False})
    assert recording.report.format == "claude-code"


async def test_a_log_of_messages_that_has_grown_adds_what_is_new(tmp_path: Path) -> None:
    """Its id is that of its beginning; what a log with the same beginning has otherwise is reported."""
    begun = ({"role": "system", "content": "You build."}, ASKED)
    async with open_store("memory://") as store:
        done = []
        for lines in ((*begun, CALLS), (*begun, CALLS, GAVE, DONE), (*begun, CALLS, DONE)):
            [recording] = read(tmp_path, *lines)
            done.append(await import_recording(store, recording))
    assert len({one.id for one in done}) == 1
    assert [(one.events, one.known) for one in done[:2]] == [(3, 0), (2, 3)]
    assert done[2].report["counts"]["rewritten"] == 1
    [other] = read(tmp_path, *begun, DONE)
    assert other.id != done[0].id


def test_a_file_of_one_conversation_line_keeps_its_id_when_it_grows(tmp_path: Path) -> None:
    """One line is a JSON document, too."""
    first = {"messages": [ASKED, DONE]}
    [alone] = read(tmp_path, first)
    [old, _] = read(tmp_path, first, {"messages": [ASKED, CALLS, GAVE]})
    assert (alone.id, alone.events) == (old.id, old.events)


def test_times_that_a_program_wrote_beside_the_messages_are_theirs(tmp_path: Path) -> None:
    """As text, or as seconds or milliseconds; a message without one came with the one before it."""
    at = datetime(2026, 3, 4, 9, 8, 7, tzinfo=UTC)
    seconds = at.timestamp()
    [recording] = read(
        tmp_path,
        {**ASKED, "timestamp": at.isoformat()},
        {**CALLS, "created_at": seconds + 1},
        {**GAVE, "ts": (seconds + 2) * 1000},
        DONE,
    )
    times = [(event.at - at).total_seconds() for event in recording.events]
    assert times == [0, 1, 2, 2]
    assert recording.report.counts == {"missing_time": 1}
