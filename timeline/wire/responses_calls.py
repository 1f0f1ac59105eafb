"""OpenAI's calls of the client's tools that are no function calls: custom tools, shell, patches, screens, tool search.

Such a call, and its result, has an item type of its own. To OpenAI's models both go back in it; to others, and where
the call or what its result must have is hidden, they are a function call of the same name and its output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import ToolCall, ToolResult
from timeline.content.native import CALLER, CLIENT_CALLS, FOUND_TOOLS
from timeline.wire.foreign import arguments_of, text_of
from timeline.wire.groups import fit
from timeline.wire.neutral import FAILED, INTERRUPTED
from timeline.wire.providers import OPENAI_RESPONSES
from timeline.wire.read_only import plain

if TYPE_CHECKING:
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry

OUTPUT: Final = "_output"
"""What the type of a result's item has behind the type of its call."""
_CUSTOM: Final = "custom_tool_call"
_SHELL: Final = "shell_call"
_PATCH: Final = "apply_patch_call"
_COMPUTER: Final = "computer_call"
_SEARCH: Final = "tool_search_call"
_KEPT: Final[dict[str, tuple[str, ...]]] = {
    _CUSTOM: ("namespace",),
    _SHELL: ("environment", "status"),
    _PATCH: ("status",),
    _COMPUTER: ("id", "pending_safety_checks", "status"),
    _SEARCH: ("execution", "status"),
}
"""The fields that a request takes beside the call's id and arguments. An id where it may be left out is: the API would
look for the thought that an item of that id belongs to."""
_ACTIONS: Final = "actions"
"""The key of a computer's actions where a call has several."""
_SCREEN: Final = "acknowledged_safety_checks"
_PICTURES: Final = ("image_url", "file_id")
_CHUNK: Final = ("stdout", "stderr", "outcome")
"""The fields of a part of a shell's output; a request takes no other."""


def is_of_client(item: Part) -> bool:
    """Return whether an item calls a tool of the client in one of these forms.

    A shell, and a search for tools, may be the server's own.
    """
    kind = text_of(item, "type")
    if kind not in CLIENT_CALLS:
        return False
    if kind == _SEARCH:
        return text_of(item, "execution") != "server" and bool(text_of(item, "call_id"))
    where = item.get("environment")
    return not isinstance(where, dict) or where.get("type") == "local"


def call_block(item: Part, call_id: str, response_id: str) -> ToolCall:
    """Read a call; its ``data`` is its form, with null in the place of the arguments.

    Args:
        item: one that `is_of_client`.
        call_id: the id of the call.
        response_id: the response that it belongs to.
    """
    kind = item["type"]
    key = _ACTIONS if kind == _COMPUTER and isinstance(item.get(_ACTIONS), list) else CLIENT_CALLS[kind]
    asked = {key: item[key]} if key == _ACTIONS else item.get(key)
    arguments = asked if kind == _CUSTOM and isinstance(asked, str) else arguments_of(asked)
    kept = {name: item[name] for name in _KEPT[kind] if item.get(name) is not None}
    form = {"type": kind, key: None, **kept, **caller_of(item)}
    return ToolCall(
        call_id=call_id,
        name=text_of(item, "name") or kind.removesuffix("_call"),
        arguments=arguments,
        data=form,
        response_id=response_id,
    )


def caller_of(item: Part) -> Part:
    """Return the program that made a call, under its key; nothing where the model called by itself."""
    caller = item.get(CALLER)
    return {CALLER: caller} if isinstance(caller, dict) and text_of(caller, "caller_id") else {}


def call_item(entry: Entry, call_id: str, result: Entry | None) -> Part | None:
    """Return the item of a call in its own form; None where it goes out as a function call.

    Args:
        entry: the call.
        call_id: the id to send.
        result: the entry of its result, if there is one.
    """
    form = entry.data
    kind = str(form.get("type")) if isinstance(form, dict) else ""
    if not isinstance(form, dict) or kind not in CLIENT_CALLS:
        return None
    if kind == _COMPUTER and not _screen(result):  # the API takes no screen without its picture
        return None
    if kind == _SEARCH and _tools(result) is None:  # nor a search without the tools that it found
        return None
    arguments: Any = entry.arguments
    asked = arguments.get(_ACTIONS) if isinstance(arguments, dict) and _ACTIONS in form else arguments
    item = plain({key: asked if value is None else value for key, value in form.items()}) | {"call_id": call_id}
    if kind == _CUSTOM:
        item["name"] = fit(entry.name or "unknown", OPENAI_RESPONSES.name_pattern, OPENAI_RESPONSES.name_length)
    return item if _is_whole(item) else None


def _is_whole(item: Part) -> bool:
    """Return whether an item has what the API demands of its kind: an application may have made the call."""
    value: Any = item.get(CLIENT_CALLS[item["type"]])
    match item["type"]:
        case "custom_tool_call":
            return isinstance(value, str)
        case "shell_call":
            return isinstance(value, dict) and isinstance(value.get("commands"), list)
        case "apply_patch_call":
            return isinstance(value, dict) and bool(text_of(value, "path")) and bool(text_of(item, "status"))
        case "tool_search_call":
            return True
    whole = isinstance(value, dict) or isinstance(item.get(_ACTIONS), list)
    return whole and bool(text_of(item, "id")) and isinstance(item.get("pending_safety_checks"), list)


