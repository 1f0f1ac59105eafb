"""Programs that Anthropic's server runs and that call the client's tools (programmatic tool calling).

A program is a call of the server's tool for code. It waits while the client answers its calls, over as many responses
as it needs. Until it ends, the API takes nothing but results of these calls, and wants to know the container that the
program waits in. A call goes back with its ``caller``, where the program that this names goes back as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.content.native import CALLER, CONTAINER, TOOL_USE, TOOLSET
from timeline.wire.foreign import text_of
from timeline.wire.read_only import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pydantic import JsonValue

    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry
    from timeline.wire.writing import Message

_PROGRAM: Final = "tool_id"
"""The key in a caller for the id of the program's call."""
_ENDED: Final[Part] = {"type": "code_execution_tool_result_error", "error_code": "unavailable"}


def form_of(part: Part, container: str = "") -> JsonValue:
    """Return the form of a call, which goes back with it; None where the call has none.

    Args:
        part: the content part of the call.
        container: id of the container that the response reported; kept for calls of a program alone.
    """
    caller = part.get(CALLER)
    form: dict[str, JsonValue] = {}
    if isinstance(caller, dict) and text_of(caller, _PROGRAM):
        form |= {CALLER: caller, **({CONTAINER: container} if container else {})}
    if toolset := text_of(part, TOOLSET):
        form[TOOLSET] = toolset
    return {"type": TOOL_USE, **form} if form else None


def of_form(entry: Entry, programs: Collection[str]) -> Part:
    """Return what a call's form adds to its content part.

    Args:
        entry: the call.
        programs: ids of the programs that go back and have not ended.
    """
    form = entry.data if isinstance(entry.data, dict) and entry.data.get("type") == TOOL_USE else {}
    toolset = text_of(form, TOOLSET)
    caller: Any = form.get(CALLER)
    named = {CALLER: plain(caller)} if isinstance(caller, dict) and text_of(caller, _PROGRAM) in programs else {}
    return {**named, **({TOOLSET: toolset} if toolset else {})}


def program_of(part: Any) -> str:
    """Return the id of the program that made a call, of its content part or its form; empty where the model did."""
    return text_of(part[CALLER], _PROGRAM) if isinstance(part, dict) and isinstance(part.get(CALLER), dict) else ""


def running(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the programs that wait for results: those that made calls of the assistant's newest message.

    Args:
        messages: that are written.
    """
    newest = len(messages) - 1
    if newest > 0 and messages[newest]["content"][-1]["type"] == "tool_result":
        newest -= 1
    if newest < 0 or messages[newest]["role"] != "assistant":
        return []
    calls = (part for part in messages[newest]["content"] if part["type"] == TOOL_USE)
    return [*dict.fromkeys(filter(None, map(program_of, calls)))]


def end_of(program: str) -> Part:
    """Return the result of a program that cannot go on, since the conversation went on without it."""
    return {"type": "code_execution_tool_result", "tool_use_id": program, "content": dict(_ENDED)}


def container_of(entries: Sequence[Entry], programs: Collection[str]) -> str:
    """Return the id of the container that programs wait in, as the newest of their calls has it; empty if none has."""
    for entry in reversed(entries):
        if entry.role == "user":
            return ""
        if program_of(entry.data) in programs and isinstance(entry.data, dict) and text_of(entry.data, CONTAINER):
            return text_of(entry.data, CONTAINER)
    return ""
