"""Read recorded items of OpenAI's Responses API: a flat list that does not name the items' responses.

Codex rollouts and sessions of the OpenAI Agents SDK are such lists. Consecutive items of the model are one response: it
ends at a message to the model, at the result of a call, or when the caller ends it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import CustomBlock, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.content.native import NATIVE
from timeline.frozen import compact_json
from timeline.importers.builder import Origin, client_message
from timeline.wire.foreign import arguments_of, object_of, status_of, text_of
from timeline.wire.media import attachment_block
from timeline.wire.openai_chat import parts_of
from timeline.wire.responses_approvals import ANSWER, answer_block
from timeline.wire.responses_calls import call_block, is_of_client, result_block
from timeline.wire.responses_decoding import item_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.importers.builder import RecordingBuilder
    from timeline.importers.recording import Report
    from timeline.wire.media import Part

SAID_BY_THE_MODEL: Final = frozenset(
    {
        "reasoning",
        "function_call",
        "custom_tool_call",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "compaction",
        "compaction_summary",
        "context_compaction",
    }
)
"""Items that `item_blocks` reads."""
CALLS: Final = frozenset({"local_shell_call", "shell_call", "apply_patch_call", "computer_call", "tool_search_call"})
"""Calls that have no name of their own: their type is the name."""
NOTHING: Final = frozenset({"ghost_snapshot", "item_reference", "compaction_trigger", "additional_tools"})
"""Items of the client that say nothing to the model; schemas of tools are not part of a recording."""

AGENT_MESSAGE: Final = "agent_message"
"""A message of another agent of the same session to this one."""
ENCRYPTED: Final = "[encrypted by the provider]"
_TASK: Final = re.compile(r"Message Type: NEW_TASK\b")

_USERS: Final = ("user.", "images.", "audio.")
"""The beginnings of the kinds of parts that are the user's, or represent a picture or a sound of theirs."""
_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_FAILED: Final = "Script failed"
"""The beginning of the output of a script of calls that failed."""
_ADDRESS: Final = frozenset({"type", "id", "call_id", "status"})
_EXIT: Final = re.compile(r"(?:Exit code:|Process exited with code) (-?\d{1,9})\b")
_OPENING_LINES: Final = 400
"""Characters at the beginning of a result that are searched for the command's exit status."""


