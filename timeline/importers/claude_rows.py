"""What one row of a Claude Code conversation becomes: blocks, model calls, compactions, and the turns that they open.

What the client says in the user's place (slash commands and their output, caveats, skill texts, interruptions) is in
the model's context but is no prompt: it becomes a ``client.message`` by the author ``client``, which opens no turn.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, Attachment, CustomBlock, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled, Usage
from timeline.frozen import canonical_json
from timeline.importers.builder import Origin, RecordingBuilder
from timeline.importers.recording import ImportedCompaction, ImportedHide

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.importers.recording import RecordedEvent, Report

CLIENT_MESSAGE: Final = "client.message"
SYNTHETIC: Final = "<synthetic>"
"""The model name of answers that the client made up; no model was called."""
CHATTER: Final = re.compile(
    r"\s*(<(command-name|command-message|command-args|local-command-stdout|local-command-stderr|local-command-caveat"
    r"|bash-input|bash-stdout|bash-stderr|task-notification)>|\[Request interrupted by user)"
)
"""How a text begins that the client wrote in the user's place (273 recorded sessions)."""
EXIT_CODE: Final = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b")


class SessionReader:
    """Reads one conversation's rows in file order."""

    def __init__(self, report: Report, first_time: datetime | None) -> None:
        self.report = report
        self.first_prompt = ""
        self._builder = RecordingBuilder(report, first_time=first_time)
        self._seen: dict[str, Any] = {}
        self._boundary: ImportedCompaction | None = None
        self._before: datetime | None = None
        self._started: dict[str, datetime | None] = {}

    def knows(self, row: dict[str, Any]) -> bool:
        """Say whether a row of this uuid was read."""
        return row.get("uuid") in self._seen

    def read(self, row: dict[str, Any], line: int, at: datetime | None) -> None:
        """Read a user or assistant row."""
        message = row.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(content, str | list):
            self.report.note("invalid", line, f"{row.get('type')} row without content")
            return
        uuid = row.get("uuid")
        origin = Origin(uuid if isinstance(uuid, str) else f"line-{line}", line, at)
        if isinstance(uuid, str):
            if self._seen.get(uuid) == content:
                self.report.note("duplicate_record", line, uuid)
                return
            self._seen[uuid] = content
        before, self._before = self._before, at or self._before
        if row.get("type") == "assistant":
            self._read_assistant(row, message, origin, before)
        else:
            self._read_user(row, content, origin)

    def read_boundary(self, row: dict[str, Any], line: int, at: datetime | None) -> None:
        """Read the mark of a compaction (its summary is the next user row) or of a microcompaction."""
        uuid = row.get("uuid")
        if isinstance(micro := row.get("microcompactMetadata"), dict):
            ids = micro.get("compactedToolIds")
            hide = ImportedHide(
                tuple(i for i in ids if isinstance(i, str)) if isinstance(ids, list) else (),
                str(micro.get("trigger") or ""),
                _count(micro, "preTokens"),
                _count(micro, "tokensSaved"),
            )
            self._builder.add_event(hide, Origin(str(uuid or f"line-{line}"), line, at))
            return
        if self._boundary:
            self.report.note("invalid", line, "the compaction before this one has no summary")
        told = row.get("compactMetadata")
        metadata = told if isinstance(told, dict) else {}
        self._boundary = ImportedCompaction("", str(metadata.get("trigger") or ""), _count(metadata, "preTokens"))

    def path_of_call(self, call_id: str) -> str | None:
        """Return the path that a call will have in the log."""
        return self._builder.path_of_call(call_id)

    def finish(self) -> tuple[RecordedEvent, ...]:
        """Return the conversation's events in timeline order."""
        if self._boundary:
            self.report.note("invalid", self.report.lines, "the last compaction has no summary")
        return self._builder.finish()

    def _read_user(self, row: dict[str, Any], content: str | list[Any], origin: Origin) -> None:
        if row.get("isCompactSummary") is True:
            told = self._boundary or ImportedCompaction("")
            self._boundary = None
            self._builder.add_event(ImportedCompaction(_joined(content), told.trigger, told.pre_tokens), origin)
            return
        is_meta = row.get("isMeta") is True
        opens = True
        for index, part in enumerate(_parts(content)):
            place = Origin(f"{origin.key}.{index}", origin.line, origin.at)
            if part.get("type") == "tool_result":
                self._builder.add_result(_result(part, row.get("toolUseResult")), place)
                continue
            block = _user_block(part, is_meta=is_meta)
            if block is None:
                continue
            if block.author == "user" and opens:
                self._builder.open_turn()
                opens = False
                self.first_prompt = self.first_prompt or block.text
            self._builder.add(block, place)

    def _read_assistant(
        self, row: dict[str, Any], message: dict[str, Any], origin: Origin, before: datetime | None
    ) -> None:
        content = message["content"]
        id_ = message.get("id")
        response = id_ if isinstance(id_, str) and id_ else f"response-{origin.key}"
        if row.get("isApiErrorMessage") is True:
            self._builder.add(_client_message(_joined(content)), origin)
            return
        for index, part in enumerate(_parts(content)):
            place = Origin(f"{origin.key}.{index}", origin.line, origin.at)
            block = _assistant_block(part, response, place.key)
            if block is not None:
                self._builder.add_to_response(response, block, place)
        if message.get("model") != SYNTHETIC:
            # The agent calls as soon as it has what it was waiting for, so the call began at the row before its answer.
            started = self._started.setdefault(response, before or origin.at)
            self._builder.set_model_call(response, _model_call(message, response, started), origin)


