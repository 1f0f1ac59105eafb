"""Items of OpenAI's Responses API, of requests and of responses, into blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, CustomBlock, Reasoning, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.content.native import (
    APPROVAL,
    CLIENT_CALLS,
    FOUND_TOOLS,
    FUNCTION_CALL,
    NAMESPACE,
    NATIVE,
    OPENAI_ITEMS,
    PHASE,
)
from timeline.wire.foreign import arguments_of, text_of
from timeline.wire.groups import OPENING_LINE
from timeline.wire.media import attachment_block
from timeline.wire.neutral import FAILED
from timeline.wire.openai_chat import parts_of
from timeline.wire.responses_approvals import ANSWER, answer_block, request_block
from timeline.wire.responses_calls import (
    OUTPUT,
    call_block,
    caller_of,
    found_tools,
    is_of_client,
    is_placeholder,
    result_block,
)
from timeline.wire.responses_items import is_of_server

if TYPE_CHECKING:
    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.wire.media import Part

_TEXTS: Final = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_LOCAL_SHELL: Final = "local_shell_call"
"""A call of a shell in the form of a model that is gone: it goes back as a function call."""
_RESULTS: Final = frozenset(
    {*(call + OUTPUT for call in (FUNCTION_CALL, _LOCAL_SHELL, *CLIENT_CALLS)), FOUND_TOOLS, ANSWER}
)
"""Items that answer the model."""


def decode(body: Any) -> list[Block]:
    """Decode a request body, or its list of items, into blocks; turn ids are left open.

    The placeholder result of a call without one is left out: the call stays open.
    """
    listed = body.get("input") if isinstance(body, dict) else body
    instructions = body.get("instructions") if isinstance(body, dict) else None
    blocks: list[Block] = []
    if isinstance(instructions, str) and instructions.strip():
        blocks.append(SystemMessage(text=instructions))
    items = [{"role": "user", "content": listed}] if isinstance(listed, str) else listed
    decoder = MessageDecoder()
    for item in items if isinstance(items, list) else []:
        blocks += decoder.decode(item)
    return blocks


class MessageDecoder:
    """Decodes items one by one; it keeps their number, and the names of the calls.

    Consecutive items of the model's are one response, up to the next item addressed to it: the wire has no id for a
    response.
    """

    def __init__(self) -> None:
        self._number = 0
        self._response = ""
        self._names: dict[str, str] = {}
        self._of_server: set[str] = set()

    def decode(self, item: Any, name: str = "") -> list[Block]:
        """Decode one item; any other value gives no block. The first item of a response names it."""
        self._number += 1
        if not isinstance(item, dict):
            return []
        kind = _kind_of(item)
        if kind == "message" and item.get("role") != "assistant":
            self._response = ""
            return self._said_to_model(item)
        if kind in _RESULTS and not self._is_of_server(item, kind):
            self._response = ""
            return self._result(item)
        self._response = self._response or name or f"response_{self._number}"
        blocks = item_blocks(item, self._response, self._number)
        self._names |= {block.call_id: block.name for block in blocks if isinstance(block, ToolCall)}
        if kind in CLIENT_CALLS and not is_of_client(item):
            self._of_server.add(text_of(item, "call_id"))
        return blocks

    def _is_of_server(self, item: Part, kind: str) -> bool:
        return is_of_server(item) if kind == FOUND_TOOLS else text_of(item, "call_id") in self._of_server

    def _said_to_model(self, item: Part) -> list[Block]:
        if text_of(item, "role") in {"system", "developer"}:
            return [SystemMessage(text=text) for text in map(_text_of, parts_of(item.get("content"))) if text]
        read = (_user_block(part) for part in parts_of(item.get("content")))
        return [block for block in read if block is not None]

    def _result(self, item: Part) -> list[Block]:
        if is_placeholder(item):
            return []
        output = item.get("output")
        kind = _kind_of(item)
        if kind == ANSWER:
            answer = answer_block(item, self._names.get(text_of(item, "approval_request_id"), ""))
            return [answer] if answer is not None else []
        own_id = text_of(item, "id") if kind == _LOCAL_SHELL + OUTPUT else ""
        call_id = text_of(item, "call_id") or own_id or f"call_{self._number}"
        name = self._names.get(call_id, "")
        if kind == FOUND_TOOLS:
            return [found_tools(item, call_id, name or "tool_search")]
        if (own := result_block(item, call_id, name)) is not None:
            return [own]
        parts = parts_of(output)
        text = "\n".join(filter(None, map(_text_of, parts)))
        holds_more = any(not _text_of(part) for part in parts)
        if text == FAILED:
            return [ToolResult(call_id=call_id, name=name, is_error=True)]
        return [ToolResult(call_id=call_id, name=name, text=text, data=output if holds_more else None)]


def once_a_part(item: Part, response_id: str) -> Block | None:
    """Return what an item is read as that earlier releases kept as a part of a response; None for any other part.

    Args:
        item: the part.
        response_id: the response that it belongs to.
    """
    kind = _kind_of(item)
    if kind == ANSWER or kind == _LOCAL_SHELL + OUTPUT or (kind == FOUND_TOOLS and not is_of_server(item)):
        return next(iter(MessageDecoder().decode(item)), None)
    if kind in OPENAI_ITEMS or kind in {APPROVAL, _LOCAL_SHELL} or (is_of_client(item) and text_of(item, "call_id")):
        return item_blocks(item, response_id, 0)[0]
    return None


def item_blocks(item: Part, response_id: str, number: int) -> list[Block]:
    """Decode an item of the model's; an item without a block type of its own is kept whole.

    A shell's output is of the server's own shell here: another one answers the model.

    Args:
        item: the item.
        response_id: the response that it belongs to.
        number: the item's number, for the id of a call without one.
    """
    call_id = text_of(item, "call_id") or f"{response_id}_{number}"
    match _kind_of(item):
        case "message":
            phase = {PHASE: item[PHASE]} if text_of(item, PHASE) else None
            read = (_message_part(part, response_id, phase) for part in parts_of(item.get("content")))
            return [block for block in read if block is not None]
        case "reasoning":
            thoughts = [*parts_of(item.get("summary")), *parts_of(item.get("content"))]
            text = "\n\n".join(text for text in map(_text_of, thoughts) if text)
            return [Reasoning(text=text, data=item, response_id=response_id)]
        case "function_call":
            name, arguments = text_of(item, "name") or "unknown", arguments_of(item.get("arguments", ""))
            namespace = text_of(item, NAMESPACE)
            more = {**({NAMESPACE: namespace} if namespace else {}), **caller_of(item)}
            form: JsonValue = {"type": FUNCTION_CALL, **more} if more else None
            return [ToolCall(call_id=call_id, name=name, arguments=arguments, data=form, response_id=response_id)]
        case _ if is_of_client(item):
            return [call_block(item, call_id, response_id)]
        case "local_shell_call":
            arguments = arguments_of(item.get("action"))
            return [ToolCall(call_id=call_id, name="local_shell", arguments=arguments, response_id=response_id)]
        case "mcp_approval_request":
            return [request_block(item, call_id, response_id)]
        case kind if is_of_server(item) or kind == "shell_call_output":
            return [CustomBlock(type=NATIVE, author="assistant", data=item, response_id=response_id)]
        case _:
            return [CustomBlock(type="assistant.part", author="assistant", data=item, response_id=response_id)]


def _kind_of(item: Part) -> str:
    """Return an item's type; a message need not name its own."""
    return text_of(item, "type") or ("message" if "role" in item and not item.get("type") else "")


def _message_part(part: Part, response_id: str, phase: Part | None) -> Block | None:
    text = _text_of(part) or text_of(part, "refusal")
    cited = part.get("annotations")
    meta = {"citations": cited} if cited else {}
    return AssistantCompletion(text=text, data=phase, response_id=response_id, meta=meta) if text else None


def _text_of(part: Part) -> str:
    return text_of(part) if text_of(part, "type") in _TEXTS else ""


def _user_block(part: Part) -> Block | None:
    if text_of(part, "type") in _TEXTS:
        text = _text_of(part)
        return UserPrompt(text=text) if text and text != OPENING_LINE else None
    return attachment_block(part)
