"""Read mini-swe-agent trajectories: messages in the form of the API that was asked, with what the agent adds to each.

A model either calls the one tool `bash`, or writes its command into a block of code in its text. Such a command is a
call here, and the message behind it its result. `extra` has what a message has no field for: the commands that were
read in it, the whole response with its usage, the exit status of a command, the time. Trajectories of version 1 have
less of it. The file is written anew after each step.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import ToolCall, ToolResult
from timeline.events import ModelCalled
from timeline.importers.builder import SECONDS, UNKNOWN_TIME, Origin, RecordingBuilder, client_message, time_of_stamp
from timeline.importers.recording import Recording, Report, short_title
from timeline.importers.response_items import ItemReader
from timeline.wire import openai_chat
from timeline.wire.anthropic import joined_text
from timeline.wire.foreign import status_of, text_of
from timeline.wire.usage import openai_usage, responses_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.blocks import Block

FORMAT: Final = "mini-swe-agent"
SHELL: Final = "bash"
"""The agent's one tool."""
_SUBMITTED: Final = "Submitted"
_OF_USERS: Final = "User"
"""The beginning of the interruptions in which a user speaks: a comment, a rejection, another task."""
_OPENING: Final = re.compile(r"```(?:bash|mswea_bash_command)[ \t]*\n")
"""Matches the line in front of a command in a text, as the two versions ask models to write it."""
_CLOSING: Final = "\n```"

Message = dict[str, Any]


def is_mini_swe_agent(value: Any) -> bool:
    """Return whether a JSON value is a trajectory of mini-swe-agent, of version 1 or 2."""
    return isinstance(value, dict) and text_of(value, "trajectory_format").startswith(FORMAT)


def read_mini_swe_agent(document: Message, name: str, file_hash: str) -> list[Recording]:
    """Read a trajectory; the list is empty if it has no message.

    Args:
        document: the decoded JSON, one that `is_mini_swe_agent` recognises.
        name: the file's name without its extension; the conversation's id begins with it.
        file_hash: the hash of the file; the id ends with it.
    """
    listed = document.get("messages")
    messages = listed if isinstance(listed, list) else []
    report = Report(format=FORMAT, lines=len(messages), records=len(messages))
    reader = _Reader(report, _model_of(document))
    for number, message in enumerate(messages, start=1):
        reader.read(message, number)
    events = reader.builder.finish()
    id_ = f"{name.removesuffix('.traj')}-{file_hash[:12]}"
    return [Recording(id_, events, report, short_title(reader.builder.first_prompt))] if events else []


