"""Entries for the wire tests: what a projection may give, what no projection should, and checks that both must pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from hypothesis import strategies as st

from timeline.blocks import ToolCall, ToolResult
from timeline.usage import KeptLong
from timeline.wire.neutral import CachePoint, Entry, NeutralContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue, TypeAdapter

    from timeline.blocks import Block

PointKind: TypeAlias = Literal["previous_turn", "pre_tail", "tail", "lagging"]

PICTURE: Final[dict[str, JsonValue]] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
}
PICTURE_URL: Final[dict[str, JsonValue]] = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
THINKING: Final[dict[str, JsonValue]] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SERVER_CALL: Final[dict[str, JsonValue]] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "q"},
}
SERVER_RESULT: Final[dict[str, JsonValue]] = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://x", "title": "X", "encrypted_content": "QUJD"}],
}
GOOGLE_CODE: Final[dict[str, JsonValue]] = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
GOOGLE_FOUND: Final[dict[str, JsonValue]] = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
GOOGLE_FILE: Final[dict[str, JsonValue]] = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
MCP_CALL: Final[dict[str, JsonValue]] = {
    "type": "mcp_call",
    "id": "m1",
    "name": "f",
    "server_label": "wiki",
    "approval_request_id": "a",
}
SHELL_FORM: Final[dict[str, JsonValue]] = {"type": "shell_call", "action": None, "status": "completed"}
PATCH_FORM: Final[dict[str, JsonValue]] = {"type": "apply_patch_call", "operation": None, "status": "completed"}
SHELL_CHUNK: Final[dict[str, JsonValue]] = {
    "stdout": "1",
    "stderr": "and an error",
    "outcome": {"type": "exit", "exit_code": 1},
}
DATA: Final[list[JsonValue]] = [
    None,
    PICTURE,
    PICTURE_URL,
    THINKING,
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    {"type": "image_url", "image_url": 7},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
    {"type": "thinking", "thinking": "unsigned"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "aGk="}},
    {"type": "image", "source": 5},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}, "title": "t"},
    {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "words"}]}},
    {"type": "search_result", "source": "https://x", "title": "X", "content": [{"type": "text", "text": "words"}]},
    {"type": "search_result", "source": "https://x", "title": "X", "content": [5]},
    {"type": "tool_reference", "tool_name": "f"},
    {"type": "container_upload", "file_id": "f1"},
    {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
    {"type": "file", "file": {"file_id": "f1"}},
    [{"type": "text", "text": "said twice"}, PICTURE, "odd", 5, {"type": []}],
    GOOGLE_CODE,
    GOOGLE_FOUND,
    {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["q"]}}},
    {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"a": 1}}, "thoughtSignature": "c2ln"},
    {"executableCode": {}},
    {"codeExecutionResult": 5},
    {**GOOGLE_FILE, "thoughtSignature": "no base64!"},
    {"inlineData": {"mimeType": "image/png", "data": "no base64!"}},
    {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/f"}},
    {"phase": "commentary"},
    {"phase": "thinking aloud"},
    SHELL_FORM,
    PATCH_FORM,
    {"type": "custom_tool_call", "input": None},
    {"type": "computer_call", "id": "cu_1", "status": "completed", "pending_safety_checks": [], "action": None},
    {"type": "computer_call", "actions": None},
    {"type": "shell_call"},
    {"type": "shell_call_output", "output": [SHELL_CHUNK]},
    [{"type": "input_image", "image_url": "https://example.org/a.png"}],
    SERVER_CALL,
    SERVER_RESULT,
    {"type": "mcp_tool_use", "id": 5},
    {"type": "mcp_approval_request", "arguments": None, "server_label": "wiki"},
    {
        "type": "mcp_call",
        "id": "m1",
        "name": "f",
        "server_label": "wiki",
        "arguments": "{}",
        "approval_request_id": "a",
    },
    {"type": "mcp_call", "id": "m1", "name": "f", "server_label": "wiki", "approval_request_id": "a"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "compaction", "encrypted_content": "QUJD"},
    {"type": "program", "id": "p", "call_id": "p1", "code": "go()", "fingerprint": "f"},
    {"type": "program_output", "id": "o", "call_id": "p1", "result": "1", "status": "completed"},
    {"type": "function_call", "caller": {"type": "program", "caller_id": "p1"}},
    {"type": "tool_search_call", "arguments": None, "execution": "client"},
    {"type": "tool_search_output", "tools": [], "execution": "client", "call_id": "a"},
    {"web_search_citations": [{"type": "web_search_result_location"}]},
    {"no": "type"},
    [],
    17,
]
TYPES: Final = (
    "user.prompt",
    "assistant.completion",
    "assistant.reasoning",
    "assistant.part",
    "assistant.native",
    "react.tool.call",
    "react.tool.result",
    "conv.range.summary",
    "system.message",
    "client.message",
)

KINDS: Final[tuple[PointKind, ...]] = ("previous_turn", "pre_tail", "tail", "lagging")

texts = st.sampled_from(["", " ", "\n"]) | st.text(max_size=12)
call_ids = st.sampled_from(["a", "b", "c", "a b", "ü", "", "x" * 70]) | st.none()


def prompt(text: str, **more: Any) -> Entry:
    """Make a prompt's entry."""
    return Entry(**{"path": f"ar:{text}", "type": "user.prompt", "role": "user", "text": text, **more})


