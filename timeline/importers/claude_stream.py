"""Read what `claude -p --output-format stream-json` prints, and what a GitHub action or a harness keeps of it.

Its messages are the rows of a session under other names, as JSON Lines or as one list, and are read as such. They have
neither the prompt of the command line nor, in most versions, times; a response's output is counted at its beginning.
The session that the client wrote meanwhile has all three. So a run is a conversation of its own, named after its file
and the session.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline.importers.builder import UNKNOWN_TIME, parse_time
from timeline.importers.claude_branches import CONVERSATION
from timeline.importers.claude_code import recordings_of
from timeline.importers.lines import Record, read_records
from timeline.importers.recording import Recording, Report
from timeline.wire.anthropic import joined_text
from timeline.wire.foreign import object_of, text_of
from timeline.wire.usage import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT: Final = "claude-code-stream"
OPENING: Final = '{"type":"assistant","message":{'
"""The beginning of most messages; no value inside one begins so."""
_RESULT: Final = "result"
_BOUNDARY: Final = "compact_boundary"
_SUMMARY: Final = "This session is being continued from a previous conversation"
"""The beginning of the message with the summary of a compaction."""
_BOOKKEEPING: Final = frozenset({"system", "stream_event", "rate_limit_event", "tool_progress", "tool_use_summary"})
"""Messages that are the client's own state, or parts of others that follow whole."""

Message = dict[str, Any]


def is_claude_stream(value: Any) -> bool:
    """Return whether a JSON value is a message of the stream."""
    if not isinstance(value, dict) or not isinstance(value.get("session_id"), str):
        return False
    type_ = text_of(value, "type")
    return isinstance(value.get("message"), dict) if type_ in CONVERSATION else type_ in {"system", _RESULT}


def is_claude_stream_document(document: Any) -> bool:
    """Return whether a JSON document is a list of the stream's messages."""
    return isinstance(document, list) and any(map(is_claude_stream, document))


def read_claude_stream(data: bytes, name: str) -> list[Recording]:
    """Read the bytes of a stream; the list is empty if no message is in it.

    Args:
        data: the file.
        name: the file's name without its extension; the conversation's id begins with it, and ends with the session's.
    """
    report = Report(format=FORMAT)
    return _read(list(read_records(data, report, opening=OPENING)), report, name)


def read_claude_stream_document(document: list[Any], name: str) -> list[Recording]:
    """Read a list that `is_claude_stream_document` recognises; see `read_claude_stream`."""
    report = Report(format=FORMAT, lines=len(document), records=len(document))
    records = [Record(number, value) for number, value in enumerate(document, start=1) if isinstance(value, dict)]
    if len(records) < len(document):
        report.note("invalid", 1, f"{len(document) - len(records)} messages that are not objects")
    return _read(records, report, name)


def _read(records: list[Record], report: Report, name: str) -> list[Recording]:
    found = recordings_of(list(_rows(_timed(records, report), report, name)), report, name)
    for record in records if found else ():
        if text_of(record.value, "type") == _RESULT:
            _note_end(record, report)
    return found


def _note_end(record: Record, report: Report) -> None:
    """Report what the end of a run says of all of it: how much it put out, and that it failed."""
    output = count_of(object_of(record.value, "usage"), "output_tokens")
    remark = f"responses are counted at their beginning; the run put out {output:,} tokens"
    report.note("missing_usage", record.line, remark)
    if record.value.get("is_error") is True or text_of(record.value, "subtype").startswith("error"):
        remark = text_of(record.value, "terminal_reason") or text_of(record.value, "subtype")
        report.note("aborted_turn", record.line, remark)


def _timed(records: list[Record], report: Report) -> Iterator[Record]:
    """Yield the records with times: one without has that of the one before it, or else its position makes it one."""
    times = [parse_time(record.value.get("timestamp")) for record in records]
    at = next(filter(None, times), None)
    if at is None and records:
        report.note("missing_time", 1, "times are derived from the position, a second a message")
    for number, (record, time) in enumerate(zip(records, times, strict=True), start=1):
        at = time or at
        shown = at or UNKNOWN_TIME + timedelta(seconds=number)
        yield Record(record.line, {**record.value, "timestamp": shown.isoformat()})


def _rows(records: Iterator[Record], report: Report, name: str) -> Iterator[Record]:
    """Yield the messages of the conversation as rows of a session; count the others."""
    is_summarised = False
    for line, message in records:
        type_ = text_of(message, "type")
        if type_ in CONVERSATION and isinstance(message.get("message"), dict):
            row = _row(line, message, name)
            row["isCompactSummary"] = is_summarised and _says_summary(message)
            is_summarised = is_summarised and not row["isCompactSummary"]
            yield Record(line, row)
        elif type_ == "system" and message.get("subtype") == _BOUNDARY:
            is_summarised = True
            yield Record(line, _row(line, message, name))
        elif type_ in _BOOKKEEPING or type_ == _RESULT:
            report.counts["skipped"] += 1
        else:
            report.note("unknown_record", line, f"a message of type {type_}")


def _row(line: int, message: Message, name: str) -> Message:
    """Return a message as a row. A subagent's messages name the call that started it, which is one subagent's."""
    session, call = text_of(message, "session_id"), message.get("parent_tool_use_id")
    measured = object_of(message, "compact_metadata")
    row = {
        **message,
        "uuid": text_of(message, "uuid") or f"line-{line}",
        "sessionId": f"{name}-{session}" if session else name,
        "isMeta": message.get("isSynthetic") is True,
        "isApiErrorMessage": message.get("is_api_error_message") is True,
        "toolUseResult": message.get("tool_use_result"),
        "compactMetadata": {"trigger": measured.get("trigger"), "preTokens": measured.get("pre_tokens")},
    }
    return {**row, "isSidechain": True, "agentId": call, "parentToolUseID": call} if isinstance(call, str) else row


def _says_summary(message: Message) -> bool:
    said = object_of(message, "message")
    return message.get("type") == "user" and joined_text(said.get("content")).startswith(_SUMMARY)
