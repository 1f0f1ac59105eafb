"""Read one entry of a pi session into blocks, model calls and compactions, and open turns.

An assistant message is a whole response: its time is when the call began, the entry's time when it ended. An aborted or
failed one keeps the part that arrived, marked as the engine marks a broken stream. pi's own messages in the user's role
(commands that the user ran, messages of extensions, summaries of branches) become a ``client.message``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, CustomBlock, Reasoning, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled
from timeline.importers.builder import Origin, RecordingBuilder, client_message, parse_time
from timeline.importers.pi_rows import clock
from timeline.importers.recording import ImportedCompaction
from timeline.usage import Usage
from timeline.wire.anthropic import joined_text, parts_of
from timeline.wire.foreign import arguments_of, decode_value, object_of, text_of
from timeline.wire.media import attachment_block
from timeline.wire.responses import ModelResponse, interrupted
from timeline.wire.usage import count_of

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.importers.recording import RecordedEvent, Report
    from timeline.wire.media import Part

ROLES: Final = frozenset(
    {"user", "assistant", "toolResult", "system", "bashExecution", "custom", "hookMessage", "branchSummary"}
)
"""Roles whose messages are conversation. ``hookMessage`` is the second version's word for ``custom``."""
_WITHOUT_CONTENT: Final = frozenset({"bashExecution", "branchSummary"})
SUMMARIES: Final = frozenset({"compaction", "branch_summary"})
CUT_OFF: Final = frozenset({"aborted", "error"})
"""pi's stop reasons of a response that the provider never finished."""
BRANCH_LINE: Final = "The conversation came back from another branch. Summary of that branch:\n\n"

_EXIT_CODE: Final = re.compile(r"Command exited with code (\d{1,9})\s*\Z")
_SHELL: Final = "bash"
_ERROR_LENGTH: Final = 200


def is_conversation(value: dict[str, Any]) -> bool:
    """Return whether an entry is in the model's context: a message, an extension's message, or a summary."""
    if text_of(value, "type") in SUMMARIES:
        return isinstance(value.get("summary"), str)
    message = message_of(value)
    if text_of(message, "role") not in ROLES or is_unsent(value):
        return False
    return message["role"] in _WITHOUT_CONTENT or isinstance(message.get("content"), str | list)


def is_unsent(value: dict[str, Any]) -> bool:
    """Return whether a message is not for the model: a command kept from it, a response's snapshot, one to come."""
    message = message_of(value)
    kept = value.get("checkpoint") is True or message.get("excludeFromContext") is True
    return kept or text_of(message, "stopReason") == "deferred"


def message_of(value: dict[str, Any]) -> dict[str, Any]:
    """Return an entry's message, or an empty one; an extension's message is the entry itself."""
    if value.get("type") == "custom_message":
        return {**value, "role": "custom"}
    message = value.get("message")
    return message if value.get("type") == "message" and isinstance(message, dict) else {}


def time_of(value: dict[str, Any]) -> datetime | None:
    """Return when an entry was written, or if unknown when its message began."""
    return parse_time(value.get("timestamp")) or clock(message_of(value).get("timestamp"))