def claude_usage(usage: Any) -> Usage:
    """Read a usage object of the Messages API; creation without a breakdown was written for five minutes."""
    told = usage if isinstance(usage, dict) else {}
    by_lifetime = told.get("cache_creation")
    split = by_lifetime if isinstance(by_lifetime, dict) else {}
    one_hour = _count(split, "ephemeral_1h_input_tokens")
    return Usage(
        input_tokens=_count(told, "input_tokens"),
        output_tokens=_count(told, "output_tokens"),
        cache_read_tokens=_count(told, "cache_read_input_tokens"),
        cache_write_5m_tokens=_count(split, "ephemeral_5m_input_tokens")
        if split
        else _count(told, "cache_creation_input_tokens"),
        cache_write_1h_tokens=one_hour,
    )


def _count(fields: dict[str, Any], key: str) -> int:
    value = fields.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _model_call(message: dict[str, Any], response: str, started: datetime | None) -> ModelCalled:
    finish = message.get("stop_reason")
    return ModelCalled(
        model=str(message.get("model") or ""),
        response_id=response,
        usage=claude_usage(message.get("usage")),
        finish_reason=finish if isinstance(finish, str) else None,
        started_at=started,
    )


def _parts(content: str | list[Any]) -> list[dict[str, Any]]:
    """Give content one form: a list of parts."""
    told = content if isinstance(content, list) else [content]
    return [{"type": "text", "text": p} if isinstance(p, str) else p for p in told if isinstance(p, str | dict)]


def _text(part: dict[str, Any], key: str = "text") -> str:
    value = part.get(key)
    return value if isinstance(value, str) else ""


def _joined(content: Any) -> str:
    """Join the texts of a content string or list."""
    parts = _parts(content) if isinstance(content, str | list) else []
    return "\n".join(_text(p) for p in parts if p.get("type") == "text")


def _client_message(text: str, data: dict[str, Any] | None = None) -> CustomBlock:
    return CustomBlock(type=CLIENT_MESSAGE, author="client", text=text, data=data)


def _user_block(part: dict[str, Any], *, is_meta: bool) -> Block | None:
    if part.get("type") == "text":
        text = _text(part)
        if not text:
            return None
        return _client_message(text) if is_meta or CHATTER.match(text) else UserPrompt(text=text)
    if is_meta:
        return _client_message("", part)
    source = part.get("source")
    mime = _text(source, "media_type") if isinstance(source, dict) else ""
    title = _text(part, "title")
    return Attachment(data=part, mime=mime or "application/octet-stream", meta={"file": title} if title else {})


def _assistant_block(part: dict[str, Any], response: str, key: str) -> Block | None:
    match part.get("type"):
        case "text":
            text = _text(part)
            return AssistantCompletion(text=text, response_id=response) if text else None
        case "thinking":
            return Reasoning(text=_text(part, "thinking"), data=part, response_id=response)
        case "redacted_thinking":
            return Reasoning(data=part, response_id=response)
        case "tool_use":
            return _tool_call(part, response, key)
        case _:
            return CustomBlock(type="assistant.part", author="assistant", data=part, response_id=response)


def _tool_call(part: dict[str, Any], response: str, key: str) -> ToolCall:
    arguments = part.get("input", {})
    if not isinstance(arguments, dict | str):
        arguments = canonical_json(arguments)
    return ToolCall(
        call_id=_text(part, "id") or f"call-{key}",
        name=_text(part, "name") or "unknown",
        arguments=arguments,
        response_id=response,
    )


def _result(part: dict[str, Any], twin: Any) -> ToolResult:
    content = part.get("content")
    is_error = part.get("is_error") is True
    text = _joined(content)
    holds_more = isinstance(content, list) and any(p.get("type") != "text" for p in _parts(content))
    return ToolResult(
        call_id=_text(part, "tool_use_id") or "unknown",
        text=text,
        data=content if holds_more else None,
        is_error=is_error,
        exit_status=_exit_status(text, twin, is_error=is_error),
    )


def _exit_status(text: str, twin: Any, *, is_error: bool) -> int | None:
    """Read a shell command's exit status off its result.

    A failing command says ``Exit code N``. The structured twin of one that was not flagged as an error has no status:
    it is 0 unless the client interpreted another, stopped the command or left it running.
    """
    if is_error:
        told = EXIT_CODE.match(text)
        return int(told.group(1)) if told else None
    if not isinstance(twin, dict) or "stdout" not in twin or twin.get("interrupted") is not False:
        return None
    return None if twin.get("returnCodeInterpretation") or twin.get("backgroundTaskId") else 0