class ItemReader:
    """Adds items to a recording, in their order.

    Args:
        builder: collects the recording.
        report: receives the findings.
        is_client: returns whether a text in the user's role is the client's own.

    Attributes:
        newest: the id of the newest response; empty before the first one.
        results_end_it: whether the result of a call ends the response; otherwise the response continues after it.
    """

    def __init__(
        self, builder: RecordingBuilder, report: Report, *, is_client: Callable[[str], bool] = lambda _: False
    ) -> None:
        self.newest: str = ""
        self.results_end_it: bool = True
        self._builder = builder
        self._report = report
        self._is_client = is_client
        self._open = False
        self._names: dict[str, str] = {}
        self._waiting: set[str] = set()
        """The calls that have no result yet."""
        self._ended: list[int] = []
        """The exit statuses of commands that ended since the last result."""

    @property
    def is_open(self) -> bool:
        """Whether the next item of the model belongs to the response ``newest``."""
        return self._open

    def end_response(self) -> None:
        """End the response: the next item of the model begins another one."""
        self._open = False

    def note_exit(self, status: int) -> None:
        """Note that a command ended: the next result has its status if it has none, and if no other call waits.

        A call may be a script that runs several commands; the first one that failed counts.
        """
        self._ended.append(status)

    def read(self, item: dict[str, Any], origin: Origin) -> None:
        """Read one item. An item of an unknown type is reported, and kept whole as the model's."""
        type_ = text_of(item, "type") or ("message" if "role" in item else "")
        if type_ == "message" and item.get("role") != "assistant":
            self._read_message(item, origin)
        elif type_ == AGENT_MESSAGE:
            self._read_agent_message(item, origin)
        elif type_ in NOTHING:
            self._report.counts["skipped"] += 1
        elif _is_search_of_the_server(item, type_):
            self._add(CustomBlock(type=NATIVE, author="assistant", data=item), origin)
        elif type_ == ANSWER:
            self._read_answer(item, origin)
        elif type_.endswith("_output"):
            self._read_result(item, type_, origin)
        elif type_ in CALLS:
            self._add(_call(item, type_), origin)
        else:
            self._read_said(item, type_, origin)

    def _read_said(self, item: dict[str, Any], type_: str, origin: Origin) -> None:
        if type_ not in SAID_BY_THE_MODEL and type_ != "message":
            self._report.note("unknown_record", origin.line, f"an item of type {type_ or None}")
        blocks = item_blocks(item, "", origin.line)
        if not blocks:
            self._report.note("invalid", origin.line, f"a {type_} item without content")
        for block in blocks:
            self._add(block, origin)

    def _add(self, block: Block, origin: Origin) -> None:
        """Add a block to the open response, or begin one."""
        if not self._open:
            self.newest, self._open = f"response-{origin.key}", True
        if isinstance(block, ToolCall):
            self._names[block.call_id] = block.name
            self._waiting.add(block.call_id)
        self._builder.add_to_response(self.newest, block.model_copy(update={"response_id": self.newest}), origin)

    def _read_message(self, item: dict[str, Any], origin: Origin) -> None:
        self._open = False
        blocks = list(self._said(item))
        if not blocks:
            self._report.note("invalid", origin.line, f"a {item.get('role')} message without content")
        self._builder.add_said(
            (block, Origin(f"{origin.key}.{index}" if index else origin.key, origin.line, origin.at))
            for index, block in enumerate(blocks)
        )

    def _read_agent_message(self, item: dict[str, Any], origin: Origin) -> None:
        """Read what another agent says to this one. It is a prompt if it hands a task over, and so begins a turn."""
        self._open = False
        block = _agent_message(item)
        if block is None:
            self._report.note("invalid", origin.line, "an agent_message item without content")
        else:
            self._builder.add_said([(block, origin)])

    def _said(self, item: dict[str, Any]) -> Iterator[Block]:
        system = text_of(item, "role") in {"system", "developer"}
        parts = parts_of(item.get("content"))
        for part, kind in zip(parts, _kinds(item, len(parts)), strict=True):
            if not _is_text(part):
                yield attachment_block(part)
            elif text := text_of(part):
                if system:
                    yield SystemMessage(text=text)
                else:
                    is_clients = not kind.startswith(_USERS) if kind else self._is_client(text)
                    yield client_message(text) if is_clients else UserPrompt(text=text)

    def _read_answer(self, item: dict[str, Any], origin: Origin) -> None:
        self._open = False
        answer = answer_block(item, self._names.get(text_of(item, "approval_request_id"), ""))
        if answer is not None:
            self._builder.add_result(answer, origin)

    def _read_result(self, item: dict[str, Any], type_: str, origin: Origin) -> None:
        self._open = self._open and not self.results_end_it
        call_id = text_of(item, "call_id") or text_of(item, "id")
        if not call_id:
            self._report.note("invalid", origin.line, f"a {type_} item without the id of its call")
            call_id = f"call-{origin.key}"
        result = result_of(item, call_id, self._names.get(call_id, ""))
        if result.exit_status is None and self._ended and self._waiting == {call_id}:
            status = next(filter(None, self._ended), 0)
            result = result.model_copy(update={"exit_status": status})
        self._ended.clear()
        self._waiting.discard(call_id)
        self._builder.add_result(result, origin)