class PathReader:
    """Reads the entries of one path through the session, from its root to a leaf."""

    def __init__(self, report: Report, first_time: datetime | None) -> None:
        self.report = report
        self._builder = RecordingBuilder(report, first_time=first_time)
        self._blocks = 0
        self._before: dict[int, int] = {}
        """The number of blocks before an entry, by its position in the file."""
        self._responses: set[str] = set()

    @property
    def first_prompt(self) -> str:
        """The first prompt with a text; empty if there is none."""
        return self._builder.first_prompt

    def mark(self, position: int) -> None:
        """Note an entry's place, even if it is no conversation: a compaction may keep the blocks after it."""
        self._before[position] = self._blocks

    def read(self, position: int, value: dict[str, Any], line: int, *, kept: int | None) -> None:
        """Read an entry of the conversation.

        Args:
            position: the entry's position in the file.
            value: the entry.
            line: the entry's line.
            kept: the position of the first entry that a compaction keeps word for word.
        """
        # Entries of the first version have no id until pi gives them one, in place; their times stay.
        timestamp = value.get("timestamp")
        origin = Origin(
            timestamp if isinstance(timestamp, str) and timestamp else f"entry-{position}", line, time_of(value)
        )
        if value.get("type") == "compaction":
            self._read_compaction(value, origin, kept)
        elif value.get("type") == "branch_summary":
            self._add(client_message(BRANCH_LINE + text_of(value, "summary")), origin)
        else:
            self._read_message(message_of(value), origin)

    def finish(self) -> tuple[RecordedEvent, ...]:
        """Return the conversation's events in timeline order."""
        return self._builder.finish()

    def _read_compaction(self, value: dict[str, Any], origin: Origin, kept: int | None) -> None:
        before = self._blocks if kept is None else self._before.get(kept, self._blocks)
        compaction = ImportedCompaction(
            text_of(value, "summary"),
            "extension" if value.get("fromHook") is True else "",
            count_of(value, "tokensBefore"),
            self._blocks - before,
        )
        self._builder.add_event(compaction, origin)

    def _read_message(self, message: dict[str, Any], origin: Origin) -> None:
        match message["role"]:
            case "assistant":
                self._read_response(message, origin)
            case "toolResult":
                self._builder.add_result(_result(message), origin)
                self._blocks += 1
            case "bashExecution":
                self._add(client_message(_ran(message)), origin)
            case "branchSummary":
                self._add(client_message(BRANCH_LINE + text_of(message, "summary")), origin)
            case "system":
                if text := _system_text(message):
                    self._add(SystemMessage(text=text), origin)
            case "user":
                self._read_said(message, origin, author="user")
            case _:
                self._read_said(message, origin, author="client")

    def _add(self, block: Block, origin: Origin) -> None:
        self._builder.add(block, origin)
        self._blocks += 1

    def _read_said(self, message: dict[str, Any], origin: Origin, *, author: str) -> None:
        blocks = [
            (block, Origin(f"{origin.key}.{index}", origin.line, origin.at))
            for index, part in enumerate(parts_of(message.get("content")))
            if (block := _said_block(part, author)) is not None
        ]
        self._builder.add_said(blocks)
        self._blocks += len(blocks)

    def _read_response(self, message: dict[str, Any], origin: Origin) -> None:
        response_id = self._response_id(message, origin)
        response = _response(message, response_id, origin)
        for index, block in enumerate(response.blocks):
            self._builder.add_to_response(response_id, block, Origin(f"{origin.key}.{index}", origin.line, origin.at))
        self._blocks += len(response.blocks)
        self._builder.set_model_call(response_id, response.called, origin)

    def _response_id(self, message: dict[str, Any], origin: Origin) -> str:
        """Return the provider's id, or one of our own if it is used already: some servers repeat the same id."""
        id_ = text_of(message, "responseId")
        own = id_ if id_ and id_ not in self._responses else f"response-{origin.key}"
        if own in self._responses:
            own = f"{own}~{len(self._responses)}"
        self._responses.add(own)
        return own


def _response(message: dict[str, Any], response_id: str, origin: Origin) -> ModelResponse:
    finish = text_of(message, "stopReason")
    blocks: list[Block] = []
    cut: list[dict[str, Any]] = []
    for index, part in enumerate(parts_of(message.get("content"))):
        if finish in CUT_OFF and part.get("type") == "toolCall" and "partialJson" in part:
            arguments = text_of(part, "partialJson")
            cut.append({"call_id": text_of(part, "id"), "name": text_of(part, "name"), "arguments": arguments})
        elif block := _assistant_block(part, message, response_id, f"call-{origin.key}.{index}"):
            blocks.append(block)
    called = ModelCalled(
        model=text_of(message, "responseModel") or text_of(message, "model"),
        response_id=response_id,
        usage=_usage(message.get("usage")),
        finish_reason=finish or None,
        started_at=clock(message.get("timestamp")),
        error=" ".join(text_of(message, "errorMessage").split())[:_ERROR_LENGTH] if finish == "error" else "",
    )
    response = ModelResponse(tuple(blocks), called)
    return interrupted(response, cut) if finish in CUT_OFF else response


def _assistant_block(part: Part, message: dict[str, Any], response_id: str, call_id: str) -> Block | None:
    match part.get("type"):
        case "text":
            text, signature = text_of(part), text_of(part, "textSignature")
            if not text:
                return None
            meta: dict[str, JsonValue] = {"text_signature": signature} if signature else {}
            return AssistantCompletion(text=text, response_id=response_id, meta=meta)
        case "thinking":
            return _reasoning(part, text_of(message, "api"), response_id)
        case "toolCall":
            signature = text_of(part, "thoughtSignature")
            return ToolCall(
                call_id=text_of(part, "id") or call_id,
                name=text_of(part, "name") or "unknown",
                arguments=arguments_of(part.get("arguments", {})),
                response_id=response_id,
                meta={"thought_signature": signature} if signature else {},
            )
        case _:
            return CustomBlock(type="assistant.part", author="assistant", data=part, response_id=response_id)


