"""Read what `gemini -p --output-format stream-json` prints: JSON Lines of events, for scripts.

An answer comes in pieces, which are joined; calls and their results are events of their own. The stream has neither
thoughts nor usage of single responses, and a result is what the interface shows of it: Gemini CLI's own chat of the
session has all three. So a run is a conversation of its own, named after its file and the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled
from timeline.importers.builder import Origin, RecordingBuilder, parse_time
from timeline.importers.lines import Record, read_records
from timeline.importers.recording import RecordedEvent, Recording, Report, short_title
from timeline.usage import Usage
from timeline.wire.foreign import arguments_of, object_of, text_of
from timeline.wire.usage import count_of

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.blocks import Block

FORMAT: Final = "gemini-cli-stream"
OPENING: Final = '{"type":"message","timestamp":"'
"""The beginning of most events; no value inside one begins so."""
_KEYS: Final = {
    "init": {"session_id", "model"},
    "message": {"timestamp", "role", "content"},
    "tool_use": {"tool_name", "tool_id", "parameters"},
    "tool_result": {"tool_id", "status"},
}
"""By type of event, the keys that tell it from those of other streams."""

Event = dict[str, Any]


def is_gemini_stream(value: Any) -> bool:
    """Return whether a JSON value is an event of the stream that no other format has."""
    keys = _KEYS.get(text_of(value, "type")) if isinstance(value, dict) else None
    return keys is not None and keys <= value.keys()


def read_gemini_stream(data: bytes, name: str) -> list[Recording]:
    """Read the bytes of a stream; the list is empty if nothing was said in it.

    Args:
        data: the file.
        name: the file's name without its extension; the conversation's id begins with it, and ends with the session's.
    """
    report = Report(format=FORMAT)
    records = list(read_records(data, report, opening=OPENING))
    reader = _Reader(report, next(filter(None, map(_time_of, records)), None))
    for record in records:
        reader.read(record)
    events = reader.finish()
    id_ = f"{name}-{reader.session}" if reader.session else name
    return [Recording(id_, events, report, short_title(reader.builder.first_prompt))] if events else []


class _Reader:
    """Reads events in order; a response ends with the first result of its calls, and with the next prompt."""

    def __init__(self, report: Report, began: datetime | None) -> None:
        self.builder = RecordingBuilder(report, first_time=began)
        self.session = ""
        self._report = report
        self._model = ""
        self._response = ""
        """The response that goes on; empty behind its end."""
        self._pieces: list[str] = []
        """What the newest text of the response consists of so far."""
        self._began: Origin | None = None
        """Where that text began."""

    def read(self, record: Record) -> None:
        """Read one event."""
        event, type_ = record.value, text_of(record.value, "type")
        origin = Origin(f"line-{record.line}", record.line, _time_of(record))
        match type_:
            case "init":
                self.session = self.session or text_of(event, "session_id")
                self._model = text_of(event, "model")
                self._report.counts["skipped"] += 1
            case "message" if event.get("role") == "assistant":
                self._began = self._began or origin
                self._pieces.append(text_of(event, "content"))
            case "message" if event.get("role") == "user" and text_of(event, "content"):
                self._end_response()
                self.builder.add_said([(UserPrompt(text=text_of(event, "content")), origin)])
            case "tool_use":
                self._end_text()
                call = ToolCall(
                    call_id=text_of(event, "tool_id") or f"call-{origin.key}",
                    name=text_of(event, "tool_name") or "unknown",
                    arguments=arguments_of(event.get("parameters") or {}),
                )
                self._add(call, origin)
            case "tool_result" if text_of(event, "tool_id"):
                self._end_response()
                self.builder.add_result(_result(event), origin)
            case "result":
                self._note_end(record)
            case "error":
                self._report.note("aborted_turn", record.line, text_of(event, "message"))
            case _:
                self._report.note("unknown_record", record.line, f"an event of type {type_ or None}")

    def finish(self) -> tuple[RecordedEvent, ...]:
        """Return the events."""
        self._end_response()
        return self.builder.finish()

    def _add(self, block: Block, origin: Origin) -> None:
        """Append a block to the response, which its first block names."""
        if not self._response:
            self._response = origin.key
            called = ModelCalled(model=self._model, response_id=origin.key, usage=Usage())
            self.builder.set_model_call(origin.key, called, origin)
        self.builder.add_to_response(self._response, block.model_copy(update={"response_id": self._response}), origin)

    def _end_text(self) -> None:
        text, began = "".join(self._pieces), self._began
        self._pieces, self._began = [], None
        if began is not None and text.strip():
            self._add(AssistantCompletion(text=text), began)

    def _end_response(self) -> None:
        self._end_text()
        self._response = ""

    def _note_end(self, record: Record) -> None:
        """Report what the end of a run says of all of it: what it took, and that it failed."""
        stats = object_of(record.value, "stats")
        if stats:
            figures = f"{count_of(stats, 'input_tokens'):,} tokens in, {count_of(stats, 'output_tokens'):,} out"
            self._report.note("missing_usage", record.line, f"of the whole run only: {figures}")
        if text_of(record.value, "status") == "error":
            self._report.note("aborted_turn", record.line, text_of(object_of(record.value, "error"), "message"))


def _time_of(record: Record) -> datetime | None:
    return parse_time(record.value.get("timestamp"))


def _result(event: Event) -> ToolResult:
    """Return what came of a call; an error has its message in the place of an output that is missing."""
    text = text_of(event, "output") or text_of(object_of(event, "error"), "message")
    return ToolResult(call_id=text_of(event, "tool_id"), text=text, is_error=text_of(event, "status") == "error")