def _kinds(item: dict[str, Any], parts: int) -> list[str]:
    """Return what newer clients say of each part of a message: whose it is, and what; empty where they do not."""
    noted = item.get("internal_chat_message_metadata_passthrough")
    kinds = noted.get("content_item_kinds") if isinstance(noted, dict) else None
    if not isinstance(kinds, list) or len(kinds) != parts:
        return [""] * parts
    return [kind if isinstance(kind, str) and kind != "unknown" else "" for kind in kinds]


def _is_search_of_the_server(item: dict[str, Any], type_: str) -> bool:
    """Return whether an item is a search for tools that the provider ran, or its result: both are in one response."""
    is_search = type_ in {"tool_search_call", "tool_search_output"}
    return is_search and (item.get("execution") == "server" or not text_of(item, "call_id"))


def _agent_message(item: dict[str, Any]) -> Block | None:
    """Return the block of an agent's message: its readable text; what is encrypted goes into its ``meta``."""
    parts = parts_of(item.get("content"))
    meta: dict[str, JsonValue] = {"author": text_of(item, "author"), "recipient": text_of(item, "recipient")}
    text = "\n".join(filter(None, (text_of(part) for part in parts)))
    sealed: list[JsonValue] = [text_of(p, "encrypted_content") for p in parts if text_of(p, "encrypted_content")]
    if sealed:
        text = f"{text.rstrip()}\n{ENCRYPTED}".lstrip()
        meta["encrypted_content"] = sealed
    if not text.strip():
        return None
    if item.get("trigger_turn") is True or _TASK.match(text):
        return UserPrompt(text=text, meta=meta)
    return client_message(text, **meta)


def result_of(item: dict[str, Any], call_id: str, name: str) -> ToolResult:
    """Return the result of a call: its output is a text, content parts, an object, or the old form with its success."""
    if (own := result_block(item, call_id, name)) is not None:
        return own
    output = item.get("output", item.get("tools"))
    failed = item.get("status") == "failed"
    if isinstance(output, dict) and isinstance(output.get("content"), str):
        failed, output = output.get("success") is False, output["content"]
    if isinstance(output, str):
        text, data = output, None
    elif _are_parts(output):
        parts = parts_of(output)
        text = "\n".join(filter(None, (text_of(p) for p in parts if _is_text(p))))
        data = output if not all(map(_is_text, parts)) else None
    else:
        text, data = "" if output is None else compact_json(output), None
    status = _exit_status(text)
    failed = failed or text.startswith(_FAILED)
    return ToolResult(call_id=call_id, name=name, text=text, data=data, is_error=failed, exit_status=status)


def _is_text(part: Part) -> bool:
    return text_of(part, "type") in _TEXTS


def _are_parts(output: Any) -> bool:
    if isinstance(output, dict):
        return isinstance(output.get("type"), str)
    return isinstance(output, list) and all(isinstance(p, dict) and str(p.get("type")) in _PARTS for p in output)


_PARTS: Final = _TEXTS | {"input_image", "input_file", "image_url", "computer_screenshot"}


def _exit_status(text: str) -> int | None:
    """Return a command's exit status: from a line at the beginning of its result, or the older JSON form's metadata."""
    if text.startswith('{"output":'):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return status_of(object_of(value, "metadata"), "exit_code")
    found = _EXIT.search(text, 0, _OPENING_LINES)
    return int(found.group(1)) if found else None


def _call(item: Part, type_: str) -> Block:
    """Return the block of a call that is named by its type; a call that no result can name is kept whole."""
    call_id = text_of(item, "call_id") or text_of(item, "id")
    if not call_id:
        return CustomBlock(type="assistant.part", author="assistant", data=item)
    if is_of_client(item):
        return call_block(item, call_id, "")
    asked = item.get("action", item.get("operation", item.get("arguments")))
    arguments = {k: v for k, v in item.items() if k not in _ADDRESS} if asked is None else arguments_of(asked)
    return ToolCall(call_id=call_id, name=type_.removesuffix("_call"), arguments=arguments)
