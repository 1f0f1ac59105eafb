"""Content in the form of the provider that made it: only that provider reads it, so it goes back as it came.

Signed and encrypted thoughts are blocks of their own (`Reasoning`); here is everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, Attachment, Reasoning, ToolCall, ToolResult, UserPrompt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from timeline.blocks import Block

SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
"""Types of Anthropic's parts that are calls of tools which its server runs."""
GOOGLE_CALLS: Final[dict[str, str]] = {"executableCode": "codeExecutionResult", "toolCall": "toolResponse"}
"""Google's parts that its server ran, each with the part that has the result; a part is known by its key."""
GOOGLE_FILES: Final = ("inlineData", "fileData")
"""Google's parts that hold a file, such as a picture that the model drew."""
CLIENT_CALLS: Final[dict[str, str]] = {
    "custom_tool_call": "input",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}
"""OpenAI's items that call a tool of the client and are no function calls, each with the key of its arguments."""
FUNCTION_CALL: Final = "function_call"
"""The type of an OpenAI item that calls a function; the form of a call that has a namespace."""
NAMESPACE: Final = "namespace"
"""The key in such a form for the namespace that has the function: the API refuses the call without it."""
SHELL_OUTPUT: Final = "shell_call_output"
"""The type of an OpenAI item that says what a shell printed; a result's text has its words."""
PHASE: Final = "phase"
"""The key in a completion's ``data`` for what OpenAI calls a message: ``commentary``, or the ``final_answer``."""

_OPENAI_CALLS: Final = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "shell_call"}
)
"""OpenAI's items of tools that its server runs; a shell's is a part only where the shell is the server's."""
_PART: Final = "assistant.part"
_PARTS_SENT: Final = (Reasoning, ToolResult, UserPrompt, Attachment)
"""Blocks whose content parts are sent."""


def google_kind(part: Mapping[str, Any]) -> str:
    """Return the key that a part of Google's is known by, of those that its model alone makes; else an empty text."""
    if "type" in part:
        return ""
    kinds = (*GOOGLE_CALLS, *GOOGLE_CALLS.values(), *GOOGLE_FILES)
    return next((kind for kind in kinds if isinstance(part.get(kind), dict)), "")


def server_part(block: Block) -> dict[str, Any] | None:
    """Return the part of a response that says what the provider's server did, found or drew; None of any other.

    Only the provider runs such tools and reads their results.
    """
    data = block.data
    if block.type != _PART or not isinstance(data, dict):
        return None
    return data if _is_anthropics(data) or google_kind(data) else None


def is_server_result(part: Any) -> bool:
    """Return whether a part of a response is what a tool of the provider's server found, sent back or not."""
    if not isinstance(part, dict):
        return False
    kind = str(part.get("type") or google_kind(part))
    return kind in GOOGLE_CALLS.values() or kind in _OPENAI_CALLS or kind.endswith("_tool_result")


def has_server_results(blocks: Iterable[Block]) -> bool:
    """Return whether tools of the provider's server ran within the call whose response blocks are."""
    return any(block.type == _PART and is_server_result(block.data) for block in blocks)


def sent_data(block: Block) -> JsonValue:
    """Return what is sent of a block's data; None where its text alone is, and the data stays in the log."""
    if isinstance(block, _PARTS_SENT):
        return block.data
    data = block.data
    if not isinstance(data, dict):
        return None
    if isinstance(block, ToolCall):
        return data if _is_form(data) else None
    if isinstance(block, AssistantCompletion):
        return {PHASE: data[PHASE]} if isinstance(data.get(PHASE), str) else None
    return server_part(block)


def hidden_data(block: Block, data: JsonValue) -> JsonValue:
    """Return what is sent of a hidden block's data: the phase of an answer, the namespace of a function.

    Neither is content, and the replacement is taken for something else without it.

    Args:
        block: the block.
        data: what is sent of its data where it is shown.
    """
    if isinstance(block, AssistantCompletion):
        return data
    is_function = isinstance(block, ToolCall) and isinstance(data, dict) and data.get("type") == FUNCTION_CALL
    return data if is_function else None


def sent_data_before_6(block: Block) -> JsonValue:
    """Return what was sent of a block's data under number 5 of the projection: of native content Anthropic's alone."""
    if isinstance(block, _PARTS_SENT):
        return block.data
    return block.data if block.type == _PART and _is_anthropics(block.data) else None


def sent_data_before_5(block: Block) -> JsonValue:
    """Return what was sent of a block's data under the numbers 3 and 4 of the projection: content parts alone."""
    return block.data if isinstance(block, _PARTS_SENT) else None


def compared_data(block: Block) -> JsonValue:
    """Return what distinguishes a block's data from other data; what only names a form does not.

    An older log has calls and answers without it, and so has a list of messages that was written by hand.
    """
    if isinstance(block, ToolCall | AssistantCompletion) and sent_data(block) is not None:
        return None
    return _without_nulls(block.data) if block.type == _PART else block.data


def compared_arguments(call: ToolCall) -> JsonValue:
    """Return what distinguishes a call's arguments from others; those in a form of OpenAI's are an SDK's object."""
    is_object = isinstance(call.data, dict) and str(call.data.get("type")) in CLIENT_CALLS
    return _without_nulls(call.arguments) if is_object else call.arguments


def _without_nulls(value: JsonValue) -> JsonValue:
    """Return a value without keys that hold null: an SDK's objects are dumped with or without what was not sent."""
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}


def _is_form(data: Mapping[str, Any]) -> bool:
    kind = str(data.get("type"))
    return kind in CLIENT_CALLS or (kind == FUNCTION_CALL and isinstance(data.get(NAMESPACE), str))


def _is_anthropics(data: JsonValue) -> bool:
    kind = data.get("type") if isinstance(data, dict) else None
    return isinstance(kind, str) and (kind in SERVER_CALLS or kind.endswith("_tool_result"))
