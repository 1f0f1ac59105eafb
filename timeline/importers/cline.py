"""Read what Cline keeps of a task for its model (`api_conversation_history.json`): Anthropic messages with additions.

The client writes most results as texts in the user's role, each under a line that names its tool, in the order of the
calls; where a model has no calls of its own, it writes them as tags into its text. What the user says is in tags,
too; the rest of that role is the client's. A task's file is written anew after each step.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled
from timeline.importers.builder import (
    MILLISECONDS,
    UNKNOWN_TIME,
    Origin,
    RecordingBuilder,
    client_message,
    time_of_stamp,
)
from timeline.importers.recording import Recording, Report, short_title
from timeline.usage import Usage
from timeline.wire.anthropic import assistant_block, parts_of, result_block
from timeline.wire.foreign import object_of, text_of
from timeline.wire.media import attachment_block
from timeline.wire.usage import count_of

if TYPE_CHECKING:
    from timeline.blocks import Block

FORMAT: Final = "cline"
_STATE: Final = "<environment_details>"
"""The beginning of the state of the editor, which the client puts behind most messages in the user's role."""
_NAMED: Final = re.compile(r"\[(\w+)(?:\]| for ')")
"""The beginning of the line over a result."""
_RESULT: Final = "] Result:"
"""The end of that line."""
_WORDS: Final = ("task", "user_message", "feedback", "answer")
"""The tags around what the user says, at the end of a text."""
_ARGUMENT: Final = re.compile(r"<(\w+)>")
_MOST_UNCLOSED: Final = 50
"""How many tags that nothing closes are looked for; the bound keeps a hostile text linear."""
_FAILED: Final = ("The tool execution failed", "The user denied this operation")
"""The beginnings of results of calls that failed, or that the user refused."""

Message = dict[str, Any]


def is_cline(document: Any) -> bool:
    """Return whether a JSON document is the history of a task."""
    if not isinstance(document, list) or not all(isinstance(m, dict) and "role" in m for m in document):
        return False
    return any(
        isinstance(m.get("modelInfo"), dict)
        or (m["role"] == "user" and any(text_of(p).lstrip().startswith(_STATE) for p in parts_of(m.get("content"))))
        for m in document
    )


def read_cline(document: list[Message], name: str, file_hash: str) -> list[Recording]:
    """Read the history of a task; the list is empty if it has no message.

    Args:
        document: the decoded JSON, one that `is_cline` recognises.
        name: the file's name without its extension.
        file_hash: the hash of the file; the id ends with it where no message has a time.
    """
    report = Report(format=FORMAT, lines=len(document), records=len(document))
    began = next(filter(None, (_time_of(message) for message in document)), None)
    if began is None:
        report.note("missing_time", 1, "times are derived from the position, a second a message")
    reader = _Reader(report, began)
    for number, (message, following) in enumerate(zip(document, [*document[1:], {}], strict=True), start=1):
        reader.read(message, following, number)
    events = reader.builder.finish()
    id_ = f"{name}-{file_hash[:12]}" if began is None else f"{FORMAT}-{int(began.timestamp() * 1000)}"
    title = short_title(reader.builder.first_prompt)
    return [Recording(id_, events, report, title, is_snapshot=began is not None)] if events else []


class _Reader:
    """Reads messages in order; what the user says opens a turn."""

    def __init__(self, report: Report, began: datetime | None) -> None:
        self.builder = RecordingBuilder(report, first_time=began)
        self._report = report
        self._has_times = began is not None
        self._at = began or UNKNOWN_TIME
        self._open: list[ToolCall] = []
        """The calls of the newest response that have no result yet."""

    def read(self, message: Message, following: Message, number: int) -> None:
        """Read one message; the one that follows it names the tool of a call that is written into its text."""
        self._at = _time_of(message) or (self._at if self._has_times else self._at + timedelta(seconds=1))
        own = message.get("ts") if self._has_times else None
        origin = Origin(f"message-{own or number}", number, self._at)
        if message["role"] == "assistant":
            self._read_response(message, _first_named(following), origin)
        elif blocks := self._read_said(message):
            self.builder.add_said(_placed(blocks, origin))
        else:
            self._report.note("unknown_record", number, f"a {message['role']} message that says nothing")

    def _read_response(self, message: Message, named: str, origin: Origin) -> None:
        read = (assistant_block(p, origin.key, f"call-{origin.key}") for p in parts_of(message.get("content")))
        blocks = [block for block in read if block is not None]
        if named and not any(isinstance(block, ToolCall) for block in blocks):
            blocks = _with_call(blocks, named, origin.key)
        if not blocks:
            self._report.note("unknown_record", origin.line, "an assistant message that says nothing")
            return
        self._open = [block for block in blocks if isinstance(block, ToolCall)]
        for block, place in _placed(blocks, origin):
            self.builder.add_to_response(origin.key, block, place)
        tokens = object_of(object_of(message, "metrics"), "tokens")
        if model := text_of(object_of(message, "modelInfo"), "modelId"):
            usage = Usage(
                input_tokens=count_of(tokens, "prompt"),
                output_tokens=count_of(tokens, "completion"),
                cache_read_tokens=count_of(tokens, "cached"),
            )
            self.builder.set_model_call(
                origin.key, ModelCalled(model=model, response_id=origin.key, usage=usage), origin
            )

    def _read_said(self, message: Message) -> list[Block]:
        """Return the blocks of a message in the user's role; its pictures are the user's where they say something."""
        parts = _joined(parts_of(message.get("content")))
        author = "user" if any(_parted(text_of(part))[1] for part in parts) else "client"
        blocks: list[Block] = []
        for part in parts:
            if part.get("type") == "tool_result":
                result = result_block(part)
                self._open = [call for call in self._open if call.call_id != result.call_id]
                blocks.append(result)
            elif part.get("type") == "text":
                blocks += self._read_text(text_of(part))
            elif (attached := attachment_block(part, author=author)) is not None:
                blocks.append(attached)
        return blocks

    def _read_text(self, text: str) -> list[Block]:
        """Return what the client says in a text, or the result of a call, and then what the user says."""
        before, words = _parted(text)
        said: list[Block] = [UserPrompt(text=words)] if words else []
        call = self._answered(before)
        if call is not None:
            output = before.partition(_RESULT)[2].removeprefix("\n")
            return [ToolResult(call_id=call.call_id, text=output, is_error=output.startswith(_FAILED)), *said]
        return [client_message(before), *said] if before.strip() else said

    def _answered(self, text: str) -> ToolCall | None:
        """Return the call that a text answers: of several, the first one of the tool that it names."""
        name = _name_over(text)
        if not name or not self._open:
            return None
        call = next((call for call in self._open if call.name == name), self._open[0])
        self._open.remove(call)
        return call