class _Reader:
    """Reads messages in order; what the user says opens a turn."""

    def __init__(self, report: Report, model: str) -> None:
        self.builder = RecordingBuilder(report)
        self._report = report
        self._model = model
        self._decoder = openai_chat.MessageDecoder()
        self._items = ItemReader(self.builder, report)
        self._at = UNKNOWN_TIME
        self._open: list[str] = []
        """The calls of the newest response that have no result yet."""
        self._is_text = False
        """Whether its call was in its text, so that the next message is the result, whoever it is from."""
        self._is_refused = False
        """Whether it has no command, which the agent's program answers."""

    def read(self, message: Any, number: int) -> None:
        """Read one message; ``number`` counts from 1."""
        if not isinstance(message, dict):
            self._report.note("invalid", number, "a message that is not an object")
            return
        extra = message.get("extra")
        extra = extra if isinstance(extra, dict) else {}
        self._at = _time_of(extra) or self._timeless(number)
        if message.get("object") == "response":
            self._read_items(message, number)
        elif message.get("type") == "function_call_output":
            self._items.read(message, self._origin(number))
        elif message.get("role") == "assistant":
            self._read_response(message, extra, number)
        elif message.get("role") == "tool" or self._is_answer(message, extra):
            self._read_result(message, extra, number)
        else:
            self._read_said(message, extra, number)

    def _is_answer(self, message: Message, extra: Message) -> bool:
        """Return whether a message in another role answers the open call; the output that submits ends the run."""
        submits = message.get("role") == "exit" and text_of(extra, "exit_status") == _SUBMITTED
        return bool(self._open) and (self._is_text or submits)

    def _timeless(self, number: int) -> datetime:
        self._report.note("missing_time", number, "a second after the message before it")
        return self._at + timedelta(seconds=1)

    def _origin(self, number: int, index: int = 0) -> Origin:
        return Origin(f"message-{number}.{index}", number, self._at)

    def _read_items(self, response: Message, number: int) -> None:
        """Read a response of the Responses API, which is one whole entry among the messages."""
        self._items.end_response()
        before, output = self._items.newest, response.get("output")
        for index, item in enumerate(output if isinstance(output, list) else []):
            if isinstance(item, dict):
                self._items.read(item, self._origin(number, index))
        if (newest := self._items.newest) != before:
            called = ModelCalled(
                model=text_of(response, "model") or self._model,
                response_id=newest,
                usage=responses_usage(response.get("usage")),
                finish_reason=text_of(response, "status") or None,
            )
            self.builder.set_model_call(newest, called, self._origin(number))

    def _read_response(self, message: Message, extra: Message, number: int) -> None:
        shown = message if message.get("tool_calls") else _with_call(message, extra, f"action-{number}")
        blocks = self._decode(shown, number)
        self._open = [block.call_id for block in blocks if isinstance(block, ToolCall)]
        self._is_text, self._is_refused = shown is not message, not self._open
        response = next((block.response_id for block in blocks if block.response_id), None)
        if response is None:
            return
        for index, block in enumerate(blocks):
            self.builder.add_to_response(response, block, self._origin(number, index))
        raw = extra.get("response")
        reply = raw if isinstance(raw, dict) else {}
        model = text_of(reply, "model") or self._model
        if model or reply:
            called = ModelCalled(
                model=model,
                response_id=response,
                usage=openai_usage(reply.get("usage")),
                finish_reason=_finish_reason(reply),
            )
            self.builder.set_model_call(response, called, self._origin(number))

    def _read_result(self, message: Message, extra: Message, number: int) -> None:
        """Read the answer to a call: also where the user refused the command, or its output ended the run."""
        to_call = {} if message.get("role") == "tool" else {"role": "tool", "tool_call_id": self._open[0]}
        status = status_of(extra, "returncode")
        known = {"exit_status": status} if status is not None else {}
        failed = {"is_error": True} if extra.get("exception_info") else {}
        for index, block in enumerate(self._decode({**message, **to_call}, number)):
            if isinstance(block, ToolResult):
                self._open = [call for call in self._open if call != block.call_id]
                self.builder.add_result(block.model_copy(update={**known, **failed}), self._origin(number, index))

    def _read_said(self, message: Message, extra: Message, number: int) -> None:
        """Read a prompt, or what the agent's program says: that no command was found, or how the run ended."""
        interrupt = text_of(extra, "interrupt_type")
        asks_again = not interrupt.startswith(_OF_USERS) and (self._is_refused or bool(interrupt))
        is_clients = message.get("role") == "exit" or asks_again
        self._is_refused = False
        if not is_clients:
            self.builder.add_said(
                (block, self._origin(number, index)) for index, block in enumerate(self._decode(message, number))
            )
        elif text := joined_text(message.get("content")) or text_of(extra, "exit_status"):
            self.builder.add(client_message(text), self._origin(number))

    def _decode(self, message: Message, number: int) -> list[Block]:
        blocks = self._decoder.decode(message)
        if not blocks:
            self._report.note("unknown_record", number, f"a {message.get('role')} message that says nothing")
        return blocks


def _with_call(message: Message, extra: Message, call_id: str) -> Message:
    """Return a message with the command in its text as a call; as it is, where there is none, or more than one."""
    text = joined_text(message.get("content"))
    written = list(_written(text))
    listed = extra.get("actions")
    actions = [action["command"] for action in listed if _is_action(action)] if isinstance(listed, list) else []
    commands = actions or [command for _, _, command in written]
    if len(commands) != 1:
        return message
    spans = [(start, end) for start, end, command in written if command == commands[0].strip()]
    rest = f"{text[: spans[0][0]]}{text[spans[0][1] :]}".strip() if spans else text
    call = {"id": call_id, "function": {"name": SHELL, "arguments": {"command": commands[0]}}}
    return {**message, "content": rest, "tool_calls": [call]}


def _written(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each command in a text begins and ends, with the lines around it, and the command."""
    at = 0
    while (opening := _OPENING.search(text, at)) and (end := text.find(_CLOSING, opening.end())) >= 0:
        at = end + len(_CLOSING)
        yield opening.start(), at, text[opening.end() : end].strip()


def _is_action(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("command"), str)


def _time_of(extra: Message) -> datetime | None:
    return time_of_stamp(extra.get("timestamp"), per_second=SECONDS)


def _finish_reason(reply: Message) -> str | None:
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return text_of(first, "finish_reason") or None if isinstance(first, dict) else None


def _model_of(document: Message) -> str:
    """Return the model that the run was configured with."""
    found: Any = document
    for key in ("info", "config", "model"):
        found = found.get(key) if isinstance(found, dict) else None
    return text_of(found, "model_name") if isinstance(found, dict) else ""