def output_item(call: Part, entry: Entry | None, output: str | list[Part]) -> Part:
    """Return the item of a call's result, in the form that belongs to the call's item.

    Args:
        call: the item of the call, as it is sent.
        entry: the result; None where there is none.
        output: what the result says, as the output of a function call.
    """
    kind = call["type"] + OUTPUT
    of_call = {"type": kind, "call_id": call["call_id"], **caller_of(call)}
    text = output if isinstance(output, str) else "\n".join(map(text_of, output))
    failed = entry is None or entry.is_error
    match call["type"]:
        case "shell_call":
            asked = call["action"].get("max_output_length")
            most = {} if asked is None else {"max_output_length": asked}
            return {**of_call, **most, "output": _chunks(entry) or [_chunk(text, 1 if failed else 0)]}
        case "apply_patch_call":
            return {**of_call, "status": "failed" if failed else "completed", **({"output": text} if text else {})}
        case "computer_call":
            return {**of_call, **_screen(entry)}
        case "tool_search_call":
            own = {"type": FOUND_TOOLS, "execution": "client", "status": "completed"}
            return {**of_call, **own, "tools": _tools(entry)}
    return {**of_call, "output": output}


def result_block(item: Part, call_id: str, name: str) -> ToolResult | None:
    """Read the result of a shell, a patch or a computer; return None for any other item."""
    kind = text_of(item, "type").removesuffix(OUTPUT)
    output = item.get("output")
    name = name or kind.removesuffix("_call")
    if kind == _SHELL and isinstance(output, list):
        return _shell_result(item, call_id, name, [chunk for chunk in output if isinstance(chunk, dict)])
    if kind == _PATCH:
        text = text_of(item, "output")
        return ToolResult(
            call_id=call_id, name=name, text="" if text == FAILED else text, is_error=item.get("status") == "failed"
        )
    if kind == _COMPUTER and isinstance(output, dict):
        picture = {"type": "input_image", **{key: output[key] for key in _PICTURES if text_of(output, key)}}
        checks = {_SCREEN: item[_SCREEN]} if item.get(_SCREEN) else {}
        return ToolResult(call_id=call_id, name=name, data=[{**picture, **checks}])
    return None


def found_tools(item: Part, call_id: str, name: str) -> ToolResult:
    """Read what a search of the client for tools found: their names, and in ``data`` the tools.

    Args:
        item: one of the type `FOUND_TOOLS`.
        call_id: the id of the search.
        name: the name of the search.
    """
    tools = item.get("tools")
    found = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    names = "\n".join(filter(None, (text_of(tool, "name") or text_of(tool, "server_label") for tool in found)))
    data: Any = {"type": FOUND_TOOLS, "tools": found}
    return ToolResult(call_id=call_id, name=name, text=names, data=data)


def is_placeholder(item: Part) -> bool:
    """Return whether an item is what is sent for a call without a result."""
    output = item.get("output")
    if item.get("type") == _SHELL + OUTPUT and isinstance(output, list) and len(output) == 1:
        return isinstance(output[0], dict) and output[0].get("stdout") == INTERRUPTED
    return bool(output == INTERRUPTED)


def _shell_result(item: Part, call_id: str, name: str, chunks: list[Part]) -> ToolResult:
    ends = [chunk["outcome"] for chunk in chunks if isinstance(chunk.get("outcome"), dict)]
    codes = [code for end in ends if type(code := end.get("exit_code")) is int]
    text = "\n".join(printed for chunk in chunks for key in ("stdout", "stderr") if (printed := text_of(chunk, key)))
    return ToolResult(
        call_id=call_id,
        name=name,
        text=text,
        data=None if item["output"] == [_chunk(text, 0)] else {"type": item["type"], "output": item["output"]},
        is_error=any(end.get("type") == "timeout" for end in ends),
        exit_status=next(filter(None, reversed(codes)), 0) if codes else None,  # of the last command that failed
    )


def _chunk(text: str, exit_code: int) -> Part:
    return {"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": exit_code}}


def _chunks(entry: Entry | None) -> list[Part]:
    """Return the chunks of a shell's result as they came.

    There are none where the text alone says it all, the result is hidden, or an application wrote what the API refuses.
    """
    data = entry.data if entry is not None else None
    output = data.get("output") if isinstance(data, dict) and data.get("type") == _SHELL + OUTPUT else None
    chunks: list[Any] = output if isinstance(output, list) else []
    return [{key: plain(chunk[key]) for key in _CHUNK} for chunk in chunks] if all(map(_is_chunk, chunks)) else []


def _is_chunk(chunk: Any) -> bool:
    if not isinstance(chunk, dict) or not all(isinstance(chunk.get(key), str) for key in ("stdout", "stderr")):
        return False
    end = chunk.get("outcome")
    if not isinstance(end, dict):
        return False
    return end == {"type": "timeout"} or (end.keys() == {"type", "exit_code"} and type(end["exit_code"]) is int)


def _tools(entry: Entry | None) -> list[Any] | None:
    """Return the tools that a search found; None where it has no result, or a hidden one."""
    data = entry.data if entry is not None else None
    tools = data.get("tools") if isinstance(data, dict) and data.get("type") == FOUND_TOOLS else None
    return plain(tools) if isinstance(tools, list) else None


def _screen(entry: Entry | None) -> Part:
    """Return what a computer's result shows; nothing where it has no picture of this form."""
    parts = entry.data if entry is not None and isinstance(entry.data, list) else []
    for part in parts:
        if isinstance(part, dict) and part.get("type") == "input_image":
            shown = {key: part[key] for key in _PICTURES if isinstance(part.get(key), str) and part[key]}
            checks = {_SCREEN: plain(part[_SCREEN])} if part.get(_SCREEN) else {}
            return {"output": {"type": "computer_screenshot", **shown}, **checks} if shown else {}
    return {}