def answer(text: str, **more: Any) -> Entry:
    """Make the entry of an assistant's text."""
    return Entry(**{"path": f"ar:{text}", "type": "assistant.completion", "role": "assistant", "text": text, **more})


def thought(**more: Any) -> Entry:
    """Make the entry of signed reasoning."""
    return Entry(
        **{"path": "bl:r", "type": "assistant.reasoning", "role": "assistant", "text": "hm", "data": THINKING, **more}
    )


def call(id_: str, arguments: Any = None, **more: Any) -> Entry:
    """Make the entry of a call, without arguments if none are given."""
    told = {} if arguments is None else arguments
    fields = {"path": f"tc:{id_}.call", "type": "react.tool.call", "role": "assistant", "name": "bash", **more}
    return Entry(**fields, call_id=id_, arguments=told)


def result(id_: str, text: str = "done", **more: Any) -> Entry:
    """Make the entry of a call's result."""
    fields = {"path": f"tc:{id_}.result", "type": "react.tool.result", "role": "tool", "name": "bash", **more}
    return Entry(**fields, call_id=id_, text=text)


@st.composite
def hostile_entries(draw: st.DrawFn) -> list[Entry]:
    """Draw any entries at all: roles, types, ids and data that do not fit one another."""
    entry = st.builds(
        Entry,
        path=st.just("ar:turn_1.user.prompt"),
        type=st.sampled_from(TYPES),
        role=st.sampled_from(["user", "assistant", "tool", "system"]),
        text=texts,
        name=st.sampled_from(["", "bash", "bad name", "n" * 200]),
        call_id=call_ids,
        arguments=st.none()
        | st.sampled_from(["", "{broken", "[1]"])
        | st.just({"commands": ["ls"]})
        | st.just({"type": "delete_file", "path": "a.py"})
        | st.dictionaries(st.text(max_size=3), texts),
        loose=st.booleans(),
        is_error=st.booleans(),
        response_id=st.none() | st.sampled_from(["r1", "r2"]),
        group=st.integers(0, 2),
        data=st.sampled_from(DATA),
        rewritten=st.booleans(),
        in_loop=st.booleans(),
    )
    return draw(st.lists(entry, max_size=14))


