"""Read chat JSON: messages as OpenAI's Chat Completions, Anthropic's, Google's or Bedrock's API take them.

It has no ids and seldom times: keys are derived from the position, and so are times that no program wrote beside the
messages, the id from the content, so that reading the same document again gives the same recording.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from timeline.blocks import SystemMessage, ToolResult, UserPrompt
from timeline.content.native import COMPACTION, SERVER_CALLS
from timeline.events import ModelCalled
from timeline.importers import sharegpt
from timeline.importers.builder import (
    UNKNOWN_TIME,
    Origin,
    RecordingBuilder,
    client_message,
    parse_time,
    time_of_any_stamp,
)
from timeline.importers.exchange import replied_message
from timeline.importers.gemini_cli import SETTING_UP
from timeline.importers.recording import Recording, Report, short_title
from timeline.wire import bedrock_converse, gemini, message_decoder
from timeline.wire.ai_sdk_earlier import KEYS
from timeline.wire.anthropic import joined_text
from timeline.wire.converse_content import is_content_block
from timeline.wire.usage import anthropic_usage, converse_usage, gemini_usage, openai_usage

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.usage import Usage

Dialect: TypeAlias = Literal["anthropic", "openai_chat", "gemini", "bedrock_converse", "ai_sdk", "ai_sdk_ui"]

_ANTHROPIC_PARTS: Final = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}
    | {*SERVER_CALLS, "search_result", "container_upload", COMPACTION}
)
_ANTHROPIC_KEYS: Final = ("system", "stop_reason")
"""Keys that only this API's requests and replies have beside the messages."""
_OPENAI_PARTS: Final = frozenset(
    {"image_url", "input_audio", "file", "refusal", "input_text", "input_image", "input_file"}
)
_AI_SDK_PARTS: Final = frozenset(
    {"tool-call", "tool-result", "tool-approval-request", "reasoning", "redacted-reasoning"}
)
_AI_SDK_KEYS: Final = frozenset({"mediaType", "mimeType", "providerOptions", "image"})
_TIMES: Final = ("timestamp", "created_at", "createdAt", "time", "ts")
"""Keys under which programs write the time of a message beside it."""
_OPENAI_ROLES: Final = frozenset({"developer", "tool", "function"})
"""A system message is none of these: the AI SDK has them, too."""
_OPENAI_KEYS: Final = ("tool_calls", "function_call", "tool_call_id", "refusal")
"""Keys that only one form has; a document without any such key is read as Chat Completions."""


def messages_of(document: Any) -> list[Any] | None:
    """Return the messages of a chat document, or None if it is not one. A content of Google's needs no role."""
    messages = _listed(document) if isinstance(document, dict) else document
    if not isinstance(messages, list) or not messages:
        return None
    read = [_with_role(message) for message in messages]
    return read if all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in read) else None


def _listed(document: dict[str, Any]) -> Any:
    """Return what a document lists; contents as a ``history`` are what Gemini CLI writes for ``/chat save``."""
    if (shared := sharegpt.messages_in(document)) is not None:
        return shared
    messages, saved = document.get("messages", document.get("contents")), document.get("history")
    is_saved = isinstance(saved, list) and all(isinstance(m, dict) and isinstance(m.get("parts"), list) for m in saved)
    return saved if messages is None and is_saved else messages


def _with_role(message: Any) -> Any:
    if not isinstance(message, dict) or "role" in message or not isinstance(parts := message.get("parts"), list):
        return message
    is_content = not any(isinstance(part, dict) and "type" in part for part in parts)
    return {"role": "user", **message} if is_content else message


def dialect_of(document: Any) -> Dialect:
    """Return the form of a document's messages, by keys that only one form has."""
    form: Dialect | None = next(filter(None, map(form_of, messages_of(document) or [])), None)
    beside = document if isinstance(document, dict) else {}
    return form or ("anthropic" if any(map(beside.get, _ANTHROPIC_KEYS)) else "openai_chat")


