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

NATIVE: Final = "assistant.native"
"""The type of a block that is native content as a whole, in its ``data``.

What servers of Anthropic and Google ran, and what they drew, is in blocks of the type ``assistant.part`` instead, among
parts that no request has: so logs hold it that were written before this type came.
"""
COMPACTION: Final = "compaction"
"""The type of what a provider's server leaves of a history that it compacted itself, at Anthropic and at OpenAI."""
SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
"""Types of Anthropic's parts that are calls of tools which its server runs."""
GOOGLE_CALLS: Final[dict[str, str]] = {"executableCode": "codeExecutionResult", "toolCall": "toolResponse"}
"""Google's parts that its server ran, each with the part that has the result; a part is known by its key."""
_STANDARD: Final = str.maketrans("-_", "+/")
_HOLD_BASE64: Final = ("source", "inlineData")
"""Keys under which a part that was read from Google's form holds base64: pictures and documents get a source."""
GOOGLE_FILES: Final = ("inlineData", "fileData")
"""Google's parts that hold a file, such as a picture that the model drew."""
CLIENT_CALLS: Final[dict[str, str]] = {
    "custom_tool_call": "input",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
}
"""OpenAI's items that call a tool of the client and are no function calls, each with the key of its arguments."""
FUNCTION_CALL: Final = "function_call"
"""The type of an OpenAI item that calls a function; the form of a call that has a namespace."""
NAMESPACE: Final = "namespace"
"""The key in such a form for the namespace that has the function: the API refuses the call without it."""
CALLER: Final = "caller"
"""The key in a form for the program of the provider's server that made the call: its result goes to the program."""
TOOL_USE: Final = "tool_use"
"""The type of an Anthropic part that calls a tool; the form of a call that a program made, or of a toolset's."""
CONTAINER: Final = "container"
"""The key in such a form for the id of the container in which the program waits."""
TOOLSET: Final = "toolset_name"
"""The key in such a form for the family of tools that has the tool."""
APPROVAL: Final = "mcp_approval_request"
"""The type of an OpenAI item that asks whether a tool of an MCP server may run: the form of a call that waits."""
SHELL_OUTPUT: Final = "shell_call_output"
"""The type of an OpenAI item that says what a shell printed; a result's text has its words."""
FOUND_TOOLS: Final = "tool_search_output"
"""The type of an OpenAI item that says which tools a search found; a result's text has their names."""
JSON_TEXT: Final = {"type": "json"}
"""The part in a result's ``data`` that marks its text as an object's JSON: the provider gets the object."""
PHASE: Final = "phase"
"""The key in a completion's ``data`` for what OpenAI calls a message: ``commentary``, or the ``final_answer``."""

DRAWN: Final = "image_generation_call"
"""The type of an OpenAI item that is a picture which its server drew."""
OPENAI_ITEMS: Final = frozenset(
    {
        *("web_search_call", "file_search_call", "code_interpreter_call", DRAWN, "mcp_call"),
        *("mcp_list_tools", "tool_search_call", "tool_search_output", "shell_call", "shell_call_output"),
        *("program", "program_output", "item_reference", COMPACTION),
    }
)
"""Items that OpenAI's server makes, or names, and reads again; a shell's and a tool search's where they are its own."""
_OPENAI_CALLS: Final = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "shell_call"}
)
"""OpenAI's items of tools that its server runs; a shell's is a part only where the shell is the server's."""
WEB_CITATIONS: Final = "web_search_citations"
"""The key in a completion's ``data`` for what it cites of results that Anthropic's web search found."""
_APPROVED_BY: Final = "approval_request_id"
_OF_APPROVED: Final = ("type", "id", "name", "server_label", _APPROVED_BY)
_PART: Final = "assistant.part"
_PARTS_SENT: Final = (Reasoning, ToolResult, UserPrompt, Attachment)
"""Blocks whose content parts are sent."""


def google_kind(part: Mapping[str, Any]) -> str:
    """Return the key that a part of Google's is known by, of those that its model alone makes; else an empty text."""
    if "type" in part:
        return ""
    kinds = (*GOOGLE_CALLS, *GOOGLE_CALLS.values(), *GOOGLE_FILES)
    return next((kind for kind in kinds if isinstance(part.get(kind), dict)), "")


def is_json_text(data: Any) -> bool:
    """Return whether a result's data says that its text is the JSON of an object, with or without files beside it."""
    return bool((data[0] if isinstance(data, list) and data else data) == JSON_TEXT)


def server_part(block: Block) -> dict[str, Any] | None:
    """Return the part of a response that says what the provider's server did, found, drew or compacted, else None.

    Only the provider runs such tools and reads their results.
    """
    return server_content(block.type, block.data)


def server_content(type_: str, data: Any) -> dict[str, Any] | None:
    """Return what `server_part` returns of a block of a type with these data."""
    if not isinstance(data, dict) or type_ not in {_PART, NATIVE}:
        return None
    return data if type_ == NATIVE or _is_anthropics(data) or google_kind(data) else None