@st.composite
def legal_entries(draw: st.DrawFn) -> list[Entry]:
    """Draw what a projection gives: prompts and responses, with a result for most calls, in timeline order."""
    entries: list[Entry] = []
    for group in range(1, draw(st.integers(1, 5)) + 1):
        shared: dict[str, Any] = {"response_id": f"r{group}", "group": group}
        if draw(st.booleans()):
            entries.append(prompt(f"prompt {group}", group=group))
        if draw(st.booleans()):
            entries.append(thought(**shared))
        if draw(st.booleans()):
            entries.append(answer(f"answer {group}", **shared))
        calls = [f"call_{group}_{n}" for n in range(draw(st.integers(0, 3)))]
        for id_ in calls:
            arguments: list[Any] = [{}, {"b": 1, "a": [id_]}, "{raw " + id_]
            entries.append(call(id_, draw(st.sampled_from(arguments)), **shared))
        answered = [id_ for id_ in draw(st.permutations(calls)) if draw(st.integers(0, 5))]
        entries += [result(id_, f"result of {id_}", is_error=draw(st.booleans()), **shared) for id_ in answered]
    return entries


@st.composite
def contexts(draw: st.DrawFn, entries: st.SearchStrategy[list[Entry]]) -> NeutralContext:
    """Draw a context of such entries, with cache points, a system prompt, tools and an ephemeral tail."""
    drawn = draw(entries)
    indices = draw(st.lists(st.integers(0, max(0, len(drawn) - 1)), max_size=4))
    marked: dict[str, JsonValue] = {"type": "text", "text": "own", "cache_control": {"type": "ephemeral"}}
    plain: dict[str, JsonValue] = {"type": "text", "text": "plain"}
    tool: dict[str, JsonValue] = {"name": "bash", "input_schema": {"type": "object"}}
    systems: list[JsonValue] = [None, "", "Be brief.", [plain], [plain, marked], [marked, marked]]
    later: dict[str, JsonValue] = {"name": "later", "defer_loading": True}
    for_short: dict[str, JsonValue] = {**tool, "cache_control": {"type": "ephemeral"}}
    for_long: dict[str, JsonValue] = {**tool, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    tools = [(), (tool,), (tool, for_short), (for_long, tool), (for_long, for_short), (tool, later)]
    return NeutralContext(
        system=draw(st.sampled_from(systems)),
        tools=draw(st.sampled_from(tools)),
        kept_long=draw(st.sampled_from(get_args(KeptLong))),
        entries=tuple(drawn),
        cache_points=tuple(CachePoint(kind=kind, index=index) for kind, index in zip(KINDS, indices, strict=False)),
        ephemeral=draw(st.sampled_from([(), (prompt("by the way", type="ephemeral"),)])),
    )


def validated(adapter: TypeAdapter[Any], message: Any) -> Any:
    """Validate a message with an SDK's own types, lazy iterators included, and return it as plain values."""
    return _plain(adapter.validate_python(message))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | Iterator) or type(value).__name__ == "ValidatorIterator":
        return [_plain(v) for v in value]
    return value


def assert_all_is_said(context: NeutralContext, messages: Any) -> None:
    """Assert that no text of a context is lost on the wire, save for reasoning."""
    sent = json.dumps(messages)
    for entry in context.entries:
        if entry.type != "assistant.reasoning" or entry.role != "assistant":
            assert not entry.text.strip() or json.dumps(entry.text)[1:-1] in sent


def assert_survives(entries: Sequence[Entry], blocks: Sequence[Block]) -> None:
    """Assert that calls with their arguments, results, prompts and answers are read back as they were sent."""
    calls = {b.call_id: b.arguments for b in blocks if isinstance(b, ToolCall)}
    assert calls == {e.call_id: e.arguments for e in entries if e.type == "react.tool.call"}
    answered = {b.call_id: (b.text, b.name) for b in blocks if isinstance(b, ToolResult)}
    assert answered == {e.call_id: (e.text, e.name) for e in entries if e.type == "react.tool.result"}
    for type_ in ("user.prompt", "assistant.completion"):
        assert [b.text for b in blocks if b.type == type_] == [e.text for e in entries if e.type == type_]


def markers(value: Any) -> int:
    """Count the cache markers anywhere in a request."""
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(markers, value.values()))
    return sum(map(markers, value)) if isinstance(value, list) else 0


def without_markers(value: Any) -> Any:
    """Return a request without its cache markers."""
    if isinstance(value, dict):
        return {k: without_markers(v) for k, v in value.items() if k != "cache_control"}
    return [without_markers(v) for v in value] if isinstance(value, list) else value