def form_of(message: Any) -> Dialect | None:
    """Return the form of a message; None if it fits several forms, or is no message."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return None
    if KEYS & message.keys():
        return "ai_sdk_ui"
    if isinstance(parts := message.get("parts"), list) and parts:
        return "ai_sdk_ui" if any(isinstance(p, dict) and "type" in p for p in parts) else "gemini"
    content_parts = [part for part in _list(message.get("content")) if isinstance(part, dict)]
    if content_parts and all(map(is_content_block, content_parts)):
        return "bedrock_converse"
    types = {str(part.get("type")) for part in content_parts}
    if types & _AI_SDK_PARTS or any(p.keys() & _AI_SDK_KEYS for p in (message, *content_parts)):
        return "ai_sdk"
    if any(isinstance(part.get("thinking"), list) for part in content_parts):  # Mistral's
        return "openai_chat"
    if types & _ANTHROPIC_PARTS or any(kind.endswith("_tool_result") for kind in types):
        return "anthropic"
    is_openai = message["role"] in _OPENAI_ROLES or any(key in message for key in _OPENAI_KEYS)
    return "openai_chat" if types & _OPENAI_PARTS or is_openai else None


def read_chat(document: Any, name: str, file_hash: str) -> list[Recording]:
    """Read a chat document; the list is empty if it has no message.

    Args:
        document: the decoded JSON.
        name: the file's name without its extension; the conversation's id begins with it.
        file_hash: the hash of the file; the id ends with it.
    """
    messages = messages_of(document) or []
    report = Report(lines=len(messages), records=len(messages))
    return recordings_of(document, f"{name}-{file_hash[:12]}", report)


def recordings_of(document: Any, id_: str, report: Report) -> list[Recording]:
    """Return the conversation of a chat document under an id; the list is empty if it has no message."""
    dialect = dialect_of(document)
    report.format = dialect.replace("_", "-")
    messages = messages_of(document) or []
    began = next(filter(None, map(_time_of, messages)), None)
    if began is None:
        report.note("missing_time", 1, "times are derived from the position, a second a message")
    reader = _Reader(dialect, report, began)
    if system := _system_of(document, dialect):
        reader.add_system(system)
    replied = replied_message(document, messages, report)
    for number, message in enumerate([*messages, *replied], start=1):
        reader.read(message, number)
    events = reader.builder.finish()
    return [Recording(id_, events, report, short_title(reader.first_prompt))] if events else []


def _system_of(document: Any, dialect: Dialect) -> str:
    """Return the system prompt of a document that has it outside the messages."""
    if dialect == "gemini":
        return gemini.system_of(document)
    if dialect == "bedrock_converse":
        return bedrock_converse.system_of(document)
    return joined_text(document.get("system")) if isinstance(document, dict) and dialect == "anthropic" else ""


_USAGES: Final = {"anthropic": anthropic_usage, "gemini": gemini_usage, "bedrock_converse": converse_usage}


class _Reader:
    """Reads messages in order; a user's message opens a turn."""

    def __init__(self, dialect: Dialect, report: Report, began: datetime | None) -> None:
        self.builder = RecordingBuilder(report, first_time=began)
        self._began = began
        self.first_prompt = ""
        self._report = report
        self._usage = _USAGES.get(dialect, openai_usage)
        self._decoder = message_decoder(dialect)

    def add_system(self, text: str) -> None:
        """Add the system prompt that is outside the messages."""
        self.builder.add(SystemMessage(text=text), Origin("system", 0, self._began or UNKNOWN_TIME))

    def read(self, message: dict[str, Any], number: int) -> None:
        """Read one message."""
        at = _time_of(message) if self._began else UNKNOWN_TIME + timedelta(seconds=number)
        blocks = [_unless_setting_up(block) for block in self._decoder.decode(message)]
        if not blocks:
            self._report.note("unknown_record", number, f"a {message['role']} message that says nothing")
            return
        prompt = next((block for block in blocks if isinstance(block, UserPrompt)), None)
        opens = prompt is not None
        for index, block in enumerate(blocks):
            if opens and block.author == "user":
                self.builder.open_turn()
                opens = False
            self._add(block, Origin(f"message-{number}.{index}", number, at))
        if prompt is not None:
            self.first_prompt = self.first_prompt or prompt.text
        if isinstance(message.get("usage"), dict) and (response := blocks[-1].response_id):
            call = self._model_call(message, response)
            self.builder.set_model_call(response, call, Origin(f"message-{number}", number, at))

    def _add(self, block: Block, origin: Origin) -> None:
        if isinstance(block, ToolResult):
            self.builder.add_result(block, origin)
        elif block.response_id is not None:
            self.builder.add_to_response(block.response_id, block, origin)
        else:
            self.builder.add(block, origin)

    def _model_call(self, message: dict[str, Any], response: str) -> ModelCalled:
        usage: Usage = self._usage(message["usage"])
        model, finish = message.get("model"), message.get("stop_reason") or message.get("finish_reason")
        return ModelCalled(
            model=model if isinstance(model, str) else "",
            response_id=response,
            usage=usage,
            finish_reason=finish if isinstance(finish, str) else None,
        )


def _time_of(message: dict[str, Any]) -> datetime | None:
    """Return the time that a program wrote beside a message; None if there is none."""
    for stamp in filter(None, map(message.get, _TIMES)):
        if (at := parse_time(stamp) or time_of_any_stamp(stamp)) is not None:
            return at
    return None


def _unless_setting_up(block: Block) -> Block:
    """Return what opens a session of Gemini CLI as the client's; any other block as it is."""
    is_opening = isinstance(block, UserPrompt) and SETTING_UP.match(block.text)
    return client_message(block.text) if is_opening else block


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
