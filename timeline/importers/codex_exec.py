"""Read what `codex exec --json` prints: JSON Lines of events about a thread's items, for scripts.

An item is reported when it starts and when it is completed; the last report counts. The stream has neither prompts nor
times, and usage of the whole thread alone: Codex's own rollout of the thread has all three. So a run is a conversation
of its own, named after its file and the thread.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, CustomBlock, Reasoning, ToolCall, ToolResult
from timeline.frozen import compact_json
from timeline.importers.builder import UNKNOWN_TIME, Origin, RecordingBuilder, client_message
from timeline.importers.lines import Record, read_records
from timeline.importers.recording import Recording, Report
from timeline.wire.foreign import arguments_of, status_of, text_of
from timeline.wire.openai_chat import parts_of
from timeline.wire.usage import count_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from timeline.blocks import Block

FORMAT: Final = "codex-exec"
OPENING: Final = '{"type":"item.'
"""The beginning of most events; no value inside one begins so."""
_ITEMS: Final = frozenset({"item.started", "item.updated", "item.completed"})
_EVENTS: Final = _ITEMS | {"thread.started", "turn.started", "turn.completed", "turn.failed", "error"}
_RUNS: Final = frozenset({"", "in_progress"})
_FAILED: Final = frozenset({"failed", "declined"})

Item = dict[str, Any]


def is_codex_exec(value: Any) -> bool:
    """Return whether a JSON value is an event of the stream that no other format has."""
    if not isinstance(value, dict) or text_of(value, "type") not in _EVENTS - {"error"}:
        return False
    return text_of(value, "type") == "turn.started" or bool(value.keys() & {"thread_id", "item", "usage", "error"})


def read_codex_exec(data: bytes, name: str) -> list[Recording]:
    """Read the bytes of a stream; the list is empty if it has no item.

    Args:
        data: the file.
        name: the file's name without its extension; the conversation's id begins with it, and ends with the thread's.
    """
    report = Report(format=FORMAT)
    reader = _Reader(report)
    records = list(read_records(data, report, opening=OPENING))
    last = {_id_of(record): record for record in records if text_of(record.value, "type") in _ITEMS}
    for number, record in enumerate(records, start=1):
        if text_of(record.value, "type") not in _ITEMS:
            reader.read_event(record)
        elif id_ := _id_of(record):
            if (newest := last.pop(id_, None)) is not None:
                reader.read_item(newest, id_, number)
        else:
            report.note("invalid", record.line, "an item without an id")
    events = reader.builder.finish()
    if events:
        report.note("missing_time", 1, "times are derived from the position, a second an event")
    return [Recording(f"{name}-{reader.thread}" if reader.thread else name, events, report)] if events else []


def _id_of(record: Record) -> str:
    item = record.value.get("item")
    return text_of(item, "id") if isinstance(item, dict) else ""


class _Reader:
    """Reads events in order, and each item once, where it came first."""

    def __init__(self, report: Report) -> None:
        self.builder = RecordingBuilder(report)
        self.thread = ""
        self._report = report
        self._turn = 0
        self._response = ""
        """The response that the next item of the model belongs to; empty behind a result."""

    def read_event(self, record: Record) -> None:
        """Read an event that is about no item."""
        value, kind = record.value, text_of(record.value, "type")
        match kind:
            case "thread.started":
                self.thread = self.thread or text_of(value, "thread_id")
            case "turn.started":
                self._turn, self._response = self._turn + 1, ""
                self.builder.open_turn()
            case "turn.completed":
                sums = value.get("usage")
                detail = f"{count_of(sums, 'input_tokens')} in and {count_of(sums, 'output_tokens')} out"
                self._report.note("missing_usage", record.line, f"only of the thread so far: {detail}")
            case "turn.failed" | "error":
                error = value.get("error")
                detail = text_of(error, "message") if isinstance(error, dict) else text_of(value, "message")
                self._report.note("aborted_turn", record.line, detail)
            case _:
                self._report.note("unknown_record", record.line, f"an event of type {kind or None}")

    def read_item(self, record: Record, id_: str, number: int) -> None:
        """Read an item as its last event has it; ``number`` is the place of its first one."""
        item: Item = record.value["item"]
        # Items begin anew with each run that resumes the thread in the same stream.
        origin = Origin(f"turn-{self._turn}-{id_}", record.line, UNKNOWN_TIME + timedelta(seconds=number))
        kind = text_of(item, "type") or text_of(item, "item_type")
        if kind == "error":
            self.builder.add(client_message(text_of(item, "message"), error=True), origin)
            return
        if kind == "todo_list":  # what the interface shows of a call that is in no event
            self._report.counts["skipped"] += 1
            return
        block = _block_of(item, kind, origin.key)
        if block is None:
            self._report.note("unknown_record", record.line, f"an item of type {kind or None}")
            return
        self._response = self._response or origin.key
        self.builder.add_to_response(self._response, block.model_copy(update={"response_id": self._response}), origin)
        if isinstance(block, ToolCall) and text_of(item, "status") not in _RUNS:
            place = Origin(f"{origin.key}.result", origin.line, origin.at)
            self.builder.add_result(_result_of(item, block), place)
            self._response = ""


def _block_of(item: Item, kind: str, call_id: str) -> Block | None:
    """Return what the model said or called; None for an item of an unknown type."""
    match kind:
        case "agent_message" | "assistant_message":
            return AssistantCompletion(text=text_of(item))
        case "reasoning":
            return Reasoning(text=text_of(item))
        case "web_search":
            return CustomBlock(type="assistant.part", author="assistant", data=item)
        case "command_execution":
            return ToolCall(call_id=call_id, name="shell", arguments={"command": text_of(item, "command")})
        case "file_change":
            return ToolCall(call_id=call_id, name="apply_patch", arguments={"changes": item.get("changes")})
        case "mcp_tool_call":
            name = f"{text_of(item, 'server')}__{text_of(item, 'tool')}"
            return ToolCall(call_id=call_id, name=name, arguments=arguments_of(item.get("arguments") or {}))
        case "collab_tool_call":
            asked: dict[str, JsonValue] = {"prompt": text_of(item, "prompt"), "agents": item.get("receiver_thread_ids")}
            return ToolCall(call_id=call_id, name=text_of(item, "tool") or "unknown", arguments=asked)
        case _:
            return None


def _result_of(item: Item, call: ToolCall) -> ToolResult:
    """Return what came of a call: an output, the content of an MCP server, an error, or at least how it went."""
    result, error = item.get("result"), item.get("error")
    text = text_of(item, "aggregated_output")
    data: list[JsonValue] | None = None
    if isinstance(result, dict):
        parts = parts_of(result.get("content"))
        text = "\n".join(filter(None, map(text_of, parts))) or compact_json(result.get("structured_content"))
        data = [*parts] if not all(text_of(part, "type") == "text" for part in parts) else None
    elif isinstance(error, dict):
        text = text_of(error, "message")
    return ToolResult(
        call_id=call.call_id,
        name=call.name,
        text=text or ("" if call.name == "shell" else text_of(item, "status")),
        data=data,
        is_error=text_of(item, "status") in _FAILED,
        exit_status=status_of(item, "exit_code"),
    )