def _reasoning(part: Part, api: str, response_id: str) -> Block:
    """Read thinking back into the provider's own part: pi keeps its signature byte for byte, under other names."""
    text, signature = text_of(part, "thinking"), text_of(part, "thinkingSignature")
    data: Part = part
    if api == "anthropic-messages" and signature and part.get("redacted") is True:
        text, data = "", {"type": "redacted_thinking", "data": signature}
    elif api == "anthropic-messages" and signature:
        data = {"type": "thinking", "thinking": text, "signature": signature}
    elif "responses" in api:
        data = _item(signature) or part
    return Reasoning(text=text, data=data, response_id=response_id)


def _item(signature: str) -> dict[str, Any] | None:
    """Read the reasoning item of OpenAI's Responses API, which pi keeps as JSON in the signature."""
    try:
        item, end = decode_value(signature)
    except ValueError:
        return None
    whole = end == len(signature) and isinstance(item, dict) and item.get("type") == "reasoning"
    return item if whole else None


def _system_text(message: dict[str, Any]) -> str:
    """Return what a system message says: its content, and then its named sections, which newer versions have.

    The first message of a session has all sections, a later one those that changed; a section that is null ends.
    """
    sections = object_of(message, "sections").values()
    texts = [joined_text(message.get("content")), *(text for text in sections if isinstance(text, str))]
    return "\n\n".join(filter(None, texts))


def _said_block(part: Part, author: str) -> Block | None:
    if part.get("type") != "text":
        return attachment_block(_picture(part), author=author)
    text = text_of(part)
    if not text:
        return None
    return UserPrompt(text=text) if author == "user" else client_message(text)


def _picture(part: Part) -> Part:
    """Return a picture in the form of the Messages API; any other part unchanged."""
    data, mime = part.get("data"), part.get("mimeType")
    if part.get("type") != "image" or not isinstance(data, str) or not isinstance(mime, str):
        return part
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def _result(message: dict[str, Any]) -> ToolResult:
    parts = parts_of(message.get("content"))
    holds_more = any(part.get("type") != "text" for part in parts)
    text, is_error, name = joined_text(parts), message.get("isError") is True, text_of(message, "toolName")
    return ToolResult(
        call_id=text_of(message, "toolCallId") or "unknown",
        name=name,
        text=text,
        data=[_picture(part) for part in parts] if holds_more else None,
        is_error=is_error,
        exit_status=_exit_status(text, is_error=is_error) if name == _SHELL else None,
    )


def _exit_status(text: str, *, is_error: bool) -> int | None:
    """Return a command's exit status, from its result; None if it was stopped or timed out."""
    if not is_error:
        return 0
    matched = _EXIT_CODE.search(text)
    return int(matched.group(1)) if matched else None


def _ran(message: dict[str, Any]) -> str:
    """Return a command that the user ran in the words that pi sends to the model."""
    output, code = text_of(message, "output"), message.get("exitCode")
    lines = [f"Ran `{text_of(message, 'command')}`", f"```\n{output}\n```" if output else "(no output)"]
    if message.get("cancelled") is True:
        lines += ["", "(command cancelled)"]
    elif isinstance(code, int) and code:
        lines += ["", f"Command exited with code {code}"]
    if message.get("truncated") is True and (whole := text_of(message, "fullOutputPath")):
        lines += ["", f"[Output truncated. Full output: {whole}]"]
    return "\n".join(lines)


def _usage(recorded: Any) -> Usage:
    """Return pi's usage; its ``input`` counts uncached tokens only, for every provider."""
    written, long = count_of(recorded, "cacheWrite"), count_of(recorded, "cacheWrite1h")
    return Usage(
        input_tokens=count_of(recorded, "input"),
        output_tokens=count_of(recorded, "output"),
        cache_read_tokens=count_of(recorded, "cacheRead"),
        cache_write_5m_tokens=max(0, written - long),
        cache_write_1h_tokens=long,
    )