def is_server_result(part: Any) -> bool:
    """Return whether a part of a response is what the provider's server found or compacted, sent back or not."""
    if not isinstance(part, dict):
        return False
    kind = str(part.get("type") or google_kind(part))
    return kind in {*GOOGLE_CALLS.values(), *_OPENAI_CALLS, COMPACTION} or kind.endswith("_tool_result")


def has_server_results(blocks: Iterable[Block]) -> bool:
    """Return whether the provider's server ran tools, or compacted, within the call whose response blocks are."""
    return any(block.type in {_PART, NATIVE} and is_server_result(block.data) for block in blocks)


def sent_data(block: Block) -> JsonValue:
    """Return what is sent of a block's data; None where its text alone is, and the data stays in the log."""
    data: JsonValue = block.data
    if isinstance(block, _PARTS_SENT):
        return data
    if not isinstance(data, dict):
        return None
    if isinstance(block, ToolCall):
        return data if _is_form(data) else None
    if isinstance(block, AssistantCompletion):
        kinds = {PHASE: str, WEB_CITATIONS: list}
        return {key: data[key] for key, kind in kinds.items() if isinstance(data.get(key), kind)} or None
    return server_part(block)


def hidden_data(block: Block, data: JsonValue) -> JsonValue:
    """Return what is sent of a hidden block's data: the phase of an answer, the namespace or the program of a call.

    Neither is content, and the replacement is taken for something else without it. Nor is that a call was approved.

    Args:
        block: the block.
        data: what is sent of its data where it is shown.
    """
    if isinstance(block, AssistantCompletion):
        return {PHASE: data[PHASE]} if isinstance(data, dict) and PHASE in data else None
    if data is not None and (approved := approved_call(block)) is not None:
        return approved
    is_name = isinstance(data, dict) and data.get("type") in {FUNCTION_CALL, TOOL_USE}
    return data if isinstance(block, ToolCall) and is_name else None


def approved_call(block: Block) -> JsonValue:
    """Return which call a block is that was approved, without its content; None of any other block.

    A hidden call goes back with that, and a redacted one keeps it: without the call its approval would look as if
    nothing had run yet, and the server might run it again.
    """
    data = block.data if block.type == NATIVE and isinstance(block.data, dict) else {}
    return {key: data[key] for key in _OF_APPROVED if key in data} if data.get(_APPROVED_BY) else None


def sent_data_before_6(block: Block) -> JsonValue:
    """Return what was sent of a block's data under number 5 of the projection: of native content Anthropic's alone."""
    data: JsonValue = block.data
    return data if isinstance(block, _PARTS_SENT) or (block.type == _PART and _is_anthropics(data)) else None


def sent_data_before_5(block: Block) -> JsonValue:
    """Return what was sent of a block's data under the numbers 3 and 4 of the projection: content parts alone."""
    return block.data if isinstance(block, _PARTS_SENT) else None


def compared_data(block: Block) -> JsonValue:
    """Return what distinguishes a block's data from other data; what only names a form does not.

    An older log has calls and answers without it, and so has a list of messages that was written by hand.
    """
    if isinstance(block, ToolCall | AssistantCompletion) and sent_data(block) is not None:
        return None
    if isinstance(block, ToolResult) and is_json_text(block.data):  # earlier releases kept the text alone
        beside: list[JsonValue] = block.data[1:] if isinstance(block.data, list) else []
        return _in_standard_base64([{"type": "text", "text": block.text}, *beside]) if beside else None
    if isinstance(block, Attachment | ToolResult):
        return _in_standard_base64(block.data)
    return _without_nulls(block.data) if block.type in {_PART, NATIVE} else block.data


def standard_base64(text: str) -> str:
    """Return base64 in its standard alphabet; a text in the one for URLs is the same data."""
    return text.translate(_STANDARD) if "-" in text or "_" in text else text


def _in_standard_base64(data: JsonValue) -> JsonValue:
    """Return files in the standard alphabet: logs of earlier releases have them as Google's SDK writes them."""
    if isinstance(data, list):
        return [_in_standard_base64(part) for part in data]
    if not isinstance(data, dict):
        return data
    changed: dict[str, JsonValue] = {
        key: {**file, "data": standard_base64(text)}
        for key in _HOLD_BASE64
        if isinstance(file := data.get(key), dict)
        and file.get("type", "base64") == "base64"
        and isinstance(text := file.get("data"), str)
    }
    return {**data, **changed} if changed else data


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
    if kind == FUNCTION_CALL:
        return isinstance(data.get(NAMESPACE), str) or isinstance(data.get(CALLER), dict)
    if kind == TOOL_USE:
        return isinstance(data.get(CALLER), dict) or isinstance(data.get(TOOLSET), str)
    return kind in CLIENT_CALLS or kind == APPROVAL


def _is_anthropics(data: JsonValue) -> bool:
    kind = data.get("type") if isinstance(data, dict) else None
    return isinstance(kind, str) and (kind in SERVER_CALLS or kind.endswith("_tool_result"))
