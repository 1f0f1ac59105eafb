"""What a provider's server did, in words: as the calls and results that its tools would have, were they the client's.

The provider reads its own parts. Every other reader of a conversation, a summarizer above all, reads these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import ToolCall, ToolResult
from timeline.content.native import (
    COMPACTION,
    DRAWN,
    GOOGLE_CALLS,
    GOOGLE_FILES,
    OPENAI_ITEMS,
    google_kind,
    server_part,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from timeline.blocks import Block

_CODE: Final = "code_execution"
_UNREADABLE: Final = frozenset(
    {"type", "id", "encrypted_content", "encrypted_index", "encrypted_stdout", "file_id", "media_type", "cache_control"}
)
"""Keys of a part whose texts say nothing to a reader."""
_ADDRESS: Final = frozenset(
    {
        *("name", "server_label", "call_id", "container_id", "approval_request_id", "status", "execution"),
        *("fingerprint", "tool_use_id", "signature", "outcome", "language", "toolType"),
    }
)
"""Keys of a part itself, or of an item of OpenAI's, that say where it belongs, or how it ended."""
_OPENAI_ASKED: Final[dict[str, str]] = {"program": "code", "shell_call": "action", "tool_search_call": "arguments"}
"""OpenAI's items that are calls alone, each with the key of its arguments; others are a call and its result in one."""
_WORDLESS: Final = frozenset({DRAWN, "item_reference", "mcp_list_tools"})
"""OpenAI's items that say nothing to a reader, as its compactions do; one of Anthropic's has words."""


def as_tool_block(block: Block) -> Block:
    """Return what a tool of the provider's server did as a call or a result; any other block as it is."""
    part = server_part(block)
    if part is None or block.text or google_kind(part) in GOOGLE_FILES or part.get("type") in _WORDLESS:
        return block
    if part.get("type") == COMPACTION and not part.get("content"):
        return block
    same = {"path": block.path, "turn_id": block.turn_id, "at": block.at, "response_id": block.response_id}
    read = _of_google if google_kind(part) else _of_openai if part.get("type") in OPENAI_ITEMS else _of_anthropic
    made = read(part)
    return made.model_copy(update=same)


def words_said(part: dict[str, Any]) -> Iterator[str]:
    """Iterate over the words of what a provider's server did: the tool's name, what it was asked, what it found.

    Args:
        part: what `timeline.content.native.server_part` returns.
    """
    kind = google_kind(part)
    if kind not in GOOGLE_FILES and part.get("type") not in _WORDLESS:
        content = part[kind] if kind else part
        yield from _words({key: value for key, value in content.items() if key == "name" or key not in _ADDRESS})


def _of_anthropic(part: dict[str, Any]) -> Block:
    kind = str(part["type"])
    if not kind.endswith("_tool_result"):
        asked = part.get("input")
        name, arguments = str(part.get("name") or kind), asked if isinstance(asked, dict) else {}
        return ToolCall(call_id=str(part.get("id") or kind), name=name, arguments=arguments)
    content = part.get("content")
    inner = content if isinstance(content, dict) else {}
    status = inner.get("return_code")
    return ToolResult(
        call_id=str(part.get("tool_use_id") or kind),
        name=kind.removesuffix("_tool_result"),
        text="\n".join(_words(content)),
        is_error=part.get("is_error") is True or "error_code" in inner,
        exit_status=status if isinstance(status, int) else None,
    )


def _of_google(part: dict[str, Any]) -> Block:
    kind = google_kind(part)
    own = part[kind]
    name = str(own.get("toolType") or _CODE).lower()
    call_id = str(own.get("id") or name)
    if kind in GOOGLE_CALLS:
        asked = own.get("args") if kind == "toolCall" else {"code": own.get("code")}
        return ToolCall(call_id=call_id, name=name, arguments=asked if isinstance(asked, dict) else {})
    output = own.get("response") if kind == "toolResponse" else own.get("output")
    failed = own.get("outcome") not in (None, "OUTCOME_OK")  # no set: a recording may have any value
    return ToolResult(call_id=call_id, name=name, text="\n".join(_words(output)), is_error=failed)


def _of_openai(item: dict[str, Any]) -> Block:
    kind = str(item["type"])
    name = str(item.get("name") or kind.removesuffix("_output").removesuffix("_call"))
    call_id = str(item.get("call_id") or item.get("id") or kind)
    if kind in _OPENAI_ASKED:
        asked = item.get(_OPENAI_ASKED[kind])
        return ToolCall(call_id=call_id, name=name, arguments=asked if isinstance(asked, dict) else {"asked": asked})
    fields = {key: value for key, value in item.items() if key not in _ADDRESS}
    failed = item.get("status") == "failed" or item.get("error") is not None
    return ToolResult(call_id=call_id, name=name, text="\n".join(_words(fields)), is_error=failed)


def _words(value: JsonValue) -> Iterator[str]:
    """Iterate over the texts in a result, without what is encoded or encrypted."""
    if isinstance(value, str) and value.strip():
        yield value
    for inner in value if isinstance(value, list) else ():
        yield from _words(inner)
    if isinstance(value, dict) and value.get("type") != "base64":
        for key, inner in value.items():
            if key not in _UNREADABLE:
                yield from _words(inner)