def _joined(parts: list[Message]) -> list[Message]:
    """Return parts, a result's line and the result as one: where a model's calls are text, they are two."""
    joined: list[Message] = []
    for part in parts:
        before = text_of(joined[-1]) if joined else ""
        if text_of(part) and _name_over(before) and before.endswith(_RESULT):
            joined[-1] = {"type": "text", "text": f"{before}\n{text_of(part)}"}
        else:
            joined.append(part)
    return joined


def _placed(blocks: list[Block], origin: Origin) -> list[tuple[Block, Origin]]:
    return [(b, Origin(f"{origin.key}.{index}", origin.line, origin.at)) for index, b in enumerate(blocks)]


def _name_over(text: str) -> str:
    """Return the tool that the line over a result names; empty for any other text."""
    named = _NAMED.match(text)
    return named.group(1) if named is not None and _RESULT in text else ""


def _first_named(message: Message) -> str:
    """Return the tool that the first result in a message is from; empty where there is none."""
    if message.get("role") != "user":
        return ""
    return next(filter(None, (_name_over(text_of(part)) for part in parts_of(message.get("content")))), "")


def _parted(text: str) -> tuple[str, str]:
    """Return what the client says in a text, and what the user says at its end; one of them is empty in most."""
    whole = text.rstrip()
    tag = next((tag for tag in _WORDS if whole.endswith(f"</{tag}>")), "")
    start = f"\n{whole}".find(f"\n<{tag}>") if tag else -1
    if start < 0:
        return text, ""
    before = whole[:start].rstrip("\n")
    lead = before.rpartition("\n")[2]
    is_users = not lead or "user" in lead or lead.startswith("New ") or lead.endswith(_RESULT)
    return (before, whole[start + len(tag) + 2 : -len(tag) - 3].strip()) if is_users else (text, "")


def _with_call(blocks: list[Block], name: str, key: str) -> list[Block]:
    """Return a response with the call in its last text as a block; as it is, where no call of this tool is in it."""
    text = blocks[-1].text if blocks else ""
    start, end = text.rfind(f"<{name}>"), text.rfind(f"</{name}>")
    if not 0 <= start < end:
        return blocks
    arguments = _arguments(text[start + len(name) + 2 : end])
    call = ToolCall(call_id=f"call-{key}", name=name, arguments=arguments, response_id=key)
    rest = text[:start].rstrip()
    spoken = [blocks[-1].model_copy(update={"text": rest})] if rest else []
    return [*blocks[:-1], *spoken, call]


def _arguments(inside: str) -> dict[str, Any]:
    """Return the arguments of a call that is written as tags: what is between each tag and its end."""
    arguments: dict[str, Any] = {}
    unclosed: set[str] = set()
    at = 0
    while len(unclosed) < _MOST_UNCLOSED and (opening := _ARGUMENT.search(inside, at)) is not None:
        tag, at = opening[1], opening.end()
        end = -1 if tag in unclosed else inside.find(f"</{tag}>", at)
        if end < 0:
            unclosed.add(tag)
        else:
            arguments[tag], at = inside[at:end].strip("\n"), end
    return arguments


def _time_of(message: Message) -> datetime | None:
    return time_of_stamp(message.get("ts"), per_second=MILLISECONDS)
